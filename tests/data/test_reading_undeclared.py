"""Domains read from the data: what they are, and that no value is in a message."""

from __future__ import annotations

import math
import traceback
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    DirichletMultinomial,
    PrivacyLeakWarning,
)
from dpbayes_sklearn.data.reading import categories_from_data, classes_from_data, domain_from_data
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema import Categories, Interval

CANARY = "CANARY-7431"


def messages(error: BaseException) -> str:
    """All text of an error and of what it shows as its cause."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "\n".join(line for line in lines if not line.startswith(" "))


def test_domains_from_data() -> None:
    frame = pd.DataFrame({"f": [1.5, -2.0], "c": [3, 3], "n": np.array([7, "8"], object)})
    found = [domain_from_data(Table(frame), j) for j in range(3)]
    assert found == [Interval(-2, 1.5), Interval(3, 6), Interval(7, 8)]


PATIENTS = [f"7431-{i}" for i in range(300)]
DAYS = pd.date_range("2020-01-01", periods=300)


@pytest.mark.parametrize(
    "column", [PATIENTS, pd.Categorical(PATIENTS), np.array(PATIENTS, object), DAYS, DAYS - DAYS[0]]
)
@pytest.mark.parametrize("model", [BayesianNaiveBayes(), BayesianLinearRegression()])
def test_a_column_that_would_be_published_has_to_be_declared(model: Any, column: Any) -> None:
    accountant = BudgetAccountant(1.0)
    model = clone(model).set_params(accountant=accountant)
    frame = pd.DataFrame({"age": np.arange(300), "patient_id": column})
    message = r"the column 'patient_id' that are not numbers.*Declare it, as in schema=Schema"
    with pytest.raises(ValueError, match=message) as caught, pytest.warns(PrivacyLeakWarning):
        model.fit(frame, np.arange(300) % 2)
    assert "7431" not in messages(caught.value)
    assert len(accountant) == 0


def test_every_column_that_is_read_is_named() -> None:
    frame = pd.DataFrame({"age": np.arange(30), "pay": np.arange(30), "id": np.arange(30)})
    with pytest.warns(PrivacyLeakWarning, match="bounds of the features 'age', 'pay', 'id' were"):
        model = BayesianNaiveBayes(classes=[0, 1]).fit(frame, np.arange(30) % 2)
    assert "'pay', 'id'" in model.guarantee_.conditions[0]


@pytest.mark.filterwarnings("ignore::dpbayes_sklearn.PrivacyLeakWarning")
def test_labels_of_more_values_than_classes_have_are_not_published() -> None:
    with pytest.raises(ValueError, match="y has more than 256 different values") as caught:
        BayesianNaiveBayes(bounds=(0, 1)).fit(np.zeros((300, 1)), PATIENTS)
    assert "7431" not in messages(caught.value)
    with pytest.raises(ValueError, match=r"X has more than 256 different values.*set categories"):
        DirichletMultinomial().fit(PATIENTS)


CANARIES: list[list[Any]] = [
    [1.2345678e-300, 2.3456789e-300],
    [-1.2345678e308, 1.2345678e308],
    [1.2345678e308, 1.2345678e308],
    [12345678.0, math.nan],
    [12345678.0, math.inf],
    ["12345678", None],
    ["HIV12345678", 2],
    [["12345678"], 2],
]


@pytest.mark.parametrize("values", CANARIES)
def test_no_value_is_in_a_message(values: list[Any]) -> None:
    column = np.empty((2, 1), object)
    column[:, 0] = values
    if all(isinstance(v, float) for v in values):
        column = column.astype(float)
    with pytest.raises((ValueError, TypeError)) as caught:
        domain_from_data(Table(column), 0)
    text = "".join(traceback.format_exception(caught.value, chain=True))
    messages = [line for line in text.splitlines() if not line.startswith(" ")]
    assert not [m for m in messages if "2345678" in m or "3456789" in m]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_classes_are_the_sorted_values_of_the_data() -> None:
    assert classes_from_data(np.array(["b", "a", "b"], object)) == Categories(["a", "b"])
    assert classes_from_data(np.array([2.0, 0.0])) == Categories([0.0, 2.0])


def test_categories_are_the_values_or_codes_of_the_data() -> None:
    for codes in (np.array([0, 2, 2]), np.array([0, 2, 2], object), np.array([0.0, 2.0])):
        assert categories_from_data(codes) == Categories([0, 1, 2])
    assert categories_from_data(np.array(["b", "a"], object)) == Categories(["a", "b"])
    with pytest.raises(ValueError, match="must be codes") as caught:
        categories_from_data(np.array([7431.5, 0.0]))
    assert "7431" not in messages(caught.value)


@pytest.mark.parametrize(
    "y", [[7431.0, np.nan], [7431.5, 2.5], np.array([CANARY, 1], object), [np.inf, 7431.0]]
)
def test_labels_that_are_no_classes(y: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        classes_from_data(np.asarray(y))
    assert CANARY not in messages(caught.value)
    assert "7431" not in messages(caught.value)


class Talkative:
    """An object that tells its secret to whoever asks it anything."""

    def _tell(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(CANARY)

    __array__ = __len__ = __hash__ = __eq__ = __lt__ = __float__ = __str__ = _tell


def test_objects_among_the_labels_are_not_asked_what_they_are() -> None:
    y = np.empty(3, object)
    y[:] = [0, 1, 0]
    y[1] = Talkative()
    with pytest.raises(TypeError, match="must be of one type") as caught:
        classes_from_data(y)
    assert CANARY not in messages(caught.value)
