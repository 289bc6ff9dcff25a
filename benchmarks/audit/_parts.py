"""Every release's parts, added up from what was drawn: never more than was charged and promised.

A world is an estimator and records that one unit of privacy may have, among others. The first of
them is fitted; all others are fitted along its answers. Every step then has one law for each, and
the losses between neighbours, of all steps, are added up. Steps that split one sensitivity among
them, as the questions about a column do, are judged together, others each at its worst neighbours.

Laws alone would not show all of it: many releases of Gaussian noise lose less than their epsilons
and deltas add up to. So the costs of all releases that concern a unit are added up as well.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

import dpbayes_sklearn as dp
from benchmarks.audit._models import ADDED, FEATURE, PERSON, RECORD, naive_bayes
from benchmarks.audit._models import UNITS as OTHER_UNITS
from benchmarks.audit._step_lists import Taken, unlisted, watched
from benchmarks.audit.tools.recording import (
    Part,
    Recording,
    Texts,
    covered,
    lost,
    planted,
    together,
)
from benchmarks.audit.tools.steps import PerturbedMinimum, Placed
from dpbayes_sklearn.columns import plans
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Laplace, Sampler
from dpbayes_sklearn.noise import DiscreteGaussian, made_by
from dpbayes_sklearn.preprocessing import scalers
from dpbayes_sklearn.privacy.budget import Budget, Copies, PrivacyUnit
from dpbayes_sklearn.regression.gram import GaussianGram
from dpbayes_sklearn.release import boundary

_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Neighbourhood:
    """Records of others, and what one unit may have instead: rows of (columns, target)."""

    name: str
    model: Any
    others: pd.DataFrame
    own: tuple[tuple[Any, ...], ...]
    unit: PrivacyUnit = RECORD
    least: float = 0.0  # part of the claim that these neighbours lose
    place: int = 0  # of the unit among the others
    together: bool = False  # whether steps share what they lose, so that no pair is worst in all

    def data(self, who: int | None) -> tuple[Any, Any, Any]:
        """Return X, y and groups; nobody is there if ``who`` is None."""
        times = 0 if who is None else self.unit.max_records
        own = pd.DataFrame([self.own[who or 0]] * times, columns=self.others.columns)
        before, after = self.others.iloc[: self.place], self.others.iloc[self.place :]
        some = [part for part in (before, own, after) if len(part)] or [self.others]
        frame = pd.concat(some, ignore_index=True).astype(self.others.dtypes)
        groups = np.insert(np.arange(len(self.others)), self.place, [len(self.others)] * times)
        X, y = frame.drop(columns="y"), frame["y"].to_numpy()
        return X, y, groups if self.unit.name == "person" else None

    @property
    def sides(self) -> list[int | None]:
        """Return who may be there; only where the number of records is secret, nobody."""
        return [*([None] if self.unit.size_is_secret else []), *range(len(self.own))]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Return which sides are neighbours."""
        every = [*combinations(range(len(self.sides)), 2)]
        if self.unit.size_is_secret:
            return [pair for pair in every if not pair[0]]
        return [pair for pair in every if self.unit.whole_records or self._one_value(*pair)]

    def _one_value(self, one: int, other: int) -> bool:
        changed = [a != b for a, b in zip(self.own[one], self.own[other], strict=True)]
        return sum(changed) == 1 and not changed[-1]


class Release(NamedTuple):
    """What a release costs by its plan, and which steps it took; inner releases are parts of it."""

    cost: Budget
    steps: slice

    def price(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction, Fraction]:
        """Return epsilon, delta and zCDP for a unit, by group privacy where it is two steps."""
        epsilon, delta = Fraction(self.cost.epsilon), Fraction(self.cost.delta)
        rho = epsilon**2 / 2 if self.cost.rho is None else Fraction(self.cost.rho)
        if self.cost.unit == unit or unit.size_is_secret:
            return epsilon, delta, rho
        return 2 * epsilon, delta * (1 + Fraction(math.exp(epsilon))), 4 * rho


class Watched(Recording):
    """A recording that also knows the releases that were made."""

    def __init__(self, along: Recording | None = None) -> None:
        super().__init__(along)
        self.releases: list[Release] = []
        self.taken: list[Taken] = []
        self._inside = False

    def released(self, release: Any, plan: Any, *private: Any) -> Any:
        """Note a release, and the steps that it takes."""
        if self._inside:
            return release(plan, *private)
        start, self._inside = len(self.steps), True
        try:
            return release(plan, *private)
        finally:
            self._inside = False
            self.releases.append(Release(plan.cost, slice(start, len(self.steps))))


