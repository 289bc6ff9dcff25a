r"""Exact sums over records in turned coordinates: histograms, scores, products, gradients.

A public matrix maps a record :math:`(1, x)` to coordinates z. Coordinates x are whole numbers of
1/GRID and the matrix is rounded to so few bits that every product of a row is an exact float, in
any order. Everything after that is computed record by record, entry by entry. So what a record
adds does not depend on other records, nor on how they are read.

What is added up is a vector v of a record, at most as long as a public limit. It is counted in
steps of the limit and rounded towards zero, which lets no vector grow: sums are whole numbers, and
a record changes them by a vector of at most ``STEPS`` steps.

- Products: :math:`v = z\min(1, \ell/\|z\|)`, added up as :math:`vv^\top`.
- Score: :math:`v = z\,r\min(1, \ell/\|z\,r\|)` with the residual r of a released model.
- Weighted products: those of the vectors of the score.
- Products of pairs: those of all :math:`z_iz_j`, a vector that is as long as :math:`\|z\|^2`.

*Guarantee.* *Precondition*: matrix, model and limits are public, or were released before; m records
come or go (a replaced record goes, and another comes), and S is ``STEPS``. *Claim*: pure
:math:`\varepsilon`-DP for a sum of vectors with ball noise of scale :math:`mS/\varepsilon`, a sum
of products with matrix noise of scale :math:`mS^2/\varepsilon`, and histograms of c columns with
discrete Laplace noise of scale :math:`mc/\varepsilon`. *Proof*: v has a length of at most S, and
:math:`vv^\top` a nuclear norm of :math:`\|v\|^2 \le S^2`; in a histogram of every column a record
has one count. By the triangle inequality m records change the sums by m times as much, in the norm
with which the density of the noise falls (:mod:`~dpbayes_sklearn.noise.ball`,
:mod:`~dpbayes_sklearn.noise.matrix`, :mod:`~dpbayes_sklearn.noise.discrete_laplace`). ∎
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.records import scaled_target
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.noise import DiscreteLaplace, MatrixNoise, NoiseLaw
from dpbayes_sklearn.noise.ball import BallNoise
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema.values import as_numbers

GRID = 2**15
"""Steps from 0 to 1 of coordinates on the scale of their bounds."""
STEPS = 2**15
"""A vector as long as its limit has this many steps."""
BINS = 32
"""Even bins between the bounds of a number, or of the target."""
_EXACT = 2.0**53  # Whole numbers up to here are exact floats.
_SPARE = 1 - 2.0**-30  # This factor covers the rounding of floats in a length.
_ROWS = 1 << 13  # So many rows at a time keep every partial sum of products below 2^53.


@dataclass(frozen=True)
class Coordinates:
    """A public linear map of (1, x), rounded to a lattice on which products are exact."""

    steps: FloatArray  # (p, width + 1), whole numbers.
    unit: float  # A power of two.

    @classmethod
    def of(cls, matrix: FloatArray) -> Coordinates:
        """Round a matrix (p, width + 1), whose columns belong to the constant and x in [-1, 1].

        >>> Coordinates.of(np.array([[0.1, 3.0]])).matrix.round(6).tolist()
        [[0.1, 3.0]]
        """
        largest = float(np.abs(matrix).sum(axis=1).max(initial=1e-300))
        bits = math.floor(math.log2(_EXACT / (2 * GRID * largest)))
        return cls(np.rint(matrix * 2.0**bits), 2.0**-bits)

    @property
    def matrix(self) -> FloatArray:
        """The map in floats."""
        return self.steps * self.unit

    def of_rows(self, x: FloatArray) -> FloatArray:
        """Return z, of shape (p, rows), of coordinates in whole numbers of 1/GRID."""
        z = self.steps[:, 1:] @ x.T
        z += GRID * self.steps[:, :1]
        z *= self.unit / GRID
        return z


@dataclass(frozen=True)
class Histograms:
    """Histograms: a record is in one bin of each column, or only in that of missing targets."""

    columns: int
    sizes: tuple[int, ...]  # Of the arrays of counts.

    def law(self, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return the noise: a record adds one to each column, so their number is the L1 change."""
        return DiscreteLaplace.of(laplace_scale(unit.n_changed * self.columns, epsilon), self.sizes)


