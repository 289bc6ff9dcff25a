"""What the steps of a pipeline, its options or a grid could change about a search's promise."""

from __future__ import annotations

import math
import re

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    PrivateSearchCV,
    from_json,
)
from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Auto
from dpbayes_sklearn.model_selection import runs as search_runs
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
from dpbayes_sklearn.privacy import PrivacyGuarantee

RNG = np.random.default_rng(0)
X = RNG.random((300, 3))
Y = (X[:, 0] > 0.5).astype(int)
GRID = {"model__alpha": [1.0, 2.0]}


def bayes(epsilon=0.9, **options):
    declared = {"bounds": (0, 1), "n_bins": 2, "classes": [0, 1], "temperature": 1}
    return BayesianNaiveBayes(epsilon, **declared, **options)


def pipe(scaler=None, model=None, **options):
    steps = [("scale", scaler or PrivateMinMaxScaler(0.1)), ("model", model or bayes())]
    return Pipeline(steps, **options)


def search(estimator, grid=GRID, **options):
    return PrivateSearchCV(estimator, grid, **{"epsilon": 3.0, "runs_per_candidate": 2, **options})


# ------------------------------------------------------------------ budget and unit


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (pipe(PrivateMinMaxScaler(math.inf)), GRID),
        (pipe(model=bayes(math.inf)), GRID),
        (pipe(), {"scale": [PrivateMinMaxScaler(math.inf)]}),
        # with an infinite epsilon a step seems to spend no delta
        (pipe(model=bayes(math.inf, mechanism="gaussian", delta=1e-6)), GRID),
    ],
)
def test_a_step_of_infinite_epsilon_is_refused_before_the_charge(estimator, grid):
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match="infinite epsilon"):
        search(estimator, grid, accountant=ledger).fit(X, Y)
    assert len(ledger) == 0


def test_an_infinite_search_has_infinite_steps():
    found = search(pipe(PrivateMinMaxScaler(math.inf)), epsilon=math.inf).fit(X, Y)
    assert [step.epsilon for _, step in found.best_estimator_.steps] == [math.inf] * 2
    assert found.guarantee_.epsilon == math.inf


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale__epsilon", math.inf),
        ("model__privacy_unit", "feature"),
        ("model__accountant", BudgetAccountant()),
        ("scale__random_state", 0),
        ("model__delta", 1e-6),
    ],
)
def test_parameters_of_the_search_are_not_searched_over_in_steps(name, value):
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match=f"param_grid must not hold '{name}'"):
        search(pipe(), {name: [value]}, accountant=ledger).fit(X, Y)
    assert len(ledger) == 0


OTHER = bayes(privacy_unit="feature")


@pytest.mark.parametrize(
    "grid",
    [{"model": [bayes(), OTHER]}, {"steps": [[("scale", PrivateMinMaxScaler()), ("m", OTHER)]]}],
)
def test_candidates_protect_one_unit(grid):
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match="must protect the same"):
        search(pipe(), grid, accountant=ledger).fit(X, Y)
    assert len(ledger) == 0


# ------------------------------------------------------------------ ledgers


@pytest.mark.parametrize(
    "made",
    [
        lambda ledger: (pipe(PrivateMinMaxScaler(0.1, accountant=ledger)), GRID),
        lambda ledger: (pipe(model=bayes(accountant=ledger)), GRID),
        lambda ledger: (
            pipe(PrivateMinMaxScaler(0.1, accountant=ledger), bayes(accountant=ledger)),
            GRID,
        ),
        lambda ledger: (pipe(), {"model": [bayes(), bayes(accountant=ledger)]}),
    ],
)
def test_the_ledger_of_any_step_is_charged(made):
    ledger = BudgetAccountant(epsilon=3.0)
    found = search(*made(ledger)).fit(X, Y)
    assert [entry.epsilon for entry in ledger] == [3.0]
    assert all(step.accountant is ledger for _, step in found.best_estimator_.steps)
    with pytest.raises(BudgetError):
        search(*made(ledger)).fit(X, Y)


def test_steps_with_different_ledgers_are_refused_unless_the_search_has_one():
    one, other, own = BudgetAccountant(), BudgetAccountant(), BudgetAccountant()
    mixed = pipe(PrivateMinMaxScaler(0.1, accountant=one), bayes(accountant=other))
    with pytest.raises(ValueError, match="different accountants"):
        search(mixed).fit(X, Y)
    search(mixed, accountant=own).fit(X, Y)
    assert [len(ledger) for ledger in (one, other, own)] == [0, 0, 1]


# ------------------------------------------------------------------ the winner


def guarantees(values):
    for value in values:
        if isinstance(value, PrivacyGuarantee):
            yield value.epsilon
        elif isinstance(value, tuple):
            yield from guarantees(value)


