"""Naive Bayes on wide tables beside BernoulliNB: sparse rows, and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk
from sklearn.naive_bayes import BernoulliNB

from benchmarks.speed.clock import one_pass
from benchmarks.speed.work import Work
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, Categories, Schema

COLUMNS = 10_000
STORED = 100  # values in a sparse row


def sparse_rows(n: int) -> sparse.csr_matrix:
    """Return rows with about one percent of ones."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, COLUMNS, (n, STORED), dtype=np.int32)
    columns.sort(axis=1)
    starts = np.arange(0, n * STORED + 1, STORED, dtype=np.int32)
    rows = sparse.csr_matrix((np.ones(n * STORED), columns.ravel(), starts), (n, COLUMNS))
    rows.sum_duplicates()
    rows.data[:] = 1
    return rows


def works(records: int, features: int) -> Iterator[Work]:
    """Yield fits and predictions, each with BernoulliNB as what it is compared with."""
    yield from beside_bernoulli(
        f"sparse {records:,} × {COLUMNS:,}, 1 % stored", sparse_rows(records)
    )
    rng = np.random.default_rng(0)
    shape = records // 5, 20 * features
    dense = rng.integers(0, 2, shape, dtype=np.uint8)
    yield from beside_bernoulli(f"uint8 {shape[0]:,} × {shape[1]:,}", dense)


def beside_bernoulli(name: str, X: Any) -> Iterator[Work]:
    y = np.random.default_rng(1).integers(0, 2, X.shape[0])
    ours = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2).fit(X[:1000], y[:1000])
    theirs = BernoulliNB().fit(X[:1000], y[:1000])
    for what, call, floor in (
        ("fit", lambda: ours.fit(X, y), lambda: theirs.fit(X, y)),
        ("predict", lambda: ours.predict(X), lambda: theirs.predict(X)),
    ):
        yield Work(f"{what}, {name}", call, "", ("BernoulliNB", floor))


def many_parameters() -> Iterator[Work]:
    """Yield fits of few records and thousands of parameters."""
    rng, many = np.random.default_rng(0), 5000
    X, y = rng.integers(0, many, (3000, 1)), rng.integers(0, 2, 3000)
    schema = Schema({"code": Categories(range(many))}, target=Categories([0, 1]))
    model = BayesianNaiveBayes(schema=schema)
    memory = rng.random(10**7)
    yield Work(
        "naive Bayes fit, 3,000 records of 5,000 categories",
        partial(model.fit, X, y),
        "",
        ("one pass over 80 MB", one_pass(memory)),
    )
    wide = rng.uniform(-1, 1, (20_000, 1000))
    regression = BayesianLinearRegression(bounds_X=(-1, 1), bounds_y=(-2, 2))
    yield Work(
        "regression fit, 20,000 × 1,000",
        partial(regression.fit, wide, wide[:, 0].copy()),
        "",
        ("dsyrk(X.T)", lambda: dsyrk(1.0, wide.T)),
    )
