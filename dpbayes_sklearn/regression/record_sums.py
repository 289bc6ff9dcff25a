r"""Exact sums over the records of one shard: products, histograms of distances, gradients.

**A bound on the norm of a record, beside the bounds of its entries.**

The squares of many numbers are hardly ever large in the same record: their sum is close to its
mean. So a bound on the sum that few records exceed is far below the sum of the bounds. A record
that exceeds it is scaled: its numbers and its target are multiplied by the same factor, which
leaves a linear relation between them as it is.

**Gradient and curvature of the loss of a robust regression: exact sums over one shard.**

The loss of a record is Huber's: with the residual :math:`r = t - w^\top x` and a limit h it is
:math:`r^2/2` up to h and grows linearly from there. Its negative gradient
:math:`x\,\psi(r)` with :math:`\psi(r) = \max(-h, \min(r, h))`, has no entry above h, wherever the
coefficients are; its second derivative is :math:`xx^\top` where :math:`|r| < h`, and 0 beyond.

Sums must not depend on the order of the records. So coefficients and clipped residuals are split
into two integers of some twenty bits each, whose products with the coordinates are exact in
float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from dpbayes_sklearn._typing import FloatArray, IntArray, Positions
from dpbayes_sklearn.data.records import A, Shard, with_target
from dpbayes_sklearn.regression.design import WHOLE_WINDOW, Design, Scale, Window, Windows
from dpbayes_sklearn.schema.values import as_numbers

EXCESS_LIMIT = 1.5
"""Excess of a clipped residual over its window is summed up to this many half-widths."""

RADII = 2.0 ** (1 - np.arange(17) / 2)
"""Outer ends of the bins of distance from the centre of a column, on the scale of its bounds."""

# Bits of the mantissa of a double, and the exponent of 1.
_MANTISSA, _BIAS = 52, 1023
_OUTER = 1  # Squares in the outer bin are above 2**1.


def count_distances(values: FloatArray, centres: FloatArray) -> IntArray:
    """Count for every column how many values lie at each distance; the values are overwritten.

    Bin i holds the distances in (RADII[i+1], RADII[i]], the last one all that are nearer. Their
    squares lie in (2**(1-i), 2**(2-i)], so that the exponent of a double tells the bin.

    >>> count_distances(np.array([[1.5], [1.0], [0.8], [0.0]]), np.zeros(1))[:, [0, 1, 2, 16]]
    array([[1, 0, 2, 1]])
    """
    bins = len(RADII)
    values -= centres  # in place: fresh memory costs more than all the rest
    np.square(values, out=values)
    exponents = values.view(np.int64)
    exponents -= 1  # a power of two belongs to the bin below it, as an end of its interval
    exponents >>= _MANTISSA
    outer = _BIAS + _OUTER
    np.clip(exponents, outer - bins + 1, outer, out=exponents)
    cells = np.subtract(outer + bins * np.arange(len(centres)), exponents, out=exponents)
    counts = np.bincount(cells.ravel(), minlength=bins * len(centres))
    return counts.reshape(len(centres), bins)


_DOUBLE = 2**53  # Integers up to here are exact in float64.
_ROUNDING_MARGIN = 2.0**-30  # This part covers the rounding of floats for any number of columns.


@dataclass(frozen=True)
class RowNorm:
    r"""The bound :math:`\sum_j k_j x_j^2 + k_t t^2 \le c` on numbers and target of every record.

    Attributes
    ----------
    squares : tuple of int
        The :math:`k_j` of the coordinates and, last, of the target; 0 for signs and levels.
    limit : int
        The c.
    """

    squares: tuple[int, ...]
    limit: int

    @cached_property
    def _weights(self) -> FloatArray:
        return np.array(self.squares, np.float64)

    @cached_property
    def _scaled(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.squares[:-1])

    def clip(self, x: FloatArray, t: FloatArray, grid: int) -> None:
        """Scale the records beyond the bound, in place; all entries are integers up to ``grid``.

        Scaled entries are rounded towards 0, so that they stay integers within the bound.
        """
        kept, weights = self._scaled, self._weights
        if self.limit >= weights.sum():
            return
        numbers = x if len(kept) == x.shape[1] else x[:, kept]
        most = self.limit * float(grid) ** 2 * (1 - _ROUNDING_MARGIN)
        # the sum of squares is read off faster than the weighted one, which is never larger
        largest = weights[kept].max(initial=0.0) * np.einsum("ij,ij->i", numbers, numbers)
        maybe = np.flatnonzero(largest + weights[-1] * np.square(t) > most)
        norm = self._norms(numbers[maybe], t[maybe], grid)
        far = maybe[norm > most]
        if len(far):
            factor = np.sqrt(most / norm[norm > most])
            x[np.ix_(far, kept)] = np.trunc(x[np.ix_(far, kept)] * factor[:, None])
            t[far] = np.trunc(t[far] * factor)

    def _norms(self, numbers: FloatArray, t: FloatArray, grid: int) -> FloatArray | IntArray:
        """Return the weighted sums of squares, exactly: BLAS may round a row by its neighbours."""
        exact = np.float64 if self._weights.sum() * float(grid) ** 2 <= _DOUBLE else np.int64
        weights = self._weights.astype(exact)
        squares, own = (np.square(each).astype(exact, copy=False) for each in (numbers, t))
        norms: FloatArray | IntArray = squares @ weights[self._scaled] + weights[-1] * own
        return norms


_TARGETS_AT_A_TIME = 1 << 15  # This many targets are mapped at a time.
_COEFFICIENT_STEPS = 2.0**20  # Coefficients are rounded to this many steps from 0 to 1.
_LARGEST_COEFFICIENT = 2.0**6  # No regression on this scale has a larger coefficient.


class Predictive(NamedTuple):
    """A public model whose residuals are asked for."""

    # (width + 1, 1 + k): first those of the mean, then k columns whose products with (1, x) are
    # squared and added to ``noise`` for the predictive variance.
    coefficients: FloatArray
    noise: float
    reach: float  # Residuals are clipped at this many predictive standard deviations.
    windows: Windows  # Where the coordinates are clipped.


# No residual is farther from 0 than this many widths of the target's window.
_LARGEST_RESIDUAL = 4.0


class Baseline(NamedTuple):
    """A released model whose residuals take the place of the target."""

    coefficients: FloatArray  # (width + 1,): in units of the windows.
    window: Window  # Of the target.
    windows: Windows  # Of the coordinates.

    @classmethod
    def of(cls, coefficients: FloatArray, window: Window, windows: Windows) -> Baseline:
        """Return the model of the columns themselves: nothing but they are clipped."""
        return cls(windows.to_plain(coefficients), window, windows.plain)

    @property
    def half(self) -> float:
        """The unit of residuals: the width of the target's window, on the scale of its bounds."""
        return 2 * self.window.half

    @property
    def on_bounds(self) -> FloatArray:
        """The coefficients on the scale of the bounds, constant first."""
        moved = self.windows.to_bounds() @ self.coefficients * self.window.half
        moved[0] += self.window.centre
        return np.asarray(moved)

    def shifted(self, by: float) -> Baseline:
        """Return the model whose residuals are smaller by this."""
        coefficients = self.coefficients.copy()
        coefficients[0] += by * self.half / self.window.half
        return self._replace(coefficients=coefficients)

    def residuals(self, x: FloatArray, y: FloatArray, grid: int) -> FloatArray:
        """Return residuals of scaled targets, for coordinates in steps of the windows.

        Rounded coefficients make the products integers, so that no bit depends on a chunk.
        """
        steps = rounded(self.coefficients, grid)
        fitted = (x @ steps[1:] + grid * steps[0]) / (grid * _COEFFICIENT_STEPS)
        away: FloatArray = (y - self.window.centre - self.window.half * fitted) / self.half
        return np.clip(away, -_LARGEST_RESIDUAL, _LARGEST_RESIDUAL)


