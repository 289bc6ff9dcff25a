"""Texts that no model wrote are refused, or are models: nothing else gets in."""

from __future__ import annotations

import json
import math
import pickle
from copy import deepcopy
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from benchmarks.audit.tools.fuzzing import every_case
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BetaBinomial,
    Categories,
    Schema,
    feature_selection,
    from_json,
    mechanisms,
    preprocessing,
)
from dpbayes_sklearn.base.published import published_models
from dpbayes_sklearn.serialization import document
from tests.serialization.outputs import outputs

CASES = {case.name: case for case in every_case()}


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


@pytest.mark.parametrize("factor", [1e300, -1e155])
def test_a_card_is_written_of_any_numbers(factor):
    content = json.loads(text_of("BayesianLinearRegression, laplace, noise_aware"))
    slopes = content["fitted"]["posterior_"]["slopes"]
    slopes["mean"]["data"] = [factor * number for number in slopes["mean"]["data"]]
    model = from_json(json.dumps(content))
    assert "| x0 | " in model.card()
    assert model.summary()._repr_html_()


def test_numbers_that_no_release_has_are_refused():
    content = independent("BayesianNaiveBayes, laplace, noise_aware")
    for table in content["fitted"]["posterior_"]["alphas"]:
        table["data"] = [5e-324] * len(table["data"])
    with pytest.raises(ValueError, match="no release has its numbers"):
        from_json(json.dumps(content))


@pytest.mark.parametrize("unit", ["1/2", "person", ""])
def test_a_unit_that_is_none_is_refused(unit):
    for name in ("BayesianNaiveBayes, laplace, plug_in", "NormalMean, laplace"):
        content = json.loads(text_of(name))
        content["parameters"]["privacy_unit"] = unit
        with pytest.raises(ValueError, match=r"fit its parameters .*'privacy_unit' parameter"):
            from_json(json.dumps(content))


@pytest.mark.parametrize(
    "name", ["BayesianLogisticRegression, sampler", "NormalMean, sampler", "NormalMean, laplace"]
)
@pytest.mark.parametrize("shape", [[3, 0], [0, 5], [2, 1, 1], [2], [2, 9]], ids=str)
def test_draws_of_another_shape_are_refused(name, shape):
    content = json.loads(text_of(name))
    draws = {"shape": shape, "axes": [*range(len(shape))], "data": [0.5] * math.prod(shape)}
    content["fitted"]["posterior_"]["draws"] = draws
    with pytest.raises(ValueError, match="fitted"):
        from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("BayesianLinearRegression, laplace, plug_in", {"bounds_y": {"tuple": [1, 0]}}),
        ("BayesianNaiveBayes, laplace, plug_in", {"classes": [0, 0]}),
    ],
)
def test_parameters_that_declare_no_domain_are_refused(name, change):
    content = json.loads(text_of(name))
    content["parameters"].update(change)
    with pytest.raises(ValueError, match=r"fit its parameters .*(low < high|all different)"):
        from_json(json.dumps(content))


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
        assert model.card()
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
    """A text can name nothing but the estimators of this library."""
    names = {*published_models()}
    transformers = {*preprocessing.__all__, *feature_selection.__all__} - {
        "learn_schema",
        "schema_template",
    }
    assert names == {type(case.estimator).__name__ for case in CASES.values()} | transformers
