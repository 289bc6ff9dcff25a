"""Rows of an array, a sparse matrix or a data frame, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from dpbayes_sklearn.schema.domains import Categories, Domain
from dpbayes_sklearn.schema.values import (
    Column,
    Kind,
    Repeated,
    as_cells,
    cells_of,
    kind_of,
    readable,
)

CHUNK_CELLS = 1 << 21
"""Cells read at a time: small enough for the cache, large enough to hide Python's overhead."""
_MOST_ROWS = 1 << 17  # Rows read at a time.


def rows_at_once(n_columns: int) -> int:
    """Return how many rows of so many columns are read at a time."""
    return max(1, min(_MOST_ROWS, CHUNK_CELLS // max(1, n_columns)))


def is_partitioned(X: object) -> bool:
    """Tell whether ``X`` is a dask array, data frame or series, without importing dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "_meta")


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
        step = step or rows_at_once(self.n_columns)
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

    def rows(self, rows: slice | npt.NDArray[np.intp]) -> Table:
        """Return the table of some rows, given as a slice or by their positions."""
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
        return cells_of(column)

    def cells(self, j: int, chunk: Any) -> Column:
        """Return column ``j`` of a chunk, to be read cell by cell: its type says nothing."""
        if self.names is None:
            return self.column(j, chunk)
        return readable(_by_position(chunk)[:, j])

    def as_numbers(self, chunk: Any) -> npt.NDArray[Any] | None:
        """Return a chunk as one array of numbers if all columns have the same type of numpy."""
        if self.names is None:
            return chunk if chunk.dtype.kind in "biuf" else None
        types = set(getattr(chunk, "dtypes", [None]))
        one = types.pop()
        if types or not isinstance(one, np.dtype) or one.kind not in "biuf":
            return None
        return np.asarray(chunk)

    def kind(self, j: int) -> Kind:
        """Return what the declared type of column ``j`` says about its values.

        All columns of an array share one type, so there text may stand for anything.
        """
        if self.names is not None:
            column = _by_position(self._X)[:0, j]
            return kind_of(getattr(column, "dtype", getattr(column, "type", None)))
        return self._kind_of_array

    @cached_property
    def _kind_of_array(self) -> Kind:
        kind = kind_of(self._X.dtype)
        return "anything" if kind == "text" else kind


class _Columns:
    """A frame of arrays, of columns that have few distinct cells, and of other columns."""

    def __init__(self, names: list[str], cells: list[Any]) -> None:
        self.columns, self._cells = names, cells
        self.shape = len(cells[0]), len(cells)

    def __getitem__(self, key: Any) -> Any:
        """Return some rows, or one column of them."""
        rows, j = key if isinstance(key, tuple) else (key, None)
        if j is None:
            return _Columns(self.columns, [_by_position(cells)[rows] for cells in self._cells])
        return _by_position(self._cells[j])[rows]


def read_once(table: Table, domains: Sequence[Domain]) -> Table:
    """Return a frame that is fast to read again: of declared categories it holds codes only.

    A code takes one byte, or two if there are more than 256. Arrays are not copied.
    """
    if table.names is None or all(domain.is_numeric for domain in domains):
        return table
    cells = [_kept(_by_position(table._X)[:, j], domain) for j, domain in enumerate(domains)]
    return Table(_Columns(table.names, cells))


def _kept(column: Any, domain: Domain) -> Any:
    if isinstance(domain, Categories):
        codes = domain.encode(readable(column)).astype(np.min_scalar_type(domain.n_values))
        return Repeated(codes, as_cells([*domain.values, None], 1))
    return np.asarray(column) if isinstance(getattr(column, "dtype", None), np.dtype) else column


class SealedTable(Table):
    """Names and number of columns whose values are elsewhere, or may not be read."""

    def __init__(self, n_columns: int, names: list[str] | None = None) -> None:
        super().__init__(np.empty((0, n_columns)))
        self.names = None if names is None else [*names]

    def must_be_readable(self, parameter: str) -> None:
        """Refuse to read domains from the values."""
        raise ValueError(
            f"Domains are not read from shards or dask collections: set {parameter} to public "
            "values."
        )


def one_column(values: Any) -> npt.NDArray[Any]:
    """Return y, or the one column of an estimator without y, from any container.

    A frame of one column keeps its shape (n, 1). One of more columns is to be refused for its
    shape, and only that is returned.
    """
    if not is_frame(values):
        return cells_of(values)
    table = Table(values)
    if table.n_columns != 1:
        return np.broadcast_to(0.0, values.shape)
    return table.column(0)[:, None]


def column_kind(values: Any) -> Kind:
    """Return what the declared type of one column says about its values."""
    values = getattr(values, "_meta", values)  # of a dask collection: types without values
    if is_frame(values):
        return Table(values).kind(0)
    return kind_of(getattr(values, "dtype", getattr(values, "type", None)))
