"""The perturbed minimum: the law of what is released, its price, and a search that always ends."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kstest

from benchmarks.audit.tools.steps import ConvexMode, seen_records
from dpbayes_sklearn.audit.statistical import bound_from_outcomes
from dpbayes_sklearn.convex.coordinates import first_map, n_coordinates
from dpbayes_sklearn.convex.design import Design, Windows
from dpbayes_sklearn.convex.hull import hull_body, record_squares
from dpbayes_sklearn.convex.losses import HuberLoss, InWindows, Turned
from dpbayes_sklearn.convex.perturbed import PerturbedLoss, PerturbedPlan, ball_body, raised
from dpbayes_sklearn.convex.record_sums import UNIT_TARGET, Coordinates
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from tests.linear_records import LEVELS, NUMBER, linear_records

SLOPE, LINE = Design((NUMBER,), intercept=False), Design((NUMBER,))
ADDED = PrivacyUnit("record", neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=3, neighbours="add_remove")
SMALLEST_P = 1e-4  # chance of failing the right law; planted faults must fall far below it
LIMIT = 0.5
BODIES = ["ball", "hull"]


def rows_of(design, body):
    p = n_coordinates(design)
    if body == "ball":
        first = Coordinates.of(first_map(design, np.zeros(0), np.ones(0)))
        return Turned(first, UNIT_TARGET, math.sqrt(p), LIMIT, math.sqrt(p))
    windows = Windows.whole(design.width)
    return InWindows(windows, UNIT_TARGET, LIMIT, record_squares(design))


def plan_for(epsilon, n, design=SLOPE, unit=RECORD, body="ball", ridge=1e-9, volume=Fraction(1, 8)):
    epsilon, rows = Fraction(epsilon), rows_of(design, body)
    p = len(record_squares(design)) if body == "hull" else n_coordinates(design)

    def body_of(left):
        if body == "hull":
            return hull_body(design, LIMIT, left, unit)
        return ball_body(p, LIMIT * math.sqrt(p), left, unit)

    return PerturbedPlan.of(
        rows.shape(n), epsilon, epsilon * volume, unit, body_of, lambda _: np.full(p, ridge)
    )


def asked(X, y, plan, design=SLOPE, body="ball"):
    X = np.asarray(X, object if design.levels.any() else float).reshape(len(y), -1)
    loss = HuberLoss(linear_records(X, y, design), rows_of(design, body), len(plan.ridge))
    return PerturbedLoss(loss, plan)


def law(X, y, plan, design=SLOPE, body="ball"):
    loss = asked(X, y, plan, design, body).loss
    return ConvexMode(seen_records(loss), plan, design=design if body == "hull" else None)


def draws(objective, runs, seed=0):
    noise = Noise.of(seed)
    return np.array([noise.minimum(objective) for _ in range(runs)])


# The price


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 1000), Fraction(1), Fraction(22, 7), Fraction(10**6)]
)
@pytest.mark.parametrize("n", [1, 1000, 10**7])
def test_the_parts_of_a_plan_add_up_to_its_budget(n, epsilon, unit):
    design = Design((NUMBER,) * 5)
    plan, shape = plan_for(epsilon, n, design, unit), rows_of(design, "ball").shape(n)
    for_gradient = unit.n_changed * Fraction(2**20) / plan.body.law.scale
    search, volume = Fraction(2 / plan.jitter.scale), epsilon / 8
    assert for_gradient + search + volume <= epsilon
    assert float(for_gradient + search + volume) == pytest.approx(float(epsilon), rel=1e-6)
    assert unit.max_records * math.log1p(shape.determinant(plan.ridge)) <= float(volume)
    assert plan.error / plan.ridge.min() <= plan.step


def test_the_ridge_pays_for_the_determinants():
    shape = rows_of(Design((NUMBER,) * 6), "ball").shape(100)
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(50)):
        for unit in (RECORD, PERSON):
            ridge = raised(np.full(7, 1e-30), shape, epsilon, unit)
            spent = unit.max_records * math.log1p(7 / ridge.min())
            assert spent == pytest.approx(float(epsilon), rel=1e-9)
            assert spent <= float(epsilon)


def test_only_what_is_too_small_of_a_ridge_is_raised_and_just_enough():
    shape, epsilon = rows_of(Design((NUMBER,) * 6), "hull").shape(100), Fraction(1, 10)
    wanted = np.geomspace(1e-3, 1e4, 7)
    ridge = raised(wanted, shape, epsilon, PERSON)
    spent = PERSON.max_records * math.log1p(shape.determinant(ridge))
    assert spent <= float(epsilon)
    assert spent == pytest.approx(float(epsilon), rel=1e-5)
    small = ridge > wanted
    assert 0 < small.sum() < 7
    assert np.unique(ridge[small]).size == 1
    assert ridge[small][0] < wanted[~small].min()


def test_a_body_is_as_wide_as_its_gradients():
    for p in (1, 4):
        body = ball_body(p, 3.0, Fraction(1, 2), RECORD)
        assert body.variance == pytest.approx(np.full(p, (p + 1) * (2 * 3 / 0.5) ** 2))
        drawn = np.array([body.gradient(z) for z in Noise.of(0).draw(body.law, 3000)])
        assert np.square(drawn).mean(axis=0) == pytest.approx(body.variance, rel=0.2)
        assert np.linalg.norm(drawn, axis=1).max() < body.farthest


# The law


RECORDS = np.array([1.0, -1.0, 0.5, 1.0]), np.array([1.0, -0.6, -1.0, 0.2])


def quantiles(of, found):
    """Where draws lie in the law of the exact minimum, by adding up its density."""
    w = np.linspace(-60, 60, 400_001)
    log = of.log_density(w[:, None])
    cdf = np.cumsum(np.exp(log - log.max()))
    return np.interp(found[:, 0], w, (cdf - 0.5 * np.exp(log - log.max())) / cdf[-1])


@pytest.mark.parametrize("body", BODIES)
def test_it_has_the_density_of_the_proof(body):
    plan = plan_for(3, 4, body=body)
    found = draws(asked(*RECORDS, plan, body=body), 500)
    assert kstest(quantiles(law(*RECORDS, plan, body=body), found), "uniform").pvalue > SMALLEST_P
    wrong = plan_for(6, 4, body=body)
    for other in (replace(plan, ridge=plan.ridge * 2), replace(plan, body=wrong.body)):
        of = law(*RECORDS, other, body=body)
        assert kstest(quantiles(of, found), "uniform").pvalue < SMALLEST_P / 10


VALUES = [-1.0, 0.0, 1.0]
AXIS = np.concatenate([-np.geomspace(60, 1e-3, 1200), [0.0], np.geomspace(1e-3, 60, 1200)])


def worst_loss(plan, unit, body, rest):
    """The largest log ratio of densities between any neighbours of a small world, at any point.

    All densities have the constant of the noise, whatever the records are.
    """
    changed = 1 if unit is not PERSON else 2
    records = [([x] * changed, [t] * changed) for x in VALUES for t in VALUES]
    logs = [
        law([*rest[0], *x], [*rest[1], *t], plan, body=body).log_density(AXIS[:, None])
        for x, t in records
    ]
    if unit.size_is_secret:
        alone = law(*rest, plan, body=body).log_density(AXIS[:, None])
        pairs = [(alone, each) for each in logs]
    else:
        pairs = [(one, other) for one in logs for other in logs]
    return max(float(np.abs(a - b).max()) for a, b in pairs)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("unit", [RECORD, ADDED], ids=str)
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(2)])
def test_densities_of_neighbours_stay_within_the_budget_and_use_most_of_it(body, unit, epsilon):
    """Where others hold the coefficient records pull with all their strength; alone they bend."""
    plan = plan_for(epsilon, 30, unit=unit, body=body)
    search = float(2 / plan.jitter.scale)
    held, free = ([1.0] * 29, [0.0] * 29), ([1.0], [0.3])
    found = [worst_loss(plan, unit, body, rest) + search for rest in (held, free)]
    assert 0.6 * epsilon < max(found) <= epsilon


@pytest.mark.parametrize("body", BODIES)
def test_less_noise_or_a_smaller_ridge_is_seen(body):
    epsilon, held, free = Fraction(2), ([1.0] * 29, [0.0] * 29), ([1.0], [0.3])
    plan = plan_for(epsilon, 30, body=body)
    less = replace(plan, body=plan_for(2 * epsilon, 30, body=body).body)
    assert worst_loss(less, RECORD, body, held) > epsilon
    assert worst_loss(replace(plan, ridge=plan.ridge / 100), RECORD, body, free) > epsilon


def test_claimed_losses_of_a_step_bound_the_exact_ones():
    plan = plan_for(2, 2)
    one, other = (law([1.0, 1.0], [1.0, t], plan) for t in (1.0, -1.0))
    exact = np.abs(one.log_density(AXIS[:, None]) - other.log_density(AXIS[:, None])).max()
    assert exact + float(2 / plan.jitter.scale) <= one.loss(other) * (1 + 1e-9) <= 2 * (1 + 1e-9)


PLANE = np.stack(np.meshgrid(*[np.linspace(-4, 4, 81)] * 2), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("body", BODIES)
def test_densities_in_the_plane_stay_within_the_budget(body):
    plan = plan_for(2, 3, LINE, body=body)
    logs = [
        law([1.0, -0.5, x], [0.5, 0.2, t], plan, LINE, body).log_density(PLANE)
        for x in VALUES
        for t in VALUES
    ]
    worst = max(float(np.abs(a - b).max()) for a in logs for b in logs)
    assert 0.3 * 2 < worst + float(2 / plan.jitter.scale) <= 2


def audited(plan, runs=400):
    sides = [law([1.0, 1.0], [1.0, t], plan) for t in (1.0, -1.0)]
    ratios = []
    for seed, t in enumerate((1.0, -1.0)):
        found = draws(asked([1.0, 1.0], [1.0, t], plan), runs, seed)
        one, other = (side.log_density(found) for side in sides)
        ratios.append(one - other)
    return bound_from_outcomes(*ratios).epsilon


def test_an_audit_of_what_is_drawn_sees_a_quarter_of_the_noise():
    plan = plan_for(2, 2)
    assert audited(plan) <= 2
    assert audited(replace(plan, body=plan_for(8, 2).body)) > 2


# The search


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("design", [LINE, Design((NUMBER,) * 3, intercept=False)], ids=str)
def test_with_little_noise_it_is_the_minimum(design, body):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, design.width))
    y = np.clip(X @ [0.5, -0.3, 0.1][: design.width] + 0.2 * rng.standard_t(2, 400), -1, 1)
    plan = plan_for(10**7, 400, design, body=body, ridge=0.1)
    objective = asked(X, y, plan, design, body)
    seen = seen_records(objective.loss)
    v, t, h = seen[:, :-2], seen[:, -2], seen[:, -1]

    def value(w):
        r = np.abs(t - v @ w)
        return np.where(r < h, r**2 / 2, h * r - h**2 / 2).sum() + plan.ridge @ w**2 / 2

    best = minimize(value, np.zeros(v.shape[1]), tol=1e-12).x
    assert np.abs(draws(objective, 1)[0] - best).max() < 1e-3


def test_the_search_ends_near_the_minimum_whatever_the_data(monkeypatch):
    rng, real, passes = np.random.default_rng(0), HuberLoss.gradient, []

    def counted(self, w):
        passes[-1] += 1
        assert passes[-1] < 100
        return real(self, w)

    monkeypatch.setattr(HuberLoss, "gradient", counted)
    for trial in range(60):
        n, d = int(rng.choice([1, 2, 10, 300])), int(rng.choice([1, 3, 12]))
        X = [
            rng.uniform(-1, 1, (n, d)),
            np.repeat(rng.choice([-1.0, 0.0, 1.0], (n, 1)), d, axis=1),
            rng.choice([0.0, 2**-15, 1.0], (n, d)),
        ][trial % 3]
        y = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], n)  # residuals at the limit, exactly
        passes.append(0)
        design, body = Design((NUMBER,) * d), BODIES[trial % 2]
        plan = plan_for(float(10 ** rng.uniform(-4, 8)), n, design, body=body, ridge=1e-2)
        objective = asked(X, y, plan, design, body)
        (drawn,) = Noise.of(trial).draw(plan.gradient_noise, 1)
        w = objective.minimum(drawn)
        left = objective.loss.gradient(w) + plan.ridge * w - plan.body.gradient(drawn)
        assert np.linalg.norm(left) + plan.slack <= plan.error * (1 + 1e-12)
    assert np.median(passes) < 12


def test_very_many_records_are_searched_as_few_are(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 2))
    y = np.clip(X @ [0.5, -0.3] + 0.2 * rng.normal(size=5000), -1, 1)
    plan = plan_for(50, 5000, Design((NUMBER,) * 2))
    objective = asked(X, y, plan, Design((NUMBER,) * 2))
    (drawn,) = Noise.of(0).draw(plan.gradient_noise, 1)
    whole = objective.minimum(drawn)
    monkeypatch.setattr("dpbayes_sklearn.convex.perturbed._START_RECORDS", 100)
    assert np.abs(objective.minimum(drawn) - whole).max() <= 2 * plan.step


@pytest.mark.parametrize("body", BODIES)
def test_a_search_ends_with_far_more_records_than_were_planned_for(body):
    rng = np.random.default_rng(0)
    X, y = rng.choice([0.0, 1.0], (3000, 1)), rng.choice([0.0, 1.0], 3000)
    plan = plan_for(10, 30, LINE, body=body)  # a secret number of records may have such noise
    objective = asked(X, y, plan, LINE, body)
    (drawn,) = Noise.of(0).draw(plan.gradient_noise, 1)
    left = objective.loss.gradient(w := objective.minimum(drawn)) + plan.ridge * w
    assert np.linalg.norm(left - plan.body.gradient(drawn)) <= 100 * plan.error


def test_what_is_released_lies_on_the_public_lattice():
    plan = plan_for(1, 4)
    found = draws(asked(*RECORDS, plan), 50)[:, 0] / plan.step * plan.jitter.grid
    assert np.array_equal(found, np.rint(found))


def test_noise_that_no_law_would_draw_is_refused():
    plan = plan_for(1, 4)
    with pytest.raises(RuntimeError, match="random bytes"):
        asked(*RECORDS, plan).minimum(np.array([2**60]))


def test_a_seed_repeats_and_the_secure_source_does_not():
    objective = asked(*RECORDS, plan_for(1, 4))
    assert np.array_equal(draws(objective, 1, 5), draws(objective, 1, 5))
    assert not np.array_equal(draws(objective, 1, None), draws(objective, 1, 5))


def test_levels_have_noise_in_their_hull():
    design = Design((NUMBER, LEVELS))
    plan = plan_for(2, 4, design, body="hull")
    X = np.array([[1.0, "x"], [-1.0, "y"], [0.5, "z"], [0.1, "x"]], object)
    claims = [
        law(X, [1.0, -0.5, 0.2, t], plan, design, "hull").loss(
            law(X, [1.0, -0.5, 0.2, -t], plan, design, "hull")
        )
        for t in (0.5, 1.0)
    ]
    assert all(0 < claim <= 2 * (1 + 1e-9) for claim in claims)
