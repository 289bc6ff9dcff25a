"""Parameters as JSON: types and values come back as they were."""

from __future__ import annotations

import json
import math
from collections import OrderedDict

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpbayes_sklearn import Categories, Interval, Schema, mechanisms
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.serialization.document import PARAMETER


def there_and_back(value):
    return PARAMETER.decode(json.loads(json.dumps(PARAMETER.encode(value), allow_nan=False)), "x")


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.fractions(),
)
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)


def same(a, b):
    """Tell whether two values are equal in type, sign of zero and all."""
    return type(a) is type(b) and repr(a) == repr(b)


@given(values)
def test_plain_values_come_back(value):
    assert same(there_and_back(value), value)


@given(
    hnp.arrays(
        st.sampled_from(["bool", "int8", "uint64", "int64", "float16", "float32", "float64"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        elements=None,
    )
)
def test_arrays_come_back(array):
    again = there_and_back(array)
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    np.testing.assert_array_equal(again, array)
    transposed = there_and_back(array.T)
    np.testing.assert_array_equal(transposed, array.T)


@pytest.mark.parametrize(
    "value",
    [np.float32(0.1), np.int8(-3), np.bool_(True), np.float64("inf"), np.uint64(2**64 - 1)],
    ids=repr,
)
def test_numpy_scalars_come_back(value):
    assert same(there_and_back(value), value)


def test_not_a_number():
    assert math.isnan(there_and_back(math.nan))
    assert np.isnan(there_and_back(np.array([math.nan, 1.0]))[0])


@pytest.mark.parametrize(
    "value",
    [
        Interval(-1, 2.5, bins=3),
        Categories(["a", "b"], unseen="b"),
        Categories([True, False]),
        Schema({"a": Interval(0, 1), "b": Categories([1, 2.5, None])}, Categories(["u"])),
        Schema({}, Interval(0, 1)),
    ],
    ids=repr,
)
def test_domains_come_back(value):
    assert there_and_back(value) == value


@pytest.mark.parametrize("name", sorted(mechanisms._BY_NAME))
def test_mechanisms_come_back(name):
    mechanism = mechanisms.resolve_mechanism(name)
    again = there_and_back(mechanism)
    assert type(again) is type(mechanism)
    assert again.get_params() == mechanism.get_params()


def test_what_stands_for_a_list_or_a_dictionary():
    assert there_and_back(range(3)) == [0, 1, 2]
    assert there_and_back(pd.Series([1.5, 2.5])).tolist() == [1.5, 2.5]
    assert there_and_back(OrderedDict(a=1)) == {"a": 1}
    assert there_and_back(np.str_("a")) == "a"
    graph = nx.DiGraph([("class", 0), (0, 1)])
    assert there_and_back(graph) == {"class": [], 0: ["class"], 1: [0]}


class Homemade(Mechanism):
    """Not one of this library."""


@pytest.mark.parametrize(
    "value",
    [object(), b"x", 1j, {1, 2}, Homemade(), np.array([1j])],
    ids=lambda v: type(v).__name__,
)
def test_other_things_are_not_exported(value):
    with pytest.raises(ValueError, match=r"exported|not one of this library"):
        PARAMETER.encode(value)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"tuple": 1},
        {"float": "1"},
        {"unknown": 1},
        {"tuple": [], "dict": []},
        {"fraction": "1/0"},
        {"fraction": "2/4"},
        {"dict": [[1]]},
        {"dict": [[[1], 2]]},
        {"scalar": {"dtype": "float64", "shape": [1], "axes": [0], "data": [1.0]}},
        {"array": {"dtype": "complex128", "shape": [0], "axes": [0], "data": []}},
        {"array": {"dtype": "int8", "shape": [1], "axes": [0], "data": [200]}},
        {"array": {"dtype": "int8", "shape": [1], "axes": [0], "data": [1.0]}},
        {"array": {"dtype": "float64", "shape": [1], "axes": [0], "data": ["1.0"]}},
        {"array": {"dtype": "int64", "shape": [2], "axes": [0], "data": [1]}},
        {"array": {"dtype": "int64", "shape": [1], "axes": [1], "data": [1]}},
        {"array": {"dtype": "int64", "shape": [-1], "axes": [0], "data": [1]}},
        {"array": {"dtype": ["int64"], "shape": [1], "axes": [0], "data": [1]}},
        {"mechanism": {"name": "os", "options": {}}},
        {"mechanism": {"name": "sampler", "options": {}}},
        {"interval": {"low": 1.0, "high": 0.0, "bins": None}},
        {"interval": {"low": 0.0, "high": "inf", "bins": None}},
        {"categories": {"values": [], "unseen": None, "dtype": None}},
        {"categories": {"values": [[1]], "unseen": None, "dtype": None}},
        {"learned_parents": {"parents": {"dict": []}}},
        {"learned_parents": {"parents": [], "guarantee": "g"}},
        {"learned_parents": {"parents": {"dict": []}, "guarantee": 1}},
        float("inf"),
    ],
    ids=str,
)
def test_other_forms_are_refused(content):
    with pytest.raises(ValueError, match=r"^x"):
        PARAMETER.decode(content, "x")


def test_short_texts_beside_a_long_one_do_not_fill_the_memory():
    texts = ["x" * 200_000, *["y"] * 20_000]  # 16 gigabytes as an array
    array = {"dtype": "str", "shape": [len(texts)], "axes": [0], "data": texts}
    with pytest.raises(ValueError, match="too long for an array"):
        PARAMETER.decode({"array": array}, "x")


def test_values_of_one_hash_do_not_keep_the_reader_busy():
    labels = [i * (2**61 - 1) for i in range(1, 200_001)]  # hours, if they were put into a set
    for content in (
        {"dict": [[label, 0] for label in labels]},
        {"categories": {"values": labels, "unseen": labels[0], "dtype": None}},
    ):
        with pytest.raises(ValueError, match="of one hash"):
            PARAMETER.decode(content, "x")
