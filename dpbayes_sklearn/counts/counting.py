"""Counting codes by state in near one pass over memory; of sparse rows, what they store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.data.encoder import Codes, Encoder
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.schema.domains import Categories

__all__ = ["Space", "count_by_state", "count_sparse_star"]


_FEW_VALUES = 16  # up to here comparing with each value is faster than a histogram
_FEW_STATES = 3  # up to here looking for each state is faster than sorting
_BYTE = 255  # most ones that a byte can add up
_JOINT_CELLS = 1 << 12  # cells of several columns together that stay in the cache
_ROWS_A_CELL = 8  # with fewer, adding up joint cells takes as long as counting
_STORED = 1 << 18  # stored values of sparse rows that are counted at a time


class Space:
    """Memory that is used again for every chunk: fresh memory costs more than the counting."""

    def __init__(self) -> None:
        self._memory: dict[str, npt.NDArray[Any]] = {}

    def take(self, shape: tuple[int, ...], dtype: Any, purpose: str) -> npt.NDArray[Any]:
        """Return an array of this shape and type, with any content."""
        size, memory = prod(shape), self._memory.get(purpose)
        if memory is None or memory.dtype != dtype or memory.size < size:
            memory = self._memory[purpose] = np.empty(size, dtype)
        return memory[:size].reshape(shape)


def count_by_state(
    states: npt.NDArray[np.intp],
    n_states: int,
    codes: Codes,
    sizes: Sequence[int],
    space: Space,
) -> IntArray:
    """Count the rows in each state that hold each code; shape (n_states, columns, max(sizes)).

    Written by hand because a float matrix product or one histogram per column costs several
    times the memory traffic, and sums in bytes are exact.
    """
    n_values = max(sizes)
    if n_values > _FEW_VALUES:
        return _together(states, n_states, codes, sizes)
    counts = np.zeros((n_states, codes.shape[1], n_values), np.int64)
    totals = np.bincount(states, minlength=n_states)
    if n_states == n_values == 2:
        counts[:, :, 1] = _ones_of_two_states(states, totals, codes, space)
    else:
        in_order = _rows_at(codes, _by_state(states, n_states), space)
        _count_each_value(counts, totals, in_order, space)
    counts[:, :, 0] = totals[:, None] - counts.sum(axis=2)
    return counts


def _rows_at(codes: Codes, positions: npt.NDArray[np.intp], space: Space) -> Codes:
    """Return a copy of the rows at some positions."""
    out = space.take((len(positions), codes.shape[1]), codes.dtype, "rows")
    # "clip" because other modes fill a buffer of their own first
    return codes.take(positions, axis=0, out=out, mode="clip")


def _ones_of_two_states(
    states: npt.NDArray[np.intp], totals: IntArray, codes: Codes, space: Space
) -> IntArray:
    """Sum zeros and ones of two states: copying the rows of the rarer one is enough."""
    rarer = int(totals.argmin())
    sums = np.empty((2, codes.shape[1]), np.int64)
    sums[rarer] = _column_sums(_rows_at(codes, np.flatnonzero(states == rarer), space))
    sums[1 - rarer] = _column_sums(codes) - sums[rarer]
    return sums


def _count_each_value(counts: IntArray, totals: IntArray, codes: Codes, space: Space) -> None:
    """Fill in the counts of all values but 0, for rows in the order of their states."""
    n_values = counts.shape[2]
    equal = space.take(codes.shape if n_values > 2 else (0,), np.bool_, "equal")
    start = 0
    for state, total in enumerate(totals):
        rows = codes[start : start + total]
        start += total
        ones: Codes = rows  # two-valued codes are their own indicator
        for value in range(1, n_values):
            if n_values > 2:
                ones = np.equal(rows, value, out=equal[: len(rows)]).view(np.uint8)
            counts[state, :, value] = _column_sums(ones)


def _by_state(states: npt.NDArray[np.intp], n_states: int) -> npt.NDArray[np.intp]:
    """Return the positions of all rows, those of a state after another."""
    if n_states <= _FEW_STATES:
        return np.concatenate([np.flatnonzero(states == state) for state in range(n_states)])
    # numpy sorts short words by counting them
    return np.argsort(states.astype(np.min_scalar_type(n_states)), kind="stable")


def _column_sums(ones: Codes) -> IntArray:
    """Sum zeros and ones down the columns, 255 rows at a time in single bytes."""
    n, d = ones.shape
    whole = n // _BYTE
    sums_of_255 = ones[: whole * _BYTE].reshape(_BYTE, whole * d).sum(axis=0, dtype=np.uint8)
    rest = ones[whole * _BYTE :].sum(axis=0, dtype=np.uint8)
    sums: IntArray = sums_of_255.reshape(whole, d).sum(axis=0, dtype=np.int64) + rest
    return sums


def _together(
    states: npt.NDArray[np.intp], n_states: int, codes: Codes, sizes: Sequence[int]
) -> IntArray:
    """Count some columns at a time by all of their codes together, and add up for each of them."""
    counts = np.zeros((n_states, codes.shape[1], max(sizes)), np.int64)
    columns = np.asfortranarray(codes)
    most = min(_JOINT_CELLS, len(codes) // _ROWS_A_CELL)
    for group, n_cells in _groups(tuple(sizes[: codes.shape[1]]), n_states, most):
        cells: npt.NDArray[Any] = states.astype(np.uint16 if n_cells <= 2**16 else np.intp)
        for j in group:
            cells *= cells.dtype.type(sizes[j])
            cells += columns[:, j]
        joint = np.bincount(cells, minlength=n_cells).reshape(n_states, *(sizes[j] for j in group))
        for axis, j in enumerate(group, start=1):
            others = tuple(k for k in range(1, joint.ndim) if k != axis)
            counts[:, j, : sizes[j]] = joint.sum(axis=others)
    return counts


@lru_cache
def _groups(sizes: tuple[int, ...], n_states: int, most: int) -> list[tuple[list[int], int]]:
    """Return groups of columns with at most so many joint cells, and their numbers of cells.

    >>> _groups((4, 30, 4, 2), 2, 64)
    [([1], 60), ([0, 2, 3], 64)]
    """
    groups: list[tuple[list[int], int]] = []
    for j in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
        room = (i for i, (_, cells) in enumerate(groups) if cells * sizes[j] <= most)
        if (i := next(room, None)) is None:
            groups.append(([j], n_states * sizes[j]))
        else:
            groups[i] = [*groups[i][0], j], groups[i][1] * sizes[j]
    return groups


def count_sparse_star(
    network: Network, encoder: Encoder, classes: Categories, shard: Shard
) -> tuple[npt.NDArray[Any], ...]:
    """Return the tables of a star: stored values are counted, zeros follow by difference.

    The time grows with the number of values that are stored.
    """
    n_classes, d, n_values = network.sizes[-1], network.target, max(network.sizes[:-1])
    table = shard.table
    of_class = np.zeros(n_classes, np.int64)
    flat = np.zeros(n_classes * d * n_values, np.int64)
    step = max(1, table.n_rows * max(_STORED, flat.size) // max(1, table.n_stored))
    for rows, matrix in table.chunks(step):
        labels = classes.encode(shard.target[rows])
        of_class += np.bincount(labels, minlength=n_classes)
        label = np.repeat(labels, np.diff(matrix.indptr))
        cells = (label * d + matrix.indices) * n_values + encoder.stored(matrix)
        flat += np.bincount(cells, minlength=flat.size)
    counts = flat.reshape(n_classes, d, n_values)
    not_stored = of_class[:, None] - counts.sum(axis=2)
    counts[:, np.arange(d), encoder.zeros(table.dtype)] += not_stored
    return (*(counts[:, j, : network.sizes[j]] for j in range(d)), of_class)
