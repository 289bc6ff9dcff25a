from __future__ import annotations

import logging
import math

import numpy as np
import pytest

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    BudgetError,
    Categories,
    Interval,
    PrivacyUnit,
    Schema,
)


def told(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "dpbayes_sklearn"]


def fit(epsilon: float, **options) -> None:
    BetaBinomial(epsilon=epsilon, **options).fit([0, 1] * 10)


def test_a_large_epsilon_is_told_of_by_every_fit(caplog):
    fit(10.5)
    fit(20)
    message, other = told(caplog)
    assert "epsilon = 20 is" in other
    assert "epsilon = 10.5 is a weak guarantee" in message
    assert "36,316 times as likely" in message
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("epsilon", [0.1, 10, math.inf])
def test_others_are_not(caplog, epsilon):
    fit(epsilon)
    assert told(caplog) == []


def test_what_is_refused_is_not_told_of(caplog):
    with pytest.raises(BudgetError):
        fit(11, accountant=BudgetAccountant(1))
    assert told(caplog) == []


def test_the_whole_epsilon_is_told_where_the_number_of_records_is_secret(caplog):
    BayesianNaiveBayes(
        epsilon=10.1,
        schema=Schema({"x": Interval(0, 1)}, target=Categories([0, 1])),
        n_bins=2,
        privacy_unit=PrivacyUnit("record", neighbours="add_remove"),
    ).fit(np.full((50, 1), 0.5), np.arange(50) % 2)
    assert "epsilon = 10.1 is a weak guarantee" in told(caplog)[0]
