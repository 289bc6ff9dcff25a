"""Released models as JSON: the same predictions to the last bit, and nothing else gets in."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import dpbayes_sklearn
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
    feature_selection,
    from_json,
    mechanisms,
    preprocessing,
)
from dpbayes_sklearn.audit.catalogue import every_case
from dpbayes_sklearn.serialization import document

CASES = {case.name: case for case in every_case()}
EXACT = {case.name: case for case in every_case(epsilon=float("inf"))}


def outputs(model, X):
    """Return everything that a model predicts."""
    if hasattr(model, "predict_proba"):
        return [model.predict(X), model.predict_proba(X), model.log_likelihood(X)]
    if hasattr(model, "predict"):
        return [*model.predict(X, return_std=True), model.coef_, np.array(model.intercept_)]
    posterior = model.posterior_
    return [np.array(posterior.mean()), posterior.concentration, np.array(posterior.variance())]


def same(first, second):
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cases", [CASES, EXACT], ids=["private", "exact"])
def test_round_trip_of_every_estimator_and_mechanism(cases, name):
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
def test_round_trip_of_parameters(epsilon, alpha, labels, low, width, mechanism, unit, seed):
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


def published(case):
    model = deepcopy(case.estimator).set_params(random_state=0)
    return model.fit(case.X, case.y).to_json()


def elaborate():
    """Return a case whose parameters are of many types."""
    case = CASES["BayesianNetworkClassifier, sampler, plug_in"]
    model = deepcopy(case.estimator).set_params(
        epsilon=Fraction(7, 3),
        alpha=np.array([0.5, 1.0, 2.0], np.float32),
        bounds=(np.zeros(3, np.int8), [2, 2, np.float64(2)]),
        classes=np.array([0, 1], object),
        mechanism=mechanisms.Sampler(2, omega=0.3),
    )
    return case._replace(estimator=model)


MODELS = {**CASES, "elaborate": elaborate()}
NAMES = sorted(MODELS)


@cache
def text_of(name):
    return published(MODELS[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "pickle"}, "format must be"),
        ({"version": 2}, "version must be 1"),
        ({"version": True}, "version must be 1"),
        ({"estimator": "os.system"}, "estimator must be one of"),
        ({"estimator": "BetaBinomial"}, "parameters lacks calibrate"),
        ({"more": 1}, "unknown field"),
        ({"parameters": {}}, "parameters lacks alpha"),
        ({"fitted": []}, "fitted must be an object"),
    ],
    ids=str,
)
def test_the_head_is_checked(change, message):
    content = json.loads(text_of("BayesianNaiveBayes, laplace, plug_in"))
    with pytest.raises(ValueError, match=message):
        from_json(json.dumps({**content, **change}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "NaN",
        '"x"',
        '{"format": 1, "format": 2}',
        "[" * 100_000,
        "9" * 10_000,
    ],
    ids=lambda text: text[:12],
)
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match=r"not a released model|Exceeds the limit"):
        from_json(text)


def test_only_text_of_a_reasonable_size(monkeypatch):
    with pytest.raises(ValueError, match="string of JSON"):
        from_json(pickle.dumps(1))
    monkeypatch.setattr(document, "MOST_CHARACTERS", 100)
    with pytest.raises(ValueError, match="longer than 100"):
        from_json(text_of("BetaBinomial, laplace, plug_in"))


FOURIER = "BayesianNaiveBayes, fourier, plug_in"


def independent(name):
    """Return the JSON of a plain model whose counts have independent noise."""
    case = CASES[name]
    mechanism = {"laplace": mechanisms.Laplace, "fourier": mechanisms.Fourier}[name.split(", ")[1]]
    model = clone(case.estimator).set_params(
        mechanism=mechanism(noise="independent"), temperature=1
    )
    return json.loads(model.fit(case.X, case.y).to_json())


@pytest.mark.parametrize("size", [1, 2])
def test_parts_of_a_wide_family_are_not_listed(size):
    """A node with 60 parents has 2^61 sets of nodes, which nobody could wait for."""
    content = independent(FOURIER)
    parents = [[] for _ in range(60)] + [[*range(60)]]
    network = {"sizes": [size] * 61, "parents": parents}
    content["fitted"]["posterior_"]["released"]["network"] = network
    with pytest.raises(ValueError, match="not those of its network"):
        from_json(json.dumps(content))


@pytest.mark.parametrize("scale", ["1/" + "9" * 300, "1" + "0" * 399 + "/1"])
def test_scales_that_no_float_can_hold_are_refused(scale):
    content = independent(FOURIER)
    content["fitted"]["posterior_"]["released"]["laws"][0]["scales"] = [scale]
    with pytest.raises(ValueError, match="smaller terms"):
        from_json(json.dumps(content))


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware"])
@pytest.mark.parametrize("model", ["BayesianNaiveBayes", "BayesianNetworkClassifier"])
def test_laws_that_no_release_has_are_refused(model, inference):
    content = independent(f"{model}, laplace, {inference}")
    released = content["fitted"]["posterior_"]["released"]
    (law,) = released["laws"]
    scales, cells = law["scales"], law["numbers"]
    *values, n_classes = released["network"]["sizes"]
    rows = {"scale": "2/1", "values": values, "n_classes": n_classes, "grid": 1}
    for wrong in (
        {**law, "scales": ["0/1"] * len(scales)},
        {**law, "scales": ["0/1", *scales[1:]]},
        {**law, "scales": [*scales[:-1], "0/1"]},
        {**law, "scales": scales[:-1]},
        {**law, "numbers": [*cells[:-1], cells[-1] + 1]},
        {**law, "numbers": [cells[0] + cells[1], 0, *cells[2:]]},
        {"type": "SupNorm", "scale": "2/1", "sides": [1] * sum(cells), "grid": 1},
        {"type": "ZeroSum", "scale": "2/1", "cells": sum(cells)},
        {"type": "ClassRows", **rows, "n_classes": n_classes + 1},
        *([{"type": "ClassRows", **rows}] if model == "BayesianNetworkClassifier" else []),
    ):
        released["laws"] = [wrong]
        with pytest.raises(ValueError, match=r"released has|released\.laws"):
            from_json(json.dumps(content))


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware"])
def test_counts_that_need_no_noise(inference):
    """Constant features say nothing, and labels are not protected by this unit."""
    model = BayesianNaiveBayes(
        classes=[0, 1],
        schema=Schema({"x0": Categories(["a"]), "x1": Categories(["b"])}),
        privacy_unit="feature",
        inference=inference,
        temperature=1,
    ).fit([["a", "b"]] * 5, [0, 0, 1, 1, 1])
    text = model.to_json()
    assert from_json(text).to_json() == text
    content = json.loads(text)
    for table in content["fitted"]["posterior_"]["released"]["tables"]:
        table["data"][0] += 1
        with pytest.raises(ValueError, match="no counts of its records"):
            from_json(json.dumps(content))
        table["data"][0] -= 1


@pytest.mark.parametrize(
    "change", [{"unit": "feature"}, {"neighbours": "nobody"}, {"epsilon": 0.0}], ids=str
)
def test_promises_that_contradict_themselves_are_refused(change):
    content = json.loads(text_of(FOURIER))
    content["fitted"]["_batches"][0].update(change)
    with pytest.raises(ValueError, match=r"not those of its unit|must be a float"):
        from_json(json.dumps(content))


def test_a_class_reads_only_its_own():
    with pytest.raises(ValueError, match="must be BetaBinomial"):
        BetaBinomial.from_json(text_of("BayesianLinearRegression, laplace, plug_in"))


def paths(content, here=()):
    """Return the places of all values in a JSON document."""
    yield here
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, value in items:
        yield from paths(value, (*here, key))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(
        ["", "inf", "nan", "-1/2", "1/0", "record", "sampler", "class", "os.system", "x0"]
    ),
    st.just([]),
    st.just({}),
    st.just({"tuple": [1]}),
    st.just({"mechanism": {"name": "base", "options": {}}}),
    st.just({"array": {"dtype": "float64", "shape": [2**40], "axes": [0], "data": []}}),
)


def mutated(data, text):
    content = json.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from([p for p in paths(content) if p]))
        holder = content
        for step in way:
            holder = holder[step]
        action = data.draw(st.sampled_from(["replace", "delete", "copy", "add", "elsewhere"]))
        if action == "replace":
            holder[last] = deepcopy(data.draw(VALUES))
        elif action == "elsewhere":
            place = data.draw(st.sampled_from([p for p in paths(content) if p]))
            value = content
            for step in place:
                value = value[step]
            holder[last] = deepcopy(value)
        elif action == "delete":
            del holder[last]
        elif isinstance(holder, list):
            holder.insert(
                0, deepcopy(holder[last]) if action == "copy" else deepcopy(data.draw(VALUES))
            )
        else:
            holder["unknown"] = deepcopy(data.draw(VALUES))
    return json.dumps(content)


def read(text):
    """Return the model, or None if the text is refused as it must be."""
    try:
        return from_json(text)
    except Exception as error:
        if type(error) is not ValueError:  # any other would be a way to crash a reader
            raise
        return None


@given(st.data())
@settings(max_examples=500)
def test_mutated_texts_are_refused_or_are_models(data):
    name = data.draw(st.sampled_from(NAMES))
    model = read(mutated(data, text_of(name)))
    if model is not None:
        assert type(model) is type(MODELS[name].estimator)
        assert from_json(model.to_json()).to_json() == model.to_json()
        for output in outputs(model, np.zeros((3, model.n_features_in_))):
            assert output.dtype.kind != "f" or not np.isnan(output).any()


@given(st.data())
@settings(max_examples=100)
def test_cut_and_spoiled_texts_are_refused_or_are_models(data):
    text = text_of(data.draw(st.sampled_from(NAMES)))
    at = data.draw(st.integers(0, len(text) - 1))
    spoiled = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 9)) :]
    model = read(spoiled)
    assert model is None or model.to_json()


def test_nothing_is_imported_by_name():
    """Every type that a text can name is in a list in the code."""
    names = {cls.__name__ for cls in dpbayes_sklearn._loading._ESTIMATORS.values()}
    transformers = {*preprocessing.__all__, *feature_selection.__all__} - {"learn_schema"}
    assert names == {type(case.estimator).__name__ for case in CASES.values()} | transformers
