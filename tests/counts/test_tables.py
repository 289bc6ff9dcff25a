"""Counts: exact, in any order and chunking, and never moved by more than their sensitivity."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit
from tests.random_networks import Records, count, random_network, random_records


def naive(network: Network, records: Records) -> list[npt.NDArray[np.int64]]:
    tables = []
    for family, shape in zip(network.families, network.shapes, strict=True):
        table = np.zeros(shape, np.int64)
        for cell, times in Counter(tuple(r[u] for u in family) for r in records.tolist()).items():
            table[cell] = times
        tables.append(table)
    return tables


def distance(a: CountTables, b: CountTables) -> int:
    return int(sum(np.abs(x - y).sum() for x, y in zip(a.tables, b.tables, strict=True)))


def same(tables: Any, others: Any) -> bool:
    return all((a == b).all() and a.shape == b.shape for a, b in zip(tables, others, strict=True))


STARS = [
    Network.star([2] * 5, 2),
    Network.star([2, 2], 3),
    Network.star([3, 16, 17, 1], 3),
    Network.star([300, 2, 5], 2),
    Network.star([7], 1),
    Network.star([256, 256], 4),
]


@pytest.mark.parametrize("network", [*STARS, *map(random_network, range(25))])
def test_counts_are_those_of_a_plain_loop(network: Network) -> None:
    for n in (1, 7, 700):
        records = random_records(network, n, seed=n)
        expected = naive(network, records)
        for chunk in (None, 1, 64, 255, 256):
            if chunk == 1 and n > 7:
                continue
            counted = count(network, records, chunk)
            assert counted.n == n
            assert same(counted.tables, expected)
        shuffled = np.random.default_rng(n).permutation(records)
        assert same(count(network, shuffled, 64).tables, expected)
        assert all(t.dtype == np.int64 for t in counted.tables)


def test_blocks_of_bytes_do_not_overflow() -> None:
    network = Network.star([2, 3], 2)
    records = np.tile([1, 2, 1], (255 * 300 + 254, 1))
    tables = count(network, records).tables
    assert tables[0][1, 1] == tables[1][1, 2] == tables[2][1] == 255 * 300 + 254


# ------------------------------------------------------------------ sensitivity


@st.composite
def neighbours(draw: st.DrawFn, unit: PrivacyUnit) -> tuple[Network, Records, Records]:
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
        network = Network.star(sizes, draw(st.integers(1, 4)))
    else:
        network = random_network(draw(st.integers(0, 10**6)))
    records = random_records(network, draw(st.integers(1, 6)), draw(st.integers(0, 10**6)))
    other = records.copy()
    row = draw(st.integers(0, len(records) - 1))
    columns = list(range(len(network.sizes)))
    if unit == FEATURE:
        columns = [draw(st.integers(0, network.target - 1))]
    for j in columns:
        other[row, j] = draw(st.integers(0, network.sizes[j] - 1))
    return network, records, other


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
@settings(max_examples=100)
@given(data=st.data())
def test_no_neighbours_move_the_counts_further(unit: PrivacyUnit, data: st.DataObject) -> None:
    network, records, other = data.draw(neighbours(unit))
    a, b = count(network, records), count(network, other)
    assert distance(a, b) <= a.sensitivity(unit) == b.sensitivity(unit)


def shifts(a: CountTables, b: CountTables, unit: PrivacyUnit) -> Counter[tuple[int, int]]:
    """How many cells differ, by how much and by the weight of their table."""
    pairs = zip(a.tables, b.tables, a.table_weights(unit), strict=True)
    return Counter((int(v), w) for s, t, w in pairs for v in np.abs(s - t).ravel() if v)


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
@settings(max_examples=100)
@given(data=st.data())
def test_no_neighbours_change_more_cells(unit: PrivacyUnit, data: st.DataObject) -> None:
    network, records, other = data.draw(neighbours(unit))
    a, b = count(network, records), count(network, other)
    moved, claimed = shifts(a, b, unit), a.shifts(unit)
    assert all(cells <= claimed[change] for change, cells in moved.items())
    assert claimed == b.shifts(unit)


def test_shifts_are_attained() -> None:
    for network in (Network.star([2, 3], 2), Network.star([1, 4], 2), Network.star([3], 1)):
        records = list(product(*(range(k) for k in network.sizes)))
        single = [count(network, np.array([r])) for r in records]
        most = max((shifts(a, b, RECORD) for a, b in product(single, single)), key=Counter.total)
        assert single[0].shifts(RECORD) == most
        pairs = product(zip(records, single, strict=True), repeat=2)
        found = (shifts(a, b, FEATURE) for (x, a), (y, b) in pairs if _one_feature(x, y))
        assert single[0].shifts(FEATURE) == max(found, key=Counter.total)
    assert count(Network.star([1], 2), np.zeros((1, 2), np.int64)).shifts(FEATURE) == {}


def test_larger_tables_have_larger_weights_and_less_variance_in_all() -> None:
    statistics = CountTables(Network.star([2] * 8 + [12] * 6, 2), (), 100)
    weights, shifted = statistics.table_weights(RECORD), statistics.shifts(RECORD)
    assert weights == (3,) * 8 + (7,) * 6 + (2,)
    assert shifted == {(1, 2): 2, (1, 3): 16, (1, 7): 12}
    assert statistics.table_weights(FEATURE) == (1,) * 15  # one feature changes one table
    sizes = [math.prod(shape) for shape in statistics.network.shapes]
    total = sum(weights) * sum(m / w for m, w in zip(sizes, weights, strict=True))
    assert total < 0.9 * len(sizes) * sum(sizes)
    best = sum(math.sqrt(m) for m in sizes) ** 2
    assert best <= total < 1.01 * best


@pytest.mark.parametrize("unit", [RECORD, FEATURE, PrivacyUnit("record", neighbours="add_remove")])
def test_tables_of_one_cell_have_a_weight_only_if_n_is_secret(unit: PrivacyUnit) -> None:
    statistics = CountTables(Network.star([3, 1], 1), (), 100)
    weights = statistics.table_weights(unit)
    assert [w > 0 for w in weights] == [True, unit.size_is_secret, unit.size_is_secret]


def _one_feature(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    changed = [u for u in range(len(x)) if x[u] != y[u]]
    return len(changed) == 1 and changed[0] != len(x) - 1


def farthest(network: Network, unit: PrivacyUnit) -> int:
    """The most that replacing one record moves the counts, over all pairs of records."""
    records = list(product(*(range(k) for k in network.sizes)))
    single = {r: count(network, np.array([r])) for r in records}
    best = 0
    for x, y in product(records, records):
        changed = [u for u in range(len(x)) if x[u] != y[u]]
        if unit == RECORD or (len(changed) == 1 and changed[0] != network.target):
            best = max(best, distance(single[x], single[y]))
    return best


@pytest.mark.parametrize(
    "network",
    [
        Network.star([2], 2),
        Network.star([2, 2, 2], 2),
        Network.star([3, 2], 3),
        Network.star([1, 4], 2),
        Network.star([3], 1),
        Network.star([1], 2),
        *(random_network(seed, max_size=3, nodes=3) for seed in range(12)),
        *(random_network(seed, max_size=2, nodes=4) for seed in range(12)),
    ],
)
def test_the_sensitivity_is_attained(network: Network) -> None:
    counts = count(network, random_records(network, 3, 0))
    for unit in (RECORD, FEATURE):
        assert farthest(network, unit) == counts.sensitivity(unit)


@pytest.mark.parametrize("d", [1, 2, 5, 16])
def test_the_sensitivity_of_naive_bayes(d: int) -> None:
    counts = count(Network.star([2] * d, 2), np.zeros((4, d + 1), np.int64))
    assert counts.sensitivity(RECORD) == 2 * (d + 1)
    assert counts.sensitivity(FEATURE) == 2


# --------------------------------------------------------------- released counts


def test_batches_add_up_with_their_noise_laws() -> None:
    network = Network.star([2], 2)
    tables = (np.array([[3, -4], [5, 90]]), np.array([-1, 8]))
    law = DiscreteLaplace.of(Fraction(4), [4, 2])
    other = DiscreteLaplace((Fraction(1, 3), Fraction(0)), (4, 2))
    first = ReleasedCounts(network, tables, 10, (law,))
    second = ReleasedCounts(network, tables, 7, (other,))
    both = first.merge(second)
    assert same(both.tables, [2 * t for t in tables])
    assert both.n == 17
    assert both.laws == (law, other)
    assert both.noise(1) == law.marginal(1)  # the other batch has no noise there
    # clipping comes after adding up, so it does not bias every batch
    assert both.clipped()[0].tolist() == [[6, 0], [10, 17]]
    assert both.clipped()[1].tolist() == [0, 16]
    assert first.clipped()[0].tolist() == [[3, 0], [5, 10]]


def test_without_noise() -> None:
    network = Network.star([2, 3], 2)
    counts = count(network, random_records(network, 9, 0))
    released = counts.without_noise()
    assert same(released.tables, counts.tables)
    assert released.laws == ()
    assert released.noise(0).variance == 0
    assert released.n == 9