def test_the_winner_keeps_the_guarantee_of_the_search():
    found = search(pipe()).fit(X, Y)
    for _, step in found.best_estimator_.steps:
        assert {*guarantees(vars(step).values())} == {3.0}
    model = found.best_estimator_[-1]
    assert from_json(model.to_json()).guarantee_ == found.guarantee_
    assert model.set_params(epsilon=0.1).partial_fit(X[:50], Y[:50]).guarantee_.epsilon == 3.0


def test_a_regression_that_wins_keeps_the_guarantee_of_the_search():
    line = BayesianLinearRegression(0.9, bounds_X=(0, 1), bounds_y=(0, 1))
    found = search(pipe(model=line), {"scale__quantiles": [(0.01, 0.99), (0.1, 0.9)]}).fit(X, Y)
    model = found.best_estimator_[-1]
    assert from_json(model.to_json()).guarantee_ == found.guarantee_
    assert np.array_equal(from_json(model.to_json()).coef_, model.coef_)


# ------------------------------------------------------------------ options of pipelines


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_nothing_tells_the_number_of_runs(capfd, n_jobs):
    with joblib.parallel_config(verbose=60):
        search(pipe(verbose=True), n_jobs=n_jobs).fit(X, Y)
        search(bayes(), {"alpha": [1.0, 2.0]}, n_jobs=n_jobs).fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_a_callback_does_not_hear_of_runs():
    pipeline = pipe()
    if not hasattr(pipeline, "set_callbacks"):
        pytest.skip("this scikit-learn has no callbacks")
    heard = []

    class Ear:
        def setup(self, estimator, context):
            heard.append("setup")

        def on_fit_task_begin(self, estimator, context, **data):
            heard.append("begin")

        def on_fit_task_end(self, estimator, context, **data):
            heard.append("end")

        def teardown(self, estimator, context):
            heard.append("teardown")

    pipeline.set_callbacks(Ear())
    pipeline.fit(X, Y)
    assert heard
    heard.clear()
    search(pipeline).fit(X, Y)
    assert heard == []


def test_a_cache_is_not_used(tmp_path, monkeypatch):
    drawn, ran = [], []
    seen, run = PrivateMinMaxScaler._set, search_runs.run
    monkeypatch.setattr(
        PrivateMinMaxScaler, "_set", lambda self, a: (drawn.append(a), seen(self, a))[1]
    )
    monkeypatch.setattr(search_runs, "run", lambda *args: (ran.append(1), run(*args))[1])
    found = search(pipe(memory=str(tmp_path))).fit(X, Y)
    assert len(drawn) == len({*drawn}) == 2 + len(ran)  # the rehearsal fits both candidates
    assert found.best_estimator_.memory is None
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ what cannot be searched over


@pytest.mark.parametrize("select", [PrivateSelectKBest(1), pipe(model=PrivateSelectKBest(1))])
def test_a_selection_of_columns_is_no_model(select):
    with pytest.raises(ValueError, match=re.escape("ends with one. Got PrivateSelectKBest")):
        search(select, {}).fit(X, Y)
    with pytest.raises(ValueError, match="Got PrivateSelectKBest"):
        PrivateSearchCV.cost(select, {}, 100)


def test_the_cost_of_a_search_refuses_what_a_search_refuses():
    gaussian = bayes(mechanism="gaussian", delta=1e-6)
    for estimator, grid, match in (
        (gaussian, {"alpha": [1.0]}, "needs a delta"),
        (bayes(), {"mechanism": ["laplace", "gaussian"]}, "needs a delta"),
        (pipe(model=gaussian), GRID, "must have delta=0"),
        (pipe(PrivateMinMaxScaler(-1)), GRID, "epsilon"),
    ):
        with pytest.raises(ValueError, match=match):
            PrivateSearchCV.cost(estimator, grid, 100)


def test_the_cost_of_a_pipeline_is_that_of_all_steps():
    cost = PrivateSearchCV.cost(pipe(), GRID, 300)
    assert (cost.epsilon, cost.epsilon_per_run, cost.n_runs) == (3.0, 1.0, 20)
    found = search(pipe(), epsilon=cost.epsilon).fit(X, Y)
    assert [float(step.epsilon) for _, step in found.best_estimator_.steps] == [0.1, 0.9]


def test_a_regression_has_an_automatic_mechanism():
    ledger = BudgetAccountant()
    line = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), accountant=ledger)
    search(line, {"mechanism": [Auto()]}).fit(X, Y)
    clone(line).set_params(mechanism=Auto()).fit(X, Y)
    assert len(ledger) == 2


def test_more_runs_than_can_be_made_are_refused_before_the_charge():
    ledger = BudgetAccountant()
    for stopping in ("geometric", "logarithmic"):
        endless = search(bayes(), {}, runs_per_candidate=10**12, stopping=stopping)
        with pytest.raises(ValueError, match="smaller runs_per_candidate"):
            endless.set_params(accountant=ledger).fit(X, Y)
    assert len(ledger) == 0
