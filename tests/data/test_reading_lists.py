"""Lists of rows: no row decides how another one is read, or whether reading fails."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from benchmarks.audit.groups import ODD_LABELS
from benchmarks.audit.tools.fuzzing import MARK, everything_said
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    Schema,
)
from dpbayes_sklearn.base.estimator import WIDTH_OF_LIST
from dpbayes_sklearn.data.persons import counted_records, read_groups
from dpbayes_sklearn.data.reading import read_table, read_target
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema.values import as_cells, cells_of

ODD: list[Any] = [None, 1, [], [1, 2], [[0]], (0,), np.array([0]), "ab", *ODD_LABELS]
PEOPLE = [[0], [1], [0], [1]]
every_odd_row = pytest.mark.parametrize("place", range(len(ODD)))  # pytest asks values for a class


@every_odd_row
def test_one_row_leaves_all_others_as_they_are(place: int) -> None:
    odd = ODD[place]
    model = BaseEstimator()
    y = read_target(model, [*PEOPLE, odd], 5)
    assert y[:4].tolist() == [0, 1, 0, 1]
    X = read_table(model, [[0, 1], [1, 0], [2, 2], odd], reset=True, declared=True)
    assert [X.column(j)[:3].tolist() for j in range(2)] == [[0, 1, 2], [1, 0, 2]]
    kept = counted_records(read_groups([[7], [8], odd], 3), 1)
    assert kept[:2].tolist() == [0, 1]


@every_odd_row
def test_a_fit_takes_every_row(place: int) -> None:
    odd = ODD[place]
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2)
    people = {"privacy_unit": PrivacyUnit("person", max_records=1)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit([*PEOPLE, odd], [*PEOPLE, odd])
        DirichletMultinomial(categories=Categories(["a", "b"])).fit([["a"], ["b"], odd])
        model.set_params(**people).fit([*PEOPLE, [0]], [0, 1, 0, 1, 0], groups=[*PEOPLE, odd])


@every_odd_row
def test_counts_of_others_stay(place: int) -> None:
    odd = ODD[place]
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2)
    sides = ([0], odd)
    one, other = (model._read([*PEOPLE, x], [*PEOPLE, x]).statistics for x in sides)
    assert (
        sum(
            np.abs(a - b).sum() for a, b in zip(one.counts.tables, other.counts.tables, strict=True)
        )
        <= 4
    )


def test_rows_that_are_refused_without_domains_show_no_value() -> None:
    ledger = BudgetAccountant()
    with pytest.raises((TypeError, ValueError)) as raised:
        BayesianNaiveBayes(accountant=ledger).fit([[0.0], [1.0], MARK], [0, 1, 1])
    assert MARK not in everything_said(raised.value)
    assert len(ledger) == 0


EACH = ([0, 0], [1, 1])


@pytest.mark.parametrize("whose", ["record", PrivacyUnit("record", neighbours="add_remove")])
@every_odd_row
def test_rows_do_not_decide_how_many_columns_are_declared(place: int, whose: Any) -> None:
    for rows in ([ODD[place]], [[0, 1], ODD[place]], [[0, 1], *[ODD[place]] * 3]):
        model = BayesianNaiveBayes(bounds=EACH, classes=[0, 1], n_bins=2, privacy_unit=whose)
        model.fit(rows, [0] * len(rows))
        assert model.n_features_in_ == 2
        scaler = PrivateMinMaxScaler(bounds=EACH, privacy_unit=whose).fit(rows)
        assert scaler.transform(rows).shape == (len(rows), 2)


def test_nobody_is_as_many_as_anybody_where_that_is_secret() -> None:
    secret = PrivacyUnit("record", neighbours="add_remove")
    declared = {"classes": [0, 1], "privacy_unit": secret}
    BayesianNaiveBayes(bounds=EACH, **declared).fit([], [])
    columns = dict.fromkeys("ab", Interval(0, 1, bins=2))
    schema = Schema(columns, target=Categories([0, 1]))
    BayesianNaiveBayes(schema=schema, privacy_unit=secret).fit([], [])


@every_odd_row
def test_a_batch_may_be_one_odd_row(place: int) -> None:
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2)
    model.partial_fit([[0, 1]] * 3, [0, 1, 0]).partial_fit([ODD[place]], [0])
    assert model.n_features_in_ == 2


def test_a_width_that_is_not_declared_is_a_condition() -> None:
    model, y = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2), [0, 1]
    assert WIDTH_OF_LIST in model.fit([[0], [1]], y).guarantee_.conditions
    assert WIDTH_OF_LIST not in model.fit(np.array([[0], [1]]), y).guarantee_.conditions
    each = model.set_params(bounds=([0], [1]))
    assert WIDTH_OF_LIST not in each.fit([[0], [1]], y).guarantee_.conditions
    one = DirichletMultinomial(categories=Categories(["a", "b"]))
    assert WIDTH_OF_LIST not in one.fit(["a", "b"]).guarantee_.conditions


def test_a_row_of_another_length_is_not_unpacked() -> None:
    endless = range(10**12)
    assert as_cells([[1], [2], endless], 2).tolist() == [[1], [2], [None]]
    assert as_cells([endless], 2, width=1).tolist() == [[None]]


def test_a_list_of_cells_is_one_column() -> None:
    assert as_cells([1, 2, 3], 2).shape == (3,)
    assert cells_of([(1,), [2], np.array([3])]).tolist() == [1, 2, 3]
    assert as_cells([(1, 2), np.array([3, 4])], 2).tolist() == [[1, 2], [3, 4]]
    assert as_cells(np.eye(2), 2).tolist() == [[1, 0], [0, 1]]
