r"""The geometric mechanism: discrete Laplace noise that leaves the public total as it is.

Guarantee
---------
*Precondition*: counts of n records in k categories; n and k are public. *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: neighbours differ by :math:`e_i - e_j`, of L1 norm 2, so by the
triangle inequality :math:`P(y \mid x) / P(y \mid x') \le e^{\varepsilon \|x - x'\|_1 / 2} =
e^\varepsilon`. What follows is post-processing.

Noise law
---------
:math:`P(Z = z) \propto e^{-\varepsilon \|z\|_1 / 2}` over integer vectors of sum zero: discrete
Laplace noise of scale :math:`2/\varepsilon` in every count, given that it cancels. For two
categories this is the two-sided geometric law of scale :math:`1/\varepsilon`, which is optimal for
every prior and every monotone loss (Ghosh, Roughgarden and Sundararajan 2009). No count is moved
out of its plane, which is what makes it better than independent noise for more categories.
"""

from __future__ import annotations

from fractions import Fraction

from dpbayes_sklearn.mechanisms._finite_law import Law, noise_law
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise.discrete_laplace import representable_scale
from dpbayes_sklearn.noise.source import RandomSource, random_source
from dpbayes_sklearn.noise.zero_sum import zero_sum_laplace
from dpbayes_sklearn.posteriors.categories import Dirichlet, SimplexPrior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.categories import ReleasedSimplex, SimplexCounts

__all__ = ["Geometric"]


class Geometric(Mechanism):
    """Add noise to the counts of all categories that sums to zero.

    It takes any number of records and categories.

    Examples
    --------
    >>> Geometric().law(20, (1.0, 1.0), Budget(1)).worst_case().epsilon
    1.0
    """

    def law(self, n: int, prior: tuple[float, ...], budget: Budget) -> Law:
        """Return the law of the release; of the counts cut to [0, n] if there are two."""
        cells = len(prior) if len(prior) > 2 else 1
        return noise_law(n, prior, cells, min(2, cells) / Fraction(budget.epsilon))

    def _preflight_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget
    ) -> None:
        # no draw at all, but what cannot be drawn is refused
        zero_sum_laplace(_scale(statistics, budget), statistics.n_categories, 0, random_source())

    def _release_simplex(
        self, statistics: SimplexCounts, prior: SimplexPrior, budget: Budget, source: RandomSource
    ) -> Dirichlet:
        scale, counts, k = _scale(statistics, budget), statistics.counts, statistics.n_categories
        noise = zero_sum_laplace(scale, k, counts.size // k, source).reshape(counts.shape)
        return prior.update(ReleasedSimplex(counts + noise, statistics.n, scale))


def _scale(statistics: SimplexCounts, budget: Budget) -> Fraction:
    sensitivity = statistics.sensitivity(budget.unit)
    return representable_scale(Fraction(sensitivity) / Fraction(budget.epsilon))
