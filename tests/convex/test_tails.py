"""What noisy histograms tell: places of columns, and what lies beyond a limit."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.convex.record_sums import BINS
from dpbayes_sklearn.convex.tails import EDGES, Counts, excess, mean_square, median, place


def sizes_of(values):
    return np.bincount(np.searchsorted(EDGES, values, side="right"), minlength=len(EDGES) + 1)


def noisy(values, sd, seed=0):
    counts = sizes_of(values).astype(float)
    return counts + sd * np.random.default_rng(seed).normal(size=len(counts))


@pytest.mark.parametrize("sd", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("limit", [1.5, 2.0, 3.0])
def test_what_lies_beyond_a_limit_is_known_within_its_stated_error(sd, limit):
    values = np.abs(np.random.default_rng(1).normal(size=20_000))
    true, missed = np.maximum(values - limit, 0).sum(), []
    for seed in range(20):
        found = excess(Counts.of(noisy(values, sd, seed), sd), limit, 100.0)
        missed.append((found.mean - true) / (found.sd + 0.3 * true + 1))
    assert np.abs(missed).max() < 4


def test_counts_without_noise_have_no_tail():
    counts = Counts.exact(sizes_of(np.full(500, 2.5)))
    assert excess(counts, 4.0, 1e5, 2) == (0.0, 0.0, 0.0)
    assert excess(counts, 2.0, 1e5, 2).sd == 0


def test_nothing_lies_beyond_the_farthest_size():
    counts = Counts.of(noisy(np.abs(np.random.default_rng(1).normal(size=5000)), 10.0), 10.0)
    assert excess(counts, 3.0, 3.0) == (0.0, 0.0, 0.0)
    assert excess(counts, 2.0, 3.0).mean <= excess(counts, 2.0, 6.0).mean


def test_squares_and_medians_of_counts():
    values = np.abs(np.random.default_rng(1).normal(size=50_000))
    counts = sizes_of(values).astype(float)
    assert mean_square(counts, 100.0) == pytest.approx(1, rel=0.1)
    assert mean_square(counts, 1.0) == pytest.approx(
        np.square(np.minimum(values, 1)).mean(), rel=0.1
    )
    assert median(counts, 0.0) == pytest.approx(0.674, rel=0.1)


@pytest.mark.parametrize("noise", [np.zeros, np.ones, lambda n: -np.ones(n) * 1e6])
@pytest.mark.parametrize("sd", [0.0, 1.0, 1e5])
def test_counts_that_are_noise_are_read_without_an_error(noise, sd):
    counts = Counts.of(noise(len(EDGES) + 1) * sd, sd)
    assert np.isfinite(counts.mean).all()
    assert (counts.mean >= 0).all()
    assert np.isfinite(excess(counts, 1.0, 50.0)).all()
    found = place(noise(BINS) * sd, 1, sd)
    assert np.isfinite([found.centre, found.spread]).all()
    assert found.spread > 0


@pytest.mark.parametrize("middle", [-0.9, 0.0, 0.5])
@pytest.mark.parametrize("spread", [0.02, 0.1, 0.4])
def test_a_column_is_placed(middle, spread):
    rng = np.random.default_rng(0)
    values = np.clip(rng.normal(middle, spread, 20_000), -1, 1)
    counts = np.histogram(values, np.linspace(-1, 1, BINS + 1))[0] + rng.normal(0, 20, BINS)
    found = place(counts, 20_000, 20.0)
    assert abs(found.centre - middle) < 0.05 + 0.3 * spread
    assert 0.6 < found.spread / max(values.std(), 0.02) < 2.5
