"""The model of BayesianNaiveBayes: scikit-learn's own without noise, total over its domains."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivacyLeakWarning,
    Schema,
    from_json,
    mechanisms,
)

MECHANISMS = ["laplace", "fourier", "sampler", "map"]
INF = float("inf")


def labelled(n=300, d=6, n_values=2, n_classes=2, seed=0):
    """Codes that depend on their class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    laws = rng.dirichlet(np.ones(n_values), (n_classes, d))
    X = np.array([[rng.choice(n_values, p=laws[c, j]) for j in range(d)] for c in y])
    return X, y


def smoothed_prior(y, n_classes, alpha):
    """(n_c + alpha) / (n + C alpha); scikit-learn itself leaves the class unsmoothed."""
    return (np.bincount(y, minlength=n_classes) + alpha) / (len(y) + n_classes * alpha)


def fit(X, y, **params):
    defaults = {"epsilon": INF, "inference": "plug_in", "classes": np.unique(y)}
    return BayesianNaiveBayes(**{**defaults, **params}).fit(X, y)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_without_noise_it_is_bernoulli_naive_bayes(mechanism, n_classes, alpha):
    X, y = labelled(n_classes=n_classes)
    ours = fit(X, y, mechanism=mechanism, bounds=(0, 1), n_bins=2, alpha=alpha)
    theirs = BernoulliNB(alpha=alpha, class_prior=smoothed_prior(y, n_classes, alpha)).fit(X, y)
    expected = theirs.predict_log_proba(X)
    assert_allclose(ours.predict_log_proba(X), expected, rtol=0, atol=1e-12)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    # the comparison is not blind: the unsmoothed prior, or another alpha, is seen
    if alpha != 1.0:
        other = BernoulliNB(alpha=1.0, class_prior=theirs.class_prior).fit(X, y)
        assert np.abs(other.predict_log_proba(X) - expected).max() > 1e-3


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("n_values", "alpha"), [(3, 1.0), (7, 0.5), (20, 2.0)])
def test_without_noise_it_is_categorical_naive_bayes(mechanism, n_classes, n_values, alpha):
    X, y = labelled(n_values=n_values, n_classes=n_classes)
    ours = fit(X, y, mechanism=mechanism, bounds=(0, n_values - 1), n_bins=n_values, alpha=alpha)
    theirs = CategoricalNB(
        alpha=alpha,
        class_prior=smoothed_prior(y, n_classes, alpha),
        min_categories=n_values,
    ).fit(X, y)
    assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=0, atol=1e-12)


def test_features_of_different_sizes_and_alphas():
    X, y = labelled(n_values=5)
    X[:, 0] %= 2
    sizes, alphas = [2, 5, 5, 5, 5, 5], [0.5, 1.0, 2.0, 1.0, 0.1, 3.0]
    ours = fit(X, y, bounds=(0, np.array(sizes) - 1), n_bins=sizes, alpha=alphas)
    expected = np.log(smoothed_prior(y, 2, 1.0)) + np.zeros((len(X), 2))
    for j, (k, alpha) in enumerate(zip(sizes, alphas, strict=True)):
        counts = np.stack([np.bincount(X[y == c, j], minlength=k) + alpha for c in (0, 1)])
        expected += np.log(counts / counts.sum(axis=1, keepdims=True)).T[X[:, j]]
    expected -= np.logaddexp.reduce(expected, axis=1, keepdims=True)
    assert_allclose(ours.predict_log_proba(X), expected, rtol=0, atol=1e-12)


def test_bins_of_numbers_are_equal_in_width():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-3, 3, (200, 3)), rng.integers(0, 2, 200)
    codes = np.floor((X + 3) / 6 * 8).astype(int)
    from_numbers = fit(X, y, bounds=(-3, 3), n_bins=8)
    from_codes = fit(codes, y, bounds=(0, 7), n_bins=8)
    assert_array_equal(from_numbers.predict_log_proba(X), from_codes.predict_log_proba(codes))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("unit", ["record", "feature"])
