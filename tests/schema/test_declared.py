"""A schema: JSON round trip, and what is refused."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.schema import Categories, Interval, Schema

BOUND = st.floats(-1e300, 1e300)
INTERVALS = st.tuples(BOUND, st.floats(1e-3, 1e300), st.none() | st.integers(2, 20)).map(
    lambda t: Interval(t[0], t[0] + max(t[1], abs(t[0])), t[2], dates=t[2] == 7)
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.text() | st.integers() | FINITE | st.none() | st.booleans()
CATEGORIES = st.lists(VALUES, min_size=1, max_size=5, unique=True).flatmap(
    lambda values: st.sampled_from(values).map(lambda unseen: Categories(values, unseen))
)
DOMAINS = INTERVALS | CATEGORIES


@given(columns=st.dictionaries(st.text(), DOMAINS, max_size=4), target=st.none() | DOMAINS)
def test_a_schema_comes_back_from_json(columns: dict[str, Any], target: Any) -> None:
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
    ["", "[]", "{}", "1", '{"columns": {}}', '{"columns": [], "target": null}', "[" * 100_000],
)
def test_other_text_is_no_schema(text: str) -> None:
    with pytest.raises(ValueError, match="not a Schema"):
        Schema.from_json(text)


def interval(low: Any, high: Any, bins: Any, dates: Any) -> dict[str, Any]:
    return {"low": low, "high": high, "bins": bins, "dates": dates}


SAME_HASH = [i * (2**61 - 1) for i in range(2000)]


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ({"lo": 1.0}, r"columns\.a lacks bins, dates, high, low"),
        (
            {"low": 0, "high": 1.0, "bins": None, "dates": False},
            r"columns\.a\.low must be a finite float",
        ),
        (
            {"low": 0.0, "high": math.inf, "bins": None, "dates": False},
            r"high must be a finite float",
        ),
        (
            {"low": 0.0, "high": 1.0, "bins": True, "dates": False},
            r"bins must be null or an integer",
        ),
        (
            {"low": 0.0, "high": 1.0, "bins": 2**17, "dates": False},
            r"bins must be null or an integer",
        ),
        (interval(1.0, 0.0, None, False), r"columns\.a is not valid"),
        (interval(0.0, 1.0, None, 1), "dates must be true or false"),
        ({"values": [], "unseen": 0, "dtype": None}, "list of at least 1"),
        ({"values": [[0]], "unseen": 0, "dtype": None}, r"values\[0\] must be a string"),
        ({"values": [0], "unseen": 0, "dtype": None, "more": 0}, "has an unknown field"),
        ({"values": [0, 0], "unseen": 0, "dtype": None}, "all different"),
        ({"values": [0], "unseen": 1, "dtype": None}, "one of the values"),
        ({"values": SAME_HASH, "unseen": 0, "dtype": None}, "too many values of one hash"),
        ({"values": [0], "unseen": 0, "dtype": 7}, "dtype must be a string or null"),
        ({"values": [300], "unseen": 300, "dtype": "int8"}, "type of numbers that holds"),
        ({"values": ["a"], "unseen": "a", "dtype": "U9"}, "type of numbers that holds"),
        (7, "must be an object"),
    ],
    ids=range(17),
)
def test_every_field_is_checked(domain: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schema.from_json(json.dumps({"columns": {"a": domain}, "target": None}))


@pytest.mark.parametrize("value", [(1, 2), math.inf, b"a", frozenset()])
def test_what_json_cannot_hold_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="Only categories and classes"):
        Schema({"a": Categories([value])}).to_json()


def test_a_released_model_holds_the_schema_in_the_same_form() -> None:
    schema = Schema({"a": Interval(0, 1, bins=2)}, Categories(["no", "yes"]))
    model = BayesianNaiveBayes(schema=schema).fit(np.array([[0], [1]]), ["no", "yes"])
    document = json.loads(model.to_json())
    assert document["fitted"]["schema_"]["columns"] == json.loads(schema.to_json())["columns"]
    assert document["parameters"]["schema"] == {"schema": json.loads(schema.to_json())}


def test_a_schema_does_not_follow_its_mapping() -> None:
    columns: dict[str, Any] = {"a": Interval(0, 1)}
    schema = Schema(columns)
    columns["b"] = Interval(0, 1)
    assert len(schema) == 1


TABLE: list[list[Any]] = [[30, "nurse"], [200, "pilot"], [40, None], [17, "clerk"]]
CHECKED = Schema(
    {"age": Interval(17, 90), "job": Categories(["clerk", "nurse"])}, Categories([0, 1])
)


@pytest.mark.parametrize(
    "make",
    [
        list,
        lambda rows: np.array(rows, dtype=object),
        lambda rows: pd.DataFrame(rows, columns=["age", "job"])[["job", "age"]],
        lambda rows: pd.DataFrame(rows, columns=["age", "job"]).astype({"age": "Int64"}),
        lambda rows: pl.DataFrame(rows, schema=["age", "job"], orient="row"),
        lambda rows: dd.from_pandas(pd.DataFrame(rows, columns=["age", "job"]), npartitions=2),
    ],
)
def test_check_counts_the_values_outside_their_domain(
    make: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert CHECKED.check(make(TABLE)) == {"age": (1, 0), "job": (1, 1)}
    assert CHECKED.check(make(TABLE), [0, 1, 2, None])["target"] == (1, 1)
    printed = capsys.readouterr().out
    assert printed.startswith("Not private")
    assert "job: 1 of 4 values outside 2 categories, 1 missing" in printed
    assert "target: 1 of 4 values outside" in printed
    assert "pilot" not in printed


def test_check_of_sparse_rows_numbers_and_dates(capsys: pytest.CaptureFixture[str]) -> None:
    schema = Schema({"a": Interval(1, 2), "b": Categories([0, 7])})
    rows = np.array([[1.0, 0], [np.nan, 7], [0, 3]])
    assert schema.check(rows) == {"a": (1, 1), "b": (1, 0)}
    assert schema.check(csr_array(np.nan_to_num(rows))) == {"a": (2, 0), "b": (1, 0)}
    days = Schema({"day": Interval(date(2020, 1, 1), date(2021, 1, 1))})
    assert days.check(np.array([["2020-05-01"], ["2021-05-01"]], "M8[s]")) == {"day": (1, 0)}
    assert "[2020-01-01T00:00:00, 2021-01-01T00:00:00]" in capsys.readouterr().out


def test_check_refuses_other_tables() -> None:
    with pytest.raises(ValueError, match="declares 2 columns, but X has 1"):
        CHECKED.check([[1]])
    with pytest.raises(ValueError, match=r"lacks the column 'job'.*Did you mean 'Jobs'"):
        CHECKED.check(pd.DataFrame({"age": [1], "Jobs": [1]}))


def test_a_notebook_shows_every_column_and_the_target() -> None:
    columns = {
        "age": Interval(18, 95, bins=7),
        "weight": Interval(40, 120, missing="indicator"),
        "height": Interval(100, 220, missing=170),
        "since <1>": Interval(date(2020, 1, 1), date(2024, 1, 1)),
        "job": Categories(["clerk", "other"], unseen="other"),
        "code": Categories(range(100)),
    }
    shown = Schema(columns, target=Categories(["no", "yes"]), guarantee="epsilon = 0.2")
    html = shown._repr_html_()
    for text in ("[18, 95], 7 bins", "[2020-01-01, 2024-01-01]", "since &lt;1&gt;", "clerk, other"):
        assert text in html
    for text in ("6 columns", "100 categories", "no, yes", "Learned: ", "epsilon = 0.2"):
        assert text in html
    for text in ("if missing, the middle", "if missing, a separate value", "if missing, 170"):
        assert text in html
    assert "Learned" not in Schema(columns)._repr_html_()
