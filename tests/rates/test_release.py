"""The release of rates: densities of neighbours, exact sums, and what a record changes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from benchmarks.audit.tools.steps import LogisticMode, weighed_records
from dpbayes_sklearn import BayesianCountRegression
from dpbayes_sklearn.convex.perturbed import PerturbedLoss
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic.blocks import even_nodes
from dpbayes_sklearn.logistic.mode import LogisticLoss, plan_mode
from dpbayes_sklearn.logistic.record_sums import LabelledRecords
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.rates.records import HEAVIEST, STEPS, Cap, Exposure, LevelSums, RateBlocks
from dpbayes_sklearn.rates.release import RatePrior, plan
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Categories, Interval, Schema

CAP = 4
YEARS = Exposure(Interval(0.5, 4))
ONE = RateBlocks((Categories(range(2)), YEARS))
LEVEL = -1.5


def coded(X, y, blocks=ONE, cap=CAP):
    X = np.asarray(X, float).reshape(len(y), -1)
    records = LocalRecords([(Table(X), np.asarray(y, float))])
    return LabelledRecords(blocks, Cap(Interval(0, cap)), records, True, counted=True).read()


def mapped(X, y, blocks=ONE, level=LEVEL):
    return coded(X, y, blocks).mapped(even_nodes(len(blocks.numbers)), level)


def step(records, plan):
    own = PerturbedLoss(LogisticLoss(records, records.reader.blocks), plan)
    return LogisticMode(weighed_records(records), plan, own, records.reader.blocks, counted=True)


def plan_for(epsilon, n, prior=None):
    return plan_mode(ONE, n, Fraction(epsilon), RECORD, 100.0, prior, heaviest=HEAVIEST)


AXES = [np.linspace(-9, 9, 81)] * 2
W = np.stack(np.meshgrid(*AXES, indexing="ij"), axis=-1).reshape(-1, 2)
WORLD = [*product(((0.0, 0.5), (1.0, 4.0)), (0, 1, CAP))]


def test_the_exact_density_of_neighbours_stays_within_the_budget() -> None:
    """All pairs of a small world, at many parameters: below epsilon, and most of it is reached."""
    epsilon, plan = Fraction(2), plan_for(2, 2)
    worst, bound = 0.0, 0.0
    for shared in WORLD:
        steps = [step(mapped([shared[0], x], [shared[1], y]), plan) for x, y in WORLD]
        logs = [each.log_density(W) for each in steps]
        for i, j in combinations_with_replacement(range(len(steps)), 2):
            worst = max(worst, np.abs(logs[i] - logs[j]).max())
            bound = max(bound, steps[i].loss(steps[j]))
    assert worst + float(2 / plan.jitter.scale) <= bound * (1 + 1e-9)
    assert bound <= float(epsilon) * (1 + 1e-9)
    assert worst > 0.8 * float(epsilon)


@pytest.mark.parametrize("fault", ["ridge", "noise"])
def test_a_smaller_ridge_or_half_the_noise_exceeds_the_budget(fault) -> None:
    plan = plan_for(2, 2)
    law = plan.gradient_noise
    wrong = {
        "ridge": replace(plan, ridge=plan.ridge / 30),
        "noise": replace(plan, body=plan.body._replace(law=replace(law, scale=law.scale / 2))),
    }[fault]
    others = WORLD[0]
    logs = [step(mapped([others[0], x], [others[1], y]), wrong).log_density(W) for x, y in WORLD]
    assert max(np.abs(a - b).max() for a in logs for b in logs) > 2


def test_with_little_noise_it_is_the_minimum_of_the_negative_binomial_loss() -> None:
    rng = np.random.default_rng(0)
    blocks = RateBlocks((Interval(0, 1), Categories(range(3)), YEARS), "linear")
    years = np.exp(rng.uniform(np.log(0.5), np.log(4), 400))
    X = np.column_stack([rng.random(400), rng.integers(0, 3, 400), years])
    y = np.minimum(rng.poisson(years * np.exp(X[:, 0] - 0.5)), CAP)
    plan = plan_mode(blocks, 400, Fraction(10**7), RECORD, 100.0, 2.0, heaviest=HEAVIEST)
    records = mapped(X, y, blocks)
    found = Noise.of(0).minimum(PerturbedLoss(LogisticLoss(records, blocks), plan))
    x = weighed_records(records)[:, :-2] @ blocks.basis

    def objective(w):
        """Return the loss over the cap, with rates in units of exp(level) times the cap."""
        mean = CAP * np.exp(x @ w + LEVEL) * years
        loss = (y + CAP) * np.log1p(mean / CAP) - y * np.log(mean)
        return loss.sum() / CAP + plan.ridge @ w**2 / 2

    best = minimize(objective, np.zeros(x.shape[1]), tol=1e-12).x
    assert np.abs(found - best).max() < 1e-3  # exposures are rounded to places


def test_residuals_and_second_derivatives_are_bounded_whatever_the_rate() -> None:
    for y, level in product((0, 1, CAP), (-30.0, -1.0, 0.0, 1.0, 30.0)):
        records = mapped([[1.0, 4.0]], [y], level=level)
        gradient, _ = records.gradient(np.zeros(ONE.width))
        assert np.abs(gradient).max() <= 1 + 1e-9
        assert records.curvature(np.zeros(ONE.width))[0, 0] <= HEAVIEST / 4 + 1e-9


def test_square_residuals_of_a_record_move_the_matrix_by_no_more_than_its_law_hides() -> None:
    made = plan(RatePrior(ONE, CAP, intervals=True), Facts(10), Budget(Fraction(1)))
    _, squares = made.plan_matrices(0.4)
    weights = np.array([float(each) for each in squares.law.weights])
    spent, worst = float(made.steps[-1].cost.epsilon), 0.0
    for y, level, years in product((0, 1, CAP), (-30.0, -1.0, 0.0, 30.0), (0.5, 4.0)):
        records = mapped([[1.0, years]], [y], level=level)
        at, limits = np.zeros(ONE.width), (squares.limit, squares.grid)
        moved = records.products(at, ONE.basis, weights, *limits, squares=True)
        worst = max(worst, squares.law.privacy_loss(moved))
    assert 0.45 * spent < worst <= 0.5 * spent  # one of two records
    assert made.steps[-1].cost.epsilon == Fraction(3, 50)


@pytest.mark.slow
def test_intervals_hold_where_one_group_varies_much_more_than_the_others() -> None:
    inside, schema = [], Schema({"g": Categories(range(3))}, Interval(0, 12))
    for seed in range(30):
        rng = np.random.default_rng(seed)
        g = rng.choice(3, 20_000, p=[0.8, 0.15, 0.05])
        spread = np.where(g == 2, 0.2, 50.0)
        y = rng.poisson(rng.gamma(spread, 1 / spread))
        model = BayesianCountRegression(3.0, schema=schema, intervals=True, random_state=seed)
        row = model.fit(pd.DataFrame({"g": g}), y).coefficients()["g=2"]
        clipped = np.minimum(rng.poisson(rng.gamma(0.2, 5.0, 400_000)), 12).mean()
        usual = np.minimum(rng.poisson(rng.gamma(50, 0.02, 400_000)), 12).mean()
        inside.append(row.low <= np.log(clipped / usual) <= row.high)
    assert np.mean(inside) >= 0.85


def test_sums_of_the_level_change_by_at_most_what_their_noise_covers() -> None:
    sums = LevelSums(ONE)
    each = [sums.ask(coded([x], [y]))[0] for x, y in [*WORLD, ((1.0, 9.0), np.nan)]]
    shifts = np.array([a - b for a in each for b in each])
    assert np.abs(shifts).max() == STEPS
    law = sums.law(RECORD, Fraction(1))
    assert max(law.privacy_loss(shift) for shift in shifts) <= 1
    person = sums.law(PrivacyUnit("person", max_records=3), Fraction(1))
    assert person.privacy_loss(3 * shifts[np.abs(shifts).sum(axis=1).argmax()]) <= 1


def test_order_and_chunks_of_records_change_nothing() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 2, 999), rng.uniform(0.5, 4, 999)])
    y, order = rng.integers(0, 6, 999), rng.permutation(999)
    one, other = mapped(X, y), mapped(X[order], y[order])
    at = np.array([0.5, 0.25, -0.25, 0.0])
    assert np.array_equal(one.gradient(at)[0], other.gradient(at)[0])


def test_the_steps_of_a_plan_spend_epsilon_exactly() -> None:
    for intervals, unit in product((False, True), (RECORD, PrivacyUnit(neighbours="add_remove"))):
        prior = RatePrior(ONE, CAP, intervals=intervals)
        made = plan(prior, Facts(1000), Budget(Fraction(7, 3), unit=unit))
        assert sum(Fraction(each.cost.epsilon) for each in made.steps) == Fraction(7, 3)
        assert len(made.steps) == (6 if intervals else 2)


def test_missing_exposures_count_as_declared_and_far_ones_as_the_bound() -> None:
    codes = YEARS.encode(np.array([0.01, 0.5, 4.0, 99.0, np.nan]))
    years = np.exp(YEARS.logs[codes])
    assert np.allclose(years, [0.5, 0.5, 4, 4, 2.25], rtol=1e-3)
