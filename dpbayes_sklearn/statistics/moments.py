"""Exact second moments of bounded records: the sufficient statistics of linear regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.statistics.design import Design, Scale
from dpbayes_sklearn.statistics.moment_blocks import whole_block

__all__ = [
    "GRID",
    "WHOLE",
    "Moments",
    "Predictive",
    "ReleasedMoments",
    "Window",
    "check_grid",
    "largest_grid",
]


GRID = 2**15
"""Steps from 0 to 1 that coordinates are rounded to: far finer than any private noise."""

_INT64 = 2**62  # sums stay below it, which leaves room for the noise
_DOUBLE = 2**53  # integers up to here are exact in float64
_TARGETS = 1 << 15  # targets mapped at a time
_FINE = 2.0**20  # steps from 0 to 1 that coefficients are rounded to
_LARGE = 2.0**6  # no larger coefficient can stand for a regression on this scale


def largest_grid(n: int, largest_scale: float) -> int:
    """Return the finest grid whose sums and noise of ``largest_scale`` fit 64-bit integers.

    >>> largest_grid(1000, 1e3), largest_grid(1000, 1e9)
    (32768, 1024)
    """
    grid = GRID
    while grid and (n * grid**2 >= _INT64 or largest_scale * grid**2 >= 2**50):
        grid //= 2
    if not grid:
        raise ValueError(
            f"No exact noise of scale {largest_scale:g} is available for {n} samples; "
            "use a larger epsilon or fewer columns."
        )
    return grid


def check_grid(n: int, grid: int) -> None:
    """Refuse more records than 64-bit sums on this grid can hold."""
    if n * grid**2 >= _INT64:
        raise ValueError(f"{n} samples are too many for exact sums on a grid of {grid}.")


class Window(NamedTuple):
    """A range of the target, on its own scale, that is mapped to [-1, 1] around ``centre``."""

    low: float = -1.0
    high: float = 1.0
    centre: float = 0.0

    @property
    def half(self) -> float:
        """Return the distance from the centre to the farther end."""
        return max(self.high - self.centre, self.centre - self.low)

    def map(self, y: FloatArray) -> FloatArray:
        """Return clipped targets as numbers in [-1, 1]."""
        mapped = (np.clip(y, self.low, self.high) - self.centre) / self.half
        return np.clip(mapped, -1.0, 1.0)


WHOLE = Window()
"""The target as its bounds have it."""


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
    """

    coefficients: FloatArray
    noise: float
    reach: float


