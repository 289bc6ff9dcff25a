"""Scores look at private data: whoever keeps a budget is told, and told once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    PrivacyLeakWarning,
)
from dpbayes_sklearn.model_selection import PrivateSearchCV

X, Y = np.random.default_rng(0).integers(0, 2, (60, 2)), np.arange(60) % 2
PREDICTORS = [
    BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1)),
    BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)),
]
PREDICTORS += [PrivateSearchCV(PREDICTORS[0], {"alpha": [1.0]}, runs_per_candidate=1)]
each = pytest.mark.parametrize("model", PREDICTORS, ids=lambda model: type(model).__name__)


def told(action):
    """Return the warnings that an action causes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    assert all(w.category is PrivacyLeakWarning for w in caught)
    return [w for w in caught if "Scores are computed from the data" in str(w.message)]


@each
def test_cross_validation_tells_once_for_each_ledger(model):
    for _ in range(2):
        model.set_params(accountant=BudgetAccountant())
        assert len(told(lambda: cross_val_score(model, X, Y, cv=3))) == 1
        assert told(lambda: cross_val_score(model, X, Y, cv=3)) == []
    model.set_params(accountant=None)


@pytest.mark.parametrize(
    ("model", "scoring"),
    [
        *((model, name) for model in PREDICTORS[::2] for name in ("accuracy", "neg_log_loss")),
        (PREDICTORS[1], "r2"),
        (PREDICTORS[1], make_scorer(mean_absolute_error)),
    ],
)
def test_named_scorers_tell_too(model, scoring):
    model = clone(model).set_params(accountant=BudgetAccountant())
    assert len(told(lambda: cross_val_score(model, X, Y, cv=3, scoring=scoring))) == 1


def test_a_grid_search_tells_once():
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1))
    with BudgetAccountant():
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2)
        assert len(told(lambda: search.fit(X, Y).score(X, Y))) == 1


def test_the_line_that_scored_is_named():
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), accountant=BudgetAccountant())
    (warning,) = told(lambda: model.fit(X, Y).score(X, Y))
    assert warning.filename == __file__
    assert "PrivateSearchCV" in str(warning.message)


def test_a_posterior_tells_too():
    model = BetaBinomial(accountant=BudgetAccountant()).fit(Y)
    assert len(told(lambda: model.score(Y))) == 1


@each
def test_without_a_budget_nobody_is_told(model):
    assert told(lambda: cross_val_score(model, X, Y, cv=2)) == []


def test_predicting_tells_nothing():
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), accountant=BudgetAccountant())
    assert told(lambda: cross_val_predict(model, X, Y, cv=2)) == []


def test_a_private_search_tells_nothing_before_somebody_scores():
    with BudgetAccountant():
        assert told(lambda: PREDICTORS[2].fit(X, Y)) == []
