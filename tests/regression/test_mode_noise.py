"""Noise of a mode in the hull of its records, and Gaussian noise: exact densities of neighbours."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from dpbayes_sklearn.regression.mode import block_shape, plan_mode

from dpbayes_sklearn import BayesianLinearRegression, BudgetAccountant
from dpbayes_sklearn.audit._steps import Mode
from dpbayes_sklearn.audit.ratios import halved
from dpbayes_sklearn.audit.statistical import bound_from_outcomes
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.noise import ClassRows, DiscreteGaussian, Noise, SupNorm
from dpbayes_sklearn.noise.gradient import gaussian_noise
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit, exact
from dpbayes_sklearn.regression import mode as module
from dpbayes_sklearn.schema import Categories, Interval

ADDED = PrivacyUnit("record", neighbours="add_remove")
LEVELS = Design((Categories([*"abc"]),), intercept=False)
SLOPE = Design((Interval(-1, 1),), intercept=False)
DELTA = Fraction(1, 1000)


def plan_for(design, epsilon, n=2, unit=RECORD, delta=Fraction(0)):
    nothing = np.zeros(design.width + design.intercept)
    return plan_mode(design, n, nothing, Fraction(epsilon), unit, delta)


@pytest.fixture
def gaussian(monkeypatch):
    """Take Gaussian noise, also where it is larger."""

    def noise(design, grid, epsilon, delta, unit):
        return gaussian_noise(block_shape(design), epsilon, delta, unit)

    monkeypatch.setattr(module, "_gradient_noise", noise)


def law_of(rows, plan, w):
    log = Mode(np.array(rows), plan).log_density(w)
    weights = np.exp(log - log.max()) * SPACING
    return weights / weights.sum()


def beyond(laws, epsilon):
    """Return the largest delta at epsilon between any two laws."""
    return max(
        float(np.clip(p - math.exp(epsilon) * q, 0, None).sum()) for p, q in product(laws, laws)
    )


LEVEL_ROWS = [(*map(float, np.eye(3)[k]), t) for k in range(3) for t in (-1.0, 1.0)]
GRID = np.stack(np.meshgrid(*[np.linspace(-6, 6, 61)] * 3), axis=-1).reshape(-1, 3)


def test_the_law_follows_from_the_columns():
    some = (Interval(-1, 1),) * 3
    assert isinstance(plan_for(Design(some), 1).gradient_noise, SupNorm)
    mixed = plan_for(Design((*some, Categories([*"abcd"]), Categories([*"ab"]))), 1)
    assert isinstance(mixed.gradient_noise, ClassRows)
    assert mixed.gradient_noise.values == (2, 2, 2, 4, 2)
    many = plan_for(Design((Interval(-1, 1),) * 100), 1, delta=Fraction(1, 10**6))
    assert isinstance(many.gradient_noise, DiscreteGaussian)
    assert many.needs_delta
    pure = plan_for(Design((Interval(-1, 1),) * 100), 1)
    assert 0.4 < many.noise[1] / pure.noise[1] < 0.6


def test_stated_variances_are_those_of_the_noise():
    domains = (Interval(-1, 1), Categories([*"abc"]), Categories([*"xy"]))
    for plan in (plan_for(Design(domains), 1), plan_for(Design((*domains, *domains), False), 1)):
        law = plan.gradient_noise
        drawn = Noise.of(0).draw(law, 4000)
        found = [plan.perturbation(*np.split(z, np.cumsum(law.sizes)[:-1])) for z in drawn]
        assert np.mean(np.square(found), axis=0) == pytest.approx(plan.noise, rel=0.15)


def test_densities_of_levels_stay_within_epsilon():
    """All pairs of a world of levels, at all coefficients; with half of the noise they do not."""
    plan = plan_for(LEVELS, 2)
    others = LEVEL_ROWS[0]
    for used, within in ((plan, True), (plan._replace(gradient_noise=_half(plan)), False)):
        logs = [Mode(np.array([others, row]), used).log_density(GRID) for row in LEVEL_ROWS]
        worst = max(float(np.abs(p - q).max()) for p, q in product(logs, logs))
        worst += float(2 / used.jitter.scale)
        assert (worst <= 2) == within
        assert worst > 0.7 * 2
    bounds = [Mode(np.array([others, row]), plan) for row in LEVEL_ROWS]
    losses = [a.loss(b) for a, b in product(bounds, bounds)]
    assert worst / 2 <= max(losses) <= 2


def _half(plan):
    return halved(plan.gradient_noise)


SLOPES = [(x, t) for x in (-1.0, 0.0, 1.0) for t in (-1.0, 0.0, 1.0)]
LINE = np.sinh(np.linspace(-8, 8, 40_001))[:, None] / 50
SPACING = np.gradient(LINE[:, 0])


@pytest.mark.parametrize("unit", [RECORD, ADDED])
def test_exact_deltas_of_neighbours_stay_within_the_claim(gaussian, unit):
    """All pairs of small worlds; with half of the noise, or little of the ridge, they do not.

    Where many others hold the coefficient, two records pull with all their strength; where there
    are few, the determinants count.
    """
    epsilon = Fraction(1, 2)
    plan = plan_for(SLOPE, epsilon, unit=unit, delta=DELTA)
    left = float(epsilon) - float(2 / plan.jitter.scale)

    def largest(plan, others):
        laws = [law_of([*others, row], plan, LINE) for row in SLOPES]
        if unit is ADDED:
            alone = law_of(others, plan, LINE)
            return max(beyond([alone, law], left) for law in laws)
        return beyond(laws, left)

    held, free = [(1.0, 0.0)] * 200, [(1.0, 0.3)]
    assert 0.05 * float(DELTA) < largest(plan, held) <= float(DELTA)
    assert largest(plan, free) <= float(DELTA)
    assert largest(plan._replace(gradient_noise=_half(plan)), held) > 2 * float(DELTA)
    assert largest(plan._replace(ridge=plan.ridge / 30), free) > float(DELTA)


def test_the_audit_of_steps_bounds_the_exact_delta(gaussian):
    plan = plan_for(SLOPE, 1, delta=DELTA)
    one, other = (Mode(np.array([(1.0, 0.5), row]), plan) for row in ((1.0, 1.0), (1.0, -1.0)))
    claimed = one.loss_beyond(other, float(DELTA))
    assert 0.8 < claimed <= 1
    assert one.loss(other) == math.inf
    exact = beyond([law_of(s.records, plan, LINE) for s in (one, other)], claimed)
    assert exact <= float(DELTA)
    less = plan._replace(gradient_noise=_half(plan))
    one, other = (Mode(own.records, less) for own in (one, other))
    assert one.loss_beyond(other, float(DELTA)) > 1.5


def audited(plan, runs):
    """Bound epsilon from below by releases of noise alone, at neighbours that lose most."""
    sides = [np.array([(1.0, 0.5), (1.0, t)]) for t in (1.0, -1.0)]
    ratios, noise = [], Noise.of(0)
    for side in sides:
        law = plan.gradient_noise
        u = np.array([plan.perturbation(*np.split(z, [2])) for z in noise.draw(law, runs)])
        w = np.linspace(-80, 80, 320_001)
        gradient = plan.ridge[0] * w - sum(x * np.clip(t - w * x, -0.5, 0.5) for x, t in side)
        found = np.interp(u[:, 0], gradient, w)[:, None]
        one, other = (Mode(own, plan).log_density(found) for own in sides)
        ratios.append(one - other)
    return bound_from_outcomes(*ratios, delta=float(DELTA)).epsilon


def test_a_statistical_audit_sees_half_of_the_noise(gaussian):
    plan = plan_for(SLOPE, 1, delta=DELTA)
    assert audited(plan, 40_000) <= 1
    assert audited(plan._replace(gradient_noise=_half(plan)), 40_000) > 1


def wide(n=3000, d=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.clip(X[:, :10] @ np.full(10, 0.15) + rng.normal(0, 0.1, n), -1, 1)


@pytest.mark.parametrize(("d", "spent"), [(80, 1e-6), (10, 0.0)])
def test_a_delta_is_charged_where_it_is_used(d, spent):
    X, y = wide(d=d)
    ledger = BudgetAccountant(2.0, delta=1e-5)
    model = BayesianLinearRegression(
        mechanism="map", delta=1e-6, bounds_X=(-1, 1), bounds_y=(-1, 1), accountant=ledger
    )
    planned = model.plan(n=len(X), n_features=d)
    assert (planned.cost.epsilon, planned.cost.delta) == (1, exact(spent, "delta"))
    fitted = model.fit(X, y)
    assert (fitted.guarantee_.epsilon, fitted.guarantee_.delta) == (1.0, spent)
    assert (float(ledger.total("sum").epsilon), float(ledger.total("sum").delta)) == (1.0, spent)
    assert np.isfinite(fitted.coef_).all()
