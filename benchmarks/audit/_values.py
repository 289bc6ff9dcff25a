"""What values do: none makes a fit fail, speak or lose a bit; outputs lie on public lattices."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    DirichletMultinomial,
)
from dpbayes_sklearn.audit.leaks import fitted_numbers
from dpbayes_sklearn.audit.recording import Recording
from dpbayes_sklearn.counts.temperature import LabelledCounts
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.noise import made_by
from dpbayes_sklearn.regression.moments import WHOLE_WINDOW
from dpbayes_sklearn.release import boundary
from dpbayes_sklearn.schema import Categories

__all__ = ["values"]

BAD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.3)
CANARY = "HIV+7391"
COUNTS: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 3}
MOMENTS: dict[str, Any] = {"bounds_X": (0, 1), "bounds_y": (0, 1)}


def values() -> Iterator[str]:
    """Try bad values, messages, orders of rows, types, and the lattices of what comes out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield from _bad_values()
        yield from _missing_values()
        yield from _same_statistics()
        yield from _lattices()
    yield from _messages()


def _models() -> list[Any]:
    names = ("laplace", "fourier", "sampler", "map")
    return [
        *(BayesianNaiveBayes(mechanism=m, **COUNTS) for m in names),
        *(BayesianLinearRegression(mechanism=m, **MOMENTS) for m in names),
    ]


def _bad_values() -> Iterator[str]:
    X = np.array(BAD * 3).reshape(-1, 2)
    y = np.array([np.nan, np.inf, 1e308, 0, 1, 9] * 2)
    for model in _models():
        name = f"{type(model).__name__}, {model.mechanism}"
        try:
            fitted = model.fit(X, y)
        except (Exception, Warning) as error:
            yield f"{name}: {type(error).__name__}"
            continue
        if (
            not np.isfinite(fitted_numbers(fitted)).all()
            or not np.isfinite(np.asarray(fitted.predict(X), float)).all()
        ):
            yield f"{name}: numbers that are not finite"
    odd = np.empty(5, object)
    odd[:] = ["a", None, 3.5, ("b",), CANARY]
    DirichletMultinomial(categories=Categories(["a", "b"])).fit(odd)


def _missing_values() -> Iterator[str]:
    """Check that a missing number counts as the middle of its bounds and changes nobody else."""
    X, y = np.array([[0.0], [0.5], [1.0]]), np.array([1.0, 0.5, 0.0])
    model, exact = BayesianLinearRegression(**MOMENTS), []
    for middle in (0.5, np.nan):
        X[1], y[1] = middle, middle
        moments = model._read(X, y).statistics
        exact.append(
            [moments.gram(2**10, WHOLE_WINDOW).tolist(), moments.location_sums(2**10)[1].tolist()]
        )
    if exact[0] != exact[1]:
        yield "a missing number is not the middle of its bounds"


def _messages() -> Iterator[str]:
    column = np.array([["1"], [CANARY], ["2"], ["3"]], dtype=object)
    labels = np.array([0, 1, 1, 0])
    for call in (
        lambda: BayesianNaiveBayes(classes=[0, 1]).fit(column, labels),
        lambda: BayesianNaiveBayes(**COUNTS).fit(column.ravel(), labels),
        lambda: BayesianLinearRegression(bounds_y=(0, 1)).fit(column, labels),
        lambda: DirichletMultinomial(categories=["1", "2"]).fit(column),
        lambda: BayesianNaiveBayes(**COUNTS).fit(column, column.ravel()[:2]),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                call()
                said = ""
            except (TypeError, ValueError) as error:
                said = f"{error!r} {error.__cause__!r} {error.__context__!r}"
        if CANARY in said + "".join(str(w.message) for w in caught):
            yield "a message shows a value"


def _statistics(model: Any, X: Any, y: Any) -> Any:
    """Return the exact statistics that a fit hands to its mechanism."""
    seen: list[Any] = []

    def watched(release: Any, plan: Any, statistics: Any, noise: Any) -> Any:
        counted = isinstance(statistics, LabelledCounts)
        seen.append(statistics.counts if counted else statistics)
        return release(plan, statistics, noise)

    with boundary(watched):
        model.fit(X, y)
    if hasattr(seen[0], "tables"):
        return np.concatenate([t.ravel() for t in seen[0].tables])
    return seen[0].gram(2**10, WHOLE_WINDOW).ravel()


def _same_statistics() -> Iterator[str]:
    rng = np.random.default_rng(0)
    X, y = rng.random((700, 3)), rng.integers(0, 2, 700)
    order = rng.permutation(700)
    for model in (BayesianNaiveBayes(**COUNTS), BayesianLinearRegression(**MOMENTS)):
        name, there = type(model).__name__, _statistics(model, X, y)
        if not np.array_equal(there, _statistics(model, X[order], y[order])):
            yield f"{name}: sums depend on the order of the rows"
        halves = sum(_statistics(model, X[i::2], y[i::2]) for i in (0, 1))
        if not np.array_equal(there, halves):
            yield f"{name}: two halves do not add up to the whole"
        whole = (X > 0.5).astype(float)
        there = _statistics(model, whole, y)
        for kind in (np.int8, np.uint64, np.float32, bool):
            if not np.array_equal(there, _statistics(model, whole.astype(kind), y)):
                yield f"{name}: sums depend on the type {np.dtype(kind)}"


def _lattices() -> Iterator[str]:
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 2)), rng.integers(0, 2, 30)
    for mechanism in ("laplace", "fourier"):
        model = BayesianNaiveBayes(mechanism=mechanism, inference="plug_in", **COUNTS).fit(X, y)
        released = model.posterior_.released
        arrays = released.tables if mechanism == "laplace" else released.blocks.values()
        steps = [array * released.grid for array in arrays]
        if any((array != np.rint(array)).any() for array in steps):
            yield f"{mechanism}: released numbers are not on the lattice of their noise"
    fixed = Sampler(omega=0.1, n_points=9)
    options = {**COUNTS, "n_bins": 2, "temperature": 1}
    drawn = BayesianNaiveBayes(mechanism=fixed, **options).fit(X, y).posterior_
    odds = np.log(drawn.draws[0]) - np.log1p(-drawn.draws[0])
    if not np.allclose(odds / np.log(9) * 4, np.rint(odds / np.log(9) * 4)):
        yield "sampler: draws are not on the grid"
    drawn = Recording()
    with made_by(drawn.noise):
        BayesianLinearRegression(**MOMENTS).fit(X, y)
    sums = [(step.law.grid, said) for step, (_, said) in zip(drawn.steps, drawn.said, strict=True)]
    if any((grid * x != np.rint(grid * x)).any() for grid, said in sums for x in said):
        yield "moments: released sums are not on the grid"
