"""Ten notes on the papers' mechanisms: each test shows in numbers what was found and what holds."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import beta as beta_function
from scipy.special import gammaln, psi
from scipy.stats import beta

from dpbayes_sklearn.counts.fourier import CharacterSums, closure
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid, release_loss, split_priors
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.papers.candidates import Candidates, ScoredCandidates
from dpbayes_sklearn.papers.theory import (
    beta_divergence,
    coefficient_count,
    composed_concentration,
    composed_lipschitz,
    divergence_deviation,
    divergence_range,
    likelihood_range,
    mass_change_bound,
    sampler_epsilon,
    table_lipschitz,
    truncation_for,
)
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD


def test_1_truncation_of_the_sampler():
    """exp(-epsilon/2) leaves no parameters at all at epsilon = 1; 1/(1 + exp(epsilon/2)) does."""
    assert math.exp(-1 / 2) > 1 / 2
    assert math.exp(-(2 * math.log(2)) / 2) == pytest.approx(1 / 2)
    omega = truncation_for(1.0)
    assert omega < 1 / 2
    assert sampler_epsilon(omega) == pytest.approx(1.0)
    assert SplitGrid(omega, 257).loss_of_turning(1.0, 1.0, 1.0, 100) <= 1.0
    assert table_lipschitz(omega) < math.log(1 / omega)  # the paper's L is not tight


def test_2_many_draws_and_whole_records_cost_more():
    """epsilon = 2 ln(1/omega) protects one feature value in one draw, and nothing more."""
    epsilon, n = 2.0, 100
    grid = SplitGrid(math.exp(-epsilon / 2), 257)
    network = Network.star([2] * 8, 2)
    priors = split_priors(tuple(np.ones(2) for _ in network.sizes))
    feature, record = (
        release_loss(network, grid, priors, 1.0, n, unit) for unit in (FEATURE, RECORD)
    )
    assert feature <= epsilon
    assert record > 2 * epsilon
    assert record <= sampler_epsilon(grid.omega, levels=9)
    laws = grid.law([1 + n, 1 + n - 1], [1, 1 + 1])
    one_draw = np.abs(np.log(laws[0] / laws[1])).max()
    worst = np.argmax(np.abs(np.log(laws[0] / laws[1])))
    ten_draws = abs(np.log(laws[0, worst] ** 10 / laws[1, worst] ** 10))  # the same point ten times
    assert ten_draws == pytest.approx(10 * one_draw)
    assert ten_draws > epsilon


def test_3_a_parent_moves_its_children():
    """Same feature, other class: distance 0 in the feature's own metric, another conditional.

    So no constant satisfies the condition of Lemma 2 on an edge, and the lemma says nothing there.
    """
    table = np.array([[0.1, 0.9], [0.9, 0.1]])  # feature given class
    own_distance, moved = 0, abs(math.log(table[0, 0] / table[1, 0]))
    assert all(moved > constant * own_distance for constant in (1.0, 1e3, 1e6))
    network, constants = Network.star([2] * 5, 2), [table_lipschitz(0.1)] * 6
    tables, classes = [table] * 5, np.array([0.1, 0.9])

    def log_joint(x, c):
        pairs = zip(tables, x, strict=True)
        return math.log(classes[c]) + sum(math.log(t[c, v]) for t, v in pairs)

    ratio = abs(log_joint((0,) * 5, 0) - log_joint((0,) * 5, 1))  # one node differs
    assert ratio > 5 * max(constants)  # the paper's constant is the maximum
    assert ratio == pytest.approx(composed_lipschitz(network, constants))


def test_4_densities_have_no_bounded_sensitivity():
    """sqrt(L r) bounds probabilities of sets; the density at a point moves by far more."""
    omega = 0.1
    bound = mass_change_bound(table_lipschitz(omega), 1.0)
    for n in (10, 100, 1000):
        neighbours = beta(1 + n, 1), beta(n, 2)  # n heads, or one of them a tail
        at_the_end = [
            law.pdf(1 - omega) / (law.cdf(1 - omega) - law.cdf(omega)) for law in neighbours
        ]
        assert abs(at_the_end[0] - at_the_end[1]) > 5 * bound
        assert neighbours[0].pdf(1) - neighbours[1].pdf(1) == pytest.approx(n + 1)  # untruncated
    for n in (10, 100):
        assert SplitGrid(omega, 33).mass_sensitivity(1.0, 1.0, n) <= bound


def test_5_gradient_of_the_gaussian_likelihood():
    """Half the gradient, and n times a change that happens once."""
    rng = np.random.default_rng(0)
    w, x, y, variance = rng.normal(size=3), rng.normal(size=3), 0.4, 0.7

    def log_likelihood(y):
        return -((y - w @ x) ** 2) / (2 * variance)

    slope = (log_likelihood(y + 1e-6) - log_likelihood(y - 1e-6)) / 2e-6
    papers = (y - w @ x) / (2 * variance)
    assert slope == pytest.approx(-2 * papers, rel=1e-5)
    change = likelihood_range(radius=1.0, weight_bound=1.0, noise_variance=variance)
    n, data = 1000, -1 * np.ones(1000)  # x = w = unit vector: residual -2 in the worst case
    ends = [-((target - 1.0) ** 2) / (2 * variance) for target in (1.0, -1.0)]
    assert ends[0] - ends[1] == pytest.approx(change)
    neighbour = np.append(data[1:], 1.0)
    totals = [-((d - 1.0) ** 2).sum() / (2 * variance) for d in (data, neighbour)]
    assert abs(totals[0] - totals[1]) == pytest.approx(change)  # whatever n is
    assert n / (2 * variance) * (1 + 2 + 1) > 100 * change  # the paper's L(w) for d = 1

    def printed(n, norm):
        return n / 2 * (1 + 2 * norm + norm)  # L(w) at variance 1 and d = 1

    def steepest(norm):  # of -(y - wx)²/2 in (x, y) at |x| = |y| = 1
        return (1 + norm) * math.hypot(1, norm)

    assert printed(1, 1.0) < steepest(1.0) < printed(2, 1.0)
    assert printed(2, 10.0) < steepest(10.0) / 3  # it grows with the square of the norm
    # the least L(w) of d features at norm 10, all of it in one of them
    least = {(n, d): n / 2 * (1 + 20 + 10 * d) for n in (1, 2) for d in range(1, 40)}
    too_small = {key for key, constant in least.items() if constant < steepest(10.0)}
    assert too_small == {(2, d) for d in range(1, 9)} | {(1, d) for d in range(1, 21)}


def test_6_mcdiarmid_needs_squares():
    """Five nodes without parents and much noise: the divergence crosses the printed bound."""
    n, nodes, delta, rng = 100, 5, 0.05, np.random.default_rng(0)
    scale = 2 * nodes / 0.01
    q = math.exp(-1 / scale)
    noise = rng.geometric(1 - q, (2000, nodes, 2)) - rng.geometric(1 - q, (2000, nodes, 2))
    z = np.clip(np.array([0, n]) + noise, 0, n)  # data: no success in n trials, at every node
    total = np.array([sum(beta_divergence(2, 2 + n, 2 + a, 2 + b) for a, b in row) for row in z])
    ranges = [divergence_range(2, 2, n)] * nodes
    printed = math.sqrt(math.log(1 / delta) / 2 * sum(ranges))
    assert (total >= total.mean() + printed).mean() > 2 * delta
    assert (total >= total.mean() + divergence_deviation(ranges, delta)).mean() <= delta


def test_6_range_is_a_sum_of_logarithms():
    """The proof's own f moves by more than the theorem's (2n+1) ln of a sum."""
    n, alpha, half = 100, 2.0, 50

    def proof_f(z):
        return 2 * (gammaln(alpha + half) - gammaln(alpha + z) + (half - z) * psi(alpha + half))

    moved = abs(proof_f(0) - proof_f(n))
    assert moved > (2 * n + 1) * math.log((alpha + n + 1) + (alpha + n + 1))
    assert moved <= divergence_range(alpha, alpha, n)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_7_fourier_sensitivity_of_naive_bayes(d):
    """2|N| = 4d + 4 is sound but loose: all pairs of records give 4d; the zero sum never moves."""
    network = Network.star([2] * d, 2)
    records = list(product((0, 1), repeat=d + 1))
    sums = []
    for record in records:
        codes = np.array([record[:-1]], np.uint8)
        counts = CountTables.count(network, [(codes, np.array(record[-1:]))])
        blocks = CharacterSums.of(counts).blocks
        sums.append(np.concatenate([blocks[s].ravel() for s in closure(network)]))
    moved = max(np.abs(a - b).sum() for a, b in combinations(sums, 2))
    assert moved == 4 * d == CharacterSums.of(counts).sensitivity(RECORD)
    assert moved < 2 * coefficient_count(network) == 4 * d + 4
    assert len(sums[0]) == coefficient_count(network) - 1


def test_8_concentration_of_networks():
    """The appendix's c' = ln|I| min c makes larger networks smoother; they are rougher."""
    nodes, c, start = 3, 1.0, 2.0
    rough = 1 - (1 - math.exp(-c * start)) ** nodes  # some node's constant exceeds start
    appendix = math.log(nodes) * c
    assert rough > math.exp(-appendix * start)
    body = composed_concentration(Network((2,) * 3, ((),) * 3), [c] * nodes, start)
    assert rough <= math.exp(-body * start)


def test_9_definitions_of_the_beta_model():
    """Equality cannot hold for all sets; the density lacks -1; candidates are more."""
    p, epsilon = np.array([0.5, 0.5]), 1.0
    assert p.sum() != pytest.approx(math.exp(epsilon) * p.sum())  # the set of all outcomes
    printed = quad(lambda t: t**2 * (1 - t) ** 2 / beta_function(2, 2), 0, 1)[0]
    proper = quad(lambda t: t * (1 - t) / beta_function(2, 2), 0, 1)[0]
    assert printed == pytest.approx(0.2)
    assert proper == pytest.approx(1.0)
    n, k = 4, 3
    vectors = [v for v in product(range(n + 1), repeat=k) if sum(v) == n]
    assert len(vectors) == math.comb(n + k - 1, k - 1) == len(Candidates(n, (1.0,) * k))
    assert len(vectors) > math.comb(n + 1, k - 1)


def test_10_local_sensitivity_can_lose_more_than_epsilon():
    """Not for the note's Beta(1, 1), whose proof assumes what never happens; for other priors."""

    def loss(n, prior):
        candidates = Candidates(n, prior)
        law = ScoredCandidates(candidates, candidates.local_sensitivity(), 0.5)
        return law.worst_case().epsilon

    assert [loss(n, (1.0, 1.0)) for n in (1, 2, 5, 20, 100, 1000)] == pytest.approx(
        [0.50, 0.59, 0.64, 0.60, 0.80, 0.91], abs=0.01
    )
    assert loss(100, (0.01, 5.0)) == pytest.approx(1.03, abs=0.005)
    for n in range(2, 60):
        distances = Candidates(n, (1.0, 1.0)).hellinger(np.arange(n + 1))
        farthest = distances.argmax(axis=1)
        assert (np.abs(farthest - np.arange(n + 1)) > 1).all() or n == 2
    (middle,) = Candidates(2, (1.0, 1.0)).hellinger([1])
    assert middle[0] == pytest.approx(middle[2])  # a tie: farthest, but so is the other neighbour
