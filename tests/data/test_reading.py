"""Reading X and y: refused by shape and type, never by a declared value, never quoting one."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.reading import read_table, read_target
from dpbayes_sklearn.schema import Categories, Interval

CANARY = "CANARY-7431"


class Model(BaseEstimator):
    pass


def messages(error: BaseException) -> str:
    """All text of an error and of what it shows as its cause."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "\n".join(line for line in lines if not line.startswith(" "))


ODD: list[Any] = [np.nan, np.inf, -0.0, 1e308, 10**400, None, CANARY, pd.NA, 2j, [1], True, b"x"]


def odd_tables() -> list[Any]:
    objects = np.empty((len(ODD), 2), object)
    for i, value in enumerate(ODD):
        objects[i, 0], objects[i, 1] = value, 1.0
    text = np.array([[CANARY, "1"], ["", "2"]])
    numbers = np.array([[np.nan, np.inf], [-np.inf, -0.0]])
    return [
        objects,
        text,
        numbers,
        numbers.astype(np.float16),
        numbers.astype(np.longdouble),
        pd.DataFrame(objects),
        pd.DataFrame(text),
        pd.DataFrame(numbers),
        pl.DataFrame({"a": [None, CANARY], "b": [None, 1.0]}),
    ]


@pytest.mark.parametrize("X", odd_tables(), ids=range(9))
def test_with_declared_domains_no_value_is_refused(X: Any) -> None:
    X = X.rename(columns=str) if isinstance(X, pd.DataFrame) else X
    table = read_table(Model(), X, reset=True, declared=True)
    codes = Encoder([Interval(0, 1, bins=3), Categories(["1", "2"])]).encode(table)
    assert codes.shape == X.shape
    assert (codes < [3, 2]).all()


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((2, 0)), "0 feature"),
        (pd.DataFrame({"a": []}), "0 sample"),
        (pd.DataFrame(index=[0, 1]), "0 feature"),
        (np.full((2, 2), 74.31j), "Complex data not supported"),
        (np.full(3, 7431.0), "Expected 2D array, got 1D"),
        (np.full((2, 2, 2), 7431.0), "Expected 2D array, got 3D"),
        (7431.0, "Expected 2D array, got 0D"),
        (csr_array(np.eye(2)), "[Ss]parse"),
    ],
)
def test_shapes_and_types_that_are_refused(X: Any, message: str, declared: bool) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        read_table(Model(), X, reset=True, declared=declared)
    assert "7431" not in messages(caught.value)
    assert "74.31" not in messages(caught.value)


@pytest.mark.parametrize(
    "X",
    [
        [[CANARY]],
        np.array([[CANARY], [1.0]], object),
        np.array([[10**400]], object),
        np.array([[7431.0], [np.nan]]),
        np.array([[7431.0], [np.inf]]),
        [[7431.0], [CANARY, 1]],
    ],
    ids=range(6),
)
def test_without_domains_bad_values_are_refused_without_being_quoted(X: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        read_table(Model(), X, reset=True, declared=False)
    assert CANARY not in messages(caught.value)
    assert "7431" not in messages(caught.value)


def test_features_must_be_those_of_fit() -> None:
    model = Model()
    read_table(model, pd.DataFrame({"a": [1], "b": [2]}), reset=True, declared=True)
    assert list(model.feature_names_in_) == ["a", "b"]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="feature names"):
        read_table(model, pd.DataFrame({"a": [1], "c": [2]}), reset=False, declared=True)
    with (
        pytest.raises(ValueError, match="expecting 2 features"),
        pytest.warns(UserWarning, match="feature names"),
    ):
        read_table(model, np.zeros((1, 3)), reset=False, declared=True)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([7431.0], "inconsistent numbers of samples"),
        (np.full((3, 2), 7431.0), "1d array"),
        (np.full(3, 7431j), "Complex data"),
    ],
)
def test_targets_that_are_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_target(Model(), y, 3)
    assert "7431" not in messages(caught.value)


def test_targets() -> None:
    for y in ([0, 1, 1], np.array([0, 1, 1]), pd.Series([0, 1, 1]), pl.Series([0, 1, 1])):
        assert read_target(Model(), y, 3).tolist() == [0, 1, 1]


@pytest.mark.parametrize("column", [-1, 2, 3, 731])
def test_sparse_cells_beyond_the_shape_are_refused(column: int) -> None:
    """They would be counted for another class: more than one record may move."""
    model = BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1])
    X = csr_array((np.ones(3), [0, column, 1], [0, 2, 3, 3]), shape=(3, 2))
    with pytest.raises(ValueError, match="columns beyond its shape") as raised:
        model.fit(X, [0, 1, 1])
    assert "731" not in str(raised.value)
