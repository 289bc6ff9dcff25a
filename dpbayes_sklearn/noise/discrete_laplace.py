r"""Exact sampler of the discrete Laplace law on the integers, without rounding.

.. math:: P(Z = z) = \tanh(1/2b) \, e^{-|z|/b}, \qquad b = t/s \text{ rational}

The sampler follows Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential
Privacy* (2020), Algorithm 2, over whole arrays of machine words.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.discrete_laplace import DiscreteLaplace
from dpbayes_sklearn.laws.scales import MAX_TERM, representable_scale
from dpbayes_sklearn.noise.add import draw
from dpbayes_sklearn.noise.bernoulli import bernoulli_exp, fill, geometric, rounds, uniform_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["discrete_laplace", "laplace_magnitudes", "one_sided_laplace"]

WORDS = ((2**8, np.uint16), (2**24, np.uint32), (MAX_TERM, np.uint64))
"""The shortest word for each numerator: 8 bits are spare, as `bernoulli_exp` needs."""


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
    fill(flat, _acceptance(scale), lambda count: _proposals(scale, count, source))
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


def laplace_magnitudes(scale: Fraction, size: int, source: RandomSource) -> IntArray:
    """Draw from the law of `one_sided_laplace` in half the time, without signs.

    Other numbers for the same seed: `one_sided_laplace` is for noise whose seeds are in use.

    >>> from dpbayes_sklearn.noise.source import random_source
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
    signed: IntArray = np.where(negative, -magnitude, magnitude)[kept]
    return signed


def _magnitudes(scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Give the accepted of some proposals: x = u + t*v has P(x) ~ exp(-x/t), then floor(x/s)."""
    t, s = scale.numerator, scale.denominator
    word = next(word for largest, word in WORDS if t <= largest)
    below_t = uniform_below(t, count, source, word)
    below_t = below_t[np.flatnonzero(bernoulli_exp(below_t, t, source))]
    magnitude: IntArray = (below_t.astype(np.int64) + t * geometric(below_t.size, source)) // s
    return magnitude
