"""Base class of the transformers of numeric columns: one private plan of questions per column."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from dpbayes_sklearn._presenting import remark
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.base.estimator import PrivateEstimator, Where
from dpbayes_sklearn.columns.plans import QuantilePlan
from dpbayes_sklearn.columns.quantiles import (
    Answers,
    ColumnQuestions,
    QuantileQuestions,
    SortedColumns,
)
from dpbayes_sklearn.data.persons import PROTECTION
from dpbayes_sklearn.data.reading import read_records, read_table
from dpbayes_sklearn.data.records import ElsewhereTable, Records, Table, quiet_numpy
from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit, at_least
from dpbayes_sklearn.release import Facts, Release
from dpbayes_sklearn.schema.declared import intervals_from_bounds, width_of_rows
from dpbayes_sklearn.schema.values import Kind, as_numbers
from dpbayes_sklearn.serialization.models import COLUMN_TRANSFORMER

# Columns of these kinds can have quantiles.
_NUMERIC: frozenset[Kind] = frozenset({"booleans", "integers", "numbers", "dates", "anything"})

LEAST, NEEDED = 100, 200
"""Records times epsilon for each column: below the first, one range in ten is far off and they are
not learned; from the second on one in fifty is, of most kinds of columns none."""


class Columns(NamedTuple):
    """Public: number of records or a guess of it, and bounds and budget of each column."""

    n: int
    bounds: tuple[tuple[float, float] | None, ...]
    epsilon: float
    unit: PrivacyUnit


def check_numeric(estimator: Any, table: Table) -> None:
    """Refuse columns that by their types can hold neither numbers nor dates."""
    for j in range(table.n_columns):
        if table.kind(j) not in _NUMERIC:
            name = f"column {j}" if table.names is None else f"the column {table.names[j]!r}"
            raise ValueError(
                f"X holds {table.kind(j)} in {name} by its type, but {type(estimator).__name__} "
                "takes numbers and dates: leave it out, for instance with a ColumnTransformer. "
                "Nothing was spent."
            )


def too_few(n: int, budget: Budget, n_columns: int, needed: float = NEEDED) -> str:
    """Return why ranges of n_columns should not be learned and what helps, or "".

    >>> print(too_few(1000, Budget(Fraction(1)), 10))
    1000 records with epsilon = 1 for 10 columns are few to learn ranges: one in twenty ...
    >>> too_few(4000, Budget(Fraction(1)), 10)
    ''
    """
    if budget.infinite or not n_columns:
        return ""
    per_column = n * float(budget.unit.equivalent(float(budget.epsilon))) / n_columns
    if per_column >= needed:
        return ""
    few = "too few to learn ranges: many of them would be noise"
    if per_column >= LEAST:
        few = "few to learn ranges: one in twenty may be far off"
    wanted = float(budget.epsilon) * NEEDED / max(per_column, 1e-9)
    return (
        f"{n} records with epsilon = {at_least(budget.epsilon)} for {n_columns} "
        f"column{'s' * (n_columns > 1)} are {few}. "
        f"Declare what is known about the columns, learn fewer of them, or set epsilon to at "
        f"least {float(f'{wanted:.2g}'):g}."
    )


class ColumnwiseTransformer(
    OneToOneFeatureMixin,
    TransformerMixin,
    PrivateEstimator[Records, Columns, QuantileQuestions, SortedColumns, Answers],
):
    """A transformer of every column by itself; subclasses say what they ask of a column."""

    bounds: Any
    _answers: Answers

    _exported = COLUMN_TRANSFORMER
    _uses_n: Where = "in the schema"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "bounds": ["array-like", None],
        **PROTECTION,
    }

    @abstractmethod
    def _questions(self, j: int, columns: Columns) -> ColumnQuestions:
        """Return what is asked of column j."""

    @abstractmethod
    def _set(self, answers: Answers) -> None:
        """Set the fitted attributes from the released answers of all columns."""

    @abstractmethod
    def _apply(self, numbers: FloatArray) -> Any:
        """Return the transformed numbers, all columns at once; NaN is a missing value."""

    def _records(self, X: Any, y: Any, *, reset: bool) -> Records:
        own: Any = {"may_be_empty": self._unit.size_is_secret, "width": self._width(reset)}
        records = read_records(self, X, labelled=False, reset=reset, **own)
        check_numeric(self, records.table)
        return records

    def _public_schema(self, records: Records, n: int) -> tuple[Columns, tuple[str, ...]]:
        d, (_, rest) = records.table.n_columns, self._shares(self._budget())
        bounds = self._each_bounds(d)
        return Columns(n, bounds, float(rest.epsilon) / d, rest.unit), ()

    @property
    def _declared_width(self) -> int | None:
        return width_of_rows(None, self.bounds)

    def _each_bounds(self, d: int) -> tuple[tuple[float, float] | None, ...]:
        if self.bounds is None:
            return (None,) * d
        return tuple((i.low, i.high) for i in intervals_from_bounds(self.bounds, d))

    def _statistics(
        self, public: Columns, prior: QuantileQuestions, records: Records
    ) -> SortedColumns:
        return SortedColumns(records)

    def _prior(self, public: Columns) -> QuantileQuestions:
        return QuantileQuestions(
            tuple(self._questions(j, public) for j in range(len(public.bounds)))
        )

    def _plan(self, prior: QuantileQuestions, facts: Facts, budget: Budget) -> QuantilePlan:
        return QuantilePlan.of(prior, budget)

    def _advise(self, plan: Any, public: Columns, facts: Facts) -> None:
        unknown = len(public.bounds) if self.bounds is None else 0
        if reason := too_few(facts.n, plan.cost, unknown):
            remark(reason)

    def _attach(self, public: Columns, release: Release[Answers]) -> Self:
        return self._become_fitted(release.posterior, release.guarantee)

    def _become_fitted(self, answers: Answers, guarantee: PrivacyGuarantee) -> Self:
        self._answers, self.guarantee_ = answers, guarantee
        self._set(answers)
        return self

    def _restore(self, **released: Any) -> Self:
        answers, guarantee = released.values()
        nobody = Columns(1, self._each_bounds(len(answers)), guarantee.epsilon, self._unit)
        plans = [self._questions(j, nobody) for j in range(len(answers))]
        if not all(plan.could_answer(found) for plan, found in zip(plans, answers, strict=True)):
            raise ValueError("the numbers are not those that the parameters ask for")
        return self._become_fitted(answers, guarantee)

    def _epsilon_wanted(self, n: int, n_features: int) -> float:
        """Return what finds a range of every column: 800 records per column and epsilon."""
        return 800 * n_features / n * self._unit.n_changed / RECORD.n_changed

    def transform(self, X: Any) -> Any:
        """Return the transformed columns; every value has its place, and a missing one the middle.

        X is an array, data frame or dask collection of shape (n_samples, n_features), and what is
        returned an array of this shape, a lazy one of a dask collection.
        """
        check_is_fitted(self)
        secret = self._unit.size_is_secret
        d = self.n_features_in_
        table = read_table(self, X, reset=False, declared=True, may_be_empty=secret, width=d)
        check_numeric(self, table)
        if isinstance(table, ElsewhereTable):
            return table.by_row(self._transformed, self._apply(np.empty((0, table.n_columns))))
        return self._transformed(table)

    def _transformed(self, table: Table) -> Any:
        with quiet_numpy():
            return self._apply(_numbers(table))

    def _inverse_input(self, X: Any) -> FloatArray:
        """Return transformed columns to be mapped back, checked for shape."""
        check_is_fitted(self)
        checked: FloatArray = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        if checked.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {checked.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return checked

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True  # every value has its place
        return tags


def _numbers(table: Table) -> FloatArray:
    numbers = np.empty((table.n_rows, table.n_columns))
    for rows, chunk in table.chunks():
        together = table.as_numbers(chunk)
        if together is not None:
            numbers[rows] = together
            continue
        for j in range(table.n_columns):
            numbers[rows, j] = as_numbers(table.column(j, chunk))
    return numbers


def share(value: Any) -> Fraction:
    """Return a quantile as a fraction of few digits.

    >>> share(0.01)
    Fraction(1, 100)
    """
    return Fraction(str(float(value))).limit_denominator(10_000)
