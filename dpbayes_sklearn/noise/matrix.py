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
_MORE = 64  # bits of each normal, where the first ones do not decide


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
    """Return the rounded entries, with as many bits of the normals as that takes."""
    p = len(weights)
    rows, columns = np.triu_indices(p)
    factors = [scale / (2 * weights[i] * weights[j]) for i, j in zip(rows, columns, strict=True)]
    attempt = rounds()
    while next(attempt):
        g = normals.cells.reshape(2, count, p + 1, p)
        plus, minus = _products(g[0]), _products(g[1])
        size = np.abs(g).sum(axis=(0, 2))  # (count, p)
        error = (size[:, rows] + size[:, columns]) + 2 * (p + 1)
        middle = (plus - minus)[:, rows, columns]
        numerators = np.array([factor.numerator for factor in factors], object)
        units = np.array([factor.denominator << (2 * normals.bits) for factor in factors], object)
        low, high = (
            (2 * numerators * (middle + sign * error) + units) // (2 * units) for sign in (-1, 1)
        )
        if (low == high).all():
            if max(abs(int(low.max())), abs(int(low.min()))) >= 2**62:
                raise OverflowError("The noise does not fit 64-bit integers; use a coarser grid.")
            return np.asarray(low, np.int64)
        normals = normals.refined(_MORE, source)
    return np.empty(0, np.int64)


def _products(g: Integers) -> Integers:
    """Return the exact g'g of integer matrices of any size, by exact products of their limbs."""
    limbs, rest = [], np.abs(g)
    signs = np.where(g < 0, -1.0, 1.0)
    while rest.any():
        limbs.append((rest & ((1 << _LIMB) - 1)).astype(np.float64) * signs)
        rest = rest >> _LIMB
    total = np.zeros((len(g), g.shape[2], g.shape[2]), object)
    for i, a in enumerate(limbs):
        for j, b in enumerate(limbs):
            total += (np.swapaxes(a, 1, 2) @ b).astype(np.int64).astype(object) << (_LIMB * (i + j))
    return total
