"""Counts that are not negative and agree with each other, nearest to noisy character sums.

All sums have the same noise, so the nearest in their own coordinates is generalised least squares
under the covariance of the noise. The dual has one non-negative multiplier per cell: with tables
T(c) linear in the sums c, the fit is c = z + T'(multipliers), and multipliers grow where cells are
negative. Accelerated projected gradient steps find them (Beck and Teboulle 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.fourier import Blocks, closure, coefficient_tables, sum_count
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.splits import inverse_haar

__all__ = ["nonnegative_fit"]


_MOST_STEPS = 2000
_POWER_STEPS = 30


def nonnegative_fit(network: Network, blocks: Blocks, n: int, tolerance: float) -> Tables:
    """Return the tables without negative cells whose sums are nearest to noisy ones.

    Parameters
    ----------
    network : Network
    blocks : mapping of tuple of int to array
        Noisy character sums.
    n : int
        Number of records, the exact sum of the constant character.
    tolerance : float
        By how much a cell may still be negative, and then set to zero, when the steps end.
    """
    z = np.concatenate([np.zeros(0), *(blocks[s].ravel() for s in closure(network))])
    linear = _CellsOfSums(network)
    step = 1.0 / linear.squared_norm()
    multipliers = momentum = np.zeros(linear.n_cells)
    pace = 1.0
    for _ in range(_MOST_STEPS):
        cells = linear.cells(z + linear.transposed(momentum), n)
        gradient_step = np.maximum(momentum - step * cells, 0.0)
        if np.abs(gradient_step - momentum).max() <= step * tolerance:
            break
        before, multipliers = multipliers, gradient_step
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        ahead = (pace - 1.0) / faster
        momentum = np.maximum(multipliers + ahead * (multipliers - before), 0.0)
        pace = faster
    return _as_tables(np.maximum(cells, 0.0), network)


def _as_tables(cells: FloatArray, network: Network) -> Tables:
    """Return the cells of all tables, one after another, as tables."""
    ends = np.cumsum([prod(shape) for shape in network.shapes])
    parts = zip(np.split(cells, ends[:-1]), network.shapes, strict=True)
    return tuple(part.reshape(shape) for part, shape in parts)


class _CellsOfSums:
    """The linear map from all character sums to the cells of all tables, and its transpose.

    Both are vectors. A cell depends on few sums, so there is one sparse matrix for each axis.
    """

    def __init__(self, network: Network) -> None:
        self._places = _places(network)
        self.n_cells, self.n_sums = self._places.size, sum_count(network)
        self._axes = [
            _inverse_haar_along(axis, network.shapes)
            for axis in range(max(len(shape) for shape in network.shapes))
        ]
        self._transposed = [matrix.T.tocsr() for matrix in self._axes]

    def cells(self, sums: FloatArray, n: float) -> FloatArray:
        """Return the cells of the tables with these character sums."""
        cells: FloatArray = np.append(sums, n)[self._places]
        for matrix in self._axes:
            cells = matrix @ cells
        return cells

    def transposed(self, cells: FloatArray) -> FloatArray:
        """Return the transpose of the map, without the constant."""
        for matrix in self._transposed:
            cells = matrix @ cells
        return np.bincount(self._places, cells, self.n_sums + 1)[:-1].astype(np.float64, copy=False)

    def squared_norm(self) -> float:
        """Return a bound on the largest squared singular value, by power iteration."""
        vector, norm = np.random.default_rng(0).random(self.n_sums), 1.0
        for _ in range(_POWER_STEPS):
            vector = self.transposed(self.cells(vector, 0.0))
            norm = float(np.linalg.norm(vector)) or 1.0
            vector /= norm
        return 1.1 * norm


def _places(network: Network) -> IntArray:
    """Return which sum stands at every coefficient of every table; n follows the sums."""
    shapes = {s: tuple(network.sizes[u] - 1 for u in s) for s in closure(network)}
    starts = accumulate(map(prod, shapes.values()), initial=0)
    numbers = {
        support: start + np.arange(prod(shape)).reshape(shape)
        for (support, shape), start in zip(shapes.items(), starts, strict=False)
    }
    tables = coefficient_tables(network, numbers, sum_count(network))
    places: IntArray = np.concatenate([table.ravel() for table in tables]).astype(np.int64)
    return places


def _inverse_haar_along(axis: int, shapes: Sequence[tuple[int, ...]]) -> Any:
    """Return the matrix that inverts the characters of one axis in the cells of all tables."""
    blocks = {shape: _inverse_haar_of_table(axis, shape) for shape in set(shapes)}
    return sparse.block_diag([blocks[shape] for shape in shapes], format="csr")


def _inverse_haar_of_table(axis: int, shape: tuple[int, ...]) -> Any:
    """Return I ⊗ M ⊗ I, with M at the place of the axis."""
    if axis >= len(shape):
        return sparse.identity(prod(shape), format="csr")
    before, after = sparse.identity(prod(shape[:axis])), sparse.identity(prod(shape[axis + 1 :]))
    return sparse.kron(before, sparse.kron(inverse_haar(shape[axis]), after), format="csr")
