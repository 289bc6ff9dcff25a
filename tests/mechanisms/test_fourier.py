"""Noise in the Fourier domain: scale, consistency, stealth."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.fourier import (
    CharacterSums,
    paper_increment,
    stealth_increment,
    sum_count,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Fourier
from dpbayes_sklearn.noise import DiscreteLaplace, Noise
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace_pmf
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, PrivacyUnit, exact
from tests.releasing import carried_out


def counts_of(network: Network, n: int = 60) -> CountTables:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n) for k in network.sizes], axis=1)
    return CountTables.count(network, [(codes[:, :-1].astype(np.uint8), codes[:, -1])])


def release(
    network: Network,
    epsilon: Any,
    unit: PrivacyUnit = RECORD,
    seed: int | None = None,
    **options: Any,
) -> Any:
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    budget = Budget(exact(epsilon), unit=unit)
    mechanism = Fourier(**{"noise": "independent"} | options)
    return carried_out(mechanism, counts_of(network), prior, budget, Noise.of(seed))


BOOLEAN = Network.star([2] * 4, 2)
NETWORKS = [
    BOOLEAN,
    Network.star([3, 7, 1], 3),
    Network((2, 3, 4, 2), ((), (0,), (0, 1), (0, 2))),
    Network((2, 2, 3, 2), ((3,), (0, 3), (1, 0), ())),
]


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("epsilon", [0.1, Fraction(1, 3), 5])
@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_the_scale_is_sensitivity_over_epsilon(
    network: Network, epsilon: Any, unit: PrivacyUnit
) -> None:
    posterior = release(network, epsilon, unit).posterior
    sums = CharacterSums.of(counts_of(network))
    (law,) = posterior.released.laws
    assert law == DiscreteLaplace.of(sums.sensitivity(unit) / exact(epsilon), [sums.size])
    for support, block in posterior.released.blocks.items():
        assert block.dtype == np.int64  # every released number is an integer
        assert block.shape == sums.blocks[support].shape
    if network is BOOLEAN:
        assert law.scales == ((16 if unit == RECORD else 4) / exact(epsilon),)


def test_the_noise_follows_its_law_and_a_scale_five_percent_off_is_rejected() -> None:
    network = Network.star([8] * 20, 50)  # 7,196 sums
    sums = CharacterSums.of(counts_of(network))
    scale = Fraction(sums.sensitivity(RECORD), 200)
    noise = []
    for seed in range(8):
        blocks = release(network, 200, seed=seed, stealth=0.0).posterior.released.blocks
        noise += [(blocks[s] - sums.blocks[s]).ravel() for s in blocks]
    flat = np.concatenate(noise)

    def pvalue(factor: float) -> float:
        edge = int(4 * scale)
        inside = discrete_laplace_pmf(np.arange(-edge, edge + 1), factor * float(scale))
        law = np.array([(1 - inside.sum()) / 2, *inside, (1 - inside.sum()) / 2])
        seen = np.bincount(np.clip(flat, -edge - 1, edge + 1) + edge + 1, minlength=len(law))
        return float(stats.chisquare(seen, flat.size * law).pvalue)

    assert flat.size > 50_000
    assert pvalue(1) > 1e-3
    assert pvalue(0.95) < 1e-6
    assert pvalue(1.05) < 1e-6


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("increment", ["calibrated", "paper"])
@pytest.mark.parametrize("epsilon", [0.07, 1.3])
def test_tables_agree_bit_for_bit(network: Network, increment: str, epsilon: float) -> None:
    options = {"increment": increment, "t": 0.05}  # noise and increment of the same size
    for seed in range(1, 6):
        tables = release(network, epsilon, seed=seed, **options).posterior.released.tables
        for (f, a), (g, b) in combinations(zip(network.families, tables, strict=True), 2):
            shared = sorted(set(f) & set(g))
            assert (marginal(a, f, shared) == marginal(b, g, shared)).all()


def marginal(table: Any, family: tuple[int, ...], keep: list[int]) -> Any:
    table = table.sum(axis=tuple(a for a, u in enumerate(family) if u not in keep))
    inside = [u for u in family if u in keep]
    return np.transpose(table, [inside.index(u) for u in keep])


def test_without_privacy_the_counts_are_exact() -> None:
    for network in NETWORKS:
        got = release(network, float("inf")).posterior.concentrations
        assert all((g == 1 + t).all() for g, t in zip(got, counts_of(network).tables, strict=True))


# ---------------------------------------------------------------------- stealth


@pytest.mark.parametrize("network", [BOOLEAN, Network.star([3, 5], 3), NETWORKS[2]])
def test_cells_are_non_negative_with_the_promised_probability(network: Network) -> None:
    # empty tables are the hardest case: all that a cell has is its noise and its increment
    empty = CountTables(network, tuple(np.zeros(s, np.int64) for s in network.shapes), 0)
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    noise, runs = Noise.of(77), 400
    released = [
        carried_out(Fourier(), empty, prior, Budget(exact(1)), noise).posterior.released
        for _ in range(runs)
    ]
    for stealth in (0.5, 0.9, 0.98):
        increment = stealth_increment(network, released[0].laws[0], stealth)
        assert stealth != 0.9 or {r.increment for r in released} == {increment}
        raised = [replace(r, increment=increment).tables for r in released]
        share = sum(all((t >= 0).all() for t in tables) for tables in raised) / runs
        # three standard errors of these runs and of the 2000 behind the calibration
        error = 3 * np.sqrt(stealth * (1 - stealth) * (1 / runs + 1 / 2000))
        assert stealth - error <= share <= stealth + error + 0.01


def test_the_default_increment_is_the_calibrated_one() -> None:
    default, named, paper = (
        release(BOOLEAN, 1, seed=1, **options).posterior.released
        for options in ({}, {"increment": "calibrated"}, {"increment": "paper"})
    )
    law = DiscreteLaplace.of(16, [sum_count(BOOLEAN)])
    assert default.increment == named.increment == stealth_increment(BOOLEAN, law, 0.9)
    assert paper.increment == round(paper_increment(BOOLEAN, 1.0, 2.3)) > 5 * named.increment
    with pytest.raises(ValueError, match="'increment' parameter of Fourier"):
        release(BOOLEAN, 1, increment="scaled")


def test_less_than_the_increment_would_not_do() -> None:
    law, wide = (DiscreteLaplace.of(Fraction(b), [sum_count(BOOLEAN)]) for b in (16, 1600))
    full = stealth_increment(BOOLEAN, law, 0.9)
    assert full > 1.5 * stealth_increment(BOOLEAN, law, 0.5) > 0
    assert stealth_increment(BOOLEAN, law, 0.0) >= 0
    # noise on the lattice grows with its scale, nearly in proportion
    assert stealth_increment(BOOLEAN, wide, 0.9) == pytest.approx(100 * full, rel=0.1)
    assert full < paper_increment(BOOLEAN, 1.0, 2.3) / 5


@pytest.mark.parametrize(("d", "expected"), [(1, 16), (4, 100), (16, 34**2)])
def test_the_rule_of_the_paper(d: int, expected: int) -> None:
    network = Network.star([2] * d, 2)
    assert paper_increment(network, 1.0, t=1.0) == 4 * expected  # (2d + 2)^2 coefficients
    assert paper_increment(network, 0.5, t=2.0) == 16 * expected
    options = {"increment": "paper", "t": 1.5}
    released = release(network, 0.7, **options).posterior.released
    rule = paper_increment(network, 0.7, 1.5)
    assert rule <= released.increment < rule + 1  # raised to a whole number


def test_cells_are_clipped_only_where_they_are_negative() -> None:
    clipped = 0
    for seed in range(40):
        released = release(BOOLEAN, 0.5, seed=seed + 1, stealth=0.5).posterior.released
        for table, kept in zip(released.tables, released.clipped(), strict=True):
            assert (kept == np.where(table < 0, 0, table)).all()
            clipped += int((table < 0).sum())
    assert clipped > 0


def test_the_increment_does_not_depend_on_the_data() -> None:
    prior = DirichletPrior(BOOLEAN, (np.ones(2),) * 5)
    increments = {
        carried_out(Fourier(), c, prior, Budget(exact(1)), Noise()).posterior.released.increment
        for c in (counts_of(BOOLEAN, 60), counts_of(BOOLEAN, 7), counts_of(BOOLEAN, 900))
    }
    assert len(increments) == 1
