"""Posteriors that integrate over a secret number of records, against sums over all data sets."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from dpbayes_sklearn.categories import counts as noise_aware
from dpbayes_sklearn.categories.counts import counts_given
from dpbayes_sklearn.counts.adaptive import CountBelief
from dpbayes_sklearn.counts.noise_aware import infer_star
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal


def count_medians(noisy, noise, n, alpha):
    return counts_given(noisy, noise, n, alpha).medians()


def free_count_medians(noisy, noise, alpha):
    return counts_given(noisy, noise, None, alpha).medians()


def log_cell(alpha, k):
    return gammaln(alpha + k) - gammaln(alpha) - gammaln(k + 1.0)


def brute_star(classes, table, n, scales, alphas, most):
    """Return the posterior means of class and table probabilities, summing over all counts."""
    class_scale, table_scale, size_scale = scales
    class_alpha, table_alpha = (np.asarray(alpha) for alpha in alphas)
    total, class_mean, table_mean = 0.0, np.zeros(2), np.zeros((2, 2))
    for cells in product(range(most + 1), repeat=4):
        k = np.array(cells, float).reshape(2, 2)
        rows, count = k.sum(axis=1), k.sum()
        log = -abs(n - count) / size_scale
        log -= np.abs(classes - rows).sum() / class_scale + np.abs(table - k).sum() / table_scale
        log += log_cell(class_alpha, rows).sum() - log_cell(class_alpha.sum(), count)
        log += log_cell(table_alpha, k).sum() - log_cell(table_alpha.sum(), rows).sum()
        weight = np.exp(log)
        total += weight
        class_mean += weight * (class_alpha + rows) / (class_alpha.sum() + count)
        table_mean += weight * (table_alpha + k) / (table_alpha.sum() + rows)[:, None]
    return class_mean / total, table_mean / total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "table", "n", "alphas"),
    [
        ((3, 2), ((2, 1), (-1, 3)), 6, ((1.0, 1.0), (1.0, 1.0))),
        ((5, -1), ((4, 2), (0, 1)), 2, ((0.5, 2.0), (3.0, 0.7))),
    ],
)
def test_a_star_is_exact(classes, table, n, alphas):
    scales = 0.7, 0.8, 1.1
    found = infer_star(
        classes,
        [table],
        n,
        class_noise=LaplaceMarginal(scales[0]),
        table_noises=[LaplaceMarginal(scales[1])],
        class_alpha=alphas[0],
        table_alphas=[alphas[1]],
        size_noise=LaplaceMarginal(scales[2]),
    )
    expected = brute_star(np.array(classes), np.array(table), n, scales, alphas, most=13)
    assert np.allclose(found.table_means[0], expected[1], atol=1e-4)
    # the mean of a ratio: the library takes that of expected counts
    assert np.allclose(found.class_mean, expected[0], atol=0.02)
    drawn_classes, drawn_tables = found.sample(np.random.default_rng(0), 20_000)
    assert np.allclose(drawn_classes.mean(axis=0), expected[0], atol=0.01)
    assert np.allclose(drawn_tables[0].mean(axis=0), expected[1], atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noisy", "scale", "alpha"),
    [((-1, 4, 5), 2.0, (1, 1, 1)), ((3, 10), 3.0, (0.5, 4)), ((7, -3, 1), 1.5, (0.1, 0.1, 3))],
)
def test_medians_of_counts_of_any_sum_are_exact(noisy, scale, alpha):
    alpha, most = np.array(alpha, float), 36
    masses = np.zeros((len(noisy), most + 1))
    for counts in product(range(most + 1), repeat=len(noisy)):
        x = np.array(counts, float)
        log = log_cell(alpha, x).sum() - log_cell(alpha.sum(), x.sum())
        weight = np.exp(log - np.abs(np.array(noisy) - x).sum() / scale)
        masses[np.arange(len(noisy)), counts] += weight
    medians = (np.cumsum(masses, axis=1) < masses.sum(axis=1, keepdims=True) / 2).sum(axis=1)
    found = free_count_medians(np.array(noisy), LaplaceMarginal(scale), alpha)
    assert np.abs(found - medians).max() <= 0.5


def test_a_strong_prior_and_many_categories():
    strong = free_count_medians(np.array([500, 300]), LaplaceMarginal(2.0), np.full(2, 1e12))
    assert np.abs(strong - [500, 300]).max() < 5
    many = free_count_medians(np.arange(2000) + 50, LaplaceMarginal(2.0), np.ones(2000))
    assert np.abs(many - np.arange(2000) - 50).max() < 3


def test_adaptive_class_counts_weigh_the_released_number():
    seen = np.array([70.0, 50.0])
    exact = CountBelief.start(seen, 100.0, 25.0)
    known = CountBelief.start(seen, 100.0, 25.0, 1e-6)
    vague = CountBelief.start(seen, 100.0, 25.0, 1e6)
    between = CountBelief.start(seen, 100.0, 25.0, 50.0)
    assert np.allclose(exact.mean, known.mean, atol=0.1)
    assert exact.mean.sum() == pytest.approx(100)
    assert vague.mean.sum() == pytest.approx(119, abs=2)
    assert between.mean.sum() == pytest.approx(110, abs=2)
    assert (vague.deviation > exact.deviation).all()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [3e4, 1e6, 1e12])
def test_memory_does_not_grow_with_the_noise(scale):
    tracemalloc.start()
    found = free_count_medians(np.array([-9, -9]), LaplaceMarginal(scale), np.ones(2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400e6
    assert (found >= 0).all()
    assert (found <= scale).all()


def test_a_coarser_lattice_finds_the_same_up_to_a_part_of_the_scale(monkeypatch):
    noisy, noise, alpha = np.array([-40, 300, 900]), LaplaceMarginal(400.0), np.ones(3)
    fine = free_count_medians(noisy, noise, alpha)
    monkeypatch.setattr(noise_aware, "_MOST_POINTS", 2**11)
    coarse = free_count_medians(noisy, noise, alpha)
    np.testing.assert_allclose(coarse, fine, atol=400.0 / 8)


def test_spectra_of_some_rows_at_a_time_change_nothing(monkeypatch):
    noisy, noise, alpha = np.arange(30) - 5, LaplaceMarginal(3.0), np.full(30, 0.7)
    whole = free_count_medians(noisy, noise, alpha), count_medians(noisy, noise, 300, alpha)
    monkeypatch.setattr(noise_aware, "_SPECTRUM", 1)
    parts = free_count_medians(noisy, noise, alpha), count_medians(noisy, noise, 300, alpha)
    np.testing.assert_array_equal(parts, whole)


def test_a_prior_that_outweighs_the_noise_of_very_many_records():
    found = count_medians(np.array([0, 10**9]), LaplaceMarginal(2.0), 10**9, np.full(2, 1e6))
    assert 1e5 < found[0] < 1e7
    assert abs(found.sum() - 10**9) < 1e6
