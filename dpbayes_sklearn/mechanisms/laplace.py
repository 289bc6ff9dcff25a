r"""Discrete Laplace noise on exact statistics.

Guarantee
---------
*Precondition*: the statistics are integers that neighbouring data move by at most
:math:`\Delta` in L1, as their own type derives. *Claim*: pure :math:`\varepsilon`-DP. *Proof*:
:math:`P(T + Z = z)/P(T' + Z = z) = e^{(|z-T'|_1 - |z-T|_1)/b} \le e^{\Delta/b} = e^\varepsilon`.
What follows is post-processing.

Noise law
---------
Independent in every cell, :math:`P(Z = z) \propto e^{-|z|/b}` on the integers, with
:math:`b = \Delta/\varepsilon`; no floating-point number is involved.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import compress

from dpbayes_sklearn.mechanisms._finite_law import Law, noise_law
from dpbayes_sklearn.mechanisms._moment_release import (
    Shares,
    calibrated,
    grid_for,
    noisy_moments,
    three_blocks,
)
from dpbayes_sklearn.mechanisms._noisy_arrays import noise_scale, with_noise
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.posteriors.gaussian import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.posteriors.network_posterior import NetworkPosterior
from dpbayes_sklearn.posteriors.simplex import Dirichlet, SimplexPrior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.counts import CountTables, ReleasedCounts
from dpbayes_sklearn.statistics.moments import Moments
from dpbayes_sklearn.statistics.simplex import ReleasedSimplex, SimplexCounts

__all__ = ["Laplace"]


class Laplace(Mechanism):
    """Add discrete Laplace noise to the statistics that update the prior.

    For naive Bayes with d features the scale is 2(d+1)/epsilon in every cell of every table,
    whatever the number of records.

    Examples
    --------
    >>> Laplace.name()
    'laplace'
    """

    def _preflight_counts(
        self, statistics: CountTables, prior: DirichletPrior, budget: Budget
    ) -> None:
        noise_scale(statistics.sensitivity(budget.unit), budget)

    def _release_counts(
        self,
        statistics: CountTables,
        prior: DirichletPrior,
        budget: Budget,
        source: RandomSource,
    ) -> NetworkPosterior:
        scale = noise_scale(statistics.sensitivity(budget.unit), budget)
        # a table of one cell holds n, which is public
        secret = [t.size > 1 for t in statistics.tables]
        noisy = iter(with_noise([*compress(statistics.tables, secret)], scale, source))
        tables = tuple(
            next(noisy) if hidden else table
            for table, hidden in zip(statistics.tables, secret, strict=True)
        )
        scales = tuple((scale,) if hidden else () for hidden in secret)
        return prior.update(ReleasedCounts(statistics.network, tables, statistics.n, scales))

    def law(self, n: int, prior: tuple[float, ...], budget: Budget) -> Law:
        """Return the law of one variable's counts; cut to [0, n] if there are two."""
        cells = len(prior) if len(prior) > 2 else 1
        return noise_law(n, prior, cells, 2 / Fraction(budget.epsilon))

    def _preflight_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget
    ) -> None:
        noise_scale(statistics.sensitivity(budget.unit), budget)

    def _release_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget, source: RandomSource
    ) -> Dirichlet:
        scale = noise_scale(statistics.sensitivity(budget.unit), budget)
        # of two counts that add to n, one tells everything
        cells = statistics.n_categories if statistics.n_categories > 2 else 1
        noisy = statistics.counts[:cells] + discrete_laplace(scale, cells, source)
        return prior.update(ReleasedSimplex(noisy, statistics.n, scale))

    def _preflight_moments(self, statistics: Moments, prior: GaussianPrior, budget: Budget) -> None:
        grid_for(statistics.design, statistics.n, Fraction(budget.epsilon))

    def _release_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget, source: RandomSource
    ) -> GaussianPosterior:
        shares = Shares.of(
            budget, statistics.n, target=True, residuals=prior.noise_variance is None
        )
        noisy, window = noisy_moments(statistics, shares, three_blocks(statistics.design), source)
        return calibrated(prior.update(noisy.released(window)), statistics, shares, source)
