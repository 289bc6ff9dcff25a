r"""How much Gaussian noise several releases need that are made one after the other.

Step k adds discrete Gaussian noise to integers that neighbours change by :math:`v`, with
:math:`\sum_i v_i^2/\sigma_i^2 \le \mu_k^2`. Later steps may depend on what earlier ones released.

**zCDP.** :math:`\rho = \tfrac12\sum_k \mu_k^2`, for noise of any size.

**Exact composition.** *Continuous* Gaussian steps are together no easier to tell apart than two
normals of variance 1 at distance :math:`\mu = (\sum_k\mu_k^2)^{1/2}` (Dong, Roth and Su 2022,
Corollary 2), however the steps depend on one another, so they have

.. math:: \delta(\varepsilon) = \Phi\left(\frac\mu2 - \frac\varepsilon\mu\right)
          - e^\varepsilon\,\Phi\left(-\frac\mu2 - \frac\varepsilon\mu\right),

and rounding them to integers is post-processing. *Discrete* noise of large :math:`\sigma` is almost
that. For an integer :math:`|z| \le K\sigma` the probability of rounded noise is
:math:`\int_{-1/2}^{1/2}\cosh(zu/\sigma^2)\,e^{-u^2/2\sigma^2}du` times the weight
:math:`e^{-z^2/2\sigma^2}/\sqrt{2\pi\sigma^2}`, and the integral lies between
:math:`e^{-1/8\sigma^2}` and :math:`e^{z^2/8\sigma^4}`. The discrete probability is the weight
over :math:`\sum_n e^{-2\pi^2\sigma^2n^2}`, by Poisson summation. So the two differ by a factor of
at most :math:`e^{\pm (K+1)^2/8\sigma^2}` (the 1 pays for the sum), and those of all numbers of all
steps by :math:`e^{\pm\eta}`, :math:`\eta = \sum (K+1)^2/8\sigma^2`. Discrete noise
exceeds :math:`44\sigma` with probability below :math:`2e^{-968}`, and a shift is at most
:math:`\mu\sigma \le 16\sigma`, so K = 60 is enough. The discrete steps have

.. math:: \delta(\varepsilon) \le e^\eta\,\delta_\mu(\varepsilon - 2\eta) + 10^{-300}.

**Rounding.** The two terms of :math:`\delta_\mu` are good to a relative 1e-12, which is added to
the first; the result is multiplied by 1 + 1e-9.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpbayes_sklearn.privacy.budget import Exact
from dpbayes_sklearn.privacy.gaussian import continuous_delta
from dpbayes_sklearn.privacy.zcdp import short, zcdp_rho

__all__ = ["composed_delta", "composed_rho", "rounding_loss"]

_REACH = 61  # the K + 1
_LARGEST_MU = 16
_ROUNDING = Fraction(1, 2**14)  # of epsilon, for the difference between discrete and continuous
_MARGIN, _TAIL = 1 + 1e-9, 1e-300


def rounding_loss(numbers: int, least_variance: Fraction) -> Fraction:
    r"""Return :math:`\eta` for so many numbers with noise of at least this variance.

    >>> float(rounding_loss(1000, Fraction(2**60)))
    4.0...e-13
    """
    return numbers * Fraction(_REACH**2, 8) / least_variance


def composed_delta(rho: Exact, epsilon: Exact) -> float:
    """Bound the delta of Gaussian steps of rho in all, if their rounding costs 2**-13 of epsilon.

    >>> composed_delta(Fraction(28, 1000), Fraction(1))
    9.9...e-07
    """
    eta = Fraction(epsilon) * _ROUNDING
    mu = math.sqrt(2 * rho) * (1 + 1e-15)
    bound = continuous_delta(mu, float(Fraction(epsilon) - 2 * eta) * (1 - 1e-15))
    return min(1.0, _MARGIN * math.exp(eta) * bound + _TAIL)


@lru_cache(maxsize=256)
def composed_rho(epsilon: Exact, delta: Exact, numbers: int, smallest: int) -> Fraction:
    """Return a rho that Gaussian steps may share within (epsilon, delta): as large as is proven.

    By exact composition; by zCDP where that allows more, or where noise is not wide enough.

    Parameters
    ----------
    epsilon, delta : Fraction
        What all steps together may spend; both positive, delta below 1.
    numbers : int
        How many numbers get noise, in all steps.
    smallest : int
        The least sensitivity of a step, so that no number's sigma is below smallest/sqrt(2 rho).

    Examples
    --------
    >>> rho = composed_rho(Fraction(1), Fraction(1, 10**6), 1000, 2**30)
    >>> float(rho), float(zcdp_rho(Fraction(1), Fraction(1, 10**6)))
    (0.0280..., 0.0243...)
    """
    if not (0 < delta < 1 and 0 < epsilon < math.inf):
        raise ValueError("epsilon must be positive and finite, delta between 0 and 1.")
    least = Fraction(zcdp_rho(epsilon, delta))
    low, high = least, 4 * least + Fraction(1, 10**12)
    while high > low * Fraction(100_001, 100_000):
        middle = (low + high) / 2
        enough = _composes(middle, epsilon, delta, numbers, smallest)
        low, high = (middle, high) if enough else (low, middle)
    found = short(low)
    if not _composes(found, epsilon, delta, numbers, smallest):
        found = least
    if not found:
        raise ValueError("epsilon and delta are too small for any noise that can be drawn.")
    return found


def _composes(rho: Fraction, epsilon: Exact, delta: Exact, numbers: int, smallest: int) -> bool:
    """Return True where steps of rho in all are (epsilon, delta)-DP by exact composition."""
    if not (smallest and 0 < 2 * rho <= _LARGEST_MU**2):  # or a grid that is too coarse
        return False
    eta = rounding_loss(numbers, Fraction(smallest**2) / (2 * rho))
    return eta <= epsilon * _ROUNDING and composed_delta(rho, epsilon) <= delta
