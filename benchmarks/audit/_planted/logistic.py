"""Slips in a logistic regression: hull, determinant, search, ridge, look, curvature and draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from benchmarks.audit._planted._slip import slip_of_parts
from dpbayes_sklearn.logistic import draws, mode, release
from dpbayes_sklearn.logistic.records import MappedRecords

RECORD, PERSON = "logistic, linear, record", "logistic, linear, person (2 records)"


def of_plan(change: Callable[[Any], Any]) -> tuple[Any, str, Callable[[Any], Any]]:
    """Change what is planned for a mode."""
    return release, "plan_mode", lambda real: lambda *args: change(real(*args))


hull_of_one_sign = slip_of_parts(
    "The noise of a logistic mode hides a record that goes, not the one that comes",
    RECORD,
    of_plan(lambda plan: plan._replace(pull=replace(plan.pull, scale=plan.pull.scale / 2))),
)
determinant_forgotten = slip_of_parts(
    "The determinant of a logistic mode is not paid for, with a quarter of the ridge",
    RECORD,
    (mode, "_ridge", lambda real: lambda *args: (real(*args)[0] / 4, Fraction(0))),
)
determinant_of_a_person = slip_of_parts(
    "The determinant of a logistic mode is paid for as with eight times the ridge",
    PERSON,
    (mode, "_ridge", lambda real: lambda *args: _of_one_record(*real(*args))),
)


def _of_one_record(ridge: Any, volume: Fraction) -> tuple[Any, Fraction]:
    return ridge / 8, volume


search_stopped = slip_of_parts(
    "The search for a logistic mode ends early",
    RECORD,
    (mode._Search, "minimum", lambda real: lambda self, error: real(self, 1e9 * error)),
)
jitter_missing = slip_of_parts(
    "What is released of a logistic mode has hardly any jitter",
    RECORD,
    of_plan(lambda plan: plan._replace(jitter=replace(plan.jitter, scale=plan.jitter.scale / 64))),
)
ridge_by_data = slip_of_parts(
    "The ridge of a logistic mode grows with the gradient of the records",
    RECORD,
    (
        release,
        "perturbed_mode",
        lambda real: lambda records, plan, noise: real(records, _by_data(records, plan), noise),
    ),
)


def _by_data(records: Any, plan: Any) -> Any:
    sums, _ = records.gradient(plan.blocks.basis[:, 0] * 0)
    return plan._replace(ridge=plan.ridge + abs(float(sums[0])))


look_for_half = slip_of_parts(
    "The histograms of a logistic regression have twice their share",
    RECORD,
    (release, "LookPlan", lambda real: _Twice(real)),
)


class _Twice:
    """A plan of histograms that takes twice the epsilon."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def of(self, blocks: Any, epsilon: Any, unit: Any) -> Any:
        """Return the plan of twice the share."""
        return self._real.of(blocks, 2 * epsilon, unit)


norms_unlimited = slip_of_parts(
    "Records are not scaled to the limit of the curvature's noise",
    "logistic, smooth, record",
    (
        MappedRecords,
        "products",
        lambda real: lambda self, c, basis, a, limit, grid: real(self, c, basis, a, 1e9, grid),
    ),
)
score_of_one_class = slip_of_parts(
    "The score of a logistic draw is said to have a quarter of its range",
    "logistic, sampler, linear, record",
    (draws, "score_of_records", lambda real: lambda *args: real(*args) / 4),
)
mode_of_draws_for_nothing = slip_of_parts(
    "The mode that logistic draws are made around has all of the budget",
    "logistic, sampler, linear, record",
    (release, "plan_mode", lambda real: lambda b, n, e, *args: real(b, n, 2 * e, *args)),
)
