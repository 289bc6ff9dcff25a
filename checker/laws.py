r"""What noise costs: epsilon, rho, or the delta at any epsilon, rounded to the unsafe side.

Neighbours differ in k records, which are replaced (``replace``) or come or go (``add_remove``); a
replaced record goes, and another comes, so m = 2k or k records come or go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

Json = dict[str, Any]
UP = Fraction(10**12 + 1, 10**12)  # This factor covers the rounding of floats.
_DIGITS = Context(prec=60)
_MOST_TERMS = 2**22  # So many terms of a distribution are added up.


class Unsupported(Exception):
    """What this program does not derive."""


class Wrong(Exception):
    """What the document says and is not so."""


class Unit(NamedTuple):
    """Who is protected."""

    name: str
    k: int
    added: bool  # Whether records come or go, so that their number is secret.

    @property
    def m(self) -> int:
        """How many records come or go."""
        return self.k if self.added else 2 * self.k


class Loss(NamedTuple):
    """What a step costs: an epsilon, a rho, or the delta at any epsilon, as far as it is known."""

    pure: Fraction | None = None
    rho: Fraction | None = None
    delta: Callable[[Fraction], float] | None = None

    @property
    def zcdp(self) -> Fraction | None:
        """The smaller of what is known; an epsilon is epsilon²/2-zCDP."""
        known = [*([self.pure**2 / 2] if self.pure is not None else []), *filter(None, [self.rho])]
        return min(known, default=self.rho)

    @property
    def curve(self) -> Callable[[Fraction], float] | None:
        """The delta at any epsilon, by zCDP if it is not known otherwise."""
        rho = self.rho
        return self.delta or (None if rho is None else lambda epsilon: delta_of_zcdp(rho, epsilon))


def fraction(value: Any) -> Fraction:
    """Read a number: a text such as "1/10", an integer, or a float as its shortest decimal."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Wrong(f"{value!r} is no number")
    try:
        found = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise Wrong(f"{value!r} is no finite number") from None
    if found < 0:
        raise Wrong(f"{value!r} is negative")
    return found


def decimal(x: Fraction) -> Decimal:
    """Return a fraction in 60 digits."""
    return _DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


def exponential(x: Fraction) -> Fraction:
    """Return exp(x), rounded up."""
    return Fraction(decimal(x).exp(_DIGITS)) * UP


def logarithm(x: Fraction) -> Fraction:
    """Return ln(x), rounded up."""
    return Fraction(decimal(x).ln(_DIGITS)) * UP


def delta_of_zcdp(rho: Fraction, epsilon: Fraction) -> float:
    r"""Bound delta: :math:`e^{(a-1)(a\rho-\varepsilon)} (1-1/a)^a/(a-1)`, least over a > 1."""
    low, high = 1e-6, 1e8
    for _ in range(5):  # any order is a bound: a better one is looked for around the best
        a = np.geomspace(low, high, 1001) if rho else np.array([1.0])
        logs = a * ((a + 1) * float(rho) - float(epsilon)) - np.log(a)
        logs += (a + 1) * np.log1p(-1 / (a + 1))
        best = int(logs.argmin())
        low, high = a[max(best - 1, 0)], a[min(best + 1, len(a) - 1)]
    with localcontext(_DIGITS):
        order, one = Decimal(float(a[best])), Decimal(1)
        cost = (order + one) * decimal(rho) - decimal(epsilon)
        log = order * cost + (order + one) * (one - one / (order + one)).ln() - order.ln()
        return float(min(log, Decimal(0)).exp()) * (1 + 1e-15) if rho else 0.0


def delta_of_normal(ratio: float, epsilon: float) -> float:
    """Bound the delta of continuous Gaussian noise: ``ratio`` is sensitivity over deviation."""
    if ratio <= 0:
        return 0.0
    first, second = (s * ratio / 2 - epsilon / ratio for s in (1, -1))
    likely, other = (math.erfc(-x / math.sqrt(2)) / 2 for x in (first, second))
    return max(likely * (1 + 1e-13) - math.exp(epsilon) * other * (1 - 1e-13), 0.0) + 1e-300


