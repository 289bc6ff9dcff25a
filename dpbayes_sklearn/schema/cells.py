"""One column of any container, read so that no value influences how another one is read.

numpy chooses the dtype of a list, a nullable or a categorical column by its values: with one value
missing, integers become floats, and 2^53 + 1 becomes 2^53. One record would recode all others. So
only columns of a fixed dtype are converted by numpy; all others are read cell by cell, as objects.
Lists have no type that says what a row is: every row of them is read alone, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_cells", "cells_of", "joined"]

_LISTS = ("to_list", "to_pylist", "tolist")  # of pandas and polars, pyarrow, anything like numpy
_POLARS = ("Float32", "Float64", "Date", "Datetime")  # what is missing is NaN or NaT there


def cells_of(column: Any) -> npt.NDArray[Any]:
    """Return a series, array or list as an array: of its own numpy type, or of objects.

    In a list, a row of one cell is that cell; any other row is an odd value, like any other.

    Examples
    --------
    >>> cells_of([2**53 + 1, None]).tolist() == [2**53 + 1, None]
    True
    >>> cells_of([[0], [1], None, [0, 1]]).tolist()
    [0, 1, None, [0, 1]]
    """
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) or repr(dtype).split("(")[0] in _POLARS:
        return np.asarray(column)
    for name in _LISTS:
        if hasattr(column, name):
            return as_cells(getattr(column, name)(), len(getattr(column, "shape", "n")))
    if not _is_list(column):
        return np.asarray(column)
    return np.fromiter(map(_only_cell, column), dtype=object, count=len(column))


def as_cells(values: Any, ndim: int) -> npt.NDArray[Any]:
    """Return an array; of a list every cell as it is, row by row.

    Rows have as many cells as most of them have. Of a row that has another number, or that is
    none, all cells are missing: it must not decide how other rows are read.

    >>> as_cells([[1, 2], None, [3, 4], [5]], 2).tolist()
    [[1, 2], [None, None], [3, 4], [None, None]]
    """
    if not _is_list(values):
        return np.asarray(values)
    rows = [None] * len(values) if ndim == 1 else [*map(_row, values)]
    widths = Counter(len(row) for row in rows if row is not None)
    if not widths:
        return np.fromiter(values, dtype=object, count=len(values))
    width = max(widths, key=lambda width: (widths[width], width))
    blank = [None] * width
    whole = (row if row is not None and len(row) == width else blank for row in rows)
    cells = np.fromiter(chain.from_iterable(whole), dtype=object, count=len(rows) * width)
    return cells.reshape(len(rows), width)


def joined(parts: Sequence[npt.NDArray[Any]], axis: int = 0) -> npt.NDArray[Any]:
    """Return arrays as one; if their types differ, cell by cell, for numpy would choose one type.

    >>> joined([np.array([2**53 + 1]), np.array([np.nan])]).dtype
    dtype('O')
    """
    one_type = len({part.dtype for part in parts}) == 1
    return np.concatenate(parts if one_type else [*map(_objects, parts)], axis=axis)


def _objects(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array of objects; numpy itself would make integers of dates in nanoseconds."""
    return np.fromiter(array.flat, dtype=object, count=array.size).reshape(array.shape)


def _is_list(values: object) -> bool:
    listed = isinstance(values, Sequence) and not _is_text(values)
    return listed and not hasattr(values, "__array__")


def _only_cell(cell: Any) -> Any:
    """Return what a row of one cell holds, anything else as it is."""
    kind = type(cell)  # compared by identity: what it is asked may raise anything
    row = kind is list or kind is tuple or (kind is np.ndarray and cell.ndim == 1)
    return cell[0] if row and len(cell) == 1 else cell


def _row(value: Any) -> Sequence[Any] | None:
    """Return the cells of a row, None if it is none; its own methods may raise anything."""
    try:
        sized = hasattr(value, "__len__") and not _is_text(value)
        return [*value] if sized else None
    except Exception:
        return None


def _is_text(value: object) -> bool:
    return isinstance(value, (str, bytes))
