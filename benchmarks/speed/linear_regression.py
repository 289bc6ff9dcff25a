"""Linear regression beside the bare product X'X and beside other regressions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.linear_model import BayesianRidge, Ridge

from benchmarks.speed.work import Work, peer
from dpbayes_sklearn import BayesianLinearRegression


def works(rows: int, features: int) -> Iterator[Work]:
    """Yield a fit and predictions, with and without standard deviations."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, features))
    y = X[:, : min(5, features)].sum(axis=1) / 5 + rng.normal(size=rows) * 0.1
    model = BayesianLinearRegression(bounds_X=(-1, 1), bounds_y=(-2, 2)).fit(X, y)
    ridge, bayesian = (each.fit(X[:1000], y[:1000]) for each in (Ridge(), BayesianRidge()))
    yield Work(
        "regression fit",
        lambda: model.fit(X, y),
        "1.5×",
        ("dsyrk(X.T)", lambda: dsyrk(1.0, X.T)),
        {"Ridge": lambda: Ridge().fit(X, y), "BayesianRidge": lambda: BayesianRidge().fit(X, y)},
        partial(peer, "LinearRegression", rows, features, "fit"),
    )
    floor = "Ridge.predict", lambda: ridge.predict(X)
    yield Work(
        "regression predict",
        lambda: model.predict(X),
        "1.3×",
        floor,
        {"BayesianRidge": lambda: bayesian.predict(X)},
        partial(peer, "LinearRegression", rows, features, "predict"),
    )
    yield Work(
        "regression predict with std",
        lambda: model.predict(X, return_std=True),
        "3×",
        floor,
        {"BayesianRidge": lambda: bayesian.predict(X, return_std=True)},
    )


def targets(rows: int, features: int) -> Iterator[Work]:
    """Yield fits to targets of every shape: the time must not depend on it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, features))
    line = X[:, : min(5, features)].sum(axis=1) / 5
    noise, tails = rng.normal(size=rows) * 0.1, rng.standard_cauchy(rows)
    shapes = {
        "linear": line + noise,
        "two-valued": np.sign(line + noise),
        "constant": np.full(rows, 0.5),
        "separable": np.sign(line),
        "heavy-tailed": line + tails / 10,
        "zero-inflated": np.where(rng.random(rows) < 0.8, 0.0, np.abs(line)),
        "beyond its bounds": line + tails,
    }
    model = BayesianLinearRegression(bounds_X=(-1, 1), bounds_y=(-2, 2))
    for shape, y in shapes.items():
        yield Work(
            f"regression fit, {shape} target",
            partial(model.fit, X, y),
            "4×",
            ("dsyrk(X.T)", lambda: dsyrk(1.0, X.T)),
        )
