"""Adaptive reading of released networks: any graph, its limits, its draws, and what it is for."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.accuracy.cell_intervals import coverage
from dpbayes_sklearn import BayesianNaiveBayes, Categories, Schema
from dpbayes_sklearn.counts.adaptive import AdaptivePosterior
from dpbayes_sklearn.counts.adaptive_cells import row_draws
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import ancestral_sample
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.noise import ClassRows, DiscreteLaplace, NoiseLaw
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import add

STAR = Network.star((2, 3, 2, 5), 3)
TREE = Network((2, 3, 2, 2), ((3,), (0,), (3, 0), ()))
COLLIDER = Network((2, 2, 2), ((), (), (0, 1)))
ISOLATED = Network((3, 2, 2), ((), (), ()))
CONSTANT = Network.star((1, 2, 1), 2)
NETWORKS = {
    "star": STAR,
    "tree": TREE,
    "collider": COLLIDER,
    "isolated": ISOLATED,
    "constant": CONSTANT,
}


def counted(network: Network, n: int, seed: int = 0) -> tuple[CountTables, list[np.ndarray]]:
    """Return the counts of simulated records, and the tables they were drawn from."""
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.full(shape[-1], 2.0), size=shape[:-1]) for shape in network.shapes]
    records = ancestral_sample(network, tuple(tables), n, rng).astype(np.uint8)
    return CountTables.count(network, [(records[:, :-1], records[:, -1])]), tables


def read(
    counts: CountTables, law: NoiseLaw, seed: int = 0, ordered: bool = False
) -> AdaptivePosterior:
    network = counts.network
    noisy = add(counts.tables, law, random_source(seed))
    return AdaptivePosterior(
        network,
        tuple(np.ones(k) for k in network.sizes),
        ReleasedCounts(network, noisy, counts.n, (law,)),
        (ordered,) * len(network.sizes),
    )


def independent(network: Network, epsilon: float) -> NoiseLaw:
    cells = [int(np.prod(shape)) for shape in network.shapes]
    return DiscreteLaplace.of(Fraction(2 * len(cells)) / Fraction(epsilon), cells)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("n", [0, 1, 300])
def test_means_are_tables_of_the_network(name: str, n: int, ordered: bool) -> None:
    network = NETWORKS[name]
    posterior = read(counted(network, n)[0], independent(network, 1.0), ordered=ordered)
    assert not posterior.exact
    for mean, variance, shape in zip(
        posterior.mean(), posterior.variances, network.shapes, strict=True
    ):
        assert mean.shape == variance.shape == shape
        np.testing.assert_allclose(mean.sum(axis=-1), 1.0)
        assert (mean > 0).all()
        assert (variance >= 0).all()
        assert np.isfinite(variance).all()


@pytest.mark.parametrize("epsilon", [100.0, 1e4, 1e9])
@pytest.mark.parametrize("name", NETWORKS)
def test_with_hardly_any_noise_it_counts(name: str, epsilon: float) -> None:
    network = NETWORKS[name]
    counts, _ = counted(network, 50_000)
    posterior = read(counts, independent(network, epsilon))
    for mean, table in zip(posterior.mean(), counts.tables, strict=True):
        total = table.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(mean, table / total, atol=4.0 / np.sqrt(total.min()))


def test_joint_noise_of_a_star_is_read() -> None:
    counts, tables = counted(STAR, 20_000)
    law = ClassRows.of((2, 3, 2, 5), 3, 2, Fraction(1))
    for mean, truth in zip(read(counts, law).mean(), tables, strict=True):
        np.testing.assert_allclose(mean, truth, atol=0.03)


@pytest.mark.parametrize("name", ["star", "tree", "collider"])
def test_it_is_closer_than_the_noisy_counts(name: str) -> None:
    network, ours, plain = NETWORKS[name], [], []
    for seed in range(8):
        counts, tables = counted(network, 300, seed)
        posterior = read(counts, independent(network, 0.5), seed)
        for mean, noisy, truth in zip(
            posterior.mean(), posterior.released.clipped(), tables, strict=True
        ):
            rows = (noisy + 1) / (noisy + 1).sum(axis=-1, keepdims=True)
            ours.append(np.mean((mean - truth) ** 2))
            plain.append(np.mean((rows - truth) ** 2))
    assert np.mean(ours) < 0.8 * np.mean(plain)


def test_batches_add_up() -> None:
    halves = [counted(STAR, 2000, seed)[0] for seed in (0, 1)]
    law = independent(STAR, 1.0)
    one, other = (read(half, law, seed) for seed, half in enumerate(halves))
    both = one.merge(other)
    assert both.released.n == 4000
    assert both.released.laws == (law, law)
    np.testing.assert_array_equal(
        both.released.tables[1], one.released.tables[1] + other.released.tables[1]
    )
    assert both.means[1].shape == one.means[1].shape
    swapped = other.merge(one)
    for a, b in zip(both.mean(), swapped.mean(), strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("name", NETWORKS)
def test_draws_have_the_means_and_variances(name: str) -> None:
    network = NETWORKS[name]
    posterior = read(counted(network, 3000)[0], independent(network, 2.0))
    draws = posterior.sample(np.random.default_rng(0), 4000)
    for drawn, mean, variance in zip(draws, posterior.mean(), posterior.variances, strict=True):
        assert drawn.shape == (4000, *mean.shape)
        np.testing.assert_allclose(drawn.sum(axis=-1), 1.0)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.01)
        if mean.shape[-1] > 1:
            np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(variance), rtol=0.25, atol=0.01)


def test_draws_of_rows_whose_cells_are_known_unequally_well() -> None:
    mean, deviation = np.array([0.02, 0.08, 0.3, 0.6]), np.array([0.015, 0.03, 0.02, 0.03])
    draws = row_draws(mean, deviation**2, np.random.default_rng(1), 20_000)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.002)
    np.testing.assert_allclose(draws.std(axis=0), deviation, rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inference", "n_values"),
    [*[("adaptive", k) for k in (2, 3, 4, 8)], ("noise_aware", 3), ("noise_aware", 4)],
)
def test_intervals_of_cells_cover_under_joint_noise(inference: str, n_values: int) -> None:
    """The law's own Laplace approximation covered 0.74 to 0.84 with three and four values."""
    found = [coverage(inference, 2000, n_values, 16, seed) for seed in range(8)]
    assert 0.86 < np.mean(found) < 0.95


