"""A schema: JSON round trip, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.schema import Categories, Interval, Schema

BOUND = st.floats(-1e300, 1e300)
INTERVALS = st.tuples(BOUND, st.floats(1e-3, 1e300), st.none() | st.integers(2, 1000)).map(
    lambda t: Interval(t[0], t[0] + max(t[1], abs(t[0])), t[2])
)
VALUES = st.text() | st.integers() | st.floats(allow_nan=False) | st.none() | st.booleans()
CATEGORIES = st.lists(VALUES, min_size=1, max_size=5, unique=True).flatmap(
    lambda values: st.sampled_from(values).map(lambda unseen: Categories(values, unseen))
)
DOMAINS = INTERVALS | CATEGORIES


@given(columns=st.dictionaries(st.text(), DOMAINS, max_size=4), target=st.none() | DOMAINS)
def test_json_round_trip(columns: dict[str, Any], target: Any) -> None:
    schema = Schema(columns, target)
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert hash(again) == hash(schema)
    assert list(again.columns) == list(columns)  # arrays are read in this order
    assert json.loads(schema.to_json())["columns"].keys() == columns.keys()


@pytest.mark.parametrize("columns", [[("a", Interval(0, 1))], None, Interval(0, 1), "a"])
def test_columns_must_be_a_mapping(columns: Any) -> None:
    with pytest.raises(TypeError, match="must be a mapping of column names"):
        Schema(columns)


@pytest.mark.parametrize("domain", [None, (0, 1), [1, 2], "x"])
def test_every_domain_must_be_one(domain: Any) -> None:
    with pytest.raises(TypeError, match="'a' must be an Interval or Categories"):
        Schema({"a": domain})


def test_the_target_must_be_a_domain() -> None:
    with pytest.raises(TypeError, match="'target' must be an Interval or Categories"):
        Schema({}, target=(0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "1", '{"columns": {}}', '{"columns": {"a": {"lo": 1}}, "target": null}'],
)
def test_other_text_is_no_schema(text: str) -> None:
    with pytest.raises(ValueError, match="not a Schema"):
        Schema.from_json(text)


def test_a_schema_does_not_follow_its_mapping() -> None:
    columns: dict[str, Any] = {"a": Interval(0, 1)}
    schema = Schema(columns)
    columns["b"] = Interval(0, 1)
    assert len(schema) == 1
