"""The posterior of a network given noisy tables: exact for stars, group by group otherwise."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.counts.dirichlet import DirichletPosterior, DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware import NoiseAwarePosterior, infer_star
from dpbayes_sklearn.counts.posterior import siblings
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
from dpbayes_sklearn.noise.law import UNKNOWN, sum_of

STAR = Network.star([2, 3], 2)
TREE = Network((2, 3, 2, 2), ((3,), (0,), (3, 0), ()))  # class -> 0 -> 1, and class, 0 -> 2
SCALE = Fraction(5)


def alphas(network):
    return tuple(np.ones(k) for k in network.sizes)


def records(network, n, rng):
    """Draw records from random tables, parents first."""
    codes = np.zeros((n, len(network.sizes)), np.int64)
    truth = {}
    for node in network.order:
        shape = tuple(network.sizes[u] for u in network.parents[node])
        truth[node] = rng.dirichlet(np.ones(network.sizes[node]), size=shape)
        rows = truth[node][tuple(codes[:, u] for u in network.parents[node])]
        cumulative = np.broadcast_to(rows, (n, network.sizes[node])).cumsum(axis=1)
        codes[:, node] = (rng.random((n, 1)) > cumulative).sum(axis=1)
    return codes


def law(network, scale=SCALE):
    return DiscreteLaplace.of(scale, [np.prod(shape) for shape in network.shapes])


def release(network, seed, n=200, scale=SCALE):
    rng = np.random.default_rng(seed)
    codes = records(network, n, rng)
    counts = CountTables.count(network, [(codes[:, :-1], codes[:, -1])])
    q = np.exp(-1 / float(scale))
    tables = tuple(
        t + rng.geometric(1 - q, t.shape) - rng.geometric(1 - q, t.shape) for t in counts.tables
    )
    noisy = ReleasedCounts(network, tables, n, (law(network, scale),))
    return counts, noisy


def test_a_star_is_inferred_exactly():
    _, noisy = release(STAR, 0)
    posterior = NoiseAwarePosterior(STAR, alphas(STAR), noisy)
    star = infer_star(
        noisy.tables[-1],
        noisy.tables[:-1],
        noisy.n,
        class_noise=LaplaceMarginal(5.0),
        table_noises=[LaplaceMarginal(5.0)] * 2,
        class_alpha=np.ones(2),
        table_alphas=[np.ones(2), np.ones(3)],
    )
    assert posterior.exact
    for mean, expected in zip(posterior.mean(), [*star.table_means, star.class_mean], strict=True):
        np.testing.assert_array_equal(mean, expected)


@pytest.mark.parametrize("network", [STAR, TREE])
def test_it_is_nearer_to_the_counts_than_plugging_in(network):
    errors = {"plug_in": 0.0, "noise_aware": 0.0}
    for seed in range(25):
        counts, noisy = release(network, seed)
        exact = DirichletPrior(network, alphas(network)).update(counts.without_noise()).mean()
        for inference in errors:
            prior = DirichletPrior(network, alphas(network), inference)
            means = prior.update(noisy).mean()
            errors[inference] += sum(
                np.square(a - b).mean() for a, b in zip(means, exact, strict=True)
            )
    assert errors["noise_aware"] < 0.9 * errors["plug_in"]


def test_other_graphs_say_that_they_are_not_exact_and_use_the_parents_tables():
    _, noisy = release(TREE, 1)
    posterior = NoiseAwarePosterior(TREE, alphas(TREE), noisy)
    assert not posterior.exact
    groups = {tuple(nodes): totals for nodes, totals in siblings(noisy)}
    # node 0 and the root share the class counts
    assert groups[0,].root == 3
    np.testing.assert_array_equal(groups[0,].counts, noisy.tables[3])
    # the counts of node 0 are its table summed over two classes: two noises
    np.testing.assert_array_equal(groups[1,].counts, noisy.tables[0].sum(axis=0))
    assert groups[1,].noise == sum_of([LaplaceMarginal(5.0)] * 2)
    # the pair (class, node 0) is exactly node 0's table
    np.testing.assert_array_equal(groups[2,].counts, noisy.tables[0].ravel())
    assert groups[2,].noise == LaplaceMarginal(5.0)
    for mean, shape in zip(posterior.mean(), TREE.shapes, strict=True):
        assert mean.shape == shape
        np.testing.assert_allclose(mean.sum(axis=-1), 1.0)


def test_parents_that_no_other_table_holds():
    collider = Network((2, 2, 2), ((), (), (0, 1)))
    _, noisy = release(collider, 2)
    posterior = NoiseAwarePosterior(collider, alphas(collider), noisy)
    totals = dict((tuple(nodes), totals) for nodes, totals in siblings(noisy))[2,]
    assert totals.noise is UNKNOWN
    np.testing.assert_allclose(posterior.mean()[2].sum(axis=-1), 1.0)


@pytest.mark.parametrize("network", [STAR, TREE])
def test_draws_have_the_posterior_means(network):
    _, noisy = release(network, 3)
    posterior = NoiseAwarePosterior(network, alphas(network), noisy)
    n = 2000
    for draws, mean in zip(
        posterior.sample(np.random.default_rng(1), n), posterior.mean(), strict=True
    ):
        assert draws.shape == (n, *mean.shape)
        error = draws.std(axis=0) / np.sqrt(n)
        assert np.all(np.abs(draws.mean(axis=0) - mean) < 4.5 * error)


def test_batches_add_counts_and_noises():
    first, second = (
        NoiseAwarePosterior(STAR, alphas(STAR), release(STAR, seed)[1]) for seed in (4, 5)
    )
    both = first.merge(second)
    assert both.released.n == 400
    assert both.released.laws == (law(STAR), law(STAR))
    np.testing.assert_array_equal(
        both.released.tables[0], first.released.tables[0] + second.released.tables[0]
    )
    single = NoiseAwarePosterior(
        STAR,
        alphas(STAR),
        ReleasedCounts(STAR, both.released.tables, 400, (law(STAR),)),
    )
    assert np.abs(both.mean()[0] - single.mean()[0]).max() > 1e-4  # two noises are wider than one


def test_only_the_release_is_pickled():
    _, noisy = release(STAR, 6)
    posterior = NoiseAwarePosterior(STAR, alphas(STAR), noisy)
    size = len(pickle.dumps(posterior))
    before = posterior.mean()
    assert len(pickle.dumps(posterior)) == size
    for a, b in zip(pickle.loads(pickle.dumps(posterior)).mean(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_noise_is_conjugate_bayes():
    counts, _ = release(STAR, 7)
    posterior = DirichletPrior(STAR, alphas(STAR), "noise_aware").update(counts.without_noise())
    assert isinstance(posterior, DirichletPosterior)
    aware = NoiseAwarePosterior(STAR, alphas(STAR), counts.without_noise())
    for a, b in zip(posterior.mean(), aware.mean(), strict=True):
        np.testing.assert_allclose(a, b)
