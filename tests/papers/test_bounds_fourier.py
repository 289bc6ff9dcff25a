from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks.audit.tools.universes import CountUniverse
from dpbayes_sklearn.counts.fourier import CharacterSums, closure, tables_from_characters
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import leaf_levels
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Fourier
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.papers.theory import (
    coefficient_count,
    fourier_table_quantile,
    paper_fourier_table_bound,
    table_bound,
)
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import RECORD
from tests.releasing import carried_out

RELEASES = 2000
N = 50
EPSILON, T = 1, 2.3
BOOLEAN = Network.star([2] * 3, 2)
MIXED = Network.star([3, 5], 3)
TWO_PARENTS = Network((2, 3, 2), ((), (0,), (0, 1)))


def some_counts(network, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, N) for k in network.sizes], axis=1).astype(np.uint8)
    return CountTables.count(network, [(codes[:, :-1], codes[:, -1])])


@cache
def errors_of(network):
    """L1 errors of every table (releases, nodes), without and with the paper's increment."""
    counts = some_counts(network)
    tables = (np.broadcast_to(table, (RELEASES, *table.shape)) for table in counts.tables)
    many, prior = replace(counts, tables=tuple(tables)), CountUniverse(network).prior(1.0)
    mechanism = Fourier(increment="paper", t=T, noise="independent")
    released = carried_out(mechanism, many, prior, Budget(EPSILON), Noise.of(1)).posterior
    plain, raised = np.empty((2, RELEASES, len(network.sizes)))
    for node, (table, exact) in enumerate(zip(released.tables, counts.tables, strict=True)):
        share = released.increment * 0.5 ** leaf_levels(exact.shape)
        raised[:, node] = np.abs(table - exact).reshape(RELEASES, -1).sum(axis=1)
        plain[:, node] = np.abs(table - share - exact).reshape(RELEASES, -1).sum(axis=1)
    return plain, raised


@pytest.mark.parametrize("network", [BOOLEAN, TWO_PARENTS])
def test_theorem_3_for_any_numbers_of_values(network):
    delta = 0.1
    errors, _ = errors_of(network)
    law = CharacterSums.of(some_counts(network)).law("independent", RECORD, Fraction(EPSILON))
    scale, nodes = float(law.scales[0]), range(len(network.sizes))
    bounds = [table_bound(network, i, law, delta) for i in nodes]
    quantiles = [fourier_table_quantile(network, i, scale, delta) for i in nodes]
    assert ((errors > bounds).any(axis=1)).mean() <= delta  # all tables at once
    used = np.quantile(errors, 1 - delta, axis=0)
    print("Theorem 3 used:", (used / bounds).round(2), "quantile:", (used / quantiles).round(2))
    for node in nodes:
        failures = int((errors[:, node] > quantiles[node]).sum())
        assert binomtest(failures, RELEASES, delta, alternative="greater").pvalue > 1e-3
        if np.prod(network.shapes[node]) <= 4:  # signs cancel the more, the larger the table
            beyond_half = int((errors[:, node] > quantiles[node] / 2).sum())
            assert binomtest(beyond_half, RELEASES, delta, alternative="greater").pvalue < 1e-6


def test_theorem_3_as_printed():
    """Nearly all of the bound is the paper's increment, so that half of it is too little."""
    delta = 0.05
    _, errors = errors_of(BOOLEAN)
    for node, parents in enumerate(BOOLEAN.parents):
        bound = paper_fourier_table_bound(
            coefficient_count(BOOLEAN), len(parents), EPSILON, delta, T
        )
        assert (errors[:, node] > bound).mean() <= delta
        assert (errors[:, node] > bound / 2).mean() > delta


def test_one_sum_moves_a_table_by_itself():
    """A single character sum that is off by z puts a table off by abs(z) in L1."""
    for support in closure(MIXED):
        shape = tuple(MIXED.sizes[u] - 1 for u in support)
        for index in np.ndindex(shape):
            blocks = {s: np.zeros([MIXED.sizes[u] - 1 for u in s], int) for s in closure(MIXED)}
            blocks[support][index] = 8
            tables = tables_from_characters(MIXED, blocks, 0)
            for family, table in zip(MIXED.families, tables, strict=True):
                assert np.abs(table).sum() == (8 if set(support) <= set(family) else 0)


def test_number_of_coefficients():
    assert [coefficient_count(Network.star([2] * d, 2)) for d in (1, 5, 16)] == [4, 12, 34]
    assert coefficient_count(MIXED) == 1 + 2 + (2 + 4) + 2 * (2 + 4)
