"""One column of any container as texts, numbers or dates, each value read by itself.

**One column of any container, read so that no value influences how another one is read.**

numpy chooses the dtype of a list, a nullable or a categorical column by its values: with one value
missing, integers become floats, and 2^53 + 1 becomes 2^53. One record would recode all others. So
only columns of a fixed dtype are converted by numpy; all others are read cell by cell, as objects.
Lists have no type that says what a row is: every row of them is read alone, too.

**Dates and times of any type as numbers: seconds since the start of 1970 in UTC.**

The same instant gives the same number in every unit of numpy and in every time zone. What has no
time zone is taken as UTC.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain, islice
from numbers import Rational
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, FloatArray

# The methods that make a list: of pandas and polars, of pyarrow, of anything like numpy.
_LISTS = ("to_list", "to_pylist", "tolist")
# Polars' types whose missing values numpy shows as NaN or NaT.
_POLARS = ("Float32", "Float64", "Date", "Datetime", "Duration")
# Types of arrow whose missing values numpy shows as NaN or NaT.
_ARROW_NUMBERS = re.compile("halffloat|float|double|timestamp|date")
# Numpy has no missing value for these types of arrow.
_ARROW_INTEGERS = re.compile(r"u?int\d|bool")
# Types of pandas and polars that hold texts.
_TEXTS = re.compile("(large_)?(str|utf8)|dictionary|categorical|enum")

_SECONDS_IN = {"s": 1, "m": 60, "h": 3600, "D": 86400, "W": 7 * 86400}  # Seconds in a unit.
# Units in a second.
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_MOST_MONTHS = 12 * 10**6  # Months from 1970. Numpy's calendar overflows only far beyond.
# Columns of these kinds hold whole numbers.
WHOLE_KINDS: frozenset[Kind] = frozenset({"booleans", "integers"})
_NAMES: dict[Kind, str] = {  # How the names of types begin in numpy, pandas, polars and pyarrow.
    "booleans": r"bool",
    "integers": r"u?int\d",
    "numbers": r"float|double|halffloat|longdouble|decimal",
    "text": r"str|utf8|large_str|large_utf8",
    "dates": r"date|timestamp",
    "durations": r"duration|timedelta",
    "objects": r"object",
}
_UNKNOWN_CATEGORIES = "__UNKNOWN_CATEGORIES__"  # What dask lists if nobody has looked yet.


def cells_of(column: Any) -> AnyArray:
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
    if _ARROW_NUMBERS.match(str(getattr(column, "type", ""))):
        return np.asarray(column)
    listed = own_list(column)
    if listed is not None:
        return as_cells(listed, len(getattr(column, "shape", "n")))
    if not is_list(column):
        return np.asarray(column)
    return np.fromiter(map(_only_cell, column), dtype=object, count=len(column))


@dataclass(frozen=True)
class Repeated:
    """A column of few distinct cells; the last one (index -1) represents missing values."""

    places: AnyArray
    cells: AnyArray

    @property
    def shape(self) -> tuple[int]:
        """Number of cells."""
        return (len(self.places),)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the cells: objects."""
        return self.cells.dtype

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.places)

    def __getitem__(self, rows: Any) -> Repeated:
        """Return some of the rows."""
        return Repeated(self.places[rows], self.cells)

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        """Return every cell."""
        return np.asarray(self.cells[self.places], dtype)

    def each(self, read: Callable[[AnyArray], AnyArray]) -> AnyArray:
        """Return what a function that reads every cell by itself gives; distinct ones once."""
        return np.asarray(read(self.cells)[self.places])


Column = AnyArray | Repeated
"""A column that can be read cell by cell."""


def readable(column: Any) -> Column:
    """Return a column in the form that is read fastest; every cell is the same as in `cells_of`.

    Categories, dictionaries, and texts and integers of Arrow: distinct values are read once, each
    by itself. Integers of Arrow, none of them missing, have a type of numpy here: which form it is
    can depend on the records, so nothing but the cells may be looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> np.asarray(readable(pd.Series(["b", None, "b", "b"], dtype="category"))).tolist()
    ['b', nan, 'b', 'b']
    """
    if isinstance(column, Repeated):
        return column
    if _ARROW_INTEGERS.match(str(getattr(column, "type", ""))) and not column.null_count:
        return np.asarray(column)
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas
        places, values = np.asarray(column.cat.codes), column.cat.categories
    else:
        arrow = _arrow_dictionary(column)
        if arrow is None:
            return cells_of(column)
        places, values = arrow.indices, arrow.dictionary
        if places.null_count:
            places = places.cast("int64").fill_null(-1)
        places = places.to_numpy(zero_copy_only=False)
    if len(values) > len(places):
        return cells_of(column)
    missing = getattr(getattr(column, "dtype", None), "na_value", None)
    return Repeated(places, as_cells([*own_list(values), missing], 1))


