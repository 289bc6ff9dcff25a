"""BayesianLogisticRegression: the model, its parameters, its price and what it refuses."""

from __future__ import annotations

import logging
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    ForestDisplay,
    Interval,
    PrivacyLeakWarning,
    PrivacyUnit,
    PrivateSearchCV,
    Schema,
    from_json,
)
from dpbayes_sklearn._compat import InvalidParameterError
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.logistic.blocks import WEIGHT_STEPS
from dpbayes_sklearn.mechanisms import MAP, Laplace, Sampler
from dpbayes_sklearn.shards import merge

TRUTH = np.array([1.0, -0.7, 0.0])


def numeric(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-(0.3 + X @ TRUTH)))).astype(int)
    return X, y


def frame(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(20, 80, n), "job": rng.choice(["a", "b", "c"], n)})
    z = (X.age - 50) / 15 + X.job.map({"a": 0.0, "b": 1.0, "c": -1.0})
    X.loc[::9, "age"] = np.nan
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-z)), "well", "ill")


SCHEMA = Schema(
    {"age": Interval(0, 100, missing="indicator"), "job": Categories([*"abc"])},
    target=Categories(["well", "ill"]),
)


def model(epsilon=1.0, **options):
    known = {"bounds": (-5, 5), "classes": [0, 1], "random_state": 0}
    return BayesianLogisticRegression(epsilon, **{**known, **options})


@pytest.mark.parametrize("effects", ["smooth", "linear"])
def test_without_privacy_it_is_scikit_learns_ridge_on_the_same_weights(effects):
    X, y = numeric()
    fitted = model(float("inf"), effects=effects, prior_precision=2.0).fit(X, y)
    blocks = fitted._blocks(fitted.schema_)
    tables = blocks.tables(fitted.posterior_.nodes)
    x = blocks.weights(blocks.encode(Table(X)), tables) / WEIGHT_STEPS @ blocks.basis
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(x, y)
    assert np.abs(fitted.posterior_.parameters - theirs.coef_[0]).max() < 1e-5
    assert fitted.predict_proba(X) == pytest.approx(theirs.predict_proba(x), abs=1e-5)


def test_linear_effects_without_privacy_are_scikit_learns_on_the_columns():
    X, y = numeric()
    fitted = model(float("inf"), effects="linear", prior_precision=1e-3).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    assert fitted.coef_ == pytest.approx(theirs.coef_, abs=0.02)
    assert fitted.intercept_ == pytest.approx(theirs.intercept_, abs=0.02)
    by_hand = X @ fitted.coef_[0] + fitted.intercept_[0]
    inside = (np.abs(X) < 2.5).all(axis=1)
    assert fitted.decision_function(X)[inside] == pytest.approx(by_hand[inside], abs=0.01)


@pytest.mark.parametrize("options", [{}, {"effects": "linear"}, {"n_bins": 6}, {"intervals": True}])
def test_it_learns_at_epsilon_one(options):
    X, y = numeric()
    best = roc_auc_score(y, X @ TRUTH)
    fitted = model(**options).fit(X, y)
    assert roc_auc_score(y, fitted.decision_function(X)) > best - (
        0.05 if "n_bins" in options else 0.02
    )
    assert fitted.guarantee_.epsilon == 1
    assert fitted.guarantee_.mechanism == "map"


def test_predictions_agree_with_each_other():
    X, y = frame()
    fitted = BayesianLogisticRegression(schema=SCHEMA, random_state=0).fit(X, y)
    p, z = fitted.predict_proba(X), fitted.decision_function(X)
    assert p.sum(axis=1) == pytest.approx(1)
    assert p[:, 1] == pytest.approx(1 / (1 + np.exp(-z)))
    assert np.log(p) == pytest.approx(fitted.predict_log_proba(X))
    assert np.array_equal(fitted.predict(X), np.where(z > 0, "well", "ill"))
    assert fitted.classes_.tolist() == ["ill", "well"]
    alone = [fitted.decision_function(X.iloc[[i]])[0] for i in range(20)]
    assert alone == z[:20].tolist()


