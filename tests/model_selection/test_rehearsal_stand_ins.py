"""Stand-ins: of the same shape and types as the records, and made of nothing else."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import BayesianNaiveBayes, PrivateSearchCV
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.model_selection.rehearsal import stand_ins
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.release import GUESS

DAY = datetime.datetime(2020, 1, 1)
COLUMNS = {
    "whole": [1, 2, 3],
    "real": [0.5, 1.5, 2.5],
    "text": ["x", "y", "z"],
    "truth": [True, False, True],
    "day": [DAY] * 3,
    "span": [datetime.timedelta(1)] * 3,
}
TYPES = {"Int64": [1, None, 2], "boolean": [True, None, False], "string": ["x", None, "y"]}
PANDAS = pd.DataFrame(
    {
        **COLUMNS,
        **{name: pd.array(values, name) for name, values in TYPES.items()},
        "level": pd.Categorical(["u", "v", "u"]),
        "mixed": ["x", 1, None],
        "month": pd.period_range("2020", periods=3, freq="M"),
    }
)
POLARS = pl.DataFrame(COLUMNS).with_columns(pl.col("text").cast(pl.Categorical).alias("level"))
Y = np.array([7, 8, 9])


@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
def test_a_frame_keeps_names_and_kinds(frame):
    made = stand_ins(frame, Y, None, "integers", RECORD).X
    assert type(made) is type(frame)
    was, now = Table(frame), Table(made)
    assert (now.n_rows, now.names) == (3, was.names)
    assert [now.kind(j) for j in range(now.n_columns)] == [
        was.kind(j) for j in range(was.n_columns)
    ]
    for j, kind in enumerate(was.kind(j) for j in range(was.n_columns)):
        if kind in {"integers", "numbers", "booleans"}:
            assert not np.any(now.column(j).astype(float))


ARRAYS = [
    np.ones((3, 2), np.uint8),
    np.array([["a", "b"]] * 3),
    np.array([["a", 1]] * 3, object),
    np.array([["2020-01-01", "2021-01-01"]] * 3, "M8[D]"),
    csr_matrix(np.ones((3, 2))),
    csr_array(np.ones((3, 2), np.float32)),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{type(a).__name__} {a.dtype}")
def test_an_array_keeps_its_type(array):
    made = stand_ins(array, Y, None, "integers", RECORD).X
    assert type(made) is type(array)
    assert (made.shape, made.dtype) == (array.shape, array.dtype)


def test_repeated_names():
    twice = pd.DataFrame(np.ones((3, 2)), columns=["a", "a"])
    assert [*stand_ins(twice, Y, None, "integers", RECORD).X.columns] == ["a", "a"]


@pytest.mark.parametrize(
    ("y", "kind", "two"),
    [
        (np.array(["yes", "no"]), "anything", ["0", "1"]),
        (np.array(["yes", None], object), "text", ["0", "1"]),
        (np.array([1.5, 2]), "numbers", [0.0, 1.0]),
        (np.array([True, False]), "booleans", [False, True]),
        (np.array([5, None], object), "anything", [0, 1]),
    ],
)
def test_a_target_has_two_values_of_its_type(y, kind, two):
    made = stand_ins(np.zeros((2, 1)), y, None, kind, RECORD).y
    assert made.tolist() == two
    assert made.dtype == y.dtype or y.dtype.kind == "U"


def test_a_secret_number_of_records_is_guessed_and_persons_are_counted_off():
    person = PrivacyUnit("person", max_records=3, neighbours="add_remove")
    few, many = (
        stand_ins(np.ones((n, 2)), np.ones(n), np.ones(n), "numbers", person) for n in (0, 5)
    )
    assert len(few.y) == GUESS
    assert [np.array_equal(a, b) for a, b in zip(few, many, strict=True)] == [True] * 3
    assert np.bincount(few.groups).max() == 3


@pytest.mark.parametrize(
    "made",
    [np.asarray, np.ndarray.tolist, csr_matrix, pd.DataFrame, pl.DataFrame],
    ids=["array", "list", "sparse", "pandas", "polars"],
)
def test_a_pipeline_is_searched_over_in_every_container(made):
    X = np.arange(240).reshape(80, 3) % 2
    declared = {"bounds": (0, 1), "n_bins": 2, "classes": [0, 1]}
    pipe = make_pipeline(
        PrivateSelectKBest(2, epsilon=0.5, **declared), BayesianNaiveBayes(0.5, **declared)
    )
    search = PrivateSearchCV(pipe, {}, epsilon=3.0, runs_per_candidate=1)
    assert search.fit(made(X), np.arange(80) % 2).guarantee_.epsilon == 3.0
