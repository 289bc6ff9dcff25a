"""What draws from a posterior cost, added up from the laws that were drawn from.

The sampler's draws are charged with a zCDP, and with a delta only if they need it. Here both are
compared with the laws that a fit drew from: exact Rényi divergences of draws from tables, and for
coefficients the range of the log ratio together with all other steps of the release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from benchmarks.audit._cases import Case, cases_of
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, BudgetAccountant
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.composition import zcdp_epsilon
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.regression import ball_draws, step_noise
from dpbayes_sklearn.release import Facts

__all__ = ["concentration"]

DELTA = Fraction(1, 10**6)
RECORDS = 240
RNG = np.random.default_rng(0)
BITS = np.tile([[0, 0, 0, 0], [1, 1, 1, 1]], (RECORDS // 2, 1))
CLASSES = np.repeat([0, 1], RECORDS // 2)
NUMBERS = RNG.uniform(0, 1, (RECORDS, 2))
PEOPLE = {
    "record": {},
    "two records": {"privacy_unit": PrivacyUnit("person", max_records=2, by_construction=True)},
    "four records": {"privacy_unit": PrivacyUnit("person", max_records=4, by_construction=True)},
}
TINY = 1 + 1e-9  # floats


def concentration() -> list[Case]:
    """Compare charges with draws from tables and of coefficients."""
    return cases_of(_draws_of_tables, _a_delta_of_tables, _draws_of_coefficients, _planned_once)


def _draws_of_tables() -> Iterator[str]:
    """Flip all features of the records of one person, in balanced tables, at two points a split."""
    for (people, unit), delta in product(PEOPLE.items(), (0, DELTA)):
        ledger, drawn = BudgetAccountant(delta=1), []
        model = BayesianNaiveBayes(
            0.5, delta=delta, mechanism=Sampler(30, n_points=2), temperature=1, accountant=ledger,
            bounds=(0, 1), classes=[0, 1], n_bins=2, **unit,
        )  # fmt: skip
        with _watched(plans, "draw_tables", drawn):
            model.fit(BITS, CLASSES, groups=np.arange(RECORDS) if unit else None)
        ((_, log_law, _, n_draws, *_),) = drawn
        turned, half = PrivacyUnit.of(unit.get("privacy_unit", "record")).max_records, RECORDS // 4
        exact = n_draws * sum(_turned_rho(log_law, node, half, turned) for node in range(4))
        (entry,) = ledger
        if exact > entry.rho:
            yield f"draws from tables, {people}: zCDP {exact:.4g}, charged {entry.rho:.4g}"
        if exact < 0.6 * entry.rho:
            yield f"draws from tables, {people}: only {exact:.4g} of {entry.rho:.4g} is seen"


def _turned_rho(log_law: Any, node: int, half: int, turned: int) -> float:
    """Return the largest divergence over its order of a split before and after turns."""
    counts = np.array([half]), np.array([half - turned]), np.array([half + turned])
    laws = [log_law(node, counts[0], counts[0]), log_law(node, counts[2], counts[1])]
    before, after = (law.ravel() - np.logaddexp.reduce(law.ravel()) for law in laws)
    return max(
        float(np.logaddexp.reduce(order * p + (1 - order) * q)) / (order - 1) / order
        for order in np.geomspace(1.01, 50, 30)
        for p, q in ((before, after), (after, before))
    )


def _a_delta_of_tables() -> Iterator[str]:
    """See that draws without a delta lose no more than epsilon, the temperature included."""
    network = Network.star([2] * 3, 2)
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes), temperature="auto")
    for draws, epsilon in product((2, 1, 3, 8), (Fraction(3), Fraction(4), Fraction(1))):
        mechanism, budget = Sampler(draws), Budget(epsilon, DELTA)
        plan: Any = plans.plan(mechanism, prior, Facts(500), budget)
        loss = plan.tables.law.loss + float(plan.share)
        if not plan.cost.delta and loss > epsilon * TINY:
            yield f"{draws} draws at epsilon {float(epsilon):g} lose {loss:.4g} without a delta"


def _draws_of_coefficients() -> Iterator[str]:
    """Add up the steps of a regression: where columns lie, a mode, draws, residuals.

    Without an intercept no share of the budget is split further, and the charge has no slack.
    """
    cases = product(PEOPLE.items(), (0, DELTA), ((0.5, False), (None, False), (0.5, True)))
    for (people, unit), delta, (bound, intercept) in cases:
        ledger, noises, modes, draws = BudgetAccountant(delta=1), [], [], []
        model = BayesianLinearRegression(
            0.5, delta=delta, mechanism=Sampler(30), coef_bound=bound, fit_intercept=intercept,
            bounds_X=(0, 1), bounds_y=(0, 1), accountant=ledger, **unit,
        )  # fmt: skip
        with (
            _watched(step_noise, "add_noise", noises),
            _watched(ball_draws, "released_mode", modes),
            _watched(ball_draws, "draw_coefficients", draws),
        ):
            groups = np.arange(RECORDS) if unit else None
            model.fit(NUMBERS, NUMBERS.mean(axis=1), groups=groups)
        others = [Fraction(call[3]) for call in (*noises, *modes)]
        ((statistics, prior, _, place, plan, _),) = draws
        norm = math.sqrt(len(prior.design.features) + prior.design.intercept)
        reach, limit = place.radius * norm, float(place.limit)
        range_ = 2 * limit * reach if reach <= limit else (limit + reach) ** 2 / 2
        width = statistics.unit.n_changed * plan.weight * range_
        (entry,) = ledger
        where = f"{plan.n_draws} draws of coefficients, {people}, delta {float(delta):g}"
        yield from _overspent(where, entry, others, width, plan.n_draws)


def _overspent(
    where: str, entry: Any, others: list[Fraction], width: float, draws: int
) -> Iterator[str]:
    """Compare one charge with pure steps and draws whose log ratio has a range."""
    concentrated = draws * width**2 / 8  # that of a fair coin whose log ratio has this range
    rho = concentrated + float(sum(share**2 / 2 for share in others))
    if rho > entry.rho * TINY:
        yield f"{where}: zCDP {rho:.4g}, charged {entry.rho:.4g}"
    loss = draws * width
    if entry.delta:
        loss = min(loss, float(zcdp_epsilon(Fraction(concentrated), Fraction(entry.cost.delta))))
    if loss + float(sum(others)) > entry.epsilon * TINY:
        yield f"{where}: epsilon {loss + float(sum(others)):.4g}, charged {entry.epsilon:.4g}"


def _planned_once() -> Iterator[str]:
    """Compare the zCDP of a charge with that of its release, to the last digit."""
    for draws, epsilon in product((1, 30), (0.1, 1.0, 3.0)):
        ledger = BudgetAccountant(delta=1)
        model = BayesianNaiveBayes(
            epsilon, delta=DELTA, mechanism=Sampler(draws), accountant=ledger,
            bounds=(0, 1), classes=[0, 1], n_bins=2,
        ).fit(BITS[:, :2], CLASSES)  # fmt: skip
        (entry,) = ledger
        if entry.rho != model.guarantee_.rho:
            yield f"charged zCDP {entry.rho!r}, released {model.guarantee_.rho!r}"


@contextmanager
def _watched(module: Any, name: str, calls: list[tuple[Any, ...]]) -> Iterator[None]:
    """Remember the arguments that a function of a module is called with."""
    real = getattr(module, name)

    def watched(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    with planted((module, name, watched)):
        yield
