"""Every example of the gallery runs without a warning and draws a figure."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
TOPICS = {
    "ColumnTransformer": "a pipeline",
    "GridSearchCV(": "a grid over epsilon",
    "PrivacyUtilityDisplay": "a comparison of mechanisms",
    "return_std=True": "uncertainty",
    "DirichletMultinomial(": "posterior release",
    "BayesianNetworkClassifier(": "a network",
    "PosteriorQuerySession(": "a query session",
    "PrivateSearchCV(": "a private search",
    "import dask": "dask",
}


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_runs_and_draws(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    try:
        runpy.run_path(str(example), run_name="__main__")
        assert plt.get_fignums()
    finally:
        plt.close("all")
    assert [*tmp_path.iterdir()] == []


def test_the_gallery_has_its_topics():
    everything = "\n".join(path.read_text("utf-8") for path in EXAMPLES)
    assert len(EXAMPLES) >= 8
    assert [topic for code, topic in TOPICS.items() if code not in everything] == []


def test_nothing_is_downloaded():
    fetches = re.compile(r"fetch_\w+|https?://|urllib|requests")
    assert [path.name for path in EXAMPLES if fetches.search(path.read_text("utf-8"))] == []
