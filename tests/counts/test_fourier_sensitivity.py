"""The sensitivity of character sums against every pair of records there is."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from dpbayes_sklearn.counts.fourier import (
    block_sensitivity,
    closure,
    exact_sensitivity,
    l1_sensitivity,
    pair_types,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import haar
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit
from tests.random_networks import random_network

UNITS = (RECORD, FEATURE)


def all_records(network: Network) -> np.ndarray:
    return np.array([*product(*map(range, network.sizes))])


def characters_of(network: Network, records: np.ndarray) -> np.ndarray:
    """Every product of one character a node, inside some family, constant left out."""
    columns = []
    for support in closure(network):
        for characters in product(*(range(1, network.sizes[u]) for u in support)):
            values = [
                haar(network.sizes[u])[records[:, u], a]
                for u, a in zip(support, characters, strict=True)
            ]
            columns.append(np.prod(values, axis=0))
    return np.array(columns).reshape(len(columns), len(records)).T


def searched(network: Network, unit: PrivacyUnit) -> int:
    """Try every record in place of every other that the unit makes its neighbour."""
    records = all_records(network)
    characters = characters_of(network, records)
    most = 0
    for record, own in zip(records, characters, strict=True):
        moved = np.abs(characters - own).sum(axis=1)
        differing = records != record
        if unit == FEATURE:
            moved = moved[(differing.sum(axis=1) == 1) & ~differing[:, network.target]]
        most = max(most, int(moved.max(initial=0)))
    return most


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("unit", UNITS)
def test_exact_for_every_pair_of_records(seed: int, unit: PrivacyUnit) -> None:
    network = random_network(seed, nodes=4 + seed % 2)
    assert prod(network.sizes) <= 1024
    assert exact_sensitivity(network, closure(network), unit) == searched(network, unit)


@pytest.mark.parametrize("sizes", [(5, 3, 2), (7, 2, 3), (8, 2, 2), (6, 6, 2)])
@pytest.mark.parametrize("unit", UNITS)
def test_exact_for_larger_domains(sizes: tuple[int, ...], unit: PrivacyUnit) -> None:
    """Trees of splits that are not complete, and complete ones of three levels."""
    network = Network(sizes, ((1, 2), (2,), ()))
    assert exact_sensitivity(network, closure(network), unit) == searched(network, unit)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("unit", UNITS)
def test_block_bound_is_sound(seed: int, unit: PrivacyUnit) -> None:
    network = random_network(seed, max_size=6, nodes=6)
    supports = closure(network)
    exact = exact_sensitivity(network, supports, unit)
    assert exact is not None
    assert exact <= block_sensitivity(network, supports, unit)


def test_exact_is_worth_it() -> None:
    networks = [random_network(seed, max_size=6, nodes=6) for seed in range(25)]
    saved = [
        1
        - exact_sensitivity(net, closure(net), RECORD)
        / block_sensitivity(net, closure(net), RECORD)
        for net in networks
    ]
    assert np.mean(saved) > 0.1


@pytest.mark.parametrize("d", [1, 2, 3, 16, 2000])
def test_boolean_naive_bayes(d: int) -> None:
    star = Network.star([2] * d, 2)
    assert l1_sensitivity(star, closure(star), RECORD) == 4 * d
    assert l1_sensitivity(star, closure(star), FEATURE) == 4


def test_nothing_moves_where_nothing_varies() -> None:
    network = Network((1, 1), ((), (0,)))
    for unit in UNITS:
        assert closure(network) == ()
        assert l1_sensitivity(network, (), unit) == 0


def one_family(n_parents: int) -> Network:
    return Network((2,) * (n_parents + 1), (*((),) * n_parents, tuple(range(n_parents))))


@pytest.mark.parametrize("unit", UNITS)
def test_too_large_a_family_falls_back_to_the_bound(unit: PrivacyUnit) -> None:
    network = one_family(14)
    supports = closure(network)
    assert exact_sensitivity(network, supports, unit) is None
    bound = 2 * len(supports) if unit == RECORD else 2 * 2**14
    assert l1_sensitivity(network, supports, unit) == bound


def child_of_every_pair(n_roots: int) -> Network:
    """Small families, but every root is tied to every other."""
    pairs = tuple(combinations(range(n_roots), 2))
    return Network((2,) * (n_roots + len(pairs)), (*((),) * n_roots, *pairs))


def test_too_dense_a_graph_falls_back_to_the_bound() -> None:
    small, large = child_of_every_pair(10), child_of_every_pair(22)
    assert exact_sensitivity(small, closure(small), RECORD) is not None
    assert exact_sensitivity(large, closure(large), RECORD) is None
    assert l1_sensitivity(large, closure(large), RECORD) == 2 * len(closure(large))


def test_pair_types_are_all_there_are() -> None:
    h = haar(6)[:, 1:]
    found = {
        (
            int(np.abs(h[v]).sum()),
            int(np.abs(h[w]).sum()),
            int(((h[v] == h[w]) & (h[v] != 0)).sum()),
            int((h[v] * h[w] == -1).sum()),
        )
        for v in range(6)
        for w in range(6)
    }
    assert {tuple(t) for t in pair_types(6).tolist()} == found
    assert {tuple(t) for t in pair_types(6, same=True).tolist()} == {
        t for t in found if t[0] == t[2]
    }
