"""Moments of probabilities given noisy counts, against sums over all data sets."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from dpbayes_sklearn.categories.counts import ReleasedSimplex, ShareMoments, counts_given
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet, NoisyDirichlet, SimplexPrior
from dpbayes_sklearn.noise.discrete_laplace import DiscreteLaplace, LaplaceMarginal
from dpbayes_sklearn.papers.candidates import Candidates

ALPHAS = [(1.0, 1.0, 1.0), (0.05, 0.5, 4.0), (50.0, 1.0, 2.0)]


def enumerated(counts, log_weights, alpha):
    """Return mean and variance of every probability: law of total variance, term by term."""
    alpha = np.asarray(alpha, float)
    logs = log_weights + (gammaln(alpha + counts) - gammaln(counts + 1.0)).sum(axis=1)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    parameters = alpha + counts
    total = parameters.sum(axis=1, keepdims=True)
    means = parameters / total
    variances = means * (1 - means) / (total + 1)
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)


@pytest.mark.parametrize("released", [3, 2])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("scale", [0.3, 2.0, 20.0])
def test_moments_agree_with_enumeration(released, alpha, scale) -> None:
    rng = np.random.default_rng(0)
    counts = Candidates(9, alpha).counts
    for _ in range(3):
        noisy = rng.integers(-4, 14, released)
        prior = np.array(alpha)
        found = counts_given(noisy, LaplaceMarginal(scale), 9, prior).moments(prior)
        logs = -np.abs(noisy - counts[:, :released]).sum(axis=1) / scale
        mean, variance = enumerated(counts, logs, alpha)
        assert np.allclose(found.mean, mean, rtol=1e-6)
        assert np.allclose(found.variance, variance, rtol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS[:2])
def test_moments_agree_with_enumeration_if_n_is_secret(alpha) -> None:
    noisy, scale = np.array([3, 9, -2]), 1.5
    counts = np.array(list(product(range(40), repeat=3)))
    total = float(sum(alpha))
    n = counts.sum(axis=1)
    logs = -np.abs(noisy - counts).sum(axis=1) / scale + gammaln(n + 1.0) - gammaln(total + n)
    mean, variance = enumerated(counts, logs, alpha)
    prior = np.array(alpha)
    found = counts_given(noisy, LaplaceMarginal(scale), None, prior).moments(prior)
    assert np.allclose(found.mean, mean, rtol=1e-3)
    assert np.allclose(found.variance, variance, rtol=1e-3)


def test_the_law_given_a_choice_agrees_with_enumeration() -> None:
    counts, alpha = Candidates(6, (1.0, 2.0, 0.5)).counts, (1.0, 2.0, 0.5)
    logs = -np.abs(counts - [3, 2, 1]).sum(axis=1) / 2.0
    prior = SimplexPrior(Dirichlet(alpha), "noise_aware")
    found = prior.choice(counts, np.array([3, 2, 1]), logs)
    mean, variance = enumerated(counts, logs, alpha)
    assert np.allclose(found.mean(), mean)
    assert np.allclose(found.variance(), variance)
    taken = SimplexPrior(Dirichlet(alpha), "plug_in").choice(counts, np.array([3, 2, 1]), logs)
    assert taken.concentration.tolist() == [4, 4, 1.5]


def test_the_dirichlet_has_the_mean_variance_and_marginals_their_own() -> None:
    moments = ShareMoments(np.array([0.8, 0.15, 0.05]), np.array([0.004, 0.003, 0.002]))
    found = SimplexPrior(Dirichlet(np.ones(3)), "noise_aware").matched(moments)
    assert isinstance(found, NoisyDirichlet)
    assert np.allclose(found.variance(), moments.variance)
    assert Dirichlet(found.concentration).variance().sum() == pytest.approx(0.009)
    assert np.allclose(found.mean(), moments.mean)


def test_little_noise_leaves_the_exact_posterior() -> None:
    laws = (DiscreteLaplace.of(Fraction(1, 50), [1]),)
    found = SimplexPrior(Beta(1.0, 2.0), "noise_aware").update(
        ReleasedSimplex(np.array([30]), 80, laws)
    )
    assert np.allclose(found.concentration, [31, 52])


@pytest.mark.parametrize("n", [0, 1, 40, 10**5])
@pytest.mark.parametrize("alpha", [1e-100, 1.0, 1e12])
@pytest.mark.parametrize("scale", [1e-3, 3.0, 1e5])
def test_every_release_has_a_law(n, alpha, scale) -> None:
    laws, far = (DiscreteLaplace.of(Fraction(scale), [3]),), int(20 * scale)
    prior = SimplexPrior(Dirichlet([alpha, 1.0, alpha]), "noise_aware")
    for noisy in ([0, n, 0], [n + far, 0, -far], [-far, n // 2, n - n // 2 - far]):
        found = prior.update(ReleasedSimplex(np.array(noisy), n, laws))
        assert (found.concentration > 0).all()
        assert np.isfinite(found.marginals()).all()
        assert found.mean().sum() == pytest.approx(1)
