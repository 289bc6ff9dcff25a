"""Texts of a partition as what its collection declares: numbers, booleans, dates or durations.

A partition with a missing value often has objects where others have numbers, and dask makes texts
of objects. One record would recode all others of its partition. So texts are read again, each by
itself, wherever something else is declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.data.table import is_frame
from dpbayes_sklearn.schema.values import cells_of, kind_of

__all__ = ["Reader", "as_declared", "reader_of"]

Reader = Callable[[str], Any]
"""Reads one text; it may raise whatever it likes if the text has another form."""

_TRUTH = {"True": True, "False": False}
_ISO_DATE = re.compile(  # pandas also reads "now", as another date every time
    r"-?\d+-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d(:?\d\d(:?\d\d)?)?)?", re.ASCII
)


def reader_of(dtype: Any) -> Reader | None:
    """Return how a declared type reads a text, None where it does not say: there texts stay.

    Examples
    --------
    >>> reader_of(np.dtype(int))("7"), reader_of(np.dtype(bool))("True"), reader_of(np.dtype("U1"))
    (7, True, None)
    """
    categories = getattr(dtype, "categories", None)
    dtype = dtype if categories is None else categories.dtype
    kind = kind_of(dtype)
    if kind in {"dates", "durations"}:
        read = _date if kind == "dates" else _duration
        return partial(read, dtype=dtype if isinstance(dtype, np.dtype) else None)
    if str(dtype).startswith("decimal"):
        return Decimal
    if kind == "numbers":
        return partial(_float, read=dtype.type if isinstance(dtype, np.dtype) else float)
    return _integer if kind in {"booleans", "integers"} else None


def as_declared(partition: Any, readers: Sequence[Reader | None]) -> Any:
    """Return a partition with texts read again where its collection declares something else."""
    if not is_frame(partition):
        read = readers[0]
        texts = _may_hold_texts(getattr(partition, "dtype", None))
        return _again(partition, read) if read and texts else partition
    for j, (read, dtype) in enumerate(zip(readers, partition.dtypes, strict=False)):
        if read and _may_hold_texts(dtype):
            again = _again(partition.iloc[:, j], read)
            partition = partition.copy(deep=False)  # what was given stays as it is
            partition.isetitem(j, again)
    return partition


def _may_hold_texts(dtype: Any) -> bool:
    return kind_of(dtype) in {"text", "anything"}


def _again(values: Any, read: Reader) -> npt.NDArray[Any]:
    cells = cells_of(values)
    again = (_cell(cell, read) for cell in cells.flat)
    return np.fromiter(again, dtype=object, count=cells.size).reshape(cells.shape)


def _cell(cell: Any, read: Reader) -> Any:
    """Return what a text says, None if it cannot be read; anything else as it is."""
    if not issubclass(type(cell), str):
        return cell
    try:
        return read(cell)
    except Exception:
        return None


def _integer(text: str) -> Any:
    if text in _TRUTH:
        return _TRUTH[text]
    try:
        return int(text)
    except ValueError:
        return float(text)


def _float(text: str, read: Callable[[Any], Any]) -> Any:
    return read(_TRUTH.get(text, text))


def _date(text: str, dtype: np.dtype[Any] | None) -> Any:
    if not _ISO_DATE.fullmatch(text):
        return None
    date = import_module("pandas").Timestamp(text)
    return date if dtype is None else _in_unit(date.to_datetime64(), dtype)


def _duration(text: str, dtype: np.dtype[Any] | None) -> Any:
    span = import_module("pandas").Timedelta(text)
    return span if dtype is None else _in_unit(span.to_timedelta64(), dtype)


def _in_unit(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a date or a duration in the declared unit, in its own if that cannot hold it."""
    declared = value.astype(dtype)
    return declared if declared.astype(value.dtype) == value else value