def test_the_table_of_effects_names_columns_levels_and_missing_values():
    X, y = frame()
    options = {"schema": SCHEMA, "intervals": True, "random_state": 0}
    linear = BayesianLogisticRegression(10.0, effects="linear", **options).fit(X, y)
    table = linear.coefficients()
    assert [row.name for row in table.rows] == ["intercept", "age", "age missing", "job=b", "job=c"]
    assert table["age"].low < 1 / 15 < table["age"].high
    assert table["job=b"].odds_ratio == pytest.approx(np.exp(table["job=b"].estimate))
    for row in table.rows:
        assert row.sd == pytest.approx(np.hypot(row.sampling_sd, row.privacy_sd))
    assert "odds ratio" in repr(table)
    assert "<table>" in table._repr_html_()
    assert table.to_frame().shape == (5, 9)
    smooth = BayesianLogisticRegression(10.0, **options).fit(X, y).coefficients()
    names = [row.name for row in smooth.rows]
    assert len(names) == 7
    assert names[1].startswith("age 0 vs ")
    wide, narrow = (linear.coefficients(level)["age"] for level in (0.99, 0.5))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_intervals_cost_epsilon_only_if_they_are_asked_for_or_cheap():
    X, y = numeric()
    assert not model().fit(X, y).posterior_.has_intervals
    without = model(intervals=False).fit(X, y).coefficients()
    assert np.isnan(without.rows[1].sd)
    assert "intervals=True" in repr(without)
    assert model(4.0, effects="linear").fit(X, y).posterior_.has_intervals  # n epsilon/p = 6000
    with pytest.raises(ValueError, match="at most 200 parameters"):
        model(intervals=True, n_bins=100).fit(X, y)


def test_a_release_is_charged_once_and_its_parts_add_up():
    X, y = numeric(500)
    ledger = BudgetAccountant(epsilon=3.0)
    for options in ({}, {"intervals": True}, {"effects": "linear"}):
        fitted = model(Fraction(1), accountant=ledger, **options)
        fitted.fit(X, y)
        plan = fitted._plan(fitted._prior(fitted.schema_), _facts(500), fitted._budget())
        assert sum(step.cost.epsilon for step in plan.steps) == 1
    assert len(ledger) == 3
    assert ledger.remaining().epsilon == 0


def _facts(n):
    from dpbayes_sklearn.release import Facts

    return Facts(n)


@pytest.mark.parametrize("name", ["laplace", "fourier", "gaussian"])
def test_other_mechanisms_are_refused_by_name_with_a_reason(name):
    X, y = numeric(100)
    ledger = BudgetAccountant(epsilon=1)
    with pytest.raises(InvalidParameterError, match=f"mechanism='{name}' is not available .*: "):
        model(mechanism=name, accountant=ledger).fit(X, y)
    with pytest.raises(InvalidParameterError, match="'laplace' is not available"):
        model(mechanism=Laplace(), accountant=ledger).fit(X, y)
    assert len(ledger) == 0
    assert model(mechanism=MAP()).fit(X, y).guarantee_.mechanism == "map"


def test_draws_are_made_around_a_mode_under_a_condition():
    X, y = numeric()
    ledger = BudgetAccountant(epsilon=2, delta=1e-6)
    one = model(mechanism="sampler", accountant=ledger).fit(X, y)
    assert (one.guarantee_.mechanism, one.guarantee_.epsilon) == ("sampler", 1)
    assert any("draws of real numbers" in c for c in one.guarantee_.conditions)
    assert roc_auc_score(y, one.decision_function(X)) > 0.7
    with pytest.raises(ValueError, match="intervals=True needs mechanism='map'"):
        model(mechanism="sampler", intervals=True, accountant=ledger).fit(X, y)
    many = model(mechanism=Sampler(50), delta=1e-6, accountant=ledger).fit(X, y)
    assert many.guarantee_.delta == 1e-6  # it makes many draws cheaper
    assert (len(ledger), ledger.remaining().epsilon) == (2, 0)
    draws = many.posterior_.draws
    assert draws.shape == (50, 10)
    assert many.posterior_.mean() == pytest.approx(draws.mean(axis=0))
    some = many.posterior_.sample(np.random.default_rng(0), 20)
    assert {tuple(row) for row in some} <= {tuple(row) for row in draws}
    again = from_json(many.to_json())
    assert np.array_equal(again.posterior_.draws, draws)
    plan = model(mechanism="sampler", bounds=([-5] * 3, [5] * 3)).plan(n=6000)
    assert "draws of the posterior: epsilon = 0.45" in str(plan)
    for unit in (
        PrivacyUnit("record", neighbours="add_remove"),
        PrivacyUnit("person", max_records=2),
    ):
        groups = np.arange(6000) // 2 if unit.name == "person" else None
        fitted = model(mechanism="sampler", privacy_unit=unit).fit(X, y, groups=groups)
        assert fitted.guarantee_.privacy_unit == unit


