"""A model to copy: counts of declared categories, a plan of one step, and ten lines of tests."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import validate_data

from dpbayes_sklearn import Categories
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.conjugate import DeclaredColumn
from dpbayes_sklearn.data.reading import check_kind, read_column
from dpbayes_sklearn.data.records import column_kind
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.release import Facts, OneStepPlan, Release
from tests.contracts import EstimatorContract


@dataclass(frozen=True, kw_only=True, eq=False)
class CountsPlan(OneStepPlan[SimplexCounts, FloatArray]):
    """What is released: every count, with noise of one law."""

    law: NoiseLaw
    what: ClassVar[str] = "counts of categories"

    def ask(self, statistics: SimplexCounts, known: None) -> list[Any]:
        """Return the exact counts."""
        return [statistics.counts]

    def read(self, known: None, answer: Any) -> FloatArray:
        """Return counts that can be: post-processing."""
        return np.maximum(answer[0], 0.0)


class CategoryCounts(
    PrivateEstimator[DeclaredColumn, Categories, Categories, SimplexCounts, FloatArray]
):
    """How many records have each of the declared categories."""

    _uses_n = "nowhere"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "categories": [Categories],
    }

    def __init__(self, categories, epsilon=1.0, *, accountant=None, random_state=None):
        self.categories = categories
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    def _records(self, X: Any, y: Any, *, reset: bool) -> DeclaredColumn:
        validate_data(self, X, reset=reset, skip_check_array=True, ensure_2d=False)
        return DeclaredColumn(read_column(X), column_kind(X))

    def _nobody(self, n: int, n_features: int | None) -> DeclaredColumn:
        return DeclaredColumn(np.arange(2), "integers")

    def _public_schema(self, records: DeclaredColumn, n: int) -> tuple[Categories, tuple[str, ...]]:
        return self.categories, ()

    def _check_types(self, public: Categories, records: DeclaredColumn) -> None:
        check_kind(public, records.kind, "X")

    def _prior(self, public: Categories) -> Categories:
        return public

    def _statistics(self, public: Any, prior: Any, records: DeclaredColumn) -> SimplexCounts:
        return SimplexCounts.count(public.encode(records.values), public.n_values)

    def _plan(self, prior: Categories, facts: Facts, budget: Budget) -> CountsPlan:
        sizes = SimplexCounts.of_size(0, prior.n_values)
        law = sizes.law("zero_sum", budget.unit, Fraction(budget.epsilon))
        return CountsPlan(cost=budget, mechanism="geometric", law=law)

    def _attach(self, public: Categories, release: Release[FloatArray]) -> Self:
        self.counts_, self.guarantee_ = release.posterior, release.guarantee
        return self


class TestCategoryCounts(EstimatorContract):
    X = np.array([*"aabbbcc"] * 10)
    written = False  # A codec in `serialization/models.py` is what JSON needs.

    def make(self, **options):
        return CategoryCounts(Categories([*"abc"]), **options)

    def answer(self, model):
        return model.counts_
