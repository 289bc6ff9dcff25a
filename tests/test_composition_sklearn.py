"""BayesianNaiveBayes inside scikit-learn's own machinery."""

from __future__ import annotations

import pickle
import re

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyLeakWarning,
    Schema,
    mechanisms,
)
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler

MECHANISMS = ["laplace", "fourier", "sampler", "map"]
X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :6]
LOW, HIGH = np.floor(X.min(axis=0)), np.ceil(X.max(axis=0))


def classifier(**params):
    defaults = {"epsilon": 20.0, "inference": "plug_in", "classes": [0, 1], "n_bins": 2}
    return BayesianNaiveBayes(**{**defaults, "bounds": (LOW, HIGH), "random_state": 0, **params})


def test_a_pipeline_fits_and_predicts():
    pipeline = make_pipeline(MinMaxScaler(), classifier(bounds=(0, 1), n_bins=4))
    assert pipeline.fit(X, Y).score(X, Y) > 0.8
    assert_array_equal(pipeline.classes_, [0, 1])
    assert pipeline[-1].guarantee_.epsilon == 20.0


@pytest.mark.parametrize("container", ["pandas", "polars", "default"])
def test_pipeline_whose_steps_pass_frames_on(container):
    names = [f"x{j}" for j in range(X.shape[1])]
    schema = Schema(dict.fromkeys(names, Interval(0, 1)), target=Categories([0, 1]))
    step = MinMaxScaler().set_output(transform=container)
    model = classifier(bounds=None, classes=None, schema=schema, n_bins=4)
    pipeline = make_pipeline(step, model).fit(pd.DataFrame(X, columns=names), Y)
    assert pipeline.score(pd.DataFrame(X, columns=names), Y) > 0.8
    assert hasattr(pipeline[-1], "feature_names_in_") == (container != "default")


def test_pipeline_from_text_columns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    job = np.where(rng.random(400) < 0.9, np.array(["nurse", "clerk"])[y], "other")
    age = np.clip(40 + 25 * (2 * y - 1) + rng.normal(0, 5, 400), 17, 90)
    for frame in (pd.DataFrame, pl.DataFrame):
        table = frame({"job": job, "age": age})
        schema = Schema(
            {"job": Categories(["clerk", "nurse", "other"]), "age": Interval(17, 90, bins=4)},
            target=Categories([0, 1]),
        )
        model = BayesianNaiveBayes(5.0, schema=schema, inference="plug_in", random_state=0)
        assert make_pipeline("passthrough", model).fit(table, y).score(table, y) > 0.9
    coded = ColumnTransformer(
        [("age", KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), ["age"])]
    )
    both = make_pipeline(coded, classifier(bounds=(0, 3), n_bins=4))
    assert both.fit(pd.DataFrame({"age": age}), y).score(pd.DataFrame({"age": age}), y) > 0.9


def test_grid_search_over_budget_and_mechanism():
    grid = {"epsilon": [0.1, 20.0], "mechanism": MECHANISMS}
    search = GridSearchCV(classifier(), grid, cv=3).fit(X, Y)  # in processes: accounting of fits
    assert len(search.cv_results_["params"]) == 8
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_params_["epsilon"] == 20.0
    assert search.best_estimator_.guarantee_.mechanism == search.best_params_["mechanism"]
    assert search.score(X, Y) > 0.8


def test_grid_search_over_budget_and_mechanism_at_one_delta():
    grid = {"epsilon": [0.1, 20.0], "mechanism": [*MECHANISMS, "gaussian", "auto"]}
    search = GridSearchCV(classifier(delta=1e-6), grid, cv=3).fit(X, Y)
    assert len(search.cv_results_["params"]) == 12
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_params_["epsilon"] == 20.0
    guarantee = search.best_estimator_.guarantee_
    spends = {"gaussian": {1e-6}, "sampler": {0.0, 1e-6}}.get(guarantee.mechanism, {0.0})
    assert guarantee.delta in spends
    accountant = BudgetAccountant(epsilon=100.0, delta=1e-5)
    model = classifier(delta=1e-6, mechanism="gaussian", accountant=accountant)
    with pytest.warns(PrivacyLeakWarning, match="Scores are computed from the data"):
        cross_val_score(model, X, Y, cv=3)
    assert accountant.total("sum") == (60.0, 3e-6)


