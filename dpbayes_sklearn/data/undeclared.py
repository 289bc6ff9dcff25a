"""Domains that were not declared, read from the data: a leak, for the caller to announce."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite

from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval, as_numbers

__all__ = ["domain_from_data"]


def domain_from_data(table: Table, j: int) -> Domain:
    """Read the domain of a column from its values: a leak, for the caller to announce."""
    column = table.column(j)
    if table.kind(j) == "O":
        numbers = as_numbers(column)
        if np.isnan(numbers).any():
            return _categories_from_data(column)
        column = numbers
    assert_all_finite(column, input_name="X")
    low, high = float(column.min()), float(column.max())
    with suppress(ValueError):  # its text has the bounds, which an error raised in here would show
        return Interval(low, high if low < high else low + max(1.0, abs(low)))
    raise ValueError(
        "A column of X has too wide or too narrow a range of values; declare its bounds."
    )


def _categories_from_data(column: npt.NDArray[Any]) -> Categories:
    try:
        values = sorted(set(column.tolist()))
    except TypeError:
        raise TypeError(
            "A column of X mixes types or misses values; declare it with "
            "schema=Schema({name: Categories([...])})."
        ) from None
    return Categories(values)