def test_auto_is_the_perturbed_mode_and_spends_no_delta():
    X, y = numeric(500)
    fitted = model(mechanism="auto", delta=1e-6).fit(X, y)
    assert (fitted.guarantee_.mechanism, fitted.guarantee_.delta) == ("map", 0)


def test_more_classes_are_one_charge_and_one_vs_rest_is_one_for_each():
    X, _ = numeric(600)
    y, ledger = np.arange(600) % 3, BudgetAccountant(epsilon=4)
    with pytest.raises(ValueError, match=r"^intervals=True needs two classes\. Got 3"):
        model(classes=[0, 1, 2], intervals=True, accountant=ledger).fit(X, y)
    assert len(ledger) == 0
    assert model(classes=[0, 1, 2], accountant=ledger).fit(X, y).coef_.shape[0] == 3
    assert ledger.total().epsilon == 1
    each = OneVsRestClassifier(model(accountant=ledger)).fit(X, y)
    assert len(ledger) == 4
    assert each.predict(X).shape == (600,)


@pytest.mark.parametrize(
    "unit",
    [
        PrivacyUnit("person", max_records=3),
        PrivacyUnit("record", neighbours="add_remove"),
        PrivacyUnit("person", max_records=2, neighbours="add_remove"),
    ],
)
def test_every_unit_is_charged_epsilon(unit):
    X, y = numeric()
    groups = np.arange(6000) // 2 if unit.name == "person" else None
    ledger = BudgetAccountant(epsilon=1)
    fitted = model(privacy_unit=unit, accountant=ledger).fit(X, y, groups=groups)
    assert fitted.guarantee_.privacy_unit == unit
    assert ledger.remaining().epsilon == 0
    assert roc_auc_score(y, fitted.decision_function(X)) > 0.7


def test_contributions_add_up_and_effects_have_bands():
    X, y = frame()
    fitted = BayesianLogisticRegression(schema=SCHEMA, intervals=True, random_state=0).fit(X, y)
    assert fitted.contributions(X).total == pytest.approx(fitted.decision_function(X))
    age, job = fitted.effect("age"), fitted.effect(1)
    assert age.labels == ()
    assert job.labels == ("a", "b", "c")
    for effect in (age, job):
        assert (effect.low < effect.value).all()
        assert (effect.value < effect.high).all()
    without = BayesianLogisticRegression(schema=SCHEMA, intervals=False).fit(X, y)
    assert np.isnan(without.effect("age").low).all()


@pytest.mark.parametrize("intervals", [True, False])
def test_the_card_and_the_forest_plot_show_the_effects(intervals):
    X, y = frame()
    options = {"schema": SCHEMA, "effects": "linear", "intervals": intervals, "random_state": 0}
    fitted = BayesianLogisticRegression(**options).fit(X, y)
    assert "job=b" in str(fitted.card())
    assert ("include the privacy noise" in str(fitted.card())) == intervals
    display = ForestDisplay.from_estimator(fitted, ax=Figure().subplots())
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == [
        "age",
        "age missing",
        "job=b",
        "job=c",
    ]
    assert len(display.ax_.collections) == 2 * intervals  # the interval, and its sampling part
    assert display.ax_.get_xscale() == "log"
    display.figure_.canvas.draw()
    assert "1" in [t.get_text() for t in display.ax_.get_xticklabels()]


def test_round_trips_keep_predictions():
    X, y = frame()
    fitted = BayesianLogisticRegression(schema=SCHEMA, intervals=True, random_state=0).fit(X, y)
    for other in (from_json(fitted.to_json()), pickle.loads(pickle.dumps(fitted))):
        assert np.array_equal(other.predict_proba(X), fitted.predict_proba(X))
        assert repr(other.coefficients()) == repr(fitted.coefficients())
        assert other.guarantee_ == fitted.guarantee_
    damaged = fitted.to_json().replace('"effects": "smooth"', '"effects": "linear"')
    with pytest.raises(ValueError, match="one parameter for each contrast"):
        from_json(damaged)


def test_it_works_in_pipelines_and_searches():
    X, y = numeric(2000)
    ledger = BudgetAccountant(epsilon=100)
    estimator = model(accountant=ledger)
    pipeline = make_pipeline(FunctionTransformer(), clone(estimator)).fit(X, y)
    assert pipeline.predict(X).shape == (2000,)
    with pytest.warns(PrivacyLeakWarning, match="Scores"):
        search = GridSearchCV(estimator, {"effects": ["smooth", "linear"]}, cv=3).fit(X, y)
    assert search.best_params_["effects"] in {"smooth", "linear"}
    cross_val_score(estimator, X, y, cv=3)
    assert len(ledger) == 1 + 7 + 3
    private = PrivateSearchCV(
        model(random_state=None), {"effects": ["smooth", "linear"]}, epsilon=3.0, random_state=0
    ).fit(X, y)
    assert private.guarantee_.epsilon == 3


