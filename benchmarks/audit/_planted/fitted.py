"""Bugs that leave something of the data behind in what is handed out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.base import estimator
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.regression import location

Replacements = Iterator[tuple[Any, str, Any]]


@fault("fitted", "leak walk", "The exact statistics stay in a private attribute")
def exact_counts_kept() -> Replacements:
    real = PrivateEstimator._carried_out

    def keeping(self: Any, plan: Any, given: Any, *rest: Any) -> Any:
        counts = getattr(given.statistics, "counts", given.statistics)
        self._counts = getattr(counts, "tables", None)
        return real(self, plan, given, *rest)

    yield PrivateEstimator, "_carried_out", keeping


@fault("fitted", "leak walk", "A function that is kept holds on to the exact statistics")
def exact_counts_in_a_closure() -> Replacements:
    real = vars(estimator)["carry_out"]

    def keeping(plan: Any, statistics: Any, noise: Any) -> Any:
        released = real(plan, statistics, noise)
        object.__setattr__(released.posterior, "_recount", lambda: statistics)
        return released

    yield estimator, "carry_out", keeping


@fault("fitted", "leak walk", "The labels stay on the fitted object, as if for later use")
def labels_kept() -> Replacements:
    real = BayesianLinearRegression.fit

    def keeping(self: Any, X: Any, y: Any) -> Any:
        real(self, X, y)
        self._y_train = y
        return self

    yield BayesianLinearRegression, "fit", keeping


@fault(
    "fitted",
    "replay of estimators",
    "The number of classes that occur is kept, for a later warning",
)
def a_diagnosis_of_the_data() -> Replacements:
    real = DiscreteClassifier.fit

    def keeping(self: Any, X: Any, y: Any) -> Any:
        real(self, X, y)
        self.n_present_ = len({str(label) for label in y})
        return self

    yield DiscreteClassifier, "fit", keeping


@fault("fitted", "replay of estimators", "The pickle has a cell that the object does not show")
def a_pickle_with_more() -> Replacements:
    fit, state = DiscreteClassifier.fit, PrivateEstimator.__getstate__
    hidden: dict[int, Any] = {}

    def remembering(self: Any, X: Any, y: Any) -> Any:
        fitted = fit(self, X, y)
        hidden[id(self)] = [str(label) for label in y]
        return fitted

    def extended(self: Any) -> Any:
        return {**state(self), **({"_y": hidden[id(self)]} if id(self) in hidden else {})}

    yield DiscreteClassifier, "fit", remembering
    yield PrivateEstimator, "__getstate__", extended


@fault(
    "fitted",
    "enumeration of moments",
    "Where to clip the target is read from the exact sums instead of the noisy ones",
)
def a_window_of_the_data() -> Replacements:
    real = location.Steps.means

    def peeking(self: Any, sums: Any, block: Any, epsilon: Any) -> Any:
        noisy, errors = real(self, sums, block, epsilon)
        return np.clip(sums / self._grid**2 / self._rows, -1, 1) + 0 * noisy, errors

    yield location.Steps, "means", peeking


@fault(
    "fitted",
    "replay of estimators",
    "The window of the target is shifted by what its exact sums are",
    "BayesianLinearRegression, gaussian",
)
def a_shifted_window_of_the_data() -> Replacements:
    real = location.Steps.means

    def shifted(self: Any, sums: Any, block: Any, epsilon: Any) -> Any:
        noisy, errors = real(self, sums, block, epsilon)
        return noisy + 1e-6 * (int(sums.sum()) % 97), errors

    yield location.Steps, "means", shifted


@fault("fitted", "enumeration of counts", "Negative noisy counts are replaced by the exact ones")
def repaired_counts() -> Replacements:
    real = drawing.add

    def repaired(arrays: Any, *rest: Any) -> Any:
        noisy = real(arrays, *rest)
        return tuple(np.where(z <= 0, a, z) for a, z in zip(arrays, noisy, strict=True))

    yield drawing, "add", repaired


@fault(
    "fitted",
    "enumeration of counts",
    "Noisy counts are cut at the exact number of records of their class",
)
def clipped_at_the_exact_total() -> Replacements:
    real = vars(plans)["ReleasedCounts"]
    seen: list[Any] = []
    release = plans.NoisyTables.release

    def remembering(self: Any, statistics: Any, noise: Any) -> Any:
        seen[:] = [int(statistics.tables[-1].max())]
        return release(self, statistics, noise)

    def cut(network: Any, tables: Any, *rest: Any) -> Any:
        return real(network, tuple(np.minimum(t, seen[0]) for t in tables), *rest)

    yield plans.NoisyTables, "release", remembering
    yield plans, "ReleasedCounts", cut


@fault(
    "fitted",
    "replay of estimators",
    "The prior is centred at the shares of the classes in the data",
)
def a_prior_of_the_data() -> Replacements:
    real = PrivateEstimator._carried_out

    def centred(self: Any, plan: Any, given: Any, *rest: Any) -> Any:
        if hasattr(plan, "tables"):
            counts, prior = getattr(given.statistics, "counts", given.statistics), plan.tables.prior
            alphas = (*prior.alphas[:-1], 1.0 + counts.tables[-1] / counts.n)
            tables = replace(plan.tables, prior=replace(prior, alphas=alphas))
            plan = tables if plan is plan.tables else replace(plan, tables=tables)
        return real(self, plan, given, *rest)

    yield PrivateEstimator, "_carried_out", centred
