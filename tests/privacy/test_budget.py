from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    Schema,
)
from dpbayes_sklearn.model_selection import PrivateSearchCV
from dpbayes_sklearn.privacy import Budget, exact

TENTH = Fraction(1, 10)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, TENTH),
        (np.float16(0.1), TENTH),
        (np.float32(0.1), TENTH),
        (np.float64(0.1), TENTH),
        (np.longdouble("0.1"), TENTH),
        (Decimal("0.1"), TENTH),
        (TENTH, TENTH),
        (np.int8(2), Fraction(2)),
        (2, Fraction(2)),
        (-0.0, Fraction(0)),
        (5e-324, Fraction(5, 10**324)),
        (Decimal("1e-400"), Fraction(1, 10**400)),
        (Decimal("1e400"), Fraction(10**400)),
        (math.inf, math.inf),
        (np.float32("inf"), math.inf),
        (Decimal("Infinity"), math.inf),
    ],
)
def test_number_is_read_exactly(value, number):
    assert exact(value) == number


@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, [1], np.array(1.0), b"1"])
def test_what_is_not_a_real_number_is_refused(value):
    with pytest.raises(TypeError, match=r"delta must be a real number\. Got \w+ instead"):
        exact(value, "delta")


@pytest.mark.parametrize(
    "value", [math.nan, np.float16("nan"), Decimal("NaN"), -1, -0.1, -math.inf, Decimal("-1")]
)
def test_nan_and_negative_numbers_are_refused(value):
    with pytest.raises(ValueError, match=r"epsilon must not be (NaN|negative)"):
        exact(value)


def test_signalling_nan_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        exact(Decimal("sNaN"))


def test_decimals_add_up_as_they_are_written():
    assert exact(0.1) + exact(0.2) == exact(0.3)
    assert sum(exact(0.1) for _ in range(10)) == 1


def test_only_infinite_epsilon_asks_for_no_privacy():
    assert Budget(exact(math.inf)).infinite
    assert not Budget(exact(10**300)).infinite


@pytest.mark.parametrize("delta", [1e-301, 5e-324, Decimal("1e-330"), Fraction(1, 10**400)])
def test_a_delta_that_floats_lose_is_refused_wherever_one_can_be_given(delta):
    X, y = pd.DataFrame({"a": ["x", "y"] * 50}), [0, 1] * 50
    ledger = BudgetAccountant(1, 1e-6)
    exactly = Fraction(delta)
    declared = {"delta": exactly, "accountant": ledger}
    asks = [
        lambda: BudgetAccountant(1, delta),
        lambda: ledger.spend(0.1, delta),
        lambda: ledger.check(0.1, delta),
        lambda: BayesianNaiveBayes(mechanism="gaussian", classes=[0, 1], **declared).fit(X, y),
        lambda: BayesianNaiveBayes(classes=[0, 1], **declared).fit(X, y),
        lambda: BayesianLinearRegression(mechanism="sampler", **declared).fit(X, y),
        lambda: BetaBinomial(mechanism="hellinger", **declared).fit(y),
        lambda: PrivateSearchCV(BayesianNaiveBayes(), {}, **declared).fit(X, y),
        lambda: Schema.learn(X, **declared),
    ]
    for ask in asks:
        with pytest.raises(ValueError, match="0 or at least 1e-300"):
            ask()
    assert len(ledger) == 0
    assert exact(1e-300, "delta") == Fraction(1, 10**300)
