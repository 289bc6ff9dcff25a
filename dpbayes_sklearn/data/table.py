"""Rows of an array, a sparse matrix or a data frame, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

__all__ = ["SealedTable", "Table", "as_cells", "is_frame"]

CHUNK_CELLS = 1 << 21
"""Cells read at a time: small enough for the cache, large enough to hide Python's overhead."""
_MOST_ROWS = 1 << 17  # rows read at a time, for what is computed once for each row


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
    """A 2-D array, a sparse matrix of rows or a data frame, read in chunks of rows."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self.n_rows, self.n_columns = X.shape
        self.is_sparse = issparse(X)
        self.names = [str(c) for c in X.columns] if is_frame(X) else None

    def chunks(self, step: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield ``(rows, chunk)``; a chunk is an array, or a frame of the same kind."""
        step = step or max(1, min(_MOST_ROWS, CHUNK_CELLS // max(1, self.n_columns)))
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            yield rows, _by_position(self._X)[rows]

    @property
    def n_stored(self) -> int:
        """Number of values that a sparse matrix stores."""
        return int(self._X.nnz)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values of an array or a sparse matrix."""
        dtype: np.dtype[Any] = np.dtype(self._X.dtype)
        return dtype

    def rows(self, rows: slice) -> Table:
        """Return the table of some rows."""
        return Table(_by_position(self._X)[rows])

    def without_rows(self) -> Any:
        """Return what the table was made of, but no record of it."""
        return _by_position(self._X)[:0]

    def must_be_readable(self, parameter: str) -> None:
        """Refuse to read domains from values if they are elsewhere; these are here."""

    def column(self, j: int, chunk: Any = None) -> npt.NDArray[Any]:
        """Return column ``j`` of a chunk (of the whole table by default)."""
        column = _by_position(self._X if chunk is None else chunk)[:, j]
        if self.is_sparse:
            return np.asarray(column.toarray()).ravel()
        if _keeps_type(column.dtype):
            return np.asarray(column)
        # pandas' and polars' own types may turn into one numpy type or another with the values
        return as_cells(column.to_list(), 1)

    def as_numbers(self, chunk: Any) -> npt.NDArray[Any] | None:
        """Return a chunk as one array of numbers if all columns have the same type of numpy."""
        if self.names is None:
            return chunk if chunk.dtype.kind in "biuf" else None
        types = set(getattr(chunk, "dtypes", [None]))
        one = types.pop()
        if types or not isinstance(one, np.dtype) or one.kind not in "biuf":
            return None
        return np.asarray(chunk)

    def kind(self, j: int) -> str:
        """Return numpy's letter for the type of column ``j``: b, i, u, f, or O for anything else.

        It is read from the declared type, never from a value.
        """
        columns = _by_position(self._X)[:0, j]
        letter = columns.dtype.kind if self.is_sparse else np.asarray(columns).dtype.kind
        return letter if letter in "biuf" else "O"


class SealedTable(Table):
    """Names and number of columns whose values are elsewhere, or may not be looked at."""

    def __init__(self, n_columns: int, names: list[str] | None = None) -> None:
        super().__init__(np.empty((0, n_columns)))
        self.names = None if names is None else [*names]

    def must_be_readable(self, parameter: str) -> None:
        """Refuse to read domains from the values."""
        raise ValueError(
            "Domains are not read from shards or dask collections, which would have to be looked "
            f"at one by one: set {parameter} to public values."
        )


def _keeps_type(dtype: Any) -> bool:
    """Tell whether a column becomes the same numpy type whatever it holds."""
    return isinstance(dtype, np.dtype) or repr(dtype) in {"Float32", "Float64"}  # of polars
