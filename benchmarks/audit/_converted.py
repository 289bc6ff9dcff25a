"""Columns that their own containers convert: one cell must not change how others are read.

A container that makes a list of a column stops at a cell that has no form in Python. Dask makes
texts of a partition of objects, which it is if one of its values is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.audit._cases import Case
from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable, column_here
from dpbayes_sklearn.data.table import Table, one_column

__all__ = ["COLUMNS", "DECLARED", "cells_of_columns", "read_by_dask"]

N, ODD = 7, 3
FAR = 2**62
Column = Callable[[bool], Any]


def _ticks(odd: bool, far: int = FAR) -> Any:
    ticks = np.arange(N, dtype=np.int64) * 86_400_000
    ticks[ODD] = far if odd else ticks[ODD]
    return ticks


def _arrow(arrow: str, *arguments: Any) -> Column:
    """Return a column of a type of arrow, of which one cell may be far away."""

    def column(odd: bool) -> Any:
        pyarrow = import_module("pyarrow")
        return _in_pandas(pyarrow.array(_ticks(odd)).cast(getattr(pyarrow, arrow)(*arguments)))

    return column


def _days(odd: bool) -> Any:
    pyarrow = import_module("pyarrow")
    days = np.where(_ticks(odd) == FAR, 2**31 - 1, np.arange(N))
    return _in_pandas(pyarrow.array(days.astype(np.int32)).cast(pyarrow.date32()))


def _broken_text(odd: bool) -> Any:
    pyarrow = import_module("pyarrow")
    texts = [b"%d" % i for i in range(N)]
    texts[ODD] = b"\xff" if odd else texts[ODD]
    buffers = pyarrow.array(texts, pyarrow.binary()).buffers()
    return _in_pandas(pyarrow.StringArray.from_buffers(N, *buffers[1:]))


def _in_pandas(array: Any) -> Any:
    pandas, pyarrow = import_module("pandas"), import_module("pyarrow")
    return pandas.Series(pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([array])))


def _zone(odd: bool) -> Any:
    pandas = import_module("pandas")
    dates = pandas.DatetimeIndex(_ticks(odd, far=2**63 - 1).view("M8[ns]"))
    return pandas.Series(dates.tz_localize("UTC").tz_convert("Asia/Tokyo"))


def _polars_duration(odd: bool) -> Any:
    polars = import_module("polars")
    return polars.Series("x", _ticks(odd)).cast(polars.Duration("ms"))


COLUMNS: dict[str, Column] = {
    "arrow timestamp": _arrow("timestamp", "ms"),
    "arrow timestamp in a zone": _arrow("timestamp", "us", "Asia/Tokyo"),
    "arrow date": _days,
    "arrow duration": _arrow("duration", "s"),
    "arrow text that is no UTF-8": _broken_text,
    "pandas zone": _zone,
    "polars duration": _polars_duration,
}
"""Columns of which one cell is odd or not: Python has no date or text for it."""


def cells_of_columns() -> list[Case]:
    """Return a case for every column, and for every type that a collection of dask declares."""
    return [
        *(Case(f"cells: {name}", partial(_others, name)) for name in COLUMNS),
        *(
            Case(f"partitions: {name}, {how}", partial(_partitions, name, how == "arrays"))
            for name in DECLARED
            for how in ("frames", "arrays")
            if how == "frames" or name not in EXTENSIONS
        ),
    ]


def _others(name: str) -> Iterator[str]:
    plain, odd = (COLUMNS[name](each) for each in (False, True))
    for read in (one_column, lambda column: Table(_framed(column)).column(0)):
        try:
            same = _listed(read(plain)) == _listed(read(odd))
        except Exception as error:
            yield f"{name}: one cell makes reading raise {type(error).__name__}"
        else:
            if not same:
                yield f"{name}: one cell changes how others are read"


def _listed(cells: Any) -> list[tuple[type, str]]:
    """Return all cells but the odd one, with their types."""
    return [(type(cell), repr(cell)) for i, cell in enumerate(cells) if i != ODD]


def _framed(column: Any) -> Any:
    return column.to_frame()


def _values(name: str) -> Any:
    pandas = import_module("pandas")
    dates = pandas.Series(np.arange(N) * 86400 + 5).astype("datetime64[s]")
    return {
        "booleans": lambda: pandas.Series(np.arange(N) % 2 == 1),
        "integers": lambda: pandas.Series(np.arange(N) + 2**53 + 1),
        "floats": lambda: pandas.Series(np.arange(N) / 7),
        "single floats": lambda: pandas.Series((np.arange(N) / 7).astype(np.float32)),
        "dates": lambda: dates.astype("datetime64[ns]"),
        "dates in a zone": lambda: dates.dt.tz_localize("Europe/Berlin"),
        "durations": lambda: pandas.Series(np.arange(N)).astype("timedelta64[s]"),
        "nullable integers": lambda: pandas.Series(np.arange(N) + 2**53 + 1, dtype="Int64"),
        "categories": lambda: pandas.Series(np.arange(N), dtype="category"),
    }[name]()


DECLARED = (
    "booleans",
    "integers",
    "floats",
    "single floats",
    "dates",
    "dates in a zone",
    "durations",
    "nullable integers",
    "categories",
)
"""What a collection declares that holds a partition of objects."""
EXTENSIONS = ("dates in a zone", "nullable integers", "categories")
"""Types of pandas, which dask's arrays do not declare; dask warns of it."""


def _partitions(name: str, arrays: bool) -> Iterator[str]:
    plain, odd = (read_by_dask(name, missing, arrays) for missing in (False, True))
    for role in plain:
        pairs = [*zip(plain[role], odd[role], strict=True)]
        if any(bool(a != b) for a, b in pairs[:-1]):
            yield f"{name}: a missing value changes others of its partition, as {role}"


def read_by_dask(name: str, missing: bool, arrays: bool) -> dict[str, list[Any]]:
    """Return what is read as X, y and groups from two partitions; the last value may be missing."""
    pandas, frames = import_module("pandas"), import_module("dask.dataframe")
    values = _values(name)
    cells = values.astype(object)
    cells.iloc[-1] = None
    parts = [pandas.DataFrame({"x": column}) for column in (values, cells if missing else values)]
    frame = frames.from_map(lambda i: parts[i], [0, 1], meta=parts[0].iloc[:0])
    X, y = (frame[["x"]].values, frame["x"].values) if arrays else (frame[["x"]], frame["x"])
    records = PartitionedRecords.read(PartitionedTable(X), y)
    x, target = zip(*records.total(_pairs), strict=True)
    return {"X": [*x], "y": [*target], "groups": [*column_here(y)]}


def _pairs(shard: Any) -> list[Any]:
    return [*zip(shard.table.column(0), shard.target, strict=True)]
