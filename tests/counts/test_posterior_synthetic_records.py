"""Synthetic records against the joint law they must have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import ancestral_sample

# the class in the middle, a node before its parents, a constant, a collider
NETWORK = Network((2, 3, 1, 2, 3), ((4,), (), (1,), (1, 4), (1,)))
N = 100_000


def random_tables(network: Network, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.dirichlet(np.full(shape[-1], 2.0), shape[:-1]) for shape in network.shapes)


def joint_law(network: Network, tables: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return p(x) = prod_i p(x_i | parents), one axis per node."""
    operands = [part for pair in zip(tables, network.families, strict=True) for part in pair]
    return np.einsum(*operands, range(len(network.sizes)))


def p_value(records: np.ndarray, law: np.ndarray) -> float:
    observed = np.bincount(np.ravel_multi_index(records.T, law.shape), minlength=law.size)
    return float(chisquare(observed, len(records) * law.ravel()).pvalue)


@pytest.mark.parametrize("seed", range(3))
def test_joint_law(seed: int) -> None:
    tables = random_tables(NETWORK, seed)
    records = ancestral_sample(NETWORK, tables, N, np.random.default_rng(seed))
    assert records.shape == (N, 5)
    assert p_value(records, joint_law(NETWORK, tables)) > 1e-4


@pytest.mark.parametrize("node", [0, 1, 3, 4])
@pytest.mark.parametrize("tilt", [0.9, 1.1])
def test_a_fault_in_any_table_is_seen(node: int, tilt: float) -> None:
    tables = random_tables(NETWORK, 0)
    tilted = [*tables]
    tilted[node] = tables[node] * np.linspace(tilt, 1, NETWORK.sizes[node])
    tilted[node] /= tilted[node].sum(axis=-1, keepdims=True)
    records = ancestral_sample(NETWORK, tuple(tilted), N, np.random.default_rng(0))
    assert p_value(records, joint_law(NETWORK, tables)) < 1e-4


def test_parents_that_are_ignored_are_seen() -> None:
    tables = random_tables(NETWORK, 0)
    alone = Network(NETWORK.sizes, ((),) * 5)
    means = tuple(t.reshape(-1, t.shape[-1]).mean(axis=0) for t in tables)
    records = ancestral_sample(alone, means, N, np.random.default_rng(0))
    assert p_value(records, joint_law(NETWORK, tables)) < 1e-12


def test_impossible_values_do_not_occur() -> None:
    network = Network((3, 2), ((1,), ()))
    tables = (np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]), np.array([0.5, 0.5]))
    records = ancestral_sample(network, tables, 10_000, np.random.default_rng(0))
    assert {*map(tuple, records.tolist())} == {(1, 0), (0, 1), (2, 1)}


def test_rows_that_do_not_add_to_one_exactly() -> None:
    """Rounding must not let a value fall beyond the last."""
    table = (np.full(3, (1 - 1e-9) / 3),)
    records = ancestral_sample(Network((3,), ((),)), table, 10_000, np.random.default_rng(0))
    assert set(records.ravel().tolist()) == {0, 1, 2}


def test_no_records() -> None:
    tables = random_tables(NETWORK, 0)
    assert ancestral_sample(NETWORK, tables, 0, np.random.default_rng(0)).shape == (0, 5)
