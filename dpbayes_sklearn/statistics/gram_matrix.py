r"""The whole matrix of second moments, with noise that suits it as a matrix.

Weigh the coordinates, :math:`z_i \to a_i z_i`. A replaced record changes :math:`\sum zz^\top` by
:math:`zz^\top - z'z'^\top`, whose nuclear norm is at most :math:`\|z\|^2 + \|z'\|^2 \le 2c`, where

.. math:: c = a_0^2 + \sum_{\text{numbers, signs}} a_j^2 +
    \sum_{\text{columns of levels}} a_j^2 + a_t^2,

since numbers, signs and the target lie in [-1, 1] and one level of a column is 1. So
:class:`~dpbayes_sklearn.laws.matrix.MatrixNoise` of scale :math:`2c/\varepsilon` is
:math:`\varepsilon`-private, however many entries there are.

Numbers and target seldom are at the ends of their windows all at once, so their part of c is
bounded by what few records exceed (:mod:`~dpbayes_sklearn.statistics.row_norm`). Their weights make
up for windows of different reach: in units of its standard deviation every number counts the same,
and its weighted square is u on average and varies by :math:`\sqrt 2 u`, if it is normal. Where
target and numbers lie was released before, so weights and bound are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.laws import MatrixNoise, NoiseLaw
from dpbayes_sklearn.laws.scales import laplace_scale
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.moment_blocks import Block, whole_block
from dpbayes_sklearn.statistics.row_norm import RowNorm

__all__ = ["GramMatrix", "gram_block"]

# Squared weights: the more, the less noise in what concerns a coordinate, and the more elsewhere.
# A sign varies more than a number in its window, and a sum matters less than a product.
_NUMBER, _SIGN, _LEVEL, _CONSTANT = 1.0, 0.3, 0.5, 0.3
_TARGET = 1.5  # times the root of the sum over all columns: every product with it is needed
_REACH = 2.5  # standard deviations in the window of a number with the weight above

_STEPS = 32  # weights are multiples of 1/32
_USUAL = 0.2  # u
_MOST_STRETCH = 4.0


@dataclass(frozen=True)
class GramMatrix:
    """All entries of the moments at once.

    Attributes
    ----------
    rows, columns : arrays of int
        Positions in the upper triangle; 0 is the constant, the last is the target.
    weights : tuple of Fraction
        The a_i of the coordinates that are there.
    fixed : Fraction
        The part of the bound that constant, signs and levels have in every record.
    norm : RowNorm
        Which records are scaled so that numbers and target do not exceed their part of the bound.
    """

    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    weights: tuple[Fraction, ...]
    fixed: Fraction
    norm: RowNorm

    @property
    def bound(self) -> Fraction:
        """The c: no record has a larger weighted square."""
        return self.fixed + Fraction(self.norm.limit, _STEPS**2)

    @classmethod
    def of(cls, design: Design, reach: FloatArray | None = None, deviations: float = 1.0) -> GramMatrix:
        """Return the matrix of a design, with public weights.

        Parameters
        ----------
        design : Design
        reach : array of shape (width + 1,), optional
            Standard deviations that the windows of the coordinates and the target reach.
        deviations : float
            Standard deviations by which the squares of numbers and target may exceed their mean:
            with more data fewer records are scaled.

        >>> from dpbayes_sklearn.schema import Interval
        >>> matrix = GramMatrix.of(Design((Interval(0, 1),) * 3))
        >>> len(matrix), [str(a) for a in matrix.weights], float(matrix.bound)
        (15, ['9/16', '1', '1', '1', '51/32'], 2.3)
        """
        kinds = np.where(design.numbers, _NUMBER, np.where(design.signs, _SIGN, _LEVEL))
        _, first = np.unique(design.column, return_index=True)
        target = _TARGET * math.sqrt(max(kinds[first].sum(), _NUMBER))
        squares = np.append(kinds, target)
        scaled = np.append(design.numbers, True)
        norm = _USUAL * squares[scaled]
        limit = norm.sum() + deviations * math.sqrt(2 * (norm**2).sum())
        if reach is not None:
            stretch = np.clip(reach / _REACH, 1 / _MOST_STRETCH, _MOST_STRETCH)
            squares = squares * np.where(scaled, stretch**2, 1.0)
        steps = np.rint(_STEPS * np.sqrt(np.append(_CONSTANT, squares))).astype(int)
        present = np.arange(0 if design.intercept else 1, design.width + 2)
        # of all levels of a column one counts: their weights are the same
        single = first[~design.numbers[first]] + 1
        fixed = sum(int(steps[i]) ** 2 for i in [*present[present == 0], *single])
        whole = steps[1:] ** 2 * scaled
        rows, columns = np.triu_indices(len(present))
        return cls(
            present[rows],
            present[columns],
            tuple(Fraction(int(steps[i]), _STEPS) for i in present),
            Fraction(fixed, _STEPS**2),
            RowNorm(tuple(whole.tolist()), int(min(limit * _STEPS**2, whole.sum()))),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, epsilon: Fraction, grid: int) -> NoiseLaw:
        """Return the law of the noise, on sums in units of 1/grid²."""
        return MatrixNoise(laplace_scale(2 * self.bound * grid**2, epsilon), self.weights)


def gram_block(
    design: Design, reach: FloatArray | None = None, deviations: float = 1.0
) -> GramMatrix | Block:
    """Return what has less noise, each entry counted by its weights: as a matrix or as numbers."""
    matrix, numbers = GramMatrix.of(design, reach, deviations), whole_block(design)
    squares = np.zeros(design.width + 2)
    squares[np.unique(matrix.rows)] = [float(weight) ** 2 for weight in matrix.weights]
    grid = 2**10  # the comparison does not depend on it, nor on epsilon

    def noise(block: GramMatrix | Block) -> FloatArray:
        variances = block.law(Fraction(1), grid).variances
        return np.asarray(variances * squares[block.rows] * squares[block.columns])

    return matrix if noise(matrix).mean() < noise(numbers).mean() else numbers
