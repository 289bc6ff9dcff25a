r"""Exact second moments of bounded records: the sufficient statistics of linear regression.

What one record changes bounds the noise of sums of products that are released together.

A record is :math:`z = (1, x, t)`: the constant, the coordinates of a
:class:`~dpbayes_sklearn.convex.design.Design`, the target. The moments are the upper triangle
of :math:`\sum z z^\top`; entries that are public need no noise: the constant's square n, squares
of signs (n again), products of two levels of one column (0). A level's square is the level
itself, so it is released once, as its sum.

Replacing z by z' changes the sums by :math:`zz^\top - z'z'^\top`. With r numbers, s numbers and
signs together, and q columns of levels, three facts bound it.

**Numbers and signs.** Put :math:`a = z - z'`, :math:`b = z + z'`. Then
:math:`z_iz_j - z'_iz'_j = \tfrac12(a_ib_j + b_ia_j)` and :math:`|a_i| + |b_i| \le 2`. So
:math:`\sum_{ij}|\cdot| \le (\sum|a_i|)(\sum|b_j|) \le s^2` by the inequality of the means, or
:math:`(s+1)^2` if the constant joins (it adds 2 to :math:`\sum|b|`, 0 to :math:`\sum|a|`);
squares change by :math:`|a_ib_i| \le 1`, those of signs not at all. The upper triangle is half
the sum of both: :math:`\tfrac12(s^2 + r)`, with the constant :math:`\tfrac12((s+1)^2 + r)`.

**Levels.** Two columns share one 1 in z and one in z': their products change by at most 2. A
column's own sums change by at most 2.

**Levels by numbers.** The product of one column's levels with a number has one entry of size at
most 1 in z and one in z': it changes by at most 2.

**A record without a target** adds nothing to any sum. Where another takes its place, the sums
change as if that one came: by no more than if it were replaced by a record with a target.

**A record that comes or goes** changes the sums by :math:`zz^\top` itself: any entry by at most 1,
and of the entries of one pair of columns, of which levels have several, one at most. Squares of
constant and signs are n, which is then secret and released before. **All records of one person**
change sums by as many times as much.

**Gaussian noise.** The entries are groups g with weights :math:`w_g`. If a record changes them by D
with :math:`\sum_g w_g \|D_g\|^2 \le c^2`, noise of variance :math:`c^2/2\rho w_g` in group g is
:math:`\rho`-zCDP: one noise law, whatever the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray, Positions
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.records import LinearRecords, coordinates
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.noise import DiscreteLaplace, NoiseLaw, SupNorm, least_noise
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import PrivacyUnit


@dataclass(frozen=True)
class Block:
    """Entries of the moments that are released together, with their sensitivities."""

    # rows, columns: Positions in the upper triangle; 0 is the constant, the last is the target.
    rows: Positions
    columns: Positions
    l1_sensitivity: Fraction
    entry_sensitivities: IntArray  # The sensitivity of every single entry: 1 or 2.
    # What one record adds to all entries at most, in L1; by default 1 to each.
    l1_of_one_record: int | None = None
    times: int = 1  # How many records are protected together.

    def protecting(self, unit: PrivacyUnit) -> Block:
        """Return the same sums with the sensitivities for a unit of privacy."""
        if not unit.size_is_secret:
            return replace(self, times=unit.max_records)
        one = Fraction(len(self) if self.l1_of_one_record is None else self.l1_of_one_record)
        return replace(
            self,
            l1_sensitivity=one,
            entry_sensitivities=np.ones_like(self.entry_sensitivities),
            times=unit.max_records,
        )

    @property
    def sensitivity(self) -> Fraction:
        """The L1 sensitivity of all entries."""
        return self.times * self.l1_sensitivity

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, epsilon: Fraction, grid: int) -> NoiseLaw:
        """Return the law of the noise, on sums in units of 1/grid²: whichever varies less."""
        scale = self.times * grid**2 / epsilon
        independent, joint = partial(self._independent_noise, scale), partial(self._sup_norm, scale)
        return least_noise("auto", {"independent": independent, "joint": joint})

    def _independent_noise(self, scale: Fraction) -> DiscreteLaplace:
        own = laplace_scale(self.l1_sensitivity * scale, Fraction(1))
        return DiscreteLaplace.of(own, [len(self)])

    def _sup_norm(self, scale: Fraction) -> SupNorm:
        law = SupNorm(laplace_scale(scale, Fraction(1)), tuple(self.entry_sensitivities.tolist()))
        if law.acceptance <= 0.5:
            raise ValueError("The grid is too coarse for joint noise.")
        return law


def first_block(design: Design) -> Block:
    """Return the sums of the coordinates: sensitivity 2 for a number, sign or column of levels.

    Without an intercept only the levels are needed, whose sums are their squares.
    """
    wanted = np.flatnonzero(design.levels | design.intercept)
    columns = len(np.unique(design.column[wanted]))
    each = np.where(design.levels[wanted], 1, 2)
    return Block(np.zeros(len(wanted), np.intp), wanted + 1, Fraction(2 * columns), each, columns)


def cross_block(design: Design) -> Block:
    """Return the products of coordinates and target, and the two sums of the target.

    A number or sign times t lies in [-1, 1]; the levels of a column times t change by
    abs(t) + abs(t') <= 2. With a = abs(t - t') and b = abs(t + t') <= 2 - a the sums of t and t²
    change by a + ab <= a(3 - a) <= 9/4.
    """
    t = design.width + 1
    return Block(
        np.append(np.arange(1, t), [0, t]),
        np.full(t + 1, t),
        2 * len(design.features) + Fraction(9, 4),
        np.append(np.full(t - 1, 2), [2, 1]),
        len(design.features) + 2,
    )


def second_block(design: Design) -> Block:
    r"""Return the products of the coordinates: :math:`\tfrac12(s^2 + r) + q(q-1) + 2qs`."""
    r, s, q = _counts(design)
    rows, columns, each = _products(design)
    l1 = Fraction(s * s + r, 2) + q * (q - 1) + 2 * q * s
    one_record = s * (s - 1) // 2 + r + q * (q - 1) // 2 + q * s
    return Block(rows + 1, columns + 1, l1, each, one_record)


def whole_block(design: Design) -> Block:
    r"""Return the whole upper triangle at once, the target counted as a number.

    :math:`\tfrac12((s+\iota)^2 + r) + q(q+1) + 2qs`, with :math:`\iota = 1` for an intercept; for
    p numbers :math:`p(p+1)/2` without an intercept and :math:`((p+1)^2 + p)/2` with it.
    """
    r, s, q = _counts(design)
    first, second, cross = first_block(design), second_block(design), cross_block(design)
    r, s = r + 1, s + 1  # the target
    l1 = Fraction((s + design.intercept) ** 2 + r, 2) + q * (q + 1) + 2 * q * s
    parts = (first, second, cross)
    whole = Block(
        np.concatenate([b.rows for b in parts]),
        np.concatenate([b.columns for b in parts]),
        l1,
        np.concatenate([b.entry_sensitivities for b in parts]),
        sum(b.l1_of_one_record or 0 for b in parts),
    )
    if design.intercept:
        return whole
    # without the sum of the target; the L1 sensitivity can only shrink
    keep = (whole.rows != 0) | (whole.columns != design.width + 1)
    rows, columns, each = whole.rows[keep], whole.columns[keep], whole.entry_sensitivities[keep]
    return replace(whole, rows=rows, columns=columns, entry_sensitivities=each)


def _counts(design: Design) -> tuple[int, int, int]:
    """Return r numbers, s numbers and signs, q columns of levels."""
    q = len(np.unique(design.column[design.levels]))
    return int(design.numbers.sum()), int(design.single.sum()), q


def _products(design: Design) -> tuple[Positions, Positions, IntArray]:
    """Return positions and sensitivities of the products of coordinates that are not public."""
    rows, columns = np.triu_indices(design.width)
    same_column = design.column[rows] == design.column[columns]
    keep = ~same_column | (design.numbers[rows] & (rows == columns))
    rows, columns = rows[keep], columns[keep]
    one = (rows == columns) | (design.levels[rows] & design.levels[columns])
    return rows, columns, np.where(one, 1, 2)


FINEST_GRID = 2**15
"""Steps from 0 to 1 that coordinates are rounded to: far finer than any private noise."""

_MOST_SUM = 2**62  # Sums stay below this, which leaves room for the noise in 64 bits.


def largest_grid(n: int, largest_scale: float) -> int:
    """Return the finest grid whose sums and noise of ``largest_scale`` fit 64-bit integers.

    >>> largest_grid(1000, 1e3), largest_grid(1000, 1e9)
    (32768, 1024)
    """
    grid = FINEST_GRID
    while grid and (n * grid**2 >= _MOST_SUM or largest_scale * grid**2 >= 2**50):
        grid //= 2
    if not grid:
        raise ValueError(
            f"No exact noise of scale {largest_scale:g} is available for {n} samples; "
            "use a larger epsilon or fewer columns."
        )
    return grid


_DOUBLE = 2**53  # Integers up to here are exact in float64.


def gram(records: LinearRecords, grid: int) -> IntArray:
    """Return the sums of zz' in units of 1/grid², exactly, for z = (1, x, t)."""
    return records.asked(_gram, grid=grid)


def plain_gram(records: LinearRecords) -> FloatArray:
    """Return the sums of zz' in floats: not rounded to a grid."""
    return records.asked(_plain_gram)


def _gram(shard: Shard, design: Design, scale: Scale, grid: int) -> IntArray:
    """Return the sums over one shard.

    Coordinates are rounded to integers of at most ``grid`` steps. Products of integer-valued
    doubles are exact while a partial sum stays below 2**53, whatever the order in which BLAS adds
    them; from there the sums go on in 64-bit integers. So neither the order of the rows nor the
    size of a chunk can change a single bit.
    """
    rows_at_once = _DOUBLE // grid**2
    total = np.zeros((design.width + 2,) * 2, np.int64)
    partial = _Products(design.width)
    for x, edge in coordinates(shard, design, scale, grid):
        if partial.rows + len(x) > rows_at_once:
            total += partial.matrix().astype(np.int64)
            partial = _Products(design.width)
        partial.add(x, edge)
    return total + partial.matrix().astype(np.int64)


def _plain_gram(shard: Shard, design: Design, scale: Scale) -> FloatArray:
    total = _Products(design.width)
    for x, edge in coordinates(shard, design, scale):
        total.add(x, edge)
    return total.matrix()


class _Products:
    """Sums of zz' for z = (1, x, t), from chunks of x and of (1, t)."""

    def __init__(self, width: int) -> None:
        self.rows = 0
        self._inner, self._latest = np.zeros((width, width)), np.empty((width, width))
        self._cross = np.zeros((2, width))
        self._outer = np.zeros((2, 2))

    def add(self, x: FloatArray, edge: FloatArray) -> None:
        """Add the records of one chunk."""
        self.rows += len(x)
        # numpy calls syrk for a matrix and its transpose; scipy's would make other threads wait
        self._inner += np.matmul(x.T, x, out=self._latest)
        for total, column in zip(self._cross, edge.T, strict=True):
            total += column @ x
        self._outer += edge.T @ edge

    def matrix(self) -> FloatArray:
        """Return the symmetric matrix of all sums."""
        (one, both), (_, square) = self._outer
        first, last = self._cross
        return np.block(
            [
                [np.full((1, 1), one), first[None], np.full((1, 1), both)],
                [first[:, None], self._inner, last[:, None]],
                [np.full((1, 1), both), last[None], np.full((1, 1), square)],
            ]
        )


@dataclass(frozen=True)
class ReleasedMoments:
    """Moments after noise: public, with the variance of the noise."""

    design: Design
    n: int  # Number of records with a target.
    gram: FloatArray  # (width + 2, width + 2): sums of zz' plus noise, z = (1, x, t).
    # Variance of the noise in every entry; 0 where an entry is public or free of noise.
    variance: FloatArray
    # What was added to every diagonal entry so that the matrix is positive semi-definite.
    increment: float = 0.0


def exact_moments(records: LinearRecords) -> ReleasedMoments:
    """Return the moments when no privacy is asked for: not rounded to a grid either."""
    exact = plain_gram(records)
    n = max(1, records.n - records.n_missing)
    return ReleasedMoments(records.design, n, exact, np.zeros(exact.shape))


class Products(Protocol):
    """Entries of the moments that are released together."""

    @property
    def rows(self) -> Positions:
        """Rows of the upper triangle."""

    @property
    def columns(self) -> Positions:
        """Columns of the upper triangle."""


class NoisyMoments(NamedTuple):
    """Moments with their public entries only, to be filled with noisy ones."""

    design: Design
    n: int
    gram: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, design: Design, n: int) -> NoisyMoments:
        """Return moments without any entry."""
        size = design.width + 2
        return cls(design, n, np.zeros((size, size)), np.zeros((size, size)))

    def put(self, block: Products, sums: FloatArray, variance: FloatArray) -> None:
        """Fill a block and its mirror image, then what is public or known twice."""
        for matrix, values in ((self.gram, sums), (self.variance, variance)):
            matrix[block.rows, block.columns] = values
            matrix[block.columns, block.rows] = values
        self._put_public()
        self._put_levels()

    def _put_public(self) -> None:
        """Put n for the constant and the squares of signs, 0 for products of two levels."""
        design, x = self.design, slice(1, -1)
        apart = (design.column[:, None] == design.column) & design.levels
        np.fill_diagonal(apart, False)
        ones = np.concatenate([[0], 1 + np.flatnonzero(design.signs)])
        for matrix, n in ((self.gram, float(self.n)), (self.variance, 0.0)):
            matrix[x, x][apart] = 0.0
            matrix[ones, ones] = n

    def _put_levels(self) -> None:
        """Average the sum of a level and the sum of its squares: a level's square is the level."""
        levels = 1 + np.flatnonzero(self.design.levels)
        values = np.stack([self.gram[0, levels], self.gram[levels, levels]])
        errors = np.stack([self.variance[0, levels], self.variance[levels, levels]])
        with np.errstate(divide="ignore"):
            weights = np.where(errors > 0, 1 / errors, 0.0)
        released = weights.sum(axis=0) > 0  # both are 0 where epsilon is so large that noise is
        weights[:, ~released] = 0.5
        average = (weights * values).sum(axis=0) / weights.sum(axis=0)
        error = np.where(released, 1 / weights.sum(axis=0), 0.0)
        for matrix, both in ((self.gram, average), (self.variance, error)):
            matrix[0, levels] = matrix[levels, 0] = matrix[levels, levels] = both

    def released(self, increment: float = 0.0) -> ReleasedMoments:
        """Return the filled moments."""
        raised = self.gram + increment * np.eye(len(self.gram))
        return ReleasedMoments(self.design, self.n, raised, self.variance, increment)
