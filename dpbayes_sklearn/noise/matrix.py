r"""Exact differences of Wishart matrices, rounded to integers.

A Wishart matrix of p + 1 degrees of freedom is :math:`\sum_k g_k g_k^\top` of p + 1 vectors of
standard normals. These are known to lie in cells (:mod:`dpbayes_sklearn.noise.normal`), so that a
product :math:`g_ig_j` differs from that of the lower ends :math:`G_iG_j` by at most
:math:`|G_i| + |G_j| + 1`. If all numbers that are possible then round to the same integer, it is
the rounded noise; if not, more bits of the normals are drawn. No real number is ever approximated.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.matrix import MatrixNoise
from dpbayes_sklearn.noise.add import draw
from dpbayes_sklearn.noise.bernoulli import rounds
from dpbayes_sklearn.noise.normal import Integers, Normals, exact_normals
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["wishart_differences"]

_LIMB = 20  # bits of a part: sums of products of two are exact in a double
_CELLS = 1 << 16  # normals drawn at a time


@draw.register
def _(law: MatrixNoise, count: int, source: RandomSource) -> IntArray:
    return wishart_differences(law.scale, law.weights, count, source)


def wishart_differences(
    scale: Fraction, weights: tuple[Fraction, ...], count: int, source: RandomSource
) -> IntArray:
    """Draw upper triangles of rounded matrices scale/2 (A - B)_ij/(a_i a_j).

    Parameters
    ----------
    scale : Fraction
    weights : tuple of Fraction
        The a_i.
    count : int
        Number of independent matrices.
    source : callable
        Random bytes, from `random_source`.

    Returns
    -------
    array of int of shape (count, p (p + 1) / 2)

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> wishart_differences(Fraction(1000), (Fraction(1),) * 3, 4, random_source(0)).shape
    (4, 6)
    """
    p = len(weights)
    each = 2 * (p + 1) * p
    most, parts = max(1, _CELLS // each), [np.empty((0, p * (p + 1) // 2), np.int64)]
    for first in range(0, count, most):
        many = min(most, count - first)
        normals = exact_normals(many * each, source)
        parts.append(_rounded(normals, scale, weights, many, source))
    return np.concatenate(parts)


def _rounded(
    normals: Normals,
    scale: Fraction,
    weights: tuple[Fraction, ...],
    count: int,
    source: RandomSource,
) -> IntArray:
    """Return the rounded entries, with as many bits of the normals as each of them takes."""
    p = len(weights)
    rows, columns = np.triu_indices(p)
    factors = _factors(scale, weights)
    g = normals.cells.reshape(2, count, p + 1, p)
    size = np.abs(g).sum(axis=(0, 2))  # (count, p)
    middle = _products(g[0]) - _products(g[1])
    low, high = _ends(middle, size[:, rows] + size[:, columns], factors, p, normals.bits)
    attempt = rounds()
    while (undecided := low != high).any() and next(attempt):
        normals = normals.refined(source)
        which, entry = np.nonzero(undecided)
        g = normals.cells.reshape(2, count, p + 1, p)
        one, other = g[:, which, :, rows[entry]], g[:, which, :, columns[entry]]
        plus, minus = (one * other).sum(axis=2).T
        sizes = (np.abs(one) + np.abs(other)).sum(axis=(1, 2))
        of_these = factors[:, entry]
        low[undecided], high[undecided] = _ends(plus - minus, sizes, of_these, p, normals.bits)
    if max(abs(int(low.max())), abs(int(low.min()))) >= 2**62:
        raise OverflowError("The noise does not fit 64-bit integers; use a coarser grid.")
    return np.asarray(low, np.int64)


def _factors(scale: Fraction, weights: tuple[Fraction, ...]) -> Integers:
    """Return numerators and denominators of scale/(2 a_i a_j), for i <= j."""
    rows, columns = np.triu_indices(len(weights))
    above = np.array([weight.numerator for weight in weights], object)
    below = np.array([weight.denominator for weight in weights], object)
    numerators = scale.numerator * below[rows] * below[columns]
    return np.stack([numerators, 2 * scale.denominator * above[rows] * above[columns]])


def _ends(
    middle: Integers, sizes: Integers, factors: Integers, p: int, bits: int
) -> tuple[Integers, Integers]:
    """Round the smallest and the largest numbers that are possible."""
    numerators, units = 2 * factors[0], factors[1] << (2 * bits)
    error = sizes + 2 * (p + 1)
    low, high = ((numerators * (middle + sign * error) + units) // (2 * units) for sign in (-1, 1))
    return low, high


def _products(g: Integers) -> Integers:
    """Return the upper triangles of g'g, exactly, by exact products of the limbs of integers."""
    count, n, p = g.shape
    rows, columns = np.triu_indices(p)
    size, signs, ones = np.abs(g), np.where(g < 0, -1.0, 1.0), (1 << _LIMB) - 1
    number = -(-int(size.max()).bit_length() // _LIMB)
    limbs = [((size >> _LIMB * k) & ones).astype(np.float64) * signs for k in range(number)]
    together = np.stack(limbs, axis=2).reshape(count, n, number * p)
    places = np.zeros((len(rows), count, 2 * number - 1), np.int64)
    for i, one in enumerate(limbs):
        products = (np.swapaxes(one, 1, 2) @ together).reshape(count, p, number, p)
        places[..., i : i + number] += products[:, rows, :, columns].astype(np.int64)
    total = np.zeros((count, len(rows)), object)
    for k in range(2 * number - 1):
        total += places[..., k].T.astype(object) << _LIMB * k
    return total
