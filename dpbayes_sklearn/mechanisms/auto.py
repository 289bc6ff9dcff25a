"""The mechanism with the least noise that epsilon and delta allow.

Guarantee
---------
The choice depends on public quantities only: the structure of the counts or the columns of a
regression, the number of records and the budget. So the guarantee is that of the mechanism which
is chosen; ``guarantee_.mechanism`` names it, and only "gaussian" spends delta.

Noise law
---------
That of ``laplace`` (for one variable ``geometric``) or of ``gaussian``, whichever has less variance
on average over the released counts or products. Without a delta only the former is possible.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

from dpbayes_sklearn.mechanisms import gaussian, laplace
from dpbayes_sklearn.mechanisms.base import Mechanism, Release
from dpbayes_sklearn.mechanisms.gaussian import Gaussian
from dpbayes_sklearn.mechanisms.laplace import Laplace
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.regression.gram import gaussian_gram, gram_block, noise_of_products
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior

__all__ = ["Auto"]


class Auto(Mechanism):
    """Add the noise with the least variance that epsilon and delta allow.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0] * 80, [1] * 80] * 50, [0, 1] * 50
    >>> model = BayesianNaiveBayes(mechanism="auto", bounds=(0, 1), classes=[0, 1], n_bins=2)
    >>> [model.set_params(delta=d).fit(X, y).guarantee_.mechanism for d in (0, 1e-6)]
    ['laplace', 'gaussian']
    """

    knows_rho: ClassVar[bool] = True

    @property
    def spends_delta(self) -> bool:
        """True: what is chosen may."""
        return True

    def chosen(self, statistics: Any, prior: Any, budget: Budget) -> Mechanism:
        """Return the mechanism with less variance in the part of the budget for the counts."""
        if budget.infinite or not self.supports(statistics.kind):
            return self  # which refuses other statistics
        return _for_moments(statistics, prior, budget)

    def release(self, statistics: Any, prior: Any, budget: Budget, noise: Noise) -> Release[Any]:
        """Let the chosen mechanism release."""
        chosen = self.chosen(statistics, prior, budget)
        if chosen is self:
            return super().release(statistics, prior, budget, noise)
        return chosen.release(statistics, prior, chosen.cost(statistics, prior, budget), noise)

    def _release_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget, noise: Noise
    ) -> GaussianPosterior:
        chosen = _for_moments(statistics, prior, budget)
        return chosen._release_moments(statistics, prior, budget, noise)


def _for_moments(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Laplace | Gaussian:
    pure, other, design = Laplace(), Gaussian(), statistics.design
    with suppress(ValueError):
        share = gaussian.moment_shares(statistics, prior, budget).model
        n_epsilon = statistics.n * float(budget.unit.equivalent(budget.epsilon))
        block = gaussian_gram(design, deviations=gaussian.norm_deviations(n_epsilon))
        less = noise_of_products(design, block.protecting(budget.unit), share)
        share = laplace.moment_shares(statistics, prior, budget).model
        deviations = laplace.norm_deviations(n_epsilon, design)
        pure_block = gram_block(design, budget.unit, deviations=deviations)
        if less < noise_of_products(design, pure_block, share):
            return other
    return pure
