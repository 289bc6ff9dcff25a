"""Noise on the counts of one variable."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from dpbayes_sklearn.categories.counts import ReleasedSimplex, SimplexCounts
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["AddsNoiseToCategories"]


class AddsNoiseToCategories(Mechanism):
    """A mechanism that adds noise to counts of categories; subclasses say which."""

    category_noise: ClassVar[str]
    """The name of the noise in :meth:`SimplexCounts.law`."""

    def _category_law(self, statistics: SimplexCounts, budget: Budget) -> NoiseLaw:
        return statistics.law(self.category_noise, budget.unit, Fraction(budget.epsilon))

    def _preflight_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget
    ) -> None:
        self._category_law(statistics, budget)

    def _release_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget, noise: Noise
    ) -> Dirichlet:
        # as many counts as the law has numbers; a public sum completes the others
        law = self._category_law(statistics, budget)
        (noisy,) = noise.add([statistics.counts[..., : law.size]], law)
        n = None if budget.unit.size_is_secret else statistics.n
        return prior.update(ReleasedSimplex(noisy, n, (law,)))
