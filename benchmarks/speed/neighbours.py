"""What the running time of a fit tells about one record: timing is outside the threat model.

Two tables of 100 or 300 records that differ in one are fitted in turns, by every estimator; in the
other table one record has values from the far ends. The best threshold on the first half of the
times is judged on the second: its advantage is the share of true positives less that of false ones,
which a release with an epsilon of 1 keeps below tanh(1/2) = 0.46. A regression by "map" looks for
its mode in steps, whose number depends on the records.

Run ``python -m benchmarks.speed.neighbours [--repeats 400]``; it prints Markdown, in ten minutes.
Other programs on the machine blur the times, those of the processor less, the steps not at all.
With N repeats an advantage of 0 is seen as 0 with a standard deviation of about 1/sqrt(N).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from benchmarks.audit.tools.fuzzing import every_case
from benchmarks.speed.clock import measure
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes
from dpbayes_sklearn.convex.losses import HuberLoss
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)

RECORDS = 300
FEWER = 100  # For the catalogue.
Table = tuple[Any, Any]


class Pair(NamedTuple):
    """Two tables that differ in one record, and an estimator for them."""

    name: str
    model: Callable[[], Any]
    tables: tuple[Table, Table]


def pairs() -> Iterator[Pair]:
    """Yield what is fitted."""
    rng = np.random.default_rng(0)

    def mode() -> BayesianLinearRegression:
        return BayesianLinearRegression(1.0, mechanism="map", bounds_X=(-1, 1), bounds_y=(-1, 1))

    def bayes() -> BayesianNaiveBayes:
        return BayesianNaiveBayes(1.0, bounds=(-1, 1), classes=[0, 1])

    signs, even = rng.choice([-1.0, 1.0], (RECORDS, 1)), rng.uniform(-1, 1, (RECORDS, 1))
    for name, X, scale in (("a line of two points", signs, 0.5), ("a flat line", even, 0.01)):
        yield Pair(f'regression, "map", {name}', mode, with_outlier(X, scale * X[:, 0]))
    classes = (even[:, 0] > 0).astype(float)
    yield Pair("naive Bayes", bayes, with_outlier(even, classes))
    kinds = set()
    for name, estimator, X, y in every_case(n=FEWER):
        if type(estimator) not in kinds and isinstance(X, np.ndarray):
            kinds.add(type(estimator))
            other = None if y is None else farthest(y)
            label = name.removesuffix(", plug_in")
            yield Pair(label, partial(clone, estimator), ((X, y), (farthest(X), other)))
    for model in (PrivateKBinsDiscretizer(3), PrivateStandardScaler(), PrivateMinMaxScaler()):
        X = rng.normal(size=(FEWER, 2))
        yield Pair(type(model).__name__, partial(clone, model), ((X, None), (farthest(X), None)))
    codes, labels = rng.integers(0, 3, (FEWER, 3)), rng.integers(0, 2, FEWER)
    given = {"bounds": (0, 2), "n_bins": 3, "classes": [0, 1]}
    tables = (codes, labels), (farthest(codes), farthest(labels))
    yield Pair("PrivateSelectKBest", partial(PrivateSelectKBest, 2, **given), tables)


def farthest(values: Any) -> Any:
    """Return values in which the first record has those that are farthest from its own."""
    other, ends = values.copy(), (values.min(axis=0), values.max(axis=0))
    away = [np.abs(np.subtract(end, values[0], dtype=float)) for end in ends]
    other[0] = np.where(away[0] > away[1], *ends)
    return other


def with_outlier(X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> tuple[Table, Table]:
    """Return the table, and the one in which the first record has the farthest target."""
    other = y.copy()
    other[0] = 1 - y[0] if {*y} <= {0.0, 1.0} else -np.copysign(1, y[0])
    return (X, y), (X, other)


def advantage(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Return that of the threshold which is best on the first halves, on the second ones."""
    half = len(one) // 2
    values = np.unique(np.concatenate([one[:half], other[:half]]))
    cuts = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    above = [np.mean(other[:half] > c) - np.mean(one[:half] > c) for c in cuts]
    best = int(np.argmax(np.abs(above)))
    found = np.mean(other[half:] > cuts[best]) - np.mean(one[half:] > cuts[best])
    return float(np.sign(above[best]) * found)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    repeats = parser.parse_args().repeats
    steps, real = [0], HuberLoss.gradient

    def counted(loss: HuberLoss, w: npt.NDArray[np.float64]) -> Any:
        steps[0] += 1
        return real(loss, w)

    HuberLoss.gradient = counted  # type: ignore[method-assign]
    warnings.simplefilter("ignore")
    print("| fit | steps | wall-clock | processor | median wall-clock, ms |\n|---|---|---|---|---|")
    for pair in pairs():
        seen = np.zeros((3, 2, repeats))
        for X, y in pair.tables:
            pair.model().fit(X, y)  # what is kept for later fits is made
        for turn in range(repeats):
            for side, (X, y) in enumerate(pair.tables):
                model, steps[0] = pair.model(), 0
                taken = measure(lambda: model.fit(X, y))  # noqa: B023
                seen[:, side, turn] = steps[0], *taken
        found = " | ".join(f"{advantage(*values):.2f}" for values in seen)
        one, other = 1000 * np.median(seen[1], axis=1)
        print(f"| {pair.name} | {found} | {one:.2f} and {other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
