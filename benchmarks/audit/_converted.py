"""Columns that their own containers convert: one cell must not change how others are read.

A container that makes a list of a column stops at a cell that has no form in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.audit._cases import Case
from dpbayes_sklearn.data.table import Table, one_column

__all__ = ["COLUMNS", "cells_of_columns"]

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
    """Return a case for every column."""
    return [Case(f"cells: {name}", partial(_others, name)) for name in COLUMNS]


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
