"""A posterior that is a few released draws."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import DrawsPosterior
from dpbayes_sklearn.counts.predict import log_joint

STAR = Network.star([3, 2], 2)
CODES = np.array([(i, j) for i in range(3) for j in range(2)], np.uint8)


def draws(n_draws: int, seed: int, network: Network = STAR) -> DrawsPosterior:
    rng = np.random.default_rng(seed)
    tables = tuple(rng.dirichlet(np.ones(s[-1]), (n_draws, *s[:-1])) for s in network.shapes)
    return DrawsPosterior(network, tables, rng.uniform(1, 9, n_draws))


def test_the_mean_is_weighted() -> None:
    posterior = draws(3, 0)
    shares = posterior.weights / posterior.weights.sum()
    for table, mean in zip(posterior.draws, posterior.mean(), strict=True):
        np.testing.assert_allclose(mean, sum(w * t for w, t in zip(shares, table, strict=True)))


@pytest.mark.parametrize("network", [STAR, Network.star([2, 2], 2)])
@pytest.mark.parametrize("n_draws", [1, 2, 5])
def test_the_predictive_averages_probabilities(n_draws: int, network: Network) -> None:
    posterior, codes = draws(n_draws, 1, network), CODES % np.array(network.sizes[:-1])
    shares = posterior.weights / posterior.weights.sum()
    each = [
        np.exp(log_joint(network, tuple(np.log(t[i]) for t in posterior.draws), codes))
        for i in range(n_draws)
    ]
    expected = sum(w * p for w, p in zip(shares, each, strict=True))
    np.testing.assert_allclose(np.exp(posterior.log_predictive(codes)), expected, rtol=1e-12)
    if n_draws > 1:  # which is not the probability under averaged tables
        plain = np.exp(log_joint(network, tuple(np.log(t) for t in posterior.mean()), codes))
        assert np.abs(plain - expected).max() > 1e-4


def test_the_predictive_is_a_law() -> None:
    assert np.exp(draws(4, 2).log_predictive(CODES)).sum() == pytest.approx(1)


def test_batches_keep_their_draws_and_weights() -> None:
    first, second = draws(2, 3), draws(3, 4)
    both = first.merge(second)
    assert both.weights.tolist() == [*first.weights, *second.weights]
    for a, b, c in zip(first.draws, second.draws, both.draws, strict=True):
        assert (c[:2] == a).all()
        assert (c[2:] == b).all()
    totals = first.weights.sum(), second.weights.sum()
    expected = [
        np.average([x, y], axis=0, weights=totals)
        for x, y in zip(first.mean(), second.mean(), strict=True)
    ]
    for got, want in zip(both.mean(), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_samples_are_the_draws_by_weight() -> None:
    posterior = draws(3, 5)
    tables = posterior.sample(np.random.default_rng(6), 6000)
    same = [(tables[2] == posterior.draws[2][i]).all(axis=-1).mean() for i in range(3)]
    assert sum(same) == 1
    np.testing.assert_allclose(same, posterior.weights / posterior.weights.sum(), atol=0.02)
    joint = [(tables[0] == posterior.draws[0][i]).all(axis=(1, 2)) for i in range(3)]
    assert [j.mean() for j in joint] == same  # all tables of one draw stay together