def test_probabilities_are_probabilities(mechanism, unit):
    X, y = labelled(n_values=4, n_classes=3)
    model = fit(
        X, y, epsilon=0.1, mechanism=mechanism, privacy_unit=unit, bounds=(0, 3), random_state=0
    )
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1)
    assert (proba > 0).all()
    assert_allclose(np.log(proba), model.predict_log_proba(X))
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_much_budget_comes_near_to_no_noise(mechanism):
    X, y = labelled(n=2000)
    params = {"bounds": (0, 1), "mechanism": mechanism, "random_state": 0}
    exact, private = fit(X, y, **params), fit(X, y, epsilon=1e4, **params)
    assert np.abs(private.predict_proba(X) - exact.predict_proba(X)).mean() < 0.1
    nearly_none = fit(X, y, epsilon=1e-3, **params)
    assert np.abs(nearly_none.predict_proba(X) - exact.predict_proba(X)).mean() > 0.1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_declared_class_without_records_still_gets_its_share(mechanism):
    X, y = labelled()
    model = fit(X, y, epsilon=1.0, mechanism=mechanism, classes=[0, 1, 7], bounds=(0, 1))
    assert_array_equal(model.classes_, [0, 1, 7])
    proba = model.predict_proba(X)
    assert proba.shape == (len(X), 3)
    assert (proba > 0).all()


POISON = [np.nan, np.inf, -np.inf, 1e308, -1e308, -0.0, 5e-324, 17.0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("value", POISON)
def test_no_number_makes_a_declared_fit_fail(mechanism, value):
    X, y = labelled(n=40)
    X = X.astype(float)
    X[3, 2] = X[7] = value
    labels = y.astype(float)
    labels[5] = value  # an undeclared label counts as the first class
    model = fit(
        X, labels, epsilon=1.0, mechanism=mechanism, bounds=(0, 1), n_bins=2, classes=[0, 1]
    )
    assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_text_makes_a_declared_fit_fail(frame, mechanism):
    schema = Schema(
        {"job": Categories(["clerk", "nurse", "other"], unseen="other"), "age": Interval(17, 90)},
        target=Categories(["no", "yes"]),
    )
    jobs = ["nurse", "pilot", None, "", "clerk", "nurse"]
    X = frame({"job": jobs, "age": [20.0, float("nan"), 1e300, -5.0, None, 40.0]})
    y = np.array(["yes", "perhaps", "no", "yes", "no", "no"])
    model = BayesianNaiveBayes(
        mechanism=mechanism, inference="plug_in", schema=schema, random_state=0
    ).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["job", "age"]
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert set(model.predict(X)) <= {"no", "yes"}


def test_frames_and_arrays_give_the_same_model():
    X, y = labelled(n_values=3)
    names = [f"x{j}" for j in range(X.shape[1])]
    models = [
        fit(data, y, epsilon=1.0, bounds=(0, 2), random_state=0)
        for data in (X, pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names))
    ]
    logs = [model.posterior_.log_predictive(X.astype(np.uint8)) for model in models]
    assert_array_equal(logs[0], logs[1])
    assert_array_equal(logs[0], logs[2])
    assert_array_equal(models[1].feature_names_in_, names)


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64]
)
def test_the_type_of_the_data_changes_nothing(dtype):
    X, y = labelled()
    reference = fit(X, y, epsilon=1.0, bounds=(0, 1), n_bins=2, random_state=0)
    other = fit(X.astype(dtype), y, epsilon=1.0, bounds=(0, 1), n_bins=2, random_state=0)
    assert_array_equal(reference.predict_log_proba(X), other.predict_log_proba(X))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_order_of_the_rows_changes_nothing(mechanism):
    X, y = labelled(n_values=3)
    order = np.random.default_rng(2).permutation(len(X))
    params = {"epsilon": 1.0, "mechanism": mechanism, "bounds": (0, 2), "random_state": 0}
    one, other = fit(X, y, **params), fit(X[order], y[order], **params)
    assert_array_equal(one.predict_log_proba(X), other.predict_log_proba(X))