def of_known(ask: Callable[[Shard], A], shard: Shard) -> A:
    """Return the answer of the records that have a target: others add nothing to any sum."""
    return ask(with_target(shard, ~np.isnan(as_numbers(shard.target))))


def count_missing(shard: Shard) -> int:
    """Return how many records have no target."""
    return int(np.isnan(as_numbers(shard.target)).sum())


def location_sums(shard: Shard, design: Design, scale: Scale, grid: int) -> IntArray:
    """Return the sums of numbers, signs and target in units of 1/grid², exactly."""
    total = np.zeros(1 + int(design.single.sum()), np.int64)
    for x, y in _scaled(shard, design, scale, grid, levels=False):
        steps = np.append(x.sum(axis=0), np.rint(grid * y).sum())
        total += grid * steps.astype(np.int64)
    return total


def distance_counts(shard: Shard, design: Design, scale: Scale, centres: FloatArray) -> IntArray:
    """Count for numbers and target how many lie at each distance from its centre."""
    total = np.zeros((len(centres), len(RADII)), np.int64)
    is_number = design.numbers[design.single]
    for x, y in _scaled(shard, design, scale, levels=False):
        numbers = x if is_number.all() else x[:, is_number]
        total[:-1] += count_distances(numbers, centres[:-1])
        total[-1:] += count_distances(y[:, None], centres[-1:])
    return total


