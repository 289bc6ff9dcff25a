"""A public interval of numbers or dates, into which every possible value is mapped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.schema.values import Date, Kind, as_numbers, cells_of, is_date, number_of

__all__ = ["MOST_BINS", "Interval"]

MOST_BINS = 2**16
"""Bins of one column, at most: their number is refused before tables of them are made."""
_FAR = 1e17  # seconds: dates beyond, which only noise can give, are shown as this one
_LEAST_SPAN = 1e-290  # below it, the scale of a bin would overflow
_NUMBERS: frozenset[Kind] = frozenset({"booleans", "integers", "numbers"})


@dataclass(frozen=True, init=False, repr=False)
class Interval:
    """A number, or a date, between two public bounds.

    Values below ``low`` count as ``low`` and values above ``high`` as ``high``, including
    infinities. ``missing`` determines how missing values, and values that are not numbers, are
    treated.

    Parameters
    ----------
    low, high : float, date, datetime or datetime64
        Public bounds, ``low < high``. Dates are converted to seconds since the start of 1970 in
        UTC, and so are the dates of a column, whatever their unit and time zone.
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
    >>> from datetime import date
    >>> admission = Interval(date(2020, 1, 1), date(2024, 1, 1), bins=4)
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

    def __init__(
        self,
        low: float | Date,
        high: float | Date,
        bins: int | None = None,
        dates: bool = False,
        edges: Iterable[float] | None = None,
        missing: float | str | Date = "middle",
    ) -> None:
        if is_date(low) != is_date(high):
            raise ValueError("Interval bounds must be both numbers or both dates.")
        object.__setattr__(self, "dates", bool(dates) or is_date(low))
        for name, value in (("low", low), ("high", high)):
            real = isinstance(value, Real) and not isinstance(value, bool)
            number = number_of(value) if real or is_date(value) else math.nan
            if not math.isfinite(number):
                raise ValueError(
                    f"Interval {name} must be a finite number or a date. Got {value!r} instead."
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
        low, high = (np.clip(end, -_FAR, _FAR) for end in (self.low, self.high))
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
