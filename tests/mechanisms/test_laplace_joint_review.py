"""Joint noise on features of very many values, and what its reading knows of class counts."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dpbayes_sklearn.laws.class_rows import RowNoise, rows_vary_less
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.posteriors.noise_aware_network import NoiseAwarePosterior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.counts import CountTables, ReleasedCounts
from dpbayes_sklearn.statistics.network import Network

MANY = 5000  # values: 4**MANY is far beyond the largest float


@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_the_variance_of_a_cell_is_the_average_over_numbers_of_positive_entries(size):
    law = RowNoise.of((size, 2), 2, Fraction(1))
    ways = {i: comb(size, i) * comb(size - 2, i - 1) for i in range(1, size)}
    shares = sum(w * (Fraction(2, i + 1) + Fraction(2, size - i + 1)) for i, w in ways.items())
    half = law.squared_radius / 4 * (size - 1) / (size + 1)
    spread = half * float(shares / sum(ways.values()))
    wanted = spread / size + law.total_variance / size**2
    assert law.cell_variance(size) == pytest.approx(wanted)


def test_the_choice_of_noise_does_not_overflow():
    assert rows_vary_less((MANY,) * 2, 2, 6, Fraction(1)) in {True, False}
    network = Network.star([MANY], 2)
    exact = CountTables(network, tuple(np.zeros(s, np.int64) for s in network.shapes), 0)
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    Laplace(noise="auto").preflight(exact, prior, Budget(Fraction(1)))


def test_the_reading_of_many_values_does_not_overflow():
    """It comes after the charge: what was paid for must be readable."""
    network, law = Network.star([MANY], 2), RowNoise.of((MANY,), 2, Fraction(1))
    noisy = ReleasedCounts(network, tuple(np.zeros(s) for s in network.shapes), 0, ((law,),) * 2)
    assert 0 < noisy.laplace_scales(0)[0] < np.inf


def surprises(fresh=None, n_features=24, n=400, releases=40):
    """How far true class counts are from what is inferred, in its own standard deviations."""
    network, rng, found = Network.star([2] * n_features, 2), np.random.default_rng(0), []
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes), "noise_aware")
    for seed in range(releases):
        codes, classes = rng.integers(0, 2, (n, n_features), np.uint8), rng.integers(0, 2, n)
        exact = CountTables.count(network, [(codes, classes)])
        budget, source = Budget(Fraction(1)), random_source(seed)
        posterior = Laplace(noise="joint").release(exact, prior, budget, source).posterior
        if fresh is not None:
            posterior.__dict__["_fresh"] = fresh
        ((nodes, totals),) = posterior._groups
        values, weights = posterior._infer(nodes, totals).class_count_laws[1]
        spread = np.sqrt(weights @ values**2 - (weights @ values) ** 2)
        found.append((classes.sum() - weights @ values) / spread)
    return np.sqrt(np.mean(np.square(found)))


def test_a_noise_that_all_tables_share_is_told_once():
    """The rows of every table have the same sum: 24 tables say no more of it than one."""
    assert 0.6 < surprises() < 1.4
    assert surprises(fresh=1.0) > 2  # taken for 25 independent noises


def test_independent_noises_of_other_batches_are_not_repetitions():
    sizes, n_features = (2,) * 9, 9
    network, law = Network.star(sizes, 2), RowNoise.of(sizes, 2, Fraction(1))
    empty, alphas = tuple(np.zeros(s) for s in network.shapes), (np.ones(2),) * 10

    def fresh(*laws):
        released = ReleasedCounts(network, empty, 0, (laws,) * (n_features + 1))
        return NoiseAwarePosterior(network, alphas, released)._fresh

    assert fresh(Fraction(3)) == 1.0
    assert fresh(law) == pytest.approx(1 / (n_features + 1), rel=1e-6)
    assert fresh(law) < fresh(law, Fraction(20)) < fresh(law, Fraction(10**4)) < 1
    assert fresh(law, Fraction(10**4)) > 0.99
