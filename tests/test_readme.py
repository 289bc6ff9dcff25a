"""The README shows figures that a script measured, and leads to pages that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.peers import readme_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_table_is_what_the_script_measured():
    results = json.loads(readme_table.RESULTS.read_text("utf-8"))
    shown = README.partition(readme_table.BEGIN)[2].partition(readme_table.END)[0]
    assert shown.strip() == readme_table.render(results).strip()


def test_other_figures_make_another_table():
    results = json.loads(readme_table.RESULTS.read_text("utf-8"))
    results["diffprivlib"]["scores"]["diabetes"] = -2_345.0
    assert "−10³" in readme_table.render(results)


def test_links_and_the_picture_exist():
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "docs/figures/picture.svg" in targets
    assert [t for t in targets if not (ROOT / t).exists()] == []
