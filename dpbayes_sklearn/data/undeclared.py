"""Domains that were not declared, read from the data: a leak, for the caller to announce.

What is read is published with the model. Of a column of numbers that is its range; a column of
anything else would be published value by value, so it has to be declared.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval, as_numbers

__all__ = ["categories_from_data", "classes_from_data", "domain_from_data", "features_read"]

_MOST_LABELS = 256  # more labels than classes are likely to have: names or numbers of people?
_LABELS = (str, bytes, Number, np.generic)


def features_read(names: Sequence[str] | None, declared: Sequence[Domain | None]) -> str:
    """Return what was read because it is not declared, every column by its name if it has one.

    Examples
    --------
    >>> features_read(["id", "age"], [None, Interval(0, 120)])
    "bounds of the features 'id' were"
    """
    if names is None:
        return "bounds of the features were"
    read = [name for name, domain in zip(names, declared, strict=True) if domain is None]
    return f"bounds of the features {', '.join(map(repr, read))} were"


def domain_from_data(table: Table, j: int) -> Interval:
    """Read the range of a column of numbers from its values."""
    column = table.column(j)
    if column.dtype.kind == "O":
        column = as_numbers(column)
        readable = not np.isnan(column).any()
    else:
        readable = column.dtype.kind in "biuf"
    if not readable:
        column_j = f"column {j}" if table.names is None else f"the column {table.names[j]!r}"
        name = f"x{j}" if table.names is None else table.names[j]
        raise ValueError(
            f"X has values in {column_j} that are no numbers, all of which would be published if "
            f"they were read from the data. Declare it, as in schema=Schema({{{name!r}: "
            "Categories([...])}), or leave it out."
        )
    assert_all_finite(column, input_name="X")
    low, high = float(column.min()), float(column.max())
    with suppress(ValueError):  # its text has the bounds, which an error raised in here would show
        return Interval(low, high if low < high else low + max(1.0, abs(low)))
    raise ValueError(
        "A column of X has too wide or too narrow a range of values; declare its bounds."
    )


def classes_from_data(target: npt.NDArray[Any]) -> Categories:
    """Read the classes from the labels, in the type of the labels."""
    mixed = "Labels in y must be of one type: all numbers or all strings."
    if target.dtype == object and not all(issubclass(type(label), _LABELS) for label in target):
        raise TypeError(mixed)  # the error of any other method could contain a data value
    with suppress(TypeError, ValueError):
        one_kind = len({isinstance(label, str) for label in target}) == 1
        if target.dtype == object and one_kind:  # cells of a list: the type that suits them all
            target = np.array(target.tolist())
    with suppress(TypeError):
        if target.dtype.kind == "f":
            assert_all_finite(target, input_name="y")
        classes = np.unique(target)
        _refuse_many(classes, "y", "classes")
        check_classification_targets(target)
        return Categories(classes)
    raise TypeError(mixed)


def categories_from_data(values: npt.NDArray[Any]) -> Categories:
    """Read categories from one column: codes up to the largest, or all texts that occur."""
    if values.dtype == object and all(type(value) in (bool, int) for value in values):
        values = as_numbers(values)
    whole = values.dtype.kind in "biuf" and (values == np.floor(values)).all()
    if whole and values.min() >= 0 and values.max() < 2**15:
        return Categories(range(max(int(values.max()) + 1, 2)))
    if values.dtype.kind in "OU" and all(isinstance(value, str) for value in values):
        texts = sorted(set(values.tolist()))
        _refuse_many(texts, "X", "categories")
        return Categories(texts)
    raise ValueError(
        "Records must be codes 0, 1, ... or strings; the input holds other values. "
        "Declare what it holds with categories=[...]. Nothing was spent."
    )


def _refuse_many(labels: Sized, name: str, parameter: str) -> None:
    if len(labels) > _MOST_LABELS:
        raise ValueError(
            f"{name} has more than {_MOST_LABELS} different values, all of which would be "
            f"published if they were read from the data: set {parameter} to public values."
        )
