"""Noise on the tables of a network."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import NetworkPosterior
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["AddsNoiseToCounts"]


class AddsNoiseToCounts(Mechanism):
    """A mechanism that adds noise to all tables of a network; subclasses say which."""

    @abstractmethod
    def _count_law(self, statistics: CountTables, budget: Budget) -> NoiseLaw:
        """Return the law of the noise, from public quantities only."""

    def _preflight_counts(
        self, statistics: CountTables, prior: DirichletPrior, budget: Budget
    ) -> None:
        self._count_law(statistics, budget)

    def _release_counts(
        self,
        statistics: CountTables,
        prior: DirichletPrior,
        budget: Budget,
        noise: Noise,
    ) -> NetworkPosterior:
        law = self._count_law(statistics, budget)
        noisy = noise.add(statistics.tables, law)
        return prior.update(
            ReleasedCounts(statistics.network, noisy, statistics.n, (law,), statistics.size_laws)
        )

    def simulated_count_errors(
        self, network: Network, n: int, budget: Budget, at_least: int
    ) -> FloatArray:
        """Return noises of all cells in many releases."""
        law, factor = self._count_law(CountTables(network, (), n), budget).standard
        # joint noise takes longer to draw
        noises = at_least if law.independent else at_least // 5
        return factor / law.grid * _simulated(law, 1 + noises // law.size)

    def noise_ratio(self, network: Network, n: int, budget: Budget) -> float | None:
        """Return noise over expected count of a cell, on average over all tables."""
        if budget.infinite:
            return None
        law = self._count_law(CountTables(network, (), n), budget)
        deviations = [math.sqrt(law.variance(u)) for u in range(len(network.sizes))]
        cells = map(math.prod, network.shapes)
        return sum(s * m for s, m in zip(deviations, cells, strict=True)) / (n * len(deviations))

    def utility_bound(self, network: Network, n: int, budget: Budget, delta: float) -> float:
        """(1 - delta) bound on the largest error of a released count."""
        if budget.infinite:
            return 0.0
        return self._count_law(CountTables(network, (), n), budget).error_bound(delta)


@lru_cache(maxsize=16)
def _simulated(law: NoiseLaw, count: int) -> FloatArray:
    """Return absolute noises of a law from a fixed generator: public numbers."""
    return np.abs(Noise(random_source(0)).draw(law, count)).astype(float)
