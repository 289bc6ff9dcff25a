from __future__ import annotations

import logging
import math

import pytest

from dpbayes_sklearn import BetaBinomial, BudgetAccountant, BudgetError
from dpbayes_sklearn.privacy import guarantee


@pytest.fixture(autouse=True)
def unheard(monkeypatch):
    monkeypatch.setattr(guarantee, "_warned", False)


def told(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "dpbayes_sklearn"]


def fit(epsilon: float, **options) -> None:
    BetaBinomial(epsilon=epsilon, **options).fit([0, 1] * 10)


def test_a_large_epsilon_is_told_of_once(caplog):
    fit(10.5)
    fit(20)
    (message,) = told(caplog)
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
