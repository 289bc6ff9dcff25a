"""Characters: exact sums, exact way back, consistency, and how far neighbours move them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn.counts import fourier as sensitivity_module
from dpbayes_sklearn.counts.fourier import (
    CharacterSums,
    ReleasedCharacters,
    block_sensitivity,
    closure,
    exact_sensitivity,
    l1_sensitivity,
    tables_from_characters,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import depths, haar, leaf_levels
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit
from tests.random_networks import count, random_network, random_records


def characters_of(network: Network, record: Any) -> npt.NDArray[np.int64]:
    """All characters of one record but the constant one, by their definition."""
    values = []
    for support in closure(network):
        rows = [haar(network.sizes[u])[record[u], 1:] for u in support]
        values += [prod(int(h) for h in factors) for factors in product(*rows)]
    return np.array(values, np.int64)


def flat(blocks: Any, network: Network) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *(blocks[s].ravel() for s in closure(network))])


NETWORKS = [
    Network.star([2, 2, 2], 2),
    Network.star([3, 5, 1], 3),
    Network.star([4, 7], 1),
    *map(random_network, range(20)),
]


@pytest.mark.parametrize("network", NETWORKS)
def test_sums_are_those_of_the_definition(network: Network) -> None:
    records = random_records(network, 9, 1)
    sums = CharacterSums.of(count(network, records))
    expected = sum(characters_of(network, r) for r in records)
    assert (flat(sums.blocks, network) == expected).all()
    assert set(sums.blocks) == set(closure(network))
    assert all(b.dtype == np.int64 for b in sums.blocks.values())


@pytest.mark.parametrize("network", NETWORKS)
def test_tables_come_back_exactly(network: Network) -> None:
    counts = count(network, random_records(network, 50, 2))
    sums = CharacterSums.of(counts)
    for table, exact in zip(
        tables_from_characters(network, sums.blocks, sums.n), counts.tables, strict=True
    ):
        assert (table == exact).all()
        assert table.shape == exact.shape


def test_the_closure_of_naive_bayes() -> None:
    for d in (1, 4, 16):
        assert len(closure(Network.star([2] * d, 2))) + 1 == 2 * d + 2
    assert closure(Network.star([2, 1], 2)) == ((0,), (0, 2), (2,))


def marginal(table: Any, family: tuple[int, ...], keep: tuple[int, ...]) -> Any:
    """The table summed down to some of its nodes, in increasing order of nodes."""
    table = table.sum(axis=tuple(a for a, u in enumerate(family) if u not in keep))
    inside = [u for u in family if u in keep]
    return np.transpose(table, [inside.index(u) for u in keep])


def assert_consistent(network: Network, tables: Any, total: float) -> None:
    pairs = list(zip(network.families, tables, strict=True))
    for (f, a), (g, b) in combinations(pairs, 2):
        shared = tuple(sorted(set(f) & set(g)))
        assert (marginal(a, f, shared) == marginal(b, g, shared)).all()
    assert all(table.sum() == total for table in tables)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1, 100, 10**6]))
def test_noisy_tables_agree_bit_for_bit(seed: int, scale: int) -> None:
    network = random_network(seed, max_size=6)
    rng = np.random.default_rng(seed)
    sums = CharacterSums.of(count(network, random_records(network, 20, seed)))
    blocks = {s: b + rng.integers(-scale, scale + 1, b.shape) for s, b in sums.blocks.items()}
    released = ReleasedCharacters(network, blocks, 20, (Fraction(scale),), increment=13.25)
    assert_consistent(network, released.tables, 33.25)


def test_marginals_of_tables_without_shared_noise_do_not_agree() -> None:
    network, rng = Network.star([2, 2], 2), np.random.default_rng(0)
    tables = [rng.integers(0, 100, shape) for shape in network.shapes]
    with pytest.raises(AssertionError):
        assert_consistent(network, tables, 100)


def test_the_increment_raises_a_cell_by_its_share() -> None:
    network = random_network(3, max_size=5)
    counts = count(network, random_records(network, 20, 0))
    blocks = CharacterSums.of(counts).blocks
    raised = ReleasedCharacters(network, blocks, 20, (), increment=64.0).tables
    for table, exact in zip(raised, counts.tables, strict=True):
        assert (table - exact == 64 * 0.5 ** leaf_levels(exact.shape)).all()


def test_further_axes_stand_for_repetitions() -> None:
    network = random_network(5, max_size=5)
    rng = np.random.default_rng(0)
    many = {
        s: rng.integers(-9, 9, (4, *(network.sizes[u] - 1 for u in s))) for s in closure(network)
    }
    together = tables_from_characters(network, many, 7)
    for i in range(4):
        alone = tables_from_characters(network, {s: b[i] for s, b in many.items()}, 7)
        assert all((t[i] == a).all() for t, a in zip(together, alone, strict=True))


def test_batches_add_up() -> None:
    network = Network.star([3], 2)
    records = random_records(network, 30, 4)
    parts = [CharacterSums.of(count(network, r)) for r in (records[:12], records[12:])]
    released = [
        ReleasedCharacters(
            network, part.blocks, part.n, (DiscreteLaplace.of(Fraction(scale), [part.size]),), 4.0
        )
        for part, scale in zip(parts, (2, 3), strict=True)
    ]
    both = released[0].merge(released[1])
    assert both.n == 30
    assert [law.scales for law in both.laws] == [(Fraction(2),), (Fraction(3),)]
    assert both.increment == 8
    whole = CharacterSums.of(count(network, records))
    assert (flat(both.blocks, network) == flat(whole.blocks, network)).all()


def test_negative_cells_are_clipped_and_others_kept() -> None:
    network = Network.star([2], 2)
    blocks = {(0,): np.array([40]), (1,): np.array([0]), (0, 1): np.array([[2]])}
    released = ReleasedCharacters(network, blocks, 10, ())
    tables, clipped = released.tables, released.clipped()
    assert tables[0].tolist() == [[13, -8], [12, -7]]
    assert clipped[0].tolist() == [[13, 0], [12, 0]]
    assert clipped[1].tolist() == [5, 5]


# ------------------------------------------------------------------ sensitivity


def farthest(network: Network, unit: PrivacyUnit) -> int:
    """The most that replacing one record moves the characters, over all pairs of records."""
    records = list(product(*(range(k) for k in network.sizes)))
    phi = np.stack([characters_of(network, r) for r in records])
    moved = np.stack([np.abs(phi - row).sum(axis=1) for row in phi])
    if unit == FEATURE:
        table = np.array(records)
        differs = table[:, None, :] != table[None, :, :]
        moved = moved[(differs.sum(axis=2) == 1) & ~differs[:, :, -1]]
    return int(moved.max(initial=0))


def change(network: Network, unit: PrivacyUnit) -> int:
    return l1_sensitivity(network, closure(network), unit)


SHAPES = [
    *(((k,), c) for k in range(1, 6) for c in range(1, 5)),
    *(((k, m), c) for k in range(1, 5) for m in range(k, 6) for c in range(1, 4)),
    *(((5, 5), 4), ((2, 3, 4), 3), ((3, 3, 3), 2), ((2, 2, 2, 2), 2), ((2, 2, 2), 4)),
]


@pytest.mark.parametrize(("sizes", "n_classes"), SHAPES)
def test_the_sensitivity_of_a_star_is_exact(sizes: tuple[int, ...], n_classes: int) -> None:
    network = Network.star(sizes, n_classes)
    sums = CharacterSums.of(count(network, random_records(network, 3, 0)))
    for unit in (RECORD, FEATURE):
        exact = farthest(network, unit)
        assert exact_sensitivity(network, closure(network), unit) == exact
        assert sums.sensitivity(unit) == exact
        assert block_sensitivity(network, closure(network), unit) >= exact


@pytest.mark.parametrize("d", [1, 2, 3, 4, 16, 100])
def test_boolean_naive_bayes_moves_by_4d(d: int) -> None:
    network = Network.star([2] * d, 2)
    assert change(network, RECORD) == 4 * d
    assert change(network, FEATURE) == 4
    if d <= 4:
        assert farthest(network, RECORD) == 4 * d


@pytest.mark.parametrize("sizes", [(4,), (8, 2), (16, 4, 2)])
def test_two_classes_and_powers_of_two_move_by_four_times_the_depths(
    sizes: tuple[int, ...],
) -> None:
    expected = 4 * sum(int(depths(k).max()) for k in sizes)
    assert change(Network.star(sizes, 2), RECORD) == expected


@pytest.mark.parametrize("seed", range(40))
def test_the_sensitivity_of_other_graphs_is_exact_and_below_the_bound(seed: int) -> None:
    network = random_network(seed, max_size=3, nodes=3 + seed % 2)
    for unit in (RECORD, FEATURE):
        exact = farthest(network, unit)
        assert change(network, unit) == exact
        assert block_sensitivity(network, closure(network), unit) >= exact


def test_a_graph_too_dense_to_eliminate_has_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensitivity_module, "_MOST_FACTOR_CELLS", 10)
    dense = Network((3, 3, 3, 3), ((), (0,), (0, 1), (0, 1, 2)))
    assert exact_sensitivity(dense, closure(dense), RECORD) is None
    bound = l1_sensitivity(dense, closure(dense), RECORD)
    assert bound == block_sensitivity(dense, closure(dense), RECORD) >= farthest(dense, RECORD)


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
@settings(max_examples=100)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_no_neighbours_move_the_sums_further(
    unit: PrivacyUnit, seed: int, data: st.DataObject
) -> None:
    network = random_network(seed)
    if data.draw(st.booleans()):
        network = Network.star(network.sizes[:-1], network.sizes[-1])
    records = random_records(network, 5, seed)
    other = records.copy()
    columns = list(range(len(network.sizes)))
    if unit == FEATURE:
        columns = [data.draw(st.integers(0, network.target - 1))]
    for j in columns:
        other[2, j] = data.draw(st.integers(0, network.sizes[j] - 1))
    a, b = CharacterSums.of(count(network, records)), CharacterSums.of(count(network, other))
    moved = np.abs(flat(a.blocks, network) - flat(b.blocks, network)).sum()
    assert moved <= a.sensitivity(unit)
