"""Columns of a frame and of a schema: one rule; codes of classes that meta-estimators pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    Categories,
    Interval,
    Schema,
    from_json,
)
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.metrics import private_score

RNG = np.random.default_rng(0)
N = 900
Y = np.where(RNG.random(N) < 0.5, "no", "yes")
X = pd.DataFrame(RNG.normal(size=(N, 3)) + 1.5 * (Y == "yes")[:, None], columns=[*"abc"])
SCHEMA = Schema({name: Interval(-3, 5, bins=4) for name in X}, Categories(["no", "yes"]))
MODEL = BayesianNaiveBayes(5.0, schema=SCHEMA)


@pytest.mark.parametrize("of", [pd.DataFrame, pl.from_pandas])
def test_undeclared_columns_are_ignored_with_a_message_and_order_does_not_matter(of, caplog):
    more = of(X.assign(id=[f"person {i}" for i in range(N)])[["id", "c", "a", "b"]])
    model = BayesianNaiveBayes(5.0, schema=SCHEMA, random_state=0).fit(more, Y)
    assert "not declare are ignored: 'id'" in caplog.text
    assert [*model.feature_names_in_] == [*"cab"]
    expected = model.predict_proba(of(X[[*"cab"]]))
    for frame in (X, X[[*"bca"]], X.assign(id=1)):
        assert np.array_equal(model.predict_proba(of(frame)), expected)
        assert np.array_equal(from_json(model.to_json()).predict_proba(of(frame)), expected)
    score = {"scoring": "accuracy", "epsilon": float("inf")}
    found = private_score(model, of(X.assign(id=1)), Y, **score)["accuracy"].value
    assert found == private_score(model, of(X), Y, **score)["accuracy"].value
    with pytest.raises(ValueError, match="feature names"):
        model.predict(of(X[["a", "b"]]))


def test_declared_columns_that_are_missing_are_named(caplog):
    MODEL.fit(X[["c", "a"]], Y)
    assert "Columns that the schema declares and X lacks are left out: 'b'." in caplog.text
    caplog.clear()
    MODEL.fit(X, Y).predict(X)
    assert "left out" not in caplog.text


@pytest.mark.parametrize("selector", [SelectFromModel, RFECV])
def test_importances_have_one_entry_for_each_column(selector):
    alike = {name: Interval(-3, 5, missing="indicator") for name in X}
    classes, line = SCHEMA.target, Interval(-3, 5)
    models = (
        (BayesianLogisticRegression(5.0, schema=Schema(alike, classes)), Y),
        (BayesianLinearRegression(5.0, schema=Schema(alike, line)), X["b"]),
    )
    for model, y in models:
        assert model.fit(X, y).coef_.shape[-1] > 3
        assert model.feature_importances_.shape == (3,)
        assert model.feature_importances_.sum() == pytest.approx(1)
        selected = selector(model, importance_getter="feature_importances_").fit(X, y)
        assert selected.get_support().shape == (3,)
    assert model.feature_importances_.argmax() == 1
    other = Schema({**alike, "c": Interval(-9, 9)}, line)
    chosen = selector(
        BayesianLinearRegression(5.0, schema=other), importance_getter="feature_importances_"
    )
    if selector is SelectFromModel:
        assert "b" in chosen.fit(X, X["b"]).get_feature_names_out()
    else:
        with pytest.raises(ValueError, match="or use SelectFromModel with importance_getter"):
            chosen.fit(X, X["b"])


def test_selectors_that_drop_names_pass_columns_that_are_all_alike():
    numbers = {"n_features_to_select": 2}
    steps = (RFE(MODEL, **numbers), SequentialFeatureSelector(MODEL, cv=2, **numbers))
    for selector in steps:
        assert selector.fit(X, Y).get_support().sum() == 2
    line = BayesianLinearRegression(5.0, bounds_X=(-3, 5), bounds_y=(-3, 5))
    assert RFE(line, **numbers).fit(X, X["b"]).get_support()[1]
    other = Schema({**SCHEMA.columns, "c": Interval(-9, 9, bins=4)}, SCHEMA.target)
    with pytest.raises(ValueError, match="pass some columns without their names"):
        RFE(BayesianNaiveBayes(5.0, schema=other), **numbers).fit(X, Y)


def test_a_schema_may_declare_more_columns_but_a_misspelt_one_is_refused():
    assert [*MODEL.fit(X[["a", "c"]], Y).schema_.columns] == ["a", "c"]
    with pytest.raises(ValueError, match=r"lacks the columns \['a'\]"):
        MODEL.fit(X.rename(columns={"a": "aa"}), Y)
    select = PrivateSelectKBest(2, schema=SCHEMA).set_output(transform="pandas")
    assert make_pipeline(select, MODEL).fit(X, Y).score(X, Y) > 0.7
    line = Schema({**SCHEMA.columns}, Interval(-3, 5))
    part = BayesianLinearRegression(5.0, schema=line).fit(X[["a"]], X["b"])
    assert part.coef_.shape == (1,)


@pytest.mark.filterwarnings("ignore")
def test_codes_of_declared_text_classes(caplog):
    assert cross_val_predict(MODEL, X, Y, cv=3, method="predict_proba").shape == (N, 2)
    other = BayesianNaiveBayes(3.0, schema=SCHEMA, alpha=2.0)
    for voting in ("hard", "soft"):
        vote = VotingClassifier([("a", MODEL), ("b", other)], voting=voting)
        assert vote.fit(X, Y).score(X, Y) > 0.7
    stack = StackingClassifier([("a", MODEL)], final_estimator=LogisticRegression(), cv=3)
    assert stack.fit(X, Y).score(X, Y) > 0.7
    assert "codes 0, 1, ..." in caplog.text
    digits = BayesianNaiveBayes(classes=["0", "1"], bounds=(-3, 5)).fit(X, (Y == "yes") + 0)
    assert [*digits.classes_] == ["0", "1"]  # which integers match by their text
