"""Bugs in reading containers and declarations: one record decides how others are read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn import conjugate
from dpbayes_sklearn.base import estimator, supervised
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.conjugate import REFUSES, BetaBinomial
from dpbayes_sklearn.data import dask, reading, records, table
from dpbayes_sklearn.privacy import PrivacyGuarantee
from dpbayes_sklearn.schema import Categories

Replacements = Iterator[tuple[Any, str, Any]]


def _plain(cell: Any) -> Any:
    return None if type(cell).__name__ == "NAType" else cell


def _as_numpy_likes(cells: Any) -> Any:
    """Return integers of which one is missing as floats, the one type that suits them all."""
    flat = [_plain(cell) for cell in np.ravel(cells)]
    numbers = all(cell is None or isinstance(cell, (int, float)) for cell in flat)
    if cells.dtype != object or not numbers or None not in flat:
        return cells
    return np.array([np.nan if cell is None else cell for cell in flat], float)


@fault(
    "reading",
    "replay of containers",
    "A missing label makes all labels floats, which recodes other people",
)
def labels_as_floats() -> Replacements:
    real = reading.read_target
    yield reading, "read_target", lambda *args: _as_numpy_likes(real(*args))


@fault(
    "reading",
    "replay of containers",
    "A missing value makes its whole column floats, and others unseen",
)
def columns_as_floats() -> Replacements:
    real = table.Table.column
    yield table.Table, "column", lambda *args: _as_numpy_likes(real(*args))


@fault(
    "reading",
    "replay of containers",
    "One column with a missing value becomes floats, and others unseen",
)
def one_column_as_floats() -> Replacements:
    real = conjugate.read_column
    yield conjugate, "read_column", lambda X: _as_numpy_likes(real(X))


@fault(
    "reading",
    "replay of containers",
    "Labels of a partition are read as numpy likes, on a cluster only",
    "labels: dask",
)
def partitions_as_floats() -> Replacements:
    real = dask.one_column
    yield dask, "one_column", lambda y: _as_numpy_likes(real(y))


@fault(
    "reading",
    "replay of estimators",
    "Whether a fit raises depends on the caller's numpy error state",
    "laplace, feature, sparse",
)
def error_state_of_the_caller() -> Replacements:
    for module in (estimator, records):
        yield module, "quiet_numpy", nullcontext


@fault(
    "reading",
    "replay of estimators",
    "A condition is dropped if all values are truth values by chance",
    "BetaBinomial, gaussian",
)
def condition_by_values() -> Replacements:
    def looking(self: Any, column: Any, n: int) -> Any:
        plain = all(isinstance(value, (bool, np.bool_)) for value in column.values)
        return Categories((1, 0)), () if plain else (REFUSES,)

    yield BetaBinomial, "_public_schema", looking


@fault("reading", "declarations", "Texts of a column that is not declared are published one by one")
def texts_published() -> Replacements:
    def every_value(columns: Any, j: int) -> Categories:
        return Categories(sorted({str(value) for value in columns.column(j)}))

    yield supervised, "domain_from_data", every_value


@fault("reading", "declarations", "A warning does not say which columns were read from the data")
def columns_without_names() -> Replacements:
    yield supervised, "features_read", lambda names, declared: "bounds were"


@fault("reading", "declarations", "What was read from the data is warned of, but no condition")
def no_condition() -> Replacements:
    real = estimator.PrivateEstimator._leak

    def warning_only(self: Any, what: str, parameter: str) -> str:
        real(self, what, parameter)
        return ""

    yield estimator.PrivateEstimator, "_leak", warning_only
    under = PrivacyGuarantee.under
    wanted = lambda self, *conditions: under(self, *filter(None, conditions))  # noqa: E731
    yield PrivacyGuarantee, "under", wanted


@fault("reading", "declarations", "Any number of labels is published as classes")
def labels_published() -> Replacements:
    yield reading, "_refuse_many", lambda labels, name, parameter: None


@fault(
    "reading", "declarations", "A column whose type cannot match its domain is charged all the same"
)
def kinds_unchecked() -> Replacements:
    for module in (reading, conjugate):
        yield module, "check_kind", lambda *args: None


@fault("reading", "declarations", "A sparse cell that is stored twice counts twice")
def cells_twice() -> Replacements:
    yield reading, "_canonical", lambda X: X


@fault(
    "reading",
    "replay of estimators",
    "Bins follow from whether all values are whole numbers",
    "n_bins=auto",
)
def bins_by_values() -> Replacements:
    real = table.Table.kind

    def looking(self: Any, j: int) -> Any:
        values = np.asarray(self.column(j))
        whole = values.dtype.kind == "f" and len(values) and (values == np.floor(values)).all()
        return "integers" if whole else real(self, j)

    yield table.Table, "kind", looking


@fault("reading", "replay of estimators", "The log tells how many of the declared classes occur")
def a_log_line_about_values() -> Replacements:
    real = DiscreteClassifier._statistics

    def talking(self: Any, public: Any, rows: Any) -> Any:
        counted = real(self, public, rows)
        absent = int((counted.tables[-1] == 0).sum())
        logging.getLogger("dpbayes_sklearn").warning("%d classes have no record", absent)
        return counted

    yield DiscreteClassifier, "_statistics", talking
