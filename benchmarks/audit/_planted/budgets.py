"""Bugs of filters, of what draws are charged, of tiny deltas and of printed figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.counts import draws, plans, splits
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.privacy import accountant, gaussian, guarantee
from dpbayes_sklearn.privacy.composition import Filter, zcdp_rho
from dpbayes_sklearn.regression import ball_draws
from dpbayes_sklearn.regression import plans as regressions

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "budgets",
    "adaptive adversaries",
    "A ledger accepts what either of two filters accepts, each with all of delta",
    "zcdp 1 1e-06",
)
def either_of_two_filters() -> Replacements:
    yield Filter, "for_sums", property(lambda rule: rule.ceiling)


@fault(
    "budgets", "draws added up", "The zCDP of a draw from tables is w²/16 instead of w²/8", "tables"
)
def draws_of_tables_count_half() -> Replacements:
    real = splits._node_rho
    yield splits, "_node_rho", lambda *public: tuple(rho / 2 for rho in real(*public))


@fault(
    "budgets",
    "draws added up",
    "The zCDP of k records of a person is k times that of one",
    "tables",
)
def a_person_counts_once() -> Replacements:
    real = splits.release_rho

    def linear(*public: Any) -> float:
        return real(*public) / public[-1].max_records

    yield draws, "release_rho", linear


@fault(
    "budgets",
    "draws added up",
    "The zCDP of a draw of coefficients is w²/16 instead of w²/8",
    "coefficients",
)
def draws_of_coefficients_count_half() -> Replacements:
    def more(epsilon: Fraction, delta: Any, n_draws: int) -> Fraction:
        squared = 16 * Fraction(zcdp_rho(epsilon, delta)) / n_draws
        return max(epsilon / n_draws, Fraction(isqrt(int(squared * 10**40)), 10**20))

    yield ball_draws, "loss_of_a_draw", more


@fault("budgets", "draws added up", "Residuals are left out of the zCDP of a draw", "coefficients")
def residuals_left_out() -> Replacements:
    real, shares_of = ball_draws.draws_cost, ball_draws.shares_of

    def without(statistics: Any, prior: Any, budget: Any, n_draws: int) -> Any:
        rho, needs_delta = real(statistics, prior, budget, n_draws)
        within = ball_draws.in_a_ball(prior, budget.unit)
        return rho - shares_of(statistics, within, budget).residuals ** 2 / 2, needs_delta

    yield regressions, "draws_cost", without


@fault(
    "budgets",
    "draws added up",
    "The delta of a sampler is charged only if draws alone need more than all of epsilon",
    "a delta of tables",
)
def delta_beyond_the_whole_epsilon() -> Replacements:
    real = plans.plan

    def late(mechanism: Any, prior: Any, facts: Any, budget: Any) -> Any:
        plan: Any = real(mechanism, prior, facts, budget)
        if not isinstance(mechanism, Sampler) or plan.tables.law.loss > budget.epsilon:
            return plan
        return replace(plan, cost=plan.cost._replace(delta=Fraction(0)))

    yield plans, "plan", late


@fault(
    "budgets",
    "draws added up",
    "A sampler plans with a delta for the charge and without one for the release",
    "planned once",
)
def planned_twice() -> Replacements:
    real = plans.DrawnTables.promise

    def again(self: Any, released: Any) -> Any:
        pure = self.cost._replace(delta=Fraction(0))
        return real(
            plans.tables_plan(Sampler(self.n_draws), self.prior, self.facts, pure), released
        )

    yield plans.LearnsTemperature, "promise", lambda self, released: again(self.tables, released)


@fault("budgets", "composition", "The bound of a tiny delta underflows to 0", "smallest deltas")
def tiny_deltas_underflow() -> Replacements:
    yield gaussian, "LEAST_DELTA", Fraction(0)
    yield gaussian, "_least_variance", gaussian._least_variance.__wrapped__  # nothing remembered


@fault("budgets", "composition", "Printed epsilons and deltas are rounded to nearest", "figures")
def printed_to_nearest() -> Replacements:
    for module in (guarantee, accountant):
        yield module, "at_least", lambda number, digits=6: f"{float(number):.{digits}g}"
