r"""Independent discrete Laplace noise: the K-norm mechanism of the L1 norm.

.. math:: P(Z = z) = \tanh(1/2b) \, e^{-|z|/b}, \qquad z \in \mathbb{Z}, \quad b = t/s

in every number, b the scale of its array, a rational number.

**Loss.** Neighbours that differ by :math:`\Delta_i` in the numbers of scale :math:`b_i` (in L1)
have a privacy loss of :math:`\sum_i \Delta_i/b_i`.

**Sampler.** Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy* (2020),
Algorithm 2, over whole arrays of machine words.

**Within a reach** (:class:`TruncatedLaplace`), so that what nobody has is never published:

.. math:: P(Z = z) = \frac{(1-q)\,q^{|z|}}{1 + q - 2q^{k+1}}, \qquad |z| \le k, \quad q = e^{-1/b}

A value that c records share is published if :math:`c + Z > k`: never for c = 0, always for
:math:`c > 2k`. If c changes by s, the loss is at most s/b but for outcomes that one side cannot
have, of probability :math:`P(Z > k - s)`. This is the best there is for publishing which values
occur at all (Desfontaines, Voss, Gipson and Mandayam 2022, *Differentially Private Partition
Selection*). It is no :class:`NoiseLaw`: how many values there are is a secret, so it has no public
size.

**Sampler.** Where k is at least the scale b, draws of unlimited noise that lie beyond k are left
out: fewer than :math:`e^{-1}` of them do. Otherwise numbers from -k to k, each as likely as any
other, are accepted with probability :math:`e^{-|z|/b} \ge e^{-1}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise.integers import (
    RandomSource,
    bernoulli_exp,
    fill,
    geometric,
    rounds,
    uniform_below,
)
from dpbayes_sklearn.noise.law import (
    MAX_TERM,
    NO_NOISE,
    Chernoff,
    Marginal,
    NoiseLaw,
    draw,
    representable_scale,
)

WORDS = ((2**8, np.uint16), (2**24, np.uint32), (MAX_TERM, np.uint64))
"""The shortest word for each numerator: 8 bits are spare, as `bernoulli_exp` needs."""
_DIGITS_MARGIN = 1 + Fraction(1, 10**30)  # This factor is far above the error of 60 digits.
_MOST_REACH = 2**61  # A truncation beyond this would overflow 64 bits.
_LEAST_DELTA = Fraction(1, 10**300)  # A smaller delta above 0 is refused.
_MOST_SCALES = 10_000  # Beyond this many scales noise is far less likely than any delta.


@dataclass(frozen=True)
class LaplaceMarginal(Chernoff):
    """Laplace noise in one number, with density proportional to exp(-abs(x) / scale).

    >>> LaplaceMarginal(2.0).log_weight(np.array([0.0, -3.0, 4.0])).tolist()
    [-0.0, -1.5, -2.0]
    """

    scale: float

    @property
    def variance(self) -> float:
        """Variance 2 b² of the continuous law, which bounds that of the discrete one."""
        return 2.0 * self.scale**2

    @property
    def sharpness(self) -> float:
        """The scale."""
        return self.scale

    @property
    def steepest(self) -> float:
        """The s at which E[exp(s Z)] becomes infinite, 1/b."""
        return 1.0 / self.scale

    def log_weight(self, x: FloatArray) -> FloatArray:
        """-abs(x)/b."""
        return -np.abs(x) / self.scale

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """-log(1 - s² b²)."""
        return -np.log1p(-((s * self.scale) ** 2))


@dataclass(frozen=True)
class DiscreteLaplace(NoiseLaw):
    """Independent discrete Laplace noise in every number.

    >>> law = DiscreteLaplace.of(Fraction(22), [4] * 10 + [2])
    >>> round(law.variance(array=0), 1), round(law.error_bound(0.05), 1)
    (967.8, 148.6)
    >>> law.privacy_loss(np.array([1, -1] * 11 + [0] * 20))
    Fraction(1, 1)
    """

    # The scale b of each array; 0 for an array that is public as it is.
    scales: tuple[Fraction, ...]
    numbers: tuple[int, ...]  # How many numbers each array has.

    independent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.scales) != len(self.numbers) or any(scale < 0 for scale in self.scales):
            raise ValueError("Independent noise needs one scale, not below zero, for each array.")

    @classmethod
    def of(cls, scale: Fraction, sizes: Sequence[int]) -> DiscreteLaplace:
        """Return the law that has the same scale in all arrays."""
        return cls((scale,) * len(sizes), tuple(sizes))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each array has."""
        return self.numbers

    def marginal(self, array: int = 0) -> Marginal:
        """Return the Laplace law of one number."""
        scale = float(self.scales[array])
        return LaplaceMarginal(scale) if scale else NO_NOISE

    @cached_property
    def variances(self) -> FloatArray:
        """Variance 2q/(1-q)² of every number, q = exp(-1/b)."""
        exact = {scale: discrete_laplace_variance(scale) for scale in set(self.scales)}
        return np.repeat([exact[scale] for scale in self.scales], self.sizes)

    def error_bound(self, delta: float) -> float:
        r"""Return the z with :math:`\sum_i m_i \frac{2}{1+q_i} e^{-z/b_i} = \delta`.

        For one scale b and M numbers this is :math:`b\ln\frac M\delta + b\ln\frac2{1+q}`.
        """
        numbers: dict[float, int] = {}
        for scale, size in zip(self.scales, self.sizes, strict=True):
            numbers[float(scale)] = numbers.get(float(scale), 0) + size * bool(scale)
        noisy = {b: m for b, m in numbers.items() if m}
        alone = [b * math.log(m / delta) + integer_allowance(b) for b, m in noisy.items()]
        if len(alone) < 2:
            return max(alone, default=0.0)

        def excess(z: float) -> float:
            tails = (m * math.exp((integer_allowance(b) - z) / b) for b, m in noisy.items())
            return sum(tails) - delta

        if excess(max(alone)) <= 0:  # the other noises are so small that floats do not see them
            return max(alone)
        largest = max(b * math.log(len(noisy)) + z for b, z in zip(noisy, alone, strict=True))
        return float(brentq(excess, max(alone), largest * (1 + 1e-9) + 1.0))

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the sum over arrays of L1 norm over scale."""
        loss, first = Fraction(0), 0
        for scale, size in zip(self.scales, self.sizes, strict=True):
            moved = int(np.abs(shift[first : first + size]).sum())
            if moved and not scale:
                return math.inf
            loss += Fraction(moved) / scale if moved else 0
            first += size
        return loss


def integer_allowance(scale: float) -> float:
    r"""Return :math:`b \ln \frac{2}{1+q}`, by which bounds of integer noise are larger; below 1/2.

    >>> round(integer_allowance(1.0), 3), round(integer_allowance(1000.0), 3)
    (0.38, 0.5)
    """
    if scale == 0:  # there is no noise
        return 0.0
    return scale * math.log(2 / (1 + math.exp(-1 / scale)))


def discrete_laplace_logpmf(z: npt.ArrayLike, scale: Fraction | float) -> FloatArray:
    """Log probability: log tanh(1/2b) - abs(z)/b."""
    size = np.abs(np.asarray(z, dtype=np.float64))
    if scale == 0:
        return np.where(size == 0, 0.0, -np.inf)
    rate = 1 / float(scale)
    return np.asarray(math.log(math.tanh(rate / 2)) - size * rate)


def discrete_laplace_pmf(z: npt.ArrayLike, scale: Fraction | float) -> FloatArray:
    """Probability: tanh(1/2b) exp(-abs(z)/b).

    >>> bool(abs(discrete_laplace_pmf(range(-90, 91), 2).sum() - 1) < 1e-12)
    True
    """
    return np.exp(discrete_laplace_logpmf(z, scale))


def discrete_laplace_variance(scale: Fraction | float) -> float:
    """Variance: 2q/(1-q)**2 with q = exp(-1/b)."""
    if scale == 0:
        return 0.0
    return 2 * math.exp(-1 / float(scale)) / math.expm1(-1 / float(scale)) ** 2


def discrete_laplace_survival(k: npt.ArrayLike, scale: Fraction | float) -> FloatArray:
    """P(abs(Z) >= k) = 2 q**k/(1+q) for k >= 1, and 1 for k <= 0, with q = exp(-1/b)."""
    at_least = np.ceil(np.asarray(k, dtype=np.float64))
    if scale == 0:
        return np.where(at_least <= 0, 1.0, 0.0)
    rate = 1 / float(scale)
    tail = 2 * np.exp(-rate * np.maximum(at_least, 0)) / (1 + math.exp(-rate))
    return np.where(at_least <= 0, 1.0, tail)


@draw.register
def _(law: DiscreteLaplace, count: int, source: RandomSource) -> IntArray:
    """Draw all numbers of one scale at once, because that is faster."""
    noise = np.zeros((count, law.size), np.int64)
    scale_of = np.repeat(np.arange(len(law.scales)), law.sizes)
    for scale in sorted({b for b, size in zip(law.scales, law.sizes, strict=True) if b and size}):
        same = np.array([b == scale for b in law.scales])[scale_of]
        noise[:, same] = discrete_laplace(scale, (count, int(same.sum())), source)
    return noise


def discrete_laplace(
    scale: Fraction | int, size: int | tuple[int, ...], source: RandomSource
) -> IntArray:
    """Draw independent integers with P(z) proportional to exp(-|z|/scale), exactly.

    The scale is from 0, which gives zeros, to 2**56; see `representable_scale` for long fractions.
    How many bytes a draw takes depends on the bytes only, not on data.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> discrete_laplace(Fraction(5, 2), (2, 3), random_source(0)).shape
    (2, 3)
    >>> discrete_laplace(Fraction(0), 3, random_source())
    array([0, 0, 0])
    """
    scale = representable_scale(scale)
    noise = np.zeros(size, dtype=np.int64)
    if scale == 0:
        return noise
    flat = noise.reshape(-1)  # a view: the array was just made
    fill(flat, _acceptance(scale), lambda count: _proposals(scale, count, source))
    return noise


def one_sided_laplace(scale: Fraction, size: int, source: RandomSource) -> IntArray:
    """Draw integers k >= 0 with P(k) proportional to exp(-k/scale): the law of Z given Z >= 0.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> one_sided_laplace(Fraction(5, 2), 3, random_source(0)).shape
    (3,)
    """
    found = np.empty(0, np.int64)
    refill = rounds()
    while len(found) < size and next(refill):
        drawn = discrete_laplace(scale, 2 * (size - len(found)) + 8, source)
        found = np.concatenate([found, drawn[drawn >= 0]])
    return found[:size]


def laplace_magnitudes(scale: Fraction, size: int, source: RandomSource) -> IntArray:
    """Draw from the law of `one_sided_laplace` in half the time, without signs.

    Other numbers for the same seed: `one_sided_laplace` is for noise whose seeds are in use.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> laplace_magnitudes(Fraction(5, 2), 3, random_source(0)).shape
    (3,)
    """
    scale, found = representable_scale(scale), np.zeros(size, np.int64)
    if scale == 0:
        return found
    return fill(found, _coin(scale), lambda count: _magnitudes(scale, count, source))


def _acceptance(scale: Fraction) -> float:
    """Share of proposals that survive: P(coin of u) * (1 - P(Z = 0 before the sign)/2)."""
    return _coin(scale) * (1 + math.exp(-1 / scale)) / 2


def _coin(scale: Fraction) -> float:
    """Share of the u below t whose coin of probability exp(-u/t) shows success."""
    t = scale.numerator
    return math.expm1(-1) / (t * math.expm1(-1 / t))


def _proposals(scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Give the accepted of some proposals: a magnitude with a random sign."""
    magnitude = _magnitudes(scale, count, source)
    signs = np.unpackbits(np.frombuffer(source(-(-magnitude.size // 8)), dtype=np.uint8))
    negative = signs[: magnitude.size].view(np.bool_)
    kept = np.flatnonzero((magnitude != 0) | ~negative)  # -0 would count 0 twice
    return np.asarray(np.where(negative, -magnitude, magnitude)[kept])


def _magnitudes(scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Give the accepted of some proposals: x = u + t*v has P(x) ~ exp(-x/t), then floor(x/s)."""
    t, s = scale.numerator, scale.denominator
    word = next(word for largest, word in WORDS if t <= largest)
    below_t = uniform_below(t, count, source, word)
    below_t = below_t[np.flatnonzero(bernoulli_exp(below_t, t, source))]
    return np.asarray((below_t.astype(np.int64) + t * geometric(below_t.size, source)) // s)


_SIXTY_DIGITS = Context(prec=60)  # Exponentials are computed with 60 digits.


@dataclass(frozen=True)
class TruncatedLaplace:
    """Noise of one count.

    >>> law = TruncatedLaplace.calibrated(Fraction(20), Fraction(1, 10**7))
    >>> law.reach, float(law.beyond(1)) < 1e-7 < float(TruncatedLaplace(law.scale, 248).beyond(1))
    (249, True)
    """

    scale: Fraction  # The b.
    reach: int  # The k: the noise is between -k and k.

    @classmethod
    @lru_cache(maxsize=256)  # columns and repeated releases ask for the same law
    def calibrated(cls, scale: Fraction, delta: Fraction, step: int = 1) -> TruncatedLaplace:
        """Return the law of the least reach with P(Z > k - step) at most delta.

        A count changes by at most ``step``.
        """
        if delta < _LEAST_DELTA:
            raise ValueError("delta must be above zero, and at least 1e-300 for each count.")
        too_short, enough = step - 1, step
        while cls(scale, enough).beyond(step) > delta:
            too_short, enough = enough, 2 * enough
            if enough > _MOST_REACH:
                raise ValueError(
                    "epsilon is too small: the noise of a count would not fit into 64 bits."
                )
        while enough - too_short > 1:
            middle = (too_short + enough) // 2
            fine = cls(scale, middle).beyond(step) <= delta
            too_short, enough = (too_short, middle) if fine else (middle, enough)
        return cls(scale, enough)

    def beyond(self, step: int) -> Fraction:
        r"""Bound :math:`P(Z > k - s) = q^{k-s+1} (1 - q^s)/(1 + q - 2q^{k+1})` from above."""
        q, d = self._power(1), _SIXTY_DIGITS
        whole = d.subtract(d.add(1, q), d.multiply(2, self._power(self.reach + 1)))
        part = d.multiply(self._power(self.reach - step + 1), d.subtract(1, self._power(step)))
        return Fraction(d.divide(part, whole)) * _DIGITS_MARGIN

    def _power(self, exponent: int) -> Decimal:
        """Return q to a power, from above where that is below exp(-10,000)."""
        b = self.scale
        exponent = min(exponent, _MOST_SCALES * b.numerator // b.denominator + 1)
        return _SIXTY_DIGITS.exp(_SIXTY_DIGITS.divide(-exponent * b.denominator, b.numerator))


def truncated_laplace(law: TruncatedLaplace, size: int, source: RandomSource) -> IntArray:
    """Draw independent integers with P(z) proportional to exp(-abs(z)/b), abs(z) <= k, exactly.

    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> noise = truncated_laplace(TruncatedLaplace(Fraction(5), 3), 100, random_source(0))
    >>> int(noise.min()), int(noise.max())
    (-3, 3)
    """
    propose = _unlimited if law.reach >= law.scale else _even
    noise = np.zeros(size, np.int64)
    return fill(noise, math.exp(-1), lambda count: propose(law, count, source))


def _unlimited(law: TruncatedLaplace, count: int, source: RandomSource) -> IntArray:
    drawn = discrete_laplace(law.scale, count, source)
    return drawn[np.abs(drawn) <= law.reach]


def _even(law: TruncatedLaplace, count: int, source: RandomSource) -> IntArray:
    t, s, k = law.scale.numerator, law.scale.denominator, law.reach
    drawn = uniform_below(2 * k + 1, count, source, np.uint64).astype(np.int64) - k
    return drawn[bernoulli_exp((np.abs(drawn) * s).astype(np.uint64), t, source)]