def largest_counts(shard: Shard, design: Design, scale: Scale) -> IntArray:
    """Count how far the number of a record that is farthest from the middle of its bounds is."""
    total, is_number = np.zeros((1, len(RADII)), np.int64), design.numbers[design.single]
    for x, _ in _scaled(shard, design, scale, levels=False):
        largest = np.abs(x[:, is_number]).max(axis=1, keepdims=True, initial=0.0)
        total += count_distances(largest, np.zeros(1))
    return total


def window_counts(
    shard: Shard, design: Design, windows: Windows, which: Positions, grid: int
) -> IntArray:
    """Count for some coordinates in their windows how many lie at each distance from 0."""
    total = np.zeros((len(which), len(RADII)), np.int64)
    for _, x in design.chunks(shard.table, grid, windows):
        windows.decorrelate(x, grid)
        total += count_distances(x[:, which] / grid, np.zeros(len(which)))
    return total


def residual_sum(shard: Shard, design: Design, scale: Scale, baseline: Baseline, grid: int) -> int:
    """Return the sum of the residuals of a model, clipped to [-1, 1], in units of 1/grid²."""
    total, y = 0, as_numbers(shard.target)
    for rows, x in design.chunks(shard.table, grid, baseline.windows):
        residuals = baseline.residuals(x, scaled_target(y[rows], scale), grid)
        total += int(np.rint(grid * np.clip(residuals, -1.0, 1.0)).astype(np.int64).sum())
    return grid * total


def residual_counts(
    shard: Shard, design: Design, scale: Scale, baseline: Baseline, grid: int
) -> IntArray:
    """Count the distances of a model's residuals from 0."""
    total, y = np.zeros((1, len(RADII)), np.int64), as_numbers(shard.target)
    for rows, x in design.chunks(shard.table, grid, baseline.windows):
        residuals = baseline.residuals(x, scaled_target(y[rows], scale), grid)
        total += count_distances(residuals[:, None], np.zeros(1))
    return total


def clipped_excess(
    shard: Shard, design: Design, scale: Scale, baseline: Baseline, half: float, grid: int
) -> int:
    """Return the sum of what clipping to ``half`` takes of residuals, in units of 1/grid².

    Each is a part, within [-1, 1], of `EXCESS_LIMIT` times ``half``; what is farther out is left
    out.
    """
    total, y = 0, as_numbers(shard.target)
    for rows, x in design.chunks(shard.table, grid, baseline.windows):
        residuals = baseline.residuals(x, scaled_target(y[rows], scale), grid) / half
        excess = (
            np.clip(residuals - np.clip(residuals, -1.0, 1.0), -EXCESS_LIMIT, EXCESS_LIMIT)
            / EXCESS_LIMIT
        )
        total += int(np.rint(grid * excess).astype(np.int64).sum())
    return grid * total