def _arrow_dictionary(column: Any) -> Any:
    """Return texts, integers or a dictionary of Arrow as a dictionary, None for other columns."""
    name = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    whole = hasattr(column, "type") and _ARROW_INTEGERS.match(name)
    if isinstance(column, np.ndarray) or not (whole or _TEXTS.match(name)):
        return None
    try:
        import pyarrow as pa

        array = column.to_arrow() if hasattr(column, "to_arrow") else column
        array = array if isinstance(array, (pa.Array, pa.ChunkedArray)) else pa.array(array)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        return array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    except Exception:  # not stored by Arrow, or without pyarrow: then cells are read one by one
        return None


def own_list(column: Any) -> Any:
    """Return a column as a list by its own method, None if it has none."""
    name = next((name for name in _LISTS if hasattr(column, name)), None)
    return None if name is None else _listed(column, name)


def _listed(column: Any, name: str) -> Any:
    """Return a column as a list by its own method, with None for every cell that it cannot convert.

    Such a cell (a date after 9999, a text that is none) makes the method raise. So the column is
    halved until the cell is alone: all others are read by the same method, as they are without it.
    """
    try:
        return getattr(column, name)()
    except Exception:
        if len(column) <= 1:
            return [None] * len(column)
    half, by_position = len(column) // 2, getattr(column, "iloc", column)
    return [*_listed(by_position[:half], name), *_listed(by_position[half:], name)]


def as_cells(values: Any, ndim: int, width: int | None = None) -> AnyArray:
    """Return an array; of a list every cell as it is, row by row.

    Rows have ``width`` cells or, if that is not declared, as many as most of them have, which is
    then taken for public. Of a row that has another number, or that is none, all cells are missing:
    it must not decide how other rows are read.

    >>> as_cells([[1, 2], None, [3, 4], [5]], 2).tolist()
    [[1, 2], [None, None], [3, 4], [None, None]]
    >>> as_cells([[5], None], 2, width=2).tolist()
    [[None, None], [None, None]]
    """
    if not is_list(values):
        return np.asarray(values)
    if width is None and ndim == 2:
        width = _most_frequent_width(values)
    if width is None:
        return np.fromiter(values, dtype=object, count=len(values))
    rows = chain.from_iterable(_row(value, width) for value in values)
    cells = np.fromiter(rows, dtype=object, count=len(values) * width)
    return cells.reshape(len(values), width)


def _most_frequent_width(rows: Sequence[Any]) -> int | None:
    """Return how many cells most rows have, of two such numbers the larger; None without rows."""
    widths = Counter(_width(row) for row in rows)
    del widths[None]
    return max(widths, key=lambda width: (widths[width], width or 0), default=None)


def joined(parts: Sequence[AnyArray], axis: int = 0) -> AnyArray:
    """Return arrays as one; if their types differ, cell by cell, for numpy would choose one type.

    >>> joined([np.array([2**53 + 1]), np.array([np.nan])]).dtype
    dtype('O')
    """
    one_type = len({part.dtype for part in parts}) == 1
    return np.concatenate(parts if one_type else [*map(_objects, parts)], axis=axis)


def _objects(array: AnyArray) -> AnyArray:
    """Return an array of objects; numpy itself would make integers of dates in nanoseconds."""
    return np.fromiter(array.flat, dtype=object, count=array.size).reshape(array.shape)


def is_list(values: object) -> bool:
    """Tell whether values are a list, a tuple or the like, which has no type and no shape."""
    listed = isinstance(values, Sequence) and not _is_text(values)
    return listed and not hasattr(values, "__array__")


def _only_cell(cell: Any) -> Any:
    """Return what a row of one cell holds, anything else as it is."""
    kind = type(cell)  # compared by identity: what it is asked may raise anything
    row = kind is list or kind is tuple or (kind is np.ndarray and cell.ndim == 1)
    return cell[0] if row and len(cell) == 1 else cell


def _width(value: Any) -> int | None:
    """Return the number of cells of a row, None if it is none; its methods may raise anything."""
    try:
        return len(value) if hasattr(value, "__len__") and not _is_text(value) else None
    except Exception:
        return None


def _row(value: Any, width: int) -> Sequence[Any]:
    """Return the cells of a row of the expected length; others may be endless and are not read."""
    cells: list[Any] = []
    with suppress(Exception):
        cells = [*islice(value, width + 1)] if _width(value) == width else []
    return cells if len(cells) == width else [None] * width


def _is_text(value: object) -> bool:
    return isinstance(value, (str, bytes))


