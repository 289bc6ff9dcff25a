"""Sums over the records of one shard, exact on a grid: what :class:`Moments` adds up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.schema.domains import as_numbers
from dpbayes_sklearn.statistics.design import Design, Scale
from dpbayes_sklearn.statistics.row_norm import RowNorm
from dpbayes_sklearn.statistics.shells import RADII, count_in_shells
from dpbayes_sklearn.statistics.windows import WHOLE, Window, Windows

__all__ = [
    "Predictive",
    "coordinates",
    "gram",
    "location_sums",
    "plain_gram",
    "rounded",
    "scaled_target",
    "shell_counts",
    "squared_residuals",
]

_DOUBLE = 2**53  # integers up to here are exact in float64
_TARGETS = 1 << 15  # targets mapped at a time
_FINE = 2.0**20  # steps from 0 to 1 that coefficients are rounded to
_LARGE = 2.0**6  # no larger coefficient can stand for a regression on this scale


class Predictive(NamedTuple):
    """A public model whose residuals are asked for.

    Attributes
    ----------
    coefficients : array of shape (width + 1, 1 + k)
        First those of the mean, then k columns whose products with (1, x) are squared and added to
        ``noise`` for the predictive variance.
    noise : float
    reach : float
        Residuals are clipped at so many predictive standard deviations.
    windows : Windows
        Where the coordinates are clipped.
    """

    coefficients: FloatArray
    noise: float
    reach: float
    windows: Windows


def location_sums(shard: Shard, design: Design, scale: Scale, grid: int) -> IntArray:
    """Return the sums of numbers, signs and target in units of 1/grid², exactly."""
    total = np.zeros(1 + int(design.single.sum()), np.int64)
    for x, y in _scaled(shard, design, scale, grid):
        steps = np.append(x.sum(axis=0)[design.single], np.rint(grid * y).sum())
        total += grid * steps.astype(np.int64)
    return total


def shell_counts(shard: Shard, design: Design, scale: Scale, centres: FloatArray) -> IntArray:
    """Count for numbers and target how many lie in each shell around its centre."""
    total = np.zeros((len(centres), len(RADII)), np.int64)
    for x, y in _scaled(shard, design, scale):
        numbers = x if design.numbers.all() else x[:, design.numbers]
        total[:-1] += count_in_shells(numbers, centres[:-1])
        total[-1:] += count_in_shells(y[:, None], centres[-1:])
    return total


def _scaled(
    shard: Shard, design: Design, scale: Scale, grid: int | None = None
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield coordinates and scaled targets."""
    y = as_numbers(shard.target)
    for rows, x in design.chunks(shard.table, grid):
        yield x, scaled_target(y[rows], scale)


def gram(
    shard: Shard,
    design: Design,
    scale: Scale,
    grid: int,
    window: Window,
    windows: Windows | None,
    norm: RowNorm | None = None,
) -> IntArray:
    """Return the sums of zz' in units of 1/grid², exactly, for z = (1, x, t).

    Records whose norm is beyond its bound are scaled. Coordinates are rounded to integers of at
    most ``grid`` steps. Products of integer-valued doubles are exact while a partial sum stays
    below 2**53, whatever the order in which BLAS adds them; from there the sums go on in 64-bit
    integers. So neither the order of the rows nor the size of a chunk can change a single bit.
    """
    rows_at_once = _DOUBLE // grid**2
    total = np.zeros((design.width + 2,) * 2, np.int64)
    partial = _Products(design.width)
    for x, edge in coordinates(shard, design, scale, window, grid, windows):
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
    for x, edge in coordinates(shard, design, scale, WHOLE):
        total.add(x, edge)
    return total.matrix()


def squared_residuals(
    shard: Shard, design: Design, scale: Scale, model: Predictive, grid: int
) -> int:
    """Return the sum of min(1, |y - f|/bound)² in units of 1/grid².

    Each square lies in [0, 1]. Rounded coefficients make the products of rows and coefficients
    integers, so that no bit depends on a chunk.
    """
    steps = rounded(model.coefficients, grid)
    total, space = 0, np.empty((0, steps.shape[1]))
    for x, y in _scaled(shard, design, scale, grid):
        if len(x) > len(space):  # at the first chunk; fresh memory costs more than the product
            space = np.empty((len(x), steps.shape[1]))
        products = np.matmul(model.windows.clip(x, grid), steps[1:], out=space[: len(x)])
        products += grid * steps[0]
        products /= grid * _FINE
        residual, roots = y - products[:, 0], products[:, 1:]
        variance = model.noise + np.square(roots, out=roots).sum(axis=1)
        share = np.abs(residual) / (model.reach * np.sqrt(variance))
        total += int((np.rint(np.minimum(share, 1.0) * grid).astype(np.int64) ** 2).sum())
    return total


def rounded(coefficients: FloatArray, grid: int) -> FloatArray:
    """Return coefficients in whole steps, so small that all products with a row are exact."""
    most = min(_LARGE * _FINE, _DOUBLE // (grid * len(coefficients)))
    return np.clip(np.rint(coefficients * _FINE), -most, most)


def scaled_target(y: FloatArray, scale: Scale) -> FloatArray:
    """Return targets on the scale of their bounds, in [-1, 1]; a missing one is the middle."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (y - scale.centre) / scale.half
    return np.clip(np.where(np.isnan(scaled), 0.0, scaled), -1.0, 1.0)


def coordinates(
    shard: Shard,
    design: Design,
    scale: Scale,
    window: Window,
    grid: int | None = None,
    windows: Windows | None = None,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield chunks of x and of (1, t), in [-1, 1], or in steps of a grid."""
    y, first, t = as_numbers(shard.target), 0, np.empty(0)
    for rows, x in design.chunks(shard.table, grid, windows):
        if rows.stop > first + len(t):  # targets of several chunks at once
            first = rows.start
            t = window.map(scaled_target(y[first : first + max(len(x), _TARGETS)], scale))
            if grid:
                t = np.rint(grid * t)
        edge = np.full((len(x), 2), float(grid or 1))
        edge[:, 1] = t[rows.start - first : rows.stop - first]
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
