"""Reading X and y the scikit-learn way, without ever printing a value of them."""

from __future__ import annotations

from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable, is_partitioned
from dpbayes_sklearn.data.records import LocalRecords
from dpbayes_sklearn.data.table import Table, as_cells, is_frame

__all__ = ["classes_from_data", "read_records", "read_table", "read_target"]


def read_records(
    estimator: Any, X: Any, y: Any, *, reset: bool, declared: bool
) -> LocalRecords | PartitionedRecords:
    """Return X and y as records, checked for shape, type and column names."""
    table = read_table(estimator, X, reset=reset, declared=declared)
    if isinstance(table, PartitionedTable):
        _refuse_nothing(estimator, y)
        return PartitionedRecords.read(table, y)
    return LocalRecords([(table, read_target(estimator, y, table.n_rows))])


def read_table(estimator: Any, X: Any, *, reset: bool, declared: bool) -> Table:
    """Return X as a table, checked for shape, type and column names.

    Where all domains are ``declared`` every value has its place, and nothing here depends on
    one. Otherwise values must be finite numbers, as for any scikit-learn estimator.
    """
    if is_partitioned(X):
        partitioned = PartitionedTable(X)
        _check_columns(estimator, partitioned, reset)
        return partitioned
    if is_frame(X):
        if min(X.shape) == 0:
            what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
            raise ValueError(
                f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required."
            )
        table = Table(X)
        _check_columns(estimator, table, reset)
        return table
    if issparse(X):
        _refuse_complex(X, "X")
        sparse = "csr" if get_tags(estimator).input_tags.sparse else False
    else:
        X, sparse = _as_array(X, declared), False
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=sparse,
        dtype=None,
        ensure_all_finite=not declared,
    )
    return Table(_canonical(X) if sparse else X)


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
    validate_data(estimator, nobody, reset=reset, skip_check_array=True)
    for j in range(table.n_columns):
        _refuse_complex(table.column(j, nobody), "X")


def _as_array(X: Any, declared: bool) -> npt.NDArray[Any]:
    array = as_cells(X, 2)
    _refuse_complex(array, "X")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
            "contains a single sample."
        )
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


def read_target(estimator: Any, y: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return y as one column that is as long as X."""
    _refuse_nothing(estimator, y)
    if isinstance(y, (list, tuple)):
        y = as_cells(y, 2)
    _refuse_complex(np.asarray(y), "y")
    target: npt.NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(np.broadcast_to(0, n_rows), target)
    return target


def _refuse_nothing(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )


_LABELS = (str, bytes, Number, np.generic)


def classes_from_data(target: npt.NDArray[Any]) -> list[Any]:
    """Read the classes from the labels: a leak, for the caller to announce."""
    mixed = "Labels in y must be of one type: all numbers or all strings."
    if target.dtype == object and not all(issubclass(type(label), _LABELS) for label in target):
        raise TypeError(mixed)  # asking other objects what they are may make them tell more
    with suppress(TypeError, ValueError):
        one_kind = len({isinstance(label, str) for label in target}) == 1
        if target.dtype == object and one_kind:  # cells of a list: the type that suits them all
            target = np.array(target.tolist())
    with suppress(TypeError):
        if target.dtype.kind == "f":
            assert_all_finite(target, input_name="y")
        check_classification_targets(target)
        classes: list[Any] = np.unique(target).tolist()
        return classes
    raise TypeError(mixed)
