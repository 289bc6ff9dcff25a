"""Counts that are not negative and agree with each other, nearest to noisy character sums.

All sums have the same noise, so the nearest in their own coordinates is generalised least squares
under the covariance of the noise. The dual has one non-negative multiplier per cell: with tables
T(c) linear in the sums c, the fit is c = z + T'(multipliers), and multipliers grow where cells are
negative. Accelerated projected gradient steps find them (Beck and Teboulle 2009).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.fourier import Blocks, closure
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
    linear = _TablesOfSums(network)
    step = 1.0 / linear.squared_norm()
    multipliers = momentum = [np.zeros(shape) for shape in network.shapes]
    pace = 1.0
    for _ in range(_MOST_STEPS):
        cells = linear.tables(z + linear.transposed(momentum), n)
        if _settled(momentum, cells, step, tolerance):
            break
        before = multipliers
        pairs = zip(momentum, cells, strict=True)
        multipliers = [np.maximum(m - step * t, 0.0) for m, t in pairs]
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        ahead = (pace - 1.0) / faster
        steps = zip(multipliers, before, strict=True)
        momentum = [np.maximum(new + ahead * (new - old), 0.0) for new, old in steps]
        pace = faster
    return tuple(np.maximum(table, 0.0) for table in cells)


def _settled(
    multipliers: Sequence[FloatArray], cells: Sequence[FloatArray], step: float, tolerance: float
) -> bool:
    """Tell whether no gradient step would change a multiplier noticeably."""
    return all(
        np.abs(np.maximum(m - step * t, 0.0) - m).max() <= step * tolerance
        for m, t in zip(multipliers, cells, strict=True)
    )


class _TablesOfSums:
    """The linear map from all character sums, as one vector, to all tables, and its transpose."""

    def __init__(self, network: Network) -> None:
        self._shapes = network.shapes
        self._places = [np.full(shape, -1) for shape in network.shapes]  # -1 is the constant n
        self.size = 0
        for support in closure(network):
            shape = tuple(network.sizes[u] - 1 for u in support)
            block = self.size + np.arange(np.prod(shape)).reshape(shape)
            self.size += block.size
            for family, places in zip(network.families, self._places, strict=True):
                if set(support) <= set(family):
                    index = tuple(slice(1, None) if u in support else 0 for u in family)
                    order = [support.index(u) for u in family if u in support]
                    places[index] = np.transpose(block, order)

    def tables(self, sums: FloatArray, n: float) -> list[FloatArray]:
        """Return the tables with these character sums."""
        extended = np.append(sums, n)
        return [
            _along_axes(extended[places], [inverse_haar(k) for k in shape])
            for places, shape in zip(self._places, self._shapes, strict=True)
        ]

    def transposed(self, tables: Sequence[FloatArray]) -> FloatArray:
        """Return the transpose of the map, without the constant."""
        sums = np.zeros(self.size + 1)
        for places, table in zip(self._places, tables, strict=True):
            np.add.at(sums, places, _along_axes(table, [inverse_haar(k).T for k in table.shape]))
        return sums[:-1]

    def squared_norm(self) -> float:
        """Return a bound on the largest squared singular value, by power iteration."""
        vector, norm = np.random.default_rng(0).random(self.size), 1.0
        for _ in range(_POWER_STEPS):
            vector = self.transposed(self.tables(vector, 0.0))
            norm = float(np.linalg.norm(vector)) or 1.0
            vector /= norm
        return 1.1 * norm


def _along_axes(array: FloatArray, matrices: Sequence[FloatArray]) -> FloatArray:
    """Apply one matrix along each axis."""
    for axis, matrix in enumerate(matrices):
        array = np.moveaxis(np.tensordot(matrix, array, (1, axis)), 0, axis)
    return array
