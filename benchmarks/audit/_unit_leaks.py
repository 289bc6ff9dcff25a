"""Walk models and transformers of every unit in search of exact statistics, labels and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.audit._units import UNITS
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    DirichletMultinomial,
)
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.columns.quantiles import SortedColumns
from dpbayes_sklearn.counts.temperature import LabelledCounts
from dpbayes_sklearn.data.persons import counted_records
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.release import boundary

__all__ = ["leaks_of_units"]

N = 1237
DISCRETE: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1]}
MODELS = (
    BayesianNaiveBayes(**DISCRETE),
    BayesianNaiveBayes(mechanism="sampler", temperature=1.0, n_bins=2, **DISCRETE),
    BayesianNetworkClassifier(parents={"x1": ["x0", "class"]}, n_bins=2, **DISCRETE),
    BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)),
    BetaBinomial(),
    DirichletMultinomial(categories=2),
    PrivateMinMaxScaler(),
    PrivateStandardScaler(),
    PrivateKBinsDiscretizer(4),
    PrivateSelectKBest(1, n_bins=2, **DISCRETE),
    PrivateSelectKBest("auto", n_bins=2, **DISCRETE),
)


def leaks_of_units() -> Iterator[str]:
    """Fit every model for every unit, and look for what must not be there."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(10**6, 10**6 + N), rng.integers(1, 5, N))[:N]
    X, y = rng.random((N, 3)), rng.integers(0, 2, N)
    counted = len(counted_records(who, 2))
    for model, unit in product(MODELS, UNITS):
        persons = {"groups": who} if unit.name == "person" else {}
        fitted = clone(model).set_params(epsilon=0.1, random_state=0, privacy_unit=unit)
        one_column = isinstance(model, (BetaBinomial, DirichletMultinomial))
        with _watched() as seen:
            fitted.fit(*((y,) if one_column else (X, y)), **persons)
        secrets: dict[str, Any] = {
            "a column": X[:, 0],
            "the target": y,
            "persons": who,
            "a person": int(who[-1]),
        }
        secrets |= _exact(seen[-1])
        found = leaks(fitted, secrets)
        if unit.size_is_secret:  # its digits may be among those of other numbers
            kept = leaks(fitted, {"all records": N, "records that count": counted})
            found += [place for place in kept if ": object" in place]
        yield from (f"{model}, {unit.label}: {place}" for place in found)


class _watched:
    """Notes the exact statistics that reach a mechanism."""

    def __enter__(self) -> list[Any]:
        seen: list[Any] = []

        def noted(release: Any, plan: Any, statistics: Any, noise: Any) -> Any:
            seen.append(statistics)
            return release(plan, statistics, noise)

        self._boundary = boundary(noted)
        self._boundary.__enter__()
        return seen

    def __exit__(self, *exception: Any) -> None:
        self._boundary.__exit__(*exception)


def _exact(statistics: Any) -> dict[str, Any]:
    """Return the exact numbers that a release was made from."""
    found: dict[str, Any] = {}
    if isinstance(statistics, LabelledCounts):
        statistics = statistics.counts
    for name in ("counts", "scores"):
        if hasattr(statistics, name):
            found[name] = np.asarray(getattr(statistics, name))
    for j, table in enumerate(getattr(statistics, "tables", ())):
        found[f"table {j}"] = table
    if isinstance(statistics, SortedColumns):
        found["a sorted column"] = statistics.column(1)
    if isinstance(statistics, Moments):
        found["sums"] = statistics.location_sums(1)[1]
    return found
