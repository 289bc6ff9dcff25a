"""What is charged: all of it, before it is released, to one ledger, in exact fractions."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from threading import Thread
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    BudgetError,
    DirichletMultinomial,
)
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.release import boundary

__all__ = ["accounting"]

X = np.tile([[0, 1], [1, 0], [1, 1]], (4, 1))
Y = np.array([0, 1, 1] * 4)


def naive_bayes(epsilon: float = 0.1, **params: Any) -> BayesianNaiveBayes:
    return BayesianNaiveBayes(epsilon, bounds=(0, 1), classes=[0, 1], n_bins=2, **params)


def accounting() -> Iterator[str]:
    """Spend in every way there is."""
    yield from _exact_sums()
    yield from _order_and_amount()
    yield from _who_is_charged()
    yield from _no_refund()
    yield from _one_unit()
    yield from _race()


def _refused(model: Any, X: Any = X, y: Any = Y) -> bool:
    try:
        model.fit(X, y)
    except BudgetError:
        return True
    return False


def _exact_sums() -> Iterator[str]:
    ledger = BudgetAccountant(epsilon=0.3)
    model = naive_bayes(accountant=ledger)
    if any(_refused(model) for _ in range(3)):
        yield "three times 0.1 does not fit into 0.3"
    if not _refused(naive_bayes(1e-9, accountant=ledger)):
        yield "a ledger that is used up lets something through"
    if len(ledger) != 3 or ledger._ledger.spent().epsilon != Fraction(3, 10):
        yield "the balance is not what was charged"


def _order_and_amount() -> Iterator[str]:
    """See at the choke point that everything is paid for by then, and no more than once."""
    for model, data in (
        (naive_bayes(), (X, Y)),
        (naive_bayes(mechanism="sampler"), (X, Y)),
        (BayesianLinearRegression(0.1, bounds_X=(0, 1), bounds_y=(0, 1)), (X, Y)),
        (DirichletMultinomial(0.1, categories=2), (Y,)),
    ):
        ledger, released = BudgetAccountant(), []

        def watched(release: Any, plan: Any, *rest: Any, _log: Any = released) -> Any:
            _log.append((plan.cost.epsilon, ledger._ledger.spent().epsilon))  # noqa: B023
            return release(plan, *rest)

        with boundary(watched):
            fitted = model.set_params(accountant=ledger).fit(*data)
        asked = sum(epsilon for epsilon, _ in released)
        name = type(model).__name__
        if any(paid < epsilon for epsilon, paid in released):
            yield f"{name}: released before it was charged"
        if not asked == ledger._ledger.spent().epsilon == Fraction(1, 10):
            yield f"{name}: 1/10 asked, {asked} released, {ledger.total().epsilon} charged"
        if fitted.guarantee_.epsilon != 0.1:
            yield f"{name}: promises {fitted.guarantee_.epsilon}"


def _who_is_charged() -> Iterator[str]:
    ledger = BudgetAccountant()
    model = naive_bayes(accountant=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cross_val_predict(model, X, Y, cv=3)
    clone(model).fit(X, Y)
    pickle.loads(pickle.dumps(model)).fit(X, Y)
    model.partial_fit(X, Y).partial_fit(X, Y)
    if len(ledger) != 7:
        yield f"{len(ledger)} charges for 7 releases of folds, clones, pickles and batches"
    with BudgetAccountant() as around:
        naive_bayes().fit(X, Y)
    if len(around) != 1:
        yield "a fit inside a block is not charged"


def _no_refund() -> Iterator[str]:
    def broken(*args: Any) -> Any:
        raise MemoryError

    ledger = BudgetAccountant()
    with boundary(broken), suppress(MemoryError):
        naive_bayes(accountant=ledger).fit(X, Y)
    if len(ledger) != 1:
        yield "a release that failed half-way was not charged"


def _one_unit() -> Iterator[str]:
    """Release for two units, whose epsilons have no sum, to one ledger."""
    for other in (
        {"privacy_unit": "feature"},
        {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")},
    ):
        ledger = BudgetAccountant()
        naive_bayes(accountant=ledger).fit(X, Y)
        with suppress(ValueError):
            naive_bayes(accountant=ledger, **other).fit(X, Y)
        if len(ledger) != 1 or {entry.unit for entry in ledger} != {"record"}:
            yield f"one ledger adds up releases for records and for {other}"


def _race() -> Iterator[str]:
    """Spend 12 times 0.1 of 0.5 in threads that all have looked before any of them spends."""
    ledger = BudgetAccountant(epsilon=0.5)

    def spend() -> None:
        with suppress(BudgetError):
            ledger.spend(0.1)

    threads = [Thread(target=spend) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if ledger._ledger.spent().epsilon != Fraction(1, 2):
        yield f"{ledger.total().epsilon} spent of 0.5"