def _scaled(
    shard: Shard, design: Design, scale: Scale, grid: int | None = None, levels: bool = True
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield coordinates and scaled targets."""
    y = as_numbers(shard.target)
    for rows, x in design.chunks(shard.table, grid, levels=levels):
        yield x, scaled_target(y[rows], scale)


def gram(
    shard: Shard,
    design: Design,
    scale: Scale,
    grid: int,
    window: Window,
    windows: Windows | None,
    norm: RowNorm | None = None,
    baseline: Baseline | None = None,
) -> IntArray:
    """Return the sums of zz' in units of 1/grid², exactly, for z = (1, x, t).

    With a baseline, t is the residual of that model, and ``window`` a part of [-1, 1].

    Records whose norm is beyond its bound are scaled. Coordinates are rounded to integers of at
    most ``grid`` steps. Products of integer-valued doubles are exact while a partial sum stays
    below 2**53, whatever the order in which BLAS adds them; from there the sums go on in 64-bit
    integers. So neither the order of the rows nor the size of a chunk can change a single bit.
    """
    rows_at_once = _DOUBLE // grid**2
    total = np.zeros((design.width + 2,) * 2, np.int64)
    partial = _Products(design.width)
    for x, edge in coordinates(shard, design, scale, window, grid, windows, baseline):
        if norm is not None:
            norm.clip(x, edge[:, 1], grid)
        if partial.rows + len(x) > rows_at_once:
            total += partial.matrix().astype(np.int64)
            partial = _Products(design.width)
        partial.add(x, edge)
    return total + partial.matrix().astype(np.int64)


def plain_gram(shard: Shard, design: Design, scale: Scale) -> FloatArray:
    """Return the sums of zz' in floats, for z = (1, x, t)."""
    total = _Products(design.width)
    for x, edge in coordinates(shard, design, scale, WHOLE_WINDOW):
        total.add(x, edge)
    return total.matrix()


def squared_residuals(
    shard: Shard, design: Design, scale: Scale, model: Predictive, grid: int
) -> int:
    """Return the sum of min(1, |y - f|/bound)² in units of 1/grid²: each square is in [0, 1]."""
    total = 0
    for _, share in _residual_shares(shard, design, scale, model, grid):
        total += int((np.rint(share * grid).astype(np.int64) ** 2).sum())
    return total


def weighted_residuals(
    shard: Shard, design: Design, scale: Scale, model: Predictive, grid: int
) -> IntArray:
    """Return the same sum, and those of the squares times x² for every coordinate in its window.

    Each product is in [0, 1], too.
    """
    total = np.zeros(design.width + 1, np.int64)
    plain = model.windows.plain
    for x, share in _residual_shares(shard, design, scale, model, grid):
        x -= grid * plain.centres  # in place: fresh memory costs more than all the rest
        x /= plain.halves
        if model.windows is not plain:
            model.windows.decorrelate(np.rint(np.clip(x, -grid, grid, out=x), out=x), grid)
        np.abs(x, out=x)
        np.minimum(x, grid, out=x)
        x *= share[:, None]
        total[0] += _sum_of_squares(np.rint(grid * share[:, None]), grid)[0]
        total[1:] += _sum_of_squares(np.rint(x, out=x), grid)
    return total


def _sum_of_squares(steps: FloatArray, grid: int) -> IntArray:
    """Return the exact sums of squares of integers up to ``grid``, for every column."""
    total, rows = np.zeros(steps.shape[1], np.int64), _DOUBLE // grid**2
    for first in range(0, len(steps), rows):
        some = steps[first : first + rows]
        total += np.einsum("ij,ij->j", some, some).astype(np.int64)
    return total


def _residual_shares(
    shard: Shard, design: Design, scale: Scale, model: Predictive, grid: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield coordinates clipped to the windows, in steps, and min(1, |y - f|/bound).

    Rounded coefficients make the products of rows and coefficients integers, so that no bit depends
    on a chunk.
    """
    steps = rounded(model.coefficients, grid)
    space = np.empty((0, steps.shape[1]))
    for x, y in _scaled(shard, design, scale, grid):
        if len(x) > len(space):  # at the first chunk; fresh memory costs more than the product
            space = np.empty((len(x), steps.shape[1]))
        products = np.matmul(model.windows.clip(x, grid), steps[1:], out=space[: len(x)])
        products += grid * steps[0]
        products /= grid * _COEFFICIENT_STEPS
        residual, roots = y - products[:, 0], products[:, 1:]
        variance = model.noise + np.square(roots, out=roots).sum(axis=1)
        yield x, np.minimum(np.abs(residual) / (model.reach * np.sqrt(variance)), 1.0)


def rounded(coefficients: FloatArray, grid: int) -> FloatArray:
    """Return coefficients in whole steps, so small that all products with a row are exact."""
    most = min(_LARGEST_COEFFICIENT * _COEFFICIENT_STEPS, _DOUBLE // (grid * len(coefficients)))
    return np.clip(np.rint(coefficients * _COEFFICIENT_STEPS), -most, most)


def scaled_target(y: FloatArray, scale: Scale) -> FloatArray:
    """Return targets on the scale of their bounds, in [-1, 1]."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip((y - scale.centre) / scale.half, -1.0, 1.0)


def coordinates(
    shard: Shard,
    design: Design,
    scale: Scale,
    window: Window,
    grid: int | None = None,
    windows: Windows | None = None,
    baseline: Baseline | None = None,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield chunks of x and of (1, t), in [-1, 1], or in steps of a grid."""
    y, first, t = as_numbers(shard.target), 0, np.empty(0)
    for rows, x in design.chunks(shard.table, grid, windows):
        if rows.stop > first + len(t):  # targets of several chunks at once
            first = rows.start
            t = scaled_target(y[first : first + max(len(x), _TARGETS_AT_A_TIME)], scale)
            if baseline is None:
                t = window.map(t)
            if baseline is None and grid:
                t = np.rint(grid * t)
        edge = np.full((len(x), 2), float(grid or 1))
        edge[:, 1] = t[rows.start - first : rows.stop - first]
        if baseline is not None and grid:
            edge[:, 1] = np.rint(grid * window.map(baseline.residuals(x, edge[:, 1], grid)))
        if windows is not None:  # residuals are those of the columns themselves
            windows.decorrelate(x, grid)
        yield x, edge


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


# A coefficient is a whole number of parts of 1, and a whole number of parts of those.
_COEFFICIENT_PARTS = 2.0**22
# The coefficients together, in units of the windows, are at most this.
_MOST_COEFFICIENTS = 2.0**16
# A clipped residual is likewise a whole number of such parts of a grid step, and of their parts.
_COARSE_PARTS, _FINE_PARTS = 2.0**5, 2.0**20
# This many rows are summed at a time, so that no partial sum exceeds 2**53.
_ROWS_AT_A_TIME = 1 << 16

COEFFICIENT_LATTICE = 1 / _COEFFICIENT_PARTS**2
"""Coefficients at which derivatives are asked for are multiples of this."""


class LossDerivatives(NamedTuple):
    """The first and second derivatives of the loss at some coefficients."""

    negative_gradient: FloatArray  # (width + 1,): the sum of x ψ(r), of the constant first.
    # (width + 1, width + 1): the sum of xx' over the records whose residual is below the limit.
    curvature: FloatArray
    rows: int  # Number of records.

    @classmethod
    def read(cls, sums: IntArray, grid: int) -> LossDerivatives:
        """Return what ``derivative_sums`` has added up."""
        rows, (coarse, fine), products = int(sums[0, 0]), sums[1:3], sums[3:]
        gradient = (coarse / _COARSE_PARTS + fine / (_COARSE_PARTS * _FINE_PARTS)) / grid**2
        return cls(gradient, products / grid**2, rows)


def rounding(grid: int) -> float:
    """Return the error of one record's gradient, at most, from the rounding of residuals."""
    return 1 / (_COARSE_PARTS * _FINE_PARTS * grid)


def on_lattice(coefficients: FloatArray) -> FloatArray:
    """Return the nearest coefficients at which derivatives can be asked for."""
    most = min(_MOST_COEFFICIENTS / len(coefficients), 2.0**8)
    steps: FloatArray = np.rint(np.clip(coefficients, -most, most) / COEFFICIENT_LATTICE)
    return steps * COEFFICIENT_LATTICE


def derivative_sums(
    shard: Shard,
    design: Design,
    scale: Scale,
    grid: int,
    window: Window,
    windows: Windows,
    coefficients: FloatArray,
    limit: int,
) -> IntArray:
    """Return rows, coarse and fine parts of the gradient, and the products, one below the other.

    ``limit`` is in steps of the grid, ``coefficients`` are (constant, coordinates) on the lattice.
    """
    size = design.width + 1
    whole = np.rint(coefficients * _COEFFICIENT_PARTS)
    parts = np.column_stack(
        [whole, np.rint((coefficients * _COEFFICIENT_PARTS - whole) * _COEFFICIENT_PARTS)]
    )
    total = np.zeros((size + 3, size), np.int64)
    for x, edge in coordinates(shard, design, scale, window, grid, windows):
        for first in range(0, len(x), _ROWS_AT_A_TIME):
            rows = slice(first, first + _ROWS_AT_A_TIME)
            z = np.column_stack([edge[rows, 0], x[rows]])
            coarse, fine = (z @ parts).T
            residual = (
                edge[rows, 1] * _COEFFICIENT_PARTS - coarse
            ) / _COEFFICIENT_PARTS - fine / _COEFFICIENT_PARTS**2
            clipped = np.clip(residual, -limit, limit)
            upper = np.rint(clipped * _COARSE_PARTS)
            lower = np.rint((clipped * _COARSE_PARTS - upper) * _FINE_PARTS)
            total[0, 0] += len(z)
            total[1:3] += (np.stack([upper, lower]) @ z).astype(np.int64)
            z *= (np.abs(residual) < limit)[:, None]
            inside = dsyrk(1.0, z.T)
            total[3:] += (np.triu(inside) + np.triu(inside, 1).T).astype(np.int64)
    return total
