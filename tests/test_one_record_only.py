"""One odd record must not recode the others, change the schema or make a fit fail or warn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Schema,
)
from dpbayes_sklearn.mechanisms import Sampler

LABELS: list[Any] = [0, 1] * 50
BINARY = Categories([0, 1])


def change(model: BayesianNaiveBayes, first: tuple[Any, Any], second: tuple[Any, Any]) -> int:
    """Return how far the exact counts of two data sets are apart."""
    a, b = (model._read(X, y).statistics.counts.tables for X, y in (first, second))
    return sum(int(np.abs(p - q).sum()) for p, q in zip(a, b, strict=True))


@pytest.mark.parametrize(
    ("X", "row"),
    [
        ([[k % 2] for k in range(100)], ["?"]),
        ([[k % 2] for k in range(100)], [b"?"]),
        ([[k % 2] for k in range(100)], [[1]]),
        ([[k % 2, "a"] for k in range(100)], [1, None]),
    ],
)
def test_one_row_of_a_list(X: list[Any], row: list[Any]) -> None:
    columns = {"flag": BINARY, "job": Categories(["a", "b"])}
    schema = Schema(dict(list(columns.items())[: len(row)]), BINARY)
    model = BayesianNaiveBayes(schema=schema)
    most = 2 * (len(schema) + 1)
    assert change(model, (X, LABELS), ([row, *X[1:]], LABELS)) <= most


@pytest.mark.parametrize("label", ["?", None, [1], float("nan"), 2**70])
def test_one_label_of_a_list(label: Any) -> None:
    model = BayesianNaiveBayes(schema=Schema({"a": BINARY}, BINARY))
    X = np.zeros((100, 1))
    assert change(model, (X, LABELS), (X, [label, *LABELS[1:]])) <= 4


def test_one_value_of_a_column_of_categories() -> None:
    model = DirichletMultinomial(epsilon=float("inf"), categories=Categories([0, 1, 2], unseen=2))
    first = model.fit([0, 1] * 10).posterior_.concentration
    second = model.fit(["?", *[1, 0] * 9, 1]).posterior_.concentration
    assert np.abs(first - second).sum() <= 2


def test_one_row_of_a_regression() -> None:
    model = BayesianLinearRegression(
        epsilon=float("inf"), bounds_X=(0, 1), bounds_y=(0, 1), noise_variance=0.1
    )
    X = [[bool(v)] for v in np.random.default_rng(0).integers(0, 2, 1000)]
    y = [float(row[0]) for row in X]
    slopes = [model.fit(rows, y).coef_[0] for rows in (X, [["?"], *X[1:]])]
    assert abs(slopes[0] - slopes[1]) < 0.05


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_one_missing_value_of_a_nullable_column(frame: str) -> None:
    large = 2**53 + 1  # no double is equal to it
    values: list[Any] = [large] * 100
    make: Any = pl.DataFrame if frame == "polars" else lambda c: pd.DataFrame(c, dtype="Int64")
    model = BayesianNaiveBayes(schema=Schema({"id": Categories([0, large])}, BINARY))
    whole, missing = make({"id": values}), make({"id": [None, *values[1:]]})
    assert change(model, (whole, LABELS), (missing, LABELS)) <= 4


@pytest.mark.parametrize("value", [float("nan"), 0.5, None, 2**70])
def test_the_schema_does_not_tell_whether_a_value_of_a_list_is_whole(value: Any) -> None:
    model = BayesianNaiveBayes(bounds=(0, 9), classes=[0, 1])
    X = [[k % 10] for k in range(100)]
    assert model.fit(X, LABELS).schema_ == model.fit([[value], *X[1:]], LABELS).schema_


def test_bins_that_follow_the_type_of_an_array_are_a_condition() -> None:
    X = np.arange(100)[:, None] % 10
    auto = BayesianNaiveBayes(bounds=(0, 9), classes=[0, 1]).fit(X, LABELS)
    given = BayesianNaiveBayes(bounds=(0, 9), classes=[0, 1], n_bins=10).fit(X, LABELS)
    assert any("dtypes" in condition for condition in auto.guarantee_.conditions)
    assert given.guarantee_.conditions == ()


def test_batches_with_one_seed_have_noise_of_their_own() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (2, 100, 3)), rng.integers(0, 2, (2, 100))
    model = BayesianNaiveBayes(0.1, bounds=(0, 1), classes=[0, 1], n_bins=2, random_state=7)
    one = model.partial_fit(X[0], y[0]).posterior_.released.tables
    both = model.partial_fit(X[1], y[1]).posterior_.released.tables
    exact = [model._read(X[i], y[i], model.schema_).statistics.counts.tables for i in (0, 1)]
    pairs = zip(one, both, *exact, strict=True)
    assert not any(np.array_equal(b - 2 * a, v - u) for a, b, u, v in pairs)


@pytest.mark.slow
def test_any_number_of_regression_draws_is_made() -> None:
    ledger = BudgetAccountant()
    model = BayesianLinearRegression(
        bounds_X=(0, 1),
        bounds_y=(0, 1),
        noise_variance=0.1,
        accountant=ledger,
        mechanism=Sampler(n_samples=270_000),
    )
    assert model.fit(np.zeros((5, 1)), np.zeros(5)).guarantee_.epsilon == 1
    assert ledger.total().epsilon == 1


@pytest.mark.parametrize("where", ["X", "y"])
def test_a_signalling_nan_is_a_nan(where: str) -> None:
    odd = np.zeros((9, 1), np.float32)
    odd.view(np.uint32)[0] = 0x7FA00000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if where == "X":
            BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2).fit(odd, [0, 1, 0] * 3)
        else:
            BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)).fit(
                np.zeros((9, 1)), odd[:, 0]
            )


def test_a_fit_that_could_have_been_refused_says_so() -> None:
    assert any("refused" in c for c in BetaBinomial().fit([0, 1, 1]).guarantee_.conditions)
    assert BetaBinomial().fit(np.array([False, True])).guarantee_.conditions == ()
