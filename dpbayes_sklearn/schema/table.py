"""Rows of an array or a data frame, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Table", "as_cells", "is_frame"]

CHUNK_CELLS = 1 << 21
"""Cells read at a time: small enough for the cache, large enough to hide Python's overhead."""


def as_cells(values: Any, ndim: int) -> npt.NDArray[Any]:
    """Return an array; of a list every cell as it is.

    numpy would choose one type for all cells of a list, so that a single odd value would recode
    the others. A list therefore becomes an array of objects, row by row.
    """
    if hasattr(values, "__array__") or not isinstance(values, (list, tuple)):
        return np.asarray(values)
    if ndim == 1 or not all(hasattr(row, "__len__") and not _is_text(row) for row in values):
        return np.fromiter(values, dtype=object, count=len(values))
    widths = {len(row) for row in values}
    if len(widths) > 1:
        raise ValueError("All rows of the data must have the same number of values.")
    cells = np.fromiter(chain.from_iterable(values), dtype=object)
    return cells.reshape(len(values), *widths)


def _is_text(value: object) -> bool:
    return isinstance(value, (str, bytes))


def is_frame(X: object) -> bool:
    """Tell whether ``X`` has named columns of its own types (pandas, polars)."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "shape")


def _by_position(X: Any) -> Any:
    """Return what is indexed by position: pandas also has labels, which may repeat."""
    return getattr(X, "iloc", X)


class Table:
    """A 2-D array or a data frame, read in chunks of rows."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self.n_rows, self.n_columns = X.shape
        self.names = [str(c) for c in X.columns] if is_frame(X) else None

    def chunks(self, step: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield ``(rows, chunk)``; a chunk is an array, or a frame of the same kind."""
        step = step or max(1, CHUNK_CELLS // max(1, self.n_columns))
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            yield rows, _by_position(self._X)[rows]

    def every(self, step: int) -> Table:
        """Return the table of each ``step``-th row."""
        return self if step == 1 else Table(_by_position(self._X)[::step])

    def column(self, j: int, chunk: Any = None) -> npt.NDArray[Any]:
        """Return column ``j`` of a chunk (of the whole table by default)."""
        column = _by_position(self._X if chunk is None else chunk)[:, j]
        if _keeps_type(column.dtype):
            return np.asarray(column)
        # pandas' and polars' own types may turn into one numpy type or another with the values
        return as_cells(column.to_list(), 1)

    def kind(self, j: int) -> str:
        """Return numpy's letter for the type of column ``j``: b, i, u, f, or O for anything else.

        It is read from the declared type, never from a value.
        """
        letter = np.asarray(_by_position(self._X)[:0, j]).dtype.kind
        return letter if letter in "biuf" else "O"


def _keeps_type(dtype: Any) -> bool:
    """Tell whether a column becomes the same numpy type whatever it holds."""
    return isinstance(dtype, np.dtype) or repr(dtype) in {"Float32", "Float64"}  # of polars
