"""What the gallery is about; `make docs` runs its examples (`docs/_ext/strict_gallery.py`)."""

from __future__ import annotations

import re
from pathlib import Path

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
    "import duckdb": "an engine",
}


def test_the_gallery_has_its_topics():
    everything = "\n".join(path.read_text("utf-8") for path in EXAMPLES)
    assert len(EXAMPLES) >= 8
    assert [topic for code, topic in TOPICS.items() if code not in everything] == []


def test_nothing_is_downloaded():
    fetches = re.compile(r"fetch_\w+|https?://|urllib|requests")
    assert [path.name for path in EXAMPLES if fetches.search(path.read_text("utf-8"))] == []
