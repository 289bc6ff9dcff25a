"""The audit of whole estimators, ours and others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
)
from dpbayes_sklearn.audit.statistical import audit, bound_from_outcomes

X, Y = np.zeros((4, 1)), np.zeros(4, int)
X2, Y2 = X.copy(), Y.copy()
X2[0], Y2[0] = 1.0, 1


class NoisySum(BaseEstimator):
    """A stranger: adds Laplace noise of scale 1 / epsilon times ``fault`` to a sum in [0, n]."""

    def __init__(self, epsilon=1.0, fault=1.0, random_state=None):
        self.epsilon = epsilon
        self.fault = fault
        self.random_state = random_state

    def fit(self, X, y=None):
        noise = np.random.default_rng(self.random_state).laplace(scale=self.fault / self.epsilon)
        self.sum_ = float(np.sum(X)) + noise
        return self


def test_a_stranger_is_bounded_near_its_epsilon():
    bound = audit(NoisySum(), X, None, X2, None, 6_000, random_state=0)
    assert 0.7 < bound.epsilon <= 1.0
    assert bound.runs == 3_000
    assert bound.confidence == 0.999
    shown = str(bound).removeprefix("epsilon is at least ").split()[0]
    assert 0.99 * bound.epsilon < float(shown) <= bound.epsilon


def test_half_the_noise_is_caught():
    bound = audit(NoisySum(fault=0.5), X, None, X2, None, 3_000, random_state=0)
    assert bound.epsilon > 1.2


def test_no_noise_at_all_is_caught_by_all_numbers_it_shows():
    bound = audit(GaussianNB(), X, [0, 1, 0, 1], X2, [0, 1, 0, 1], 300)
    assert bound.epsilon > 2.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2, inference="plug_in"),
        BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), noise_variance=0.1),
        BetaBinomial(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_our_estimators_keep_their_promise_here(model):
    sides = (X[:, 0], None, X2[:, 0], None) if isinstance(model, BetaBinomial) else (X, Y, X2, Y2)
    assert audit(model, *sides, 60, random_state=0).epsilon <= 1.0


def test_a_seed_of_the_estimator_does_not_freeze_the_noise():
    frozen = audit(NoisySum(random_state=7), X, None, X2, None, 1_000, random_state=0)
    fresh = audit(NoisySum(), X, None, X2, None, 1_000, random_state=0)
    assert frozen == fresh
    assert audit(NoisySum(random_state=7), X, None, X2, None, 1_000).epsilon <= 1.0


def test_nobody_is_charged():
    ledger = BudgetAccountant()
    model = BetaBinomial(accountant=ledger)
    audit(model, [1, 0], None, [0, 0], None, 20)
    assert len(ledger) == 0
    assert model.accountant is ledger


def test_workers_see_the_same():
    alone, together = (
        audit(NoisySum(), X, None, X2, None, 400, n_jobs=n, random_state=0) for n in (1, 2)
    )
    assert alone == together


def test_what_is_observed_can_be_chosen():
    def sign(fitted):
        return fitted.sum_ > 0.5

    bound = audit(NoisySum(), X, None, X2, None, 6_000, observe=sign, random_state=0)
    assert 0.6 < bound.epsilon <= 1.0


def test_observations_must_be_alike():
    lengths = iter(range(1000))
    with pytest.raises(ValueError, match="give a function observe"):
        audit(NoisySum(), X, None, X2, None, 10, observe=lambda fitted: np.ones(next(lengths)))
    with pytest.raises(ValueError, match="as many outcomes on either side"):
        bound_from_outcomes(np.zeros(10), np.zeros(9))


def test_delta_forgives_rare_events():
    rng = np.random.default_rng(0)
    first, second = rng.laplace(size=(2, 20_000))
    first[rng.random(20_000) < 0.01] = 1e6  # with probability 0.01 everything is shown
    assert bound_from_outcomes(first, second).epsilon > 1
    assert bound_from_outcomes(first, second, delta=0.02).epsilon <= 0.1