def test_grid_search_of_a_regression_at_one_delta():
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (600, 8))
    target = features @ np.linspace(-1, 1, 8) + 0.2 * rng.normal(size=600)
    ledger = BudgetAccountant(epsilon=1000.0, delta=1e-3)
    model = BayesianLinearRegression(
        delta=1e-6, bounds_X=(-1, 1), bounds_y=(-5, 5), accountant=ledger
    )
    names = ["laplace", "gaussian", "auto", "fourier", "sampler", "map"]
    grid = {"epsilon": [0.1, 10.0], "mechanism": names}
    with pytest.warns(PrivacyLeakWarning, match="Scores are computed from the data"):
        search = GridSearchCV(model, grid, cv=2).fit(features, target)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_params_["epsilon"] == 10.0
    assert search.best_score_ > 0.5
    assert len(ledger) == 2 * 12 + 1
    assert ledger.total("sum").delta <= 1e-6 * len(ledger)


def test_grid_search_over_the_options_of_a_mechanism():
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), classifier(mechanism=mechanisms.Sampler())),
        {
            "bayesiannaivebayes__mechanism__omega": [0.05, 0.4],
            "bayesiannaivebayes__mechanism__n_samples": [1, 3],
        },
        cv=2,
        n_jobs=2,
    ).fit(X, Y)
    best = search.best_estimator_[-1]
    assert best.mechanism.omega == search.best_params_["bayesiannaivebayes__mechanism__omega"]
    draws = best.posterior_.untempered
    assert len(draws.weights) == best.mechanism.n_samples
    probabilities = np.concatenate([t.ravel() for t in draws.draws])
    assert probabilities.min() >= best.mechanism.omega - 1e-12


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "gaussian", "auto"])
def test_cross_validation_scores_every_fold(mechanism):
    model = classifier(mechanism=mechanism, delta=1e-6)
    assert cross_val_score(model, X, Y, cv=5).mean() > 0.7
    assert cross_val_predict(model, X, Y, cv=3, method="predict_proba").shape == (len(X), 2)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, mechanisms.Sampler(n_samples=2)])
def test_clones_are_unfitted_and_equal(mechanism):
    model = classifier(mechanism=mechanism, accountant=BudgetAccountant())
    copy = clone(model.fit(X, Y))
    assert not hasattr(copy, "posterior_")
    assert copy.accountant is model.accountant
    assert repr(copy) == repr(model)
    assert_array_equal(copy.fit(X, Y).predict_log_proba(X), model.predict_log_proba(X))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_pickles_predict_the_same(mechanism, tmp_path):
    model = classifier(mechanism=mechanism, accountant=BudgetAccountant()).fit(X, Y)
    joblib.dump(model, tmp_path / "model")
    for copy in (
        pickle.loads(pickle.dumps(model)),
        cloudpickle.loads(cloudpickle.dumps(model)),
        joblib.load(tmp_path / "model"),
    ):
        assert_array_equal(copy.predict_log_proba(X), model.predict_log_proba(X))
        assert copy.guarantee_ == model.guarantee_
        assert copy.accountant == model.accountant


def test_the_state_of_released_characters_has_no_keys_that_skops_refuses():
    released = classifier(mechanism="fourier", inference="plug_in").fit(X, Y).posterior_.released
    state = released.__getstate__()
    assert not any(isinstance(value, dict) for value in state.values())
    assert {*state} == {*released.__dict__}
    assert [*pickle.loads(pickle.dumps(released)).blocks] == [*released.blocks]