def delta_of_lattice(weights: Counter[int], k: int, variance: Fraction, epsilon: Fraction) -> float:
    r"""Bound the delta of counts with independent discrete Gaussian noise of variance/weight.

    So many counts of each weight change by k. The loss is :math:`(k^2W - 2kx)/2\sigma^2` with
    :math:`x = \sum w_iz_i`, W the sum of weights, and
    :math:`P(x) \le P(0)e^{-x^2/2\sigma^2W}`, because the points with one x are a translate of a
    lattice, whose Gaussian weight is largest without translation. P(0) is at most the probability
    of multiples of N, a mean of the characteristic function.
    """
    g, total = math.gcd(*weights), sum(w * c for w, c in weights.items())
    spread = math.sqrt(float(variance) * total)
    points, terms = math.ceil(12 * spread / g) + 1, math.ceil(45 * spread / g) + 1
    if terms > _MOST_TERMS:
        raise Unsupported("its Gaussian noise is too wide for a sum over its values")
    angles, log = 2 * np.pi * np.arange(points) / (g * points), np.zeros(points)
    centres = 2 * np.pi * np.arange(-8, 9)
    for w, count in weights.items():
        own, angle = float(variance) / w, np.remainder(w * angles + np.pi, 2 * np.pi) - np.pi
        sums = sum(np.exp(-own * (angle - c) ** 2 / 2) for c in centres)
        log += count * np.log(np.maximum(sums / np.exp(-own * centres**2 / 2).sum(), 1e-320))
    zero = float(np.exp(log).mean()) * (1 + 1e-9)
    start = variance * epsilon / k - Fraction(k * total, 2)  # of -x, where the loss is epsilon
    x = (math.floor(start / g) + 1 + np.arange(terms)) * g
    gain = -np.expm1(-(x - float(start)) * k / float(variance))
    return float((zero * np.exp(-(x**2) / (2 * spread**2)) * gain).sum()) * (1 + 1e-9)


def gaussian(shifts: Iterable[tuple[Fraction, int]], k: int) -> Loss:
    """Return the loss of counts with these variances, so many of which change by k."""
    changed = Counter[Fraction]()
    for variance, count in shifts:
        expect(variance, "noise where a record changes a count", bool(variance or not count))
        changed[variance] += count
    changed = +changed
    rho = sum((c * Fraction(k * k) / (2 * v) for v, c in changed.items()), Fraction(0))
    if not rho:
        return Loss(Fraction(0), Fraction(0))
    whole = max(changed)  # the variance of weight 1, if all others are parts of it
    least = math.lcm(*((whole / v).denominator for v in changed))
    weights = Counter({int(whole / v * least): c for v, c in changed.items()})
    return Loss(None, rho, cache(lambda e: delta_of_lattice(weights, k, whole * least, e)))


_NORMS = {
    **dict.fromkeys(("DiscreteLaplace", "ZeroSum"), "l1"),
    **{"SupNorm": "sup", "BallNoise": "l2", "MatrixNoise": "trace", "ClassRows": "rows"},
}
"""The norm with which the density of a noise falls; of rows the largest L1 norm counts."""


def by_norm(law: Json, **change: Fraction | int) -> Loss:
    """Return how far neighbours are apart in the norm of the noise, over its scale."""
    norm = _NORMS.get(law["type"])
    if norm not in change:
        raise Unsupported(f"{law['type']} noise of this is not derived here")
    scales = law["scales"] if "scales" in law else [law["scale"]]
    return Loss(
        over(Fraction(change[norm]) / min(law.get("sides", [1])), min(map(fraction, scales)))
    )


def over(change: Fraction | int, scale: Fraction) -> Fraction:
    """Return change / scale."""
    expect(scale, "noise where a record changes a number", bool(scale or not change))
    return Fraction(change) / scale if change else Fraction(0)


def expect(json: Any, what: str, fulfilled: bool) -> None:
    """Refuse what is not as it must be."""
    if not fulfilled:
        raise Wrong(f"{what} was expected, not {json}")


def usual(number: int, least: int) -> None:
    """Decline steps of a sum that are coarser than they usually are: a record has fewer of them."""
    if number < least:
        raise Unsupported(f"{number} steps of a sum are fewer than {least}")


def upward(number: float) -> Fraction:
    """Return a float that was computed, rounded up."""
    return Fraction(number) * UP
