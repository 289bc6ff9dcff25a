r"""Concentrated differential privacy (zCDP), and what it says as (epsilon, delta).

A release is :math:`\rho`-zCDP if the Rényi divergence of order :math:`\alpha` between its laws
on neighbouring data is at most :math:`\alpha\rho` for every :math:`\alpha > 1`. It adds up over
releases (Bun and Steinke 2016), a discrete or continuous Gaussian release of L2 sensitivity
:math:`\Delta_2` has :math:`\rho = \Delta_2^2/2\sigma^2`, and a pure :math:`\varepsilon` release
has at most that of randomised response (Bun and Steinke 2016, Proposition 3.3),

.. math:: D_\alpha(\varepsilon) = \varepsilon
          - \frac{\log(1+e^{-\varepsilon}) - \log(1+e^{-(2\alpha-1)\varepsilon})}{\alpha - 1}
          \le \min(\varepsilon, \tfrac12\alpha\varepsilon^2).

**Conversion.** A release with divergence :math:`\tau` of order :math:`\alpha` is
:math:`(\tau + g, \delta)`-DP (Canonne, Kamath and Steinke 2020, Proposition 12) with

.. math:: g(\alpha, \delta) = \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}
          + \log\left(1 - \frac1\alpha\right).

It holds for **every** order, so a numerically found one can only cost tightness. The logarithms
are taken with 50 digits, where Python's ``decimal`` rounds them correctly, and everything else
is exact: what is returned is on the private side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from scipy.optimize import minimize_scalar

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.privacy.budget import Exact

__all__ = [
    "Pure",
    "best_order",
    "pure_divergence",
    "pure_left",
    "renyi_epsilon",
    "short",
    "zcdp_epsilon",
    "zcdp_rho",
]

_DIGITS = Context(prec=50)
_DOWN = Context(prec=10, rounding=ROUND_FLOOR)
_ERROR = Fraction(1, 10**40)  # of g: three correctly rounded logarithms and a few operations
_SMALL = Fraction(1, 10**9)  # epsilon of a pure release, whose divergence is then the square
_CLOSE = Fraction(1, 10**8)  # relative, of a search
_STEP = Fraction(1, 10**18)  # epsilon is rounded up to a multiple
_ORDERS = np.geomspace(1e-6, 1e20, 313)  # order - 1: where the search for the best one starts

Pure = Mapping[Exact, int]
"""How many pure releases of each epsilon there are."""

_NONE: Pure = MappingProxyType({})


def zcdp_epsilon(rho: Exact, delta: Exact, pure: Pure = _NONE) -> Exact:
    r"""Return an epsilon at which rho-zCDP and pure releases together are (epsilon, delta)-DP.

    .. math:: \varepsilon = \min_{\alpha > 1} \alpha\rho
              + \sum_i D_\alpha(\varepsilon_i) + g(\alpha, \delta)

    Parameters
    ----------
    rho : Fraction or inf
        The sum over the releases that are known by their zCDP.
    delta : Fraction
        Infinity is returned for 0.
    pure : mapping of Fraction to int, default={}
        How many releases of each pure epsilon there are besides.

    Examples
    --------
    >>> float(zcdp_epsilon(Fraction(244, 10_000), Fraction(1, 10**6)))
    1.0009...
    """
    if delta <= 0 or math.inf in (rho, *pure):
        return math.inf
    if delta >= 1 or not (rho or pure):
        return Fraction(0)
    order = _best_order(_epsilon_at(rho, delta, pure))
    epsilon = renyi_epsilon(order, rho, delta, pure)
    return max(math.ceil(epsilon / _STEP) * _STEP, Fraction(0))


def zcdp_rho(epsilon: Exact, delta: Exact) -> Exact:
    r"""Return the largest rho (to ten digits, rounded down) that is (epsilon, delta)-DP.

    .. math:: \rho = \max_{\alpha > 1} (\varepsilon - g(\alpha, \delta)) / \alpha

    Examples
    --------
    >>> float(zcdp_rho(Fraction(1), Fraction(1, 10**6)))
    0.02435...
    """
    if delta <= 0:
        return Fraction(0)
    if epsilon == math.inf or delta >= 1:
        return math.inf
    order = best_order(epsilon, delta)
    return short((Fraction(epsilon) - renyi_epsilon(order, Fraction(0), delta)) / order)


@lru_cache(maxsize=256)
def best_order(epsilon: Exact, delta: Exact) -> Fraction:
    """Return the order that allows the largest rho within (epsilon, delta).

    >>> float(best_order(Fraction(1), Fraction(1, 10**6)))
    21.9...
    """
    gap, most = _epsilon_at(Fraction(0), delta, _NONE), float(epsilon)
    return _best_order(lambda x: (gap(x) - most) / (1 + np.exp(x)))


def renyi_epsilon(order: Fraction, rho: Exact, delta: Exact, pure: Pure = _NONE) -> Fraction:
    """Bound the epsilon of `zcdp_epsilon` at this order from above."""
    losses = (n * pure_divergence(order, Fraction(e)) for e, n in pure.items())
    return order * Fraction(rho) + sum(losses) + _gap(order, delta)


@lru_cache(maxsize=1024)
def pure_divergence(order: Fraction, epsilon: Fraction) -> Fraction:
    r"""Bound the divergence of a pure epsilon release, :math:`D_\alpha(\varepsilon)`, from above.

    >>> float(pure_divergence(Fraction(20), Fraction(1, 10)))
    0.07...
    """
    simple = min(epsilon, order * epsilon**2 / 2)
    if epsilon < _SMALL:  # the digits would cancel
        return simple
    less = _log_of_one_plus_exp(-epsilon) - _log_of_one_plus_exp((1 - 2 * order) * epsilon)
    return min(simple, epsilon - less / (order - 1) + _ERROR * (1 + 1 / (order - 1)))


def pure_left(order: Fraction, slack: Fraction) -> Fraction:
    r"""Return the largest pure epsilon (eight digits) whose divergence is within ``slack``.

    The x with :math:`D_\alpha(x) = s`, which is at most :math:`s + \log 2/(\alpha - 1)`.

    >>> float(pure_left(Fraction(20), Fraction(1, 10))), float(pure_left(Fraction(20), Fraction(1)))
    (0.132..., 1.016...)
    """
    if slack <= 0:
        return Fraction(0)
    low = max(slack, min(_root(2 * slack / order), 2 / order))
    high = slack + 1 / (order - 1)
    while high > low * (1 + _CLOSE):
        middle = short((low + high) / 2)
        low, high = (low, middle) if pure_divergence(order, middle) > slack else (middle, high)
    return short(low)


def _epsilon_at(rho: Exact, delta: Exact, pure: Pure) -> Callable[[FloatArray], FloatArray]:
    """Return epsilon as a function of log(order - 1), in floats."""
    epsilons = np.array([float(epsilon) for epsilon in pure])[:, None]
    counts = np.array([float(count) for count in pure.values()])[:, None]
    slope, log_delta = float(rho), float(_log(Fraction(delta)))

    def epsilon_at(log_excess: FloatArray) -> FloatArray:
        excess = np.exp(log_excess)
        order = 1 + excess
        losses = (counts * _pure_divergences(order, epsilons)).sum(axis=0)
        gap = (-log_delta - np.log1p(excess)) / excess - np.log1p(1 / excess)
        return np.asarray(order * slope + losses + gap)

    return epsilon_at


def _pure_divergences(order: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return `pure_divergence` in floats; where those would cancel, the square that bounds it."""
    squares = order * epsilon**2 / 2
    less = np.log1p(np.exp(-epsilon)) - np.log1p(np.exp((1 - 2 * order) * epsilon))
    exact = epsilon - less / (order - 1)
    return np.asarray(np.where(order * epsilon < 1e-3, squares, np.minimum(exact, squares)))


