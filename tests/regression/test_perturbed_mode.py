"""The perturbed mode: the law of what is released, its price, and a search that always ends."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from dpbayes_sklearn.regression.mode import least_ridge, perturbed_mode, plan_mode
from dpbayes_sklearn.regression.record_sums import rounding
from scipy.optimize import minimize
from scipy.stats import kstest

from dpbayes_sklearn import BayesianLinearRegression
from dpbayes_sklearn.audit._steps import Mode, seen_records
from dpbayes_sklearn.audit.statistical import bound_from_outcomes
from dpbayes_sklearn.convex.design import WHOLE_WINDOW, Design, Scale, Windows
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.regression import mode as module
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.schema import Interval

SLOPE = Design((Interval(-1, 1),), intercept=False)
SMALLEST_P = 1e-4  # chance of failing the right law; planted faults must fall far below it


def moments(X, y, design=SLOPE):
    X = np.asarray(X, float).reshape(len(y), -1)
    return Moments(design, Scale(0.0, 1.0), LocalRecords([(Table(X), np.asarray(y, float))]))


def plan_for(epsilon, n, design=SLOPE, unit=RECORD):
    size = design.width + design.intercept
    return plan_mode(design, n, np.zeros(size), Fraction(epsilon), unit)


def release(statistics, plan, seed):
    windows = Windows.whole(statistics.design.width)
    return perturbed_mode(statistics, WHOLE_WINDOW, windows, plan, Noise.of(seed))


def draws(statistics, plan, runs, seed=0):
    noise, windows = Noise.of(seed), Windows.whole(statistics.design.width)
    return np.array(
        [perturbed_mode(statistics, WHOLE_WINDOW, windows, plan, noise) for _ in range(runs)]
    )


def step(statistics, plan):
    windows = Windows.whole(statistics.design.width)
    return Mode(seen_records(statistics, WHOLE_WINDOW, windows, plan.grid), plan)


@pytest.mark.parametrize(
    "unit", [RECORD, PrivacyUnit("person", max_records=3, neighbours="add_remove")]
)
@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 1000), Fraction(1), Fraction(22, 7), Fraction(1e6)]
)
@pytest.mark.parametrize("n", [1, 1000, 10**7])
def test_the_parts_of_a_plan_add_up_to_its_budget(n, epsilon, unit):
    design = Design((Interval(-1, 1),) * 5)
    plan = plan_for(epsilon, n, design, unit)
    for_gradient = unit.n_changed * plan.limit * plan.grid / plan.gradient_noise.scale
    volume = unit.max_records * math.log1p((1 / plan.ridge).sum())
    searched = 2 / plan.jitter.scale
    assert for_gradient + searched + epsilon * module._VOLUME <= epsilon
    assert float(for_gradient + searched + epsilon * module._VOLUME) == pytest.approx(
        float(epsilon)
    )
    assert volume <= float(epsilon * module._VOLUME)
    assert plan.error / plan.ridge.min() <= plan.step


def test_the_ridge_pays_for_the_volume():
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(50)):
        ridge = least_ridge(7, epsilon, RECORD)
        assert math.log1p(7 / ridge) == pytest.approx(float(epsilon), rel=1e-9)
        assert math.log1p(7 / ridge) <= float(epsilon)


@pytest.mark.parametrize("intercept", [True, False])
def test_with_little_noise_it_is_the_minimum(intercept):
    rng = np.random.default_rng(0)
    design = Design((Interval(-1, 1),) * 3, intercept)
    X = rng.uniform(-1, 1, (400, 3))
    y = np.clip(X @ [0.5, -0.3, 0.1] + 0.2 * rng.standard_t(2, 400), -1, 1)
    plan = plan_for(10**7, 400, design)
    found = release(moments(X, y, design), plan, 0)
    z = np.column_stack([np.ones(400), X]) if intercept else X

    def objective(w):
        r = np.abs(y - z @ w)
        return np.where(r < 0.5, r**2 / 2, r / 2 - 1 / 8).sum() + plan.ridge @ w**2 / 2

    best = minimize(objective, np.zeros(z.shape[1]), tol=1e-12).x
    assert np.abs(found[0 if intercept else 1 :] - best).max() < 1e-3
    assert intercept or found[0] == 0


RECORDS = np.array([1.0, -1.0, 0.5, 1.0]), np.array([1.0, -0.6, -1.0, 0.2])


def quantiles(statistics, plan, found):
    """Where draws lie in the law of the exact minimum, by adding up its density."""
    law, w = step(statistics, plan), np.linspace(-60, 60, 400_001)
    log = law.log_density(w[:, None])
    cdf = np.cumsum(np.exp(log - log.max()))
    return np.interp(found[:, 1], w, (cdf - 0.5 * np.exp(log - log.max())) / cdf[-1])


def test_it_has_the_density_of_the_proof():
    statistics, plan = moments(*RECORDS), plan_for(3, 4)
    found = draws(statistics, plan, 500)
    assert kstest(quantiles(statistics, plan, found), "uniform").pvalue > SMALLEST_P
    for wrong in (
        plan._replace(limit=plan.limit * 3 // 5),
        plan._replace(ridge=plan.ridge * 2),
        plan_for(5, 4)._replace(ridge=plan.ridge),
    ):
        assert kstest(quantiles(statistics, wrong, found), "uniform").pvalue < SMALLEST_P / 10


def test_the_exact_density_of_neighbours_stays_within_the_budget():
    """All pairs of a small world, at all coefficients: less than epsilon, and most of it used."""
    values, epsilon, worst = (-1.0, 0.0, 1.0), Fraction(2), 0.0
    plan, w = plan_for(epsilon, 2), np.linspace(-40, 40, 4001)[:, None]
    laws = {}
    for x in values:
        for t in values:
            log = step(moments([1.0, x], [1.0, t]), plan).log_density(w)
            laws[x, t] = log - np.log(np.exp(log - log.max()).sum()) - log.max()
    for one in laws.values():
        for other in laws.values():
            worst = max(worst, np.abs(one - other).max())
    bound = max(
        step(moments([1.0, 1.0], [1.0, 1.0]), plan).loss(step(moments([1.0, x], [1.0, t]), plan))
        for x in values
        for t in values
    )
    assert worst + float(2 / plan.jitter.scale) <= bound <= float(epsilon) * (1 + 1e-9)
    assert worst > 0.6 * float(epsilon)


def test_a_record_that_comes_stays_within_the_budget():
    """Add one of all records to a small world: less than epsilon, and most of it used."""
    added, values = PrivacyUnit("record", neighbours="add_remove"), (-1.0, 0.0, 1.0)
    plan, w = plan_for(2, 3, unit=added), np.linspace(-40, 40, 4001)[:, None]

    def law(X, y):
        log = step(moments(X, y), plan).log_density(w)
        return log - np.log(np.exp(log - log.max()).sum()) - log.max()

    without = law([1.0], [1.0])
    worst = max(np.abs(without - law([1.0, x], [1.0, t])).max() for x in values for t in values)
    assert 0.6 * 2 < worst + float(2 / plan.jitter.scale) <= 2


def audited(plan, runs=300):
    sides = [moments([1.0, 1.0], [1.0, t]) for t in (1.0, -1.0)]
    ratios = []
    for seed, side in enumerate(sides):
        found = draws(side, plan, runs, seed)[:, 1:]
        one, other = (step(s, plan).log_density(found) for s in sides)
        ratios.append(one - other)
    return bound_from_outcomes(*ratios).epsilon


def test_audit_and_its_power():
    plan = plan_for(2, 2)
    assert audited(plan) <= 2
    law = plan.gradient_noise
    less = law.__class__(law.scale / 4, law.sides, law.grid)
    assert audited(plan._replace(gradient_noise=less)) > 2


def test_the_search_ends_near_the_minimum_whatever_the_data(monkeypatch):
    rng, real, passes = np.random.default_rng(0), Moments.loss_derivatives, []

    def counted(self, *arguments, **options):
        passes[-1] += 1
        assert passes[-1] < 100
        return real(self, *arguments, **options)

    monkeypatch.setattr(Moments, "loss_derivatives", counted)
    for trial in range(60):
        n, d = int(rng.choice([1, 2, 10, 300])), int(rng.choice([1, 3, 12]))
        X = [
            rng.uniform(-1, 1, (n, d)),
            np.repeat(rng.choice([-1.0, 0.0, 1.0], (n, 1)), d, axis=1),
            rng.choice([0.0, 2**-15, 1.0], (n, d)),
        ][trial % 3]
        y = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], n)  # residuals at the limit, exactly
        passes.append(0)
        design = Design((Interval(-1, 1),) * d)
        plan = plan_for(Fraction(float(10 ** rng.uniform(-4, 8))), n, design)
        start, statistics = np.zeros(d + 1), moments(X, y, design)
        ask = partial(statistics.loss_derivatives, plan.grid, WHOLE_WINDOW, Windows.whole(d))
        derivatives = partial(ask, limit=plan.limit)
        noise = rng.normal(size=d + 1) * np.sqrt(plan.noise)
        w = module._minimum(derivatives, start, noise, plan)
        left = derivatives(w).negative_gradient + noise - plan.ridge * w
        most = plan.error - math.sqrt(d + 1) * n * rounding(plan.grid)
        assert np.linalg.norm(left) <= most
    assert np.median(passes) < 8


def test_what_is_released_lies_on_the_public_lattice():
    plan = plan_for(1, 4)
    found = draws(moments(*RECORDS), plan, 50)[:, 1] / plan.step * plan.jitter.grid
    assert np.array_equal(found, np.rint(found))


def test_a_seed_repeats_and_the_secure_source_does_not():
    statistics, plan = moments(*RECORDS), plan_for(1, 4)
    same = [release(statistics, plan, 5) for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(release(statistics, plan, None), same[0])


@pytest.mark.parametrize("mechanism", ["map", "sampler"])
@pytest.mark.parametrize("precision", [1e8, 1e50, 1e100])
def test_a_sharp_prior_leaves_the_constant(mechanism, precision):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    y = 0.2 + X @ [0.3, 0.2, -0.1] + 0.1 * rng.normal(size=2000)
    model = BayesianLinearRegression(
        mechanism=mechanism, prior_precision=precision, bounds_X=(-1, 1), bounds_y=(-1, 1)
    )
    for seed in range(5):
        fitted = model.set_params(random_state=seed).fit(X, y)
        assert fitted.intercept_ == pytest.approx(0.2, abs=0.03)
        assert np.abs(fitted.coef_).max() < 0.01
    model.set_params(noise_variance=1e100).fit(X, y)
    assert np.isfinite(model.coef_).all()


def test_a_ridge_shrinks_as_bayes_does():
    """Bayes keeps c²v/(c²v + s²) of w, of variance v, if cw is seen with noise of variance s²."""
    curvature, variance = 400.0, 1e-3
    signal = np.array([curvature * variance])
    plan = plan_mode(SLOPE, 1000, np.zeros(1), Fraction(1, 10), RECORD, signal=signal)
    noise = float(plan.noise[0])
    bayes = curvature**2 * variance / (curvature**2 * variance + noise)
    assert curvature / (curvature + plan.ridge[0]) == pytest.approx(bayes)


def test_without_noise_to_shrink_the_ridge_is_the_least_that_is_private():
    least, much = (
        plan_mode(SLOPE, 1000, np.zeros(1), Fraction(1, 10), RECORD, signal=signal).ridge[0]
        for signal in (None, np.array([1e9]))
    )
    assert least == much
