"""Short figures are rounded to the private side, wherever a guarantee or a budget is printed."""

from __future__ import annotations

import logging
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.privacy import Budget, BudgetAccountant, PrivacyGuarantee, exact, guarantee
from dpbayes_sklearn.privacy.budget import at_least, at_most

BUDGET = Budget(exact(1.0000004), exact(1.0000004e-6))
PROMISE = PrivacyGuarantee.of(BUDGET, "laplace")


@given(st.fractions(0, 10**9) | st.floats(0, 1e300) | st.decimals(0, 1, allow_nan=False))
def test_few_digits_on_either_side(number: Fraction | float | Decimal) -> None:
    low, high = Fraction(at_most(number)), Fraction(at_least(number))
    assert low <= exact(number) <= high <= low * (1 + Fraction(1, 10**4))


@pytest.mark.parametrize("number", [0, 0.1, 0.3, 1, 1e-6, 0.5, 12, 1e-300, 123456, Fraction(1, 4)])
def test_what_is_short_stays_as_it_is(number: float) -> None:
    assert at_least(number) == at_most(number) == f"{float(number):g}"


def test_what_no_float_holds() -> None:
    assert at_least(Fraction(1, 10**400)) == "1e-400"
    assert at_least(10**400) == "1e+400"
    assert at_least(math.inf) == at_most(math.inf) == "inf"


def test_a_guarantee_is_never_printed_stronger_than_it_is() -> None:
    assert "epsilon = 1.00001, delta = 1.00001e-06 " in str(PROMISE)
    assert "2.72 times as likely (plus 1.00001e-06)" in PROMISE.meaning
    assert "<dd>1.00001</dd>" in PROMISE.card()
    assert "<dd>1.00001e-06</dd>" in PROMISE.card()
    weak = PrivacyGuarantee.of(Budget(exact(20.0000004)), "laplace")
    assert "exp(20.0001) times" in weak.meaning
    both = PrivacyGuarantee.parallel([PROMISE, PROMISE])
    assert "add up to 2.00001, the deltas to 2.00001e-06" in str(both)


def test_a_warning_of_a_weak_guarantee(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "dpbayes_sklearn"):
        guarantee.warn_if_weak(Budget(exact(20.0000004)))
    assert "epsilon = 20.0001 is a weak guarantee" in caplog.text


def test_a_ledger_shows_what_is_spent_up_and_what_is_left_down() -> None:
    accountant = BudgetAccountant(2.0000004, 0.5)
    accountant.spend(*BUDGET[:2], rho=0.01000004)
    page = accountant._repr_html_()
    assert "<dt>spent</dt><dd>ε = 1.00001, δ = 1.00001e-06</dd>" in page
    assert "<dt>left</dt><dd>ε = 1, δ = 0.499998</dd>" in page
    assert "<dt>ceiling</dt><dd>ε = 2.00001, δ = 0.5</dd>" in page
    for head, value in (("epsilon", "1.00001"), ("delta", "1.00001e-06"), ("rho", "0.0100001")):
        assert f'<td data-head="{head}">{value}</td>' in page
    assert "fixed beforehand" not in page


def test_a_ledger_by_zcdp_says_when_its_total_holds() -> None:
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    accountant.spend(rho=0.001)
    assert "budgets were fixed beforehand" in accountant._repr_html_()
