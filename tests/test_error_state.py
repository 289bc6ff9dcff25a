"""The caller's numpy error state does not decide whether a fit raises or warns."""

from __future__ import annotations

import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    PosteriorQuerySession,
)
from dpbayes_sklearn.shards import merge

SUBNORMAL = 5e-324
X = np.random.default_rng(0).random((40, 3))
Y = np.arange(40) % 2
X[0, 0] = SUBNORMAL
TARGET = Y.astype(float)
TARGET[0] = SUBNORMAL
DISCRETE = [
    BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=4, mechanism=mechanism)
    for mechanism in ("laplace", "fourier", "sampler", "map")
]
LINEAR = [
    BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), mechanism=mechanism)
    for mechanism in ("laplace", "fourier", "sampler", "map")
]
each_state = pytest.mark.parametrize("state", ["raise", "warn"])
each_model = pytest.mark.parametrize(
    "model", DISCRETE + LINEAR, ids=lambda m: f"{type(m).__name__}-{m.mechanism}"
)


def target(model):
    return TARGET if model in LINEAR else Y


@each_state
@each_model
def test_a_fit(model, state):
    accountant = BudgetAccountant()
    with np.errstate(all=state):  # and warnings are errors here
        clone(model).set_params(accountant=accountant).fit(X, target(model))
    assert len(accountant) == 1


@each_state
@each_model
def test_shards_merge_under_any_error_state(model, state):
    with np.errstate(all=state):
        model = clone(model)
        if "temperature" in model.get_params():
            model.set_params(temperature=0.5)
        shards = [model.exact_statistics(X[i::2], target(model)[i::2]) for i in (0, 1)]
        model.fit_statistics(merge(shards))


@each_state
def test_batches_queries_and_one_column(state):
    with np.errstate(all=state):
        clone(DISCRETE[0]).partial_fit(X, Y).partial_fit(X, Y)
        with PosteriorQuerySession(DISCRETE[2], X, Y, accountant=BudgetAccountant(1)) as session:
            session.query(lambda tables: None)
        BetaBinomial(mechanism="exponential").fit(Y)


@each_state
def test_threads_have_a_state_of_their_own(state, monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn.data.records._CELLS_A_THREAD", 10)
    table = np.full((400, 3), SUBNORMAL)

    def task(model, y):
        np.seterr(all=state)
        return clone(model).fit(table, y)

    with joblib.parallel_config("threading", n_jobs=2), warnings.catch_warnings():
        for model in (DISCRETE[0], LINEAR[0]):
            joblib.Parallel()(joblib.delayed(task)(model, np.arange(400) % 2) for _ in range(2))
