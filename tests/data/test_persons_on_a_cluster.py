"""Records of persons in dask collections: the same count as in memory, wherever they are."""

from __future__ import annotations

import dask
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from benchmarks.audit.groups import GROUPS, container_of_groups
from benchmarks.audit.tools.replaying import replay
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Schema,
)
from dpbayes_sklearn.data.persons import counted_records
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
from dpbayes_sklearn.privacy.budget import PrivacyUnit

da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")

N = 700
RNG = np.random.default_rng(0)
WHO = np.repeat(np.arange(N), RNG.integers(1, 6, N))[:N]
X, Y = RNG.random((N, 3)), RNG.integers(0, 2, N)
PERSON = {"privacy_unit": PrivacyUnit("person", max_records=2)}
BOTH = PrivacyUnit("person", max_records=2, neighbours="add_remove")
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
    model = clone(model).set_params(
        random_state=0, privacy_unit=PrivacyUnit("person", max_records=2, neighbours=change)
    )
    here = clone(model).fit(X, Y, groups=WHO)
    for groups in (WHO, there(WHO, 90), pd.Series(WHO), dd.from_pandas(pd.Series(WHO), 3)):
        fitted = clone(model).fit(there(X), there(Y), groups=groups)
        assert fitted.to_json() == here.to_json()


def test_frames_too():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    lazy = dd.from_pandas(frame, 4)
    options = {"random_state": 0, "verbose": False, **PERSON}
    here = Schema.learn(frame, 100.0, groups=WHO, **options)
    assert Schema.learn(lazy, 100.0, groups=WHO, **options).to_json() == here.to_json()


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
    model = clone(model).set_params(privacy_unit=BOTH)
    own = WHO[5] == WHO
    for keep in (~own, np.zeros(N, bool)):
        one, other = (np.ones(N, bool), keep) if keep.any() else (own, keep)
        data = [(there(X[rows]), there(Y[rows]), WHO[rows]) for rows in (one, other)]
        found = replay(model, *data[0][:2], *data[1][:2], groups=data[0][2], groups2=data[1][2])
        assert found.sound, found.divergences
        assert found.status == "fitted"
    with pytest.raises(ValueError, match="0 sample"):
        clone(model).set_params(privacy_unit="record").fit(there(X[:0]), there(Y[:0]))


@pytest.mark.parametrize("name", GROUPS)
def test_a_missing_label_leaves_other_persons_as_they_are(name):
    """In one of two partitions only: their types differ, and ids above 2^53 must not collide."""
    assert list(container_of_groups(name, rounds=3, seed=5)) == []


def test_targets_in_other_blocks_keep_their_type():
    ids = [2**53 + 1, 2**53 + 3]
    blocks = [np.full(2, np.nan), *(np.full(2, ids[i % 2]) for i in range(9))]
    y = da.concatenate([da.from_delayed(dask.delayed(b), (2,), dtype=int) for b in blocks])
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=ids)
    for rows in (3, 5, 20):
        counts = model._read(there(np.zeros((20, 1)), rows), y).statistics.counts.tables[-1]
        assert counts.tolist() == [10, 8]  # two have no class


def test_columns_in_blocks_side_by_side_keep_their_type():
    ids = np.resize([2**53 + 1, 2**53 + 3], (20, 1))
    blocks = [ids, np.full((20, 1), np.nan)]
    X = [da.from_delayed(dask.delayed(b), (20, 1), dtype=int) for b in blocks]
    domains = {"a": Categories(ids[:2, 0].tolist()), "b": Categories([0, 1])}
    model = BayesianNaiveBayes(schema=Schema(domains, target=Categories([0, 1])))
    tables = model._read(da.concatenate(X, axis=1), there(np.zeros(20, int), 20))
    assert tables.statistics.counts.tables[0].sum(axis=0).tolist() == [10, 10]


def test_targets_that_dask_made_texts_of_are_numbers():
    """It does so with objects, which a partition has if one of its numbers is missing."""
    parts = [[0, 1, None, 1], [1, 1, 1, 0]]
    y = dd.from_map(
        lambda part: pd.Series(part, dtype=object if None in part else int),
        parts,
        meta=pd.Series([], dtype=int),
    )
    X = dd.from_pandas(pd.DataFrame({"a": np.zeros(8)}), 2)
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1])
    assert model._read(X, y).statistics.counts.tables[-1].tolist() == [2, 5]
