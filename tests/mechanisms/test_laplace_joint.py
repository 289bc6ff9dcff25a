"""One noise for all tables of naive Bayes: its law, its privacy, and when it is used."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpbayes_sklearn.audit import audit_release, enumerate_loss
from dpbayes_sklearn.audit._laws import Noise
from dpbayes_sklearn.audit._laws import RowNoise as ReadRowNoise
from dpbayes_sklearn.audit.releases import released_numbers
from dpbayes_sklearn.laws.class_rows import RowNoise
from dpbayes_sklearn.mechanisms import Laplace, _row_noise, laplace
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.privacy.budget import Budget, exact
from dpbayes_sklearn.statistics.counts import CountTables
from dpbayes_sklearn.statistics.network import Network

PAIR = Network.star([2, 2], 2)
STAR = Network.star([2] * 8, 2)
MIXED = Network.star([3, 7, 1], 3)
TREE = Network((2, 2, 2), ((2,), (0,), ()))


def counts_of(network: Network, n: int = 60) -> CountTables:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n) for k in network.sizes], axis=1)
    return CountTables.count(network, [(codes[:, :-1].astype(np.uint8), codes[:, -1])])


def release(
    network: Network, epsilon: Any, seed: int | None = None, unit: str = "record", **options: Any
) -> Any:
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    mechanism, budget = Laplace(**{"noise": "joint", **options}), Budget(exact(epsilon), unit=unit)
    statistics = counts_of(network)
    mechanism.preflight(statistics, prior, budget)
    return mechanism.release(statistics, prior, budget, random_source(seed)).posterior.released


def noise_of(released: Any) -> list[Any]:
    exact_tables = counts_of(released.network).tables
    return [t - e for t, e in zip(released.tables, exact_tables, strict=True)]


def norms(noise: list[Any]) -> Any:
    """Norm of every class's rows."""
    *tables, classes = noise
    return np.max([np.abs(classes), *(np.abs(t).sum(axis=1) for t in tables)], axis=0)


# ---------------------------------------------------------------------- law


@pytest.mark.parametrize("network", [STAR, MIXED, Network.star([4, 2], 1)], ids=str)
@pytest.mark.parametrize("epsilon", [0.001, 1, 30, 1000])
def test_every_epsilon(network: Network, epsilon: float) -> None:
    law = RowNoise.of(network.sizes[:-1], 2, exact(epsilon))
    found = []
    for seed in range(1, 21):
        released = release(network, epsilon, seed)
        assert released.scales == ((law,),) * len(network.sizes)
        assert released.grid == law.grid
        for table, shape in zip(released.tables, network.shapes, strict=True):
            assert table.dtype == np.float64
            assert table.shape == shape
            assert (table * law.grid == np.rint(table * law.grid)).all()
        for table in released.tables[:-1]:  # all tables agree on the class totals, bit for bit
            assert (table.sum(axis=1) == released.tables[-1]).all()
        found.extend(norms(noise_of(released)))
    order = 1 + sum(size - 1 for size in network.sizes[:-1])  # Gamma, up to the lattice
    mean, spread = order * float(law.scale), float(law.scale) * (order / len(found)) ** 0.5
    assert abs(np.mean(found) - mean) < 4.5 * spread + 1.5 / law.grid


def test_classes_and_repeated_releases_have_a_noise_each() -> None:
    prior = DirichletPrior(PAIR, (np.ones(2),) * 3)
    statistics, budget = counts_of(PAIR), Budget(Fraction(1, 100))
    numbers = released_numbers(Laplace(noise="joint"), statistics, prior, budget, 150, 5)
    noise = numbers - np.concatenate([t.ravel() for t in statistics.tables])
    first, second = noise[:, [0, 1, 4, 5]], noise[:, [2, 3, 6, 7]]  # the rows of either class
    assert (first[:, 0] + first[:, 1] == first[:, 2] + first[:, 3]).all()
    assert (first[:, 0] + first[:, 1] == noise[:, 8]).all()
    assert (second[:, 2] + second[:, 3] == noise[:, 9]).all()
    for column in noise.T:  # so wide that hardly any two are alike
        assert len(np.unique(column)) > 100
    assert abs(np.corrcoef(noise[:, 8], noise[:, 9])[0, 1]) < 0.3
    radii = np.abs(first).reshape(-1, 2, 2).sum(axis=2).max(axis=1)
    assert radii.mean() == pytest.approx(3 * 200, rel=0.2)


