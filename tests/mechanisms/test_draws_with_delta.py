"""Draws priced by their zCDP: never less than the exact divergence, and the root of many draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_delta
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.convex.draws import loss_of_a_draw
from dpbayes_sklearn.counts.dirichlet import DirichletPrior, sampler_law
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid, release_rho, split_priors
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.papers.query import PosteriorQuerySession
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.privacy.composition import zcdp_rho

DELTA = Fraction(1, 10**6)


def prior_of(network, alpha=1.0):
    return DirichletPrior(network, tuple(np.full(k, alpha) for k in network.sizes), temperature=1)


def renyi(p, q, order):
    return math.log((p**order * q ** (1 - order)).sum()) / (order - 1)


@pytest.mark.parametrize("points", [2, 9])
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.3, 2.0)])
def test_no_change_of_a_split_has_more_divergence_than_is_counted(points, prior):
    """One Boolean variable: all counts of up to six records, turned to the other side."""
    network, tau, n = Network((2,), ((),)), 0.4, 6
    grid, (a, b) = SplitGrid(0.1, points), prior
    rho = release_rho(network, grid, [(np.array([a]), np.array([b]))], tau, n, RECORD)
    worst = 0.0
    for k in range(n):
        p, q = (grid.law(a + tau * i, b + tau * (n - i)) for i in (k, k + 1))
        for order in (1.01, 2.0, 5.0, 40.0):
            worst = max(worst, renyi(p, q, order) / order, renyi(q, p, order) / order)
    assert worst <= rho
    if points == 2 and prior == (1.0, 1.0):
        assert worst > 0.85 * rho, "two points that are equally likely are the worst"


def test_rho_adds_up_over_tables_and_epsilon_does_too():
    grid = SplitGrid(0.2, 65)
    for d in (1, 4, 16):
        network = Network.star([2] * d, 2)
        rho = release_rho(network, grid, split_priors(prior_of(network).alphas), 0.01, 500, RECORD)
        assert rho == pytest.approx((d + 1) * (0.02 * math.log(4)) ** 2 / 8, rel=1e-4), (
            "every table is turned at one split"
        )


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["record", "feature"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-3), (0.5, 0.01)])
def test_no_neighbours_of_a_small_world_exceed_delta(unit, epsilon, delta):
    mechanism = Sampler(12 if unit == "feature" else 6, n_points=2)
    options = {"epsilon": epsilon, "delta": delta, "unit": unit}
    found = enumerate_delta(mechanism, Network.star([2], 2), 3, **options)
    assert 0 < found.delta <= delta


def test_many_draws_cost_their_root():
    network, n = Network.star([2] * 20, 2), 2000
    taus = {
        (draws, delta): sampler_law(
            Sampler(draws), prior_of(network), n, Budget(Fraction(1), delta)
        ).tau
        for draws in (1, 100)
        for delta in (Fraction(0), DELTA)
    }
    assert 60 < taus[1, 0] / taus[100, 0] <= 101
    assert taus[1, DELTA] / taus[100, DELTA] == pytest.approx(10, rel=0.1)
    assert taus[1, DELTA] > 1.5 * taus[1, 0]


def test_few_draws_of_few_tables_stay_pure():
    X, y = np.array([[0], [1]] * 50), [0, 1] * 50
    declared = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2, "temperature": 1}
    model = BayesianNaiveBayes(1.0, delta=1e-6, mechanism="sampler", **declared).fit(X, y)
    assert model.guarantee_.delta == 0
    assert 0 < model.guarantee_.rho <= 0.5


def test_the_ledger_is_told_rho_and_delta_of_draws():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = (rng.random((1000, 20)) < 0.3 + 0.3 * y[:, None]).astype(int)
    declared = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    ledger = BudgetAccountant(1.0, 1e-6)
    model = BayesianNaiveBayes(
        0.5, delta=1e-7, mechanism=Sampler(20), accountant=ledger, temperature=1, **declared
    )
    model.fit(X, y)
    (entry,) = ledger
    assert entry.delta == 1e-7
    assert entry.rho == model.guarantee_.rho
    assert entry.rho <= zcdp_rho(Fraction(1, 2), Fraction(1, 10**7))


def test_draws_of_coefficients():
    assert loss_of_a_draw(Fraction(1), Fraction(0), 4) == Fraction(1, 4)
    assert loss_of_a_draw(Fraction(1), DELTA, 1) == 1
    many = loss_of_a_draw(Fraction(1), DELTA, 100)
    assert 100 * many**2 / 8 <= zcdp_rho(Fraction(1), DELTA)
    assert many > Fraction(4, 100)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = X @ [1, -1, 0.5] + 0.3 * rng.normal(size=3000)
    # in a declared ball, where the draws alone tell where the coefficients are
    declared = {"bounds_X": (-1, 1), "bounds_y": (-4, 4), "coef_bound": 0.5, "random_state": 0}
    pure, priced = (
        BayesianLinearRegression(delta=d, mechanism=Sampler(100), **declared).fit(X, y)
        for d in (0.0, 1e-6)
    )
    assert priced.score(X, y) > pure.score(X, y)
    assert (pure.guarantee_.delta, priced.guarantee_.delta) == (0, 1e-6)


def test_a_session_asks_more_where_the_ceiling_has_a_delta():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = rng.integers(0, 2, (500, 3))
    declared = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    asked = {}
    for delta in (0.0, 1e-6):
        ledger = BudgetAccountant(1.0, delta, composition="zcdp" if delta else "sum")
        model = BayesianNaiveBayes(
            0.02, delta=1e-7, mechanism="sampler", accountant=ledger, **declared
        )
        with PosteriorQuerySession(model, X, y) as session:
            for _ in range(400):
                try:
                    session.query(lambda tables: tables[-1][1])
                except ValueError:
                    break
            asked[delta] = len(session)
    assert asked[0.0] == 50
    assert asked[1e-6] > 300  # a half of 0.02² each would allow 121


def test_a_feature_changes_fewer_splits():
    network, grid = Network.star([2] * 5, 2), SplitGrid(0.2, 9)
    priors = split_priors(prior_of(network).alphas)
    rhos = [
        release_rho(network, grid, priors, 0.1, 50, PrivacyUnit.of(unit))
        for unit in ("record", "feature")
    ]
    assert rhos[0] == pytest.approx(6 * rhos[1])
