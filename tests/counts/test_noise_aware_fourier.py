"""Noise-aware inference under joint noise: the law of one sum, and what follows from it."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from dpbayes_sklearn.counts.count_lattice import CountLattice
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.fourier import CharacterSums, ReleasedCharacters, closure
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware_fourier import BooleanCharacters, NoiseAwareCharacters
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.noise import DiscreteLaplace, SupNorm
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.joint import discrete_boxes, log_upper_gamma


@pytest.mark.parametrize("order", [1, 2, 33, 115, 3001])
def test_the_logarithm_of_q_at_any_distance(order: int) -> None:
    x = order * np.array([0.01, 0.5, 0.9, 1.0, 1.1, 1.5, 2.0, 3.0, 10.0, 1e3, 1e6])
    k = np.arange(order)
    # Q(m, x) = exp(-x) sum_{k < m} x^k / k!
    exact = [logsumexp(k * np.log(one) - gammaln(k + 1.0)) - one for one in x]
    np.testing.assert_allclose(log_upper_gamma(order, x), exact, rtol=1e-9, atol=1e-9)
    fine = np.linspace(0.0, 40.0 * order, 4000)
    assert (np.diff(log_upper_gamma(order, fine)) <= 1e-9).all()  # no step between the formulas


@pytest.mark.parametrize(("size", "epsilon"), [(1, 0.5), (3, 0.1), (5, 1.0), (33, 1.0), (9, 50.0)])
def test_the_law_of_one_entry_is_that_of_the_lattice(size: int, epsilon: float) -> None:
    joint = SupNorm.of((1,) * size, 2, Fraction(epsilon))
    b, top = float(joint.steps), int(float(joint.steps) * (size + 60))
    radius = np.arange(top)
    log_cubes = (size - 1) * np.log(2.0 * radius + 1.0) - radius / b
    reached = np.logaddexp.accumulate(log_cubes[::-1])[::-1]  # cubes that reach as far as x
    x = np.arange(int(b * (size + 10)))
    law = joint.marginal()
    got = law.log_weight(x / joint.grid)
    np.testing.assert_allclose(got - got[0], reached[x] - reached[0], atol=0.05)
    weights = np.exp(reached - reached[0])
    weights[1:] *= 2
    variance = weights @ (radius / joint.grid) ** 2 / weights.sum()
    assert law.variance == pytest.approx(variance, rel=0.15 if size < 4 else 0.05)
    beyond = weights[radius / joint.grid > law.half_width(1, 12.0)].sum() / weights.sum()
    assert beyond < np.exp(-12.0) * 1.5
    assert 0 < law.sharpness <= np.sqrt(law.variance)


def brute_force(sums, n, log_weight, alpha):
    """Posterior means of the Boolean star with one feature, over all counts of four cells."""
    log_weights, classes, features = [], [], []
    for cells in product(range(n + 1), repeat=4):
        if sum(cells) != n:
            continue
        table = np.array(cells).reshape(2, 2)  # class, feature
        totals = table.sum(axis=1)
        exact = np.array([totals[0] - totals[1], n - 2 * table[:, 1].sum()])
        product_sum = totals[0] - totals[1] - 2 * (table[0, 1] - table[1, 1])
        noise = np.asarray(sums) - np.array([*exact, product_sum])
        prior = sum(
            gammaln(n + 1) + gammaln(2 * alpha) - gammaln(n + 2 * alpha)
            + (gammaln(alpha + row) - gammaln(alpha) - gammaln(row + 1)).sum()
            for row, n in ((totals, n), (table[0], totals[0]), (table[1], totals[1]))
        )  # fmt: skip
        log_weights.append(prior + log_weight(noise).sum())
        classes.append((alpha + totals) / (2 * alpha + n))
        features.append((alpha + table) / (2 * alpha + totals[:, None]))
    weights = np.exp(log_weights - logsumexp(log_weights))
    return weights @ np.array(classes), np.tensordot(weights, np.array(features), 1)


@pytest.mark.parametrize("sums", [(1.5, -3.0, 2.25), (-9.0, 14.5, 0.0), (40.0, -40.0, 40.0)])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_tiny_problem_equals_brute_force(sums: tuple[float, ...], epsilon: float) -> None:
    network, n, alpha = Network.star([2], 2), 9, 0.7
    law = SupNorm.of((1,) * 3, 2, Fraction(epsilon))
    blocks = {(1,): np.array([sums[0]]), (0,): np.array([sums[1]]), (0, 1): np.array([[sums[2]]])}
    released = ReleasedCharacters(network, blocks, n, (law,), 3.0)
    prior = DirichletPrior(network, (np.full(2, alpha),) * 2, "noise_aware")
    posterior = prior.update(released)
    assert isinstance(posterior, NoiseAwareCharacters)
    assert not posterior.exact  # the entries share a radius, which is left out
    table, classes = posterior.mean()
    b = float(law.scale)

    def log_weight(x, scale=b):
        return log_upper_gamma(3, np.abs(x) / scale)

    wanted_classes, wanted = brute_force(sums, n, log_weight, alpha)
    np.testing.assert_allclose(classes, wanted_classes, atol=1e-9)
    np.testing.assert_allclose(table, wanted, atol=1e-9)
    _, wrong = brute_force(sums, n, lambda x: log_weight(x, 1.1 * b), alpha)
    assert np.abs(table - wrong).max() > 1e-4
    drawn, _ = posterior.sample(np.random.default_rng(0), 4000)
    np.testing.assert_allclose(drawn.mean(axis=0), table, atol=0.03)


def release(network, seed, n, law):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, n) for k in network.sizes], axis=1)
    codes[:, 0] = np.where(rng.random(n) < 0.8, codes[:, -1], codes[:, 0])
    sums = CharacterSums.of(CountTables.count(network, [(codes[:, :-1], codes[:, -1])]))
    noise = discrete_boxes(np.ones(law.size, int), law.steps, 1, random_source(seed))[0] / law.grid
    ends = np.cumsum([sums.blocks[s].size for s in closure(network)])
    parts = dict(zip(closure(network), np.split(noise, ends[:-1]), strict=True))
    blocks = {s: b + parts[s].reshape(b.shape) for s, b in sums.blocks.items()}
    return ReleasedCharacters(network, blocks, n, (law,), 40.0)


STAR = Network.star([2] * 6, 2)
ALPHAS = tuple(np.ones(2) for _ in STAR.sizes)
LAW = SupNorm.of((1,) * 13, 2, Fraction(3, 10))


def test_a_coarser_lattice_changes_little() -> None:
    exact, coarse = (
        NoiseAwareCharacters(STAR, ALPHAS, release(STAR, 3, 240, LAW))._infer() for _ in "ab"
    )
    exact.__dict__["lattice"] = CountLattice(240, 1.0, np.inf)
    assert coarse.lattice.points < 240 or coarse.lattice.nats < np.inf
    finest = max(1.0, coarse.law.sharpness / 6)
    coarse.__dict__["lattice"] = CountLattice(round(240 / finest), 240 / round(240 / finest), 12.0)
    assert isinstance(exact, BooleanCharacters)
    for a, b in zip(exact.table_means, coarse.table_means, strict=True):
        np.testing.assert_allclose(a, b, atol=0.02)


def test_batches_of_different_laws_add_up() -> None:
    joint = NoiseAwareCharacters(STAR, ALPHAS, release(STAR, 1, 300, LAW))
    other = SupNorm.of((1,) * 13, 2, Fraction(5))
    finer = NoiseAwareCharacters(STAR, ALPHAS, release(STAR, 2, 200, other))
    sums = {s: np.rint(b).astype(np.int64) for s, b in finer.released.blocks.items()}
    laplace = NoiseAwareCharacters(
        STAR, ALPHAS, ReleasedCharacters(STAR, sums, 200, (DiscreteLaplace.of(Fraction(9), [13]),))
    )
    for both in (joint.merge(finer), joint.merge(laplace), laplace.merge(joint)):
        assert not both.exact
        assert both.released.n == 500
        for table in both.mean():
            np.testing.assert_allclose(table.sum(axis=-1), 1.0)
            assert (table > 0).all()
        again = pickle.loads(pickle.dumps(both))
        assert all((a == b).all() for a, b in zip(again.mean(), both.mean(), strict=True))
    assert joint.merge(finer).released.grid == max(LAW.grid, other.grid)
    assert joint.merge(laplace).released.noise.variance == pytest.approx(LAW.variance() + 2 * 81)
    assert laplace.exact
