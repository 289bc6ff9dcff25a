r"""Exact sampler of discrete Laplace noise that adds to zero, for counts with a public total.

.. math:: P(Z = z) \propto e^{-\|z\|_1 / b}, \qquad z \in \mathbb{Z}^k, \; \sum_i z_i = 0

This is independent discrete Laplace noise on every cell, given that it sums to zero; for
two cells it is (d, -d) with the two-sided geometric law :math:`P(d) \propto e^{-2|d|/b}`.

**Loss.** Replacing a record changes a vector of counts by :math:`e_i - e_j`, of norm 2, so by the
triangle inequality the law of the noisy counts changes by a factor of at most :math:`e^{2/b}`.

**Sampler.** Draw k - 1 cells independently, let the last one make the sum zero, and accept with
probability :math:`e^{-|z_k|/b}`. About 0.56/sqrt(k) of the proposals are accepted, for any b.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.scales import representable_scale
from dpbayes_sklearn.laws.zero_sum import ZeroSum
from dpbayes_sklearn.noise.add import draw
from dpbayes_sklearn.noise.bernoulli import bernoulli_exp, fill, geometric
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["zero_sum_laplace"]


@draw.register
def _(law: ZeroSum, count: int, source: RandomSource) -> IntArray:
    return zero_sum_laplace(law.scale, law.cells, count, source)


def zero_sum_laplace(
    scale: Fraction | int, cells: int, size: int, source: RandomSource
) -> IntArray:
    """Draw integer vectors of sum zero with P(z) proportional to exp(-sum(abs(z))/scale), exactly.

    Parameters
    ----------
    scale : Fraction or int
        From 0, which gives zeros, to 2**40.
    cells : int
        Length k of a vector, from 1 to 2**15.
    size : int
        Number of vectors.
    source : callable
        Random bytes, from `random_source`.

    Returns
    -------
    ndarray of int64 of shape (size, cells)

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> noise = zero_sum_laplace(Fraction(2), 5, 3, random_source(0))
    >>> noise.shape, noise.sum(axis=1).tolist()
    ((3, 5), [0, 0, 0])
    """
    scale = representable_scale(scale)
    ZeroSum(scale, cells)  # refuses what cannot be drawn
    noise = np.zeros((size, cells), dtype=np.int64)
    if scale == 0 or cells == 1:
        return noise
    accepted = 0.5 / math.sqrt(cells)
    return fill(noise, accepted, lambda count: _proposals(scale, cells, count, source))


def _proposals(scale: Fraction, cells: int, count: int, source: RandomSource) -> IntArray:
    """Give the accepted of some proposals."""
    free = discrete_laplace(scale, (count, cells - 1), source)
    last = -free.sum(axis=1)
    kept = _coins(np.abs(last), scale, source)
    return np.column_stack([free, last])[kept]


def _coins(size: IntArray, scale: Fraction, source: RandomSource) -> npt.NDArray[np.bool_]:
    """Coins with P(True) = exp(-size/scale): the integer part by counting, then the rest."""
    t, s = scale.numerator, scale.denominator
    product = size.astype(object) * s  # Python's integers: no overflow, nothing rounded
    whole, rest = (product // t).astype(np.float64), (product % t).astype(np.uint64)
    enough: npt.NDArray[np.bool_] = geometric(size.size, source) >= whole
    return enough & bernoulli_exp(rest, t, source)
