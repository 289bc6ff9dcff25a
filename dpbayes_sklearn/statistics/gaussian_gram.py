r"""The second moments with Gaussian noise: how much a record changes them in a weighted L2 norm.

Coordinates are weighted as for matrix noise (:mod:`~dpbayes_sklearn.statistics.gram_matrix`):
:math:`P = \|z\|^2 = \sum a_i^2z_i^2`. Noise of variance :math:`\propto 1/w_{ij}` needs a bound on
:math:`\sum_{i \le j} w_{ij} D_{ij}^2`, D the change of the sums. Take
:math:`w_{ij} = a_i^2a_j^2` and on the diagonal :math:`\tfrac12a_i^4`, for a number or the target
:math:`\tfrac12a_i^4 + e a_i^2` with some :math:`e \ge 0`, so that squares of numbers, of which
there are few, have less noise. In the inner product
:math:`\langle A, B\rangle = \sum_{i \le j} w_{ij} A_{ij}B_{ij}` two records have

.. math:: \langle zz^\top, z'z'^\top\rangle = \tfrac12\langle z, z'\rangle^2
    + e\sum a_i^2 x_i^2 x_i'^2 \ge 0,

the last sum over numbers and target, which lie in [-1, 1]. (Entries that are not released are
included here.) So a record that is replaced changes the sums, squared, by no more than the two do
alone, and k records by :math:`k^2` times as much as one. Two bounds follow.

**Records that are scaled**: numbers, centred signs and target have :math:`\sum a_i^2x_i^2 \le \ell`
(:mod:`~dpbayes_sklearn.statistics.row_norm`), and :math:`P \le c`. As :math:`x_i^4 \le x_i^2`, a
record alone adds :math:`\tfrac12P^2 + e\sum a_i^2x_i^4 \le \tfrac12c^2 + e\ell`, so a replaced one
changes the sums by :math:`c^2 + 2e\ell`.

**Records that are not scaled**: :math:`e = \tfrac12c` costs nothing, if c is the sum of all squared
weights. With :math:`Q = \|z'\|^2` a replaced record changes the sums by
:math:`\tfrac12(P^2 + Q^2) - \langle z, z'\rangle^2 + \tfrac12c\sum a_i^2(x_i^2 - x_i'^2)^2`. Since
:math:`(x_i^2 - x_i'^2)^2 \le (1 - x_i^2) + (1 - x_i'^2)` the last term is at most
:math:`\tfrac12c(c - P) + \tfrac12c(c - Q)`, and :math:`P^2 + c(c - P) \le c^2`: together
:math:`c^2`. A record that comes or goes adds :math:`\tfrac12c^2 + \tfrac12c\ell`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.gaussian_block import GaussianBlock
from dpbayes_sklearn.statistics.gram_matrix import GramMatrix, noise_of_products
from dpbayes_sklearn.statistics.row_norm import RowNorm
from dpbayes_sklearn.statistics.windows import Reach

__all__ = ["NARROWEST", "GaussianGram", "gaussian_gram"]

NARROWEST = 8
"""No standard deviation is below 1/8 of that of a sum of sensitivity 1."""

_WIDEST = 50  # times the number of coordinates: no standard deviation is above
_FOR_SQUARES = Fraction(1, 10)  # of the bound, for the e of records that are scaled


@dataclass(frozen=True)
class GaussianGram(GaussianBlock):
    """All entries of the moments that are not public.

    Attributes
    ----------
    alone : Fraction
        The bound of a record that comes or goes.
    norm : RowNorm
        Which records are scaled before they are summed.
    target_end : float
        Part of the target's window beyond which a record of otherwise usual size is scaled.
    """

    alone: Fraction
    norm: RowNorm
    target_end: float

    @property
    def deviation(self) -> float:
        """The largest standard deviation of an entry, for a rho of 1/2."""
        return math.sqrt(self.bound / min(self.weights))

    def protecting(self, unit: PrivacyUnit) -> GaussianGram:
        """Return the same sums for all records of a unit, which change them as many times."""
        change = self.alone if unit.size_is_secret else self.bound
        return replace(self, bound=unit.max_records**2 * change)


def gaussian_gram(
    design: Design, reach: Reach | None = None, deviations: float | None = None
) -> GaussianGram:
    """Return all entries that are not public, to be released with Gaussian noise.

    Public, or known by the sums, are the squares of constant and signs and the products of two
    levels of a column.
    Records are scaled if that leads to less noise. Parameters are those of
    :meth:`~dpbayes_sklearn.statistics.gram_matrix.GramMatrix.of`.
    """
    blocks = [_whole(design), _scaled(design, reach, deviations)]
    drawable = [block for block in blocks if block.deviation <= _WIDEST * (design.width + 2)]
    return min(drawable, key=lambda block: noise_of_products(design, block, Fraction(1), reach))


def _whole(design: Design) -> GaussianGram:
    matrix = GramMatrix.of(design)
    c, limit = matrix.bound, matrix.limit
    return _block(design, matrix, c / 2, c**2, c * (c + limit) / 2)


def _scaled(design: Design, reach: Reach | None, deviations: float | None) -> GaussianGram:
    matrix = GramMatrix.of(design, reach, deviations)
    c, limit = matrix.bound, matrix.limit
    e = _FOR_SQUARES * c**2 / (2 * limit)
    bound = c**2 + 2 * e * limit
    return _block(design, matrix, e, bound, bound / 2)


def _block(
    design: Design, matrix: GramMatrix, e: Fraction, bound: Fraction, alone: Fraction
) -> GaussianGram:
    """Return the entries with their weights, for the e that the bounds were computed with."""
    last = design.width + 1
    squares = dict(zip(np.unique(matrix.rows).tolist(), matrix.weights, strict=True))
    squares = {i: a**2 for i, a in squares.items()}
    column = dict(enumerate(design.column.tolist(), 1))
    numbers = {*(1 + np.flatnonzero(design.numbers)).tolist(), last}
    levels = {*(1 + np.flatnonzero(design.levels)).tolist()}
    groups = defaultdict[Fraction, list[tuple[int, int]]](list)
    for i, j in zip(matrix.rows.tolist(), matrix.columns.tolist(), strict=True):
        if i in numbers and i == j:
            groups[squares[i] * (squares[i] / 2 + e)].append((i, i))
        elif i in levels and i == j:
            groups[squares[i] ** 2 / 2].append((i, i))
        elif i != j and not (i and j < last and column[i] == column[j]):
            groups[squares[i] * squares[j]].append((i, j))
    rows, columns = np.array([pair for group in groups.values() for pair in group], np.intp).T
    sizes = tuple(len(group) for group in groups.values())
    most = min(bound, alone) * NARROWEST**2  # less weight is more noise
    weights = tuple(min(weight, most) for weight in groups)
    return GaussianGram(rows, columns, sizes, weights, bound, alone, matrix.norm, matrix.target_end)
