from __future__ import annotations

import tracemalloc
from itertools import product
from math import exp, lgamma

import numpy as np
import pytest

from dpbayes_sklearn.categories import counts as noise_aware
from dpbayes_sklearn.categories.counts import counts_given
from dpbayes_sklearn.categories.posterior import hellinger, onto_simplex
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
from dpbayes_sklearn.papers.candidates import Candidates


def count_medians(noisy, noise, n, alpha):
    return counts_given(noisy, noise, n, alpha).medians()


def medians_by_enumeration(noisy, scale, n, alpha):
    """Sum over every count vector there is."""
    counts = Candidates(n, tuple(alpha)).counts
    weights = np.array(
        [
            exp(
                sum(lgamma(a + x) - lgamma(x + 1) for a, x in zip(alpha, row, strict=True))
                - np.abs(row[: len(noisy)] - noisy).sum() / scale
            )
            for row in counts
        ]
    )
    weights /= weights.sum()
    found = []
    for i in range(len(alpha)):
        below = np.cumsum(np.bincount(counts[:, i], weights=weights, minlength=n + 1))
        found.append(np.searchsorted(below, [0.5 - 1e-9, 0.5 + 1e-9]).mean())
    return found


@pytest.mark.parametrize("released", [3, 2])
@pytest.mark.parametrize("alpha", [(1.0, 1.0, 1.0), (0.05, 0.5, 4.0), (50.0, 1.0, 2.0)])
@pytest.mark.parametrize("scale", [0.3, 2.0, 20.0])
def test_medians_agree_with_enumeration(released, alpha, scale) -> None:
    rng = np.random.default_rng(0)
    for _ in range(4):
        noisy = rng.integers(-4, 14, released)
        found = count_medians(noisy, LaplaceMarginal(scale), 9, np.array(alpha))
        assert found.tolist() == medians_by_enumeration(noisy, scale, 9, alpha)


def test_far_away_counts_and_a_prior_that_pulls() -> None:
    noisy = np.array([-400, 500, 30])
    found = count_medians(noisy, LaplaceMarginal(2.0), 40, np.ones(3))
    assert found.tolist() == medians_by_enumeration(noisy, 2.0, 40, np.ones(3))
    strong = np.array([2000.0, 2000.0])
    assert count_medians(np.array([300, 0]), LaplaceMarginal(5.0), 300, strong)[0] < 220


@pytest.mark.parametrize("alpha", [(1.0, 1.0, 1.0), (0.01, 0.3, 5.0)])
def test_wide_noise_may_be_read_on_a_coarse_lattice(alpha, monkeypatch) -> None:
    rng = np.random.default_rng(3)
    scale, n = 200.0, 3000
    noisy = [rng.multinomial(n, [0.02, 0.28, 0.7]) + rng.laplace(0, scale, 3) for _ in range(8)]
    coarse = [
        count_medians(y.astype(int), LaplaceMarginal(scale), n, np.array(alpha)) for y in noisy
    ]
    monkeypatch.setattr(noise_aware, "_POINTS_IN_A_SCALE", np.inf)
    fine = [count_medians(y.astype(int), LaplaceMarginal(scale), n, np.array(alpha)) for y in noisy]
    assert np.abs(np.subtract(coarse, fine)).max() <= scale / 16


def test_memory_stays_small_where_noise_is_wide() -> None:
    tracemalloc.start()
    count_medians(np.full(200, 5000), LaplaceMarginal(2e6), 10**6, np.ones(200))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_a_tie_is_met_in_the_middle() -> None:
    assert count_medians(np.array([2, 3]), LaplaceMarginal(2.0), 5, np.ones(2)).sum() == 5
    assert count_medians(np.array([0]), LaplaceMarginal(1e12), 1, np.ones(2)).tolist() == [0.5, 0.5]


def test_cost_does_not_grow_with_n() -> None:
    n = 10**9
    noisy = np.array([n // 2, n // 4, n // 4 + 3])
    assert np.abs(count_medians(noisy, LaplaceMarginal(2.0), n, np.ones(3)) - noisy).max() <= 3


@pytest.mark.parametrize(("epsilon", "best"), [(1.0, 0.362), (0.3, 0.556)])
def test_default_of_the_dirichlet_is_close_to_the_optimum(epsilon: float, best: float) -> None:
    """k=3, n=8: exact E[H] of zero-sum noise over all data sets, each counted once.

    The linear program over all mechanisms that release a candidate gives 0.353 and 0.558; the
    smallest that any reading of these noisy counts could reach at epsilon = 1 is 0.356.
    """
    n, reach = 8, int(16 / epsilon) + 8
    exact = Candidates(n, (1.0,) * 3).counts
    noise = np.array([(a, b, -a - b) for a, b in product(range(-2 * reach, 2 * reach), repeat=2)])
    normaliser = np.exp(-epsilon * np.abs(noise).sum(axis=1) / 2).sum()
    outcomes = np.array([3, 3, 2]) + noise[np.abs(noise).sum(axis=1) <= 2 * reach]
    # all data sets together are symmetric, so sorted outcomes stand for all orders
    outcomes, times = np.unique(np.sort(outcomes, axis=1), axis=0, return_counts=True)
    distance = np.abs(exact[:, None] - outcomes).sum(axis=2)
    law = np.exp(-epsilon * distance / 2) / normaliser * times / len(exact)
    assert law.sum() == pytest.approx(1, abs=1e-4)
    medians = np.array(
        [count_medians(y, LaplaceMarginal(2 / epsilon), n, np.ones(3)) for y in outcomes]
    )
    projected = np.array([onto_simplex(y, n) for y in outcomes])
    error, plug_in = (
        float((law * hellinger(exact[:, None] + 1.0, read[None] + 1.0)).sum())
        for read in (medians, projected)
    )
    assert error < best
    assert error < plug_in
