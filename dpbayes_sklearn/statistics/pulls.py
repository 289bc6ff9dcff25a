r"""How the records pull at the coefficients of a robust regression: exact sums over one shard.

The loss of a record is Huber's: with the residual :math:`r = t - w^\top x` and a limit h it is
:math:`r^2/2` up to h and grows linearly from there. Its negative gradient, the *pull*
:math:`x\,\psi(r)` with :math:`\psi(r) = \max(-h, \min(r, h))`, has no entry above h, wherever the
coefficients are; its second derivative is :math:`xx^\top` where :math:`|r| < h`, and 0 beyond.

Sums must not depend on the order of the records. So coefficients and pulls are split into two
integers of some twenty bits each, whose products with the coordinates are exact in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.statistics.design import Design, Scale
from dpbayes_sklearn.statistics.moment_sums import coordinates
from dpbayes_sklearn.statistics.windows import Window, Windows

__all__ = ["LATTICE", "Pulls", "on_lattice", "pull_sums", "rounding"]

_HALF = 2.0**22  # coefficients are so many parts, and those so many parts again
_LARGEST = 2.0**16  # of all coefficients together: none in units of the windows are larger
_COARSE, _FINE = 2.0**5, 2.0**20  # likewise of a pull, in steps of the grid
_ROWS = 1 << 16  # at a time: then no partial sum exceeds 2**53

LATTICE = 1 / _HALF**2
"""Coefficients at which pulls are asked for are multiples of this."""


class Pulls(NamedTuple):
    """All that the records say about one set of coefficients.

    Attributes
    ----------
    pull : array of shape (width + 1,)
        The sum of x ψ(r), of the constant first.
    curvature : array of shape (width + 1, width + 1)
        The sum of xx' over the records whose residual is below the limit.
    rows : int
        Number of records.
    """

    pull: FloatArray
    curvature: FloatArray
    rows: int

    @classmethod
    def read(cls, sums: IntArray, grid: int) -> Pulls:
        """Return what ``pull_sums`` has added up."""
        rows, (coarse, fine), products = int(sums[0, 0]), sums[1:3], sums[3:]
        pull = (coarse / _COARSE + fine / (_COARSE * _FINE)) / grid**2
        return cls(pull, products / grid**2, rows)


def rounding(grid: int) -> float:
    """Return the error of one record's pull, at most, from the rounding of pulls and residuals."""
    return 1 / (_COARSE * _FINE * grid)


def on_lattice(coefficients: FloatArray) -> FloatArray:
    """Return the nearest coefficients at which pulls can be asked for."""
    most = min(_LARGEST / len(coefficients), 2.0**8)
    steps: FloatArray = np.rint(np.clip(coefficients, -most, most) / LATTICE)
    return steps * LATTICE


def pull_sums(
    shard: Shard,
    design: Design,
    scale: Scale,
    grid: int,
    window: Window,
    windows: Windows,
    coefficients: FloatArray,
    limit: int,
) -> IntArray:
    """Return rows, coarse and fine parts of the pulls, and the products, one below the other.

    ``limit`` is in steps of the grid, ``coefficients`` are (constant, coordinates) on the lattice.
    """
    size = design.width + 1
    whole = np.rint(coefficients * _HALF)
    parts = np.column_stack([whole, np.rint((coefficients * _HALF - whole) * _HALF)])
    total = np.zeros((size + 3, size), np.int64)
    for x, edge in coordinates(shard, design, scale, window, grid, windows):
        for first in range(0, len(x), _ROWS):
            rows = slice(first, first + _ROWS)
            z = np.column_stack([edge[rows, 0], x[rows]])
            coarse, fine = (z @ parts).T
            residual = (edge[rows, 1] * _HALF - coarse) / _HALF - fine / _HALF**2
            pull = np.clip(residual, -limit, limit)
            upper = np.rint(pull * _COARSE)
            lower = np.rint((pull * _COARSE - upper) * _FINE)
            total[0, 0] += len(z)
            total[1:3] += (np.stack([upper, lower]) @ z).astype(np.int64)
            z *= (np.abs(residual) < limit)[:, None]
            inside = dsyrk(1.0, z.T)
            total[3:] += (np.triu(inside) + np.triu(inside, 1).T).astype(np.int64)
    return total
