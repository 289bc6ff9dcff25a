"""Bad input: a clear error before anything is spent, with nothing of the data in its text."""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import is_classifier, is_regressor

import dpbayes_sklearn
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    Schema,
    mechanisms,
)
from dpbayes_sklearn._compat import InvalidParameterError

CANARY = "HIV+7391"
NUMBER = 73917391.25  # a value that no message could hold by chance
MARKS = (CANARY, "7391")


def records(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (n, d)).astype(float), rng.integers(0, 2, n)


def declared(**params):
    return BayesianNaiveBayes(**{"classes": [0, 1], "bounds": (0, 1), "n_bins": 2, **params})


def refusal(model, X, y, method="fit"):
    """Return the error of a fit that must fail: nothing spent, nothing attached, nothing shown."""
    accountant = BudgetAccountant()
    accountant.spend(0.5)
    if model.accountant is None:
        model.set_params(accountant=accountant)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises((TypeError, ValueError)) as raised:
            getattr(model, method)(X, y)
    assert (len(accountant), accountant.total().epsilon) == (1, 0.5)
    assert not [name for name in vars(model) if name.endswith("_")]
    for text in (everything_said(raised.value), *(str(w.message) for w in caught)):
        assert not any(mark in text for mark in MARKS), text
    return raised.value


def everything_said(error):
    """Return the texts of an error, of its causes and contexts, suppressed ones too."""
    texts, seen = [], set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one), *getattr(one, "__notes__", [])]
        waiting += [one.__cause__, one.__context__]
    texts.append("".join(traceback.format_exception_only(error)))
    return "\n".join(texts)


PREDICTORS = [
    thing
    for thing in (getattr(dpbayes_sklearn, name) for name in dpbayes_sklearn.__all__)
    if "mechanism" in getattr(thing, "_parameter_constraints", ()) and hasattr(thing, "predict")
]


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize(
    "epsilon", [0, -1, 0.0, -0.5, float("nan"), -np.inf, "1", None, True, [1.0], 1j], ids=repr
)
def test_a_bad_epsilon_is_refused_before_the_charge(predictor, epsilon):
    error = refusal(predictor(epsilon), *records())
    assert isinstance(error, InvalidParameterError)
    assert f"The 'epsilon' parameter of {predictor.__name__} must be" in str(error)
    assert f"Got {epsilon!r} instead." in str(error)


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_unknown_mechanism_lists_the_known_ones(predictor):
    error = refusal(predictor(mechanism="magic"), *records())
    assert isinstance(error, InvalidParameterError)
    assert "'map'" in str(error)
    assert "'magic'" in str(error)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mechanism": mechanisms.Sampler}, "The 'mechanism' parameter"),
        ({"mechanism": mechanisms.Sampler(omega=0.5)}, "The 'omega' parameter of Sampler"),
        ({"mechanism": mechanisms.Sampler(n_samples=0)}, "The 'n_samples' parameter of Sampler"),
        ({"mechanism": mechanisms.Fourier(stealth=1.0)}, "The 'stealth' parameter of Fourier"),
        ({"mechanism": mechanisms.MAP(score="best")}, "The 'score' parameter of MAP"),
        *(
            ({"mechanism": name, "epsilon": 1e-300}, "epsilon=1e-300 is too small")
            for name in ("laplace", "fourier", "sampler", "map")
        ),
        ({"inference": "guess"}, "The 'inference' parameter"),
        ({"privacy_unit": "household"}, "The 'privacy_unit' parameter"),
        ({"accountant": 1.0}, "The 'accountant' parameter"),
        ({"random_state": "seed"}, "The 'random_state' parameter"),
        ({"schema": {"x": (0, 1)}}, "The 'schema' parameter"),
        ({"alpha": 0.0}, "The 'alpha' parameter"),
        ({"alpha": [1.0, 1.0]}, "alpha must be a positive number, or one for each of the 3"),
        ({"alpha": [1.0, -1.0, 1.0]}, "alpha must be a positive number"),
        ({"alpha": ["a", "b", "c"]}, "alpha must be a positive number"),
        ({"alpha": np.inf}, "The 'alpha' parameter"),
        ({"bounds": (1, 0)}, "low < high"),
        ({"bounds": (1, 1)}, "low < high"),
        ({"bounds": (0, np.nan)}, "must be a finite number"),
        ({"bounds": (0, np.inf)}, "must be a finite number"),
        ({"bounds": (0, [1, 1])}, "bounds must be a pair"),
        ({"bounds": ([0, 0, 0, 0], 1)}, "bounds must be a pair"),
        ({"bounds": (0, 1, 2)}, "bounds must be a pair"),
        ({"bounds": ("a", "b")}, "bounds must be a pair"),
        ({"bounds": 1.0}, "The 'bounds' parameter"),
        ({"n_bins": 1}, "The 'n_bins' parameter"),
        ({"n_bins": 0}, "The 'n_bins' parameter"),
        ({"n_bins": 2.5}, "The 'n_bins' parameter"),
        ({"n_bins": "many"}, "The 'n_bins' parameter"),
        ({"n_bins": [2, 1, 2]}, "n_bins must be 'auto', an int >= 2"),
        ({"n_bins": [2, 2]}, "n_bins must be 'auto', an int >= 2"),
        ({"n_bins": [2.0, 2.0, 2.0]}, "n_bins must be 'auto', an int >= 2"),
        ({"n_bins": 10**6}, "at most 65536 bins"),
        ({"classes": []}, "at least one value"),
        ({"classes": 3}, "The 'classes' parameter"),
        ({"schema": Schema({"x": Interval(0, 1)})}, "either schema or bounds"),
        (
            {"schema": Schema({"x": Interval(0, 1)}), "bounds": None},
            "The schema declares 1 columns, but X has 3 features",
        ),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_the_charge(params, message):
    assert message in str(refusal(declared(**params), *records()))