@dataclass(frozen=True)
class VectorSum:
    """A sum of vectors of at most ``STEPS`` steps."""

    size: int
    steps: int = STEPS

    def law(self, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return the noise: a record moves the sum by a vector of that length."""
        return BallNoise(laplace_scale(unit.n_changed * self.steps, epsilon), self.size)


@dataclass(frozen=True)
class ProductSum:
    """A sum of vv' over vectors of at most ``STEPS`` steps."""

    size: int
    steps: int = STEPS

    def law(self, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return the noise: a record moves the sum by a matrix of trace at most STEPS²."""
        scale = laplace_scale(unit.n_changed * self.steps**2, epsilon)
        return MatrixNoise(scale, (Fraction(1),) * self.size)


class Target(NamedTuple):
    """The public units of the target: it is counted in deviations from a centre."""

    centre: float
    deviation: float

    def map(self, y: FloatArray) -> FloatArray:
        """Return scaled targets in deviations."""
        return np.asarray((y - self.centre) / self.deviation)

    @property
    def farthest(self) -> float:
        """The largest target, in deviations from the centre."""
        return (1 + abs(self.centre)) / self.deviation


UNIT_TARGET = Target(0.0, 1.0)
"""The target as its bounds have it."""


def lengths(z: FloatArray) -> FloatArray:
    """Return the length of every column: added up row by row, so that columns do not mix."""
    total = np.zeros(z.shape[1])
    for row in z:
        total += row * row
    return np.sqrt(total)


def shrinking(length: FloatArray, limit: float) -> FloatArray:
    """Return the factors that make no length exceed the limit."""
    return np.minimum(1.0, limit * _SPARE / np.maximum(length, 1e-300))


def read(
    shard: Shard, design: Design, scale: Scale, coordinates: Coordinates
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield coordinates z (p, rows) and scaled targets."""
    y = as_numbers(shard.target)
    for rows, x in design.chunks(shard.table, GRID):
        for first in range(0, len(x), _ROWS):
            some = slice(first, first + _ROWS)
            own = y[rows.start + first : rows.start + first + len(x[some])]
            yield coordinates.of_rows(x[some]), scaled_target(own, scale)


def count_evenly(shard: Shard, design: Design, scale: Scale) -> IntArray:
    """Count targets and numbers in even bins between their bounds; the target's come first."""
    numbers = np.flatnonzero(design.numbers)
    total, y = np.zeros((1 + len(numbers), BINS), np.int64), as_numbers(shard.target)
    width = 2 * GRID // BINS
    for rows, x in design.chunks(shard.table, GRID):
        t = np.rint(scaled_target(y[rows], scale) * GRID)
        for count, values in zip(total, [t, *x.T[numbers]], strict=True):
            place = np.minimum((values + GRID).astype(np.int64) // width, BINS - 1)
            count += np.bincount(place, minlength=BINS)
    return total


class Residuals(NamedTuple):
    """A released model, and the coordinates in which its residuals are asked for."""

    coordinates: Coordinates  # Those of z, and last the row of the fitted values.
    target: Target

    @classmethod
    def of(cls, matrix: FloatArray, w: FloatArray, target: Target) -> Residuals:
        """Return the residuals of w, which is in the coordinates that a matrix makes."""
        return cls(Coordinates.of(np.vstack([matrix, w @ matrix])), target)

    def chunks(
        self, shard: Shard, design: Design, scale: Scale
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield z (p, rows) and residuals in deviations of the target."""
        for z, y in read(shard, design, scale, self.coordinates):
            yield z[:-1], self.target.map(y) - z[-1]


def count_tails(
    shard: Shard, design: Design, scale: Scale, residuals: Residuals, edges: FloatArray
) -> IntArray:
    r"""Count scores and lengths of records by their size.

    Of p coordinates, a score is :math:`r\|z\|/\sqrt p` and a length
    :math:`\|z\|/\sqrt p`. The first two rows are of positive and of negative scores.
    """
    total = np.zeros((3, len(edges) + 1), np.int64)
    for z, r in residuals.chunks(shard, design, scale):
        size = lengths(z) / math.sqrt(len(z))
        place = np.searchsorted(edges, np.abs(r) * size, side="right")
        for row, which in enumerate((r >= 0, r < 0)):
            total[row] += np.bincount(place[which], minlength=total.shape[1])
        leverage = np.searchsorted(edges, size, side="right")
        total[2] += np.bincount(leverage, minlength=total.shape[1])
    return total


def sum_scores(
    shard: Shard, design: Design, scale: Scale, residuals: Residuals, limit: float
) -> IntArray:
    """Return the sum of z r, shortened to the limit, in steps of limit/STEPS."""
    total = np.zeros(len(residuals.coordinates.steps) - 1, np.int64)
    for z, r in residuals.chunks(shard, design, scale):
        z *= r * shrinking(np.abs(r) * lengths(z), limit) * (STEPS / limit)
        total += np.trunc(z).sum(axis=1).astype(np.int64)
    return total


def sum_products(
    shard: Shard,
    design: Design,
    scale: Scale,
    residuals: Residuals,
    limit: float,
    weighted: bool = False,
    paired: bool = False,
) -> IntArray:
    """Return the upper triangle of the sum of vv', in squares of limit/STEPS.

    v is z, or the vector of the score if ``weighted``, or that of ``pairs``, shortened to the
    limit.
    """
    p = len(residuals.coordinates.steps) - 1
    p = p * (p + 1) // 2 if paired else p
    total = np.zeros((p, p), np.int64)
    for z, r in residuals.chunks(shard, design, scale):
        z = pairs(z) if paired else z
        factor = r if weighted else 1.0
        z *= factor * shrinking(np.abs(factor) * lengths(z), limit) * (STEPS / limit)
        total += dsyrk(1.0, np.trunc(z, out=z).T, trans=1).astype(np.int64)
    return np.asarray(total[np.triu_indices(p)])


def pairs(z: FloatArray) -> FloatArray:
    """Return all products of two coordinates, those of different ones times the root of 2.

    >>> lengths(pairs(np.array([[3.0], [4.0]]))).tolist()
    [25.0]
    """
    rows, columns = np.triu_indices(len(z))
    return np.asarray(z[rows] * z[columns] * np.where(rows < columns, math.sqrt(2), 1.0)[:, None])


def symmetric(upper: AnyArray) -> FloatArray:
    """Return the matrix of an upper triangle.

    >>> symmetric(np.array([1, 2, 3])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    p = (math.isqrt(8 * len(upper) + 1) - 1) // 2
    matrix = np.zeros((p, p))
    matrix[np.triu_indices(p)] = upper
    return np.asarray(matrix + np.triu(matrix, 1).T)