def recordings(
    world: Neighbourhood, past: Recording | None = None
) -> tuple[list[Watched], list[tuple[Any, dp.BudgetAccountant]]]:
    """Fit every side along the answers of the first; return what was drawn, models and ledgers."""
    found: list[Watched] = []
    fitted = []
    for side in world.sides:
        ledger, (X, y, groups) = dp.BudgetAccountant(delta=1), world.data(side)
        own = {"accountant": ledger, "random_state": 0, "privacy_unit": world.unit}
        known = world.model.get_params()
        model = clone(world.model).set_params(**{k: v for k, v in own.items() if k in known})
        more = {} if groups is None else {"groups": groups}
        silence = planted((logging.getLogger("dpbayes_sklearn"), "disabled", True))
        drawn = Watched(found[0] if found else past)
        listening = made_by(drawn.noise), _declared(drawn), boundary(drawn.released), silence
        with warnings.catch_warnings(), ExitStack() as stack:
            warnings.simplefilter("ignore")
            for each in listening:
                stack.enter_context(each)
            drawn.taken = stack.enter_context(watched(drawn))
            model.fit(X, y, **more)
        found.append(drawn)
        fitted.append((model, ledger))
    return found, fitted


def _declared(drawn: Recording) -> Any:
    """Tell a recording what Gaussian noise, and a level of quantiles, lose at their sensitivity."""
    gaussian, rate, seen = GaussianGram.law, plans.rate, list[Any]()

    def law(block: Any, rho: Any, grid: int) -> Any:
        found = gaussian(block, rho, grid)
        drawn.declared = float(block.bound * grid**4 / (2 * found.parameters[0] * block.weights[0]))
        return found

    def rated(level: Any, epsilon: Any, unit: Any) -> Any:
        found = rate(level, epsilon, unit)
        if not any(level is other for other in seen):  # all questions of a level share it
            seen.append(level)
            drawn.declared = found * float(level.sensitivity(unit))
        return found

    return planted((GaussianGram, "law", law), (plans, "rate", rated))


def claims(model: Any, ledger: dp.BudgetAccountant) -> list[tuple[str, Any, Any, Any]]:
    """Return what was charged and what is promised: epsilon, delta, and rho or None."""
    entries, promise = [*ledger], model.guarantee_
    rhos = [e.spend.rho if e.spend.rho != math.inf else e.cost.epsilon**2 / 2 for e in entries]
    known = any(e.spend.rho != math.inf for e in entries)
    charged = [sum((e.cost[i] for e in entries), Fraction(0)) for i in (0, 1)]
    return [
        ("charged", *charged, sum(rhos, Fraction(0)) if known else None),
        ("promised", promise.epsilon, promise.delta, promise.rho),
    ]


def added_up(
    found: Sequence[Recording],
    pairs: Sequence[tuple[int, int]],
    delta: float = 0.0,
    steps: slice = slice(None),
) -> list[Part]:
    """Return what all steps lose, each at the neighbours that lose most there."""
    columns = [*zip(*(own.steps[steps] for own in found), strict=True)]
    placed = [column for column in columns if isinstance(column[0], Placed)]
    groups = [[column] for column in columns if not isinstance(column[0], Placed)]
    levels = sum(column[0].bound for column in placed)
    asked = _worst(placed, pairs, delta) if placed else Part()
    parts = [_worst(group, pairs, delta) for group in groups]
    return [*parts, asked._replace(pure=max(asked.pure, levels))]


def _worst(group: Sequence[Any], pairs: Sequence[tuple[int, int]], delta: float) -> Part:
    parts = [
        together(_lost(sides[i], sides[j], delta) for sides in group)
        for one, other in pairs
        for i, j in ((one, other), (other, one))
    ]
    return Part(*(max(column) for column in zip(*parts, strict=True)))


def _lost(one: Any, other: Any, delta: float) -> Part:
    """Return what a step loses; texts, and a mode with Gaussian noise, have all of the delta."""
    mode = isinstance(one, PerturbedMinimum)
    gaussian = mode and isinstance(one.plan.gradient_noise, DiscreteGaussian)
    if not (isinstance(one, Texts) or gaussian):
        return lost(one, other)
    pure = one.loss_beyond(other, delta)
    return Part(pure, pure**2 / 2, delta)


