"""One noise for all tables of naive Bayes: its law, its privacy, and when it is used."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.audit.tools import audit_release, enumerate_loss
from benchmarks.audit.tools.releases import released_numbers
from benchmarks.audit.tools.steps import Added
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import ClassRows, DiscreteLaplace, Noise, class_rows
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, PrivacyUnit, exact
from tests.random_networks import count, random_records
from tests.releasing import carried_out, plan_for

PAIR = Network.star([2, 2], 2)
STAR = Network.star([2] * 8, 2)
MIXED = Network.star([3, 7, 1], 3)
TREE = Network((2, 2, 2), ((2,), (0,), ()))
TINY = Fraction(18, 10**9)


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
    mechanism, budget = Laplace(**{"noise": "joint", **options}), Budget(exact(epsilon), unit=unit)
    statistics = counts_of(network)
    plan_for(mechanism, statistics, prior, budget)
    return carried_out(mechanism, statistics, prior, budget, Noise.of(seed)).posterior.released


def noise_of(released: Any) -> list[Any]:
    exact_tables = counts_of(released.network).tables
    return [t - e for t, e in zip(released.tables, exact_tables, strict=True)]


def law_of(network: Network, epsilon: Fraction) -> ClassRows:
    *values, n_classes = network.sizes
    return ClassRows.of(tuple(values), n_classes, 2, epsilon)


def norms(noise: list[Any]) -> Any:
    """Norm of every class's rows."""
    *tables, classes = noise
    return np.max([np.abs(classes), *(np.abs(t).sum(axis=1) for t in tables)], axis=0)


# ---------------------------------------------------------------------- law


@pytest.mark.parametrize("network", [STAR, MIXED, Network.star([4, 2], 1)], ids=str)
@pytest.mark.parametrize("epsilon", [0.001, 1, 30, 1000])
def test_every_epsilon(network: Network, epsilon: float) -> None:
    law = law_of(network, exact(epsilon))
    found = []
    for seed in range(1, 21):
        released = release(network, epsilon, seed)
        assert released.laws == (law,)
        assert released.grid == law.grid
        for table, shape in zip(released.tables, network.shapes, strict=True):
            assert table.dtype == (np.float64 if law.grid > 1 else np.int64)
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


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
@pytest.mark.parametrize(
    "network",
    [PAIR, Network.star([3], 2), Network.star([2, 3, 1], 2), Network.star([3, 2], 1)],
    ids=str,
)
def test_the_loss_is_epsilon_exactly(network: Network, unit: PrivacyUnit) -> None:
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
    monkeypatch.setattr(ClassRows, "steps", property(lambda self: self.scale * self.grid / 2))
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2)
    assert not found.within
    assert found.loss == 2.0


def test_a_sensitivity_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountTables, "class_row_sensitivity", lambda self, unit: 1)
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2)
    assert not found.within
    assert found.loss == 2.0


@pytest.mark.slow
def test_a_grid_that_the_noise_does_not_know_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClassRows, "steps", property(lambda self: self.scale))
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2, epsilon=3.0)
    assert found.loss == 3.0 * law_of(PAIR, Fraction(3)).grid > 3


class OneClass(Noise):
    def add(self, tables: Any, law: Any) -> Any:
        noisy = super().add(tables, law)
        for table, exact_table in zip(noisy, tables, strict=True):
            table[1:] = exact_table[1:]
        return noisy


class SharedByClasses(Noise):
    def add(self, tables: Any, law: Any) -> Any:
        noisy = super().add(tables, law)
        return tuple(t + (z[:1] - t[:1]) for t, z in zip(tables, noisy, strict=True))


class AllButOneCell(Noise):
    def add(self, tables: Any, law: Any) -> Any:
        noisy = super().add(tables, law)
        noisy[0][0, 0] = tables[0][0, 0]
        return noisy


class DifferentSums(Noise):
    """Noise of equal sums hides no difference between the sums of two tables."""

    def add(self, tables: Any, law: Any) -> Any:
        last = tables[0].copy()
        last[:, 1] = 0  # as if values were missing in one table
        return super().add((last, *tables[1:]), law)


@pytest.mark.parametrize("noise", [OneClass, SharedByClasses, AllButOneCell, DifferentSums])
def test_noise_that_hides_too_little_is_caught(noise: type[Noise]) -> None:
    assert math.isinf(enumerate_loss(Laplace(noise="joint"), PAIR, 2, noise=noise).loss)


