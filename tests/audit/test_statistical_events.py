"""Clopper-Pearson bounds and learned events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpbayes_sklearn.audit.statistical import Sides, epsilon_below, learn_event

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("hits", "others"), [(1144, 164), (30, 2), (500, 500), (7, 0)])
def test_bounds_are_where_the_binomial_law_says(hits, others):
    runs, confidence = 3000, 0.99
    error = (1 - confidence) / 2
    bound = float(epsilon_below(hits, others, runs, confidence))
    shares = np.linspace(0, 1, 200_001)[1:]
    low = shares[binom.sf(hits - 1, runs, shares) >= error][0]
    high = shares[binom.cdf(others, runs, shares) <= error][0]
    assert bound == pytest.approx(math.log(low / high), abs=0.02)


def test_extreme_counts():
    assert epsilon_below(0, 0, 100, 0.99) == -math.inf
    assert epsilon_below(100, 100, 100, 0.99) < 0
    assert 0 < epsilon_below(100, 0, 100, 0.99) < math.log(100)
    assert epsilon_below(50, 0, 100, 0.99, delta=0.9) == -math.inf


def test_the_confidence_is_kept():
    """The bound exceeds the truth in at most 1 - confidence of all repetitions."""
    p, q, runs, confidence = 0.3, 0.1, 500, 0.9
    hits, others = RNG.binomial(runs, p, 4000), RNG.binomial(runs, q, 4000)
    too_high = (epsilon_below(hits, others, runs, confidence) > math.log(p / q)).mean()
    assert 0 < too_high <= 1 - confidence


def both(make, shift, runs=20_000):
    return Sides(make(runs), make(runs) + shift)


@pytest.mark.parametrize(
    "sides",
    [
        both(lambda n: RNG.laplace(size=(n, 1)), 1.0),
        both(lambda n: -RNG.exponential(size=(n, 1)), -1.0),  # one end tells everything
        both(lambda n: RNG.normal(size=(n, 5)), np.array([0, 0, 0.8, 0, 0])),
        both(lambda n: RNG.laplace(size=(n, 4)), np.full(4, 0.3)),  # only all together tell
        both(lambda n: np.where(RNG.random((n, 1)) < 0.5, np.nan, 0.0), 1.0),
        Sides(RNG.normal(size=(20_000, 1)), 2 * RNG.normal(size=(20_000, 1))),  # same mean
    ],
)
def test_differences_are_found(sides):
    choose, measure = sides.halves()
    event = learn_event(choose, 0.999)
    assert epsilon_below(*event.hits(measure), len(measure.first), 0.999) > 0.2


def test_rare_values_of_their_own_are_found():
    first, second = np.random.default_rng(0).normal(size=(2, 20_000, 1))
    first[::10] = 7.0
    choose, measure = Sides(first, second).halves()
    hits, others = learn_event(choose, 0.999).hits(measure)
    assert (hits, others) == (1000, 0)


def test_equal_sides_show_nothing():
    choose, measure = both(lambda n: RNG.laplace(size=(n, 6)), 0.0).halves()
    event = learn_event(choose, 0.999)
    assert epsilon_below(*event.hits(measure), len(measure.first), 0.999) <= 0


def test_halves_share_no_run():
    runs = np.arange(10.0)[:, None]
    choose, measure = Sides(runs, runs).halves()
    assert not set(choose.first.ravel()) & set(measure.first.ravel())