@lru_cache(maxsize=256)
def _gap(order: Fraction, delta: Exact) -> Fraction:
    """Bound g(order, delta) from above."""
    gap = (_log(1 / Fraction(delta)) - _log(order)) / (order - 1) + _log(1 - 1 / order)
    return gap + _ERROR * (1 + 1 / (order - 1))


def _best_order(objective: Callable[[FloatArray], FloatArray]) -> Fraction:
    """Return an order, as a short fraction, near the least value of a function of log(order - 1).

    The grid finds the basin (there may be several, for mixtures), a bounded search the rest.
    """
    grid = np.log(_ORDERS)
    best = int(np.argmin(objective(grid)))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda x: float(objective(np.array([x]))[0]),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return 1 + Fraction(f"{math.exp(found.x):.12g}")


def _log(number: Fraction) -> Fraction:
    """Return the logarithm with an error below 1e-45 relative to the larger of it and 1."""
    ratio = _DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Fraction(_DIGITS.ln(ratio))


def _log_of_one_plus_exp(number: Fraction) -> Fraction:
    """Return log(1 + exp(x)) for a negative x, with an error below 1e-45."""
    power = _DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Fraction(_DIGITS.ln(_DIGITS.add(1, _DIGITS.exp(power))))


def _root(number: Fraction) -> Fraction:
    """Round the square root down; 0 where there is none."""
    return Fraction(math.isqrt(max(math.floor(number * 10**60), 0)), 10**30)


def short(number: Fraction) -> Fraction:
    """Round down to ten significant digits, and what is negative to 0."""
    if number <= 0:
        return Fraction(0)
    return Fraction(_DOWN.divide(Decimal(number.numerator), Decimal(number.denominator)))