class RowsApart(Noise):
    """A scale for all tables together is too small for noise of every table's own."""

    def add(self, tables: Any, law: Any) -> Any:
        steps = [law.grid * t for t in tables]
        for c in range(law.n_classes):
            for j, size in enumerate(law.values):
                # whatever stands in for the sampler while laws are read
                [(total, rows)] = class_rows.many_rows([size], law.steps, 1, self._source)
                steps[j][c] += rows[0]
            steps[-1][c] += total
        return tuple(t / law.grid for t in steps)


def test_rows_that_are_drawn_one_by_one_are_caught() -> None:
    assert enumerate_loss(Laplace(noise="joint"), PAIR, 2).loss == 1.0
    found = enumerate_loss(Laplace(noise="joint"), PAIR, 2, noise=RowsApart)
    assert not found.within
    assert found.loss == 2.0  # one for each of two tables


def test_the_loss_of_rows() -> None:
    def law(*centre: int, scale: Fraction = Fraction(3), values: Any = (2, 2)) -> Any:
        return Added(np.array(centre), ClassRows(scale, values, 1, 1))

    zero = law(0, 0, 0, 0, 0)
    assert zero.loss(law(1, 0, 0, 1, 1)) == Fraction(1, 3)
    assert zero.loss(law(1, -1, 0, 0, 0)) == Fraction(2, 3)
    assert zero.loss(law(2, -1, -3, 4, 1)) == Fraction(7, 3)
    assert math.isinf(zero.loss(law(1, 0, 0, 0, 0)))
    assert math.isinf(zero.loss(law(1, 0, 1, 0, 0)))  # another class count
    assert math.isinf(zero.loss(law(0, 0, 0, 0, 0, scale=Fraction(2))))
    assert math.isinf(zero.loss(law(0, 0, 0, 0, 0, values=(3, 1))))
    alone = DiscreteLaplace.of(Fraction(3), [5])
    assert math.isinf(zero.loss(Added(np.zeros(5, int), alone)))
    assert zero.key() != law(1, 0, 0, 1, 1).key()
    assert zero.key() != law(0, 0, 0, 0, 0, values=(3, 1)).key()


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
            planted.setattr(ClassRows, "steps", property(lambda s: s.scale * s.grid / scale))
            found = audit_release(
                Laplace(noise="joint"), *sides, prior, Budget(2), 1000, random_state=0
            )
        return float(found.epsilon)

    assert bound(1) <= 2
    assert bound(4) > 2


# ---------------------------------------------------------------------- choice


def test_auto_takes_what_has_less_variance() -> None:
    cells = [4] * 8 + [2]
    assert release(STAR, 1, noise="auto").laws == (law_of(STAR, Fraction(1)),)
    one_feature, hardly_any = (DiscreteLaplace.of(b, cells) for b in (Fraction(2), TINY))
    assert release(STAR, 1, noise="auto", unit=FEATURE).laws == (one_feature,)
    assert release(STAR, 10**9, noise="auto").laws == (hardly_any,)
    assert release(TREE, 1, noise="auto").independent
    assert release(STAR, 1, noise="independent").tables[0].dtype == np.int64
    with pytest.raises(ValueError, match="use noise='independent'"):
        release(STAR, 10**9)
    with pytest.raises(ValueError, match="use noise='independent'"):
        release(TREE, 1)
    with pytest.raises(ValueError, match="too small"):
        release(STAR, Fraction(1, 10**18))


def test_one_feature_of_a_record() -> None:
    released = release(STAR, 1, unit=FEATURE)
    assert released.laws == (law_of(STAR, Fraction(1)),)


def test_what_nobody_can_move_needs_no_noise() -> None:
    (law,) = release(Network.star([1], 1), 1).laws
    assert not law.variances.any()
    constant = Network.star([1, 1], 3)
    assert [t.tolist() for t in noise_of(release(constant, 1, unit=FEATURE))] == [
        [[0]] * 3,
        [[0]] * 3,
        [0] * 3,
    ]


def test_a_million_billion_records_are_too_many() -> None:
    tables = tuple(np.zeros(shape, np.int64) for shape in STAR.shapes)
    prior = DirichletPrior(STAR, tuple(np.ones(k) for k in STAR.sizes))
    many = CountTables(STAR, tables, 2**58)
    with pytest.raises(ValueError, match="too many records"):
        plan_for(Laplace(noise="joint"), many, prior, Budget(1))
    for noise in ("independent", "auto"):
        plan_for(Laplace(noise=noise), many, prior, Budget(1))


def test_without_privacy_nothing_is_added() -> None:
    released = release(MIXED, math.inf)
    assert released.laws == ()
    assert all((z == 0).all() for z in noise_of(released))
