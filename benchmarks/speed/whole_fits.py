"""Whole fits whose time is in the noise and the inference, and charges to a ledger."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.work import Work
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import ClassRows
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import draw
from dpbayes_sklearn.privacy import BudgetAccountant


def classifier(n: int, d: int, values: int, classes: int, **parameters: Any) -> Any:
    """Return a call that fits to records of few cells: the rest of a fit is what takes the time."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, (n, d), dtype=np.uint8)
    y = rng.integers(0, classes, n)
    model = BayesianNaiveBayes(
        classes=range(classes), bounds=(0, values - 1), n_bins=values, **parameters
    )
    return lambda: model.fit(X, y).predict(X[:1])


def works() -> Iterator[Work]:
    """Yield whole fits, each with a first prediction."""
    name = "fit and first predict, 100 features × 8 values × 10 classes, {} noise"
    for noise in ("joint", "independent"):
        mechanism = Laplace(noise=noise)
        fit = classifier(10_000, 100, 8, 10, mechanism=mechanism, temperature=1)
        yield Work(name.format(noise), fit, "300 ms")
    law = ClassRows.of((8,) * 100, 10, 2, Fraction(1))
    yield Work("drawing that joint noise", lambda: draw(law, 1, random_source(None)), "150 ms")
    fit = classifier(10_000, 1000, 16, 2, temperature=1)
    yield Work("fit and first predict, 1,000 features × 16 values", fit, "1,500 ms")
    yield Work("fit and first predict, 200,000 × 20, default", classifier(200_000, 20, 2, 2), "")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 10))
    regression = BayesianLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1))
    yield Work("regression fit, 1,000 × 10", lambda: regression.fit(X, X[:, 0]), "")
    yield from charges()


def charges() -> Iterator[Work]:
    """Yield charges to a ledger, in memory and on disk."""
    memory = BudgetAccountant()
    yield Work("one charge, ledger without path", lambda: memory.spend(0.1), "1 ms")
    with tempfile.TemporaryDirectory() as folder:
        disk = BudgetAccountant(path=Path(folder) / "ledger")
        yield Work("one charge, ledger with path", lambda: disk.spend(0.1), "5 ms")
