"""mechanism="auto": the least noise that epsilon and delta allow, from public facts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_loss
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    DirichletMultinomial,
    from_json,
)
from dpbayes_sklearn.conjugate import certify
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.plans import tables_plan
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Auto, Gaussian, Laplace
from dpbayes_sklearn.planning import expected_error, recommend
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.release import Facts

DELTA = Fraction(1, 10**6)


def variance(mechanism: Any, counts: CountTables, budget: Budget) -> float:
    return float(law_of(mechanism, counts, budget).variances.mean())


def law_of(mechanism: Any, counts: CountTables, budget: Budget) -> Any:
    return tables_plan(mechanism, prior_of(counts.network), Facts(counts.n), budget).law


def prior_of(network: Network) -> DirichletPrior:
    return DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("size", [2, 4, 16])
def test_the_choice_has_the_least_variance_and_changes_once_with_d(
    epsilon: Fraction, size: int
) -> None:
    budget, names = Budget(epsilon, DELTA), []
    for d in (1, 2, 5, 10, 20, 40, 80, 160):
        counts = CountTables(Network.star([size] * d, 2), (), 1000)
        chosen = variance(Auto(), counts, budget)
        assert chosen == min(variance(m, counts, budget) for m in (Laplace(), Gaussian()))
        names.append(type(law_of(Auto(), counts, budget)).__name__)
    assert names == sorted(names)[::-1] or names == sorted(names)
    assert names[0] != "DiscreteGaussian"
    assert names[-1] == "DiscreteGaussian"


def boolean(d: int = 80, n: int = 600) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return (rng.random((n, d)) < 0.4 + 0.2 * y[:, None]).astype(int), y


def model_of(**options: Any) -> BayesianNaiveBayes:
    declared = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    return BayesianNaiveBayes(**{"mechanism": "auto", **declared, **options})


@pytest.mark.parametrize(
    ("d", "delta", "name"),
    [(80, 1e-6, "gaussian"), (80, 0.0, "laplace"), (5, 1e-6, "laplace")],
)
def test_the_guarantee_and_the_ledger_tell_what_was_chosen_and_spent(
    d: int, delta: float, name: str
) -> None:
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-6)
    model = model_of(delta=delta, accountant=accountant).fit(*boolean(d))
    (entry,) = accountant
    spent = delta if name == "gaussian" else 0.0
    assert model.guarantee_.mechanism == name
    assert model.guarantee_.delta == entry.delta == spent
    assert (model.guarantee_.rho is None) == (name == "laplace")
    assert name in entry.label
    assert from_json(model.to_json()).guarantee_ == model.guarantee_
    named = model_of(delta=delta, mechanism=name, random_state=0).fit(*boolean(d))
    same = model_of(delta=delta, random_state=0).fit(*boolean(d))
    pairs = zip(named.posterior_.released.tables, same.posterior_.released.tables, strict=True)
    assert all((a == b).all() for a, b in pairs)


def test_batches_may_choose_differently_and_their_guarantee_names_both() -> None:
    X, y = boolean(5)
    model = model_of(delta=1e-6).partial_fit(X, y)
    model.epsilon = 1e-9  # so small that Gaussian noise has less variance
    model.partial_fit(X, y)
    assert model.guarantee_.mechanism == "laplace and gaussian"
    assert model.guarantee_.delta == 1e-6
    assert model.guarantee_.rho is None
    assert "the deltas to 1e-06" in str(model.guarantee_)
    with pytest.raises(ValueError, match="privacy_unit must be the same"):
        model.set_params(mechanism="laplace").partial_fit(X, y)


def test_without_privacy_nothing_is_chosen() -> None:
    X, y = boolean(5)
    exact = model_of(epsilon=math.inf, delta=1e-6, temperature=1).fit(X, y)
    other = model_of(epsilon=math.inf, mechanism="laplace", temperature=1).fit(X, y)
    np.testing.assert_array_equal(exact.predict_proba(X), other.predict_proba(X))
    assert exact.guarantee_.delta == 0


def test_one_variable_has_geometric_noise_unless_gaussian_has_less() -> None:
    x = [0] * 30 + [1] * 40 + [2] * 30
    options = {"mechanism": "auto", "categories": 3, "inference": "plug_in"}
    assert DirichletMultinomial(delta=1e-6, **options).fit(x).guarantee_.mechanism == "geometric"
    tiny = DirichletMultinomial(1e-4, delta=9e-3, **options).fit(x)
    assert tiny.guarantee_.mechanism == "gaussian"
    assert BetaBinomial(mechanism="auto").fit([0, 1, 1]).guarantee_.mechanism == "geometric"
    assert certify("auto", 20, (1, 1), epsilon=1.0).epsilon == pytest.approx(1.0)


def test_it_is_as_private_as_what_it_chooses() -> None:
    assert enumerate_loss("auto", Network.star([2, 2], 2), 2).loss == 1.0


def test_planning_knows_it_and_shows_the_crossing() -> None:
    few, many = ({"bounds": ([0] * d, [1] * d), "temperature": 1} for d in (10, 100))
    pure = [expected_error(model_of(mechanism="laplace", **p), 1000).mean for p in (few, many)]
    both = [expected_error(model_of(delta=1e-6, **p), 1000).mean for p in (few, many)]
    assert both[0] == pure[0]
    assert both[1] < 0.7 * pure[1]
    assert model_of(delta=1e-6, **many).utility_bound(n=1000) < 400
    errors = recommend(model_of(delta=1e-6, bounds=([0] * 2, [1] * 2)), 200).errors
    assert set(errors) == {"laplace", "fourier", "sampler", "map", "gaussian"}


def test_not_only_gaussian_spends_delta() -> None:
    """A regression with few records for each of many columns takes a mode with Gaussian noise."""
    X = np.random.default_rng(0).uniform(-1, 1, (400, 60))
    model = BayesianLinearRegression(
        1.0, delta=1e-6, mechanism="auto", bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0
    ).fit(X, X[:, 0])
    assert model.guarantee_.mechanism == "map"
    assert model.guarantee_.delta == 1e-6
