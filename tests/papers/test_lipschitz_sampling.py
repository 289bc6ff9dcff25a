from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid, release_loss, split_priors
from dpbayes_sklearn.papers.theory import (
    KAPPA,
    OMEGA,
    averaging_error,
    bernoulli_concentration,
    distinguishable_distance,
    divergence_bound,
    likelihood_range,
    regression_sampler_epsilon,
    sampler_epsilon,
    smoothness_constant,
    stochastic_distinguishable_distance,
    stochastic_divergence_bound,
    table_lipschitz,
    total_variation_bound,
    truncation_for,
)
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD

N = 40


def posteriors(omega, points=129):
    """Posteriors of a truncated coin after k of N heads, one row each, under a flat prior."""
    k = np.arange(N + 1)
    return SplitGrid(omega, points).law(1 + k, 1 + N - k)


def test_constants_solve_their_equations():
    assert math.exp(OMEGA) == pytest.approx(2 * OMEGA + 1)
    assert round(OMEGA, 5) == 1.25643
    assert round(KAPPA, 5) == 4.91081
    around = [2 * a / (1 - math.exp(-a)) ** 2 for a in (0.9 * OMEGA, 1.1 * OMEGA)]
    assert min(around) > KAPPA


@pytest.mark.parametrize("omega", [0.02, 0.2, 0.4])
def test_posteriors_of_neighbours(omega):
    laws, bound = posteriors(omega), divergence_bound(table_lipschitz(omega), 1.0)
    ratios = np.log(laws[1:] / laws[:-1])
    divergence = np.maximum((laws[1:] * ratios).sum(axis=1), -(laws[:-1] * ratios).sum(axis=1))
    print(f"omega={omega}: log ratio {np.abs(ratios).max() / bound:.2f}, "
          f"divergence {divergence.max() / bound:.2f} of 2L")  # fmt: skip
    assert np.abs(ratios).max() <= bound
    assert np.abs(ratios).max() > bound / 2
    assert divergence.max() <= bound


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_sampler_epsilon_is_never_below_the_exact_loss(unit):
    network = Network.star([2, 2, 4], 2)
    priors = split_priors(tuple(np.ones(k) for k in network.sizes))
    levels = {RECORD: 5, FEATURE: 2}[unit]
    for omega, tau in [(0.05, 0.01), (0.2, 1.0)]:
        loss = release_loss(network, SplitGrid(omega, 257), priors, tau, N, unit)
        bound = sampler_epsilon(omega, levels, tau)
        assert bound / 4 < loss <= bound


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_truncation_spends_epsilon(epsilon):
    loss = SplitGrid(truncation_for(epsilon), 257).loss_of_turning(1.0, 1.0, 1.0, N)
    assert epsilon / 2 < loss <= epsilon


def test_theorem_4_where_it_says_something():
    """Coins that are nearly fair: c may be as large as one likes from L0 on."""
    omega = 0.4975
    start, ratio = table_lipschitz(omega), (1 - omega) / 0.5
    smoothness = smoothness_constant(300.0, start, slack=0.99, likelihood_ratio=ratio)
    grid = SplitGrid(omega, 257)
    apart = np.abs(grid.law(2, 1) - grid.law(1, 2)).sum() / 2
    bound = total_variation_bound(smoothness, 1.0)
    print(f"Theorem 4: total variation {apart:.4f}, bound {bound:.4f}")
    assert 0 < apart <= bound < 0.5


def test_theorem_4_says_nothing_of_an_ordinary_coin():
    """C = 2 for one flip under a flat prior, and c is below 1."""
    least = min(
        smoothness_constant(bernoulli_concentration(1.0, start), start, slack, 2.0)
        for start in np.geomspace(1e-3, 20, 60)
        for slack in (0.01, 0.5, 0.9, 0.99)
    )
    print(f"Theorem 4: smallest M of a coin is {least:.1f}")
    assert least > 10
    assert total_variation_bound(least, 1.0) == 1.0


def test_frequencies_of_draws_err_as_theorem_3_assumes():
    """Two-set partitions suffice for delta = 0.05; 2,000 adversaries of 200 draws each."""
    delta, draws, rng = 0.05, 200, np.random.default_rng(0)
    share = 0.5
    error = 2 * np.abs(rng.binomial(draws, share, size=2000) / draws - share)
    tolerance = math.sqrt(3 / draws * math.log(1 / delta))
    assert (error > tolerance).mean() <= delta
    assert (error > tolerance / 2).mean() > delta


@pytest.mark.parametrize("draws", [10, 1000])
def test_data_sets_within_the_distance_are_not_told_apart(draws):
    delta, omega = 0.05, 0.45
    laws, constant = posteriors(omega), table_lipschitz(omega)
    near = distinguishable_distance(constant, draws, delta)
    tolerance = math.sqrt(3 / draws * math.log(1 / delta))
    for steps in range(1, min(N, int(near)) + 1):
        apart = np.abs(laws[steps:] - laws[:-steps]).sum(axis=1).max()
        assert apart <= tolerance


def test_distances_shrink_with_the_number_of_draws():
    for distance in (distinguishable_distance, stochastic_distinguishable_distance):
        assert distance(0.3, 0, 0.05) == math.inf
        assert distance(0.3, 100, 0.05) == pytest.approx(distance(0.3, 1, 0.05) / 100)
    assert distinguishable_distance(0.3, 7, 0.05) == pytest.approx(3 / (4 * 0.3 * 7) * math.log(20))
    assert stochastic_distinguishable_distance(0.3, 7, 0.05) == pytest.approx(
        3 * 0.3 / (2 * 4.91081 * 7) * math.log(20), rel=1e-5
    )
    assert stochastic_divergence_bound(2.0, 3.0) == pytest.approx(4.91081 * 1.5, rel=1e-5)


def test_averages_of_draws():
    rng = np.random.default_rng(3)
    answers = rng.binomial(50, 0.5, size=2000) / 50
    error = averaging_error(50, delta=0.1)
    assert (np.abs(answers - 0.5) > error).mean() <= 0.1
    assert (np.abs(answers - 0.5) > error / 2).mean() > 0.1


def test_range_of_a_regression_record():
    rng = np.random.default_rng(4)
    radius, bound, variance = 1.3, 0.7, 0.4
    x, w = rng.normal(size=(2, 3000, 3))
    x *= radius / np.linalg.norm(x, axis=1, keepdims=True)
    w *= bound / np.linalg.norm(w, axis=1, keepdims=True)
    log_likelihood = -((rng.choice([-1, 1], 3000) - (w * x).sum(axis=1)) ** 2) / (2 * variance)
    change = likelihood_range(radius, bound, variance)
    assert -change <= log_likelihood.min() < -0.95 * change
    assert regression_sampler_epsilon(radius, bound, variance, 0.5, 4) == pytest.approx(4 * change)
