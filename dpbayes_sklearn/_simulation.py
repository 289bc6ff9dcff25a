"""Releases of simulated data, from public facts only, for planning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpbayes_sklearn._discrete_classifier import DiscreteClassifier
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.mechanisms._temperature import table_budget
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.posteriors.network import ancestral_sample
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.statistics.counts import CountTables, Tables

__all__ = ["NetworkSimulation", "Simulation"]


_REPEATS = 40  # simulated data sets
_NOISES = 40_000  # at least so many noises of counts


class Simulation(ABC):
    """A mechanism run on data that were made up from the declared domains and the prior."""

    kind: ClassVar[str]
    of: ClassVar[str]

    def __init__(self, estimator: Any, n: int, n_features: int | None) -> None:
        self.estimator, self.n = estimator, n
        self.mechanism = estimator._resolve_mechanism()
        # a fixed generator: the same question has the same answer, and no secret is involved
        self.rng, self.source = np.random.default_rng(0), random_source(0)

    def errors(self) -> FloatArray:
        """Return absolute errors of what is released."""
        return self.after_inference()

    def after_inference(self) -> FloatArray:
        """Return absolute errors of the posterior means, against exact Bayes on the same data."""
        return np.concatenate([self._differences() for _ in range(_REPEATS)])

    def possible(self) -> bool:
        """Tell whether the mechanism can release at this epsilon at all."""
        try:
            self._differences()
        except ValueError:
            return False
        return True

    @abstractmethod
    def _differences(self) -> FloatArray:
        """Return the absolute errors for one simulated data set."""

    def _posteriors(self, statistics: Any, prior: Any, budget: Budget) -> tuple[Any, Any]:
        """Return the released and the exact posterior."""
        self.mechanism.preflight(statistics, prior, budget)
        private = self.mechanism.release(statistics, prior, budget, self.source).posterior
        return private, prior.update(statistics.without_noise())


class NetworkSimulation(Simulation):
    """Data from the prior of a discrete network."""

    kind = "counts"
    of = "counts"

    def __init__(
        self, estimator: DiscreteClassifier, n: int, n_features: int | None = None
    ) -> None:
        super().__init__(estimator, n, n_features)
        prior = estimator._prior(estimator._declared_schema(n, n_features))
        self.network = prior.network
        # what is planned for are tables: of the temperature only its share of epsilon matters
        self.prior = replace(prior, temperature=1.0)
        _, rest = estimator._shares(estimator._budget())
        self.budget = table_budget(prior.temperature, n, rest)

    def errors(self) -> FloatArray:
        """Return the noise of released counts, which no data influence, or as the base does."""
        if self.budget.infinite:
            return np.zeros(1)
        errors = self.mechanism.simulated_count_errors(self.network, self.n, self.budget, _NOISES)
        return self.after_inference() if errors is None else np.ravel(errors)

    def _differences(self) -> FloatArray:
        tables: Tables = tuple(
            self.rng.dirichlet(alpha, size=shape[:-1])
            for alpha, shape in zip(self.prior.alphas, self.network.shapes, strict=True)
        )
        drawn = ancestral_sample(self.network, tables, self.n, self.rng)
        records = drawn.astype(np.min_scalar_type(max(self.network.sizes)))
        counts = CountTables.count(self.network, [(records[:, :-1], records[:, -1])])
        both = self._posteriors(counts, self.prior, self.budget)
        means = zip(*(posterior.mean() for posterior in both), counts.tables, strict=True)
        return np.concatenate(
            [(np.abs(p - e) * t.sum(axis=-1, keepdims=True)).ravel() for p, e, t in means]
        )
