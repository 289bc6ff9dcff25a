r"""Discrete Gaussian noise: less than Laplace noise where a record changes much, for a delta.

Guarantee
---------
*Precondition*: counts that neighbours change by the integer vectors v which their own type derives,
and noise of variance :math:`\sigma^2/w_i` in cell i. *Claim*: :math:`(\varepsilon, \delta)`-DP, and
:math:`\rho`-zCDP with :math:`\rho = \sum_i w_i v_i^2/2\sigma^2`. *Proof*: :math:`\sigma^2` is the
smallest for which the exact privacy loss of these shifts is within :math:`(\varepsilon, \delta)`
(:mod:`dpbayes_sklearn.privacy.gaussian`). A learned temperature is a pure release of
:math:`\varepsilon_t` that looks at the tables. It is post-processing of them and of a randomised
response, so both together have the exact loss of Gaussian noise and an independent loss of
:math:`\pm\varepsilon_t`, within :math:`(\varepsilon, \delta)`; and
:math:`\rho + \tfrac12\varepsilon_t^2`. What follows is post-processing.

Noise law
---------
:math:`P(Z = z) \propto e^{-wz^2/2\sigma^2}` on the integers, independent in every cell. All cells
of a table have one weight w, larger in larger tables, by which the sum of all variances is least
(:mod:`dpbayes_sklearn.counts.tables`). For naive Bayes with d features and equal weights
the L2 sensitivity is :math:`\sqrt{2(d+1)}`, so the noise grows with the square root of d.
Differences within a row could not have less: two records of one class change them by
:math:`\sqrt{2d}` already.

Regression
----------
The steps of :mod:`~dpbayes_sklearn.mechanisms.laplace` share :math:`\rho` exactly: each adds
Gaussian noise to sums in fine steps, of variance :math:`\Delta_2^2/2\rho_i`, and :math:`\rho` is
the largest for which all of them together are :math:`(\varepsilon, \delta)`-DP, by exact
composition (:mod:`dpbayes_sklearn.privacy.gaussian`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.gaussian import composed_rho
from dpbayes_sklearn.regression.gram import NARROWEST, GaussianGram, gaussian_gram
from dpbayes_sklearn.regression.location import Located
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.regression.record_sums import RADII
from dpbayes_sklearn.regression.release import Products, regression_posterior
from dpbayes_sklearn.regression.shares import Shares
from dpbayes_sklearn.regression.step_noise import gaussian_grid, widening

__all__ = ["Gaussian", "moment_shares", "norm_deviations"]

_WIDER_FROM = 1500.0  # records times epsilon, for windows and for the bound of a record's norm


class Gaussian(Mechanism):
    """Add discrete Gaussian noise to every count or sum; needs a delta.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2, "temperature": 1}
    >>> model = BayesianNaiveBayes(1.0, delta=1e-6, mechanism="gaussian", **declared).fit(X, y)
    >>> model.guarantee_.epsilon, model.guarantee_.delta, round(model.guarantee_.rho, 4)
    (1.0, 1e-06, 0.028)
    >>> round(float(model.posterior_.released.laws[0].parameters[0]) ** 0.5, 2)
    9.76
    """

    needs_delta: ClassVar[bool] = True
    knows_rho: ClassVar[bool] = True

    def _preflight_moments(self, statistics: Moments, prior: GaussianPrior, budget: Budget) -> None:
        moment_shares(statistics, prior, budget)

    def _release_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget, noise: Noise
    ) -> GaussianPosterior:
        shares = moment_shares(statistics, prior, budget)
        design, n_epsilon = statistics.design, statistics.n * float(shares.per_record)

        def block(places: Located) -> GaussianGram:
            reach, deviations = places.reach(design), norm_deviations(n_epsilon)
            return gaussian_gram(design, reach, deviations).protecting(budget.unit)

        products = Products(block, widening(n_epsilon, _WIDER_FROM))
        return regression_posterior(statistics, prior, shares, products, noise)

    def cost(self, statistics: Any, prior: Any, budget: Budget) -> Budget:
        """Return the budget with the zCDP of all steps of the release together."""
        if budget.infinite:
            return budget
        return budget._replace(rho=moment_shares(statistics, prior, budget).total)


def norm_deviations(n_epsilon: float) -> float:
    """Return the deviations of a record's squared norm beyond which it is scaled."""
    return widening(n_epsilon, _WIDER_FROM) ** 2


def moment_shares(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Shares:
    """Return the shares of rho that the steps of a regression have, from public facts only."""
    design, (epsilon, delta, *_) = statistics.design, budget
    per_record = Fraction(zcdp_rho(epsilon, delta)) / budget.unit.max_records**2
    grid = gaussian_grid(design, statistics.n, per_record)
    numbers = (design.width + 2) * (design.width + 2 + len(RADII) + 1)  # at most so many
    return Shares.of_rho(
        composed_rho(epsilon, delta, numbers, grid**2 // NARROWEST),
        budget,
        statistics.n,
        int(design.numbers.sum()),
        int(design.signs.sum()),
        mean=design.intercept,
        residuals=prior.noise_variance is None,
    )