def same_steps(found: Sequence[Recording]) -> bool:
    """Tell whether all sides took the same kinds of steps, and began their runs at the same."""
    kinds = {(tuple(type(step) for step in own.steps), tuple(own.runs)) for own in found}
    return len(kinds) == 1


def judged(world: Neighbourhood, past: Recording | None = None) -> Iterator[str]:
    """Fit all sides; compare what was drawn with what was charged and promised."""
    found, fitted = recordings(world, past)
    if not same_steps(found):
        yield f"{world.name}: which steps are taken depends on the data"
        return
    if len({repr(getattr(model, "told_", None)) for model, _ in fitted}) > 1:
        yield f"{world.name}: more is told than was drawn"
    yield from (f"{world.name}: {wrong}" for wrong in unlisted(found[0].taken, found[0]))
    yield from _of_steps(world, found)
    judgements = _of_world(world, found)
    for what, *claim in claims(*fitted[0]):
        worst = max(judgements, key=lambda parts, claim=claim: share(parts, *claim))
        for parts in judgements:
            least = world.least if parts is worst else 0.0
            yield from compared(f"{world.name}: {what}", parts, *claim, least)
        for pair in world.pairs:
            yield from _paid(f"{world.name}: {what}", world.unit, found, pair, claim)


def _of_steps(world: Neighbourhood, found: Sequence[Watched]) -> Iterator[str]:
    """Compare what every step of a plan loses with what is shown that it spends."""
    delta = float(getattr(world.model, "delta", 0.0))
    columns = [*zip(*(own.steps for own in found), strict=True)]
    most = getattr(getattr(world.model, "model", world.model), "max_weight", None)
    for step, _, own in (each for taken in found[0].taken for each in taken.steps):
        if not step.cost.epsilon:  # the step before it pays for both: they are judged together
            continue
        part, cost = _worst(columns[own], world.pairs, delta), step.cost
        if most:
            cost = Copies(world.unit, most).outer(cost)
        paid = (
            part.rho <= float(cost.rho) * _ROUNDING
            if cost.delta and cost.rho is not None
            else covered([part], float(cost.epsilon) * _ROUNDING, float(cost.delta) * 1.02)
        )
        if not paid:
            yield f"{world.name}, {step.what}: {step.spends}, drawn {part}"


def _paid(
    what: str, unit: PrivacyUnit, found: Sequence[Watched], pair: tuple[int, int], claim: Any
) -> Iterator[str]:
    """Compare a claim with the sum of what all releases cost that tell two sides apart."""
    one, other = (found[side].steps for side in pair)
    differ = [a.key() != b.key() for a, b in zip(one, other, strict=True)]
    prices = [r.price(unit) for r in found[pair[0]].releases if any(differ[r.steps])]
    costs = [sum(column, Fraction(0)) for column in zip(*prices, strict=True)]
    for name, cost, claimed in zip(("epsilon", "delta", "zCDP"), costs, claim, strict=False):
        if claimed is not None and cost > Fraction(claimed) * Fraction(_ROUNDING):
            yield f"{what} {name} {float(claimed):g}, of releases of {float(cost):g} together"


def reached(world: Neighbourhood) -> float:
    """Return which part of the smallest claim was drawn."""
    found, fitted = recordings(world)
    each = product(_of_world(world, found), claims(*fitted[0]))
    return max(share(parts, *claim) for parts, (_, *claim) in each)


def _of_world(world: Neighbourhood, found: Sequence[Recording]) -> list[list[Part]]:
    """Return what is lost: once, each step at its worst neighbours, or for every two sides."""
    delta = float(getattr(world.model, "delta", 0.0))
    columns = [*zip(*(own.steps for own in found), strict=True)]
    if world.together:
        return [[_worst([c], [pair], delta) for c in columns] for pair in world.pairs]
    if world.unit.whole_records:
        return [added_up(found, world.pairs, delta)]
    # one value changes one of several tables: what is drawn from all of them is judged together
    kinds = {type(step) for step in found[0].steps}
    groups = [[c for c in columns if type(c[0]) is kind] for kind in kinds]
    return [[_worst(group, world.pairs, delta) for group in groups]]


