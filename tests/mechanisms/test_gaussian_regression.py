"""Regression with Gaussian noise: what is spent, what one record can do, and what it buys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_delta
from benchmarks.audit.tools.ratios import audit_ratios, drawn_steps
from benchmarks.audit.tools.universes import MomentUniverse
from dpbayes_sklearn import BayesianLinearRegression
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.mechanisms import Gaussian
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.schema import Categories, Interval
from tests.linear_records import linear_records

DESIGN = Design((Interval(-1, 1),) * 2 + (Categories([*"ab"]), Categories([*"xyz"])))
DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize(
    "world",
    [
        MomentUniverse(Design((Interval(-1, 1),)), levels=3),
        MomentUniverse(Design((Interval(-1, 1),), intercept=False), levels=3),
        MomentUniverse(Design((Categories([*"abc"]), Categories([*"ab"]))), levels=2),
        MomentUniverse(
            Design((Interval(-1, 1, missing="indicator"), Categories([*"ab"]))), levels=2
        ),
    ],
    ids=str,
)
def test_no_neighbours_of_a_small_world_exceed_delta(world):
    found = enumerate_delta("gaussian", world, 1, epsilon=1.0, delta=1e-3, transcripts=1)
    assert found.within
    assert found.delta > 0.05 * found.claim, "noise far above what is needed"


def test_an_audit_of_all_steps_sees_half_the_noise_and_nothing_else():
    design, delta = Design((Interval(-1, 1), Interval(-1, 1))), 0.02
    prior, budget = GaussianPrior(design), Budget(Fraction(1), Fraction(1, 50))
    sides, transcript = [], None
    for record in ([1.0, 1.0, 1.0], [0.0, 0.0, -1.0]):
        X = np.vstack([np.zeros((30, 2)), record[:2]])
        data = linear_records(X, [0.0] * 30 + record[2:], design)
        transcript = drawn_steps(Gaussian(), data, prior, budget, transcript, 0)
        sides.append(transcript.steps)
    assert audit_ratios(*sides, 20_000, delta=delta).epsilon <= 1
    assert audit_ratios(*sides, 20_000, True, delta=delta).epsilon > 1


def simulated(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X @ np.linspace(-1, 1, d) + rng.normal(size=n)


def test_many_columns_are_learned():
    X, y = simulated(4000, 20, 0)
    declared = {"bounds_X": (-1, 1), "bounds_y": (-8, 8), "random_state": 0}
    model = BayesianLinearRegression(delta=1e-6, mechanism="gaussian", **declared).fit(X, y)
    assert model.score(X, y) > 0.5  # 0.7 without privacy


def test_intervals_count_gaussian_noise():
    covered = []
    for seed in range(8):
        X, y = simulated(3000, 6, seed)
        model = BayesianLinearRegression(
            delta=1e-6, mechanism="gaussian", bounds_X=(-1, 1), bounds_y=(-8, 8), random_state=seed
        ).fit(X, y)
        table = model.coefficients().to_frame()
        truth = [0.0, *np.linspace(-1, 1, 6)]
        low, high = (table[name].to_numpy()[-6:] for name in ("low", "high"))
        covered += ((low <= truth[1:]) & (truth[1:] <= high)).tolist()
    assert np.mean(covered) > 0.85


def test_a_delta_is_asked_for_charged_and_refused_beyond_the_ceiling():
    X, y = simulated(200, 2, 0)
    declared = {"bounds_X": (-1, 1), "bounds_y": (-8, 8), "mechanism": "gaussian"}
    with pytest.raises(ValueError, match="'delta' parameter"):
        BayesianLinearRegression(**declared).fit(X, y)
    ledger = BudgetAccountant(1.0, 1e-6, composition="zcdp")
    model = BayesianLinearRegression(0.4, delta=1e-7, accountant=ledger, **declared)
    for _ in range(3):
        model.fit(X, y)
    assert ledger.total().epsilon < 1
    with pytest.raises(BudgetError):
        model.set_params(epsilon=0.9).fit(X, y)
    copy = BayesianLinearRegression.from_json(model.to_json())
    assert copy.guarantee_ == model.guarantee_
