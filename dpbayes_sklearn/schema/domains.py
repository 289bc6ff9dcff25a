"""The public domain of one column: an interval of numbers or dates, or a list of categories.

Both are *total*: every possible value, declared or not, finite or not, is mapped into the domain,
so whether a fit succeeds cannot depend on a record.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise, repeat
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.schema.values import (
    Date,
    Kind,
    Repeated,
    as_numbers,
    cells_of,
    date_of_text,
    is_date,
    number_of,
)

MOST_BINS = 2**16
"""Bins of one column, at most: their number is refused before tables of them are made."""
YEAR = 31_557_600
"""Seconds of 365.25 days: slopes of dates are shown per year."""
# Only noise can give dates beyond this number of seconds; they are shown as this one.
_MOST_SECONDS = 1e17
_LEAST_SPAN = 1e-290  # The scale of a bin would overflow for a narrower interval.
# Intervals take columns of these kinds.
_NUMBERS: frozenset[Kind] = frozenset({"booleans", "integers", "numbers"})
_LISTED = 10  # A card lists the categories up to this number of them.

_TABLE_SPAN = 1000  # Integers that lie no further apart are looked up in a table.
# The difference of a smaller integer and any other is not small, even if it overflows.
_LARGEST_CODE = 2**62
_CELLS_AT_A_TIME = 1 << 17  # This many integers are looked up at a time.
_BOOLEAN_WORDS = frozenset({"True", "False"})  # The texts of booleans.


class Described(NamedTuple):
    """The values or bounds of a domain, and what other values count as."""

    domain: str
    others: str


@dataclass(frozen=True, init=False, repr=False)
class Interval:
    """A number, or a date, between two public bounds.

    Values below ``low`` count as ``low`` and values above ``high`` as ``high``, including
    infinities. ``missing`` determines how missing values, and values that are not numbers, are
    treated.

    Parameters
    ----------
    low, high : float, date, datetime, datetime64 or text in ISO format
        Public bounds, ``low < high``. Dates, such as ``"2020-12-31"``, are converted to seconds
        since the start of 1970 in UTC, and so are the dates of a column, whatever their unit and
        time zone.
    bins : int, optional
        Number of equal-width bins for discrete models, at most 65536. By default the ``n_bins`` of
        the estimator is used.
    dates : bool, default=False
        Whether numeric bounds are such seconds.
    edges : iterable of float, optional
        Public edges between bins of unequal width, such as released quantiles, in ascending order.
        There is one more bin than there are edges, and the outer bins are unbounded.
    missing : "middle", "indicator", float or date, default="middle"
        What a missing value counts as: the middle of the interval, a value in it, or a separate
        value. With ``"indicator"`` a discrete model has an additional bin for missing values, and
        a regression an additional coefficient, so that they do not affect the slope.

    Examples
    --------
    >>> import numpy as np
    >>> age = Interval(17, 90, bins=4)
    >>> age.encode(np.array([3, 20, 60, 1e9, np.nan]))
    array([0, 0, 2, 3, 2])
    >>> admission = Interval("2020-01-01", "2024-01-01", bins=4)
    >>> admission.encode(np.array(["2019-05-01", "2021-06-01", "2023-12-24"], "datetime64[D]"))
    array([0, 1, 3])
    >>> Interval(0, 100, bins=4, missing="indicator").encode(np.array([3, 99, np.nan]))
    array([0, 3, 4])
    """

    low: float
    high: float
    bins: int | None
    dates: bool
    edges: tuple[float, ...] | None
    missing: float | str
    is_numeric: ClassVar[bool] = True

    def __init__(
        self,
        low: float | Date | str,
        high: float | Date | str,
        bins: int | None = None,
        dates: bool = False,
        edges: Iterable[float] | None = None,
        missing: float | str | Date = "middle",
    ) -> None:
        low, high = date_of_text(low), date_of_text(high)
        are_dates = is_date(low)
        if are_dates != is_date(high):
            raise ValueError("Interval bounds must be both numbers or both dates.")
        object.__setattr__(self, "dates", bool(dates) or are_dates)
        for name, value in (("low", low), ("high", high)):
            real = isinstance(value, Real) and not isinstance(value, bool)
            number = number_of(value) if real or are_dates else math.nan
            if not math.isfinite(number):
                raise ValueError(
                    f"Interval {name} must be a finite number, or a date such as '2020-12-31'. "
                    f"Got {value!r} instead."
                )
            object.__setattr__(self, name, number)
        if not _LEAST_SPAN <= self.high - self.low < math.inf:
            raise ValueError(
                f"Interval bounds must have low < high. Got ({self.low:g}, {self.high:g}) instead."
            )
        if bins is not None:
            whole = isinstance(bins, Integral) and not isinstance(bins, bool)
            if not (whole and 2 <= bins <= MOST_BINS):
                raise ValueError(
                    f"Interval bins must be an int >= 2, at most {MOST_BINS}. Got {bins!r} instead."
                )
            bins = int(bins)
        object.__setattr__(self, "edges", None if edges is None else _checked(edges, bins))
        object.__setattr__(self, "bins", bins if self.edges is None else len(self.edges) + 1)
        object.__setattr__(self, "missing", self._checked_missing(missing))

    def _checked_missing(self, missing: Any) -> float | str:
        """Return where missing values go, or refuse it."""
        if isinstance(missing, str) and missing in {"middle", "indicator"}:
            return missing
        real = isinstance(missing, Real) and not isinstance(missing, bool)
        number = number_of(missing) if real or is_date(missing) else math.nan
        if not self.low <= number <= self.high:
            raise ValueError(
                "Interval missing must be 'middle', 'indicator', or a value from "
                f"{self.short}. Got {missing!r} instead."
            )
        return number

    def __repr__(self) -> str:
        more = ", dates=True" if self.dates else ""
        more += "" if self.edges is None else f", edges={self.edges!r}"
        more += "" if self.missing == "middle" else f", missing={self.missing!r}"
        return f"Interval(low={self.low!r}, high={self.high!r}, bins={self.bins!r}{more})"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as an object for JSON."""
        fields = {"low": self.low, "high": self.high, "bins": self.bins, "dates": self.dates}
        edges = {} if self.edges is None else {"edges": [*self.edges]}
        missing = {} if self.missing == "middle" else {"missing": self.missing}
        return {**fields, **edges, **missing}

    def described(self) -> Described:
        """Describe the interval in words."""
        bounds = self.short.replace("T00:00:00", "")  # of dates
        bins = "" if self.bins is None else f", {self.bins} bins"
        own = {"middle": "the middle", "indicator": "a separate value"}
        missing = own.get(str(self.missing), f"{self.stand_in:g}")
        return Described(bounds + bins, f"the nearest end; if missing, {missing}")

    def takes(self, kind: Kind) -> bool:
        """Tell whether a column of this kind can hold values of the interval."""
        return kind == "anything" or (kind == "dates" if self.dates else kind in _NUMBERS)

    @property
    def expects(self) -> str:
        """Kind of the values, for error messages."""
        return "dates" if self.dates else "numbers"

    @property
    def short(self) -> str:
        """Short description of the interval."""
        if not self.dates:
            return f"[{self.low:g}, {self.high:g}]"
        low, high = (np.clip(end, -_MOST_SECONDS, _MOST_SECONDS) for end in (self.low, self.high))
        return f"[{np.datetime64(int(low), 's')}, {np.datetime64(int(high), 's')}]"

    @property
    def middle(self) -> float:
        """Return the number that is as far from one bound as from the other."""
        return self.low + (self.high - self.low) / 2

    @property
    def stand_in(self) -> float:
        """Return the number that replaces a missing value; the middle if there is an indicator."""
        return self.middle if isinstance(self.missing, str) else self.missing

    @property
    def marks_missing(self) -> bool:
        """Whether missing values have a bin, or a coordinate, of their own."""
        return self.missing == "indicator"

    @property
    def is_ordered(self) -> bool:
        """Whether all codes are in the order of the numbers."""
        return not self.marks_missing

    @property
    def has_codes(self) -> bool:
        """Whether values can be encoded: whether the number of bins is settled."""
        return self.bins is not None

    def in_bins(self, bins: int | None) -> Interval:
        """Return the interval with this number of bins, unless it has bins already."""
        return self if self.has_codes else replace(self, bins=bins)

    @property
    def n_integers(self) -> int | None:
        """Number of integers in the interval if both bounds are integers, else None."""
        whole = self.edges is None and self.low.is_integer() and self.high.is_integer()
        return int(self.high - self.low) + 1 if whole else None

    @property
    def n_values(self) -> int:
        """Number of codes of :meth:`encode`."""
        if self.bins is None:
            raise ValueError("This Interval has no bins; give Interval(low, high, bins=...).")
        return self.bins + self.marks_missing

    def clip(self, values: npt.ArrayLike) -> FloatArray:
        """Return every value as a number of the interval."""
        numbers = as_numbers(cells_of(values))
        clipped: FloatArray = np.clip(numbers, self.low, self.high)
        return np.where(np.isnan(clipped), self.stand_in, clipped)

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return the bin of every value, from 0 to ``n_values`` - 1."""
        if isinstance(values, Repeated):
            return values.each(self.encode)
        numbers = as_numbers(cells_of(values))
        codes = self._bin(numbers)
        return np.where(np.isnan(numbers), self._bins, codes) if self.marks_missing else codes

    def _bin(self, numbers: FloatArray) -> npt.NDArray[np.intp]:
        if self.edges is not None:
            known = np.where(np.isnan(numbers), self.stand_in, numbers)
            return np.searchsorted(np.array(self.edges), known, side="right")
        position: npt.NDArray[np.intp] = self._position(self.clip(numbers)).astype(np.intp)
        return np.minimum(position, self._bins - 1)

    @property
    def _bins(self) -> int:
        """Number of bins of numbers, not of missing values."""
        return self.n_values - self.marks_missing

    names_unseen: ClassVar[bool] = False
    """Whether a value for missing ones was chosen, if it is the domain of a target."""

    def could_be_codes(self, kind: Kind) -> bool:
        """Return False: numbers of an interval are no codes of classes."""
        return False

    def is_known(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which values are numbers, in the interval or outside of it."""
        return ~np.isnan(as_numbers(cells_of(values)))

    def holds(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which values are numbers of the interval."""
        numbers = as_numbers(cells_of(values))
        return (self.low <= numbers) & (numbers <= self.high)

    def decode(self, codes: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """Return a value of every bin: its integer, or a number drawn evenly from it.

        NaN stands for the bin of missing values.
        """
        known = np.minimum(codes, self._bins - 1)
        numbers = self._drawn(known, rng)
        return np.where(known == codes, numbers, np.nan)

    def _drawn(self, codes: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        position = codes.astype(np.float64)
        if self.edges is not None:
            ends = np.array([self.low, *self.edges, self.high])
            widths = np.diff(ends)[codes]
            return np.asarray(ends[codes] + rng.random(len(codes)) * widths)
        if self.n_integers != self.bins:
            position += rng.random(len(codes))
            position *= (self.high - self.low) / self._bins
        return self.low + position

    def _position(self, numbers: Any) -> Any:
        """Return where numbers lie, in bins from the low end."""
        return (numbers - self.low) * (self._bins / (self.high - self.low))

    def names_of_codes(self) -> list[str]:
        """Return a name of every code: its integer, or the ends of its bin."""
        edges = np.linspace(self.low, self.high, self._bins + 1)
        if self.edges is not None:
            edges = np.array([-np.inf, *self.edges, np.inf])
        missing = ["missing"] if self.marks_missing else []
        if self.n_integers == self.bins:
            return [f"{self.low + code:g}" for code in range(self._bins)] + missing
        return [f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)] + missing

    @property
    def second_bin(self) -> float:
        """Return the smallest number that :meth:`encode` does not put into the first bin."""
        first, second = self.low, self.high
        while first < (middle := first + (second - first) / 2) < second:
            first, second = (middle, second) if self._position(middle) < 1 else (first, middle)
        return second


def _checked(edges: Iterable[float], bins: int | None) -> tuple[float, ...]:
    """Return edges between bins, or refuse them."""
    given = tuple(float(edge) for edge in edges)
    ordered = all(a <= b for a, b in pairwise(given))
    if not given or not ordered or not all(map(math.isfinite, given)):
        raise ValueError("Interval edges must be finite numbers in ascending order, at least one.")
    if len(given) >= MOST_BINS:
        raise ValueError(
            f"Interval edges must be at most {MOST_BINS - 1}, one for each bin but the last."
        )
    if bins not in (None, len(given) + 1):
        raise ValueError(f"Interval has {len(given)} edges, so it has {len(given) + 1} bins.")
    return given


# The types of numpy that categories can be declared in.
_TYPES = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def _holds(dtype: str, values: tuple[Any, ...]) -> bool:
    """Tell whether an array of this type can hold the values as they are."""
    if dtype not in _TYPES or any(isinstance(value, str) for value in values):
        return False
    try:
        return bool(np.asarray(values, dtype).tolist() == [*values])
    except (TypeError, ValueError, OverflowError):
        return False


@dataclass(frozen=True, init=False)
class Categories:
    """One of a public list of values, such as strings, integers or booleans.

    A value that is not in the list counts as ``unseen``, and so does a missing value. If all
    categories are strings, other values are compared by their text, so ``3`` and ``3.0`` match
    ``"3"``; if all are numbers, texts are read as numbers, so ``"3"`` and ``"3.0"`` match ``3``.
    Booleans match ``"True"`` and ``"False"`` if one of these is a category, otherwise
    ``"1"`` and ``"0"``.

    Parameters
    ----------
    values : iterable
        The categories, at least one, all different.
    unseen : category, optional
        The category that any other value counts as; by default the first one.
    dtype : str, optional
        Type of the array of all categories, such as ``"int8"``. By default that of ``values`` if
        they are an array of numbers, otherwise the type that numpy infers.

    Examples
    --------
    >>> import numpy as np
    >>> job = Categories(["clerk", "nurse", "other"], unseen="other")
    >>> job.encode(np.array(["nurse", "pilot", None], dtype=object))
    array([1, 2, 2])
    """

    values: tuple[Hashable, ...]
    unseen: Hashable
    dtype: str | None = field(compare=False, repr=False)
    is_numeric: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = False
    has_codes: ClassVar[bool] = True
    marks_missing: ClassVar[bool] = False
    n_integers: ClassVar[None] = None

    def __init__(
        self, values: Iterable[Hashable], unseen: Hashable = None, dtype: str | None = None
    ) -> None:
        if isinstance(values, (str, bytes)):
            raise TypeError(
                f"Categories takes a list of values, as in Categories([{values!r}, ...]). "
                f"Got {values!r} instead, whose letters would be the categories."
            )
        given = getattr(values, "dtype", None)
        if dtype is None and isinstance(given, np.dtype) and given.name in _TYPES:
            dtype = given.name
        plain = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
        if not all(isinstance(value, Hashable) for value in plain):
            raise TypeError("Categories must be values such as strings or numbers, not lists.")
        if not plain:
            raise ValueError("Categories must hold at least one value. Got an empty list instead.")
        if any(value is ... for value in plain):
            raise ValueError("Categories must be values in place of the ... of a template.")
        if any(isinstance(value, float) and math.isnan(value) for value in plain):
            raise ValueError("Categories must not hold NaN: a missing value counts as unseen.")
        if len(set(plain)) != len(plain):
            raise ValueError("Categories must be all different. Got a repeated value instead.")
        if unseen is not None and unseen not in plain:
            raise ValueError(
                f"Categories unseen must be one of the values. Got {unseen!r} instead."
            )
        if dtype is not None and not _holds(dtype, plain):
            raise ValueError(
                "Categories dtype must be a type of numbers that holds the values. "
                f"Got {dtype!r} instead."
            )
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "values", plain)
        object.__setattr__(self, "unseen", plain[0] if unseen is None else unseen)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the declared fields only, so that cached values reveal no earlier use."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as an object for JSON, or refuse categories that it cannot hold."""
        for value in self.values:
            if not is_json_label(value):
                raise ValueError(
                    "Only categories and classes that are strings, booleans, integers, finite "
                    "floats or None can be exported as JSON. "
                    f"Got {type(value).__name__} instead."
                )
        return {"values": [*self.values], "unseen": self.unseen, "dtype": self.dtype}

    def described(self) -> Described:
        """Describe the categories in words."""
        few = self.n_values <= _LISTED
        return Described(", ".join(map(str, self.values)) if few else self.short, str(self.unseen))

    def in_bins(self, bins: int | None) -> Categories:
        """Return the categories as they are: every one has a code."""
        return self

    def names_of_codes(self) -> list[str]:
        """Return a name of every code."""
        return [str(value) for value in self.values]

    @property
    def labels(self) -> AnyArray:
        """All categories as an array."""
        return np.asarray(self.values, dtype=self.dtype)

    @property
    def n_values(self) -> int:
        """Number of codes of :meth:`encode`."""
        return len(self.values)

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        return {value: code for code, value in enumerate(self.values)}

    @cached_property
    def _all_text(self) -> bool:
        return all(isinstance(v, str) for v in self.values)

    @cached_property
    def _all_numbers(self) -> bool:
        return all(isinstance(v, Real) for v in self.values)

    @cached_property
    def _lookup(self) -> tuple[int, npt.NDArray[np.intp]] | None:
        """For integers close together: the first place, and the codes from there on.

        The first and the last place are no categories, so all that lies beyond may go there.
        """
        whole = [v for v in self.values if type(v) is int]
        if len(whole) < len(self.values):
            return None
        low, high = min(whole) - 1, max(whole) + 1
        if high - low > _TABLE_SPAN or max(-low, high) > _LARGEST_CODE:
            return None
        return low, np.array([self._code(v) for v in range(low, high + 1)], np.intp)

    def takes(self, kind: Kind) -> bool:
        """Tell whether a column of this kind can hold any of the categories."""
        numeric = (v for v in self.values if self._all_text or isinstance(v, Real))
        numbers = {number for number in map(number_of, numeric) if not math.isnan(number)}
        if kind == "booleans":
            return not (numbers.isdisjoint({0, 1}) and _BOOLEAN_WORDS.isdisjoint(self.values))
        if kind in {"integers", "numbers"}:
            return bool(numbers)
        if kind == "text":
            return any(isinstance(value, str) for value in self.values)
        return kind == "anything" or not self._all_numbers

    @property
    def expects(self) -> str:
        """Kinds of the values, for error messages."""
        kinds = {bool: "booleans", int: "numbers", float: "numbers", str: "text"}
        return " or ".join(sorted({kinds.get(type(v), "other values") for v in self.values}))

    @property
    def short(self) -> str:
        """Short description of the categories."""
        return f"{self.n_values} categories"

    def _code(self, value: Any) -> int:
        code = self._find(value)
        return self._codes[self.unseen] if code is None else code

    def _find(self, value: Any) -> int | None:
        try:
            if self._all_text and not isinstance(value, str):
                value = None if value is None or value != value else self._text(value)
            elif self._all_numbers and isinstance(value, str):
                value = self._number(value)
            return self._codes.get(value)
        except Exception:  # a value that has no hash or no text, or is pandas.NA, is no category
            return None

    def _text(self, value: Any) -> str:
        """Return the text by which a value that is none is compared."""
        if isinstance(value, (bool, np.bool_)) and not _BOOLEAN_WORDS.isdisjoint(self._codes):
            return str(bool(value))
        number = number_of(value) if isinstance(value, (Real, np.generic)) else math.nan
        return str(int(number)) if number.is_integer() else str(value)

    def _number(self, text: str) -> object:
        """Return the number by which a text is compared."""
        if text in _BOOLEAN_WORDS and any(isinstance(value, bool) for value in self.values):
            return text == "True"
        with suppress(ValueError):  # of whole numbers every digit
            return int(text)
        return number_of(text)

    def encode(self, values: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return the code of every value, from 0 to ``n_values`` - 1."""
        if isinstance(values, Repeated):
            return values.each(self.encode)
        column = cells_of(values)
        if column.dtype.kind in "bi" and self._lookup is not None:
            low, codes = self._lookup
            # what is so far away that the difference overflows goes to one of the ends as well
            return codes.take(column.astype(np.intp, copy=False) - low, mode="clip")
        if column.dtype.kind in "biuf":  # few distinct numbers: look each of them up once
            distinct, inverse = np.unique(column, return_inverse=True)
            codes = np.fromiter((self._code(v) for v in distinct), np.intp, distinct.size)
            return codes[inverse]
        if self._all_text:
            with suppress(Exception):  # a cell without a hash
                codes = np.fromiter(map(self._codes.get, column, repeat(-1)), np.intp, column.size)
                for i in np.flatnonzero(codes < 0).tolist():  # no category as it is
                    codes[i] = self._code(column[i])
                return codes
        return np.fromiter((self._code(v) for v in column), np.intp, column.size)

    @property
    def names_unseen(self) -> bool:
        """Whether a category for all other values was chosen: not the first, as by default."""
        return self._codes[self.unseen] != 0

    def could_be_codes(self, kind: Kind) -> bool:
        """Tell whether a column of this kind can only hold codes of the categories."""
        return kind == "integers" and self._all_text and not self.takes(kind)

    def is_known(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which values are categories."""
        return self.holds(values)

    def holds(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which values are categories."""
        if isinstance(values, Repeated):
            return values.each(self.holds)
        cells = cells_of(values)
        if cells.dtype.kind in "bi" and self._lookup is not None:
            low, codes = self._lookup
            held = np.isin(np.arange(low, low + len(codes)), np.array(self.values))
            flat = cells.reshape(-1)
            known = np.empty(flat.size, bool)
            for first in range(0, flat.size, _CELLS_AT_A_TIME):
                some = flat[first : first + _CELLS_AT_A_TIME].astype(np.intp, copy=False)
                held.take(some - low, mode="clip", out=known[first : first + _CELLS_AT_A_TIME])
            return known.reshape(cells.shape)
        if cells.dtype.kind not in "biuf":
            return np.array([self._find(value) is not None for value in cells], bool)
        distinct, inverse = np.unique(cells, return_inverse=True)
        return np.array([self._find(value) is not None for value in distinct], bool)[inverse]

    def decode(self, codes: npt.NDArray[np.intp], rng: np.random.Generator) -> AnyArray:
        """Return the category of every code; no draw is needed."""
        return np.asarray(self.values, dtype=object if self._all_text else None)[codes]


def is_json_label(value: Any) -> bool:
    """Tell whether a value can be a category in JSON."""
    finite = type(value) is float and math.isfinite(value)
    return finite or value is None or type(value) in (str, bool, int)


Domain = Interval | Categories