def test_a_seed_gives_the_same_release_and_another_seed_another() -> None:
    one, two, other = (
        np.hstack([t.ravel() for t in release(MIXED, 1, s).tables]) for s in (3, 3, 4)
    )
    assert (one == two).all()
    assert (one != other).any()
    assert (release(STAR, 1).tables[0] != release(STAR, 1).tables[0]).any()


# ---------------------------------------------------------------------- privacy


@pytest.mark.parametrize("unit", ["record", "feature"])
@pytest.mark.parametrize(
    "network",
    [PAIR, Network.star([3], 2), Network.star([2, 3, 1], 2), Network.star([3, 2], 1)],
    ids=str,
)
def test_the_loss_is_epsilon_exactly(network: Network, unit: str) -> None:
    for epsilon in (0.1, 2.0, 40.0):
        found = enumerate_loss(Laplace(noise="joint"), network, 2, epsilon=epsilon, unit=unit)
        assert found.exact
        assert found.within
        assert found.loss == epsilon
    assert enumerate_loss(Laplace(noise="auto"), network, 2, unit=unit).within


def test_three_records_and_no_features() -> None:
    assert enumerate_loss(Laplace(noise="joint"), PAIR, 3).loss == 1.0
    assert enumerate_loss(Laplace(noise="joint"), Network.star([], 3), 2).loss == 1.0


def test_half_the_scale_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowNoise, "steps", property(lambda self: self.scale * self.grid / 2))
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2)
    assert not found.within
    assert found.loss == 2.0


def test_a_movement_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountTables, "row_movement", lambda self, unit: 1)
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2)
    assert not found.within
    assert found.loss == 2.0


def test_a_grid_that_the_noise_does_not_know_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowNoise, "steps", property(lambda self: self.scale))
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2, epsilon=3.0)
    assert found.loss == 3.0 * RowNoise.of((2, 2), 2, Fraction(3)).grid > 3


def test_a_class_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = laplace.with_row_noise

    def first_class_only(statistics: Any, law: Any, source: Any) -> Any:
        noisy = real(statistics, law, source)
        for table, exact_table in zip(noisy, statistics.tables, strict=True):
            table[1:] = exact_table[1:]
        return noisy

    monkeypatch.setattr(laplace, "with_row_noise", first_class_only)
    assert math.isinf(enumerate_loss(Laplace(noise="joint"), PAIR, 2).loss)


def test_a_noise_that_classes_share_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = laplace.with_row_noise

    def same_for_all(statistics: Any, law: Any, source: Any) -> Any:
        noisy = real(statistics, law, source)
        return tuple(t + (z[:1] - t[:1]) for t, z in zip(statistics.tables, noisy, strict=True))

    monkeypatch.setattr(laplace, "with_row_noise", same_for_all)
    assert math.isinf(enumerate_loss(Laplace(noise="joint"), PAIR, 2).loss)


def test_rows_that_are_drawn_one_by_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scale for all tables together is too small for noise of every table's own."""

    def with_rows_apart(statistics: Any, law: Any, source: Any) -> Any:
        tables = [law.grid * t for t in statistics.tables]
        for c in range(statistics.network.sizes[-1]):
            for j, size in enumerate(law.sizes):
                # whatever stands in for the sampler while laws are read
                [(total, rows)] = _row_noise.many_rows([size], law.steps, 1, source)
                tables[j][c] += rows[0]
            tables[-1][c] += total
        return tuple(t / law.grid for t in tables)

    assert enumerate_loss(Laplace(noise="joint"), PAIR, 2).loss == 1.0
    monkeypatch.setattr(laplace, "with_row_noise", with_rows_apart)
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2)
    assert not found.within
    assert found.loss == 2.0  # one for each of two tables


def test_a_cell_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = laplace.with_row_noise

    def all_but_one(statistics: Any, law: Any, source: Any) -> Any:
        noisy = real(statistics, law, source)
        noisy[0][0, 0] = statistics.tables[0][0, 0]
        return noisy

    monkeypatch.setattr(laplace, "with_row_noise", all_but_one)
    assert math.isinf(enumerate_loss(Laplace(noise="joint"), PAIR, 2).loss)


