"""More notes on the papers: what was found when their statements were put into code."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import comb, gammaln, psi
from scipy.stats import gamma

from benchmarks.accuracy.regression_prior import epsilon_of_a_draw, printed_epsilon
from dpbayes_sklearn.counts.dirichlet import DirichletPrior, mode_law
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid
from dpbayes_sklearn.mechanisms import MAP
from dpbayes_sklearn.papers.bounds import integer_allowance
from dpbayes_sklearn.papers.candidates import Candidates, ScoredCandidates
from dpbayes_sklearn.papers.theory import (
    beta_divergence,
    composed_lipschitz,
    distinguishable_distance,
    divergence_bound,
    expected_divergence,
    exponential_concentration,
    floored_laplace,
    fourier_cell_ratio,
    lifted_lipschitz,
    map_failure_bound,
    normal_concentration,
    rerun_epsilon,
    score_tail,
    sharp_divergence_bound,
    stealth_probability,
    stochastic_divergence_bound,
    table_lipschitz,
)
from dpbayes_sklearn.privacy import Budget


def test_11_which_score_concentrates_on_the_map():
    """The paper's posterior does and so does the mechanism; the log-likelihood gives the MLE."""
    n, heads, budget = 10, 8, Budget(1000)
    prior = DirichletPrior(Network((2,), ((),)), (np.array([20.0, 20.0]),))
    law = mode_law(MAP(omega=0.05, n_points=401), prior, n, budget)
    grid, log_law = law.grid, law.log_weights
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


def test_16_binomial_counts_are_steeper_than_coin_flips():
    """The number of arrangements adds ln n: no parameter has a constant below that.

    The lemma's condition, prior mass of at least 1 - exp(-c L) for all L >= 0, fails for every c.
    """
    n = 20
    counts = np.arange(n + 1)
    for log_odds in (-1.0, 0.0, 2.0):
        steps = np.diff(np.log(comb(n, counts)) + counts * log_odds)
        assert np.abs(steps).max() >= math.log(n) - 1e-9


def test_17_normal_data_need_a_prior_on_the_precision():
    """An exponential prior on the variance leaves a tail of order 1/L, not exp(-c L)."""
    rate = 1.0
    for c in (1.0, 0.1, 0.01):
        steep = 1e4 / c
        rough = -math.expm1(-rate / (2 * steep))  # variance below 1/(2L)
        assert rough > math.exp(-c * steep)
        assert math.exp(-rate * 2 * steep) <= math.exp(-normal_concentration(rate) * steep)


def test_18_far_data_sets_need_not_be_distinguishable():
    """Two records swapped: distance 2, the same counts, the same posterior, however many draws."""
    omega = 0.3
    x, y = [1, 0, 0, 0], [0, 0, 0, 1]
    distance = sum(a != b for a, b in zip(x, y, strict=True))
    constant = math.log((1 - omega) / omega)
    assert distance > distinguishable_distance(constant, n_draws=10**6, delta=0.05)
    grid = SplitGrid(omega, 65)
    laws = [grid.law(1 + sum(data), 1 + 4 - sum(data)) for data in (x, y)]
    assert (laws[0] == laws[1]).all()


def test_19_integer_noise_reaches_half_a_count_farther():
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


def lowest_cells(d, rng, draws=4000):
    """Lowest noise in the whole table of naive Bayes, and in its tables of two nodes, per scale."""
    zero, label = rng.laplace(size=(2, draws, 1))
    own, joint = rng.laplace(size=(2, draws, d))
    sides = [(zero + y * label, own + y * joint) for y in (1, -1)]
    whole = np.min([(base - np.abs(side).sum(1, keepdims=True))[:, 0] for base, side in sides], 0)
    tables = np.min([(base - np.abs(side)).min(axis=1) for base, side in sides], axis=0)
    return whole, tables


