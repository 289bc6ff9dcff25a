"""Bugs in reading data: values that go where none should, and tell by what happens then."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.base import supervised
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.supervised import Declared
from dpbayes_sklearn.counts import counting, tables
from dpbayes_sklearn.data import reading as reading_module
from dpbayes_sklearn.regression import design, record_sums
from dpbayes_sklearn.schema import Categories, Interval

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "data",
    "replay of estimators",
    "Features of a regression are not clipped to their bounds",
    "BayesianLinearRegression, gaussian",
)
def features_not_clipped() -> Replacements:
    def unclipped(chunk: Any, maps: Any, out: Any, grid: int) -> None:
        factor, shift, _ = maps
        numbers = np.nan_to_num(np.asarray(chunk, float), nan=0.0, posinf=1e6, neginf=-1e6)
        out[:] = grid * np.clip(numbers * factor - shift, -1e6, 1e6)

    yield design, "_map_numbers", unclipped


@fault(
    "data",
    "replay of estimators",
    "The target of a regression is scaled, but the result of clipping it is dropped",
    "BayesianLinearRegression, gaussian",
)
def target_not_clipped() -> Replacements:
    def unclipped(y: Any, scale: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (y - scale.centre) / scale.half
        return np.nan_to_num(scaled, nan=0.0, posinf=1e3, neginf=-1e3).clip(-1e3, 1e3)

    yield record_sums, "scaled_target", unclipped


@fault("data", "values", "A missing target stays NaN on its way into the sums")
def nan_passed_through() -> Replacements:
    def poisoned(y: Any, scale: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (y - scale.centre) / scale.half
        return np.clip(scaled, -1.0, 1.0)

    yield record_sums, "scaled_target", poisoned


@fault(
    "data",
    "replay of estimators",
    "Declared classes are ignored and read from the labels without a word",
)
def classes_of_the_data() -> Replacements:
    yield DiscreteClassifier, "_target", Declared("classes", None, "classes")
    yield DiscreteClassifier, "_leak", lambda self, what, parameter: ""


@fault(
    "data",
    "replay of estimators",
    "Declared bounds are replaced by the smallest and largest value there is",
)
def bounds_of_the_data() -> Replacements:
    real = supervised.declared_domains

    def nothing(names: Any, n_columns: int, *rest: Any) -> Any:
        return [None if isinstance(d, Interval) else d for d in real(names, n_columns, *rest)]

    def seen(table: Any, j: int) -> Any:
        values = np.asarray(table.column(j), float)
        values = values[np.isfinite(values) & (np.abs(values) < 1e6)]
        return Interval(values.min(initial=0.0), values.max(initial=1.0))

    yield supervised, "declared_domains", nothing
    yield supervised, "domain_from_data", seen
    yield DiscreteClassifier, "_leak", lambda self, what, parameter: ""


@fault("data", "values", "A missing value makes a fit fail although all domains are declared")
def nan_refused() -> Replacements:
    real = reading_module.read_records

    def strict(estimator: Any, X: Any, y: Any, *, reset: bool, declared: bool) -> Any:
        return real(estimator, X, y, reset=reset, declared=False)

    yield supervised, "read_records", strict


@fault(
    "data",
    "replay of estimators",
    "A value beyond its bounds is warned of, so that the warning tells of it",
)
def a_warning_about_values() -> Replacements:
    real = DiscreteClassifier.fit

    def chatty(self: Any, X: Any, y: Any) -> Any:
        if isinstance(X, np.ndarray) and (X > 1e6).any():
            warnings.warn("values were clipped", UserWarning, stacklevel=2)
        return real(self, X, y)

    yield DiscreteClassifier, "fit", chatty


@fault("data", "values", "An error quotes the value that it is about")
def a_message_with_a_value() -> Replacements:
    def quoting(X: Any, declared: bool) -> Any:
        array = np.asarray(X)
        return array if declared and array.ndim == 2 else array.astype(float)

    yield reading_module, "_as_array", quoting


@fault(
    "data",
    "replay of estimators",
    "Records with a category that was not declared are left out, which changes their number",
)
def unseen_left_out() -> Replacements:
    real = tables.CountTables.count.__func__

    def without(cls: Any, network: Any, chunks: Any) -> Any:
        kept = ((x[x[:, 0] > 0], c[x[:, 0] > 0]) for x, c in chunks)
        return real(cls, network, kept)

    yield tables.CountTables, "count", classmethod(without)


@fault("data", "values", "Counts are kept in single bytes, which wrap around")
def short_counters() -> Replacements:
    real = counting.count_by_state
    yield (
        tables,
        "count_by_state",
        lambda *args: real(*args).astype(np.int8).astype(np.int64),
    )


@fault("data", "replay of estimators", "Counting fails if nobody is in the first class")
def nobody_in_the_first_class() -> Replacements:
    real = counting.count_by_state

    def reusing(states: Any, *rest: Any) -> Any:
        memory = {"ones": states[states == 0]} if (states == 0).any() else {}
        return real(states, *rest) if memory["ones"].size else None

    yield tables, "count_by_state", reusing


@fault(
    "data",
    "values",
    "Products are added up as floats, so that the order of the rows moves the last bits",
)
def float_sums() -> Replacements:
    def floats(part: Any, design: Any, scale: Any, grid: int, window: Any, **_: Any) -> Any:
        total = np.zeros((design.width + 2,) * 2, np.float32)
        for x, edge in record_sums.coordinates(part, design, scale, window, grid):
            z = np.hstack([edge[:, :1], x, edge[:, 1:]]).astype(np.float32)
            total += z.T @ z
        return np.rint(total).astype(np.int64)

    yield record_sums, "gram", floats


@fault(
    "data",
    "replay of estimators",
    "A category that was not declared raises",
    "DirichletMultinomial",
)
def a_category_that_raises() -> Replacements:
    real = Categories._code

    def strict(self: Categories, value: Any) -> int:
        if value is None:
            raise ValueError("missing values are not supported")
        return real(self, value)

    yield Categories, "_code", strict
