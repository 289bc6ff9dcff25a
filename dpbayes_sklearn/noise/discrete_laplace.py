r"""The discrete Laplace law on the integers, drawn without a single rounding.

.. math:: P(Z = z) = \tanh(1/2b) \, e^{-|z|/b}, \qquad b = t/s \text{ rational}

The sampler follows Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential
Privacy* (2020), Algorithm 2, over whole arrays of machine words.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise.bernoulli import bernoulli_exp, geometric, rounds, uniform_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = [
    "discrete_laplace",
    "discrete_laplace_logpmf",
    "discrete_laplace_pmf",
    "discrete_laplace_quantile",
    "discrete_laplace_survival",
    "discrete_laplace_variance",
    "one_sided_laplace",
    "representable_scale",
]

MAX_TERM = 2**56
"""Largest numerator and denominator that the sampler takes.

Then t*k < 2**64 for every k that `bernoulli_exp` reaches, and u + t*v < 2**63 for every
v that `geometric` returns: no product can overflow.
"""

WORDS = ((2**8, np.uint16), (2**24, np.uint32), (MAX_TERM, np.uint64))
"""The shortest word for each numerator: 8 bits are spare, as `bernoulli_exp` needs."""


def representable_scale(scale: Fraction | int) -> Fraction:
    """Return the scale that `discrete_laplace` really uses: the given one or one just above.

    A scale with a numerator or denominator above 2**56 is rounded **up** (more noise,
    never less) by a relative 2**-55 at most; only scales below 2**-56, whose noise is 0
    but for a chance of exp(-2**56), move further.

    Examples
    --------
    >>> representable_scale(Fraction(100, 3))
    Fraction(100, 3)
    >>> rounded = representable_scale(Fraction(10**30, 3**60))
    >>> 0 < rounded / Fraction(10**30, 3**60) - 1 < Fraction(1, 2**55)
    True
    """
    if not isinstance(scale, Rational):
        raise TypeError(f"scale must be a Fraction or an int. Got {type(scale).__name__} instead.")
    scale = Fraction(int(scale.numerator), int(scale.denominator))
    if not 0 <= scale <= MAX_TERM:
        raise ValueError("scale must be between 0 and 2**56.")
    if scale == 0 or max(scale.numerator, scale.denominator) <= MAX_TERM:
        return scale
    if scale >= 1:  # the largest power of two as denominator, the numerator rounded up
        denominator = 1 << (int(MAX_TERM / scale).bit_length() - 1)
        return Fraction(math.ceil(scale * denominator), denominator)
    # the largest power of two as numerator, the denominator rounded down
    numerator = 1 << max(int(MAX_TERM * scale).bit_length() - 1, 0)
    return Fraction(numerator, min(int(numerator / scale), MAX_TERM))


def discrete_laplace(
    scale: Fraction | int, size: int | tuple[int, ...], source: RandomSource
) -> IntArray:
    """Draw independent integers with P(z) proportional to exp(-|z|/scale), exactly.

    Parameters
    ----------
    scale : Fraction or int
        From 0, which gives zeros, to 2**56; see `representable_scale` for long fractions.
    size : int or tuple of int
        Shape of the result.
    source : callable
        Random bytes, from `random_source`.

    Returns
    -------
    ndarray of int64
        Exact draws. How many bytes they take depends on the bytes only, not on data.

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
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
    accepted, filled, refill = _acceptance(scale), 0, rounds()
    while filled < flat.size and next(refill):
        missing = flat.size - filled
        proposals = int(missing / accepted + 4 * math.sqrt(missing)) + 8
        drawn = _proposals(scale, proposals, source)[:missing]
        flat[filled : filled + drawn.size] = drawn
        filled += drawn.size
    return noise


def one_sided_laplace(scale: Fraction, size: int, source: RandomSource) -> IntArray:
    """Draw integers k >= 0 with P(k) proportional to exp(-k/scale): the law of Z given Z >= 0.

    >>> from dpbayes_sklearn.noise.source import random_source
    >>> one_sided_laplace(Fraction(5, 2), 3, random_source(0)).shape
    (3,)
    """
    found = np.empty(0, np.int64)
    refill = rounds()
    while len(found) < size and next(refill):
        drawn = discrete_laplace(scale, 2 * (size - len(found)) + 8, source)
        found = np.concatenate([found, drawn[drawn >= 0]])
    return found[:size]


def _acceptance(scale: Fraction) -> float:
    """Share of proposals that survive: P(coin of u) * (1 - P(Z = 0 before the sign)/2)."""
    t = scale.numerator
    coin = math.expm1(-1) / (t * math.expm1(-1 / t))
    return coin * (1 + math.exp(-1 / scale)) / 2


def _proposals(scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Give the accepted of some proposals: x = u + t*v has P(x) ~ exp(-x/t), then floor(x/s)."""
    t, s = scale.numerator, scale.denominator
    word = next(word for largest, word in WORDS if t <= largest)
    below_t = uniform_below(t, count, source, word)
    below_t = below_t[np.flatnonzero(bernoulli_exp(below_t, t, source))]
    magnitude: IntArray = (below_t.astype(np.int64) + t * geometric(below_t.size, source)) // s
    signs = np.unpackbits(np.frombuffer(source(-(-below_t.size // 8)), dtype=np.uint8))
    negative = signs[: below_t.size].view(np.bool_)
    kept = np.flatnonzero((magnitude != 0) | ~negative)  # -0 would count 0 twice
    signed: IntArray = np.where(negative, -magnitude, magnitude)[kept]
    return signed


def discrete_laplace_logpmf(z: npt.ArrayLike, scale: Fraction | float) -> FloatArray:
    """Log probability: log tanh(1/2b) - abs(z)/b."""
    size = np.abs(np.asarray(z, dtype=np.float64))
    if scale == 0:
        return np.where(size == 0, 0.0, -np.inf)
    rate = 1 / float(scale)
    return np.asarray(math.log(math.tanh(rate / 2)) - size * rate)


def discrete_laplace_pmf(z: npt.ArrayLike, scale: Fraction | float) -> FloatArray:
    """Probability: tanh(1/2b) exp(-abs(z)/b).

    Examples
    --------
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


def discrete_laplace_quantile(probability: float, scale: Fraction | float) -> int:
    """Smallest k with P(abs(Z) <= k) >= probability.

    Examples
    --------
    >>> discrete_laplace_quantile(0.95, 10)
    30
    """
    if not 0 <= probability < 1:
        raise ValueError("probability must be in the range [0, 1).")
    k = 0
    if scale:
        above = (1 - probability) * (1 + math.exp(-1 / float(scale))) / 2  # q**(k+1) <= above
        k = max(math.ceil(-math.log(above) * float(scale)) - 2, 0)
    while 1 - discrete_laplace_survival(k + 1, scale) < probability:
        k += 1
    return k
