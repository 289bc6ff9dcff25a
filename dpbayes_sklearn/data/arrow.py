"""Tables and streams of Arrow: of pyarrow, DuckDB, polars LazyFrames, ibis and others.

A release asks about the records several times, and about random samples of their positions. An
engine may list them in another order every time it is asked. So a stream is read once, a batch at a
time, and written to a temporary file that has no name: it is mapped into memory, and disappears
with the process. Every cell is read as in any other container.

Where a model uses nothing but codes, a declared column is written as codes: each of them stands for
one value that has it, so that whoever reads the file finds the same codes.

Only texts are encoded by the engine. DuckDB and polars cast them to an enumeration of the declared
categories, by equality of their bytes; what is none of them is null, which counts as it does. So
texts are sent as codes. Numbers are sent as they are: an engine that rounds or compares in another
way than `Interval.encode` would break a declared domain, and would save nothing.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import chain
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import Table, is_partitioned
from dpbayes_sklearn.schema import Categories
from dpbayes_sklearn.schema.values import Kind, cells_of, kind_of

_ROWS_A_BATCH = 1 << 16  # Engines send batches of a few thousand rows; these are put together.

_STREAMS = ("collect_batches", "to_pyarrow_batches", "scanner", "toArrow", "__arrow_c_stream__")
"""Of a polars LazyFrame, ibis, a dataset of pyarrow, Spark, and anything else with a stream."""


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
            if j is ...:
                return self[rows]
            column = ArrowFrame(self.native.select([j]))[rows].native.column(0)
            # an array, which numpy need not copy, if it is in one chunk
            return column.chunk(0) if column.num_chunks == 1 else column
        if isinstance(key, slice):
            start, stop, _ = key.indices(len(self))
            return ArrowFrame(self.native.slice(start, max(stop - start, 0)))
        if isinstance(key, str):
            return self.native.column(key)
        if isinstance(key, list):
            return ArrowFrame(self.native.select(key))
        rows = np.asarray(key)
        try:
            return ArrowFrame(self.native.take(rows))
        except arrow().ArrowInvalid:  # small indices cannot number the values of all chunks
            return ArrowFrame(_with_wide_indices(self.native).take(rows))


def _with_wide_indices(table: Any) -> Any:
    """Return a table whose dictionaries have indices of 32 bits at least."""
    pa = arrow()
    for j, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind) and kind.index_type.bit_width < 32:
            wide = [
                pa.DictionaryArray.from_arrays(chunk.indices.cast("int32"), chunk.dictionary)
                for chunk in table.column(j).chunks
            ]
            table = table.set_column(j, table.column_names[j], pa.chunked_array(wide))
    return table


def as_frame(X: Any) -> Any:
    """Return a table or a batch of pyarrow as a frame, and anything else as it is."""
    is_table = _has(X, "column_names") and _has(X, "to_pylist")
    return ArrowFrame(arrow().table(X)) if is_table else X


def _has(X: Any, *names: str) -> bool:
    """Tell whether the type has one of these. Spark and ibis also have columns as attributes."""
    return any(hasattr(type(X), name) for name in names)


def is_stream(X: Any) -> bool:
    """Tell whether records are to be fetched: not those of pandas, polars, pyarrow and dask."""
    here = is_partitioned(X) or _has(X, "iloc", "get_column", "to_pylist")
    series = _has(X, "dtype")  # a Series of pandas or polars has a stream, too
    return not (here or series) and _has(X, *_STREAMS)


def spooled(X: Any, declared: Mapping[Any, Any] | None = None, coded: Collection[str] = ()) -> Any:
    """Return a stream as a frame: declared texts may be sent as codes, some columns kept as such.

    >>> import polars as pl
    >>> spooled(pl.LazyFrame({"age": [31, 48]})).shape
    (2, 1)
    """
    domains = {} if declared is None else declared
    kept = {name: domains[name] for name in coded}
    return ArrowFrame(safely(lambda: _spooled(_coded(_batches(_enumerated(X, domains)), kept))))


def _batches(X: Any) -> Iterator[Any]:
    """Yield the batches of a stream; the first may be empty, so that the types are known."""
    pa = arrow()
    if _has(X, "collect_batches"):
        yield X.limit(0).collect().to_arrow()
        for frame in X.collect_batches(maintain_order=True):
            yield frame.to_arrow()
        return
    if _has(X, "to_pyarrow_batches"):
        X = _of_ibis(X)
    elif _has(X, "scanner"):
        X = X.scanner().to_reader()
    elif _has(X, "toArrow"):  # Spark
        X = _of_spark(X)
    reader = X if isinstance(X, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(X)
    yield reader.schema.empty_table()
    for batch in reader:
        yield pa.table(batch)


def _of_ibis(table: Any) -> Any:
    """Return an ibis table as a stream, or all of it at once.

    ibis 12 streams from DuckDB by a method that DuckDB 2 does not have.
    """
    connection = getattr(table.get_backend(), "con", None)
    if _has(connection, "to_arrow_reader") and not _has(connection, "fetch_record_batch"):
        return table.to_pyarrow()
    return table.to_pyarrow_batches()


def _of_spark(frame: Any) -> Any:
    """Return a Spark data frame as a stream of its partitions, or all of it at once.

    Before 4.1 it has no stream, and later ones have none for times. Nothing is read to find out.
    """
    with suppress(Exception):
        return arrow().RecordBatchReader.from_stream(frame)
    return frame.toArrow()


def _enumerated(X: Any, declared: Mapping[Any, Any]) -> Any:
    """Return a query of DuckDB or polars in which declared texts are enumerations."""
    texts = {
        name: domain.values
        for name, domain in declared.items()
        if isinstance(domain, Categories)
        and all(isinstance(value, str) and value.isprintable() for value in domain.values)
    }
    if _has(X, "collect_batches"):
        pl, types = import_module("polars"), X.collect_schema()
        known = [name for name in texts if types.get(name) == pl.String]
        return X.with_columns(
            pl.col(name).cast(pl.Enum(texts[name]), strict=False) for name in known
        )
    if not (_has(X, "project") and _has(X, "to_arrow_reader")):
        return X
    columns = zip(X.columns, X.types, strict=True)
    return X.project(
        ", ".join(
            _enumeration(name, texts[name])
            if name in texts and str(kind) == "VARCHAR"
            else _quoted(name)
            for name, kind in columns
        )
    )


def _enumeration(name: str, values: Sequence[Any]) -> str:
    """Return the text of a column of DuckDB as an enumeration."""
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"TRY_CAST({_quoted(name)} AS ENUM({listed})) AS {_quoted(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _coded(tables: Iterator[Any], declared: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield tables whose declared columns are dictionaries: codes, and one value for each code."""
    pa, first = arrow(), next(tables)
    values = {
        name: _value_of_codes(domain, kind_of(first.schema.field(name).type))
        for name, domain in declared.items()
        if first.column_names.count(name) == 1
    }
    coded = {name: Encoder([declared[name]]) for name, value in values.items() if value is not None}
    for table in chain([first], joined_batches(tables)):
        for name, encoder in coded.items():
            codes = encoder.encode(Table(ArrowFrame(table.select([name]))))[:, 0]
            kept = pa.DictionaryArray.from_arrays(codes, values[name])
            table = table.set_column(table.column_names.index(name), name, kept)
        yield table


