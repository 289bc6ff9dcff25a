"""Reading X and y as scikit-learn does, with no data value in any message.

**Domains that were not declared, read from the data: a leak, for the caller to announce.**

What is read is published with the model. Of a column of numbers that is its range; a column of
anything else would be published value by value, so it has to be declared.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable
from dpbayes_sklearn.data.frames import framed, framed_column, here
from dpbayes_sklearn.data.records import (
    ElsewhereTable,
    LocalRecords,
    Records,
    Table,
    check_rows,
    column_kind,
    is_frame,
    is_partitioned,
    one_column,
)
from dpbayes_sklearn.data.spark import SparkFrame, SparkRecords, SparkTable
from dpbayes_sklearn.schema import Domain, Schema
from dpbayes_sklearn.schema.domains import Categories, Interval
from dpbayes_sklearn.schema.values import Kind, Repeated, as_cells, as_numbers, is_list, readable

Hints = dict[tuple[str, Kind], str]
"""What helps, by the values that a domain expects and the kind that is given."""

_HINTS: Hints = {
    ("dates", "text"): " Read it as dates first, as in pandas.read_csv(..., parse_dates=[...]).",
    ("numbers", "dates"): " Give Interval dates as bounds.",
    ("numbers", "text"): " Read texts as numbers first, for instance with pandas.to_numeric.",
    ("dates", "objects"): " Read it as dates first, as in pandas.read_csv(..., parse_dates=[...]).",
    ("numbers", "objects"): " Read it as numbers first, for instance with pandas.to_numeric.",
    ("booleans", "objects"): " Give it a type first, for instance with its convert_dtypes().",
}

# A column with more distinct labels may hold names or numbers of people, not classes.
_MOST_LABELS = 256
_LABELS = (str, bytes, Number, np.generic)  # Labels of these types can be compared and hashed.


def read_records(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    reset: bool,
    declared: bool = True,
    may_be_empty: bool = False,
    width: int | None = None,
    labelled: bool = True,
) -> LocalRecords | PartitionedRecords | SparkRecords:
    """Return X, and y if records are labelled, checked for shape, type and column names."""
    table = read_table(
        estimator, X, reset=reset, declared=declared, may_be_empty=may_be_empty, width=width
    )
    if labelled:
        _refuse_nothing(estimator, y)
    if isinstance(table, ElsewhereTable):
        records: PartitionedRecords | SparkRecords = table.records(y if labelled else None)
        if not (records.n or (may_be_empty and declared)):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return records
    if not labelled:
        return LocalRecords.unlabelled(table)
    y = framed_column(y, "y")
    target: Any = None if is_frame(y) or is_list(y) else readable(y)
    if isinstance(target, Repeated) or hasattr(y, "to_pylist"):  # of Arrow: one column of numbers
        check_consistent_length(np.broadcast_to(0, table.n_rows), target)
    else:
        target = read_target(estimator, y, table.n_rows)
    return LocalRecords([(table, target)], column_kind(y))


def check_kinds(schema: Schema, records: Records) -> None:
    """Refuse, by declared types alone, columns that cannot hold a value of their domain."""
    for j, (name, domain) in enumerate(schema.columns.items()):
        check_kind(domain, records.table.kind(j), f"The column {name!r} of X")
    if schema.target is not None:
        check_kind(schema.target, records.target_kind, "The target y")


def check_kind(domain: Domain, kind: Kind, name: str, hints: Hints | None = None) -> None:
    """Refuse a column whose declared type cannot hold a value of its domain."""
    if domain.takes(kind):
        return
    hint = {**_HINTS, **(hints or {})}.get((domain.expects, kind), "")
    raise ValueError(
        f"{name} holds {kind} by its type, but must hold {domain.expects}, as declared."
        f"{hint} Nothing was spent."
    )


def read_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    declared: bool,
    may_be_empty: bool = False,
    width: int | None = None,
) -> Table:
    """Return X as a table, checked for shape, type and column names.

    Where the number of records is secret, X ``may_be_empty``: an error would tell it. A list has
    rows of ``width`` cells, if that is known.

    Where all domains are ``declared`` every value is accepted, and nothing here depends on a
    value. Otherwise values must be finite numbers, as for any scikit-learn estimator.
    """
    X = framed(X)
    if is_partitioned(X) or isinstance(X, SparkFrame):
        elsewhere = table_of(X)
        _check_columns(estimator, elsewhere, reset)
        return elsewhere
    least = 0 if may_be_empty and declared else 1
    if is_frame(X):
        if X.shape[0] < least or X.shape[1] == 0:
            what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
            raise ValueError(
                f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required."
            )
        table = Table(X)
        _check_columns(estimator, table, reset)
        return table
    if issparse(X):
        _refuse_complex(X, "X")
        if not get_tags(estimator).input_tags.sparse:
            raise TypeError(
                "Sparse data was passed for X, but dense data is required. Use '.toarray()' to "
                "convert to a dense numpy array. Columns of categories need no one-hot encoding: "
                "pass them as they are, in a data frame, with a schema. Nothing was spent."
            )
        sparse = "csr"
    else:
        X, sparse = _as_array(as_rows(X, width), declared), ""
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=sparse or False,
        dtype=None,
        ensure_all_finite=not declared,
        ensure_min_samples=least,
    )
    return Table(_canonical(X) if sparse else X)


def table_of(frame: Any) -> Table:
    """Return a frame, or a dask collection, as a table."""
    if isinstance(frame, SparkFrame):
        return SparkTable(frame)
    return PartitionedTable(frame) if is_partitioned(frame) else Table(frame)


def _canonical(X: Any) -> Any:
    """Return sparse rows that store every cell once, and no cell that is outside of the matrix.

    scipy does not look; a cell outside would be counted for another class, a second time.
    """
    if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise ValueError("X is no sparse matrix: it has columns beyond its shape.")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _check_columns(estimator: Any, table: Table, reset: bool) -> None:
    """Check names and types of columns by a table without rows."""
    nobody = table.without_rows()
    validate_data(estimator, getattr(nobody, "native", nobody), reset=reset, skip_check_array=True)
    for j in range(table.n_columns):
        _refuse_complex(table.column(j, nobody), "X")


def in_memory(X: Any, width: int | None, whose: str) -> Any:
    """Return X such that some of its rows can be taken: a frame, a sparse matrix or an array."""
    X = here(framed(X))
    if is_partitioned(X):
        raise TypeError(
            f"A dask collection was passed, but {whose} requires records in memory: pass "
            "X.compute(). Nothing was spent."
        )
    return X if is_frame(X) or issparse(X) else as_rows(X, width)


def as_rows(X: Any, width: int | None) -> AnyArray:
    """Return a list, or anything else without columns of its own, as an array of rows."""
    array = as_cells(X, 2, width)
    _refuse_complex(array, "X")
    check_rows(array.ndim)
    return array


def _as_array(array: AnyArray, declared: bool) -> AnyArray:
    if declared or array.dtype.kind in "biuf":
        return array
    with suppress(Exception):  # whatever an odd object raises when asked for its number
        return array.astype(np.float64)
    # raised out here because an exception remembers, and may show, the one it is raised in
    raise TypeError(
        "Every argument must be a string of digits or a number; X holds something else. "
        "Declare columns of text with schema=Schema({name: Categories([...])})."
    )


def _refuse_complex(array: Any, name: str) -> None:
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")


def read_target(estimator: Any, y: Any, n_rows: int | None = None) -> AnyArray:
    """Return y as one column, which must be as long as X if that is given."""
    _refuse_nothing(estimator, y)
    y = framed_column(y, "y")
    column = one_column(y)
    _refuse_complex(column, "y")
    target: AnyArray = column_or_1d(column, warn=True)
    if n_rows is not None:
        check_consistent_length(np.broadcast_to(0, n_rows), target)
    return target


def _refuse_nothing(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )


def read_column(X: Any, *, may_be_empty: bool = False) -> AnyArray:
    """Return X as a vector, with no data value in any message."""
    X = here(framed(X))
    if issparse(X):
        raise TypeError("Sparse data was passed, but one dense column is required.")
    values = one_column(X)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"Expected one column, of shape (n_samples,) or (n_samples, 1). "
            f"Got shape {values.shape} instead."
        )
    if len(values) == 0 and not may_be_empty:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    return values


def features_read(names: Sequence[str] | None, declared: Sequence[Domain | None]) -> str:
    """Return what was read because it is not declared, every column by its name if it has one.

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
            f"X has values in {column_j} that are not numbers, all of which would be published if "
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


def classes_from_data(target: AnyArray) -> Categories:
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


def categories_from_data(values: AnyArray) -> Categories:
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