def test_20_a_small_increment_leaves_negative_cells():
    """16 features, t = 0.2: 1 - exp(-t) is 0.18, but the whole table is positive in 0.2 % of runs.

    The tables of two nodes, which the algorithm puts out, need far less than the increment.
    """
    d = 16
    coefficients = 2 * d + 2
    whole, tables = lowest_cells(d, np.random.default_rng(0))
    for t in (0.2, 0.4, 0.6, 1.0):
        increment = 2 * t * coefficients  # 4 t |N|² / epsilon, in noise scales of 2 |N| / epsilon
        positive = (whole + increment >= 0).mean()
        assert positive >= stealth_probability(coefficients, t)
        if t == 0.2:
            assert positive < 0.01 < 0.18 < -math.expm1(-t)
            assert (tables + increment >= 0).mean() > 0.99
    assert stealth_probability(coefficients, 0.6) > -math.expm1(-0.6)  # from there on it holds


def test_20_running_again_is_not_free():
    """The first release without a negative count loses more than epsilon, and at most twice it."""
    epsilon = 0.5
    counts = np.arange(-200, 201)

    def kept(exact):  # two noisy counts with n = 1 public, drawn again until both are positive
        law = np.exp(-epsilon / 2 * np.abs(counts - exact))
        law /= law.sum()
        return np.where(counts >= 0, law, 0) / law[counts >= 0].sum()

    alive = counts >= 0
    loss = np.abs(np.log(kept(0)[alive] / kept(1)[alive])).max()
    assert epsilon / 2 < loss <= rerun_epsilon(epsilon / 2) + 1e-9
    assert rerun_epsilon(epsilon, runs=3) == 3 * epsilon


def test_21_noise_of_coefficients_and_of_counts():
    """The remark's scales differ by 2^(|I|/2), which the rebuilt table brings back."""
    d, epsilon, rng = 8, 1.0, np.random.default_rng(1)
    nodes, coefficients = d + 1, 2 * d + 2
    coefficient_scale = 2 * coefficients / epsilon / 2 ** (nodes / 2)
    assert coefficient_scale < 2 * nodes / epsilon / 4  # "compares favourably"
    noise = rng.laplace(scale=coefficient_scale, size=(20_000, 4))  # of one table of two nodes
    cells = noise @ np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])
    cells *= 2 ** (nodes / 2) / 4  # the projection of a normalised basis vector
    by_counts = rng.laplace(scale=2 * nodes / epsilon, size=20_000)
    ratio = cells[:, 0].std() / by_counts.std()
    assert ratio == pytest.approx(fourier_cell_ratio(coefficients, nodes, family=2), rel=0.03)
    assert ratio > 0.9  # not favourable
    complete = [fourier_cell_ratio(2**k, k, family=k) for k in (2, 4, 8)]
    assert complete == sorted(complete)  # nor better for denser graphs
    assert complete[0] == 1


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.01, 5.0), (0.5, 0.5), (5.0, 5.0), (0.1, 0.1)])
def test_22_the_normaliser_of_smooth_sensitivity(prior):
    """It moves by up to 0.23 epsilon, which the proof leaves out; yet no loss exceeds epsilon."""
    delta, moved = 1e-8, []
    for epsilon in (0.3, 1.0, 3.0):
        for n in (5, 20, 100):
            candidates = Candidates(n, prior)
            gamma_ = math.log1p(epsilon / (2 * math.log(2 * (n + 1) / delta)))
            law = ScoredCandidates(candidates, candidates.smooth_sensitivity(gamma_), epsilon / 2)
            a, b = (np.concatenate(side) for side in zip(*candidates.neighbours(), strict=True))
            moved.append(np.abs(law.log_normalisers[a] - law.log_normalisers[b]).max() / epsilon)
            assert law.worst_case().epsilon < 0.74 * epsilon
    assert 0.1 < max(moved) < 0.24


def test_23_the_footnote_makes_all_data_sets_adjacent():
    """At least one equal record, where at most one different one is meant."""
    x, y = [0] * 10, [0] + [1] * 9
    printed = sum(a == b for a, b in zip(x, y, strict=True)) >= 1
    meant = sum(a != b for a, b in zip(x, y, strict=True)) <= 1
    assert printed
    assert not meant


