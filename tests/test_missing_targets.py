"""Records without a target: they add nothing to what is released, or are in a declared class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from benchmarks.audit._units import worst_weighted_loss
from dpbayes_sklearn import (
    BayesianClassifier,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyUnit,
    PrivateSearchCV,
    Schema,
    from_json,
)
from dpbayes_sklearn.bayesian_network import tree_augmented
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.metrics import private_cross_validate, private_score
from dpbayes_sklearn.model_selection.runs import points
from dpbayes_sklearn.release import boundary
from dpbayes_sklearn.shards import merge

RNG = np.random.default_rng(0)
N = 3000
X = RNG.random((N, 2))
CLASSES = np.where(RNG.random(N) < 0.2 + 0.6 * X[:, 0], "yes", "no").astype(object)
WAGES = 10 + 60 * X[:, 0] + RNG.normal(0, 2, N)
MISSING = RNG.random(N) < 0.4
ADDED = PrivacyUnit("record", neighbours="add_remove")
COLUMNS = {"a": Interval(0, 1, bins=4), "b": Interval(0, 1, bins=4)}


def without(target, value=None):
    return pd.Series(target).where(~MISSING, value)


@pytest.mark.parametrize("unit", [ADDED, PrivacyUnit("person", max_records=2), "feature"], ids=str)
def test_classes_are_left_out(unit):
    if isinstance(unit, PrivacyUnit) and unit.name == "person":
        unit = PrivacyUnit("person", max_records=2, neighbours="add_remove", by_construction=True)
    options = {"schema": Schema(COLUMNS, Categories(["no", "yes"])), "privacy_unit": unit}
    model = BayesianNaiveBayes(5.0, temperature=1, random_state=0, **options)
    released = model.fit(X, without(CLASSES)).posterior_.released.tables[-1]
    exact = [np.sum(CLASSES[~MISSING] == label) for label in ("no", "yes")]
    assert np.allclose(released, exact, atol=60)
    undeclared = model.fit(X, without(CLASSES, "maybe")).posterior_.released.tables[-1]
    assert np.allclose(undeclared, exact, atol=60)


REGRESSIONS = {
    "added": {"privacy_unit": ADDED},
    "persons": {"privacy_unit": PrivacyUnit("person", max_records=2, by_construction=True)},
    "weights": {"max_weight": 1},
    "no noise": {"epsilon": float("inf")},
    "no constant": {"fit_intercept": False, "bounds_y": (-200, 200)},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-6},
    **{name: {"mechanism": name} for name in ("laplace", "fourier", "sampler", "map")},
}


@pytest.mark.parametrize("options", REGRESSIONS.values(), ids=REGRESSIONS)
def test_targets_of_a_regression_are_left_out(options):
    schema = Schema({"a": Interval(0, 1), "b": Interval(0, 1)}, Interval(0, 200))
    model = BayesianLinearRegression(
        **{"epsilon": 20.0, "random_state": 0, "schema": schema, **options}
    )
    error = model.fit(X, without(WAGES)).predict(X).mean() - WAGES.mean()
    assert abs(error) < 2  # as the middle of the bounds, missing ones add 24
    assert "if missing, the record is left out" in model.card()
    assert (model.plan(N).steps[0].what == "number of records") == (
        "max_weight" in options or model.privacy_unit is ADDED
    )


@pytest.mark.parametrize("options", REGRESSIONS.values(), ids=REGRESSIONS)
def test_nobody_has_a_target_of_a_regression(options):
    schema = Schema({"a": Interval(0, 1), "b": Interval(0, 1)}, Interval(0, 200))
    model = BayesianLinearRegression(
        **{"epsilon": 1.0, "random_state": 0, "schema": schema, **options}
    )
    assert np.isfinite(model.fit(X, np.full(N, np.nan)).predict(X, return_std=True)).all()


YES_OR_NO = Schema(COLUMNS, Categories(["no", "yes"]))
TREE = {"parents": {"a": ["class"], "b": ["class", "a"], "class": []}}
CLASSIFIERS = {
    **{name: (BayesianNaiveBayes, {"mechanism": name}) for name in ("laplace", "sampler", "map")},
    "gaussian": (BayesianNaiveBayes, {"mechanism": "gaussian", "delta": 1e-6}),
    "noise aware": (BayesianNaiveBayes, {"inference": "noise_aware"}),
    "plug in": (BayesianNaiveBayes, {"inference": "plug_in", "temperature": 1}),
    "no noise": (BayesianNaiveBayes, {"epsilon": float("inf")}),
    "network": (BayesianNetworkClassifier, TREE),
    "logistic": (BayesianLogisticRegression, {"mechanism": "map"}),
    "logistic, draws": (BayesianLogisticRegression, {"mechanism": "sampler"}),
}


@pytest.mark.parametrize("kind", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_records_without_a_class_are_left_out(kind):
    made, options = kind
    model = made(**{"epsilon": 20.0, "random_state": 0, "schema": YES_OR_NO, **options})
    share = model.fit(X, without(CLASSES)).predict_proba(X)[:, 1].mean()
    assert abs(share - np.mean(CLASSES[~MISSING] == "yes")) < 0.08  # as the first class: 0.2
    assert "not counted: the record is left out" in model.card()
    assert "not counted: the record is left out" in from_json(model.to_json()).card()
    assert model.guarantee_.privacy_unit == PrivacyUnit("record")
    assert np.isfinite(model.fit(X, [None] * N).predict_proba(X)).all()  # nobody has a class


def test_the_number_of_records_is_public_and_who_has_a_class_is_not():
    model = BayesianNaiveBayes(10.0, schema=YES_OR_NO, temperature=1, random_state=0)
    plans = []

    def seen(release, plan, statistics, noise):
        plans.append((plan, statistics))
        return release(plan, statistics, noise)

    with boundary(seen):
        released = model.fit(X, without(CLASSES)).posterior_.released
    ((plan, statistics),) = plans
    assert (plan.facts.n, statistics.n, plan.cost.epsilon) == (N, N, 10)
    exact = [np.sum(CLASSES[~MISSING] == label) for label in ("no", "yes")]
    assert statistics.tables[-1].tolist() == exact
    assert released.n == round(released.tables[-1].sum())
    assert (
        model.fit(X, CLASSES).posterior_.released.n == N
    )  # noise alone makes none of them missing


def test_a_table_of_one_cell_holds_all_records():
    alone = Schema({"a": Interval(0, 1, bins=4), "b": Categories([1.0])}, YES_OR_NO.target)
    parents = {"a": ["class"], "b": [], "class": []}
    model = BayesianNetworkClassifier(schema=alone, parents=parents, temperature=1)
    table = np.column_stack([X[:, 0], np.ones(N)])
    released = model.fit(table, without(CLASSES)).posterior_.released
    assert released.tables[1].tolist() == [N]  # without noise: so it must not tell who has a class


def test_shards_leave_out_records_without_a_target():
    model = BayesianNaiveBayes(10.0, schema=YES_OR_NO, temperature=1, random_state=0)
    half, y = N // 2, without(CLASSES)
    shards = [model.exact_statistics(X[rows], y[rows]) for rows in (np.s_[:half], np.s_[half:])]
    merged = clone(model).fit_statistics(merge(shards)).posterior_.released.tables[-1]
    assert np.array_equal(merged, model.fit(X, y).posterior_.released.tables[-1])


def test_columns_and_trees_are_chosen_by_records_with_a_class():
    x = RNG.integers(0, 2, (N, 3))
    y = np.where(MISSING, None, np.where(x[:, 1] == 1, "yes", "no"))
    x[MISSING, 0] = 1  # who lacks a class has it: not so, if that were a class
    columns = dict.fromkeys("abc", Categories([0, 1]))
    schema = Schema(columns, Categories(["no", "yes"]))
    chosen = PrivateSelectKBest(k=1, epsilon=50.0, schema=schema).fit(x, y)
    assert chosen.get_support().tolist() == [False, True, False]
    seen = []

    def scored(release, plan, statistics, noise):
        seen.append(statistics)
        return release(plan, statistics, noise)

    frame = pd.DataFrame(x, columns=[*"abc"])
    with boundary(scored):
        tree_augmented(frame, y, schema=schema, epsilon=1.0)
        tree_augmented(frame[~MISSING], y[~MISSING], schema=schema, epsilon=1.0)
    assert (seen[0].n, seen[1].n) == (N, N - MISSING.sum())
    assert np.array_equal(seen[0].scores, seen[1].scores)


def test_searches_and_cross_validations_leave_out_as_well():
    model = BayesianNaiveBayes(5.0, schema=YES_OR_NO)
    search = PrivateSearchCV(model, {"alpha": [1.0, 2.0]}).fit(X, without(CLASSES))
    assert np.array_equal(
        points(search.best_estimator_, X, without(CLASSES))[MISSING], [0] * MISSING.sum()
    )
    found = private_cross_validate(
        model, X, without(CLASSES), scoring="accuracy", epsilon=5, random_state=0
    )
    right = np.mean((X[:, 0] > 0.5) == (CLASSES == "yes"))
    assert abs(found["accuracy"].value - right) < 0.08
    assert abs(found.n_records - (N - MISSING.sum())) < 60


def test_the_loss_where_targets_may_be_missing():
    assert worst_weighted_loss(PrivacyUnit("record"), missing=True) == 1


def test_a_class_for_all_others_is_declared():
    listed = Categories(["no", "yes", "unknown"], unseen="unknown")
    for unit in (ADDED, "record"):
        model = BayesianNaiveBayes(5.0, schema=Schema(COLUMNS, listed), privacy_unit=unit)
        model.set_params(temperature=1).fit(X, without(CLASSES))
        counts = dict(zip(model.classes_, model.posterior_.released.tables[-1], strict=True))
        assert abs(counts["unknown"] - MISSING.sum()) < 60


def test_nobody_has_a_target():
    ledger = BudgetAccountant()
    schema = Schema(COLUMNS, Categories(["no", "yes"]))
    model = BayesianNaiveBayes(1.0, schema=schema, privacy_unit=ADDED, accountant=ledger)
    assert {*model.fit(X, [None] * N).predict(X)} <= {"no", "yes"}
    assert ledger.total().epsilon == 1


def test_codes_of_classes_are_known():
    codes = (CLASSES == "yes").astype(int)  # as ensembles of scikit-learn pass them
    schema = Schema(COLUMNS, Categories(["no", "yes"]))
    model = BayesianNaiveBayes(5.0, schema=schema, temperature=1, privacy_unit=ADDED)
    released = model.fit(X, codes).posterior_.released.tables[-1]
    assert np.allclose(released, np.bincount(codes), atol=60)


@pytest.mark.parametrize("unit", ["record", ADDED], ids=str)
def test_evaluations_leave_out_as_well(unit):
    schema = Schema({"a": Interval(0, 1), "b": Interval(0, 1)}, Interval(0, 200))
    ledger, plans = BudgetAccountant(epsilon=4.0), []
    line = BayesianLinearRegression(2.0, schema=schema, privacy_unit=unit, accountant=ledger)
    line.fit(X, WAGES)

    def seen(release, plan, statistics, noise):
        plans.append((plan, len(statistics.truth)))
        return release(plan, statistics, noise)

    with boundary(seen):
        found = private_score(line, X, without(WAGES), scoring="mae", epsilon=2.0, random_state=0)
    ((plan, n),) = plans
    assert (plan.n, n) == (None if unit is ADDED else N, N - MISSING.sum())
    assert plan.cost.epsilon == found.guarantee.epsilon == 2
    assert found.guarantee.privacy_unit == PrivacyUnit.of(unit)
    assert "about " in found.sentence
    assert abs(found.n_records - n) < 300
    assert found["mae"].high < 10  # the middle of the bounds is 60 above the mean
    assert ledger.total().epsilon == 4
    complete = private_score(
        line, X, WAGES, scoring="mae", epsilon=20.0, accountant=BudgetAccountant()
    )
    assert isinstance(complete.n_records, int) == (unit is not ADDED)


@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("model", [BayesianNaiveBayes, BayesianClassifier])
def test_without_privacy_nobody_may_have_a_class(model, n):
    fitted = model(float("inf"), classes=[0, 1, 2], bounds=(0, 1), privacy_unit=ADDED)
    fitted.fit(np.zeros((n, 2)), np.full(n, np.nan))
    assert fitted.predict_proba(X[:2]) == pytest.approx(np.full((2, 3), 1 / 3))


@pytest.mark.parametrize("scoring", ["accuracy", ["confusion_matrix", "accuracy"], "log_loss"])
def test_metrics_of_classes_leave_out_as_well(scoring):
    model = BayesianNaiveBayes(20.0, schema=YES_OR_NO, random_state=0).fit(X, CLASSES)
    name = scoring if isinstance(scoring, str) else scoring[-1]
    ask = {"scoring": scoring, "epsilon": 20.0, "random_state": 0}
    gaps = private_score(model, X, without(CLASSES), **ask)
    known = private_score(model, X[~MISSING], CLASSES[~MISSING], **ask)
    assert abs(gaps[name].value - known[name].value) < 0.03
    assert abs(gaps.n_records - (N - MISSING.sum())) < 30
