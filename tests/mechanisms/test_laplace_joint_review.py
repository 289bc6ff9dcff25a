"""Joint noise on features of very many values, and what its reading knows of class counts."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial
from unittest import mock

import numpy as np
import pytest

from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware import NoiseAwarePosterior
from dpbayes_sklearn.counts.posterior import siblings
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import ClassRows, DiscreteLaplace, Noise
from dpbayes_sklearn.privacy.budget import RECORD, Budget
from tests.releasing import carried_out, plan_for

MANY = 5000  # values: 4**MANY is far beyond the largest float


@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_the_variance_of_a_cell_is_the_average_over_numbers_of_positive_entries(size):
    law = ClassRows.of((size, 2), 2, 2, Fraction(1))
    n = size - 1  # free entries, i of them positive

    def integral(a, b):
        """Of x^a (1 - x)^b: the positive entries of a row add to a share x of its radius."""
        return Fraction(factorial(a) * factorial(b), factorial(a + b + 1))

    ways = {i: comb(n, i) ** 2 for i in range(n + 1)}
    squares = sum(
        w * (Fraction(2 * i, (i + 1) * (i + 2)) / n) * integral(i + 2, n - i)
        + w * (Fraction(2 * j, (j + 1) * (j + 2)) / n) * integral(i, j + 2)
        for i, w in ways.items()
        for j in [n - i]
    )
    mean_square = squares / sum(w * integral(i, n - i) for i, w in ways.items())
    assert law.variance(0) == pytest.approx(law.squared_radius * float(mean_square))


def test_the_choice_of_noise_does_not_overflow():
    wide = CountTables(Network.star([MANY] * 2, 2), (), 0)
    assert wide.law("auto", RECORD, Fraction(1)).size == 4 * MANY + 2
    network = Network.star([MANY], 2)
    exact = CountTables(network, tuple(np.zeros(s, np.int64) for s in network.shapes), 0)
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    plan_for(Laplace(noise="auto"), exact, prior, Budget(Fraction(1)))


def test_the_reading_of_many_values_does_not_overflow():
    """It comes after the charge: what was paid for must be readable."""
    network, law = Network.star([MANY], 2), ClassRows.of((MANY,), 2, 2, Fraction(1))
    noisy = ReleasedCounts(network, tuple(np.zeros(s) for s in network.shapes), 0, (law,))
    assert 0 < noisy.noise(0).variance < np.inf
    assert np.isfinite(noisy.noise(0).log_weight(np.array([0.0, 10.0]))).all()


def surprises(fresh=None, n_features=24, n=400, releases=24):
    """How far true class counts are from what is inferred, in its own standard deviations."""
    network, rng, found = Network.star([2] * n_features, 2), np.random.default_rng(0), []
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes), "noise_aware")
    for seed in range(releases):
        codes, classes = rng.integers(0, 2, (n, n_features), np.uint8), rng.integers(0, 2, n)
        exact = CountTables.count(network, [(codes, classes)])
        budget, noise = Budget(Fraction(1)), Noise.of(seed)
        posterior = carried_out(Laplace(noise="joint"), exact, prior, budget, noise).posterior
        ((nodes, totals),) = siblings(posterior.released)
        if fresh is None:
            star = posterior._infer(nodes, totals)
        else:
            with mock.patch.object(NoiseAwarePosterior, "_fresh", fresh):
                star = posterior._infer(nodes, totals)
        values, weights = star.class_count_laws[1]
        spread = np.sqrt(weights @ values**2 - (weights @ values) ** 2)
        found.append((classes.sum() - weights @ values) / spread)
    return np.sqrt(np.mean(np.square(found)))


def test_a_noise_that_all_tables_share_is_told_once():
    """The rows of every table have the same sum: 24 tables say no more of it than one."""
    assert 0.6 < surprises() < 1.4
    assert surprises(fresh=1.0) > 2  # taken for 25 independent noises


def test_independent_noises_of_other_batches_are_not_repetitions():
    sizes, n_features = (2,) * 9, 9
    network, law = Network.star(sizes, 2), ClassRows.of(sizes, 2, 2, Fraction(1))
    empty, alphas = tuple(np.zeros(s) for s in network.shapes), (np.ones(2),) * 10

    def alone(scale):
        return DiscreteLaplace.of(Fraction(scale), law.sizes)

    def fresh(*laws):
        released = ReleasedCounts(network, empty, 0, laws)
        return NoiseAwarePosterior(network, alphas, released)._fresh

    assert fresh(alone(3)) == 1.0
    assert fresh(law) == pytest.approx(1 / (n_features + 1), rel=1e-6)
    assert fresh(law) < fresh(law, alone(20)) < fresh(law, alone(10**4)) < 1
    assert fresh(law, alone(10**4)) > 0.99