def _value_of_codes(domain: Any, kind: Kind) -> Any:
    """Return one value of every code, None if there are none that Arrow can hold."""
    if not (domain.has_codes and domain.takes(kind)):
        return None
    codes = np.arange(domain.n_values)
    with suppress(Exception):  # values of several types
        values = arrow().array(domain.decode(codes, np.random.default_rng(0)))
        if np.array_equal(domain.encode(cells_of(values)), codes):
            return values
    return None


def _spooled(tables: Iterator[Any]) -> Any:
    """Return a table whose columns are in a file without a name, mapped into memory."""
    pa = arrow()
    first = next(tables)
    with TemporaryFile() as file:
        with pa.ipc.new_stream(pa.PythonFile(file, mode="w"), first.schema) as writer:
            for table in tables:
                if table.schema != first.schema:  # a cast would refuse nulls where none should be
                    table = table.cast(first.schema)
                with suppress(pa.ArrowInvalid):  # small indices cannot number all values together
                    table = table.combine_chunks()
                writer.write_table(table)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()


def joined_batches(tables: Iterator[Any]) -> Iterator[Any]:
    """Yield tables of at least so many rows, and one of what is left."""
    pa = arrow()
    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(part.num_rows for part in held) >= _ROWS_A_BATCH:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def safely(read: Callable[[], Any]) -> Any:
    """Return what an engine gives; what it trips over may show a value."""
    try:
        return read()
    except ImportError:
        raise
    except Exception as error:
        name = type(error).__name__
    # raised out here because an exception remembers, and may show, the one it is raised in
    raise ValueError(
        f"The records could not be read: {name}. Run the query alone to see why, and have it give "
        "NULL for what it cannot convert, as by TRY_CAST. Nothing was spent."
    )


def arrow() -> Any:
    """Import pyarrow only where there are data of Arrow."""
    try:
        return import_module("pyarrow")
    except ImportError:
        raise ImportError(
            "Tables and streams of Arrow need pyarrow: pip install pyarrow."
        ) from None