@dataclass(frozen=True, repr=False)
class Moments:
    """Records whose sums of products can be asked for.

    **Sensitive.**

    The records stay until the mechanism has asked for its sums, because a mechanism may first
    release where the target lies and then clip the target to that window.

    Attributes
    ----------
    design : Design
        What the columns of ``table`` mean.
    table : Table
        The features.
    y : array of shape (n,)
        The target; NaN counts as the middle of its bounds.
    scale : Scale
        The map of the target's bounds to [-1, 1].
    start : int
        The number of records before these, if these are a part of all.
    """

    design: Design
    table: Table
    y: FloatArray
    scale: Scale
    start: int = 0

    kind: ClassVar[str] = "moments"

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.y)

    def sensitivity(self, unit: str) -> float:
        """Return how far neighbours can move the whole upper triangle; see `moment_blocks`."""
        if unit != "record":
            raise ValueError("Linear regression protects whole records: privacy_unit='record'.")
        return float(whole_block(self.design).together)

    def target_sums(self, grid: int) -> IntArray:
        """Return the sums of y and y² in units of 1/grid², exactly."""
        check_grid(self.n, grid)
        total = np.zeros(2, np.int64)
        for start in range(0, self.n, _TARGETS):
            steps = np.rint(self._target(slice(start, start + _TARGETS)) * grid).astype(np.int64)
            total += (grid * steps.sum(), (steps * steps).sum())
        return total

    def gram(self, grid: int, window: Window) -> IntArray:
        """Return the sums of zz' in units of 1/grid², exactly, for z = (1, x, t).

        Coordinates are rounded to integers of at most ``grid`` steps. Products of integer-valued
        doubles are exact while a partial sum stays below 2**53, whatever the order in which BLAS
        adds them; from there the sums go on in 64-bit integers. So neither the order of the rows
        nor the size of a chunk can move a single bit.
        """
        check_grid(self.n, grid)
        rows_at_once = _DOUBLE // grid**2
        total = np.zeros((self.design.width + 2,) * 2, np.int64)
        partial = _Products(self.design.width)
        for x, edge in self._records(window, grid):
            if partial.rows + len(x) > rows_at_once:
                total += partial.matrix().astype(np.int64)
                partial = _Products(self.design.width)
            partial.add(x, edge)
        return total + partial.matrix().astype(np.int64)

    def without_noise(self) -> ReleasedMoments:
        """Return the moments when no privacy is asked for: not rounded to the grid either."""
        gram = self.plain_gram()
        return ReleasedMoments(self.design, self.n, gram, np.zeros(gram.shape), WHOLE)

    def plain_gram(self) -> FloatArray:
        """Return the sums of zz' in floats."""
        total = _Products(self.design.width)
        for x, edge in self._records(WHOLE):
            total.add(x, edge)
        return total.matrix()

    def squared_residuals(self, model: Predictive, grid: int, every: int) -> tuple[int, int]:
        """Return the sum of min(1, |y - f|/bound)² in units of 1/grid², and the rows it is over.

        Each square lies in [0, 1]. Only each ``every``-th of all records counts. Rounded
        coefficients make the products of rows and coefficients integers, so that no bit depends
        on a chunk.
        """
        check_grid(self.n, grid)
        steps = np.rint(np.clip(model.coefficients, -_LARGE, _LARGE) * _FINE)
        total = used = 0
        first = -self.start % every
        for rows, x in self.design.chunks(self.table.rows(slice(first, None, every)), grid):
            products = (x @ steps[1:] + grid * steps[0]) / (grid * _FINE)
            y = self._target(slice(first + rows.start * every, first + rows.stop * every, every))
            variance = model.noise + (products[:, 1:] ** 2).sum(axis=1)
            share = np.abs(y - products[:, 0]) / (model.reach * np.sqrt(variance))
            total += int((np.rint(np.minimum(share, 1.0) * grid).astype(np.int64) ** 2).sum())
            used += len(x)
        return total, used

    def _target(self, rows: slice) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (self.y[rows] - self.scale.centre) / self.scale.half
        return np.clip(np.where(np.isnan(scaled), 0.0, scaled), -1.0, 1.0)

    def _records(
        self, window: Window, grid: int | None = None
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield chunks of x and of (1, t), in [-1, 1], or in steps of a grid."""
        first, t = 0, np.empty(0)
        for rows, x in self.design.chunks(self.table, grid):
            if rows.stop > first + len(t):  # targets of several chunks at once
                first = rows.start
                t = window.map(self._target(slice(first, first + max(len(x), _TARGETS))))
                if grid:
                    t = np.rint(grid * t)
            edge = np.full((len(x), 2), float(grid or 1))
            edge[:, 1] = t[rows.start - first : rows.stop - first]
            yield x, edge


class _Products:
    """Sums of zz' for z = (1, x, t), from chunks of x and of (1, t)."""

    def __init__(self, width: int) -> None:
        self.rows = 0
        self._inner = np.zeros((width, width), order="F")
        self._cross = np.zeros((width, 2))
        self._outer = np.zeros((2, 2))

    def add(self, x: FloatArray, edge: FloatArray) -> None:
        """Add the records of one chunk."""
        self.rows += len(x)
        self._outer += edge.T @ edge
        if x.shape[1]:
            self._inner = dsyrk(1.0, x.T, beta=1.0, c=self._inner, overwrite_c=True)
            self._cross += x.T @ edge

    def matrix(self) -> FloatArray:
        """Return the symmetric matrix of all sums."""
        inner = np.triu(self._inner) + np.triu(self._inner, 1).T
        (one, both), (_, square) = self._outer
        first, last = self._cross.T
        return np.block(
            [
                [np.full((1, 1), one), first[None], np.full((1, 1), both)],
                [first[:, None], inner, last[:, None]],
                [np.full((1, 1), both), last[None], np.full((1, 1), square)],
            ]
        )


@dataclass(frozen=True)
class ReleasedMoments:
    """Moments after noise: public, with the variance of the noise.

    Attributes
    ----------
    design : Design
    n : int
        Number of records.
    gram : array of shape (width + 2, width + 2)
        Sums of zz' plus noise, z = (1, x, t).
    variance : array of the same shape
        Variance of the noise in every entry; 0 where an entry is public or free of noise.
    window : Window
        Where the target was clipped, and the scale of t.
    increment : float
        What was added to every diagonal entry so that the matrix is positive semi-definite.
    """

    design: Design
    n: int
    gram: FloatArray
    variance: FloatArray
    window: Window
    increment: float = 0.0