Date = date | np.datetime64
"""A date or a time: of the standard library, of numpy, or a pandas Timestamp."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # Dates are counted from here.


def is_date(value: object) -> bool:
    """Tell whether a value is a date or a time."""
    return isinstance(value, (date, np.datetime64))


def date_of_text(value: Any) -> Any:
    """Return the date or time that a text in ISO format means, and anything else as it is."""
    with suppress(ValueError):
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    return value


def seconds(value: Any) -> float:
    """Return the number of one date or time, NaN if it is missing.

    Examples
    --------
    >>> seconds(date(1970, 1, 2)), seconds(np.datetime64("1970-01-01T00:00:01.5"))
    (86400.0, 1.5)
    """
    if hasattr(value, "to_datetime64"):  # of pandas: in UTC, and beyond the years of Python
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return float(seconds_of_column(np.array([value]))[0])
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
    return float(since.days * 86400 + since.seconds + since.microseconds / 10**6)


def seconds_of_column(values: AnyArray) -> FloatArray:
    """Return the numbers of an array of ``datetime64``, NaN for what is missing."""
    unit, step = np.datetime_data(values.dtype)
    missing = np.isnat(values)
    if unit in {"Y", "M"}:
        most = _MOST_MONTHS // (step * (12 if unit == "Y" else 1))
        steps = np.clip(values.astype(np.int64), -most, most).astype(values.dtype)
        values, unit, step = steps.astype("datetime64[D]"), "D", 1
    ticks = values.astype(np.int64)
    if unit in _SECONDS_IN:
        numbers: FloatArray = ticks.astype(np.float64) * (step * _SECONDS_IN[unit])
    else:
        # the fraction by itself: the same for all units, and exact where it can be
        per_second = _PER_SECOND.get(unit, 1)
        whole, rest = np.divmod(ticks, per_second)
        exact = whole.astype(np.float64) + rest / per_second
        numbers = exact if step == 1 else ticks * np.float64(step / per_second)
    return np.where(missing, np.nan, numbers)


def as_numbers(values: Column) -> FloatArray:
    """Return ``values`` as float64, with NaN wherever there is no number to read.

    A date is the number of seconds since the start of 1970 in UTC.
    """
    if isinstance(values, Repeated):
        return values.each(as_numbers)
    # beyond the largest float is infinity, a signalling NaN is a NaN: both without a warning
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind in "biuf":
            return values.astype(np.float64, copy=False)
        if values.dtype.kind == "M":
            return seconds_of_column(values)
        return np.fromiter((number_of(v) for v in values.ravel()), np.float64).reshape(values.shape)


def is_missing(values: AnyArray) -> npt.NDArray[np.bool_]:
    """Tell which cells are missing: None, NaN, NaT and the NA of pandas, and no odd value.

    >>> is_missing(np.array([None, np.nan, "n/a", 0], dtype=object)).tolist()
    [True, True, False, False]
    """
    return np.fromiter(map(_is_missing, values.ravel()), bool, values.size)


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except Exception:  # NA is neither equal nor different
        return type(cell).__name__ == "NAType"


def number_of(value: object) -> float:
    """Return a value as a float, NaN if it is no number; never raises or warns."""
    if issubclass(type(value), (np.complexfloating, np.ndarray)):  # numpy would warn
        return math.nan
    try:
        return seconds(value) if is_date(value) else float(value)  # type: ignore[arg-type]
    except OverflowError:
        return _infinite(value)
    except Exception:
        return math.nan


def _infinite(value: object) -> float:
    """Return the infinity for an integer or a fraction beyond the largest float."""
    try:
        if isinstance(value, Rational):
            return math.inf if int(value.numerator) > 0 else -math.inf
    except Exception:
        return math.nan
    return math.nan


Kind = Literal[
    "booleans", "integers", "numbers", "text", "dates", "durations", "objects", "anything"
]
"""Kind of the values of a column: ``anything`` where it has no dtype that determines it.

``objects`` of numpy are mostly texts that nobody has parsed.
"""


def kind_of(dtype: Any) -> Kind:
    """Return the kind of values that a type declares; it is read off its name, never off a value.

    Examples
    --------
    >>> kind_of(np.dtype("int8")), kind_of(np.dtype("<U3")), kind_of(np.dtype(object))
    ('integers', 'text', 'objects')
    """
    name = dtype.name if isinstance(dtype, np.dtype) else str(dtype)
    for kind, pattern in _NAMES.items():
        if re.match(pattern, name.lower()):
            return kind
    return "anything"


def kind_of_column(column: Any) -> Kind:
    """Return the kind of values that the type of a column declares; of text categories, text.

    Categories of other types say nothing: with one value missing, integers are listed as floats.
    """
    dtype: Any = getattr(column, "dtype", getattr(column, "type", None))
    if isinstance(column, (np.ndarray, Repeated)) and column.dtype.kind == "O":
        return "anything"  # as in a list; a column of a frame would have been parsed
    listed: Any = getattr(dtype, "categories", None)  # of pandas, and the Enum of polars
    known = listed is not None and _UNKNOWN_CATEGORIES not in listed
    arrow = getattr(getattr(dtype, "pyarrow_dtype", dtype), "value_type", None)  # of a dictionary
    polars = str(dtype).startswith("Categorical")
    if polars or "text" in (kind_of(listed.dtype) if known else "", kind_of(arrow)):
        return "text"
    return kind_of(dtype)
