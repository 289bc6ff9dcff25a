"""Records of persons in dask collections: the same count as in memory, wherever they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant, Schema
from dpbayes_sklearn.audit.replaying import replay
from dpbayes_sklearn.data.persons import counted_records
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler

da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")

N = 700
RNG = np.random.default_rng(0)
WHO = np.repeat(np.arange(N), RNG.integers(1, 6, N))[:N]
X, Y = RNG.random((N, 3)), RNG.integers(0, 2, N)
PERSON = {"privacy_unit": "person", "max_records_per_person": 2}
ADDED = {"neighbours": "add_remove"}
MODELS = [
    BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=4, **PERSON),
    BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), **PERSON),
    PrivateMinMaxScaler(**PERSON),
    PrivateSelectKBest(1, bounds=(0, 1), classes=[0, 1], **PERSON),
]


def there(array, rows=150):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("change", ["replace", "add_remove"])
def test_the_same_records_count_as_in_memory(model, change):
    model = clone(model).set_params(random_state=0, neighbours=change)
    here = clone(model).fit(X, Y, groups=WHO)
    for groups in (WHO, there(WHO, 90), pd.Series(WHO), dd.from_pandas(pd.Series(WHO), 3)):
        fitted = clone(model).fit(there(X), there(Y), groups=groups)
        assert fitted.to_json() == here.to_json()


def test_frames_too():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    lazy = dd.from_pandas(frame, 4)
    options = {"random_state": 0, "verbose": False, **PERSON}
    here = Schema.learn(frame, groups=WHO, **options)
    assert Schema.learn(lazy, groups=WHO, **options).to_json() == here.to_json()


def test_records_are_chosen_twice():
    from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable

    records = PartitionedRecords.read(PartitionedTable(there(X)), there(Y))
    counted = counted_records(WHO, 2)
    once = records.at(counted)
    again = once.at(np.array([0, 3, once.n - 1]))
    assert again.n == 3
    total = again.total(lambda shard: np.array([shard.table.n_rows, shard.target.sum()]))
    assert total.tolist() == [3, Y[counted][[0, 3, -1]].sum()]


def test_wrong_labels_are_refused_before_anything_is_charged():
    ledger = BudgetAccountant()
    model = clone(MODELS[0]).set_params(accountant=ledger)
    for groups, text in ((WHO[1:], "inconsistent"), (np.full(N, np.nan), "no record has one")):
        with pytest.raises(ValueError, match=text):
            model.fit(there(X), there(Y), groups=there(groups))
    assert len(ledger) == 0


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_person_more_or_less_and_nobody_at_all(model):
    model = clone(model).set_params(**ADDED)
    own = WHO[5] == WHO
    for keep in (~own, np.zeros(N, bool)):
        one, other = (np.ones(N, bool), keep) if keep.any() else (own, keep)
        data = [(there(X[rows]), there(Y[rows]), WHO[rows]) for rows in (one, other)]
        found = replay(model, *data[0][:2], *data[1][:2], groups=data[0][2], groups2=data[1][2])
        assert found.sound, found.divergences
        assert found.status == "fitted"
    with pytest.raises(ValueError, match="0 sample"):
        clone(model).set_params(neighbours="replace").fit(there(X[:0]), there(Y[:0]))
