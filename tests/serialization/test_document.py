"""Released models as JSON: the same predictions to the last bit, and nothing else gets in."""

from __future__ import annotations

import json
from copy import deepcopy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.audit.tools.fuzzing import every_case
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    PrivateSearchCV,
    Schema,
    from_json,
    mechanisms,
)
from tests.serialization.outputs import outputs

CASES = {case.name: case for case in every_case()}
EXACT = {case.name: case for case in every_case(epsilon=float("inf"))}


def same(first, second):
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cases", [CASES, EXACT], ids=["private", "exact"])
def test_every_estimator_and_mechanism_comes_back_from_json(cases, name):
    case = cases[name]
    model = case.estimator.fit(case.X, case.y)
    text = model.to_json()
    again = from_json(text)
    assert type(again) is type(model)
    assert same(outputs(again, case.X), outputs(model, case.X))
    assert again.guarantee_ == model.guarantee_
    assert again.to_json() == text
    kept = {**again.get_params(deep=False), "accountant": None, "random_state": None}
    assert str(kept) == str(
        {**model.get_params(deep=False), **{k: None for k in ("accountant", "random_state")}}
    )
    if not hasattr(model.posterior_, "sample"):  # of counts alone
        return
    draws = [m.posterior_.sample(np.random.default_rng(0), 3) for m in (again, model)]
    assert same(*(d if isinstance(d, tuple) else (np.asarray(d),) for d in draws))


@given(
    epsilon=st.one_of(
        st.floats(0.05, 50.0),
        st.fractions(Fraction(1, 20), 50, max_denominator=10**6),
        st.integers(1, 9),
        st.floats(0.125, 8.0, width=32).map(np.float32),
    ),
    alpha=st.one_of(st.floats(1e-3, 1e3), st.lists(st.floats(0.1, 9.0), min_size=2, max_size=2)),
    labels=st.one_of(
        st.lists(st.text(max_size=5), min_size=2, max_size=4, unique=True),
        st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=4, unique=True),
        st.just([False, True]),
    ),
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    mechanism=st.sampled_from(["laplace", "fourier"]),
    unit=st.sampled_from(["record", "feature"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_parameters_come_back_from_json(epsilon, alpha, labels, low, width, mechanism, unit, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(low, low + width, (20, 2)), rng.integers(0, len(labels), 20)
    model = BayesianNaiveBayes(
        epsilon,
        alpha=alpha,
        classes=labels,
        bounds=(low, low + width),
        n_bins=[2, 3],
        mechanism=mechanism,
        privacy_unit=unit,
        inference="plug_in",
    ).fit(X, np.array(labels)[y])
    again = from_json(model.to_json())
    assert same(outputs(again, X), outputs(model, X))
    assert again.classes_.dtype == model.classes_.dtype
    assert type(again.epsilon) is type(model.epsilon)
    assert again.epsilon == model.epsilon
    assert again.get_params().keys() == model.get_params().keys()


def test_the_name_of_one_variable():
    model = BetaBinomial(random_state=0).fit(pd.DataFrame({"smokes": [True, False] * 9}))
    again = from_json(model.to_json())
    assert again.feature_names_in_.tolist() == ["smokes"]
    assert again.to_json() == model.to_json()


def test_frames_schemas_and_objects():
    frame = pd.DataFrame({"age": [20, 50, 31, 64] * 5, "job": ["a", "b", "c", None] * 5})
    schema = Schema(
        {"age": Interval(17, 90, bins=4), "job": Categories(["a", "b"], unseen="b")},
        Categories([True, False]),
    )
    y = np.array([True, False] * 10)
    for mechanism in (mechanisms.Laplace(budget_split=0.5), mechanisms.Sampler(2, omega=0.3)):
        model = BayesianNetworkClassifier(
            2.0,
            parents={"age": ["class"], "job": ["age"]} if mechanism.name() != "laplace" else None,
            schema=schema,
            mechanism=mechanism,
            n_bins=np.array([4, 2], np.int16),
        ).fit(frame, y)
        again = from_json(model.to_json())
        assert same(outputs(again, frame), outputs(model, frame))
        assert again.feature_names_in_.tolist() == ["age", "job"]
        assert again.classes_.dtype == bool
        assert again.schema == schema
        assert again.mechanism.get_params() == mechanism.get_params()
        assert again.n_bins.dtype == np.int16
        with pytest.raises(ValueError, match="feature names"):
            again.predict(frame.rename(columns={"age": "years"}))


def test_batches_keep_their_guarantees_and_can_go_on():
    case = CASES["BayesianNaiveBayes, laplace, noise_aware"]
    model = BayesianNaiveBayes(1.0, classes=[0, 1], bounds=(0, 2), n_bins=3)
    model.partial_fit(case.X, case.y).partial_fit(case.X, case.y)
    again = from_json(model.to_json())
    assert again.guarantee_ == model.guarantee_
    assert "2 batches" in str(again.guarantee_)
    assert "3 batches" in str(again.partial_fit(case.X, case.y).guarantee_)


def test_neither_ledger_nor_seed_is_written():
    model = BetaBinomial(accountant=BudgetAccountant(), random_state=73917391).fit([0, 1, 1])
    text = model.to_json()
    assert "73917391" not in text
    assert "accountant" not in text
    again = from_json(text)
    assert again.accountant is None
    assert again.random_state is None
    assert again.guarantee_ == model.guarantee_  # which still says that there was a seed


def test_numbers_are_exact():
    model = DirichletMultinomial(categories=2, prior=[0.1 + 0.2, 1e-90]).fit([0, 1, 1])
    content = json.loads(model.to_json())
    assert content["parameters"]["prior"] == [0.1 + 0.2, 1e-90]
    assert content["format"] == "dpbayes_sklearn model"
    assert content["version"] == 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BetaBinomial(), "not fitted"),
        (DirichletMultinomial(categories=[(1, 2), (3, 4)]), "Only categories"),
    ],
)
def test_what_cannot_be_exported_says_so(model, message):
    if "not fitted" not in message:
        values = np.empty(2, object)
        values[:] = [(1, 2), (3, 4)]
        model.fit(values)
    with pytest.raises(ValueError, match=message):
        model.to_json()


def test_a_search_points_to_its_winner():
    case = CASES["BayesianNaiveBayes, laplace, plug_in"]
    search = PrivateSearchCV(
        case.estimator, {"alpha": [1.0, 2.0]}, runs_per_candidate=1, random_state=0
    )
    search.fit(case.X, case.y)
    with pytest.raises(ValueError, match="export its best_estimator_"):
        search.to_json()
    assert from_json(search.best_estimator_.to_json()).guarantee_ == search.guarantee_


def test_parameters_changed_after_the_fit_do_not_make_a_text_that_cannot_be_read():
    case = CASES["BayesianNetworkClassifier, laplace, plug_in"]
    model = deepcopy(case.estimator).fit(case.X, case.y).set_params(parents={0: ["class"]})
    with pytest.raises(ValueError, match="not of the network"):
        model.to_json()
