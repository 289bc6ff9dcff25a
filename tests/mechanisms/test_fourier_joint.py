"""One noise for all character sums: law, privacy, and every way that a release is used."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare
from sklearn.model_selection import GridSearchCV

from benchmarks.audit.tools import enumerate_loss, replay
from benchmarks.audit.tools.releases import released_numbers
from benchmarks.audit.tools.replaying import DRAWS
from dpbayes_sklearn import BayesianNaiveBayes, from_json
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.fourier import CharacterSums, stealth_increment
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Fourier
from dpbayes_sklearn.noise import DiscreteLaplace, Noise, SupNorm
from dpbayes_sklearn.papers.theory import table_bound
from dpbayes_sklearn.planning import epsilon_for, expected_error
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, PrivacyUnit, exact
from tests.random_networks import count, random_records
from tests.releasing import carried_out, plan_for

PAIR = Network((2, 2), ((1,), ()))
STAR = Network.star([2] * 8, 2)
NETWORKS = [STAR, Network.star([3, 7, 1], 3), Network((2, 3, 4, 2), ((), (0,), (0, 1), (0, 2)))]


def counts_of(network: Network, n: int = 60) -> CountTables:
    return count(network, random_records(network, n, seed=0))


def release(
    network: Network,
    epsilon: Any,
    seed: int | None = None,
    unit: PrivacyUnit = RECORD,
    **options: Any,
) -> Any:
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    mechanism, budget = Fourier(**{"noise": "joint", **options}), Budget(exact(epsilon), unit=unit)
    statistics = counts_of(network)
    plan_for(mechanism, statistics, prior, budget)
    return carried_out(mechanism, statistics, prior, budget, Noise.of(seed)).posterior.released


def noise_of(released: Any) -> Any:
    sums = CharacterSums.of(counts_of(released.network)).blocks
    return np.concatenate([(b - sums[s]).ravel() for s, b in released.blocks.items()])


# ---------------------------------------------------------------------- law


def drawn(epsilon: Fraction, runs: int) -> Any:
    """Noises of three sums, in steps of the grid."""
    prior = DirichletPrior(PAIR, (np.ones(2),) * 2)
    statistics = counts_of(PAIR)
    numbers = released_numbers(
        Fourier(noise="joint"), statistics, prior, Budget(epsilon), runs, random_state=5
    )
    sums = CharacterSums.of(statistics).blocks.values()
    return numbers - np.concatenate([b.ravel() for b in sums])


def test_the_noise_follows_its_law_and_a_scale_off_by_a_tenth_is_rejected() -> None:
    epsilon, runs = Fraction(2), 60_000
    law = SupNorm.of((1,) * 3, 2, epsilon)
    assert law == SupNorm(Fraction(1), (1,) * 3, 4)
    steps = drawn(epsilon, runs) * law.grid
    assert (steps == np.rint(steps)).all()
    seen = Counter(map(tuple, steps.astype(int).tolist()))
    points = [*product(range(-60, 61), repeat=3)]
    norms = np.abs(np.array(points)).max(axis=1)

    def pvalue(factor: float) -> float:
        law_of_points = np.exp(-norms / (factor * float(law.steps)))
        law_of_points /= law_of_points.sum()
        common = np.flatnonzero(norms <= 3)  # 343 points, each expected at least 5 times
        observed = np.array([seen[points[i]] for i in common])
        expected = law_of_points[common]
        assert runs * expected.min() > 5
        return float(
            chisquare(
                [*observed, runs - observed.sum()], runs * np.array([*expected, 1 - expected.sum()])
            ).pvalue
        )

    assert pvalue(1.0) > 1e-3
    assert pvalue(0.9) < 1e-6
    assert pvalue(1.1) < 1e-6


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1, 30, 1000])
def test_every_epsilon(epsilon: float) -> None:
    law = SupNorm.of((1,) * 17, 2, exact(epsilon))
    noises = []
    for seed in range(1, 61):
        released = release(STAR, epsilon, seed)
        assert released.laws == (law,)
        dtype = np.float64 if law.grid > 1 else np.int64
        assert all(b.dtype == dtype for b in released.blocks.values())
        assert all((b * law.grid == np.rint(b * law.grid)).all() for b in released.blocks.values())
        noises.append(noise_of(released))
    variance = np.square(noises).mean() / law.variance()
    assert 0.75 < variance < 1.3
    tables = release(STAR, epsilon, 1).tables
    for table in tables[:-1]:  # one noise, and tables agree on shared marginals bit for bit
        assert (table.sum(axis=1) == tables[-1]).all()


def test_a_seed_gives_the_same_release_and_another_seed_another() -> None:
    for network in NETWORKS:
        one, two, other = (noise_of(release(network, 1, seed)) for seed in (3, 3, 4))
        assert (one == two).all()
        assert (one != other).any()
    assert (noise_of(release(STAR, 1)) != noise_of(release(STAR, 1))).any()


def test_repeated_releases_have_a_noise_each() -> None:
    noises = drawn(Fraction(1, 100), 300)  # so wide that no two are alike
    assert len(np.unique(noises[:, 0])) > 200
    radii = np.abs(noises).max(axis=1)
    assert radii.mean() == pytest.approx(3 * 200, rel=0.15)  # Gamma of order 3, scale 200


# ---------------------------------------------------------------------- privacy


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
@pytest.mark.parametrize(
    "network",
    [Network.star([2, 2], 2), Network.star([3], 2), Network((2, 2, 2), ((), (), (0, 1)))],
    ids=str,
)
def test_the_loss_is_epsilon_exactly(network: Network, unit: PrivacyUnit) -> None:
    for epsilon in (0.1, 2.0, 40.0):
        found = enumerate_loss(Fourier(noise="joint"), network, 2, epsilon=epsilon, unit=unit)
        assert found.exact
        assert found.within
        assert found.loss == epsilon
    assert enumerate_loss(Fourier(noise="auto"), network, 2, unit=unit).loss == 1.0


def test_a_sensitivity_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CharacterSums, "sup_sensitivity", lambda self, unit: 1)
    found = enumerate_loss(Fourier(noise="joint"), PAIR, 2)
    assert not found.within
    assert found.loss == 2.0


def test_a_grid_that_the_noise_does_not_know_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SupNorm, "steps", property(lambda self: self.scale))
    found = enumerate_loss(Fourier(noise="joint"), PAIR, 2, epsilon=3.0)
    assert found.loss == 3.0 * SupNorm.of((1,) * 3, 2, Fraction(3)).grid > 3


class AllButOne(Noise):
    def add(self, blocks: Any, law: Any) -> Any:
        return (*super().add(blocks, law)[:-1], blocks[-1].astype(float))


def test_a_sum_without_noise_is_caught() -> None:
    assert math.isinf(enumerate_loss(Fourier(noise="joint"), PAIR, 2, noise=AllButOne).loss)


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware"])
def test_nothing_but_the_release_tells_neighbours_apart(inference: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (30, 3)), rng.integers(0, 2, 30)
    X2, y2 = X.copy(), y.copy()
    X2[4], y2[4] = 1 - X[4], 1 - y[4]
    model = classifier(inference, d=3)
    for freeze in ({}, {"freeze": DRAWS}):
        found = replay(model, X, y, X2, y2, **freeze)
        assert found.sound, found.divergences
        assert ("largest character sum", 2.0, 2) in found.shifts


# ---------------------------------------------------------------------- choice


def test_auto_takes_what_has_less_variance() -> None:
    def independent(scale: Fraction, size: int = 17) -> tuple[DiscreteLaplace]:
        return (DiscreteLaplace.of(scale, [size]),)

    assert release(STAR, 1, noise="auto").laws == (SupNorm.of((1,) * 17, 2, Fraction(1)),)
    assert release(STAR, 1, noise="auto", unit=FEATURE).laws == independent(Fraction(4))
    many = Network.star([16] * 5, 2)
    sums = CharacterSums.of(counts_of(many))
    wide = independent(Fraction(sums.sensitivity(RECORD)), sums.size)
    assert release(many, 1, noise="auto").laws == wide
    assert release(STAR, 10**9, noise="auto").laws == independent(Fraction(32, 10**9))
    with pytest.raises(ValueError, match="use noise='independent'"):
        release(STAR, 10**9)
    assert release(STAR, 1, noise="independent").blocks[0,].dtype == np.int64


def test_what_nobody_can_move_needs_no_noise() -> None:
    alone = Network.star([1], 1)
    assert not any(law.variances.any() for law in release(alone, 1).laws)
    constant = Network.star([1, 1], 3)
    nothing = DiscreteLaplace.of(Fraction(0), [2])
    assert release(constant, 1, unit=FEATURE).laws == (nothing,)


def test_the_option_is_checked_before_anything_is_spent() -> None:
    X, y = [[0, 1], [1, 0]], [0, 1]
    with pytest.raises(ValueError, match=r"'noise' parameter of Fourier must be a str among"):
        classifier(d=2, noise="jiont").fit(X, y)
    with pytest.raises(ValueError, match="noise"):
        classifier().set_params(mechanism__nois="joint")


# ---------------------------------------------------------------------- use


def classifier(inference: str = "plug_in", epsilon: float = 1.0, d: int = 8, **options: Any) -> Any:
    return BayesianNaiveBayes(
        epsilon,
        bounds=([0] * d, [1] * d),
        n_bins=2,
        classes=[0, 1],
        inference=inference,
        mechanism=Fourier(**{"noise": "joint", **options}),
    )


def data(n: int = 400, d: int = 8, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return (rng.random((n, d)) < np.linspace(0.1, 0.9, 2 * d).reshape(2, d)[y]).astype(int), y


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware"])
def test_batches_json_and_pickles(inference: str) -> None:
    X, y = data()
    model = classifier(inference).set_params(random_state=0)
    model.partial_fit(X[:200], y[:200])
    for batch in (1, 2):
        for again in (from_json(model.to_json()), pickle.loads(pickle.dumps(model))):
            assert (again.predict_proba(X) == model.predict_proba(X)).all()
            assert again.posterior_.released.laws == model.posterior_.released.laws
        assert [type(law) for law in model.posterior_.released.laws] == [SupNorm] * batch
        if batch == 1:
            model.partial_fit(X[200:], y[200:])
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    "tampered",
    [
        ('"grid":16', '"grid":3'),
        ('"grid":16', '"grid":1'),
        ('"sides":[1,', '"sides":['),
        ('"sides":[1,', '"sides":[0,'),
        ('"SupNorm"', '"ZeroSum"'),
        ('"scale":"2/1"', '"scale":"-2/1"'),
        ('"scale":"2/1"', '"scale":2'),
    ],
    ids=str,
)
def test_a_law_that_does_not_fit_is_refused(tampered: tuple[str, str]) -> None:
    X, y = data()
    text = classifier(inference="noise_aware").set_params(random_state=1).fit(X, y).to_json()
    compact = json.dumps(json.loads(text), separators=(",", ":"))
    assert tampered[0] in compact
    from_json(compact)
    with pytest.raises(ValueError, match="released"):
        from_json(compact.replace(*tampered))


def test_a_grid_search_over_the_noise() -> None:
    X, y = data()
    grid = {"mechanism__noise": ["independent", "joint", "auto"]}
    search = GridSearchCV(classifier(epsilon=0.5), grid, cv=3).fit(X, y)
    assert search.best_params_["mechanism__noise"] in grid["mechanism__noise"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("network", [STAR, NETWORKS[2]], ids=str)
def test_cells_are_non_negative_with_the_promised_probability(network: Network) -> None:
    empty = CountTables(network, tuple(np.zeros(s, np.int64) for s in network.shapes), 0)
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    noise, runs = Noise.of(7), 400
    mechanism, budget = Fourier(noise="joint", stealth=0.8), Budget(exact(1))
    released = [
        carried_out(mechanism, empty, prior, budget, noise).posterior.released for _ in range(runs)
    ]
    assert {r.increment for r in released} == {stealth_increment(network, released[0].laws[0], 0.8)}
    kept = sum(all((t >= 0).all() for t in r.tables) for r in released)
    assert binomtest(kept, runs, 0.8).pvalue > 1e-3
    raised = stealth_increment(network, released[0].laws[0], 0.2)
    assert raised < released[0].increment


def test_bounds_and_plans_know_the_noise() -> None:
    delta, runs = 0.1, 400
    law = SupNorm.of((1,) * 17, 2, Fraction(1))
    bound = table_bound(STAR, 0, law, delta)
    radii = [np.abs(noise_of(release(STAR, 1, s))).max() for s in range(1, runs + 1)]
    beyond = int((3 * np.array(radii) > bound).sum())  # three noisy sums in a table
    assert binomtest(beyond, runs, delta, alternative="greater").pvalue > 1e-3
    assert binomtest(beyond, runs, 2 * delta, alternative="less").pvalue < 1e-2
    X, y = data()
    for noise in ("joint", "auto"):
        model = classifier(noise=noise)
        assert model.utility_bound(delta, n=len(y)) == bound
        assert model.fit(X, y).utility_bound(delta) == bound
    assert classifier(noise="independent").fit(X, y).utility_bound(delta) > 2 * bound


@pytest.mark.parametrize("network", [STAR, NETWORKS[2]], ids=["star", "graph"])
def test_how_much_of_the_bound_tables_use(network: Network) -> None:
    delta, truth = 0.1, counts_of(network).tables
    tables = [replace(release(network, 1, seed), increment=0.0).tables for seed in range(1, 201)]
    law = release(network, 1).laws[0]
    for node, exact_table in enumerate(truth):
        errors = [np.abs(some[node] - exact_table).sum() for some in tables]
        used = np.quantile(errors, 1 - delta) / table_bound(network, node, law, delta)
        assert 0.1 < used < (0.9 if exact_table.ndim == 1 else 0.4)


def test_planning_is_achieved() -> None:
    X, y = data()
    model = classifier().set_params(temperature=1)
    expected = expected_error(model, len(y)).mean
    truth, errors = CountTables.count(STAR, [(X.astype(np.uint8), y)]).tables, []
    for seed in range(1, 41):
        released = model.set_params(random_state=seed).fit(X, y).posterior_.released
        pairs = zip(replace(released, increment=0.0).tables, truth, strict=True)
        errors.append(np.concatenate([np.abs(t - u).ravel() for t, u in pairs]).mean())
    assert np.mean(errors) == pytest.approx(expected, rel=0.1)
    wanted = epsilon_for(model, len(y), expected / 2)
    assert wanted == pytest.approx(2.0, rel=0.1)
