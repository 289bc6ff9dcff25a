"""Bugs in spending: too late, too little, to the wrong ledger, or not at all."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from benchmarks.audit._planted._fault import fault, with_cost
from dpbayes_sklearn.base import estimator
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyGuarantee
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.ledger import Ledger

Replacements = Iterator[tuple[Any, str, Any]]


@fault("spending", "accounting", "The ledger is charged after the release")
def charged_afterwards() -> Replacements:
    spend, release = BudgetAccountant.spend, PrivateEstimator._carried_out
    owed: list[Any] = []

    def later(self: Any, *args: Any, **options: Any) -> None:
        owed.append((self, args, options))

    def then_pay(self: Any, *args: Any, **options: Any) -> Any:
        released = release(self, *args, **options)
        while owed:
            ledger, arguments, named = owed.pop()
            spend(ledger, *arguments, **named)
        return released

    yield BudgetAccountant, "spend", later
    yield PrivateEstimator, "_carried_out", then_pay


@fault("spending", "replay of estimators", "Two releases are averaged and one is paid for")
def released_twice() -> Replacements:
    real = PrivateEstimator._carried_out

    def twice(self: Any, plan: Any, given: Any, *rest: Any) -> Any:
        estimator.carry_out(plan, given.statistics, Noise(lambda size: b"\0" * size))
        return real(self, plan, given, *rest)

    yield PrivateEstimator, "_carried_out", twice


@fault("spending", "accounting", "Epsilons of different units are added up")
def units_added_up() -> Replacements:
    charge, check = Ledger.charge, Ledger.check
    yield (
        Ledger,
        "charge",
        lambda self, spend, label, scope, unit, branch: charge(self, spend, label, scope),
    )
    yield Ledger, "check", lambda self, spend, scope, unit, branch: check(self, spend, scope)


@fault("spending", "accounting", "Half of what is released is charged")
def half_is_charged() -> Replacements:
    real = Ledger.charge

    def cheap(self: Any, spend: Spend, *rest: Any) -> Any:
        half = Cost(spend.cost.epsilon / 2, spend.cost.delta)
        return real(self, Spend(half, spend.rho), *rest)

    yield Ledger, "charge", cheap


@fault("spending", "accounting", "Balances are added up as floats")
def float_sums_of_epsilon() -> Replacements:
    def added(self: Cost, other: Cost) -> Cost:
        return Cost(Fraction(float(self.epsilon) + float(other.epsilon)), self.delta + other.delta)

    yield Cost, "plus", added


@fault(
    "spending",
    "accounting",
    "The ceiling is looked at before a fit but not when the ledger is charged",
)
def no_ceiling() -> Replacements:
    yield Cost, "__le__", lambda self, ceiling: True


@fault("spending", "accounting", "A clone has a ledger of its own")
def copied_ledger() -> Replacements:
    def own(self: Any) -> Any:
        return BudgetAccountant(self.epsilon, self.delta)

    yield BudgetAccountant, "__sklearn_clone__", own
    yield BudgetAccountant, "__deepcopy__", lambda self, memo: own(self)


@fault("spending", "accounting", "A fit inside an accountant's block charges nobody")
def block_ignored() -> Replacements:
    yield PrivateEstimator, "_ledger", lambda self: self.accountant


@fault("spending", "accounting", "Only the first batch is charged")
def batches_are_free() -> Replacements:
    real = PrivateEstimator._carried_out

    def first_only(self: Any, *args: Any, **options: Any) -> Any:
        stream = args[2] if len(args) > 2 else options.get("stream", 0)
        if not stream:
            return real(self, *args, **options)
        unpaid = copy.copy(self)
        unpaid.accountant = None
        return real(unpaid, *args, **options)

    yield PrivateEstimator, "_carried_out", first_only


@fault("spending", "accounting", "A release that fails after its noise was drawn is not paid for")
def refund() -> Replacements:
    spend, real = BudgetAccountant.spend, PrivateEstimator._carried_out

    def refunded(self: Any, *args: Any, **options: Any) -> Any:
        held: list[Any] = []

        def hold(ledger: Any, *costs: Any, **label: Any) -> None:
            held.append((ledger, costs, label))

        BudgetAccountant.spend = hold  # type: ignore[method-assign]
        try:
            released = real(self, *args, **options)
        finally:
            BudgetAccountant.spend = spend  # type: ignore[method-assign]
        for ledger, costs, label in held:
            ledger.spend(*costs, **label)
        return released

    yield PrivateEstimator, "_carried_out", refunded


@fault(
    "spending", "replay of estimators", "The guarantee states half of the epsilon that was spent"
)
def promises_less() -> Replacements:
    real = PrivacyGuarantee.of.__func__

    def modest(cls: Any, budget: Any, *rest: Any) -> Any:
        return real(cls, budget._replace(epsilon=budget.epsilon / 2), *rest)

    yield PrivacyGuarantee, "of", classmethod(modest)


@fault(
    "spending", "replay of estimators", "The mechanism is handed twice the epsilon that was charged"
)
def released_for_more() -> Replacements:
    real = vars(estimator)["carry_out"]

    def generous(plan: Any, statistics: Any, noise: Any) -> Any:
        twice = plan.cost._replace(epsilon=plan.cost.epsilon * 2)
        return real(with_cost(plan, twice), statistics, noise)

    yield estimator, "carry_out", generous
