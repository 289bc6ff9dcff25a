from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.papers.theory import (
    bernoulli_concentration,
    bernoulli_lipschitz,
    composed_concentration,
    composed_lipschitz,
    exponential_concentration,
    families_per_node,
    laplace_concentration,
    lifted_concentration,
    lifted_lipschitz,
    normal_concentration,
    table_lipschitz,
)

GRAPHS = [
    Network((2, 2, 2), ((), (), ())),
    Network.star([2, 3], 2),
    Network((2, 3, 2, 2), ((), (0,), (0, 1), (2,))),
]


def steepest(log_density, metric, points):
    """Largest abs(ln p(x) - ln p(y)) / rho(x, y)."""
    x, y = (side.ravel() for side in np.meshgrid(points, points))
    apart = metric(x, y) > 1e-9
    x, y = x[apart], y[apart]
    return float((np.abs(log_density(x) - log_density(y)) / metric(x, y)).max())


def distance(x, y):
    return np.abs(x - y)


@pytest.mark.parametrize(
    ("concentration", "density", "metric"),
    [
        (exponential_concentration(1.5), lambda p: stats.expon(scale=1 / p), distance),
        (laplace_concentration(1.5), lambda p: stats.laplace(0.3, 1 / p), distance),
        (
            normal_concentration(1.5, mean=-3.0),
            lambda p: stats.norm(-3.0, p**-0.5),
            lambda x, y: np.abs(x**2 - y**2) + 2 * np.abs(x - y),
        ),
    ],
)
def test_concentration_of_conjugate_pairs(concentration, density, metric):
    """P(constant > L) = exp(-cL) for the prior Exp(1.5) of the parameter, no more, no less."""
    points = np.linspace(0.4 if metric is distance else -6.0, 6.0, 60)
    parameters = stats.expon(scale=1 / 1.5).ppf([0.2, 0.5, 0.9, 0.99])
    for p in parameters:
        constant = steepest(density(p).logpdf, metric, points)
        assert stats.expon(scale=1 / 1.5).sf(p) == pytest.approx(
            np.exp(-concentration * constant), rel=1e-6
        )


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("start", [0.0, 0.5, 4.0])
def test_concentration_of_coins(alpha, start):
    c = bernoulli_concentration(alpha, start)
    for bound in np.linspace(max(start, 1e-3), start + 12, 40):
        outside = 2 * stats.beta(alpha, alpha).cdf(1 / (1 + np.exp(bound)))
        assert outside <= np.exp(-c * bound) * (1 + 1e-9)
    near = max(start, 1e-3)
    outside = 2 * stats.beta(alpha, alpha).cdf(1 / (1 + np.exp(near)))
    assert outside > np.exp(-1.01 * c * near)  # no larger c would do


def test_tables_and_coins_agree():
    assert table_lipschitz(0.1) == pytest.approx(bernoulli_lipschitz(0.1))
    three = np.array([0.1, 0.1, 0.8])
    assert np.ptp(np.log(three)) == pytest.approx(table_lipschitz(0.1, size=3))


def test_lifting_to_records():
    rng = np.random.default_rng(0)
    theta, n, differing = 1.7, 6, 3
    for _ in range(200):
        x = rng.exponential(size=n)
        y = np.where(np.arange(n) < differing, rng.exponential(size=n), x)
        ratio = abs(theta * (x - y).sum())
        assert ratio <= lifted_lipschitz(theta, differing) * np.abs(x - y).max()
        assert ratio <= theta * np.abs(x - y).sum() * (1 + 1e-12)
    x, y = np.zeros(n), np.repeat([2.0, 0.0], differing)
    assert theta * y.sum() == lifted_lipschitz(theta, differing) * np.abs(x - y).max()
    assert lifted_concentration(theta, differing) == pytest.approx(theta / 3)


def log_joint(network, tables, x):
    return sum(
        np.log(table[tuple(x[u] for u in family)])
        for family, table in zip(network.families, tables, strict=True)
    )


@pytest.mark.parametrize("network", GRAPHS)
def test_composition_over_a_network(network):
    """Tables whose rows swap the extreme values attain the composed constant."""
    omega = 0.1
    constants = [table_lipschitz(omega, k) for k in network.sizes]
    bound = composed_lipschitz(network, constants)
    records = list(product(*(range(k) for k in network.sizes)))
    rng, largest = np.random.default_rng(1), 0.0
    for attempt in range(8):
        tables = []
        for shape in network.shapes:
            table = np.full(shape, omega)
            for j in np.ndindex(shape[:-1]):
                at = sum(j) % shape[-1] if attempt == 0 else rng.integers(shape[-1])
                table[(*j, at)] = 1 - (shape[-1] - 1) * omega
            tables.append(table)
        logs = np.array([log_joint(network, tables, x) for x in records])
        hamming = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) for y in records]
                            for x in records])  # fmt: skip
        apart = hamming > 0
        largest = max(largest, (np.abs(logs[:, None] - logs)[apart] / hamming[apart]).max())
    assert largest <= bound * (1 + 1e-12)
    assert largest > bound / 2


@pytest.mark.parametrize("network", GRAPHS)
def test_concentration_of_a_network(network):
    """Nodes whose constants are exponential variables: the network's tail is as thin as claimed."""
    size, start, c = len(network.sizes), 3.0, 1.0
    rng = np.random.default_rng(2)
    constants = rng.exponential(1 / c, size=(200_000, size))
    member = np.array([[u in family for family in network.families] for u in range(size)])
    whole = (constants @ member.T).max(axis=1)
    combined = composed_concentration(network, [c] * size, start)
    k = families_per_node(network)
    for bound in k * start * np.array([1.0, 1.3, 2.0]):
        assert (whole > bound).mean() <= np.exp(-combined * bound)
    if k == 1:
        assert (whole > start).mean() > np.exp(-1.1 * combined * start)  # tight without edges


def test_concentration_needs_few_nodes():
    with pytest.raises(ValueError, match="more nodes than"):
        composed_concentration(GRAPHS[0], [0.1] * 3, start=1.0)
