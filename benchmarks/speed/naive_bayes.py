"""Naive Bayes beside one pass over memory and beside other naive Bayes classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

from benchmarks.speed.clock import one_pass
from benchmarks.speed.work import Work, peer
from dpbayes_sklearn import BayesianNaiveBayes

PASS = "one pass over X"
Array = Any


def ours(n_classes: int, n_bins: int, high: float) -> BayesianNaiveBayes:
    """Return the model whose time is in the counting, not in the inference."""
    return BayesianNaiveBayes(
        inference="plug_in",
        temperature=1,
        classes=range(n_classes),
        bounds=(0, high),
        n_bins=n_bins,
    )


def works(rows: int, features: int) -> Iterator[Work]:
    """Yield fits and predictions on floats and on bytes."""
    rng = np.random.default_rng(0)
    shape = rows, features
    yield from floats(rng.random(shape), rng.integers(0, 2, rows))
    yield from categories(rng.integers(0, 8, shape).astype(np.float64), rng.integers(0, 10, rows))
    yield from bytes_(rng.integers(0, 2, shape, dtype=np.uint8), rng.integers(0, 2, rows))


def floats(X: Array, y: Array) -> Iterator[Work]:
    """Yield work on numbers that are cut into two bins."""
    model, theirs = ours(2, 2, 1).fit(X, y), BernoulliNB(binarize=0.5).fit(X[:1000], y[:1000])
    name, floor = "naive Bayes {}, float64", (PASS, one_pass(X))
    yield Work(
        name.format("fit"),
        lambda: model.fit(X, y),
        "2×",
        floor,
        {"BernoulliNB": lambda: BernoulliNB(binarize=0.5).fit(X, y)},
        partial(peer, "GaussianNB", *X.shape, "fit"),
    )
    yield Work(
        name.format("predict"),
        lambda: model.predict(X),
        "2.5×",
        floor,
        {"BernoulliNB": lambda: theirs.predict(X)},
        partial(peer, "GaussianNB", *X.shape, "predict"),
    )
    yield Work(
        name.format("predict_proba"),
        lambda: model.predict_proba(X),
        "4×",
        floor,
        {"BernoulliNB": lambda: theirs.predict_proba(X)},
    )
    row = X[:1]
    yield Work(
        name.format("predict of one row"),
        lambda: [model.predict(row) for _ in range(100)],
        "3×",
        ("BernoulliNB, 100 times", lambda: [theirs.predict(row) for _ in range(100)]),
    )


def categories(X: Array, y: Array) -> Iterator[Work]:
    """Yield predictions of ten classes from eight values."""
    model = ours(10, 8, 7).fit(X, y)
    theirs = CategoricalNB(min_categories=8).fit(X[:1000], y[:1000])
    yield Work(
        "naive Bayes predict, float64, 8 values, 10 classes",
        lambda: model.predict(X),
        "12×",
        (PASS, one_pass(X)),
        {"CategoricalNB": lambda: theirs.predict(X)},
    )


def bytes_(X: Array, y: Array) -> Iterator[Work]:
    """Yield a fit to bytes."""
    model = ours(2, 2, 1)
    yield Work(
        "naive Bayes fit, uint8",
        lambda: model.fit(X, y),
        "8×",
        (PASS, one_pass(X)),
        {
            "BernoulliNB": lambda: BernoulliNB(binarize=None).fit(X, y),
            "CategoricalNB": lambda: CategoricalNB(min_categories=2).fit(X, y),
        },
    )
