"""Regression with Gaussian noise: what is spent, what one record can do, and what it buys."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn import BayesianLinearRegression
from dpbayes_sklearn.audit import enumerate_delta
from dpbayes_sklearn.audit._universes import MomentUniverse
from dpbayes_sklearn.audit.ratios import audit_ratios, drawn_steps
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.mechanisms import Auto, Gaussian, Laplace
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.discrete_gaussian import MAX_VARIANCE
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.regression import step_noise as noise_module
from dpbayes_sklearn.regression.gram import NARROWEST
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.plans import gaussian_shares, plan
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Categories, Interval
from tests.releasing import carried_out

DESIGN = Design((Interval(-1, 1),) * 2 + (Categories([*"ab"]), Categories([*"xyz"])))
DELTA = Fraction(1, 10**6)


def moments(X, y, design=DESIGN):
    return Moments(design, Scale(0.0, 1.0), LocalRecords([(Table(X), np.asarray(y, float))]))


def records(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 4), dtype=object)
    X[:, :2] = rng.uniform(-1, 1, (n, 2))
    X[:, 2], X[:, 3] = rng.choice(list("ab"), n), rng.choice(list("xyz"), n)
    return X, rng.uniform(-1, 1, n)


class Tape:
    """Watches every draw of noise; can play what was released before instead of drawing."""

    def __init__(self, monkeypatch, replay=()):
        self.spent, self.laws, self.sums, self.released = [], [], [], []
        self.replay, real = list(replay), noise_module.add_noise

        def watched(sums, step, grid, share, noise):
            self.spent.append(share)
            self.laws.append((step.law(share, grid), grid))
            self.sums.append(sums)
            answer = self.replay.pop(0) if self.replay else real(sums, step, grid, share, noise)
            self.released.append(answer)
            return answer

        monkeypatch.setattr(noise_module, "add_noise", watched)


def released(statistics, budget, seed=0):
    design = statistics.design
    return carried_out(Gaussian(), statistics, GaussianPrior(design), budget, Noise.of(seed))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(22, 7), Fraction(1000)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [60, 5000])
def test_the_parts_add_up_to_rho_exactly(epsilon, intercept, n, monkeypatch):
    tape, budget = Tape(monkeypatch), Budget(epsilon, DELTA)
    statistics = moments(*records(n), Design(DESIGN.domains, intercept))
    cost = plan(Gaussian(), GaussianPrior(statistics.design), Facts(statistics.n), budget).cost
    guarantee = released(statistics, budget).guarantee
    assert sum(tape.spent) == cost.rho
    assert (guarantee.epsilon, guarantee.delta) == (float(epsilon), float(DELTA))
    assert guarantee.rho >= float(cost.rho)
    # what exact composition rests on: no noise is narrower than that of this sensitivity
    for law, grid in tape.laws:
        assert min(law.parameters) >= (grid**2 // NARROWEST) ** 2 / (2 * cost.rho)
        assert max(law.parameters) <= MAX_VARIANCE


@pytest.mark.parametrize(("epsilon", "n"), [(Fraction(1), 60), (Fraction(8), 2500)])
def test_a_neighbour_costs_at_most_rho_and_the_answers_decide_everything(epsilon, n, monkeypatch):
    rng = np.random.default_rng(1)
    worst, budget = Fraction(0), Budget(epsilon, DELTA)
    for trial in range(12):
        X, y = records(n, seed=trial)
        first = Tape(monkeypatch)
        before = released(moments(X, y), budget, trial)
        X[0] = [1.0, 1.0, "a", "x"] if trial % 2 else [np.nan, -np.inf, "?", None]
        y[0] = rng.choice([-1.0, 1.0, np.inf, np.nan])
        second = Tape(monkeypatch, first.released)
        after = released(moments(X, y), budget)
        monkeypatch.undo()
        assert np.array_equal(before.posterior.mean(), after.posterior.mean())
        assert np.array_equal(before.posterior.covariance, after.posterior.covariance)
        pairs = zip(first.laws, first.sums, second.sums, strict=True)
        worst = max(worst, sum(law.rho(a - b) for (law, _), a, b in pairs))
    rho = sum(first.spent)
    assert 0.2 * rho < worst <= rho


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
        data = moments(X, [0.0] * 30 + record[2:], design)
        transcript = drawn_steps(Gaussian(), data, prior, budget, transcript, 0)
        sides.append(transcript.steps)
    assert audit_ratios(*sides, 20_000, delta=delta).epsilon <= 1
    assert audit_ratios(*sides, 20_000, True, delta=delta).epsilon > 1


@pytest.mark.parametrize(
    ("columns", "epsilon", "expected"), [(1, 1, Laplace), (12, 1, Gaussian), (2, 10, Laplace)]
)
def test_auto_takes_what_has_less_noise(columns, epsilon, expected):
    design = Design((Categories([0.0, 1.0]),) * columns)  # signs, whose norm is what it is
    statistics = moments(np.zeros((500, columns)), np.zeros(500), design)
    prior = GaussianPrior(design)
    facts = Facts(statistics.n)
    chosen = plan(Auto(), prior, facts, Budget(Fraction(epsilon), DELTA))
    assert chosen.mechanism == expected.name()
    assert plan(Auto(), prior, facts, Budget(Fraction(epsilon))).mechanism == "laplace"


def simulated(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X @ np.linspace(-1, 1, d) + rng.normal(size=n)


def test_many_columns_are_learned():
    X, y = simulated(4000, 20, 0)
    declared = {"bounds_X": (-1, 1), "bounds_y": (-8, 8), "random_state": 0}
    model = BayesianLinearRegression(delta=1e-6, mechanism="gaussian", **declared).fit(X, y)
    assert model.score(X, y) > 0.6  # 0.7 without privacy


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


def test_shares_follow_from_public_facts():
    shares = [
        gaussian_shares(
            GaussianPrior(DESIGN), len(records(seed=seed)[1]), Budget(Fraction(1), DELTA)
        )
        for seed in (0, 1)
    ]
    assert shares[0] == shares[1]
    assert shares[0].gaussian
    assert math.isclose(shares[0].total, 0.028, rel_tol=0.01)
