"""Samples of the records: a public number, drawn at random, and the same in any order of them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from benchmarks.audit.order import places, sorted_tables
from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit
from dpbayes_sklearn.release import drawn_sample

PERSON = PrivacyUnit("person", max_records=3)


@pytest.mark.parametrize("unit", [RECORD, FEATURE, PERSON], ids=lambda case: case.name)
def test_a_sample_is_drawn_of_a_public_number(unit: PrivacyUnit) -> None:
    assert drawn_sample(100, 1, unit, Noise.of(0)) is None
    one, other = (drawn_sample(100, 7, unit, Noise.of(seed)) for seed in (0, 1))
    assert one is not None
    assert other is not None
    assert len(one) == len(other) == 15
    assert one.tolist() != other.tolist()


@pytest.mark.parametrize("name", ["record", "person"])
def test_all_records_are_asked_where_their_number_is_secret(name: str) -> None:
    assert drawn_sample(100, 7, PrivacyUnit(name, neighbours="add_remove"), Noise.of(0)) is None


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted_tables(), ids=lambda case: case.name)
def test_a_table_that_is_sorted_again_loses_no_more(case: Any) -> None:
    assert next(case.findings(), None) is None


@pytest.mark.parametrize(
    "case", [case for case in places() if "held" in case.name], ids=lambda case: case.name
)
def test_who_is_held_out_does_not_depend_on_places(case: Any) -> None:
    assert next(case.findings(), None) is None


def test_sums_over_some_positions_in_any_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpbayes_sklearn.data.records._MOST_ROWS", 7)  # at a time
    monkeypatch.setattr("dpbayes_sklearn.data.records._CELLS_A_THREAD", 10)
    rng = np.random.default_rng(0)
    X, y = rng.random((100, 3)), np.arange(100)
    at = np.flatnonzero(rng.random(100) < 0.4)
    shards = [(Table(X[a:b]), y[a:b]) for a, b in ((0, 13), (13, 13), (13, 60), (60, 100))]
    lazy = PartitionedTable(da.from_array(X, (30, 3)))
    kept = np.flatnonzero(np.arange(100) % 3 > 0)
    for records, ids in (
        (LocalRecords([(Table(X), y)]), y),
        (LocalRecords(shards), y),
        (PartitionedRecords.read(lazy, da.from_array(y, 30)), y),
        (LocalRecords(shards).at(kept), kept),
        (PartitionedRecords.read(lazy, da.from_array(y, 30)).at(kept), kept),
    ):
        some = at[at < len(ids)]
        total = records.total(lambda shard: np.bincount(shard.target, minlength=100), some)
        assert np.flatnonzero(total).tolist() == ids[some].tolist()
        assert total.max() == 1
