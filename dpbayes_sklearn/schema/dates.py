"""Dates and times of any type as numbers: seconds since the start of 1970 in UTC.

The same instant gives the same number in every unit of numpy and in every time zone. What has no
time zone is taken as UTC.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray

__all__ = ["Date", "is_date", "seconds", "seconds_of_column"]

Date = date | np.datetime64
"""A date or a time: of the standard library, of numpy, or a pandas Timestamp."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONG = {"s": 1, "m": 60, "h": 3600, "D": 86400, "W": 7 * 86400}  # seconds in a unit
_SHORT = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_MOST_MONTHS = 12 * 10**6  # from 1970; numpy's calendar overflows far beyond


def is_date(value: object) -> bool:
    """Tell whether a value is a date or a time."""
    return isinstance(value, (date, np.datetime64))


def seconds(value: Any) -> float:
    """Return the number of one date or time, NaN if it is missing.

    Examples
    --------
    >>> seconds(date(1970, 1, 2)), seconds(np.datetime64("1970-01-01T00:00:01.5"))
    (86400.0, 1.5)
    """
    if isinstance(value, np.datetime64):
        return float(seconds_of_column(np.array([value]))[0])
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
    fraction = 1000 * since.microseconds + getattr(since, "nanoseconds", 0)
    return float(since.days * 86400 + since.seconds + fraction / 10**9)


def seconds_of_column(values: npt.NDArray[Any]) -> FloatArray:
    """Return the numbers of an array of ``datetime64``, NaN for what is missing."""
    unit, step = np.datetime_data(values.dtype)
    missing = np.isnat(values)
    if unit in {"Y", "M"}:
        most = _MOST_MONTHS // (step * (12 if unit == "Y" else 1))
        steps = np.clip(values.astype(np.int64), -most, most).astype(values.dtype)
        values, unit, step = steps.astype("datetime64[D]"), "D", 1
    ticks = values.astype(np.int64)
    if unit in _LONG:
        numbers: FloatArray = ticks.astype(np.float64) * (step * _LONG[unit])
    else:
        # the fraction by itself: the same for all units, and exact where it can be
        per_second = _SHORT.get(unit, 1)
        whole, rest = np.divmod(ticks, per_second)
        exact = whole.astype(np.float64) + rest / per_second
        numbers = exact if step == 1 else ticks * np.float64(step / per_second)
    return np.where(missing, np.nan, numbers)