def test_pickles_hold_what_was_inferred() -> None:
    posterior = read(counted(TREE, 300)[0], independent(TREE, 1.0))
    again = pickle.loads(pickle.dumps(posterior))
    for name in ("means", "variances"):
        for a, b in zip(getattr(again, name), getattr(posterior, name), strict=True):
            np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------ what it is for

ITEMS = 200


def baskets(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rare Boolean items in two classes, 36 : 64, most of them bought by the larger."""
    rng = np.random.default_rng(seed)
    base = rng.beta(0.6, 5, ITEMS)
    shares = np.minimum(np.stack([base, base * rng.lognormal(0.35, 0.35, ITEMS)]), 0.7)
    y = (rng.random(n) < 0.64).astype(int)
    return (rng.random((n, ITEMS)) < shares[y]).astype(int), y


def rare_items(epsilon: float) -> np.ndarray:
    """Return accuracy, log loss and mean probability of the larger class less its share."""
    schema = Schema({f"item{i}": Categories([0, 1]) for i in range(ITEMS)}, Categories([0, 1]))
    found = []
    for seed in range(5):
        X, y = baskets(seed, 8000)
        model = BayesianNaiveBayes(epsilon, schema=schema, random_state=seed)
        p = model.fit(X[:4000], y[:4000]).predict_proba(X[4000:])
        y = y[4000:]
        loss = -np.log(p[np.arange(4000), y]).mean()
        found.append([(p.argmax(axis=1) == y).mean(), loss, p[:, 1].mean() - y.mean()])
    return np.mean(found, axis=0)


@pytest.mark.parametrize(
    ("epsilon", "accuracy", "log_loss"), [(1.0, 0.85, 0.33), (0.1, 0.58, 0.67)]
)
def test_rare_items_do_not_lead_astray(epsilon: float, accuracy: float, log_loss: float) -> None:
    """A prior that pulls rare items to one half had a log loss of 4.5; a constant guess 0.65."""
    found = rare_items(epsilon)
    assert found[0] > accuracy
    assert found[1] < log_loss
    assert abs(found[2]) < 0.08
