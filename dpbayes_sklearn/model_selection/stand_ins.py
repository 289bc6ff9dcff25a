"""Records that stand for those of a search before it is charged, made of public facts alone.

Guarantee
---------
*Precondition*: the container, the names and declared types of columns, and the number of records
(unless it is secret: then a constant) are public. *Claim*: stand-ins are a function of these.
*Proof*: a row is made of the table without its rows, or of the type of an array; the target of its
type; labels of persons are counted off. Nothing else is read. ∎

Cells are zeros, or empty texts: with declared domains every value has its place, and a domain that
is not declared can be read from them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from dpbayes_sklearn._sklearn_compat import _safe_indexing
from dpbayes_sklearn.data.table import is_frame
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.schema.cells import as_cells
from dpbayes_sklearn.schema.kinds import Kind, kind_of
from dpbayes_sklearn.statistics.size import GUESS

__all__ = ["StandIns", "stand_ins"]

_CELLS: dict[Kind, Any] = {"text": "", "booleans": False}  # and 0 for all others


class StandIns(NamedTuple):
    """Public: made-up records, their targets, and whose they are."""

    X: Any
    y: npt.NDArray[Any]
    groups: npt.NDArray[Any] | None


def stand_ins(X: Any, y: npt.NDArray[Any], groups: Any, kind: Kind, unit: PrivacyUnit) -> StandIns:
    """Return made-up records of the same shape and types; ``kind`` is what the type of y declares.

    >>> made = stand_ins([[3, 4], [5, 6]], np.array([7, 8]), None, "integers", PrivacyUnit())
    >>> made.X, made.y.tolist()
    ([[0, 0], [0, 0]], [0, 1])
    """
    n = GUESS if unit.size_is_secret else len(y)
    rows = _safe_indexing(_one_row(X), np.zeros(n, np.intp))
    persons = None if groups is None else np.arange(n) // unit.max_records
    return StandIns(rows, _two_values(y.dtype, kind)[np.arange(n) % 2], persons)


def _two_values(dtype: np.dtype[Any], kind: Kind) -> npt.NDArray[Any]:
    """Return two different values of a type: more than one class, if classes are not declared."""
    two = np.array(["0", "1"]) if kind == "text" or dtype.kind in "US" else np.arange(2)
    return two.astype(dtype)


def _one_row(X: Any) -> Any:
    """Return a table of one row in the same container."""
    if is_frame(X):
        return _row_of_pandas(X.iloc[:0]) if hasattr(X, "iloc") else _row_of_polars(X[:0])
    if issparse(X):
        return type(X)((1, X.shape[1]), dtype=X.dtype)
    cells = as_cells(X, 2)
    row = np.zeros((1, *cells.shape[1:]), cells.dtype)
    return row if hasattr(X, "dtype") else row.tolist()


def _row_of_pandas(nobody: Any) -> Any:
    columns = [nobody.iloc[:, j] for j in range(nobody.shape[1])]
    row = type(nobody)({j: _cell(type(column), column.dtype) for j, column in enumerate(columns)})
    row.columns = nobody.columns
    return row


def _cell(series: Any, dtype: Any) -> Any:
    """Return a column of one cell, of its type if that says what it holds."""
    kind = kind_of(dtype)
    cell = _CELLS.get(kind, 0)
    with suppress(Exception):  # the types of columns are open-ended, and so are their errors
        if kind != "anything":
            return series([cell], dtype=dtype)
    return series([cell], dtype=object)


def _row_of_polars(nobody: Any) -> Any:
    """Return a frame of one row; a cell that a type cannot hold is missing."""
    columns = [nobody[:, j] for j in range(nobody.shape[1])]
    return type(nobody)([_cell_of_polars(column) for column in columns])


def _cell_of_polars(column: Any) -> Any:
    cell = _CELLS.get(kind_of(column.dtype), 0)
    with suppress(Exception):
        return type(column)(column.name, [cell], dtype=column.dtype)
    return type(column)(column.name, [None], dtype=column.dtype)
