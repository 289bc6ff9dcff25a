"""Tables and streams of Arrow: of pyarrow, DuckDB, polars LazyFrames, ibis and others.

A release asks about the records several times, and about random samples of their positions. An
engine may list them in another order every time it is asked. So a stream is read once, a batch at a
time, and written to a temporary file that has no name: it is mapped into memory, and disappears
with the process. Every cell is read as in any other container.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from importlib import import_module
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from dpbayes_sklearn.data.dask import is_partitioned

__all__ = ["ArrowFrame", "framed", "framed_column", "named_columns"]

_ROWS_A_BATCH = 1 << 17  # Engines send batches of a few thousand rows; these are put together.


class ArrowFrame:
    """A table of Arrow, indexed by position like a frame of pandas or polars."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.columns, self.shape = native.column_names, native.shape

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> Any:
        """Return some rows or columns, or one column."""
        if isinstance(key, tuple):
            rows, j = key
            return self[rows] if j is ... else self[rows].native.column(j)
        if isinstance(key, slice):
            start, stop, _ = key.indices(len(self))
            return ArrowFrame(self.native.slice(start, max(stop - start, 0)))
        if isinstance(key, str):
            return self.native.column(key)
        if isinstance(key, list):
            return ArrowFrame(self.native.select(key))
        return ArrowFrame(self.native.take(np.asarray(key)))


def framed(X: Any) -> Any:
    """Return a table or a stream of Arrow as a frame, and anything else as it is.

    Examples
    --------
    >>> import polars as pl
    >>> framed(pl.LazyFrame({"age": [31, 48]})).shape
    (2, 1)
    """
    if hasattr(X, "column_names") and hasattr(X, "to_pylist"):  # a table or a batch of pyarrow
        return ArrowFrame(_arrow().table(X))
    if not _is_stream(X):
        return X
    return ArrowFrame(_read(X.toArrow if hasattr(X, "toArrow") else lambda: _spooled(_batches(X))))


def framed_column(values: Any, name: str) -> Any:
    """Return one column as a frame if it is of Arrow; refuse streams.

    A second query may list the records in another order than the first.
    """
    if _is_stream(values):
        raise TypeError(
            f"{name} is a {type(values).__name__}, whose rows may come in another order than those "
            "of X: pass the name of a column of X, as in fit(X, target='...', groups='...')."
        )
    return framed(values)


def named_columns(
    X: Any, y: Any, target: str | None, *others: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return X as a frame without the columns that are named, y, and the others as columns.

    The others are groups and weights: columns, or names of columns of X.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [31, 48], "ill": [0, 1]})
    >>> X, y, _ = named_columns(frame, None, "ill", None)
    >>> X.columns, y.to_list()
    (['age'], [0, 1])
    """
    X = framed(X)
    names = [name for name in (target, *others) if isinstance(name, str)]
    if not names:
        return X, y, others
    if target is not None and y is not None:
        raise ValueError("Pass y or the name of the target, not both.")
    columns = [*getattr(X, "columns", ())]
    for name in names:
        if columns.count(name) != 1:
            raise ValueError(f"X must have one column {name!r}: it has {columns.count(name)}.")
    rest = X[[name for name in columns if name not in names]]
    found = tuple(X[other] if isinstance(other, str) else other for other in others)
    return rest, y if target is None else X[target], found


def _is_stream(X: Any) -> bool:
    """Tell whether records are to be fetched: not those of pandas, polars, pyarrow and dask."""
    here = is_partitioned(X) or any(
        hasattr(X, name) for name in ("iloc", "get_column", "to_pylist")
    )
    series = hasattr(X, "dtype")  # a Series of pandas or polars has a stream, too
    return not (here or series) and any(hasattr(X, name) for name in _STREAMS)


_STREAMS = (
    "collect_batches",
    "to_pyarrow_batches",
    "scanner",
    "toArrow",
    "__arrow_c_stream__",
)
"""Of a polars LazyFrame, ibis, a dataset of pyarrow, Spark, and anything else with a stream."""


def _batches(X: Any) -> Iterator[Any]:
    """Yield the batches of a stream; whoever has none to yield still has a type."""
    pa = _arrow()
    if hasattr(X, "collect_batches"):
        yield X.limit(0).collect().to_arrow()
        for frame in X.collect_batches(maintain_order=True):
            yield frame.to_arrow()
        return
    if hasattr(X, "to_pyarrow_batches"):
        X = X.to_pyarrow_batches()
    elif hasattr(X, "scanner"):
        X = X.scanner().to_reader()
    reader = X if isinstance(X, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(X)
    yield reader.schema.empty_table()
    for batch in reader:
        yield pa.table(batch)


def _spooled(tables: Iterator[Any]) -> Any:
    """Return a table whose columns are in a file without a name, mapped into memory."""
    pa = _arrow()
    first = next(tables)
    with TemporaryFile() as file:
        with pa.ipc.new_stream(pa.PythonFile(file, mode="w"), first.schema) as writer:
            for table in _joined(tables):
                if table.schema != first.schema:  # a cast would refuse nulls where none should be
                    table = table.cast(first.schema)
                writer.write_table(table.combine_chunks())
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()


def _joined(tables: Iterator[Any]) -> Iterator[Any]:
    """Yield tables of at least so many rows, and one of what is left."""
    pa = _arrow()
    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(part.num_rows for part in held) >= _ROWS_A_BATCH:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _read(read: Any) -> Any:
    """Return what an engine gives; what it trips over may show a value."""
    try:
        return read()
    except ImportError:
        raise
    except Exception as error:
        name = type(error).__name__
    # raised out here because an exception remembers, and may show, the one it is raised in
    raise ValueError(
        f"The records could not be read: {name}. Run the query alone to see why. Nothing was spent."
    )


def _arrow() -> Any:
    """Import pyarrow only where there are data of Arrow."""
    try:
        return import_module("pyarrow")
    except ImportError:
        raise ImportError(
            "Tables and streams of Arrow need pyarrow: pip install dpbayes_sklearn[arrow]."
        ) from None
