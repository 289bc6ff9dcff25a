"""The sampler's public choices, and draws that lie on its public grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpbayes_sklearn.counts.dirichlet import (
    DirichletPosterior,
    DirichletPrior,
    mode_law,
    sampler_law,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import log_odds_of, split_tree
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import MAP, Sampler
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, Budget, PrivacyUnit, exact
from tests.releasing import carried_out, plan_for

STAR = Network.star([2, 3], 2)


def prior_of(network: Network = STAR, alpha: float = 1.0) -> DirichletPrior:
    return DirichletPrior(network, tuple(np.full(k, alpha) for k in network.sizes))


def counts_of(network: Network = STAR, n: int = 100) -> CountTables:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n) for k in network.sizes], axis=1)
    return CountTables.count(network, [(codes[:, :-1].astype(np.uint8), codes[:, -1])])


def budget(epsilon: Any, unit: PrivacyUnit = RECORD) -> Budget:
    return Budget(exact(epsilon), unit=unit)


@pytest.mark.parametrize("mechanism", [Sampler(5), Sampler(omega=0.3, n_points=6), MAP()])
def test_draws_lie_on_the_public_grid(mechanism: Any) -> None:
    release = carried_out(mechanism, counts_of(), prior_of(), budget(1), Noise())
    draws = release.posterior.draws
    n_draws = getattr(mechanism, "n_samples", 1)
    law = sampler_law if isinstance(mechanism, Sampler) else mode_law
    grid = law(mechanism, prior_of(), 100, budget(1)).grid
    for table, shape in zip(draws, STAR.shapes, strict=True):
        assert table.shape == (n_draws, *shape)
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-12)
        for split in split_tree(shape[-1]):
            below = table[..., split.start : split.stop].sum(axis=-1)
            left = table[..., split.start : split.middle].sum(axis=-1) / below
            distance = np.abs(left[..., None] - grid.left).min(axis=-1)
            assert distance.max() < 1e-12
            assert ((left > grid.omega - 1e-12) & (left < 1 - grid.omega + 1e-12)).all()
    assert release.posterior.weights.sum() == pytest.approx(100)
    assert release.guarantee.epsilon == 1


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
def test_the_plan_uses_its_budget(unit: PrivacyUnit) -> None:
    for epsilon in (0.01, 0.5, 3.0):
        plan = sampler_law(Sampler(omega=0.1), prior_of(), 200, budget(epsilon, unit))
        assert 0 < plan.tau < 1
        assert 0.99999 * epsilon < plan.loss <= epsilon


def test_tempering_falls_with_the_number_of_draws_and_rises_with_epsilon() -> None:
    taus = [sampler_law(Sampler(n, omega=0.1), prior_of(), 200, budget(1)).tau for n in (1, 2, 10)]
    assert taus[0] > taus[1] > taus[2]
    # where tau is small the loss is nearly linear in it: 10 draws cost 10 times one draw
    assert taus[2] * 10 == pytest.approx(taus[0], rel=0.3)
    more = [sampler_law(Sampler(omega=0.1), prior_of(), 200, budget(e)).tau for e in (0.1, 1, 10)]
    assert more[0] < more[1] < more[2]
    # the exact calibration allows more than the closed form
    closed_form = 1 / (2 * (1 + 2 + 1) * log_odds_of(0.1))
    assert taus[0] > closed_form


def test_the_truncation_shrinks_where_the_budget_allows_the_whole_posterior() -> None:
    plan = sampler_law(Sampler(), prior_of(), 50, budget(40))
    assert plan.tau == 1
    assert plan.grid.omega < 0.01
    assert plan.loss <= 40
    fixed = sampler_law(Sampler(omega=0.1), prior_of(), 50, budget(40))
    assert fixed.tau == 1
    assert fixed.grid.omega == 0.1


def test_one_feature_and_one_draw_as_in_the_closed_form() -> None:
    # one Boolean feature as the unit: omega = 1 / (1 + e^(epsilon / 2)) is always private
    network = Network.star([2], 2)
    for epsilon in (0.5, 1.0, 4.0):
        omega = 1 / (1 + np.exp(epsilon / 2))
        plan = sampler_law(Sampler(omega=omega), prior_of(network), 50, budget(epsilon, FEATURE))
        assert plan.tau == 1
        assert 0.5 * epsilon < plan.loss <= epsilon


@pytest.mark.parametrize(
    "mechanism", [Sampler(), Sampler(1000), MAP(), MAP(score="posterior")], ids=str
)
def test_a_budget_below_the_rounding_is_refused_before_anything_is_spent(mechanism: Any) -> None:
    with pytest.raises(ValueError, match=r"epsilon=1e-09 is too small .* use mechanism='laplace'"):
        plan_for(mechanism, counts_of(), prior_of(), budget(1e-9))
    plan_for(mechanism, counts_of(), prior_of(), budget(1))
    plan_for(mechanism, counts_of(), prior_of(), budget(float("inf")))


def test_without_privacy_bayes_is_exact() -> None:
    for mechanism in (Sampler(3), MAP(), MAP(score="posterior")):
        posterior = carried_out(
            mechanism, counts_of(), prior_of(), budget(float("inf")), Noise()
        ).posterior
        assert isinstance(posterior, DirichletPosterior)
        for got, table in zip(posterior.concentrations, counts_of().tables, strict=True):
            assert (got == 1 + table).all()


def test_the_plan_knows_the_data_by_their_number_only() -> None:
    first, second = counts_of(n=100), counts_of(n=100)
    laws = [sampler_law(Sampler(), prior_of(), c.n, budget(1)) for c in (first, second)]
    assert laws[0][:2] == laws[1][:2]
    other = CountTables(STAR, tuple(t[::-1].copy() for t in first.tables), first.n)
    assert (other.tables[0] != first.tables[0]).any()
    grids = [
        np.unique(
            carried_out(
                Sampler(n_points=3, omega=0.2), c, prior_of(), budget(1), Noise.of(1)
            ).posterior.draws[2]
        )
        for c in (first, other)
    ]
    assert all(set(g.round(12)) <= {0.2, 0.5, 0.8} for g in grids)


def test_draws_follow_the_tempered_posterior() -> None:
    network = Network.star([2], 1)
    counts = CountTables(network, (np.array([[90, 10]]), np.array([100])), 100)
    mechanism = Sampler(20_000, omega=0.1, n_points=9)
    posterior = carried_out(
        mechanism, counts, prior_of(network, 0.7), budget(4000), Noise.of(4)
    ).posterior
    grid, tau, *_ = sampler_law(mechanism, prior_of(network, 0.7), 100, budget(4000))
    assert 0 < tau < 1
    left = posterior.draws[0][:, 0, 0]
    seen = np.bincount(np.abs(left[:, None] - grid.left).argmin(axis=1), minlength=9)
    for factor, accepted in ((1.0, True), (0.9, False), (1.1, False)):
        law = grid.law(0.7 + factor * tau * 90, 0.7 + factor * tau * 10)
        pvalue = stats.chisquare(seen, 20_000 * law).pvalue
        assert (pvalue > 1e-3) if accepted else (pvalue < 1e-6)