def test_options_of_the_mechanism_reach_it():
    X, y = labelled()
    model = BayesianNaiveBayes(mechanism=mechanisms.Sampler(n_samples=3), random_state=0)
    model.set_params(bounds=(0, 1), classes=[0, 1], mechanism__n_samples=5).fit(X, y)
    assert len(model.posterior_.untempered.draws[0]) == 5


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
def test_a_failed_fit_is_no_fit(method):
    X, y = labelled()
    model = BayesianNaiveBayes(bounds=(0, [1, 1]), classes=[0, 1])
    with pytest.raises(ValueError, match="bounds must be a pair"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        getattr(model, method)(X)


def test_a_failed_refit_leaves_the_earlier_fit_whole():
    X, y = labelled()
    model = fit(X, y, bounds=(0, 1))
    before = model.predict_log_proba(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X[:, :3], y[:-1])
    assert_array_equal(model.predict_log_proba(X), before)


@pytest.mark.parametrize("mechanism", ["laplace", "sampler"])
def test_the_log_joint_is_that_of_the_model(mechanism):
    """ln p(x, c) = ln theta_c + sum of ln `theta[j][c, x]`, and all predictions follow from it."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (200, 4)), rng.integers(0, 2, 200)
    model = BayesianNaiveBayes(bounds=(0, 2), n_bins=3, classes=[0, 1], mechanism=mechanism)
    for temperature in (1.0, 0.5, "auto"):
        *features, classes = model.set_params(temperature=temperature).fit(X, y).posterior_.mean()
        logs = [np.log(table.T[X[:, j]]) for j, table in enumerate(features)]
        weights = getattr(model.posterior_, "weights", None) if temperature != 1.0 else None
        weights = [1.0] * 4 if weights is None else weights
        got = model.predict_joint_log_proba(X)
        joint = np.log(classes) + sum(w * log for w, log in zip(weights, logs, strict=True))
        np.testing.assert_allclose(got, joint, rtol=1e-12)
        plain = np.exp(np.log(classes) + sum(logs))
        np.testing.assert_allclose(plain.sum(axis=1), np.exp(model.log_likelihood(X)))
        np.testing.assert_array_equal(got.argmax(axis=1), model.predict(X))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64", "U1"])
def test_classes_keep_their_type(dtype):
    """That of y if they are read from it, as in scikit-learn; otherwise as they are declared."""
    y = np.array([0, 1] * 10).astype(dtype)
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2)
    with pytest.warns(PrivacyLeakWarning, match="classes were read"):
        model.fit(np.zeros((20, 1)), y)
    declared = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=np.unique(y))
    declared.fit(np.zeros((20, 1)), y.astype("U3" if dtype == "U1" else float))
    batches = BayesianNaiveBayes(bounds=(0, 1), n_bins=2)
    batches.partial_fit(np.zeros((20, 1)), y, np.unique(y)).partial_fit(np.zeros((20, 1)), y)
    for fitted in (model, declared, batches):
        for same in (fitted, from_json(fitted.to_json()), pickle.loads(pickle.dumps(fitted))):
            assert same.classes_.dtype == np.unique(y).dtype
            assert same.predict([[0]]).dtype == np.unique(y).dtype
            assert same.classes_.tolist() == np.unique(y).tolist()


def test_repeated_classes_are_refused():
    for classes in ([0, 1, 1], ["a", "a"], np.array([1.0, 1.0])):
        accountant = BudgetAccountant(1.0)
        model = BayesianNaiveBayes(bounds=(0, 1), classes=classes, accountant=accountant)
        with pytest.raises(ValueError, match="classes must be all different"):
            model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
        assert len(accountant) == 0


def test_classes_without_an_order_are_refused():
    for classes in ([0, None], np.array(["a", 1], dtype=object)):
        model = BayesianNaiveBayes(bounds=(0, 1), classes=classes)
        with pytest.raises(ValueError, match="classes must be values of one type"):
            model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
