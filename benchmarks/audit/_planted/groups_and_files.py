"""Bugs in reading labels of persons, lists of rows, and files of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.data import dask, persons, reading, table

Replacements = Iterator[tuple[Any, str, Any]]
GROUPS = "containers of groups"


@fault(
    "groups",
    GROUPS,
    "Labels on a cluster are put together in a type that suits them all",
    "dask, blocks of floats",
)
def labels_of_one_type() -> Replacements:
    def together(values: Any) -> Any:
        return table.one_column(dask.gathered(values))

    yield persons, "column_here", together


@fault(
    "groups",
    GROUPS,
    "Labels on a cluster that dask has made texts of are other persons",
    "partitions of objects",
)
def texts_of_numbers() -> Replacements:
    yield dask, "_numbers_again", lambda column: column


@fault("groups", GROUPS, "A label that cannot be read stops the fit and shows itself", "odd labels")
def labels_that_raise() -> Replacements:
    def text(label: Any) -> str | None:
        missing = label is None or not bool(label == label)
        return None if missing else persons._written(label)

    yield persons, "_text", text


@fault("groups", GROUPS, "Whether a list has rows is decided by all of its cells", "lists of rows")
def rows_by_all_cells() -> Replacements:
    def cells(values: Any, ndim: int = 2) -> Any:
        if not isinstance(values, list):
            return real(values)
        rows = all(isinstance(row, list) for row in values)
        return np.array(values, object) if rows else np.fromiter(values, object, len(values))

    real = table.cells_of
    yield table, "cells_of", cells
    yield reading, "as_cells", cells


@fault(
    "groups",
    GROUPS,
    "Surplus records of persons count where records are elsewhere",
    "records on a cluster",
)
def surplus_on_a_cluster() -> Replacements:
    real = dask._answer

    def all_of_them(ask: Any, x: Any, y: Any, start: int, size: int, kept: Any) -> Any:
        return real(ask, x, y, start, size, None)

    yield dask, "_answer", all_of_them


@fault(
    "groups",
    GROUPS,
    "Targets cut into other blocks get the type of one of them",
    "targets in other blocks",
)
def targets_of_one_type() -> Replacements:
    yield dask, "joined", lambda parts, axis=0: np.concatenate(parts, axis=axis)