def compared(
    what: str, parts: Sequence[Part], epsilon: Any, delta: Any, rho: Any, least: float = 0.0
) -> Iterator[str]:
    """Compare the sum of all parts with a claim."""
    part = together(parts)
    if not covered(parts, float(epsilon) * _ROUNDING, float(delta) * 1.02):
        yield f"{what} ({float(epsilon):g}, {float(delta):g}), drawn {part}"
    if rho is not None and part.rho > float(rho) * _ROUNDING:
        yield f"{what} rho {float(rho):g}, drawn {part.rho:g}"
    drawn = share(parts, epsilon, delta, rho)
    if drawn < least:
        yield f"{what}: {drawn:.3f} of it was drawn, where {least:g} can be"


def share(parts: Sequence[Part], epsilon: Any, delta: Any, rho: Any) -> float:
    """Return which part of a claim was drawn."""
    part = together(parts)
    return part.rho / float(rho) if rho else part.pure / float(epsilon)


UNITS = (RECORD, *OTHER_UNITS)
NAN = float("nan")


def worlds() -> list[Neighbourhood]:
    """Return all worlds in which nothing is forced."""
    regressions = [
        *_regressions(),
        *_whole_recipe(),
        *_second_moments(),
        *_many_columns(),
        *_logistic(),
        *_rates(),
    ]
    return [
        *_counts(),
        *_deep(),
        *regressions,
        *_categories(),
        *_life_tables(),
        *_means(),
        *_preparation(),
    ]


def frame(rows: Any, names: str = "abcdefgh") -> pd.DataFrame:
    """Return rows of (columns, target) as a table."""
    columns = [*zip(*rows, strict=True)]
    return pd.DataFrame(dict(zip([*names[: len(columns) - 1], "y"], columns, strict=True)))


BITS = ((0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 0), (0, 0, 1, 0), (0, 0, 0, 1))


def _counts() -> Iterator[Neighbourhood]:
    """Yield naive Bayes, of even records and of those that agree, and a network."""
    alike = frame([(0, 0, 0, 0)] * 1500)
    even = frame(np.random.default_rng(0).integers(0, 2, (1500, 4)).tolist())
    for (mechanism, delta, others, least), unit in product(
        (
            ("laplace", 0.0, even, 0.99),
            ("fourier", 0.0, even, 0.99),
            ("map", 0.0, alike, 0.25),
            (Sampler(3), 0.0, alike, 0.3),
            (Sampler(30), 1e-6, alike, 0.5),
            ("gaussian", 1e-6, even, 0.99),
        ),
        (*UNITS, FEATURE),
    ):
        model = naive_bayes(delta=delta, mechanism=mechanism, inference="plug_in")
        yield Neighbourhood(f"counts, {mechanism}, {unit.label}", model, others, BITS, unit, least)
    sure = naive_bayes(mechanism=Laplace(), inference="plug_in")  # losses from 0 to their bound
    yield Neighbourhood("counts, Laplace(), record", sure, alike, BITS, RECORD, 0.99)
    for unit in UNITS:
        network = dp.BayesianNetworkClassifier(
            parents={"b": ["a"]}, bounds=(0, 1), classes=[0, 1], n_bins=2, inference="plug_in"
        )
        yield Neighbourhood(f"network, {unit.label}", network, even, BITS, unit, 0.9)


SCHEMA = dp.Schema(
    {
        "x": dp.Interval(-1, 1),
        "m": dp.Interval(-1, 1, missing="indicator"),
        "s": dp.Categories([*"ab"]),
        "l": dp.Categories([*"pqr"]),
        "k": dp.Categories([*"uvw"]),
    },
    dp.Interval(-1, 1),
)
CORNERS = (
    (1.0, 1.0, "a", "p", "u", 1.0),
    (-1.0, -1.0, "b", "q", "v", 1.0),
    (1.0, 1.0, "a", "p", "u", -1.0),
    (-1.0, -1.0, "b", "q", "v", -1.0),
    (1.0, NAN, "a", "r", "w", 1.0),
    (-1.0, NAN, "b", "p", "u", -1.0),
    (0.0, 0.0, "a", "q", "w", 0.0),
    (0.0, NAN, "b", "r", "u", 0.0),
)
WITHOUT_TARGETS = (*CORNERS, *((*row[:-1], NAN) for row in CORNERS[:6:5]))


