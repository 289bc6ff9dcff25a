"""Bugs of private evaluations: too little noise, too little charged, too much told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.metrics import plan, scoring
from dpbayes_sklearn.metrics.statistics import HALF, BoundedSums, CellCounts, Range

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "evaluating",
    "evaluations",
    "A replaced record is thought to change one cell of a confusion matrix",
    "confusion matrix, a record",
)
def one_cell() -> Replacements:
    yield CellCounts, "sensitivity", staticmethod(lambda unit: unit.max_records)


@fault(
    "evaluating",
    "evaluations",
    "A person's records are thought to change a sum as much as one record",
    "accuracy, a person",
)
def one_record_of_a_person() -> Replacements:
    real = BoundedSums.law

    def law(number: int, unit: Any, *shares: Any) -> Any:
        return real(number, replace(unit, name="record", max_records=1), *shares)

    yield BoundedSums, "law", law


@fault(
    "evaluating",
    "evaluations",
    "Losses are not clipped before they are added up",
    "all of a regression, a record",
)
def no_clipping() -> Replacements:
    def steps(self: Range, values: Any) -> Any:
        return np.rint((values - self.middle) / self.half * HALF).astype(np.int64)

    yield Range, "steps", steps


@fault(
    "evaluating",
    "evaluations",
    "Every part of an evaluation has all of its epsilon",
    "all of a classifier, a record",
)
def parts_for_free() -> Replacements:
    real = plan._with_noise
    yield plan, "_with_noise", lambda part, unit, share, *rest: real(part, unit, Fraction(1), *rest)


@fault(
    "evaluating",
    "evaluations",
    "The spread of the losses, which only intervals need, has no noise",
    "log loss, a record",
)
def exact_spread() -> Replacements:
    real = plan._with_noise

    def without(part: Any, *rest: Any) -> Any:
        return part if part.name == "spreads" else real(part, *rest)

    yield plan, "_with_noise", without


@fault(
    "evaluating",
    "evaluations",
    "Metrics are divided by the exact number of records, though it is secret",
    "accuracy, a record added",
)
def exact_number() -> Replacements:
    real = plan.EvaluationPlan.release

    def release(self: Any, records: Any, noise: Any) -> Any:
        return replace(real(self, records, noise), n=len(records.truth))

    yield plan.EvaluationPlan, "release", release


@fault(
    "evaluating",
    "evaluations",
    "The Gaussian noise of sums is calibrated to one of them",
    "all of a regression, a record, Gaussian",
)
def one_sum() -> Replacements:
    real = BoundedSums.law

    def law(number: int, unit: Any, epsilon: Any, rho: Any) -> Any:
        return real(number, unit, epsilon, None if rho is None else number * rho)

    yield BoundedSums, "law", law


@fault("evaluating", "evaluations", "An evaluation is not charged", "prices")
def uncharged() -> Replacements:
    yield scoring, "_charge", lambda *_: None


@fault("evaluating", "evaluations", "A cross-validation is charged for one fit", "prices")
def one_fit() -> Replacements:
    real = scoring._charge

    def charge(ledger: Any, cost: Any, what: str) -> None:
        folds = what.startswith("private_cross_validate")
        real(ledger, cost._replace(epsilon=cost.epsilon / 2) if folds else cost, what)

    yield scoring, "_charge", charge


@fault(
    "evaluating", "evaluations", "All records of a person are evaluated, however many", "persons"
)
def all_records() -> Replacements:
    yield scoring, "records_that_count", lambda records, *_: (records, ())


@fault(
    "evaluating",
    "evaluations",
    "The sums of an evaluation have half of their noise",
    "attack, a record",
)
def half_the_noise() -> Replacements:
    real = BoundedSums.law

    def law(number: int, unit: Any, epsilon: Any, rho: Any) -> Any:
        return real(number, unit, 2 * epsilon, rho)

    yield BoundedSums, "law", law
