"""Exact second moments of bounded records: the sufficient statistics of linear regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from dpbayes_sklearn.schema.table import Table
from dpbayes_sklearn.statistics.design import Design, Scale
from dpbayes_sklearn.statistics.moment_blocks import whole_block

__all__ = ["GRID", "WHOLE", "Moments", "ReleasedMoments", "Window", "largest_grid"]

FloatArray = npt.NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)

GRID = 2**15
"""Steps from 0 to 1 that coordinates are rounded to: far finer than any private noise."""

_INT64 = 2**62  # sums stay below it, which leaves room for the noise
_DOUBLE = 2**53  # integers up to here are exact in float64


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
    """

    design: Design
    table: Table
    y: FloatArray
    scale: Scale

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

    def target_sums(self, grid: int) -> npt.NDArray[np.int64]:
        """Return the sums of y and y² in units of 1/grid², exactly."""
        self._check(grid)
        total = np.zeros(2, np.int64)
        for start in range(0, self.n, 1 << 16):
            steps = np.rint(self._target(slice(start, start + (1 << 16))) * grid).astype(np.int64)
            total += (grid * steps.sum(), (steps * steps).sum())
        return total

    def gram(self, grid: int, window: Window) -> npt.NDArray[np.int64]:
        """Return the sums of zz' in units of 1/grid², exactly, for z = (1, x, t).

        Coordinates are rounded to integers of at most ``grid`` steps. Products of integer-valued
        doubles are exact while a partial sum stays below 2**53, whatever the order in which BLAS
        adds them; from there the sums go on in 64-bit integers. So neither the order of the rows
        nor the size of a chunk can move a single bit.
        """
        self._check(grid)
        rows_at_once = _DOUBLE // grid**2
        total = np.zeros((self.design.width + 2,) * 2, np.int64)
        partial, rows = np.zeros(total.shape, order="F"), 0
        for z in self._records(window):
            if rows + len(z) > rows_at_once:
                total += partial.astype(np.int64)
                partial, rows = np.zeros(total.shape, order="F"), 0
            z *= grid
            np.rint(z, out=z)
            partial = dsyrk(1.0, z.T, beta=1.0, c=partial, overwrite_c=True)
            rows += len(z)
        return _symmetric(total + partial.astype(np.int64))

    def without_noise(self) -> ReleasedMoments:
        """Return the moments when no privacy is asked for: not rounded to the grid either."""
        total = np.zeros((self.design.width + 2,) * 2, order="F")
        for z in self._records(WHOLE):
            total = dsyrk(1.0, z.T, beta=1.0, c=total, overwrite_c=True)
        return ReleasedMoments(self.design, self.n, _symmetric(total), np.zeros(total.shape), WHOLE)

    def _check(self, grid: int) -> None:
        if self.n * grid**2 >= _INT64:
            raise ValueError(f"{self.n} samples are too many for exact sums on a grid of {grid}.")

    def _target(self, rows: slice) -> FloatArray:
        with np.errstate(over="ignore"):
            scaled = (self.y[rows] - self.scale.centre) / self.scale.half
        return np.clip(np.where(np.isnan(scaled), 0.0, scaled), -1.0, 1.0)

    def _records(self, window: Window) -> Iterator[FloatArray]:
        """Yield chunks of z = (1, x, t), every entry in [-1, 1]."""
        buffer = np.empty((0, 0))
        for rows, x in self.design.chunks(self.table):
            if len(buffer) < len(x):
                buffer = np.empty((len(x), self.design.width + 2))
            z = buffer[: len(x)]
            z[:, 0] = 1.0
            z[:, 1:-1] = x
            z[:, -1] = window.map(self._target(rows))
            yield z


def _symmetric(upper: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the symmetric matrix with this upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


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