def numbers(n: int) -> pd.DataFrame:
    """Return records for columns of all kinds."""
    rng = np.random.default_rng(1)
    x, m = rng.uniform(-0.5, 0.5, n), rng.uniform(-0.3, 0.5, n)
    m[rng.random(n) < 0.3] = NAN
    words = (rng.choice([*letters], n) for letters in ("ab", "pqr", "uvw"))
    y = np.clip(0.6 * x + rng.normal(0, 0.15, n), -1, 1)
    return pd.DataFrame(dict(zip("xmslky", (x, m, *words, y), strict=True)))


def _regressions() -> Iterator[Neighbourhood]:
    """Yield regressions over columns of all kinds, and over columns of levels alone."""
    others = numbers(2000)
    for (mechanism, delta, options), unit in product(
        (
            ("laplace", 0.0, {}),
            ("fourier", 0.0, {}),
            ("gaussian", 1e-6, {}),
            (Sampler(3), 0.0, {}),
            (Sampler(30), 1e-6, {}),
            ("sampler", 0.0, {"coef_bound": 3.0}),
            ("sampler", 0.0, {"coef_bound": 0.1}),
            ("map", 0.0, {}),
            ("map", 0.0, {"coef_bound": 3.0}),
            ("auto", 0.0, {}),
        ),
        UNITS,
    ):
        if unit.name == "person" and (options or mechanism == "fourier"):
            continue  # persons are told by the others
        model = dp.BayesianLinearRegression(
            delta=delta, mechanism=mechanism, schema=SCHEMA, **options
        )
        name = f"regression, {mechanism}{options or ''}, {unit.label}"
        yield Neighbourhood(name, model, others, WITHOUT_TARGETS, unit, 0.75)
    few = dp.Schema({name: SCHEMA.columns[name] for name in "lk"}, SCHEMA.target)
    columns, ends = [*"lky"], tuple(row[3:] for row in CORNERS)
    for (mechanism, delta), constant in product(
        (("laplace", 0.0), ("fourier", 0.0), ("gaussian", 1e-6), ("map", 0.0)), (True, False)
    ):
        model = dp.BayesianLinearRegression(
            delta=delta, mechanism=mechanism, schema=few, fit_intercept=constant
        )
        name = f"levels, {mechanism}, {'with' if constant else 'without'} a constant"
        yield Neighbourhood(name, model, others[columns].head(100), ends, RECORD, 0.7)


def _many_columns() -> Iterator[Neighbourhood]:
    """Yield modes of so many columns that their noise is Gaussian, if there is a delta."""
    names, rng = [f"c{j}" for j in range(30)], np.random.default_rng(2)
    columns = {name: dp.Categories([*"pqrst"]) for name in names}
    rows = rng.choice([*"pqrst"], (300, len(names))).tolist()
    ends = [[letter] * len(names) for letter in "ppqt"]
    linear = dp.BayesianLinearRegression(mechanism="map", noise_variance=0.1)
    for target, model, values in (
        (dp.Interval(-1, 1), linear, (1.0, -1.0, 0.0)),
        (dp.Categories([0, 1]), dp.BayesianLogisticRegression(), (1, 0)),
    ):
        y = rng.choice(values, len(rows)).tolist()
        others = pd.DataFrame(rows, columns=names).assign(y=y)
        own = tuple((*row, values[i % len(values)]) for i, row in enumerate(ends))
        wide = clone(model).set_params(delta=1e-6, schema=dp.Schema(columns, target))
        kind = "regression" if target.is_numeric else "logistic"
        for unit in UNITS:
            name = f"{kind}, many columns, {unit.label}"
            yield Neighbourhood(name, wide, others, own, unit, 0.85)


def _whole_recipe() -> Iterator[Neighbourhood]:
    """Yield regressions of so many records that all steps are taken: "auto" chooses them.

    The records of one unit lie as far out as they can, on both sides; some have no target.
    """
    ends = tuple((*row[:-1], t) for row in CORNERS[:6:5] for t in (1.0, -1.0, NAN))
    for columns, constant, least, units in (
        ("xmslk", True, 0.95, UNITS),
        ("xm", True, 0.95, (RECORD,)),
        ("x", False, 0.8, (RECORD, ADDED)),
        ("lk", False, 0.88, (RECORD, ADDED)),
    ):
        schema = dp.Schema({name: SCHEMA.columns[name] for name in columns}, SCHEMA.target)
        model = dp.BayesianLinearRegression(8.0, schema=schema, fit_intercept=constant)
        places = [*("xmslk".index(name) for name in columns), 5]
        own = tuple(dict.fromkeys(tuple(row[i] for i in places) for row in (*CORNERS[:4], *ends)))
        for unit in units:
            others = numbers(2500 * unit.max_records)[[*columns, "y"]]
            name = f"whole recipe, {columns}, {unit.label}"
            yield Neighbourhood(name, model, others, own, unit, least)


