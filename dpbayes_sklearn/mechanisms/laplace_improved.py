r"""Discrete Laplace noise on all counts but the last, on the scale of what one record moves.

Guarantee
---------
*Precondition*: counts of n records in k categories; n and k are public. *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: a replaced record moves the first k - 1 counts by at most
:math:`\Delta = \min(2, k - 1)` in L1, and the noise has scale :math:`\Delta/\varepsilon`. The last
count is what remains of the public n; bringing all of them back to [0, n] is post-processing.

Noise law
---------
Independent in each of the first k - 1 counts, :math:`P(Z = z) \propto e^{-|z|/b}` on the integers,
:math:`b = 1/\varepsilon` for two categories and :math:`2/\varepsilon` for more.
"""

from __future__ import annotations

from fractions import Fraction

from dpbayes_sklearn.mechanisms._finite_law import Law, noise_law
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace, representable_scale
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.categories import Dirichlet, SimplexPrior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.categories import ReleasedSimplex, SimplexCounts

__all__ = ["LaplaceImproved"]


class LaplaceImproved(Mechanism):
    """Add discrete Laplace noise to all counts but the last, which completes the public total.

    Examples
    --------
    >>> LaplaceImproved().law(20, (1.0, 1.0, 1.0), Budget(1)).worst_case().epsilon
    1.0
    """

    def law(self, n: int, prior: tuple[float, ...], budget: Budget) -> Law:
        """Return the law of the release; of the counts cut to [0, n] if there are two."""
        cells = len(prior) - 1
        return noise_law(n, prior, cells, min(2, cells) / Fraction(budget.epsilon))

    def _preflight_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget
    ) -> None:
        _scale(statistics, budget)

    def _release_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget, source: RandomSource
    ) -> Dirichlet:
        cells, scale = statistics.n_categories - 1, _scale(statistics, budget)
        told = statistics.counts[..., :cells]
        noisy = told + discrete_laplace(scale, told.shape, source)
        return prior.update(ReleasedSimplex(noisy, statistics.n, scale))


def _scale(statistics: SimplexCounts, budget: Budget) -> Fraction:
    sensitivity = statistics.sensitivity(budget.unit, cells=statistics.n_categories - 1)
    return representable_scale(Fraction(sensitivity) / Fraction(budget.epsilon))
