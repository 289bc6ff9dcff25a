"""Tails of released posteriors, exponential families and draws, against what is measured."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.papers.candidates import Candidates, ScoredCandidates
from dpbayes_sklearn.papers.theory import (
    count_tail,
    empirical_error,
    exponential_family_epsilon,
    mass_change_bound,
    metric_epsilon,
    partition_limit,
    score_exponent,
    score_tail,
    score_tail_bound,
    smallest_normaliser,
    smoothness_constant,
    total_variation_bound,
)
from dpbayes_sklearn.privacy.budget import RECORD


def test_tail_of_integer_noise():
    draws = np.abs(discrete_laplace(3, 100_000, random_source(0)))
    for t in (1, 4, 9):
        assert (draws >= t).mean() == pytest.approx(count_tail(3.0, t), rel=0.05)
        assert count_tail(3.0, t) > math.exp(-t / 3.0)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 2.0)])
def test_the_bounds_of_section_6_from_sharp_to_loose(prior):
    """Exact, by the data's normaliser, by the smallest of n records, by 1."""
    candidates = Candidates(60, prior)
    law = ScoredCandidates(candidates, candidates.local_sensitivity(), exponent=2.0)
    least = smallest_normaliser(law)
    for row in (0, 7, 30, 60):
        distances = candidates.hellinger([row])[0]
        steepness = law.exponent / law.sensitivity[row]
        own = math.exp(law.log_normalisers[row])
        assert least <= own
        for at_least in (0.2, 0.5, 0.8):
            exact = score_tail(distances, steepness, at_least)
            bounds = [
                score_tail_bound(len(candidates), steepness, at_least, normaliser)
                for normaliser in (own, least, 1.0)
            ]
            assert exact <= bounds[0] * (1 + 1e-12)
            assert bounds == sorted(bounds)
            if bounds[0] < 1:
                assert 0.005 < exact / bounds[0] < 0.5


def test_the_smallest_normaliser_is_attained():
    candidates = Candidates(12, (1.0, 1.0))
    law = ScoredCandidates(candidates, np.full(13, 0.3), exponent=1.0)
    listed = np.exp(-candidates.hellinger(np.arange(13)) / 0.3).sum(axis=1)
    assert smallest_normaliser(law) == pytest.approx(listed.min())


def test_frequencies_of_draws_in_lemma_2():
    """On the largest partition that the lemma allows, and the bound fails for a third of it."""
    rng, n, delta = np.random.default_rng(0), 500, 0.01
    cells = partition_limit(delta)
    share = np.full(cells, 1 / cells)
    errors = np.abs(rng.multinomial(n, share, 4000) / n - share).sum(axis=1)
    assert (errors > empirical_error(n, delta)).mean() <= delta
    assert (errors > empirical_error(n, delta) / 3).mean() > delta


def families():
    """Parameters, statistics of records 0 and 1, and log-normalisers of three families."""
    rates = np.linspace(0.1, 2.1, 81)
    means = np.linspace(-1.0, 1.0, 81)
    return {
        "exponential": (-rates, np.linspace(0, 3, 7), -np.log(rates)),
        "laplace": (-rates, np.abs(np.linspace(-3, 3, 13)), -np.log(rates / 2)),
        "normal": (means / 0.5, np.linspace(-1, 1, 9), means**2 / (2 * 0.5)),
    }


@pytest.mark.parametrize("family", ["exponential", "laplace", "normal"])
@pytest.mark.parametrize("temper", [1.0, 0.2])
def test_loss_of_exponential_families_by_enumeration(family, temper):
    """All pairs of records beside three sets of others: never above the claim, and near it."""
    eta, values, log_partition = families()[family]
    claimed = exponential_family_epsilon(np.ptp(eta), np.ptp(values), temper)
    worst = 0.0
    for others in (values.min(), values.mean(), values.max()):
        logs = [temper * (eta * (4 * others + t) - 5 * log_partition) for t in values]
        laws = [log - np.logaddexp.reduce(log) for log in logs]
        for i, p in enumerate(laws):
            for j, q in enumerate(laws):
                loss, distance = np.abs(p - q).max(), abs(values[i] - values[j])
                allowed = metric_epsilon(claimed, distance, np.ptp(values))
                assert loss <= allowed + 1e-12  # privacy under the metric |T(x) - T(y)|
                worst = max(worst, loss)
    assert 0.5 * claimed < worst <= claimed


@pytest.mark.parametrize("changed", [0, 1, 3, 5])
def test_records_of_equal_class_lose_by_the_features_that_differ(changed):
    """The second row of the table of metrics: epsilon j/(d + 1), attained."""
    network, epsilon = Network.star([3] * 5, 2), Fraction(1)
    ones = np.array([[1] * changed + [0] * (5 - changed)], np.uint8)
    sides = [CountTables.count(network, [(x, np.array([1]))]) for x in (ones, 0 * ones)]
    law = sides[0].law("independent", RECORD, epsilon, Fraction(1))
    pairs = zip(sides[0].tables, sides[1].tables, strict=True)
    shift = np.concatenate([(a - b).ravel() for a, b in pairs])
    assert float(law.privacy_loss(shift)) == pytest.approx(metric_epsilon(1.0, changed, 6))


def test_algorithm_3_under_either_assumption():
    """Masses of a grid as scores: private with sqrt(L r), and with sqrt(M/2) where M is small."""
    theta = np.linspace(0.3, 0.7, 41)
    epsilon, n, lipschitz = 1.0, 10, math.log(0.7 / 0.3)

    def law(heads, exponent):
        mass = theta**heads * (1 - theta) ** (n - heads)
        mass /= mass.sum()
        weights = np.exp(exponent * mass)
        return weights / weights.sum()

    exponent = score_exponent(epsilon, mass_change_bound(lipschitz, 1.0))
    losses = [np.abs(np.log(law(k, exponent) / law(k + 1, exponent))).max() for k in range(n)]
    assert max(losses) <= epsilon
    smooth = smoothness_constant(300.0, start=0.01, slack=0.99, likelihood_ratio=1.005)
    assert total_variation_bound(smooth, 1.0) < 0.3  # says something
    flat = smoothness_constant(0.5, start=0.5, slack=0.5, likelihood_ratio=2.0)
    assert total_variation_bound(flat, 1.0) == 1.0  # and nothing of an ordinary coin
    assert score_exponent(epsilon, 1.0) == epsilon / 2