def _second_moments() -> Iterator[Neighbourhood]:
    """Yield releases of second moments of columns of all kinds: there is no target."""
    schema = dp.Schema({**SCHEMA.columns, "z": SCHEMA.columns["x"]})
    model, own = dp.PrivateMoments(8.0, schema=schema), tuple((*row, 0) for row in CORNERS)
    for unit in UNITS:
        others = numbers(2500 * unit.max_records).rename(columns={"y": "z"}).assign(y=0)
        yield Neighbourhood(f"second moments, {unit.label}", model, others, own, unit, 0.95)


def _logistic() -> Iterator[Neighbourhood]:
    """Yield logistic regressions over columns of all kinds; records at opposite ends."""
    others = numbers(200)
    others["y"] = (others["y"] > 0).astype(int)
    own = tuple((*CORNERS[i][:-1], label) for i, label in ((0, 1), (1, 0), (0, 0), (4, 1)))
    # with a large epsilon the mode stays where records count in the curvature
    for (effects, epsilon), unit in product((("smooth", 30.0), ("linear", 1.0)), UNITS):
        schema = dp.Schema(SCHEMA.columns, dp.Categories([0, 1]))
        model = dp.BayesianLogisticRegression(
            epsilon, effects=effects, intervals=True, schema=schema
        )
        yield Neighbourhood(f"logistic, {effects}, {unit.label}", model, others, own, unit, 0.6)
        for labels in ((0, 1, 2), (0, 1, 2, 3, 4)) if effects == "linear" else ():
            schema = dp.Schema(SCHEMA.columns, dp.Categories(labels))
            several = clone(model).set_params(intervals="auto", schema=schema)
            name = f"logistic, {len(labels)} classes, {unit.label}"
            among = others.assign(y=np.arange(len(others)) % len(labels))
            yield Neighbourhood(name, several, among, own, unit, 0.8)
        if effects == "linear":
            schema = dp.Schema(SCHEMA.columns, dp.Categories(range(4)))
            cut = clone(model).set_params(intervals="auto", schema=schema, ordered=True)
            ends = tuple((*row[:-1], 3 * row[-1]) for row in own)
            among = others.assign(y=np.arange(len(others)) % 4)
            yield Neighbourhood(f"logistic, ordered, {unit.label}", cut, among, ends, unit, 0.9)
        draws = clone(model).set_params(mechanism="sampler", intervals=False)
        yield Neighbourhood(
            f"logistic, sampler, {effects}, {unit.label}", draws, others, own, unit, 0.6
        )


def _rates() -> Iterator[Neighbourhood]:
    """Yield regressions of counts with exposures; counts at both ends, far out and missing."""
    others = pd.DataFrame({"x": numbers(200)["x"], "l": numbers(200)["l"], "t": 1.0})
    others["y"] = np.arange(200) % 3.0
    columns = {"x": SCHEMA.columns["x"], "l": SCHEMA.columns["l"], "t": dp.Interval(0.1, 5)}
    corners = (1.0, "p", 5.0), (-1.0, "q", 0.1), (NAN, "r", NAN)
    own = tuple((*corner, y) for corner, y in product(corners, (0.0, 1e9, NAN)))
    schema = dp.Schema(columns, dp.Interval(0, 4))
    for effects, unit in product(("linear", "smooth"), UNITS):
        model = dp.BayesianCountRegression(
            effects=effects, intervals=True, schema=schema, exposure="t"
        )
        yield Neighbourhood(f"rates, {effects}, {unit.label}", model, others, own, unit, 0.6)


