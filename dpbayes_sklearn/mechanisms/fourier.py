r"""Discrete Laplace noise in the Fourier domain: tables that agree with each other.

Guarantee
---------
*Precondition*: replacing a record changes the character sums by at most :math:`\Delta_F` in L1
(4d for Boolean naive Bayes) and any of them by at most :math:`\Delta_\infty` (2). *Claim*: pure
:math:`\varepsilon`-DP. *Proof*: as for ``laplace``, in the norm of the noise; the sum of the
constant character is n, which neighbours share, so it needs no noise (where records are added or
removed, n was released before). The increment is a function
of public quantities only, and so is the choice of the noise; the tables are post-processing.

Noise law
---------
Independent discrete Laplace noise of scale :math:`\Delta_F/\varepsilon` on every integer sum, or
``noise="joint"``: :math:`P(z) \propto e^{-\varepsilon\max_i|z_i|/\Delta_\infty}` on a public
lattice 1/g, g a power of two. A sum that several families hold is released once, so that all tables
agree on shared marginals.

Regression
----------
On [-1, 1] the characters are Chebyshev polynomials, x and :math:`2x^2 - 1`. All their sums, one for
each entry of the moments, are released at once; raising that of the constant raises every square,
so that the moments are positive semi-definite with probability ``stealth`` and need no repair.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dpbayes_sklearn._sklearn_compat import Range, StrOptions
from dpbayes_sklearn.mechanisms.base import Mechanism
from dpbayes_sklearn.mechanisms.laplace import moment_shares
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.regression.release import (
    NoisyMoments,
    Products,
    noisy_moments,
    scaled_by_residuals,
)
from dpbayes_sklearn.regression.sensitivity import whole_block
from dpbayes_sklearn.regression.shares import Shares
from dpbayes_sklearn.regression.step_noise import widening

__all__ = ["Fourier"]

_MOST_DRAWS = 1_000_000  # of the public simulation
_MATRICES = 200  # likewise, of moments


class Fourier(Mechanism):
    """Add discrete Laplace noise to the Fourier coefficients of the counts.

    Parameters
    ----------
    increment : {"scaled_by_residuals", "paper"}, default="scaled_by_residuals"
        How much the constant coefficient is raised so that no cell of a table is negative:
        the ``stealth`` quantile of what the public noise law needs, or the rule
        4 t N^2 / epsilon of Zhang, Rubinstein and Dimitrakakis (2016), N the number of
        coefficients. Cells that are negative all the same are set to zero.
    stealth : float in [0, 1), default=0.9
        Probability with which all cells come out non-negative.
    t : float, default=2.3
        The paper's parameter, for ``increment="paper"``.
    noise : {"auto", "joint", "independent"}, default="auto"
        For counts: independent Laplace noise on every coefficient, or joint noise whose density
        decays with its largest entry (the K-norm mechanism of the sup norm). The latter has up to
        six times less variance if one record changes most coefficients, as with Boolean features.
        "auto" takes what has less variance, by public quantities only. Regression always does.

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> declared = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    >>> model = BayesianNaiveBayes(mechanism=Fourier(noise="joint"), **declared).fit(X, y)
    >>> model.posterior_.released.laws
    (SupNorm(scale=Fraction(2, 1), sides=(1, 1, 1, 1, 1), grid=4),)
    """

    walks_splits: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "increment": [StrOptions({"scaled_by_residuals", "paper"})],
        "stealth": [Range(Real, 0, 1, closed="left")],
        "t": [Range(Real, 0, None, closed="left")],
        "noise": [StrOptions({"independent", "joint", "auto"})],
    }

    def __init__(
        self,
        *,
        increment: str = "scaled_by_residuals",
        stealth: float = 0.9,
        t: float = 2.3,
        noise: str = "auto",
    ) -> None:
        self.increment = increment
        self.stealth = stealth
        self.t = t
        self.noise = noise

    def _preflight_moments(self, statistics: Moments, prior: GaussianPrior, budget: Budget) -> None:
        _shares(statistics, prior, budget).grid(statistics.design, statistics.n)

    def _release_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget, noise: Noise
    ) -> GaussianPosterior:
        design, shares = statistics.design, _shares(statistics, prior, budget)
        block = whole_block(design).protecting(budget.unit)
        products = Products(lambda _: block, widening(statistics.n * float(shares.per_record)))
        noisy, places = noisy_moments(statistics, shares, products, noise)
        increment = moment_increment(design, self.stealth, budget.unit) / float(shares.model)
        released = noisy.released(places.window, increment)
        return scaled_by_residuals(prior.update(released, places), statistics, shares, noise)


def _shares(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Shares:
    """Share epsilon as for Laplace; only matrix noise gains if signs are centred."""
    return moment_shares(statistics, prior, budget, centre_signs=False)


@lru_cache(maxsize=64)
def moment_increment(design: Design, stealth: float, unit: PrivacyUnit = RECORD) -> float:
    """Return the ``stealth`` quantile of max(0, -smallest eigenvalue of the noise) at epsilon 1.

    On [-1, 1] the characters are Chebyshev polynomials, x and 2x² - 1. Raising the constant's
    coefficient by 2s raises every sum of squares by s, so moments plus noise plus s times the
    identity are positive semi-definite with this probability. Found by simulating the public
    noise law with a fixed generator: no data, so no cost. Noise shrinks as 1/epsilon.
    """
    block, simulated, grid = whole_block(design).protecting(unit), Noise(random_source(0)), 2**10
    law, smallest = block.law(Fraction(1), grid), list[float]()
    while len(smallest) < _MATRICES:  # several at a time, of wide tables few
        many = min(_MATRICES - len(smallest), 1 + _MOST_DRAWS // law.size)
        for sums in simulated.draw(law, many) / (law.grid * grid**2):
            noise = NoisyMoments.of(design, 0)
            noise.put(block, sums, law.variances / grid**4)
            smallest.append(float(np.linalg.eigvalsh(noise.gram)[0]))
    return max(0.0, float(np.quantile(-np.array(smallest), stealth, method="higher")))
