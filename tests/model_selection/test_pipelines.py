"""A private search over pipelines: one charge, private steps only, nothing but the release."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.audit.tools.replaying import SEARCH, replay
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    PrivateSearchCV,
)
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.model_selection.pipelines import PrivatePipeline, step_epsilons
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateMinMaxScaler

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 3000)
X = RNG.normal(size=(3000, 5))
X[:, 2] += 2 * LABELS
CODED = {"bounds": (0, 7), "n_bins": 8, "classes": [0, 1]}
PIPE = make_pipeline(
    PrivateKBinsDiscretizer(8, epsilon=0.2),
    PrivateSelectKBest(2, epsilon=0.2, **CODED),
    BayesianNaiveBayes(0.6, **CODED),
)
GRID = {"privateselectkbest__k": [1, 4]}


@pytest.mark.slow
def test_a_search_is_one_charge_and_the_winner_a_pipeline():
    ledger = BudgetAccountant()
    search = PrivateSearchCV(PIPE, GRID, epsilon=3.0, accountant=ledger, runs_per_candidate=2)
    search.fit(X, LABELS)
    (entry,) = ledger
    assert (entry.epsilon, search.guarantee_.epsilon) == (3.0, 3.0)
    assert "PrivateKBinsDiscretizer and PrivateSelectKBest and BayesianNaiveBayes" in entry.label
    assert isinstance(search.best_estimator_, Pipeline)
    assert all(step.guarantee_ == search.guarantee_ for _, step in search.best_estimator_.steps)
    assert np.mean(search.predict(X) == LABELS) > 0.75
    assert search.predict_proba(X[:2]).shape == (2, 2)
    assert search.n_features_in_ == 5
    assert leaks(search, {"a column": X[:, 2], "labels": LABELS}) == []


def test_steps_share_the_epsilon_of_a_run_in_proportion():
    shares = step_epsilons(PIPE, 1)
    assert [float(share) for share in shares.values()] == [0.2, 0.2, 0.6]
    exact = clone(PIPE).set_params(bayesiannaivebayes__epsilon=math.inf)
    assert {*step_epsilons(exact, math.inf).values()} == {math.inf}
    with pytest.raises(ValueError, match="'bayesiannaivebayes' of a pipeline has an infinite"):
        step_epsilons(exact, 1)


def test_a_regression_and_workers():
    scaled = make_pipeline(
        PrivateMinMaxScaler(0.3), BayesianLinearRegression(0.7, bounds_X=(0, 1), bounds_y=(-3, 5))
    )
    grid = {"privateminmaxscaler__quantiles": [(0.01, 0.99), (0.1, 0.9)]}
    search = PrivateSearchCV(scaled, grid, epsilon=6.0, n_jobs=2, runs_per_candidate=2)
    assert search.fit(X, X[:, 2]).guarantee_.epsilon == 6.0


def test_a_step_that_is_not_private_is_refused_before_anything_is_spent():
    ledger = BudgetAccountant()
    leaky = make_pipeline(StandardScaler(), BayesianNaiveBayes(**CODED))
    headless = make_pipeline(PrivateMinMaxScaler())
    later = make_pipeline(PrivateMinMaxScaler(), BayesianNaiveBayes(**CODED))
    for estimator, grid in (
        (leaky, {"bayesiannaivebayes__alpha": [1.0]}),
        (headless, {}),
        (later, {"privateminmaxscaler": [StandardScaler()]}),
    ):
        with pytest.raises(ValueError, match="of this library"):
            PrivateSearchCV(estimator, grid, accountant=ledger).fit(X, LABELS)
    with pytest.raises(ValueError, match="no delta"):
        PrivateSearchCV(PIPE, GRID, delta=1e-6).fit(X, LABELS)
    gaussian = clone(PIPE).set_params(
        bayesiannaivebayes__mechanism="gaussian", bayesiannaivebayes__delta=1e-6
    )
    with pytest.raises(ValueError, match="must have delta=0"):
        PrivateSearchCV(gaussian, GRID, accountant=ledger).fit(X, LABELS)
    assert len(ledger) == 0


def test_a_passing_step_needs_no_budget():
    pipe = clone(PIPE).set_params(privateselectkbest="passthrough")
    grid = {"bayesiannaivebayes__alpha": [1.0]}
    search = PrivateSearchCV(pipe, grid, epsilon=3.0, runs_per_candidate=1)
    assert search.fit(X, LABELS).guarantee_.epsilon == 3.0


def test_a_neighbour_differs_in_nothing_but_the_release():
    small = make_pipeline(
        PrivateKBinsDiscretizer(4, epsilon=0.5),
        BayesianNaiveBayes(0.5, bounds=(0, 3), n_bins=4, classes=[0, 1], inference="plug_in"),
    )
    grid = {"bayesiannaivebayes__alpha": [0.5, 1.0]}
    search = PrivateSearchCV(small, grid, epsilon=0.7, runs_per_candidate=1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        one, labels = rng.normal(size=(20, 2)), rng.integers(0, 2, 20)
        other, others = one.copy(), labels.copy()
        other[seed], others[seed] = [np.nan, np.inf], 7
        found = replay(search, one, labels, other, others, freeze=SEARCH)
        assert found.sound, found.divergences
        assert found.epsilon == 0.7


def test_a_private_pipeline_is_an_estimator_of_one_epsilon():
    ledger = BudgetAccountant()
    model = PrivatePipeline(PIPE, epsilon=2.0, accountant=ledger, random_state=0).fit(X, LABELS)
    assert [float(entry.epsilon) for entry in ledger] == [2.0]
    again = PrivatePipeline(PIPE, epsilon=2.0, random_state=0).fit(X, LABELS)
    assert np.array_equal(model.predict(X), again.predict(X))