def test_tables_that_do_not_agree_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of equal sums hides no difference between the sums of two tables."""
    real = laplace.with_row_noise

    def missing(statistics: Any, law: Any, source: Any) -> Any:
        last = statistics.tables[0].copy()
        last[:, 1] = 0  # as if values were missing in one table
        broken = CountTables(statistics.network, (last, *statistics.tables[1:]), statistics.n)
        return real(broken, law, source)

    monkeypatch.setattr(laplace, "with_row_noise", missing)
    assert math.isinf(enumerate_loss(Laplace(noise="joint"), PAIR, 2).loss)


def test_the_loss_of_rows() -> None:
    def law(*centre: int, scale: Fraction = Fraction(3), rows: Any = (0, 0, 1, 1, 2)) -> Any:
        return ReadRowNoise(np.array(centre), scale, rows)

    zero = law(0, 0, 0, 0, 0)
    assert zero.loss(law(1, 0, 0, 1, 1)) == Fraction(1, 3)
    assert zero.loss(law(1, -1, 0, 0, 0)) == Fraction(2, 3)
    assert zero.loss(law(2, -1, -3, 4, 1)) == Fraction(7, 3)
    assert math.isinf(zero.loss(law(1, 0, 0, 0, 0)))
    assert math.isinf(zero.loss(law(1, 0, 1, 0, 0)))  # another class count
    assert math.isinf(zero.loss(law(0, 0, 0, 0, 0, scale=Fraction(2))))
    assert math.isinf(zero.loss(law(0, 0, 0, 0, 0, rows=(0, 0, 0, 1, 2))))
    assert math.isinf(zero.loss(Noise(np.zeros(5, int), Fraction(3))))
    assert zero.key() != law(1, 0, 0, 1, 1).key()
    assert zero.key() != law(0, 0, 0, 0, 0, rows=(0, 0, 0, 1, 2)).key()


def test_attacks_from_outside_stay_below_the_claim_and_catch_half_the_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one_feature = Network.star([2], 2)
    prior = DirichletPrior(one_feature, (np.ones(2),) * 2)
    sides = [
        CountTables.count(one_feature, [(np.array([[x]], np.uint8), np.array([x]))]) for x in (1, 0)
    ]

    def bound(scale: int) -> float:
        with monkeypatch.context() as planted:
            planted.setattr(RowNoise, "steps", property(lambda s: s.scale * s.grid / scale))
            found = audit_release(
                Laplace(noise="joint"), *sides, prior, Budget(2), 1500, random_state=0
            )
        return float(found.epsilon)

    assert bound(1) <= 2
    assert bound(4) > 2


# ---------------------------------------------------------------------- choice


def test_auto_takes_what_has_less_variance() -> None:
    joint = RowNoise.of((2,) * 8, 2, Fraction(1))
    assert release(STAR, 1, noise="auto").scales == ((joint,),) * 9
    assert release(STAR, 1, noise="auto", unit="feature").scales == ((Fraction(2),),) * 9
    assert release(STAR, 10**9, noise="auto").scales == ((Fraction(18, 10**9),),) * 9
    assert release(TREE, 1, noise="auto").independent
    assert release(STAR, 1, noise="independent").tables[0].dtype == np.int64
    with pytest.raises(ValueError, match="use noise='independent'"):
        release(STAR, 10**9)
    with pytest.raises(ValueError, match="use noise='independent'"):
        release(TREE, 1)
    with pytest.raises(ValueError, match="too small"):
        release(STAR, Fraction(1, 10**18))


def test_one_feature_of_a_record() -> None:
    released = release(STAR, 1, unit="feature")
    assert released.scales == ((RowNoise.of((2,) * 8, 2, Fraction(1)),),) * 9


def test_what_nobody_can_move_needs_no_noise() -> None:
    assert not any(release(Network.star([1], 1), 1).scales)
    constant = Network.star([1, 1], 3)
    assert [t.tolist() for t in noise_of(release(constant, 1, unit="feature"))] == [
        [[0]] * 3,
        [[0]] * 3,
        [0] * 3,
    ]


def test_a_million_billion_records_are_too_many() -> None:
    tables = tuple(np.zeros(shape, np.int64) for shape in STAR.shapes)
    prior = DirichletPrior(STAR, tuple(np.ones(k) for k in STAR.sizes))
    many = CountTables(STAR, tables, 2**58)
    with pytest.raises(ValueError, match="too many records"):
        Laplace(noise="joint").preflight(many, prior, Budget(1))
    for noise in ("independent", "auto"):
        Laplace(noise=noise).preflight(many, prior, Budget(1))


def test_without_privacy_nothing_is_added() -> None:
    released = release(MIXED, math.inf)
    assert not any(released.scales)
    assert all((z == 0).all() for z in noise_of(released))