def test_24_tails_of_the_release():
    """Floors off by one; the exponent without its 2 understates the tail."""
    noise = np.floor(np.random.default_rng(2).laplace(scale=2.0, size=200_000))
    for t in (-3, 0, 2):
        assert (noise == t).mean() == pytest.approx(floored_laplace(2.0, t), abs=0.003)
    printed = (math.exp(-(2 - 1) / 2.0) - math.exp(-2 / 2.0)) / 2
    assert printed == pytest.approx(floored_laplace(2.0, 1))
    candidates = Candidates(50, (1.0, 1.0))
    law = ScoredCandidates(candidates, candidates.local_sensitivity(), exponent=0.5)
    row, at_least = 25, 0.3
    distances = candidates.hellinger([row])[0]
    exact = np.exp(law.log_probabilities(np.array([row]))[0])[distances >= at_least].sum()
    steepness = law.exponent / law.sensitivity[row]
    assert exact == pytest.approx(score_tail(distances, steepness, at_least), rel=1e-9)
    assert score_tail(distances, 2 * steepness, at_least) < 0.5 * exact  # as printed


def test_25_networks_with_edges_are_steeper_than_their_smallest_probability():
    """ln(1/omega) holds without edges, or if omega bounds the probability of a whole record."""
    omega, d = 0.1, 5
    network = Network.star([2] * d, 2)
    one_label = composed_lipschitz(network, [table_lipschitz(omega)] * (d + 1))  # attained: 3
    assert one_label > 5 * math.log(1 / omega)
    assert one_label <= math.log(1 / omega ** (d + 1))  # loose, if every record's is meant


def test_26_the_divergence_averages_over_the_posterior():
    """The proof's average over the prior is no divergence; the bound holds, and a sharper one."""
    omega, n = 0.2, 6
    grid = SplitGrid(omega, 129)
    constant = table_lipschitz(omega)
    laws = [grid.law(1 + heads, 1 + n - heads) for heads in range(n + 1)]
    for p, q in pairwise(laws):
        divergence = float((p * np.log(p / q)).sum())
        assert 0 < divergence <= sharp_divergence_bound(constant, 1.0)
        assert sharp_divergence_bound(constant, 1.0) < divergence_bound(constant, 1.0)
    flat = grid.law(1, 1)
    averages = [float((flat * np.log(p / q)).sum()) for p, q in pairwise(laws)]
    assert min(averages) < 0  # so it cannot be one


def test_27_the_mean_of_a_clipped_count():
    """The atom at n is counted twice: the printed mean may exceed n."""

    def tail(b):
        return lambda z: math.exp(-z / b) / 2 if z > 0 else 1 - math.exp(z / b) / 2  # P(Y > z)

    for count, n, b in ((50, 50, 10.0), (20, 50, 10.0), (3, 50, 4.0), (0, 8, 30.0)):
        above = tail(b)
        true = quad(lambda z, c=count, above=above: above(z - c), 0, n, points=[count])[0]
        low, high = math.exp(-count / b) * b / 2, math.exp((count - n) / b)
        assert true == pytest.approx(count + low - b / 2 * high)
        printed = count + low + (n - b) / 2 * high
        assert printed - true == pytest.approx(n * above(n - count))
        if count == n:
            assert (round(printed, 1), round(true, 1)) == (70.0, 45.0)


def test_28_the_epsilon_of_figure_2():
    """By the printed formula it is never below n; by the range of a record it falls with b."""
    assert [printed_epsilon(b) for b in (1, 1e30)] == pytest.approx([7.99e6, 37_000], rel=1e-3)
    assert [epsilon_of_a_draw(b) for b in (1, 100, 1e6)] == pytest.approx([121, 4, 0.04])
    for b in (1.0, 100.0, 1e4):
        reach, bound = 10 / math.sqrt(b), epsilon_of_a_draw(b)
        u = np.linspace(-reach, reach, 2001)  # w x of a record; its log likelihood is yu - u²/2
        assert 2 * np.ptp(u - u**2 / 2) == pytest.approx(bound)
        if reach <= 1:  # one record whose target turns from 1 to -1 attains it
            assert np.ptp((u - u**2 / 2) - (-u - u**2 / 2)) == pytest.approx(bound)
        else:  # two records whose x are orthogonal come near it, with w along one or the other
            assert 0.99 * bound < 2 * (reach + reach**2 / 2) < bound
