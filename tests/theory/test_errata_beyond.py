"""More notes on the papers: what was found when their statements were put into code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import comb, gammaln, psi
from scipy.stats import gamma

from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid
from dpbayes_sklearn.mechanisms import MAP
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.theory import (
    beta_divergence,
    distinguishable_distance,
    expected_divergence,
    exponential_concentration,
    lifted_lipschitz,
    map_failure_bound,
    normal_concentration,
    stochastic_divergence_bound,
)
from dpbayes_sklearn.theory.bounds import integer_allowance


def test_11_which_score_concentrates_on_the_map():
    """The paper's posterior does and so does the mechanism; the log-likelihood gives the MLE."""
    n, heads, budget = 10, 8, Budget(1000)
    prior = DirichletPrior(Network((2,), ((),)), (np.array([20.0, 20.0]),))
    grid, log_law = MAP(omega=0.05, n_points=401).density_law(prior, n, budget)
    theta = grid.left
    log_likelihood = heads * grid.log_left + (n - heads) * grid.log_right
    log_prior = 19 * (grid.log_left + grid.log_right)
    mode = (19 + heads) / (38 + n)
    posterior = np.exp(log_prior + log_likelihood - (log_prior + log_likelihood).max())
    papers = log_prior + 1000 * posterior
    assert theta[papers.argmax()] == pytest.approx(mode, abs=0.01)
    by_likelihood = log_prior + 1000 * log_likelihood
    assert theta[by_likelihood.argmax()] == pytest.approx(heads / n, abs=0.01)
    ours = log_law(0, np.array([heads * 1.0]), np.array([n - heads * 1.0]))[0]
    assert theta[ours.argmax()] == pytest.approx(mode, abs=0.01)


def test_12_the_divergence_of_theorem_1_is_not_one():
    """The proof's f has a sign reversed and the total's terms left out: it is negative."""

    def proof_f(a, b, c, d):
        return (
            gammaln(a) - gammaln(c) + gammaln(b) - gammaln(d) + (a - c) * psi(a) + (b - d) * psi(b)
        )

    assert proof_f(5, 5, 9, 9) < 0
    assert beta_divergence(5, 5, 9, 9) > 0


def test_12_the_refined_expectation_of_theorem_1_vanishes_too_fast():
    """The expected divergence falls like b^2/n, not like n exp(-n/b)."""
    scale, n = 10.0, 1000
    expected = expected_divergence(2, 2, n // 2, n // 2, n, scale)
    claimed = math.log((2 + n + 1) ** 2) * n / 2 * math.exp(-n / scale)
    assert claimed < 1e-30
    assert expected > 0.01
    halved = expected_divergence(2, 2, n, n, 2 * n, scale)
    assert expected / halved == pytest.approx(2, rel=0.2)


def test_13_lemma_4_has_the_wrong_exponent():
    """Scores 1, just above 1/2 and 0 with sensitivity 1: failures beat exp(-epsilon t) / mass."""
    epsilon, t, sensitivity = 8.0, 0.5, 1.0
    base = np.array([1e-9, 0.5, 0.5])
    score = np.array([1.0, 0.5 + 1e-9, 0.0])
    weights = base * np.exp(epsilon / (2 * sensitivity) * score)
    failure = weights[score <= 1 - 2 * t].sum() / weights.sum()
    good = base[score > 1 - t].sum()
    assert failure > 2 * math.exp(-epsilon * t) / good
    assert failure <= map_failure_bound(epsilon / (2 * sensitivity), t, good)


def test_14_robustness_under_assumption_2():
    """n exponential records meet Assumption 2 with c = lambda, and are far less robust."""
    n, rate, moved = 1000, 1.0, 0.1
    c = exponential_concentration(rate)
    x, y = np.zeros(n), np.append(np.zeros(n - 1), moved)
    for theta in (0.1, 1.0, 8.0):  # Theta_L is theta <= L, whose prior mass is 1 - exp(-c L)
        ratio = (n * math.log(theta) - theta * x.sum()) - (n * math.log(theta) - theta * y.sum())
        assert abs(ratio) == pytest.approx(theta * np.abs(x - y).sum())
    divergence = (n + 1) * (moved / rate - math.log1p(moved / rate))
    assert divergence > stochastic_divergence_bound(c, moved)  # Theorem 1 (ii)
    first, second = gamma(n + 1, scale=1 / rate), gamma(n + 1, scale=1 / (rate + moved))
    crossing = (n + 1) * math.log1p(moved / rate) / moved
    variation = abs(first.cdf(crossing) - second.cdf(crossing))
    assert variation > math.sqrt(stochastic_divergence_bound(c, moved) / 2)  # Theorem 2 (ii)


def test_15_lifting_to_records_loses_a_factor():
    """In the summed metric the constant of one record serves n of them; n times it is loose."""
    theta, x, y = 1.3, np.array([0.5, 2.0, 1.0]), np.array([0.1, 3.0, 1.0])
    ratio = abs(theta * (x - y).sum())
    assert ratio <= theta * np.abs(x - y).sum()
    assert lifted_lipschitz(theta, 3) * np.abs(x - y).sum() > 3 * ratio


def test_15_binomial_counts_are_steeper_than_coin_flips():
    """The number of arrangements adds ln n: no parameter has a constant below that.

    The lemma's condition, prior mass of at least 1 - exp(-c L) for all L >= 0, fails for every c.
    """
    n = 20
    counts = np.arange(n + 1)
    for log_odds in (-1.0, 0.0, 2.0):
        steps = np.diff(np.log(comb(n, counts)) + counts * log_odds)
        assert np.abs(steps).max() >= math.log(n) - 1e-9


def test_16_normal_data_need_a_prior_on_the_precision():
    """An exponential prior on the variance leaves a tail of order 1/L, not exp(-c L)."""
    rate = 1.0
    for c in (1.0, 0.1, 0.01):
        steep = 1e4 / c
        rough = -math.expm1(-rate / (2 * steep))  # variance below 1/(2L)
        assert rough > math.exp(-c * steep)
        assert math.exp(-rate * 2 * steep) <= math.exp(-normal_concentration(rate) * steep)


def test_17_far_data_sets_need_not_be_distinguishable():
    """Two records swapped: distance 2, the same counts, the same posterior, however many draws."""
    omega = 0.3
    x, y = [1, 0, 0, 0], [0, 0, 0, 1]
    distance = sum(a != b for a, b in zip(x, y, strict=True))
    constant = math.log((1 - omega) / omega)
    assert distance > distinguishable_distance(constant, n_draws=10**6, delta=0.05)
    grid = SplitGrid(omega, 65)
    laws = [grid.law(1 + sum(data), 1 + 4 - sum(data)) for data in (x, y)]
    assert (laws[0] == laws[1]).all()


def test_18_integer_noise_reaches_half_a_count_farther():
    """P(|Z| > z) exceeds exp(-z/b) just below an integer, and never by more than allowed."""
    scale = 5.0
    q = math.exp(-1 / scale)

    def tail(z):
        return 2 * q ** (math.floor(z) + 1) / (1 + q)

    reach = np.linspace(0, 40, 4001)
    tails = np.array([tail(z) for z in reach])
    assert (tails > np.exp(-reach / scale)).any()
    assert (tails <= np.exp(-(reach - integer_allowance(scale)) / scale) * (1 + 1e-12)).all()
    assert integer_allowance(scale) < 0.5
