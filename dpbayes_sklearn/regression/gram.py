r"""The whole matrix of second moments, with matrix or Gaussian noise.

**The whole matrix of second moments, with noise that suits it as a matrix.**

Weigh the coordinates, :math:`z_i \to a_i z_i`. A replaced record changes :math:`\sum zz^\top` by
:math:`zz^\top - z'z'^\top`, whose nuclear norm is at most :math:`\|z\|^2 + \|z'\|^2 \le 2c`, where

.. math:: c = a_0^2 + \sum_{\text{numbers, signs}} a_j^2 +
    \sum_{\text{columns of levels}} a_j^2 + a_t^2,

since numbers, signs and the target lie in [-1, 1] and one level of a column is 1. So
:class:`~dpbayes_sklearn.noise.matrix.MatrixNoise` of scale :math:`2c/\varepsilon` is
:math:`\varepsilon`-private, however many entries there are. A record that comes or goes changes it
by c, k records of one person by k times as much.

**The second moments with Gaussian noise: how much a record changes them in a weighted L2 norm.**

Coordinates are weighted as for matrix noise, above:
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
alone, and k records by :math:`k^2` times as much as one.

With :math:`e = \tfrac12c` and :math:`Q = \|z'\|^2` a replaced record changes the sums by
:math:`\tfrac12(P^2 + Q^2) - \langle z, z'\rangle^2 + \tfrac12c\sum a_i^2(x_i^2 - x_i'^2)^2`. Since
:math:`(x_i^2 - x_i'^2)^2 \le (1 - x_i^2) + (1 - x_i'^2)` the last term is at most
:math:`\tfrac12c(c - P) + \tfrac12c(c - Q)`, and :math:`P^2 + c(c - P) \le c^2`: together
:math:`c^2`. A record that comes or goes adds :math:`\tfrac12c^2 + \tfrac12c\ell`, with
:math:`\ell` the part of c that numbers and target have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import Positions
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.noise import DiscreteGaussian, MatrixNoise, NoiseLaw
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.moments import Block, whole_block

# Squared weights. Larger weight = less noise in this coordinate's products, more in all others.
# A sign varies more than a number between its bounds, and a sum matters less than a product.
_NUMBER_WEIGHT, _SIGN_WEIGHT, _LEVEL_WEIGHT, _CONSTANT_WEIGHT = 1.0, 0.25, 0.5, 0.3
# The weight of the target is this factor times the root of the sum over all columns, as every
# product with it is needed.
_TARGET_WEIGHT = 1.5
_WEIGHT_STEPS = 32  # Weights are multiples of 1/32.
NARROWEST = 8
"""No standard deviation is below 1/8 of that of a sum of sensitivity 1."""


@dataclass(frozen=True)
class GramMatrix:
    """All entries of the moments at once."""

    # rows, columns: Positions in the upper triangle; 0 is the constant, the last is the target.
    rows: Positions
    columns: Positions
    weights: tuple[Fraction, ...]  # The a_i of the coordinates in use: no constant without one.
    bound: Fraction  # The c: no record has a larger weighted square.
    numeric: Fraction  # The part of it that numbers and target have.
    n_changed: int = RECORD.n_changed  # How many records come or go between neighbours.

    @classmethod
    def of(cls, design: Design) -> GramMatrix:
        """Return the matrix of a design, with public weights.

        >>> from dpbayes_sklearn.schema import Interval
        >>> matrix = GramMatrix.of(Design((Interval(0, 1),) * 3))
        >>> len(matrix), [str(a) for a in matrix.weights], round(float(matrix.bound), 2)
        (15, ['9/16', '1', '1', '1', '13/8'], 5.96)
        """
        kinds = np.where(
            design.numbers, _NUMBER_WEIGHT, np.where(design.signs, _SIGN_WEIGHT, _LEVEL_WEIGHT)
        )
        _, first = np.unique(design.column, return_index=True)
        target = _TARGET_WEIGHT * math.sqrt(max(kinds[first].sum(), _NUMBER_WEIGHT))
        squares = np.concatenate([[_CONSTANT_WEIGHT], kinds, [target]])
        steps = np.rint(_WEIGHT_STEPS * np.sqrt(squares)).astype(int)
        present = np.arange(0 if design.intercept else 1, design.width + 2)
        # of all levels of a column one counts: their weights are the same
        counted = [*present[present == 0], *(first + 1), design.width + 1]
        numeric = np.concatenate([[False], design.numbers, [True]])
        bound = sum(int(steps[i]) ** 2 for i in counted)
        own = sum(int(steps[i]) ** 2 for i in np.flatnonzero(numeric))
        rows, columns = np.triu_indices(len(present))
        return cls(
            present[rows],
            present[columns],
            tuple(Fraction(int(steps[i]), _WEIGHT_STEPS) for i in present),
            Fraction(bound, _WEIGHT_STEPS**2),
            Fraction(own, _WEIGHT_STEPS**2),
        )

    def protecting(self, unit: PrivacyUnit) -> GramMatrix:
        """Return the same matrix with the sensitivity for a unit of privacy."""
        return replace(self, n_changed=unit.n_changed)

    @property
    def sensitivity(self) -> Fraction:
        """The sensitivity in the nuclear norm."""
        return self.n_changed * self.bound

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, epsilon: Fraction, grid: int) -> NoiseLaw:
        """Return the law of the noise, on sums in units of 1/grid²."""
        return MatrixNoise(laplace_scale(self.sensitivity * grid**2, epsilon), self.weights)


def gram_block(design: Design, unit: PrivacyUnit = RECORD) -> GramMatrix | Block:
    """Return what has less noise: the products as a matrix or as numbers."""
    # which one it is does not depend on epsilon
    blocks: tuple[GramMatrix | Block, ...] = (
        GramMatrix.of(design).protecting(unit),
        whole_block(design).protecting(unit),
    )
    return min(blocks, key=lambda block: noise_of_products(design, block, Fraction(1)))


def noise_of_products(design: Design, block: GramMatrix | Block, share: Fraction) -> float:
    """Return the mean weighted variance of all entries, for a share of the budget."""
    matrix, squares = GramMatrix.of(design), np.zeros(design.width + 2)
    squares[np.unique(matrix.rows)] = [float(weight) ** 2 for weight in matrix.weights]
    grid = 2**10  # fine enough
    weights = squares[block.rows] * squares[block.columns]
    return float((block.law(share, grid).variances * weights).mean()) / grid**4


@dataclass(frozen=True)
class GaussianGram:
    """All entries of the moments that are not public, in groups of equal weight."""

    # rows, columns: Positions in the upper triangle; 0 is the constant, the last is the target.
    rows: Positions
    columns: Positions
    sizes: tuple[int, ...]  # How many entries each group has, one group after the other.
    weights: tuple[Fraction, ...]  # The w of every group.
    bound: Fraction  # The c², in units of the sums.
    bound_of_one_record: Fraction  # The bound of a record that comes or goes.

    def protecting(self, unit: PrivacyUnit) -> GaussianGram:
        """Return the same sums for a unit of several records: every change is multiplied."""
        change = self.bound_of_one_record if unit.size_is_secret else self.bound
        return replace(self, bound=unit.max_records**2 * change)

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, rho: Fraction, grid: int) -> DiscreteGaussian:
        """Return the law of rho-zCDP noise, on sums in units of 1/grid²."""
        scale = self.bound * grid**4 / (2 * rho)
        return DiscreteGaussian(tuple(scale / weight for weight in self.weights), self.sizes)


def gaussian_gram(design: Design) -> GaussianGram:
    """Return all entries that are not public, to be released with Gaussian noise.

    Public, or known by the sums, are the squares of constant and signs and the products of two
    levels of a column.
    """
    matrix = GramMatrix.of(design)
    c, e = matrix.bound, matrix.bound / 2
    bound, alone = c**2, c * (c + matrix.numeric) / 2
    last, i, j = design.width + 1, matrix.rows, matrix.columns
    column = np.concatenate([[-1], design.column, [-2]])
    numbers = np.concatenate([[False], design.numbers, [True]])
    levels = np.concatenate([[False], design.levels, [False]])
    steps = np.zeros(last + 1, np.int64)
    steps[np.unique(i)] = [int(weight * _WEIGHT_STEPS) for weight in matrix.weights]
    square = steps**2
    # entries of equal weight by a code: twice their weight in steps, or below 0 for a number
    code = square[i] * square[j] * np.where(i == j, 1, 2)
    code = np.where((i == j) & numbers[i], -square[i], code)
    kept = np.where(i == j, numbers[i] | levels[i], column[i] != column[j])
    i, j, code = i[kept], j[kept], code[kept]

    def weight_of(code: int) -> Fraction:
        if code > 0:
            return Fraction(code, 2 * _WEIGHT_STEPS**4)
        a = Fraction(-code, _WEIGHT_STEPS**2)
        return a * (a / 2 + e)

    codes, first, which = np.unique(code, return_index=True, return_inverse=True)
    found = {c: weight_of(c) for c in codes[np.argsort(first)].tolist()}
    groups = {weight: k for k, weight in enumerate(dict.fromkeys(found.values()))}
    group = np.array([groups[found[c]] for c in codes.tolist()])[which]
    order = np.argsort(group, kind="stable")
    rows, columns, sizes = i[order], j[order], tuple(np.bincount(group).tolist())
    most = min(bound, alone) * NARROWEST**2  # less weight is more noise
    weights = tuple(min(weight, most) for weight in groups)
    return GaussianGram(rows, columns, sizes, weights, bound, alone)
