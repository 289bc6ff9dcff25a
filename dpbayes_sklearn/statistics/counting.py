"""Counting codes by state in near one pass over memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema.encoder import Codes

__all__ = ["count_by_state"]

_FEW_VALUES = 16  # up to here comparing with each value is faster than a histogram
_BLOCK = 255  # most ones that a byte can add up


def count_by_state(
    states: npt.NDArray[np.intp], n_states: int, codes: Codes, sizes: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Count the rows in each state that hold each code; shape (n_states, columns, max(sizes)).

    Written by hand because a float matrix product or one histogram per column costs several
    times the memory traffic, and sums in bytes are exact.
    """
    n_values = max(sizes)
    if n_values > _FEW_VALUES:
        return _histogram(states, n_states, codes, n_values)
    # numpy sorts short words by counting them
    order = np.argsort(states.astype(np.min_scalar_type(n_states)), kind="stable")
    totals = np.bincount(states, minlength=n_states)
    sorted_codes = codes.take(order, axis=0)
    counts = np.zeros((n_states, codes.shape[1], n_values), np.int64)
    start = 0
    for state, total in enumerate(totals):
        rows = sorted_codes[start : start + total]
        start += total
        for value in range(1, n_values):
            # two-valued codes are their own indicator
            ones = rows if n_values == 2 else (rows == value).view(np.uint8)
            counts[state, :, value] = _column_sums(ones)
    counts[:, :, 0] = totals[:, None] - counts.sum(axis=2)
    return counts


def _column_sums(ones: Codes) -> npt.NDArray[np.int64]:
    """Sum zeros and ones down the columns, a block of 255 rows at a time in single bytes."""
    n, d = ones.shape
    whole = n // _BLOCK
    blocks = ones[: whole * _BLOCK].reshape(_BLOCK, whole * d).sum(axis=0, dtype=np.uint8)
    rest = ones[whole * _BLOCK :].sum(axis=0, dtype=np.uint8)
    sums: npt.NDArray[np.int64] = blocks.reshape(whole, d).sum(axis=0, dtype=np.int64) + rest
    return sums


def _histogram(
    states: npt.NDArray[np.intp], n_states: int, codes: Codes, n_values: int
) -> npt.NDArray[np.int64]:
    n_columns = codes.shape[1]
    cell = codes + (states[:, None] * n_columns + np.arange(n_columns)) * n_values
    flat = np.bincount(cell.ravel(), minlength=n_states * n_columns * n_values)
    return flat.reshape(n_states, n_columns, n_values)
