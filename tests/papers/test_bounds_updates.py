from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks.audit.tools.universes import CountUniverse
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.papers.bounds import noise_scale
from dpbayes_sklearn.papers.theory import (
    beta_divergence,
    cell_count,
    count_error_quantile,
    divergence_deviation,
    divergence_range,
    expected_divergence,
    update_bound,
)
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD
from tests.releasing import carried_out

RELEASES = 2000
N = 60
NETWORKS = {
    "boolean star": Network.star([2] * 3, 2),
    "mixed star": Network.star([3, 5], 3),
    "chain with two parents": Network((2, 3, 2, 2), ((), (0,), (0, 1), (2,))),
}


def some_counts(network, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, N) for k in network.sizes], axis=1).astype(np.uint8)
    return CountTables.count(network, [(codes[:, :-1], codes[:, -1])])


def released_tables(counts, epsilon, releases=RELEASES, seed=1, unit=RECORD, budget_split=1.0):
    """Tables of many releases by the mechanism itself, along a first axis."""
    tables = (np.broadcast_to(table, (releases, *table.shape)) for table in counts.tables)
    prior = CountUniverse(counts.network).prior(1.0)  # hands back what was released
    mechanism = Laplace(budget_split=budget_split, noise="independent")
    many, budget = replace(counts, tables=tuple(tables)), Budget(epsilon, unit=unit)
    return carried_out(mechanism, many, prior, budget, Noise.of(seed)).posterior.tables


def largest_errors(counts, releases):
    pairs = zip(releases, counts.tables, strict=True)
    return np.max([np.abs(r - t).reshape(len(r), -1).max(axis=1) for r, t in pairs], axis=0)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_update_bound_holds_and_half_of_it_does_not(name, unit):
    network, epsilon, delta = NETWORKS[name], 1, 0.1
    counts = some_counts(network)
    errors = largest_errors(counts, released_tables(counts, epsilon, unit=unit))
    bound = update_bound(network, epsilon, delta, unit)
    failures = int((errors > bound).sum())
    assert binomtest(failures, RELEASES, delta, alternative="greater").pvalue > 1e-3
    assert binomtest(failures, RELEASES, delta / 2, alternative="less").pvalue > 1e-3  # tight
    assert (errors > bound / 2).mean() > 3 * delta


@pytest.mark.parametrize("share", [0.1, 4.0])
def test_update_bound_with_a_share_of_the_class_table(share):
    network, delta = NETWORKS["mixed star"], 0.1
    counts = some_counts(network)
    errors = largest_errors(counts, released_tables(counts, 1, budget_split=share))
    bound = update_bound(network, 1, delta, budget_split=share)
    assert binomtest(int((errors > bound).sum()), RELEASES, delta, "greater").pvalue > 1e-3
    assert (errors > bound / 2).mean() > delta
    if share < 1:  # the class table has more noise than with equal shares
        assert (errors > update_bound(network, 1, delta)).mean() > 2 * delta


def test_exact_quantile_of_the_largest_error():
    network, epsilon = NETWORKS["mixed star"], 1
    errors = largest_errors(some_counts(network), released_tables(some_counts(network), epsilon))
    scale, cells = noise_scale(network, epsilon), cell_count(network)
    quantile = count_error_quantile(scale, 0.9, cells)
    beyond = 2 * np.exp(-(quantile + 1) / scale) / (1 + np.exp(-1 / scale))
    probability = (1 - beyond) ** cells
    assert 0.9 <= probability < 0.92
    within = int((errors <= quantile).sum())
    assert binomtest(within, RELEASES, probability).pvalue > 1e-3
    too_low = count_error_quantile(0.8 * scale, 0.9, cells)
    too_high = count_error_quantile(1.25 * scale, 0.9, cells)
    assert binomtest(int((errors <= too_low).sum()), RELEASES, 0.9).pvalue < 1e-6
    assert binomtest(int((errors <= too_high).sum()), RELEASES, 0.9).pvalue < 1e-6


def test_exact_quantile_is_the_smallest():
    for scale, probability, cells in product([0.3, 2.0, 50.0], [0.1, 0.5, 0.99], [1, 7, 1000]):
        q = np.exp(-1 / scale)

        def below(z, q=q, cells=cells):
            return (1 - 2 * q ** (z + 1) / (1 + q)) ** cells if z >= 0 else 0.0

        z = count_error_quantile(scale, probability, cells)
        assert below(z) >= probability - 1e-12
        assert below(z - 1) < probability


def test_divergence_stays_below_theorem_1():
    """The bound is loose (McDiarmid knows only ranges): what is used of it stands in the docs."""
    network, epsilon, delta = NETWORKS["boolean star"], 2, 0.05
    counts = some_counts(network)
    releases = released_tables(counts, epsilon)
    scale = noise_scale(network, epsilon)
    total, expected, ranges = np.zeros(RELEASES), 0.0, []
    for exact, noisy in zip(counts.tables, releases, strict=True):
        rows = exact.reshape(-1, 2), np.clip(noisy, 0, N).reshape(RELEASES, -1, 2)
        for j, (up, down) in enumerate(rows[0]):
            a, b = 2 + up, 2 + down
            total += [beta_divergence(a, b, 2 + z, 2 + w) for z, w in rows[1][:, j]]
            expected += expected_divergence(2, 2, int(up), int(down), N, scale)
            ranges.append(divergence_range(2, 2, N))
    error = total.std() / np.sqrt(RELEASES)
    assert abs(total.mean() - expected) < 4 * error
    assert abs(total.mean() - 1.1 * expected) > 4 * error  # the test can tell 10 % apart
    deviation = divergence_deviation(ranges, delta)
    used = (np.quantile(total, 1 - delta) - expected) / deviation
    print(f"Theorem 1: {used:.4f} of the deviation is used")
    assert (total >= expected + deviation).mean() <= delta
    assert 0 < used < 0.05


def test_range_of_a_divergence():
    used = []
    for n, alpha, beta in product([1, 5, 100, 1000], [1.0, 2.0, 30.0], [1.0, 2.0, 30.0]):
        for up in {0, n // 3, n}:
            for down in {0, n - up}:
                corners = product((0, n), (0, n))
                a, b = alpha + up, beta + down
                largest = max(beta_divergence(a, b, alpha + z, beta + w) for z, w in corners)
                used.append(largest / divergence_range(alpha, beta, n))
    assert 0.2 < max(used) < 1


def test_divergence_is_largest_at_a_corner():
    n, a, b = 12, 2.0 + 5, 3.0 + 4
    inner = [beta_divergence(a, b, 2 + z, 3 + w) for z in range(n + 1) for w in range(n + 1)]
    corners = [beta_divergence(a, b, 2 + z, 3 + w) for z in (0, n) for w in (0, n)]
    assert max(inner) == max(corners)
    assert min(inner) == pytest.approx(0, abs=1e-12)
