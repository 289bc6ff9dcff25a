"""Enumeration: within the claim and tight for every mechanism, and blown up by planted faults."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_loss
from benchmarks.audit.tools.steps import Added, Ball, Choice, Fixed, quadratic_range
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.counts import plans, tables
from dpbayes_sklearn.counts.fourier import stealth_increment
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.mechanisms import MAP, Laplace, Mechanism, Sampler
from dpbayes_sklearn.noise import DiscreteLaplace, MatrixNoise, Noise, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.ball import BallNoise
from dpbayes_sklearn.regression.moments import Block, gram
from dpbayes_sklearn.regression.plans import MomentsPlan
from dpbayes_sklearn.schema import Categories, Interval

STAR = Network.star([2, 2], 2)
COLLIDER = Network((2, 2, 2), ((), (), (0, 1)))
DESIGN = Design((Interval(-1, 3),))


def test_noise_uses_up_its_claim_exactly() -> None:
    for mechanism, network in product(["laplace", "fourier"], [STAR, COLLIDER]):
        found = enumerate_loss(mechanism, network, 2, epsilon=2.0)
        assert found.exact
        assert found.loss == 2.0


@pytest.mark.parametrize(
    "mechanism", [Sampler(), Sampler(2, n_points=2), MAP(), MAP(score="posterior")]
)
def test_draws_stay_within(mechanism: Mechanism) -> None:
    found = enumerate_loss(mechanism, Network.star([2], 2), 3, unit="feature", prior=(0.5, 3.0))
    assert found.within
    assert 1 >= found.ratio > (0.2 if getattr(mechanism, "score", "") == "posterior" else 0.9)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "mechanism", ["geometric", "laplace", "laplace_improved", "exponential", "hellinger", "local"]
)
def test_posteriors_of_one_variable_stay_within_the_claim(mechanism: str, k: int) -> None:
    found = enumerate_loss(mechanism, k, 5, epsilon=0.5, prior=0.7)
    assert found.within
    # of two counts, "laplace" releases one but pays for both
    assert found.ratio == pytest.approx(0.5 if (mechanism, k) == ("laplace", 2) else 1, abs=1e-5)
    sides = [np.bincount(np.ravel(side), minlength=k) for side in found.worst_pair]
    assert np.abs(sides[0] - sides[1]).sum() == 2


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "fourier", "sampler", "map"])
@pytest.mark.parametrize("design", [DESIGN, Design((Categories([*"abc"]),), intercept=False)])
def test_steps_of_a_regression_stay_within_the_claim(mechanism: str, design: Design) -> None:
    found = enumerate_loss(mechanism, design, 1, epsilon=2.0)
    assert found.within
    assert not found.exact
    assert found.ratio > 0.6


# ------------------------------------------------------------------ faults that must show


def test_a_scale_too_small_by_a_tenth_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = tables.laplace_scale
    monkeypatch.setattr(tables, "laplace_scale", lambda *a: real(*a) * Fraction(9, 10))
    found = enumerate_loss(Laplace(noise="independent"), STAR, 2)
    assert not found.within
    assert found.loss == pytest.approx(10 / 9)


def test_a_sensitivity_off_by_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = CountTables.sensitivity
    monkeypatch.setattr(CountTables, "sensitivity", lambda self, unit: real(self, unit) - 1)
    assert enumerate_loss(Laplace(noise="independent"), STAR, 2).loss == pytest.approx(6 / 5)


class Bare(Noise):
    def add(self, arrays: Any, law: Any) -> Any:
        return (*super().add(arrays, law)[:-1], arrays[-1])


def test_a_number_without_noise_is_found() -> None:
    found = enumerate_loss("laplace", STAR, 2, noise=Bare)
    assert math.isinf(found.loss)
    assert not found.within
    # no label changes there
    assert enumerate_loss("laplace", STAR, 2, unit="feature", noise=Bare).within


class Together(Noise):
    def of(self, size: int) -> NoiseLaw:
        return BallNoise(Fraction(4), size)

    def add(self, arrays: Any, law: Any) -> Any:
        flat = np.concatenate([np.ravel(array) for array in arrays])
        (noisy,) = super().add([flat], self.of(len(flat)))
        parts = np.split(noisy, np.cumsum([array.size for array in arrays])[:-1])
        return tuple(np.reshape(p, a.shape) for p, a in zip(parts, arrays, strict=True))


class OfAMatrix(Together):
    def of(self, size: int) -> NoiseLaw:
        return MatrixNoise(Fraction(9), (Fraction(1),) * 4)


def test_noise_of_vectors_and_matrices_is_read() -> None:
    apart = Laplace(noise="independent")
    found = enumerate_loss(apart, STAR, 2, noise=Together)
    assert found.exact
    assert found.loss == pytest.approx(math.sqrt(6) / 4)  # of three tables two cells move by one
    assert 0 < enumerate_loss(apart, STAR, 2, noise=OfAMatrix).loss < math.inf


class Shared(Noise):
    def add(self, arrays: Any, law: Any) -> Any:
        noise = super().add(arrays, law)[0].flat[0] - arrays[0].flat[0]
        return tuple(array + noise for array in arrays)


class Unknown(Noise):
    rng = np.random.default_rng(0)

    def add(self, arrays: Any, law: Any) -> Any:
        return tuple(array + self.rng.integers(-9, 9, array.shape) for array in arrays)


class Cut(Noise):
    def add(self, arrays: Any, law: Any) -> Any:
        return tuple(np.minimum(noisy, 9) for noisy in super().add(arrays, law))


@pytest.mark.parametrize("noise", [Shared, Unknown, Cut])
def test_noise_that_is_not_independent_known_and_only_added(noise: type[Noise]) -> None:
    for mechanism in ("laplace", "fourier"):
        assert math.isinf(enumerate_loss(mechanism, STAR, 2, noise=noise).loss)


def test_a_scale_that_depends_on_the_data_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = plans.NoisyTables.release

    def local(self: Any, statistics: CountTables, noise: Any) -> Any:
        more = Fraction(1 + int(statistics.tables[-1][0] == 0))
        law = DiscreteLaplace(tuple(b * more for b in self.law.scales), self.law.numbers)
        return real(replace(self, law=law), statistics, noise)

    monkeypatch.setattr(plans.NoisyTables, "release", local)
    assert math.isinf(enumerate_loss(Laplace(noise="independent"), STAR, 2).loss)


def test_an_exact_number_beside_the_noisy_ones_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaky(ReleasedCounts):
        def __init__(self, network: Any, tables: Any, n: int, *laws: Any) -> None:
            super().__init__(network, tables, exact[0], *laws)

    exact: list[int] = []
    real = plans.NoisyTables.release

    def remembers(self: Any, statistics: Any, noise: Any) -> Any:
        exact[:] = [int(statistics.tables[-1][0])]
        return real(self, statistics, noise)

    monkeypatch.setattr(plans, "ReleasedCounts", Leaky)
    monkeypatch.setattr(plans.NoisyTables, "release", remembers)
    assert math.isinf(enumerate_loss("laplace", STAR, 2).loss)


@pytest.mark.parametrize("factor", [2, 1.5])
def test_a_share_spent_twice_in_a_regression(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Block.law

    def generous(self: Block, epsilon: Fraction, grid: int) -> NoiseLaw:
        return real(self, epsilon * Fraction(factor), grid)

    monkeypatch.setattr(Block, "law", generous)
    assert not enumerate_loss("fourier", DESIGN, 1).within


def test_steps_that_depend_on_the_data_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = MomentsPlan.release

    def twice(self: Any, statistics: Any, noise: Any) -> Any:
        if gram(statistics, 1)[0, -1] > 0:
            real(self, statistics, noise)
        return real(self, statistics, noise)

    monkeypatch.setattr(MomentsPlan, "release", twice)
    with pytest.raises(ValueError, match="steps a release takes depends on the data"):
        enumerate_loss("laplace", DESIGN, 1)


def test_enumeration_leaves_no_trace_in_the_library() -> None:
    network, law = Network.star([2], 2), DiscreteLaplace.of(Fraction(4), [3])
    stealth_increment.cache_clear()
    enumerate_loss("fourier", network, 1)
    after = stealth_increment(network, law, 0.9)
    stealth_increment.cache_clear()
    assert after == stealth_increment(network, law, 0.9) > 0


# ------------------------------------------------------------------ the laws by themselves


def laplace(scale: Fraction) -> DiscreteLaplace:
    return DiscreteLaplace.of(scale, [1])


def test_the_loss_of_noise_is_attained() -> None:
    z = np.arange(-60, 61)
    apart = np.abs(z[:, None] - [0, 4])
    for law, size in (
        (laplace(Fraction(5, 2)), apart),
        (SupNorm(Fraction(5, 2), (3,)), -(-apart // 3)),
    ):
        one, other = (Added(np.array([c]), law) for c in (0, 4))
        ratios = (size[:, 1] - size[:, 0]) / 2.5
        assert one.loss(other) == other.loss(one) == pytest.approx(ratios.max())
    narrow, wide = (Added(np.array([0]), laplace(Fraction(b))) for b in (1, 2))
    assert math.isinf(narrow.loss(wide))
    exact = [Added(np.array([c]), laplace(Fraction(0))) for c in (0, 1)]
    assert math.isinf(exact[0].loss(exact[1]))


def test_the_loss_of_a_choice_has_a_direction() -> None:
    one, other = (Choice(np.array([w], np.uint64)) for w in ([1, 3, 4], [1, 1, 6]))
    assert one.ratio(other) == 3
    assert other.ratio(one) == Fraction(3, 2)
    assert one.loss(other) == pytest.approx(math.log(3))
    assert math.isinf(one.loss(Choice(np.array([[0, 4, 4]], np.uint64))))
    assert Fixed(b"a").loss(Fixed(b"a")) == 0
    assert math.isinf(Fixed(b"a").loss(Fixed(b"b")))
    noise = Added(np.array([0]), laplace(Fraction(1)))
    for law in (one, noise, Ball(np.eye(1), np.zeros(1), 1.0, 1)):
        assert math.isinf(law.loss(Fixed(b"a")))


def test_the_range_of_a_quadratic_is_never_missed() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        half, g, radius = rng.normal(size=(2, 2)), rng.normal(size=2), rng.uniform(0.1, 3)
        angle, reach = np.meshgrid(np.linspace(0, 2 * np.pi, 400), np.linspace(0, radius, 60))
        w = np.stack([reach * np.cos(angle), reach * np.sin(angle)], axis=-1).reshape(-1, 2)
        values = 0.5 * ((w @ (half + half.T)) * w).sum(axis=1) + w @ g
        found = quadratic_range(half + half.T, g, radius)
        assert np.ptp(values) <= found <= np.ptp(values) * 1.02
    ball = Ball(np.eye(2), np.zeros(2), 1.0, 3)
    assert ball.loss(ball) == 0
    assert ball.loss(Ball(np.eye(2), np.ones(2), 1.0, 3)) == pytest.approx(3 * 2 * math.sqrt(2))


def test_what_is_no_structure_is_refused() -> None:
    with pytest.raises(TypeError, match="structure must be a Network"):
        enumerate_loss("laplace", "star", 2)
    with pytest.raises(ValueError, match="no two neighbouring"):
        enumerate_loss("geometric", 3, 2, unit="feature")