def test_a_calibrated_classifier_predicts():
    calibrated = CalibratedClassifierCV(classifier(), cv=3).fit(X, Y)
    assert calibrated.score(X, Y) > 0.8


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_a_vote_predicts(voting):
    members = [(name, classifier(mechanism=name)) for name in MECHANISMS]
    assert VotingClassifier(members, voting=voting).fit(X, Y).score(X, Y) > 0.8


@pytest.mark.filterwarnings("ignore:An ensemble has set random_state")
def test_bags_predict():
    bagging = BaggingClassifier(classifier(), n_estimators=5, random_state=0).fit(X, Y)
    assert bagging.score(X, Y) > 0.8
    seeds = {member.random_state for member in bagging.estimators_}
    assert len(seeds) == 5  # scikit-learn hands every member a seed of its own


def test_one_against_the_rest():
    three = Y + (X[:, 0] > 15) * Y
    model = OneVsRestClassifier(classifier()).fit(X, three)
    assert model.score(X, three) > 0.7


def steps_that_were_named(caplog, *steps):
    X, y = np.random.default_rng(0).random((300, 3)), np.arange(300) % 2
    model = BayesianNaiveBayes(classes=[0, 1], bounds=(-4, 4), n_bins=4)
    make_pipeline(*steps, model).fit(X, y)
    lines = [r.getMessage() for r in caplog.records if "Steps before it" in r.getMessage()]
    return [re.findall(r"'(\w+)'", line) for line in lines]


def test_steps_of_a_pipeline_that_learned_without_a_guarantee_are_named(caplog):
    columns = ColumnTransformer([("s", StandardScaler(), [0]), ("p", "passthrough", [1, 2])])
    private = PrivateMinMaxScaler(bounds=(0, 1))
    named = steps_that_were_named(caplog, StandardScaler(), Normalizer(), private, columns)
    assert named == [["standardscaler", "columntransformer"]]


def test_steps_that_learn_nothing_are_not_named(caplog):
    columns = ColumnTransformer([("n", Normalizer(), [0]), ("p", "passthrough", [1, 2])])
    function = FunctionTransformer(np.sqrt)
    assert steps_that_were_named(caplog, function, "passthrough", columns) == []


def test_names_that_a_column_transformer_has_prefixed_are_hinted_at():
    frame = pd.DataFrame({"a": [0.0, 1.0] * 20, "b": [1.0, 0.0] * 20})
    schema = Schema({"a": Interval(0, 1), "b": Interval(0, 1)}, target=Categories([0, 1]))
    columns = ColumnTransformer([("num", "passthrough", ["a", "b"])])
    model = make_pipeline(columns.set_output(transform="pandas"), BayesianNaiveBayes(schema=schema))
    with pytest.raises(ValueError, match=r"'num__a'.*verbose_feature_names_out=False"):
        model.fit(frame, [0, 1] * 20)
    columns.set_params(verbose_feature_names_out=False)
    assert model.fit(frame, [0, 1] * 20).predict(frame).shape == (40,)


def test_columns_that_lost_their_names_are_hinted_at():
    frame = pd.DataFrame({"a": [0.0, 1.0] * 20, "b": [1.0, 0.0] * 20, "c": ["x", "y"] * 20})
    columns = {"a": Interval(0, 1), "b": Interval(0, 1), "c": Categories(["x", "y"])}
    model = BayesianNaiveBayes(schema=Schema(columns, target=Categories([0, 1])))
    chosen = ColumnTransformer(
        [("num", "passthrough", ["a", "c"])], verbose_feature_names_out=False
    )
    with pytest.raises(
        ValueError, match=r"2 features, which have no names.*set_output\(transform='pandas"
    ):
        make_pipeline(chosen, model).fit(frame, [0, 1] * 20)


def test_sparse_rows_are_refused_with_what_to_pass_instead():
    model = BayesianLogisticRegression(classes=[0, 1], bounds=(0, 1))
    with pytest.raises(TypeError, match=r"Sparse data was passed.* in a data frame, with a schema"):
        model.fit(csr_array(np.eye(40)), [0, 1] * 20)
