"""The README shows figures that a script measured, and leads to pages that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import readme_table

    return readme_table


def test_the_table_is_what_the_script_measured(script):
    results = json.loads(script.RESULTS.read_text("utf-8"))
    shown = README.partition(script.BEGIN)[2].partition(script.END)[0]
    assert shown.strip() == script.render(results).strip()


def test_other_figures_make_another_table(script):
    results = json.loads(script.RESULTS.read_text("utf-8"))
    results["diffprivlib"]["scores"]["diabetes"] = -2_345.0
    assert "−10³" in script.render(results)


def test_links_and_the_picture_exist():
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "docs/figures/picture.svg" in targets
    assert [t for t in targets if not (ROOT / t).exists()] == []
