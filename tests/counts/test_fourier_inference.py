"""Noisy character sums: exact on the Boolean star, a non-negative fit elsewhere."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from dpbayes_sklearn.counts.count_lattice import CountLattice
from dpbayes_sklearn.counts.dirichlet import DirichletPosterior, DirichletPrior
from dpbayes_sklearn.counts.fourier import (
    CharacterSums,
    ReleasedCharacters,
    sum_count,
    tables_from_characters,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware_fourier import (
    BooleanCharacters,
    NoiseAwareCharacters,
    nonnegative_fit,
)
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal


def log_prior(counts, alpha):
    counts, n, a = np.array(counts), sum(counts), alpha.sum()
    cells = gammaln(alpha + counts) - gammaln(alpha) - gammaln(counts + 1)
    return gammaln(n + 1) + gammaln(a) - gammaln(n + a) + cells.sum()


def enumerate_posterior(class_sum, feature_sums, product_sums, n, scale, class_alpha, alphas):
    """Posterior means by going through all counts of all planes."""
    log_weights, class_means, means = [], [], []
    for ones in range(n + 1):
        zeros = n - ones
        totals = np.array([zeros, ones])
        log_weight = log_prior([zeros, ones], class_alpha) - abs(class_sum - zeros + ones) / scale
        rows = []
        for z, product, alpha in zip(feature_sums, product_sums, alphas, strict=True):
            logs, shares = [], []
            for k0, k1 in np.ndindex(zeros + 1, ones + 1):
                noises = z - (n - 2 * (k0 + k1)), product - (zeros - ones - 2 * (k0 - k1))
                prior = log_prior([zeros - k0, k0], alpha) + log_prior([ones - k1, k1], alpha)
                logs.append(prior - np.abs(noises).sum() / scale)
                shares.append((alpha[1] + np.array([k0, k1])) / (alpha.sum() + totals))
            log_weight += logsumexp(logs)
            rows.append(np.exp(logs - logsumexp(logs)) @ np.array(shares))
        log_weights.append(log_weight)
        class_means.append((class_alpha + totals) / (class_alpha.sum() + n))
        means.append(rows)
    weights = np.exp(log_weights - logsumexp(log_weights))
    return weights @ np.array(class_means), np.tensordot(weights, np.array(means), 1)


SUM = st.one_of(st.integers(-8, 8), st.integers(-300, 300)).map(float)
ALPHA = st.tuples(st.floats(0.05, 10.0), st.floats(0.05, 10.0))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    SUM,
    st.lists(st.tuples(SUM, SUM, ALPHA), min_size=1, max_size=2),
    st.integers(1, 6),
    st.floats(0.1, 200.0),
    ALPHA,
)
def test_the_boolean_star_equals_enumeration(class_sum, features, n, scale, class_alpha):
    sums, products, alphas = (np.array(column) for column in zip(*features, strict=True))
    problem = class_sum, sums, products, n
    class_alpha = np.array(class_alpha)
    class_mean, means = enumerate_posterior(*problem, scale, class_alpha, alphas)
    inference = BooleanCharacters(*problem, LaplaceMarginal(scale), class_alpha, alphas)
    np.testing.assert_allclose(inference.class_mean, class_mean, atol=1e-10)
    got = np.stack(inference.table_means)
    np.testing.assert_allclose(got[:, :, 1], means, atol=1e-10)
    np.testing.assert_allclose(got.sum(axis=2), 1.0)


def test_enumeration_notices_a_wrong_scale():
    problem = 2.0, np.array([-3.0]), np.array([1.0]), 6
    alphas = np.ones((1, 2))
    _, means = enumerate_posterior(*problem, 5.0, np.ones(2), alphas)
    for scale in (4.9, 5.1):
        wrong = BooleanCharacters(*problem, LaplaceMarginal(scale), np.ones(2), alphas)
        assert np.abs(np.stack(wrong.table_means)[:, :, 1] - means).max() > 1e-5


def release(network, seed, n=200, scale=12):
    rng = np.random.default_rng(seed)
    laws = [rng.dirichlet(np.full(k, 0.5)) for k in network.sizes]  # unequal, as data mostly are
    codes = np.stack([rng.choice(len(p), n, p=p) for p in laws], axis=1)
    codes[:, 0] = np.where(rng.random(n) < 0.8, codes[:, -1] % network.sizes[0], codes[:, 0])
    counts = CountTables.count(network, [(codes[:, :-1], codes[:, -1])])
    q = np.exp(-1 / scale)
    blocks = {
        s: b + rng.geometric(1 - q, b.shape) - rng.geometric(1 - q, b.shape)
        for s, b in CharacterSums.of(counts).blocks.items()
    }
    return counts, ReleasedCharacters(network, blocks, n, (law(network, scale),), 40.0)


def law(network, scale):
    return DiscreteLaplace.of(Fraction(scale), [sum_count(network)])


BOOLEAN, MANY = Network.star([2, 2, 2], 2), Network.star([3, 5], 3)
GRAPH = Network((2, 3, 2), ((2,), (2, 0), ()))


def alphas(network):
    return tuple(np.ones(k) for k in network.sizes)


@pytest.mark.parametrize(("n", "scale"), [(150, 20.0), (200, 8.0)])
def test_a_coarser_lattice_changes_little(n, scale):
    _, released = release(BOOLEAN, 1, n, int(scale))
    exact, coarse = (
        NoiseAwareCharacters(BOOLEAN, alphas(BOOLEAN), released)._infer() for _ in "ab"
    )
    points = round(n / (scale / 6))
    exact.__dict__["lattice"] = CountLattice(n, 1.0, 20.0)
    coarse.__dict__["lattice"] = CountLattice(points, n / points, 12.0)
    difference = np.abs(np.stack(exact.table_means) - np.stack(coarse.table_means)).max()
    assert 0 < difference < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("network", [BOOLEAN, MANY, GRAPH])
def test_it_is_nearer_to_the_counts_than_plugging_in(network):
    errors = {"plug_in": 0.0, "noise_aware": 0.0}
    for seed in range(12):
        counts, released = release(network, seed)
        truth = DirichletPrior(network, alphas(network)).update(counts.without_noise()).mean()
        for inference in errors:
            prior = DirichletPrior(network, alphas(network), inference)
            means = prior.update(released).mean()
            errors[inference] += sum(
                np.square(a - b).mean() for a, b in zip(means, truth, strict=True)
            )
    assert errors["noise_aware"] < errors["plug_in"]


@pytest.mark.parametrize("network", [BOOLEAN, MANY, GRAPH])
def test_draws_have_the_posterior_means(network):
    _, released = release(network, 2)
    posterior = NoiseAwareCharacters(network, alphas(network), released)
    assert posterior.exact == (network is BOOLEAN)
    n = 1500
    for draws, mean in zip(
        posterior.sample(np.random.default_rng(0), n), posterior.mean(), strict=True
    ):
        assert draws.shape == (n, *mean.shape)
        np.testing.assert_allclose(draws.sum(axis=-1), 1.0)
        error = draws.std(axis=0) / np.sqrt(n)
        assert np.all(np.abs(draws.mean(axis=0) - mean) < 4.5 * error)


@pytest.mark.parametrize("network", [BOOLEAN, MANY, GRAPH])
def test_the_fit_is_the_least_squares_solution(network):
    """Against a general solver on the same problem."""
    _, released = release(network, 3, n=60, scale=25)
    supports = list(released.blocks)
    shapes = [released.blocks[s].shape for s in supports]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    z = np.concatenate([released.blocks[s].ravel() for s in supports]).astype(float)

    def cells(sums):
        parts = zip(supports, np.split(sums, ends[:-1]), shapes, strict=True)
        blocks = {s: part.reshape(shape) for s, part, shape in parts}
        return np.concatenate([t.ravel() for t in tables_from_characters(network, blocks, 60)])

    assert cells(z).min() < -1  # or there is nothing to fit
    solved = minimize(
        lambda c: 0.5 * np.square(c - z).sum(),
        np.zeros_like(z),
        jac=lambda c: c - z,
        constraints={"type": "ineq", "fun": cells},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    tables = nonnegative_fit(network, released.blocks, 60, 1e-6)
    fit = np.concatenate([table.ravel() for table in tables])
    assert fit.min() >= 0
    np.testing.assert_allclose(fit, cells(solved.x), atol=1e-3)


def test_sums_without_negative_cells_are_left_alone():
    counts, _ = release(MANY, 4, n=2000)
    sums = CharacterSums.of(counts)
    for a, b in zip(nonnegative_fit(MANY, sums.blocks, 2000, 1e-6), counts.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_the_increment_is_only_for_plug_in():
    _, released = release(BOOLEAN, 5)
    raised = ReleasedCharacters(BOOLEAN, released.blocks, released.n, released.laws, 900.0)
    for inference, changes in (("plug_in", True), ("noise_aware", False)):
        prior = DirichletPrior(BOOLEAN, alphas(BOOLEAN), inference)
        same = np.array_equal(prior.update(released).mean()[0], prior.update(raised).mean()[0])
        assert same != changes


def test_batches_add_up_and_only_the_release_is_pickled():
    first, second = (
        NoiseAwareCharacters(BOOLEAN, alphas(BOOLEAN), release(BOOLEAN, seed)[1]) for seed in (6, 7)
    )
    both = first.merge(second)
    assert both.released.n == 400
    assert both.released.laws == (law(BOOLEAN, 12),) * 2
    size = len(pickle.dumps(both))
    before = both.mean()
    assert len(pickle.dumps(both)) == size
    for a, b in zip(pickle.loads(pickle.dumps(both)).mean(), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_noise_is_conjugate_bayes():
    counts, _ = release(BOOLEAN, 8)
    sums = CharacterSums.of(counts)
    released = ReleasedCharacters(BOOLEAN, sums.blocks, sums.n, ())
    posterior = DirichletPrior(BOOLEAN, alphas(BOOLEAN), "noise_aware").update(released)
    assert isinstance(posterior, DirichletPosterior)


@pytest.mark.parametrize("far", [1e4, 1e9, 1e15])
def test_noise_far_beyond_the_records_takes_no_more_memory(far):
    """As with a tiny epsilon: what was released is far from anything that is possible."""
    law, ones = LaplaceMarginal(far / 3), np.ones(2)
    sums = far * np.array([1.0, -1.0, 0.3])
    inference = BooleanCharacters(-far, sums, sums[::-1], 1000, law, ones, np.ones((3, 2)))
    for table in inference.table_means:
        np.testing.assert_allclose(table, 0.5, atol=0.5)
        np.testing.assert_allclose(table.sum(axis=1), 1)
    assert inference._noise_of_sums._log.size < 10_000
