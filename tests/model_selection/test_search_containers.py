"""What a search takes its records from: lists, whose parts have no shape, and dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, PrivateSearchCV
from dpbayes_sklearn.base.estimator import WIDTH_OF_LIST
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
from dpbayes_sklearn.privacy.budget import PrivacyUnit

SECRET = PrivacyUnit("record", neighbours="add_remove")
EACH = ([0, 0], [1, 1])


def searched(rows: Any, y: Any = None, *, bounds: Any = EACH, pipeline: bool = False, **own: Any):
    model = BayesianNaiveBayes(0.5, bounds=bounds, classes=[0, 1], n_bins=2, **own)
    if pipeline:
        model = make_pipeline(PrivateMinMaxScaler(0.5, bounds=bounds, **own), model)
    search = PrivateSearchCV(model, {}, runs_per_candidate=1, test_size=0.5)
    return search.fit(rows, [0] * len(rows) if y is None else y)


@pytest.mark.parametrize("pipeline", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_it_does_not_matter_whether_everybody_is_held_out(n: int, pipeline: bool) -> None:
    for _ in range(12):
        assert searched([[0, 1]] * n, pipeline=pipeline, privacy_unit=SECRET).n_features_in_ == 2


@pytest.mark.parametrize("pipeline", [False, True])
@pytest.mark.parametrize("odd", [[1], None, [0, 1, 0], "ab", range(10**12)], ids=str)
def test_an_odd_row_of_a_list_is_missing_wherever_it_is(odd: Any, pipeline: bool) -> None:
    for _ in range(8):
        assert searched([[0, 1], odd], pipeline=pipeline).n_features_in_ == 2
    assert searched([odd] * 2, pipeline=pipeline).n_features_in_ == 2


def test_a_list_that_says_its_own_width_is_a_condition() -> None:
    rows = [[0, 1]] * 5
    assert WIDTH_OF_LIST in searched(rows, bounds=(0, 1)).guarantee_.conditions
    assert WIDTH_OF_LIST not in searched(rows).guarantee_.conditions
    assert WIDTH_OF_LIST not in searched(np.array(rows), bounds=(0, 1)).guarantee_.conditions


def test_dask_collections_are_refused_unpaid() -> None:
    array = pytest.importorskip("dask.array")
    ledger = BudgetAccountant()
    for X in (array.zeros((20, 2)), array.zeros((20, 2)).to_dask_dataframe()):
        with ledger, pytest.raises(TypeError, match="dask collection was passed, but"):
            searched(X, np.arange(20) % 2)
    assert len(ledger) == 0