X, Y = records()
SPIKED = X.copy()
SPIKED[3, 1] = NUMBER
TEXT = X.astype(object)
TEXT[3, 1] = CANARY


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (np.empty((0, 3)), [], "0 sample(s)"),
        (np.empty((40, 0)), Y, "0 feature(s)"),
        (pd.DataFrame(X).iloc[:0], [], "0 sample(s)"),
        (pl.DataFrame(X)[:0], [], "0 sample(s)"),
        (pd.DataFrame(index=range(40)), Y, "0 feature(s)"),
        (SPIKED[3], Y, "Expected 2D array"),
        (SPIKED[None], Y, "Expected 2D array"),
        (NUMBER, Y, "Expected 2D array"),
        (SPIKED + 1j, Y, "Complex data not supported"),
        (pd.DataFrame(SPIKED + 1j), Y, "Complex data not supported"),
        (SPIKED, Y + NUMBER * 1j, "Complex data not supported"),
        (sparse.csr_array(SPIKED + 1j), Y, "Complex data not supported"),
        (SPIKED, None, "requires y to be passed"),
        (SPIKED, Y[:-1], "inconsistent numbers of samples"),
        (SPIKED, np.full((40, 2), NUMBER), "y should be a 1d array"),
        (pd.DataFrame(SPIKED, columns=["a", "b", 3]), Y, "feature names"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
@pytest.mark.parametrize("declares", [True, False])
def test_bad_data_are_refused_before_the_charge(data, labels, message, declares):
    model = declared() if declares else BayesianNaiveBayes()
    assert message.lower() in str(refusal(model, data, labels)).lower()


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (TEXT, Y, "must be a string of digits or a number"),
        (TEXT.astype(str), Y, "must be a string of digits or a number"),
        ([[CANARY, 1, 1], [0, 1, 1]], [0, 1], "must be a string of digits or a number"),
        (np.where(SPIKED > 1, np.nan, SPIKED), Y, "NaN"),
        (np.where(SPIKED > 1, np.inf, SPIKED), Y, "infinity"),
        (np.where(SPIKED > 1, -1.7391e308, X * 1.7391e308), Y, "declare its bounds"),
        (np.where(SPIKED > 1, 7.391e-300, 0.0), Y, "declare its bounds"),
        (pd.DataFrame({"a": [CANARY, 3, None] * 2}), [0, 1] * 3, "Declare it, as in schema"),
        (SPIKED, np.where(Y == 1, NUMBER, 0.5), "Unknown label type"),
        (SPIKED, np.where(Y == 1, np.nan, 0.0), "NaN"),
        (SPIKED, np.array([CANARY, 1] * 20, dtype=object), "Labels in y must be of one type"),
        (SPIKED, np.array([[CANARY], None] * 20, dtype=object), ""),
    ],
)
def test_values_where_nothing_is_declared(data, labels, message):
    """Only here may a value decide; the text must not say which."""
    assert message in str(refusal(BayesianNaiveBayes(), data, labels))


@pytest.mark.parametrize("data", [TEXT, TEXT.astype(str), SPIKED], ids=["object", "str", "float"])
def test_the_same_values_pass_where_all_is_declared(data):
    accountant = BudgetAccountant()
    declared(accountant=accountant).fit(data, np.where(Y == 1, CANARY, "0").astype(object))
    assert len(accountant) == 1


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SPIKED[:, :2], "X has 2 features, but BayesianNaiveBayes is expecting 3 features"),
        (SPIKED + 1j, "Complex data not supported"),
        (SPIKED[3], "Expected 2D array"),
        (sparse.csr_array(SPIKED + 1j), "Complex data not supported"),
    ],
    ids=["width", "complex", "1d", "sparse complex"],
)
def test_bad_rows_are_refused_by_predictions(method, data, message):
    model = declared().fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=r"(?i)" + message) as raised:
        getattr(model, method)(data)
    assert not any(mark in everything_said(raised.value) for mark in MARKS)


def test_schema_that_names_a_column_that_is_not_there():
    frame = pd.DataFrame(SPIKED, columns=["a", "b", "c"])
    schema = Schema({"a": Interval(0, 1), "z": Categories(["u"])}, target=Categories([0, 1]))
    error = refusal(BayesianNaiveBayes(schema=schema), frame, Y)
    assert "X lacks the columns ['z']" in str(error)


def test_there_are_predictors_of_both_kinds_or_one():
    assert BayesianNaiveBayes in PREDICTORS
    assert all(is_classifier(p()) or is_regressor(p()) for p in PREDICTORS)


def test_the_canary_would_be_found_behind_an_error():
    def hides_its_context():
        try:
            float(CANARY)
        except ValueError:
            raise TypeError("clean") from None

    with pytest.raises(TypeError) as raised:
        hides_its_context()
    assert CANARY in everything_said(raised.value)
