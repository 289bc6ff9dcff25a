"""A parallel scope costs its most expensive branch; the releases of one fit are one branch."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    BudgetError,
)
from dpbayes_sklearn.preprocessing import PrivateMinMaxScaler
from dpbayes_sklearn.privacy import exact
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.privacy.composition import Spend, best_order
from dpbayes_sklearn.privacy.ledger import Ledger
from tests.privacy.ledgers import ADDED

X = np.tile([[0, 1], [1, 0], [1, 1]], (20, 1))
Y = np.array([0, 1, 1] * 20)

SPENDS = [
    Spend.of(0.1), Spend.of(1), Spend.of(0.2, 1e-7), Spend.of(0.5, 1e-6, rho=0.01),
    Spend.of(rho=0.3),
]  # fmt: skip
scopes = st.sampled_from([None, "one", "two"])
branches = st.sampled_from([None, "north", "south"])


def model(epsilon: float = 1.0, **params) -> BayesianNaiveBayes:
    whom = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove"), **params}
    return BayesianNaiveBayes(epsilon, bounds=(0, 1), n_bins=2, classes=[0, 1], **whom)


def persons(charges):
    """Return what concerns each kind of person: one branch of every scope, and all without one."""
    places = [
        (scope, number if branch is None else branch, spend)
        for number, (scope, branch, spend) in enumerate(charges)
    ]
    groups = [{b for s, b, _ in places if s == scope} or {None} for scope in ("one", "two")]
    for chosen in itertools.product(*groups):
        there = {("one", chosen[0]), ("two", chosen[1])}
        yield [x for s, b, x in places if s is None or (s, b) in there]


def zcdp(spend: Spend) -> Fraction | float:
    if spend.rho < math.inf:
        return spend.rho
    return math.inf if spend.cost.delta else spend.cost.epsilon**2 / 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(scopes, branches, st.sampled_from(SPENDS)), min_size=1, max_size=8))
def test_nobody_is_concerned_by_more_than_the_ledger_adds_up(charges):
    accountant = BudgetAccountant(delta=1)
    ledger = accountant._ledger
    for scope, branch, spend in charges:
        ledger.charge(spend, "", scope, ADDED.label, branch)
    spent, together = ledger.spent(), ledger.spends()
    rho = sum((times * zcdp(spend) for spend, times in together.items()), Fraction(0))
    for concerned in persons(charges):
        assert sum(spend.cost.epsilon for spend in concerned) <= spent.epsilon
        assert sum(spend.cost.delta for spend in concerned) <= spent.delta
        assert sum(map(zcdp, concerned)) <= rho or math.isinf(rho)
    assert Ledger.open(ledger.path).entries() == ledger.entries()


def test_the_number_of_records_and_the_model_of_one_fit_add_up():
    accountant = BudgetAccountant(1)
    with accountant.parallel():
        for half in (slice(30), slice(30, None)):
            model(accountant=accountant).fit(X[half], Y[half])
    assert len(accountant) == 4
    assert accountant.total() == (1, 0)
    with pytest.raises(BudgetError):
        accountant.spend(1e-9)


def test_steps_of_a_pipeline_are_one_branch_in_a_block_of_their_own():
    accountant = BudgetAccountant()
    scaler = PrivateMinMaxScaler(
        0.5, privacy_unit=PrivacyUnit("record", neighbours="add_remove"), accountant=accountant
    )
    pipeline = make_pipeline(scaler, model(0.5, accountant=accountant))
    with accountant.parallel() as branch:
        for half in (slice(30), slice(30, None)):
            with branch():
                pipeline.fit(X[half], Y[half])
    assert accountant.total() == (1, 0)


def test_a_scope_inside_a_branch_is_about_its_people():
    accountant, other = BudgetAccountant(), BudgetAccountant()
    with accountant.parallel() as branch, branch():
        accountant.spend(0.5, unit=ADDED)
        with accountant.parallel(), other.parallel():
            accountant.spend(0.25)
            accountant.spend(0.25)
    assert accountant.total() == (1, 0)


@pytest.mark.parametrize("unit", [RECORD, "feature", None])
def test_a_replaced_person_may_change_branch_so_it_is_refused(unit):
    accountant = BudgetAccountant()
    with accountant.parallel():
        for attempt in (accountant.check, accountant.spend):
            with pytest.raises(ValueError, match="added or removed"):
                attempt(0.5, unit=unit)
    assert len(accountant) == 0
    accountant.spend(0.5, unit=unit)


def test_a_fit_that_protects_replaced_records_is_refused_before_anything_is_spent():
    accountant = BudgetAccountant()
    with accountant.parallel(), pytest.raises(ValueError, match="neighbours='add_remove'"):
        model(privacy_unit=PrivacyUnit("record", neighbours="replace"), accountant=accountant).fit(
            X, Y
        )
    assert len(accountant) == 0


def test_a_ledger_about_replaced_records_has_no_scope():
    accountant = BudgetAccountant()
    accountant.spend(0.5, unit=RECORD)
    with accountant.parallel(), pytest.raises(ValueError, match="added or removed"):
        accountant.spend(0.5)


# a secret number of records, and a ceiling that has no room ---------------------------------------


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "sampler"])
def test_a_fit_that_there_is_no_room_for_does_not_spend_the_share_of_the_number(mechanism):
    accountant = BudgetAccountant(1, 1e-6)
    accountant.spend(0.7, unit=ADDED)
    refused = model(0.9, delta=1e-6, mechanism=mechanism, accountant=accountant)
    refused.set_params(delta=0.0 if mechanism == "laplace" else 1e-6)
    for _ in range(2):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            refused.fit(X, Y)
    assert len(accountant) == 1


def test_a_refusal_after_the_number_of_records_says_what_was_spent(monkeypatch):
    accountant = BudgetAccountant(1)
    real = BudgetAccountant.spend

    def spend(self, *args, **options):
        entry = real(self, *args, **options)
        if len(self) == 1:
            real(self, 0.9)  # another process, between the two charges
        return entry

    monkeypatch.setattr(BudgetAccountant, "spend", spend)
    with pytest.raises(BudgetError, match=r"epsilon=0\.04 was spent on the number") as why:
        model(accountant=accountant).fit(X, Y)
    assert "Nothing was spent" not in str(why.value)
    assert why.value.requested.epsilon == 0.96


def test_a_mode_that_needs_a_delta_for_few_records_only_is_refused_unpaid():
    ledger = BudgetAccountant(100)  # without a delta
    bounds = {"bounds_X": (0, 1), "bounds_y": (0, 1), "mechanism": "map"}
    few = BayesianLinearRegression(10.0, delta=1e-3, privacy_unit=ADDED, **bounds)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        few.set_params(accountant=ledger).fit(np.zeros((10, 40)), np.zeros(10))
    assert not len(ledger)


@pytest.mark.parametrize("between", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [200, 1_000])
def test_a_fit_pays_for_the_number_of_records_only_if_any_model_has_room(between, n):
    """rho is 0.0154 at the number that is guessed, 10,000, and 0.0220 at 1,000."""
    X, y = np.tile([[0, 1, 0], [1, 0, 0]], (n // 2, 1)), np.tile([0, 1], n // 2)
    accountant = BudgetAccountant(3, 1e-6, composition="zcdp")
    rule = accountant._ledger.rule()
    room = Fraction(8, 10_000) + Fraction(154, 10_000) + exact(between) * Fraction(66, 10_000)
    accountant.spend(rho=Fraction(rule.slack({})) / best_order(*rule.ceiling) - room)
    gaussian = {"delta": 1e-9, "mechanism": "gaussian", "bounds": (0, 1), "n_bins": 2}
    model = BayesianNaiveBayes(
        classes=[0, 1], privacy_unit=ADDED, accountant=accountant, **gaussian
    )
    with pytest.raises(BudgetError, match="Nothing was spent"):
        model.fit(X, y)
    assert len(accountant) == 1