def test_shards_are_the_same_as_all_records():
    X, y = numeric(3000)
    estimator = model(effects="linear")
    halves = [
        estimator.exact_statistics(X[rows], y[rows]) for rows in (slice(900), slice(900, None))
    ]
    merged = clone(estimator).fit_statistics(merge(halves))
    whole = clone(estimator).fit(X, y)
    assert np.array_equal(merged.predict_proba(X), whole.predict_proba(X))


def test_dask_is_the_same_as_local():
    array = pytest.importorskip("dask.array")
    X, y = numeric(3000)
    local = model().fit(X, y)
    lazy = model().fit(array.from_array(X, chunks=(700, 3)), array.from_array(y, chunks=700))
    assert lazy.coef_ == pytest.approx(local.coef_, abs=1e-5)
    predicted = lazy.predict_proba(array.from_array(X, chunks=(1000, 3))).compute()
    assert predicted == pytest.approx(local.predict_proba(X), abs=1e-5)


def test_odd_values_and_empty_classes_do_no_harm():
    X, y = numeric(300)
    for odd in (np.nan, np.inf, -np.inf, 1e308, 5e-324):
        X[0, 0] = odd
        assert np.isfinite(model(intervals=True).fit(X, y).predict_proba(X)).all()
    alike = model(intervals=True, effects="linear").fit(X, np.zeros(300, int))
    assert not any(row.identified for row in alike.coefficients().rows)


def test_few_records_for_many_parameters_are_remarked_on_in_every_fit(caplog):
    X, y = numeric(100)
    with caplog.at_level(logging.WARNING, "dpbayes_sklearn"):
        model().fit(X, y)
        model().fit(X, y)
    assert sum("BayesianNaiveBayes" in r.message for r in caplog.records) == 2
    assert "n * epsilon / p is 10" in caplog.text
    caplog.clear()
    model(10.0).fit(*numeric(6000))
    assert "BayesianNaiveBayes" not in caplog.text


def test_what_is_not_declared_is_read_with_a_warning():
    X, y = numeric(300)
    with pytest.warns(PrivacyLeakWarning) as told:
        fitted = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert {str(w.message).split(" were")[0].split(" was")[0] for w in told} >= {"classes"}
    assert any("classes" in c for c in fitted.guarantee_.conditions)


def test_columns_that_are_constant_leave_the_shares_of_the_classes():
    X, y = np.zeros((3000, 1), int), (np.arange(3000) % 4 == 0).astype(int)
    constant = Schema({"x0": Categories([0])})
    options = {"schema": constant, "classes": [0, 1], "random_state": 0}
    fitted = BayesianLogisticRegression(**options).fit(X, y)
    assert fitted.predict_proba(X[:1])[0, 1] == pytest.approx(0.25, abs=0.03)
    with pytest.raises(ValueError, match="some column needs two values"):
        BayesianLogisticRegression(fit_intercept=False, **options).fit(X, y)


def test_too_many_parameters_are_refused_before_the_charge():
    ledger = BudgetAccountant(epsilon=1)
    with pytest.raises(ValueError, match="more than 2000: merge categories"):
        model(n_bins=1000, accountant=ledger).fit(*numeric(100))
    assert len(ledger) == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_epsilon_that_is_too_large_is_refused_before_the_charge(n_classes):
    ledger, (X, y) = BudgetAccountant(), numeric(100)
    fitted = model(epsilon=1e9, classes=range(n_classes), accountant=ledger)
    with pytest.raises(ValueError, match="is too large"):
        fitted.fit(X, y)
    assert len(ledger) == 0


def test_a_forest_is_of_a_regression():
    line = BayesianLinearRegression(4.0, bounds_X=(0, 1), bounds_y=(0, 1), random_state=0)
    rng = np.random.default_rng(0)
    X = rng.random((5000, 2))
    display = ForestDisplay.from_estimator(line.fit(X, X @ [0.5, 0.2]), ax=Figure().subplots())
    assert display.ax_.get_xscale() == "linear"
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["x0", "x1"]
    other = BetaBinomial().fit([0, 1])
    with pytest.raises(TypeError, match=r"must be a Bayesian.*Regression\. Got BetaBinomial"):
        ForestDisplay.from_estimator(other)
