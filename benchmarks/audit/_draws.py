"""What is drawn: by the right law, from the given bytes alone, and for the price of its law.

The sampler's draws are charged with a zCDP, and with a delta only if they need it. Here both are
compared with the laws that a fit drew from: exact Rényi divergences of draws from tables, and for
coefficients the range of the log ratio together with all other steps of the release.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import comb, ndtr

from benchmarks.audit._cases import Case, calls_of, cases_of
from benchmarks.audit._models import RECORD, line, naive_bayes, person
from benchmarks.audit.tools.recording import Recording, planted
from benchmarks.audit.tools.releases import audit_release
from benchmarks.audit.tools.universes import released
from dpbayes_sklearn import BudgetAccountant, DirichletMultinomial
from dpbayes_sklearn.audit.leaks import fitted_numbers
from dpbayes_sklearn.convex.draws import DrawsPlan
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import MAP, Fourier, Gaussian, Laplace, Mechanism, Sampler
from dpbayes_sklearn.noise import Noise, ball, discrete_laplace, finite
from dpbayes_sklearn.noise import class_rows as rows
from dpbayes_sklearn.noise import discrete_gaussian as gaussian
from dpbayes_sklearn.noise import joint as box
from dpbayes_sklearn.noise.discrete_laplace import (
    TruncatedLaplace,
    discrete_laplace_pmf,
    discrete_laplace_survival,
)
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy import Budget, exact
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.privacy.composition import zcdp_epsilon
from dpbayes_sklearn.release import Facts

SIGMAS = 6.0  # A right law strays this many standard deviations once in 500 million.
NETWORK = Network.star([2], 2)
PRIOR = DirichletPrior(NETWORK, (np.ones(2), np.ones(2)))
SIDES = tuple(
    CountTables.count(NETWORK, [(np.array([[x]], np.uint8), np.array([x]))]) for x in (1, 0)
)


def _strays(what: str, hits: Any, chance: float) -> Iterator[str]:
    """Compare how often something happens, in an array of truth values, with its probability."""
    spread = np.sqrt(max(len(hits) * chance * (1 - chance), 1e-9))
    if abs(hits.sum() - len(hits) * chance) > SIGMAS * spread + 1:
        yield f"{what}: {hits.mean():.4f} in place of {chance:.4f}"


def laws() -> Iterator[str]:
    """Compare frequencies of every sampler with its law."""
    source, runs = random_source(0), 40_000
    lengths = np.linalg.norm(ball.ball_vectors(Fraction(64), 2, 4_000, source), axis=1) / 64
    for k in (0.5, 1.0, 2.0, 4.0):  # a Gamma law of order 2, that of vectors in the plane
        yield from _strays(f"P(|u|>={k})", lengths >= k, (1 + k) * math.exp(-k))
    for scale in (Fraction(1, 2), Fraction(4)):
        z = discrete_laplace.discrete_laplace(scale, runs, source)
        for k in range(6):
            yield from _strays(f"P(Z={k})", z == k, float(discrete_laplace_pmf(k, scale)))
        for k in (2, 8, 20):
            chance = float(discrete_laplace_survival(k, scale))
            yield from _strays(f"P(|Z|>={k})", abs(z) >= k, chance)
    for scale, reach in ((Fraction(2), 5), (Fraction(9), 3)):
        z = discrete_laplace.truncated_laplace(TruncatedLaplace(scale, reach), runs, source)
        weights = np.exp(-abs(np.arange(-reach, reach + 1)) / float(scale))
        for k, chance in enumerate(weights / weights.sum(), -reach):
            yield from _strays(f"truncated P(Z={k})", z == k, float(chance))
    pairs = box.zero_sum_laplace(Fraction(4), 2, runs // 4, source)[:, 0]
    for k in range(4):
        yield from _strays(f"zero-sum P(Z={k})", pairs == k, float(discrete_laplace_pmf(k, 2.0)))
    radii = abs(box.discrete_boxes(np.array([1, 1]), Fraction(6), 900, source)).max(axis=1)
    weights = np.array([r * 8 or 1 for r in range(400)]) * np.exp(-np.arange(400) / 6)
    for r in (3, 12, 24):
        yield from _strays(f"box P(R<{r})", radii < r, float(weights[:r].sum() / weights.sum()))
    drawn = np.array([row for _, (row,) in rows.many_rows([4], Fraction(6), 1500, source)])
    norms, sizes = abs(drawn).sum(axis=1), np.arange(400.0)
    weights = (8 / 3 * sizes * (sizes**2 + 2) + (sizes == 0)) * np.exp(-sizes / 6)
    for r in (12, 24, 40):
        yield from _strays(f"row P(R<{r})", norms < r, float(weights[:r].sum() / weights.sum()))
    one_sign = 2 * comb(sizes + 3, 3) * np.exp(-sizes / 6)
    chance = float((one_sign.sum() - 1) / weights.sum())
    yield from _strays("row P(one sign)", abs(drawn.sum(axis=1)) == norms, chance)
    weights = finite.integer_weights(np.log([1, 2, 5]))
    chosen = finite.finite_draw(np.tile(weights, (runs // 4, 1)), source)
    for j, weight in enumerate((1, 2, 5)):
        yield from _strays(f"choice {j}", chosen == j, weight / 8)
    normal = gaussian.discrete_gaussian(Fraction(9), 20_000, source)
    law = np.exp(-(np.arange(-60, 61) ** 2) / 18)
    for k in (0, 3, 6):
        yield from _strays(f"Gaussian P(Z={k})", normal == k, float(law[60 + k] / law.sum()))
    inside = gaussian.ball_gaussian(np.eye(1), np.zeros(1), 3.0, 2_000, source)[:, 0]
    chance = float((ndtr(1) - ndtr(-1)) / (ndtr(3) - ndtr(-3)))
    yield from _strays("ball P(|w|<1)", abs(inside) < 1, chance)
    yield from _of_each_column()
    yield from _carried()


def _of_each_column() -> Iterator[str]:
    """See that a text is published in one column whether or not it is in another."""
    law, noise, runs = TruncatedLaplace(Fraction(2), 5), Noise.of(0), 4_000
    found = [noise.common([{"a": 5}, {"a": 5}], law) for _ in range(runs)]
    both = np.array([all(columns) for columns in found])
    share = float(np.mean([len(column) for columns in found for column in columns]))
    yield from _strays("texts of two columns together", both, share**2)


def _carried() -> Iterator[str]:
    """See that what is released tells the law that was drawn, by which all else judges it."""
    for mechanism in (Laplace(), Laplace(noise="joint"), Gaussian(), Fourier()):
        drawn, budget = Recording(), Budget(Fraction(1), Fraction(1, 1000))
        posterior = released(mechanism, SIDES[0], PRIOR, budget, drawn.noise())
        if posterior.released.laws != (drawn.steps[0].law,):
            yield f"{mechanism}: another law is told than was drawn"


def attacks() -> list[Case]:
    """Attack releases of one record and of its opposite; half the noise is found out."""
    mechanisms = (Laplace(), Fourier(), Sampler(n_points=2), MAP(n_points=2), Gaussian())
    return [Case(str(mechanism), partial(_attack, mechanism)) for mechanism in mechanisms]


def _attack(mechanism: Mechanism) -> Iterator[str]:
    delta = 0.02 if mechanism.needs_delta else 0.0
    budget, options = Budget(Fraction(1), exact(delta)), {"random_state": 0, "verbose": False}
    bound = audit_release(mechanism, *SIDES, PRIOR, budget, 4_000, delta=delta, **options)
    if bound.epsilon > 1:
        yield f"{mechanism}: {bound}"


class Stream:
    """Stands in for the operating system's generator: bytes that depend on a key alone."""

    def __init__(self, key: int) -> None:
        self.key, self.turn = key, itertools.count()

    def __call__(self, size: int) -> bytes:
        seed = f"{self.key},{next(self.turn)}".encode()
        return hashlib.shake_256(seed).digest(size)


