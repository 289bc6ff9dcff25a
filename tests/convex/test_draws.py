"""Draws of coefficients in a ball: no record moves their law by more than they spend."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.convex import draws as module
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.draws import loss_of_a_draw, score_range
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.mechanisms import MAP, Sampler
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.regression.plans import plan
from dpbayes_sklearn.release import Facts
from tests.linear_records import LEVELS, NUMBER, SIGN, linear_records

DESIGN = Design((NUMBER, NUMBER, SIGN, LEVELS))
ADDED = PrivacyUnit("record", neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=2)


@pytest.mark.parametrize("limit", [0.3, 1.0])
@pytest.mark.parametrize("reach", [0.1, 0.9, 1.0, 4.0])
def test_the_range_of_a_score_is_attained(limit, reach):
    r, u = np.meshgrid(np.linspace(-limit, limit, 201), np.linspace(-reach, reach, 2001))
    score = r * u - u**2 / 2
    found = max(np.ptp(column) for column in score.T)
    assert found == pytest.approx(score_range(limit, reach), rel=1e-3)
    assert found <= score_range(limit, reach) * (1 + 1e-12)


def test_draws_share_their_budget():
    for n_draws in (1, 7, 100):
        assert n_draws * loss_of_a_draw(Fraction(1, 3), Fraction(0), n_draws) == Fraction(1, 3)
    many = loss_of_a_draw(Fraction(1), Fraction(1, 10**6), 1000)
    assert many > Fraction(1, 1000)


def records(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 4), dtype=object)
    X[:, :2] = rng.uniform(-1, 1, (n, 2))
    X[:, 2], X[:, 3] = rng.choice(list("ab"), n), rng.choice(list("xyz"), n)
    return X, rng.uniform(-1, 1, n)


def largest_loss(made, unit, seeds=20):
    """The range of the change of the exponent over the ball, of neighbours: all draws together."""
    step, worst = made.steps[-1], 0.0
    for seed in range(seeds):
        X, y = records(seed=seed)
        other, target, k = X.copy(), y.copy(), unit.max_records
        other[:k] = np.array([1.0, -1.0, "b", "z"], object)
        target[:k] = np.where(y[:k] < 0, 1.0, -1.0)
        if unit.size_is_secret:
            other, target = X[k:], y[k:]
        noise, known = Noise.of(seed), made.start
        here, there = (linear_records(*each, DESIGN) for each in ((X, y), (other, target)))
        for each in made.steps[:-1]:
            known = each.read(known, each.draw(each.ask(here, known), each.law_given(known), noise))
        a, b = (step.ask(each, known) for each in (here, there))
        w = np.random.default_rng(seed).normal(size=(4000, len(a.linear)))
        w *= a.radius / np.linalg.norm(w, axis=1, keepdims=True)
        moved = -0.5 * np.einsum("ij,jk,ik->i", w, b.precision - a.precision, w)
        moved += w @ (b.linear - a.linear)
        worst = max(worst, a.n_draws * np.ptp(np.append(moved, 0.0)))
    return worst / float(step.cost.epsilon)


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
@pytest.mark.parametrize("mechanism", [Sampler(n_samples=3), MAP()], ids=str)
@pytest.mark.parametrize(
    "options", [{"coef_bound": 0.7}, {"noise_variance": 0.05, "coef_bound": 2}]
)
def test_the_law_of_draws_moves_by_no_more_than_they_spend(mechanism, unit, options, monkeypatch):
    prior = GaussianPrior(DESIGN, inference="noise_aware", **options)
    made = plan(mechanism, prior, Facts(60), Budget(Fraction(1), unit=unit))
    assert largest_loss(made, unit) <= 1
    real = module.score_range
    monkeypatch.setattr(module, "score_range", lambda *reach: real(*reach) / 30)
    assert largest_loss(made, unit) > 1


@pytest.mark.parametrize("unit", [RECORD, ADDED, PERSON], ids=str)
def test_so_it_is_around_a_mode(unit):
    prior = GaussianPrior(DESIGN, inference="noise_aware")
    made = plan(Sampler(), prior, Facts(60), Budget(Fraction(1), unit=unit))
    assert 0.005 < largest_loss(made, unit) <= 1
