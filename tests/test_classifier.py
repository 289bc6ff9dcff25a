"""The classifier to begin with is exactly the model that it chooses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbayes_sklearn import (
    BayesianClassifier,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    BudgetError,
    Categories,
    Interval,
    PrivacyUnit,
    Schema,
    from_json,
    planning,
)

SCHEMA = Schema(
    {"a": Interval(-3, 3), "b": Interval(0, 9), "c": Categories([0, 1, 2])}, Categories([0, 1])
)
ADDED = PrivacyUnit(neighbours="add_remove")


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 10, n), rng.integers(0, 3, n)])
    return X, (X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=n) > 1.3).astype(int)


def front(epsilon=1.0, **options):
    return BayesianClassifier(epsilon, **{"schema": SCHEMA, "random_state": 0, **options})


@pytest.mark.parametrize(
    ("n", "model"), [(60, BayesianNaiveBayes), (2000, BayesianLogisticRegression)]
)
@pytest.mark.parametrize("unit", ["record", ADDED])
def test_it_is_the_model_that_it_chooses(n, model, unit):
    X, y = records(n)
    ledger = BudgetAccountant()
    ours = front(privacy_unit=unit, accountant=ledger).fit(X, y)
    theirs = model(schema=SCHEMA, privacy_unit=unit, random_state=0).fit(X, y)
    assert type(ours.chosen_) is model
    assert ours.guarantee_ == theirs.guarantee_
    assert ledger.total() == (1.0, 0.0)
    assert np.array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    assert np.array_equal(ours.predict_log_proba(X), theirs.predict_log_proba(X))
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert np.array_equal(ours.feature_importances_, theirs.feature_importances_)
    assert np.array_equal(ours.effect("a").value, theirs.effect("a").value)
    assert np.array_equal(ours.contributions(X).values, theirs.contributions(X).values)


def test_plan_and_card_name_the_model_and_charge_what_is_planned():
    X, y = records(2000)
    plan = front().plan(2000)
    assert str(plan).startswith("BayesianClassifier, here BayesianLogisticRegression, 2,000 rec")
    theirs = BayesianLogisticRegression(schema=SCHEMA).plan(2000)
    assert str(plan).splitlines()[1:] == str(theirs).splitlines()[1:]
    assert "here BayesianNaiveBayes" in str(front().plan(60))
    assert front().fit(X, y).card().startswith("# BayesianClassifier: BayesianLogisticRegression")


@pytest.mark.parametrize("n", [60, 2000])
def test_json_restores_the_model(n):
    X, y = records(n)
    model = front().fit(X, y)
    text = model.to_json()
    again = from_json(text)
    assert type(again.chosen_) is type(model.chosen_)
    assert again.to_json() == text
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_text_with_the_posterior_of_other_columns_is_refused():
    text = front().fit(*records(2000)).to_json()
    with pytest.raises(ValueError, match="does not fit its parameters"):
        from_json(text.replace('"values": [0, 1, 2]', '"values": [0, 1, 2, 3]'))


def test_what_logistic_regression_cannot_do_is_left_to_naive_bayes():
    assert type(front(privacy_unit="feature").model_for(10**4)) is BayesianNaiveBayes
    three = Schema(dict(SCHEMA.columns), Categories([0, 1, 2]))
    takes_three = BayesianLogisticRegression().__sklearn_tags__().classifier_tags.multi_class
    chosen = type(BayesianClassifier(schema=three).model_for(10**4))
    assert chosen is (BayesianLogisticRegression if takes_three else BayesianNaiveBayes)
    many = Schema({"code": Categories(range(3000))}, Categories([0, 1]))
    assert type(BayesianClassifier(10.0, schema=many).model_for(10**6)) is BayesianNaiveBayes
    assert type(front(math.inf).model_for(60)) is BayesianLogisticRegression


def test_the_choice_does_not_look_at_the_records():
    """With a secret number of records it follows from the released number alone."""
    X, y = records(400)
    for seed in range(10):
        ours = front(0.1, privacy_unit=ADDED, random_state=seed).fit(X, y)
        expected = front(0.1, privacy_unit=ADDED).model_for(ours._n_released)
        assert type(ours.chosen_) is type(expected)
    odd = front().fit(np.full((400, 3), 1e9), np.zeros(400))
    assert type(odd.chosen_) is type(front().fit(X, y).chosen_)


def test_nothing_is_spent_where_naive_bayes_would_be_refused_later(monkeypatch):
    """The released number may call for naive Bayes: what it refuses is refused before."""
    monkeypatch.setattr("dpbayes_sklearn.counts.network._MOST_TABLE_CELLS", 20)
    assert type(front(10.0).fit(*records(2000)).chosen_) is BayesianLogisticRegression
    ledger = BudgetAccountant()
    with pytest.raises(ValueError, match="cells"):
        front(10.0, privacy_unit=ADDED, accountant=ledger).fit(*records(2000))
    assert len(ledger) == 0
    with pytest.raises(BudgetError):
        front(accountant=BudgetAccountant(0.5)).fit(*records(60))


def test_planning_speaks_of_the_chosen_model():
    few, many = (planning.report(front(), n) for n in (60, 20_000))
    assert few.ratio > many.ratio
    assert planning.expected_error(front(), 60).of == "counts"
    assert planning.expected_error(front(), 2000).of == "log odds"
    assert planning.recommend(BayesianNaiveBayes(schema=SCHEMA), 2000).model == (
        "BayesianLogisticRegression"
    )
