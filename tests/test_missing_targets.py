"""Records without a target: left out where that reveals nothing, otherwise in a declared class."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from benchmarks.audit._units import worst_weighted_loss
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyUnit,
    PrivateSearchCV,
    Schema,
    from_json,
)
from dpbayes_sklearn.metrics import private_cross_validate, private_score
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


def test_targets_of_a_regression_are_left_out():
    schema = Schema({"a": Interval(0, 1), "b": Interval(0, 1)}, Interval(0, 200))
    errors = {}
    for name, unit in (("left out", ADDED), ("the middle", "record")):
        model = BayesianLinearRegression(20.0, schema=schema, privacy_unit=unit, random_state=0)
        errors[name] = model.fit(X, without(WAGES)).predict(X).mean() - WAGES.mean()
    assert abs(errors["left out"]) < 2
    assert errors["the middle"] > 10  # the number of records is public, so all of them count


def test_declared_missing_targets_are_left_out():
    classes = Schema(COLUMNS, Categories(["no", "yes"]), missing_target=True)
    model = BayesianNaiveBayes(10.0, schema=classes, temperature=1, random_state=0)
    released = model.fit(X, without(CLASSES)).posterior_.released.tables[-1]
    exact = [np.sum(CLASSES[~MISSING] == label) for label in ("no", "yes")]
    assert np.allclose(released, exact, atol=60)
    assert "not counted: the record is left out" in model.card()
    assert "not counted: the record is left out" in from_json(model.to_json()).card()
    assert model.guarantee_.privacy_unit == PrivacyUnit("record")
    with pytest.raises(ValueError, match="takes no sample_weight"):
        model.fit(X, without(CLASSES), sample_weight=np.ones(N))


@pytest.mark.parametrize("declared", [{"max_weight": 1}, {}], ids=str)
def test_missing_targets_do_not_bias_a_regression(declared):
    wages = Schema(
        {"a": Interval(0, 1), "b": Interval(0, 1)}, Interval(0, 200), missing_target=not declared
    )
    line = BayesianLinearRegression(20.0, schema=wages, random_state=0, **declared)
    assert abs(line.fit(X, without(WAGES)).predict(X).mean() - WAGES.mean()) < 2
    assert line.plan(N).steps[0].what == "number of records"


def test_shards_leave_out_as_well():
    schema = Schema(COLUMNS, Categories(["no", "yes"]), missing_target=True)
    model = BayesianNaiveBayes(10.0, schema=schema, temperature=1, random_state=0)
    half, y = N // 2, without(CLASSES)
    shards = [model.exact_statistics(X[rows], y[rows]) for rows in (np.s_[:half], np.s_[half:])]
    merged = clone(model).fit_statistics(merge(shards)).posterior_.released.tables[-1]
    assert np.array_equal(merged, model.fit(X, y).posterior_.released.tables[-1])
    other = clone(model).set_params(schema=Schema(COLUMNS, Categories(["no", "yes"])))
    with pytest.raises(ValueError, match="max_weight=1, not with the None"):
        other.fit_statistics(merge(shards))


def test_one_rule_for_missing_targets():
    listed = Categories(["no", "yes", "unknown"], unseen="unknown")
    with pytest.raises(ValueError, match="declare one of the two"):
        Schema(COLUMNS, listed, missing_target=True)
    with pytest.raises(ValueError, match="needs a target"):
        Schema(COLUMNS, missing_target=True)
    schema = Schema(COLUMNS, Categories(["no", "yes"]), missing_target=True)
    assert Schema.from_json(schema.to_json()) == schema != Schema(COLUMNS, schema.target)
    model = BayesianNaiveBayes(schema=schema)
    search = PrivateSearchCV(model, {"alpha": [1.0, 2.0]})
    for refused in (
        search.fit,
        partial(private_cross_validate, model, scoring="accuracy", epsilon=1),
    ):
        with pytest.raises(ValueError, match="schema without missing_target"):
            refused(X, without(CLASSES))


def test_the_loss_where_targets_may_be_missing():
    assert worst_weighted_loss(PrivacyUnit("record"), missing=True) == Fraction(24, 25)


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
    schema = Schema({"a": Interval(0, 1), "b": Interval(0, 1)}, Interval(0, 200), None, True)
    ledger, plans = BudgetAccountant(epsilon=4.0), []
    line = BayesianLinearRegression(2.0, schema=schema, privacy_unit=unit, accountant=ledger)
    line.fit(X, WAGES)

    def seen(release, plan, statistics, noise):
        plans.append((plan, len(statistics.truth)))
        return release(plan, statistics, noise)

    with boundary(seen):
        found = private_score(line, X, without(WAGES), scoring="mae", epsilon=2.0, random_state=0)
    ((plan, n),) = plans
    assert (plan.n, n) == (None, N - MISSING.sum())  # which nobody is told exactly
    assert plan.cost.unit.size_is_secret
    assert plan.cost.epsilon == (2 if unit is ADDED else 1)  # a replaced record leaves, one comes
    assert found.guarantee.epsilon == 2
    assert found.guarantee.privacy_unit == PrivacyUnit.of(unit)
    assert "about " in found.sentence
    assert abs(found.n_records - n) < 300
    assert found["mae"].high < 10  # the middle of the bounds is 60 above the mean
    assert ledger.total().epsilon == 4
