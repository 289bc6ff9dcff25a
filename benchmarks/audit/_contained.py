"""Neighbours in every container, as features, as labels and as one column.

The categories are integers above 2^53, which a conversion to floats would mix up, and one value of
one record becomes missing: whatever else changes, changes for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.audit._subject import Pair, Rng, Subject
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    Interval,
    Schema,
)
from dpbayes_sklearn.audit.fuzzing import CONTAINERS, column_in, table_in

__all__ = ["container_subjects"]

IDS = [2**53 + 1, 2**53 + 3]
LABELS = Categories(IDS)
N = 12


def _ids(rng: Rng, n: int = N) -> list[Any]:
    return [IDS[i] for i in rng.permutation([*range(2), *rng.integers(0, 2, n - 2)])]


def _missing(values: list[Any], rng: Rng) -> list[Any]:
    """Return the values, one of them missing or, now and then, another one."""
    changed = list(values)
    changed[rng.integers(len(values))] = None if rng.integers(4) else IDS[rng.integers(2)]
    return changed


def _labels(container: str, rng: Rng) -> Pair:
    y = _ids(rng)
    X = table_in(container, [(i % 2, 0) for i in range(N)])
    return X, column_in(container, y), X, column_in(container, _missing(y, rng))


def _features(container: str, rng: Rng) -> Pair:
    a, y = _ids(rng), column_in(container, _ids(rng))
    tables = [table_in(container, [(x, 0) for x in column]) for column in (a, _missing(a, rng))]
    return tables[0], y, tables[1], y


def _targets(container: str, rng: Rng) -> Pair:
    y = [int(v) for v in rng.integers(0, 4, N)]
    X = table_in(container, [(i % 2, i % 3) for i in range(N)])
    changed = list(y)
    changed[rng.integers(N)] = None
    return X, column_in(container, y), X, column_in(container, changed)


def _one_column(container: str, rng: Rng) -> Pair:
    x = _ids(rng)
    return column_in(container, x), None, column_in(container, _missing(x, rng)), None


def _booleans(container: str, rng: Rng) -> Pair:
    """Return columns of true, false and, in the second, a one: its type may say less, not more."""
    x: list[Any] = [bool(i % 2) for i in range(N)]
    changed = list(x)
    changed[0] = 1
    sides = [np.array(v, object) if container == "array of objects" else v for v in (x, changed)]
    return sides[0], None, sides[1], None


def container_subjects() -> Iterator[Subject]:
    """Yield every container in every role."""
    schema = Schema({"a": LABELS, "b": Interval(0, 3, bins=2)}, target=LABELS)
    line = {"bounds_X": (0, 2), "bounds_y": (0, 3), "noise_variance": 0.1}
    roles: list[tuple[str, Any, Callable[..., Pair]]] = [
        ("labels", BayesianNaiveBayes(bounds=(0, 3), n_bins=2, classes=IDS), _labels),
        ("columns", BayesianNaiveBayes(schema=schema), _features),
        ("a target", BayesianLinearRegression(**line), _targets),
        ("one column", DirichletMultinomial(categories=LABELS), _one_column),
    ]
    for container in CONTAINERS:
        for role, estimator, make in roles:
            if container == "dask" and role == "one column":
                continue  # estimators of one column read what is here
            name = f"{type(estimator).__name__}, {role}: {container}"
            yield Subject(name, estimator, partial(make, container))
    for container in ("list", "array of objects"):
        name = f"BetaBinomial, truth values: {container}"
        yield Subject(name, BetaBinomial(), partial(_booleans, container))
