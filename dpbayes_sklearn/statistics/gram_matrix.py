r"""The whole matrix of second moments, with noise that suits it as a matrix.

Weigh the coordinates, :math:`z_i \to a_i z_i`. A replaced record changes :math:`\sum zz^\top` by
:math:`zz^\top - z'z'^\top`, whose nuclear norm is at most :math:`\|z\|^2 + \|z'\|^2 \le 2c`, where

.. math:: c = a_0^2 + \sum_{\text{numbers, signs}} a_j^2 +
    \sum_{\text{columns of levels}} a_j^2 + a_t^2,

since numbers, signs and the target lie in [-1, 1] and one level of a column is 1. So
:class:`~dpbayes_sklearn.laws.matrix.MatrixNoise` of scale :math:`2c/\varepsilon` is
:math:`\varepsilon`-private, however many entries there are. A record that comes or goes changes it
by c, k records of one person by k times as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.laws import MatrixNoise, NoiseLaw
from dpbayes_sklearn.laws.scales import laplace_scale
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.moment_blocks import Block, whole_block

__all__ = ["GramMatrix", "gram_block"]

# Squared weights: the more, the less noise in what concerns a coordinate, and the more elsewhere.
# A sign varies more than a number in its window, and a sum matters less than a product.
_NUMBER, _SIGN, _LEVEL, _CONSTANT = 1.0, 0.35, 0.5, 0.3
_TARGET = 1.5  # times the root of the sum over all columns: every product with it is needed


@dataclass(frozen=True)
class GramMatrix:
    """All entries of the moments at once.

    Attributes
    ----------
    rows, columns : arrays of int
        Positions in the upper triangle; 0 is the constant, the last is the target.
    weights : tuple of Fraction
        The a_i of the coordinates that are there.
    bound : Fraction
        The c: no record has a larger weighted square.
    moves : int
        How many records come or go between neighbours.
    """

    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    weights: tuple[Fraction, ...]
    bound: Fraction
    moves: int = RECORD.moves

    @classmethod
    def of(cls, design: Design) -> GramMatrix:
        """Return the matrix of a design, with public weights.

        >>> from dpbayes_sklearn.schema import Interval
        >>> matrix = GramMatrix.of(Design((Interval(0, 1),) * 3))
        >>> len(matrix), [str(a) for a in matrix.weights]
        (15, ['35/64', '1', '1', '1', '103/64'])
        """
        kinds = np.where(design.numbers, _NUMBER, np.where(design.signs, _SIGN, _LEVEL))
        _, first = np.unique(design.column, return_index=True)
        target = _TARGET * math.sqrt(max(kinds[first].sum(), _NUMBER))
        squares = [_CONSTANT, *kinds, target]
        weights = [Fraction(round(64 * math.sqrt(square)), 64) for square in squares]
        present = np.arange(0 if design.intercept else 1, design.width + 2)
        # of all levels of a column one counts: their weights are the same
        counted = [*present[present == 0], *(first + 1), design.width + 1]
        rows, columns = np.triu_indices(len(present))
        bound = sum((weights[i] ** 2 for i in counted), Fraction(0))
        kept = tuple(weights[i] for i in present)
        return cls(present[rows], present[columns], kept, bound)

    def protecting(self, unit: PrivacyUnit) -> GramMatrix:
        """Return the same matrix with the sensitivity for a unit of privacy."""
        return replace(self, moves=unit.moves)

    @property
    def sensitivity(self) -> Fraction:
        """The sensitivity in the nuclear norm."""
        return self.moves * self.bound

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, epsilon: Fraction, grid: int) -> NoiseLaw:
        """Return the law of the noise, on sums in units of 1/grid²."""
        return MatrixNoise(laplace_scale(self.sensitivity * grid**2, epsilon), self.weights)


def gram_block(design: Design, unit: PrivacyUnit = RECORD) -> GramMatrix | Block:
    """Return what has less noise, each entry counted by its weights: as a matrix or as numbers."""
    matrix, numbers = GramMatrix.of(design).protecting(unit), whole_block(design).protecting(unit)
    squares = np.zeros(design.width + 2)
    squares[np.unique(matrix.rows)] = [float(weight) ** 2 for weight in matrix.weights]
    grid = 2**10  # the comparison does not depend on it, nor on epsilon

    def noise(block: GramMatrix | Block) -> FloatArray:
        variances = block.law(Fraction(1), grid).variances
        return np.asarray(variances * squares[block.rows] * squares[block.columns])

    return matrix if noise(matrix).mean() < noise(numbers).mean() else numbers
