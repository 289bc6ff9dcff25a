"""Schema.template: the code of a schema, from names and types alone."""

from __future__ import annotations

from datetime import date
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpbayes_sklearn import Categories, Interval, Schema

FRAME = pd.DataFrame(
    {
        "age": [31, 48],
        "wage": [1.5, 2.5],
        'the "job"': ["clerk", "nurse"],
        "since": pd.to_datetime(["2020-01-31", "2021-01-31"]),
        "smokes": [True, False],
        "ill": [0, 1],
    }
)
DOMAINS = {
    "age": Interval(17, 90),
    "wage": Interval(0, 60),
    'the "job"': Categories(["clerk", "nurse"]),
    "since": Interval(date(2010, 1, 1), date(2022, 1, 1)),
    "smokes": Categories([False, True]),
}


def test_filled_in_it_is_the_schema() -> None:
    code = Schema.template(FRAME, target="ill")
    for filled in ("17, 90", "0, 60", "date(2010, 1, 1), date(2022, 1, 1)"):
        code = code.replace("Interval(..., ...)", f"Interval({filled})", 1)
    code = code.replace("Categories([...]),  # text", 'Categories(["clerk", "nurse"]),  # text')
    code = code.replace("target=Interval(..., ...)", "target=Categories([0, 1])")
    made: dict[str, Any] = {}
    exec(code, made)
    assert made["schema"] == Schema(DOMAINS, target=Categories([0, 1]))


@pytest.mark.parametrize(
    "make",
    [
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).lazy(),
        lambda frame: pl.from_pandas(frame).to_arrow(),
        lambda frame: duckdb.from_df(frame),
        lambda frame: frame.iloc[:0],
        lambda frame: frame[::-1].convert_dtypes(),
    ],
)
def test_the_container_and_the_values_do_not_matter(make: Any) -> None:
    assert Schema.template(make(FRAME), "ill") == Schema.template(FRAME, "ill")


@pytest.mark.parametrize("gap", ["Interval(..., ...)", "Categories([...])"])
def test_what_is_not_filled_in_is_refused(gap: str) -> None:
    with pytest.raises(ValueError, match=r"must be .*(Got Ellipsis|in place of the \.\.\.)"):
        eval(gap)


def test_what_is_no_frame_and_no_target_is_refused() -> None:
    with pytest.raises(TypeError, match="Got ndarray instead"):
        Schema.template(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"lacks the column 'il'.* Did you mean 'ill'"):
        Schema.template(FRAME, target="il")
