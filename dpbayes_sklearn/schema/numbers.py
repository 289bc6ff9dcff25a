"""Conversion of any value to a number, without errors or warnings."""

from __future__ import annotations

import math
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.schema.dates import is_date, seconds, seconds_of_column

__all__ = ["as_numbers", "number_of"]


def as_numbers(values: npt.NDArray[Any]) -> FloatArray:
    """Return ``values`` as float64, with NaN wherever there is no number to read.

    A date is the number of seconds since the start of 1970 in UTC.
    """
    # beyond the largest float is infinity, a signalling NaN is a NaN: both without a warning
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind in "biuf":
            return values.astype(np.float64, copy=False)
        if values.dtype.kind == "M":
            return seconds_of_column(values)
        return np.fromiter((number_of(v) for v in values.ravel()), np.float64).reshape(values.shape)


def number_of(value: object) -> float:
    """Return a value as a float, NaN if it is no number; never raises or warns."""
    if isinstance(value, (np.complexfloating, np.ndarray)):  # numpy would warn
        return math.nan
    try:
        return seconds(value) if is_date(value) else float(value)  # type: ignore[arg-type]
    except OverflowError:  # an integer or a fraction beyond the largest float
        if isinstance(value, Rational):
            return math.inf if int(value.numerator) > 0 else -math.inf
        return math.nan
    except Exception:
        return math.nan