def _categories() -> Iterator[Neighbourhood]:
    """Yield posteriors of one variable."""
    codes, own = frame([(i % 3, 0) for i in range(30)]), ((0, 0), (1, 0), (2, 0))
    for mechanism, unit in product(("geometric", "laplace", "laplace_improved"), UNITS):
        model = dp.DirichletMultinomial(categories=3, mechanism=mechanism)
        yield Neighbourhood(f"categories, {mechanism}, {unit.label}", model, codes, own, unit, 0.99)
    for mechanism, unit in product(("exponential", "hellinger"), (RECORD, PERSON)):
        model = dp.DirichletMultinomial(categories=3, mechanism=mechanism)
        yield Neighbourhood(f"categories, {mechanism}, {unit.label}", model, codes, own, unit, 0.3)
    for unit in UNITS:
        coin, bits = dp.BetaBinomial(), frame([(i % 2, 0) for i in range(30)])
        yield Neighbourhood(f"coin, {unit.label}", coin, bits, ((0, 0), (1, 0)), unit, 0.99)
    for unit in (RECORD, PERSON):
        model = dp.DirichletMultinomial(categories=3, mechanism="gaussian", delta=1e-6)
        yield Neighbourhood(f"categories, gaussian, {unit.label}", model, codes, own, unit, 0.99)


def _life_tables() -> Iterator[Neighbourhood]:
    """Yield life tables of two groups; records leave at every time, by the event or unobserved."""
    schema = dp.Schema({"a": dp.Interval(0, 3, bins=3), "b": dp.Categories([0, 1])})
    others = frame([(float(i % 4), i % 2, float(i % 3 == 0)) for i in range(40)])
    own = tuple(product((0.5, 2.5, 1e9, NAN), (0, 1), (0.0, 1.0, NAN)))
    for unit in UNITS:
        model = dp.LifeTable(schema=schema)
        yield Neighbourhood(f"life table, {unit.label}", model, others, own, unit, 0.99)


def _means() -> Iterator[Neighbourhood]:
    """Yield means and rates of bounded columns, whose records lie at either end."""
    others, ends = frame([(0.5, 0.5, 0)] * 40), ((-1e6, 0.0, 0), (1e6, 1.0, 0), (NAN, 0.5, 0))
    for model, mechanism, unit in product(
        (dp.NormalMean(bounds=(0, 1)), dp.GammaExponential(bounds=(0, 1))),
        ("laplace", "sampler"),
        (RECORD, PERSON),
    ):
        own = clone(model).set_params(mechanism=mechanism)
        name = f"{type(model).__name__}, {mechanism}, {unit.label}"
        yield Neighbourhood(name, own, others, ends, unit, 0.4)


BINARY = dp.Schema({name: dp.Interval(0, 1, bins=2) for name in "abc"}, dp.Categories([0, 1]))


def _preparation() -> Iterator[Neighbourhood]:
    """Yield transformers, and the choice of columns."""
    table = frame([(float(i % 7), float(i % 2), 0) for i in range(300)])
    ends = ((-1e6, -1e6, 0), (1e6, 1e6, 0), (3.0, 0.5, 0), (NAN, NAN, 0))
    bits = frame([(i % 2, i % 2, 0, i % 2) for i in range(120)])
    for unit in UNITS:
        for model in (
            scalers.PrivateMinMaxScaler(5.0),
            scalers.PrivateStandardScaler(5.0),
            scalers.PrivateKBinsDiscretizer(8),
            scalers.PrivateKBinsDiscretizer(4, strategy="uniform"),
        ):
            name = f"{type(model).__name__}, {model.get_params().get('strategy')}, {unit.label}"
            yield Neighbourhood(name, model, table, ends, unit, 0.9)
        within = scalers.PrivateMinMaxScaler(5.0, bounds=(-10, 10))
        yield Neighbourhood(
            f"PrivateMinMaxScaler, bounded, {unit.label}", within, table, ends, unit, 0.9
        )
        select = PrivateSelectKBest(2, schema=BINARY)
        yield Neighbourhood(f"columns, {unit.label}", select, bits, BITS, unit, 0.99)


def _deep() -> Iterator[Neighbourhood]:
    """Yield draws of features with several splits."""
    columns = {name: dp.Interval(0, 7, bins=8) for name in "ab"}
    schema = dp.Schema(columns, dp.Categories([0, 1]))
    own = tuple((a, b, c) for a, b, c in product((0, 1, 7), (0, 7), (0, 1)))
    for unit, mechanism in product((RECORD, FEATURE), ("sampler", "map")):
        model = dp.BayesianNaiveBayes(mechanism=mechanism, schema=schema, inference="plug_in")
        others = frame([(0, 0, 0)] * 200)
        yield Neighbourhood(f"deep, {unit.label}, {mechanism}", model, others, own, unit, 0.3)