def origins() -> Iterator[str]:
    """See that the noise is a function of the system's bytes and of nothing else."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (50, 2)), rng.integers(0, 2, 50)
    models: list[Any] = [
        naive_bayes(0.2, delta=1e-3, mechanism=m)
        for m in ("laplace", Laplace(noise="joint"), "fourier", "sampler", "map", "gaussian")
    ]
    models += [line(0.2, mechanism=m) for m in ("laplace", "sampler")]
    models += [
        DirichletMultinomial(0.2, categories=3, mechanism=m) for m in ("geometric", "exponential")
    ]
    models += [naive_bayes(1e9, max_weight=2)]  # whose weights are rounded by coins
    for model in models:
        data = (X[:, 0],) if isinstance(model, DirichletMultinomial) else (X, y)
        data = data if getattr(model, "max_weight", None) is None else (X, y, None, None, HALVES)
        same, again, other = (_numbers(model, data, key, seed) for key, seed in _KEYS)
        if not np.array_equal(same, again):
            yield f"{type(model).__name__}, {model.mechanism}: noise from elsewhere"
        if np.array_equal(same, other):
            yield f"{type(model).__name__}, {model.mechanism}: noise that repeats"
    yield from _batches(X, y)


HALVES = np.full(50, 0.5)
_KEYS = ((1, 7), (1, 8), (2, 7))  # Seeds of the system's bytes and of all other generators.


def _numbers(model: Any, data: Any, key: int, seed: int) -> npt.NDArray[np.float64]:
    np.random.seed(seed)  # noqa: NPY002  what must have no say
    random.seed(seed)
    with planted((os, "urandom", Stream(key))):
        return fitted_numbers(model.fit(*data))


def _batches(X: Any, y: Any) -> Iterator[str]:
    """See that batches with one seed have noise of their own."""
    model = naive_bayes(0.2, random_state=3)
    one = model.partial_fit(X, y).posterior_.released.tables
    both = model.partial_fit(X, y).posterior_.released.tables
    if all(np.array_equal(2 * a, b) for a, b in zip(one, both, strict=True)):
        yield "two batches have the same noise"


DELTA = Fraction(1, 10**6)
RECORDS = 240
RNG = np.random.default_rng(0)
BITS = np.tile([[0, 0, 0, 0], [1, 1, 1, 1]], (RECORDS // 2, 1))
CLASSES = np.repeat([0, 1], RECORDS // 2)
NUMBERS = RNG.uniform(0, 1, (RECORDS, 2))
PEOPLE = {"record": RECORD, "two records": person(2), "four records": person(4)}
TINY = 1 + 1e-9  # Allowance for rounding of floats.


def concentration() -> list[Case]:
    """Compare charges with draws from tables and of coefficients."""
    return cases_of(_draws_of_tables, _a_delta_of_tables, _draws_of_coefficients, _planned_once)


def _draws_of_tables() -> Iterator[str]:
    """Flip all features of the records of one person, in balanced tables, at two points a split."""
    for (people, unit), delta in product(PEOPLE.items(), (0, DELTA)):
        ledger = BudgetAccountant(delta=1)
        options = {"temperature": 1, "accountant": ledger, "privacy_unit": unit}
        model = naive_bayes(0.5, delta=delta, mechanism=Sampler(30, n_points=2), **options)
        with calls_of(plans, "draw_tables") as drawn:
            model.fit(BITS, CLASSES, groups=_own(unit))
        (_, log_law, _, n_draws, *_) = drawn[0].args
        turned, half = unit.max_records, RECORDS // 4
        exact = n_draws * sum(_turned_rho(log_law, node, half, turned) for node in range(4))
        (entry,) = ledger
        if exact > entry.rho:
            yield f"draws from tables, {people}: zCDP {exact:.4g}, charged {entry.rho:.4g}"
        if exact < 0.6 * entry.rho:
            yield f"draws from tables, {people}: only {exact:.4g} of {entry.rho:.4g} is seen"


def _own(unit: PrivacyUnit) -> Any:
    """Return labels by which every record is somebody's own."""
    return np.arange(RECORDS) if unit.name == "person" else None


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
        ledger = BudgetAccountant(delta=1)
        options = {"coef_bound": bound, "fit_intercept": intercept, "privacy_unit": unit}
        model = line(0.5, delta=delta, mechanism=Sampler(30), accountant=ledger, **options)
        with calls_of(DrawsPlan, "weight", "place") as calls:
            model.fit(NUMBERS, NUMBERS.mean(axis=1), groups=_own(unit))
        last = {call.name: call for call in calls}
        plan, (rows, _, radius) = last["weight"].args[0], last["place"].result
        others = [Fraction(step.cost.epsilon) for step in plan.steps[:-1]]
        norm = math.sqrt(len(plan.prior.design.features) + plan.prior.design.intercept)
        reach, limit = radius * norm, float(rows.limit)
        range_ = 2 * limit * reach if reach <= limit else (limit + reach) ** 2 / 2
        width = unit.n_changed * last["weight"].result * range_
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
        model = naive_bayes(epsilon, delta=DELTA, mechanism=Sampler(draws), accountant=ledger)
        model.fit(BITS[:, :2], CLASSES)
        (entry,) = ledger
        if entry.rho != model.guarantee_.rho:
            yield f"charged zCDP {entry.rho!r}, released {model.guarantee_.rho!r}"
