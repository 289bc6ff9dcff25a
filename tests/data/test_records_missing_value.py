"""One missing value: whatever holds the column, no other value is read differently."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.metrics import private_cross_validate
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
from dpbayes_sklearn.schema.values import cells_of

INF = math.inf
IDS = [2**53 + 1, 2**53 + 3]  # as floats both are 2^53 + 2 or 2^53 + 4: no categories
LABELS: list[Any] = IDS * 40
ONE_MISSING = [None, *LABELS[1:]]
X = np.zeros((80, 1))

COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "objects": lambda v: np.array(v, dtype=object),
    "pandas Int64": lambda v: pd.Series(v, dtype="Int64"),
    "pandas int64[pyarrow]": lambda v: pd.Series(v, dtype="int64[pyarrow]"),
    "pandas category": lambda v: pd.Series(pd.Categorical(v, categories=IDS)),
    "pandas objects": lambda v: pd.Series(v, dtype=object),
    "pandas array": lambda v: pd.array(v, dtype="Int64"),
    "pandas Categorical": lambda v: pd.Categorical(v, categories=IDS),
    "pandas frame": lambda v: pd.DataFrame({"id": pd.Series(v, dtype="Int64")}),
    "frame of a category": lambda v: pd.DataFrame({"id": pd.Categorical(v, categories=IDS)}),
    "polars Int64": lambda v: pl.Series("id", v, dtype=pl.Int64),
    "polars frame": lambda v: pl.DataFrame({"id": pl.Series(v, dtype=pl.Int64)}),
    "pyarrow array": lambda v: pa.array(v, pa.int64()),
    "pyarrow chunks": lambda v: pa.chunked_array([pa.array(v, pa.int64())]),
}
TYPED = [name for name in COLUMNS if name != "pandas objects"]
DASK = ["pandas Int64", "pandas int64[pyarrow]", "pandas category"]
NAIVE = BayesianNaiveBayes(INF, bounds=(0, 1), n_bins=2, classes=IDS, inference="plug_in")


def as_target(column: Any) -> list[int]:
    return list(NAIVE.fit(X, column).posterior_.released.tables[-1])


def as_one_column(column: Any) -> list[int]:
    model = DirichletMultinomial(INF, categories=Categories(IDS), inference="plug_in")
    return list(model.fit(column).posterior_.concentration - 1)


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("role", [as_target, as_one_column])
@pytest.mark.parametrize("name", TYPED)
def test_one_missing_value_moves_one_record(name: str, role: Any) -> None:
    unseen = role is as_one_column  # counts as the first; a record without a class is left out
    assert role(COLUMNS[name](LABELS)) == [40, 40]
    assert role(COLUMNS[name](ONE_MISSING)) == [39 + unseen, 40]
    assert role(COLUMNS[name]([*LABELS[:-1], None])) == [40 + unseen, 39]


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("name", TYPED)
def test_a_search_reads_its_target_in_the_same_way(name: str) -> None:
    counts = []
    for values in (LABELS, ONE_MISSING):
        search = PrivateSearchCV(
            NAIVE, {"alpha": [1.0]}, epsilon=INF, runs_per_candidate=1, random_state=0
        ).fit(X, COLUMNS[name](values))
        counts.append(search.best_estimator_.posterior_.released.tables[-1])
    assert min(counts[0]) > 20
    assert np.abs(counts[0] - counts[1]).sum() <= 2


@pytest.mark.parametrize("role", [as_target, as_one_column])
def test_objects_of_a_series_may_be_texts_and_are_no_numbers(role: Any) -> None:
    with pytest.raises(ValueError, match="holds objects by its type, but must hold numbers"):
        role(COLUMNS["pandas objects"](LABELS))


@pytest.mark.parametrize("name", DASK)
def test_a_dask_target_is_read_in_the_same_way(name: str) -> None:
    table = dd.from_pandas(pd.DataFrame({"a": X[:, 0]}), npartitions=2)
    with dask.config.set(scheduler="synchronous"):
        for values, first in ((LABELS, 40), (ONE_MISSING, 39)):
            target = dd.from_pandas(COLUMNS[name](values), npartitions=2)
            fitted = NAIVE.fit(table, target)
            assert fitted.posterior_.released.tables[-1].tolist() == [first, 40]


@pytest.mark.parametrize("name", ["pandas frame", "frame of a category", "polars frame"])
def test_a_feature_is_read_in_the_same_way(name: str) -> None:
    model = BayesianNaiveBayes(
        INF, schema=Schema({"id": Categories(IDS)}), classes=[0, 1], inference="plug_in"
    )
    for values in (LABELS, ONE_MISSING):
        fitted = model.fit(COLUMNS[name](values), np.zeros(80, int))
        assert fitted.posterior_.released.tables[0][0].tolist() == [40, 40]


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("name", TYPED)
def test_the_target_of_a_regression(name: str) -> None:
    high = float(2**53 + 4)
    model = BayesianLinearRegression(INF, bounds_X=(0, 1), bounds_y=(0, high))
    X = np.arange(80)[:, None] % 2
    means = [
        model.fit(X, COLUMNS[name](values)).predict(X[1:2])[0] for values in (LABELS, ONE_MISSING)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.1)


BOOLEANS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas boolean": lambda v: pd.Series(v, dtype="boolean"),
    "pandas bool[pyarrow]": lambda v: pd.Series(v, dtype="bool[pyarrow]"),
    "polars Boolean": lambda v: pl.Series(v, dtype=pl.Boolean),
    "pyarrow": lambda v: pa.array(v, pa.bool_()),
    "category": lambda v: pd.Categorical(v, categories=[False, True]),
    "list": list,
}


@pytest.mark.parametrize("name", BOOLEANS)
def test_a_condition_follows_from_the_type_and_not_from_the_values(name: str) -> None:
    """Without a missing value the guarantee must say the same as if there could be one."""
    model = BetaBinomial()
    (condition,) = model.fit(BOOLEANS[name]([True, False] * 9)).guarantee_.conditions
    assert "no record has a value outside" in condition
    with pytest.raises(ValueError, match="Nothing was spent"):
        model.fit(BOOLEANS[name]([None, False] * 9))


def test_booleans_that_cannot_be_missing_need_no_condition() -> None:
    flags = np.array([True, False] * 9)
    for column in (flags, pd.Series(flags), pd.DataFrame({"a": flags})):
        assert BetaBinomial().fit(column).guarantee_.conditions == ()


def test_types_that_cannot_change_are_kept() -> None:
    for column in (pl.Series([1.5, None]), pl.Series([1.5, 2.5])):
        assert cells_of(column).dtype == np.float64
    for values in ([0, 1], [0, 300]):
        assert cells_of(np.array(values, np.int16)).dtype == np.int16


@pytest.mark.parametrize("listed", [None, pd.NA])
def test_no_record_decides_how_missing_ones_are_read(listed):
    missing, domain = [None] * 39, Categories(["a", "b", listed])
    many = pd.CategoricalDtype([f"v{i}" for i in range(40)])  # one more than records: read by cells
    texts = pd.StringDtype("python")
    pairs = [
        (pd.Series(missing, dtype=many), pd.Series([*missing, None], dtype=many)),
        (pd.Series([*missing, "a"], dtype=texts), pd.Series([*missing, "\ud800"], dtype=texts)),
    ]
    for pair in pairs:
        one, other = (Table(column.to_frame("c")) for column in pair)
        codes = [
            next(domain.encode(t.cells(0, c)) for _, c in t.chunks())[:39] for t in (one, other)
        ]
        assert np.array_equal(*codes)


def test_searches_and_cross_validations_refuse_objects_before_the_charge() -> None:
    ledger = BudgetAccountant(10.0)
    line = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), accountant=ledger)
    texts = pd.Series(["0.5", "0.2"] * 40, dtype=object)
    table = pd.DataFrame({"a": pd.Series(["0", "1"] * 40, dtype=object)})
    named = BayesianNaiveBayes(
        schema=Schema({"a": Interval(0, 1, bins=2)}), classes=[0, 1], accountant=ledger
    )
    options = {"scoring": "accuracy", "epsilon": 1.0, "cv": 2}
    for fit in (
        lambda: line.fit(X, texts),
        lambda: private_cross_validate(NAIVE.set_params(accountant=ledger), X, texts, **options),
        lambda: PrivateSearchCV(NAIVE, {"alpha": [1.0]}, accountant=ledger).fit(X, texts),
        lambda: named.fit(table, [0, 1] * 40),
        lambda: named.partial_fit(table, [0, 1] * 40),
        lambda: private_cross_validate(named, table, [0, 1] * 40, **options),
        lambda: PrivateSearchCV(named, {"alpha": [1.0]}, accountant=ledger).fit(table, LABELS),
        lambda: PrivateMinMaxScaler(bounds=(0, 1), accountant=ledger).fit(table),
    ):
        with pytest.raises(ValueError, match=r"hold.* objects.*Nothing was spent"):
            fit()
    assert len(ledger) == 0
