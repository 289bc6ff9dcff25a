"""Small worlds of every mechanism and unit, gone through in a second or two a kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.audit._cases import Case, beyond, cases_of
from benchmarks.audit._models import ADDED, PERSON, RECORD, THERE, UNITS
from benchmarks.audit.tools import enumerate_delta, enumerate_loss
from benchmarks.audit.tools.deltas import enumerate_texts
from benchmarks.audit.tools.recording import Transcript, lost
from benchmarks.audit.tools.replaying import replay
from benchmarks.audit.tools.steps import gaussian_delta
from benchmarks.audit.tools.universes import ColumnUniverse, MomentUniverse, TreeUniverse, plan_for
from dpbayes_sklearn import GammaExponential, NormalMean
from dpbayes_sklearn.columns import quantiles
from dpbayes_sklearn.columns.quantiles import BinEdges, QuantileQuestions
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.counts.dependence import ColumnChoice, TreeChoice
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.mechanisms import MAP, Fourier, Gaussian, Laplace, Sampler
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.papers import choices
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit, exact
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.sums import release
from dpbayes_sklearn.sums.release import Prior


class World(NamedTuple):
    """A mechanism, and all data sets of n records of a structure."""

    mechanism: Any
    structure: Any
    n: int
    options: dict[str, Any]
    least: float = 0.0  # part of the claim that the worst neighbours use up, by theory

    def __str__(self) -> str:
        unit = self.options.get("unit")
        shown = {k: v for k, v in self.options.items() if not isinstance(v, PrivacyUnit)}
        label = f", {unit.label}" if isinstance(unit, PrivacyUnit) else ""
        rest = "".join(f", {name}={value}" for name, value in shown.items())
        return f"{self.mechanism}{label}{rest}, {self.structure}"

    def enumerated(self, **more: Any) -> Any:
        """Return the worst loss of all neighbours."""
        one_way = self.mechanism in ("quantiles", "permute_and_flip", "products")  # no option
        mechanism = None if one_way else self.mechanism
        return enumerate_loss(mechanism, self.structure, self.n, **self.options, **more)


TIGHT = 0.99


class Twins(MomentUniverse):
    """Records of a regression whose first two columns agree: few, and the worst are among them."""

    @cached_property
    def records(self) -> list[tuple[Any, ...]]:
        """Every such combination."""
        return [record for record in super().records if record[0] == record[1]]


class Untargeted(MomentUniverse):
    """Records whose columns are all that is asked about."""

    @cached_property
    def records(self) -> list[tuple[Any, ...]]:
        """Those with one target, which nothing depends on."""
        return [record for record in super().records if record[-1] == 0.0]

    def prior(self, concentration: Any) -> Any:
        """Return what the plan of second moments is made of."""
        return self.design


class Alike(TreeUniverse):
    """Records whose features all have the same value: one of them changes all edges at once."""

    @classmethod
    def of(cls, n_features: int) -> Alike:
        """Return the world of two such records."""
        star = Network.star([2] * n_features, 1)
        return cls(star, TreeChoice(star))

    @cached_property
    def records(self) -> list[tuple[int, ...]]:
        """All zeros, and all ones but for the class."""
        return [(value,) * self.network.target + (0,) for value in (0, 1)]


STAR, PAIR, THREE = Network.star([2], 2), Network.star([2, 2], 2), Network.star([3], 2)
TREE = Network((2, 2, 2), ((2,), (0,), ()))  # class -> x0 -> x1
SINGLE = Network((1, 2, 2), ((), (2,), ()))  # x0 has one value: its table is n
NUMBER, LEVELS = Design((Interval(0, 1),)), Design((Categories([*"abc"]),))
SLOPE = Design((Interval(-1, 1),), intercept=False)
MATRIX = Twins(Design((Categories([*"abc"]),) * 4), levels=2)  # has matrix noise
SIGNS = MomentUniverse(Design((Categories([*"ab"]),) * 4), levels=2)  # centred, too
MIXED = MomentUniverse(Design((Interval(-1, 1, missing="indicator"),)), levels=3)
TWO_ENDS = MomentUniverse(Design((Interval(-1, 1),)), levels=2)
ODD = 0.12345678901234567  # As a fraction it is too long for the samplers, so it is rounded.
LOCATED = 1500.0  # At this epsilon a mode of one record locates its numbers, too.
QUARTERS = Fraction(1, 4), Fraction(3, 4)
BY_NOISE = [kind(noise=noise) for kind in (Laplace, Fourier) for noise in ("independent", "joint")]


def _questions(*each: Any) -> QuantileQuestions:
    return QuantileQuestions(each)


def _counts() -> Iterator[World]:
    of_feature: dict[str, Any] = {"unit": "feature"}
    yield World("laplace", PAIR, 2, {}, TIGHT)
    yield World("laplace", PAIR, 2, of_feature, TIGHT)
    yield World(Laplace(budget_split=0.5), STAR, 2, {}, TIGHT)
    yield World("laplace", TREE, 2, of_feature, TIGHT)
    yield World("laplace", SINGLE, 2, {}, TIGHT)
    yield World("laplace", STAR, 2, {"epsilon": ODD}, TIGHT)
    yield World("laplace", STAR, 2, {"epsilon": 40.0}, TIGHT)
    for mechanism in (Laplace(noise="joint"), "fourier", Fourier(noise="joint")):
        yield World(mechanism, PAIR, 2, {}, TIGHT)
        yield World(mechanism, THREE, 2, of_feature, TIGHT)
    yield World(Sampler(n_points=33), STAR, 3, {})
    yield World(Sampler(n_points=33), STAR, 3, of_feature)
    yield World(Sampler(2, n_points=9), STAR, 3, of_feature)
    yield World(MAP(n_points=33), STAR, 3, {"unit": "feature", "epsilon": 8.0})
    yield World(MAP(score="posterior"), STAR, 3, {})
    for name in ("geometric", "laplace", "laplace_improved"):
        yield World(name, 3, 4, {}, TIGHT)
    for name in ("exponential", "hellinger", "local"):
        yield World(name, 2, 100, {"prior": (0.01, 5.0), "epsilon": 0.5})


def _moments() -> Iterator[World]:
    for name, epsilon in product(("laplace", "fourier", "sampler", "map"), (1.0, LOCATED)):
        yield World(name, NUMBER, 1, {"epsilon": epsilon})
    yield World("sampler", NUMBER, 1, {"prior": 100.0})  # draws of norm 1 at most
    for structure in (SLOPE, MIXED, LEVELS):
        yield World("auto", structure, 1, {"epsilon": 4 * LOCATED})  # the whole recipe
    for design in (NUMBER, MIXED.design, LEVELS):
        yield World("products", Untargeted(design, levels=3), 1, {"epsilon": 3.0})
    yield World("laplace", LEVELS, 1, {})
    yield World("laplace", MATRIX, 1, {})
    yield World("laplace", SIGNS, 1, {"epsilon": LOCATED})


def _preparation() -> Iterator[World]:
    six, eight = {"epsilon": 6.0}, {"epsilon": 8.0}
    outer, centre = (
        quantiles.OuterQuantiles(*QUARTERS, 3, 6.0),
        quantiles.CentreAndSpread(3, 6.0, (0.0, 4.0)),
    )
    yield World("quantiles", _questions(BinEdges(4)), 3, six)
    yield World("quantiles", _questions(outer), 3, {})
    yield World("quantiles", _questions(centre), 3, six)
    yield World("quantiles", _questions(BinEdges(2), BinEdges(2)), 2, {"epsilon": 12.0})
    for public in (8.0, 1000.0):  # edges within the range, or beyond it
        yield World("quantiles", _questions(quantiles.RangeAndEdges(2, 4, public)), 4, eight)
    yield World("permute_and_flip", ColumnChoice(PAIR, 1), 4, eight)
    yield World("permute_and_flip", ColumnChoice(Network.star([3, 3], 3), 1), 2, {"epsilon": 0.5})
    yield World("permute_and_flip", ColumnChoice(Network.star([2, 2, 2], 2), 2), 2, eight)
    yield World("permute_and_flip", Alike.of(40), 6, {"epsilon": 2.0})


def _units() -> Iterator[World]:
    """Yield worlds that lose epsilon exactly, and others, for every unit."""
    for unit in UNITS:
        of: dict[str, Any] = {"unit": unit}
        for mechanism in BY_NOISE:
            yield World(mechanism, PAIR, 2, of, TIGHT)
        for name in ("geometric", "laplace", "laplace_improved"):
            yield World(name, 3, 2, of, TIGHT)
        for mechanism in (Sampler(n_points=33), MAP(n_points=33)):
            yield World(mechanism, STAR, 3, of)
        for name in ("laplace", "fourier", "sampler", "map"):
            yield World(name, TWO_ENDS, 2, of)
        yield World("auto", TWO_ENDS, 2, {**of, "epsilon": 8 * LOCATED})
        yield World("products", Untargeted(NUMBER, levels=3), 2, of)
    yield World(Laplace(noise="independent"), Network.star([2], 1), 2, {"unit": ADDED}, TIGHT)
    for name in ("exponential", "hellinger"):
        yield World(name, 2, 20, {"unit": PERSON})
    yield World("laplace", MATRIX, 1, {"unit": ADDED})


def _units_of_preparation() -> Iterator[World]:
    few = (0.0, 3.0, np.nan)  # so that there can be many records
    for unit in (ADDED, THERE):
        median = ColumnUniverse(_questions(BinEdges(2)), few)
        yield World("quantiles", median, 6 * unit.max_records, {"unit": unit, "epsilon": 6.0}, 0.9)
    for unit in UNITS:
        sides = _questions(quantiles.OuterQuantiles(*QUARTERS, 400, 6.0, None, unit))
        of = {"unit": unit, "epsilon": 6.0}
        yield World("quantiles", ColumnUniverse(sides, few), 5, of)
        yield World("permute_and_flip", ColumnChoice(PAIR, 1), 3, of)
        yield World("permute_and_flip", TreeChoice(Network.star([2, 2, 2], 1)), 2, of)


WORLDS = {
    "counts": _counts,
    "moments": _moments,
    "preparation": _preparation,
    "units": _units,
    "units of preparation": _units_of_preparation,
}


def enumeration(kind: str) -> list[Case]:
    """Enumerate the worlds of one kind: no loss above the claim, nor below what theory says."""
    return [Case(str(world), partial(_enumerated, world)) for world in WORLDS[kind]()]


def _enumerated(world: World) -> Iterator[str]:
    choices._cached_law.cache_clear()  # laws of another state of the code
    yield from beyond(str(world), world.enumerated(transcripts=1), world.least)


def gaussian_noise() -> list[Case]:
    """Enumerate the delta of small worlds, which a release must keep to and nearly use up."""
    designs = {"slope": SLOPE, "number": NUMBER, "levels": LEVELS}
    return [
        *cases_of(_gaussian_tables, _several_draws),
        *(
            Case(name, partial(_gaussian_steps, MomentUniverse(d, levels=3), tight=d is SLOPE))
            for name, d in designs.items()
        ),
    ]


def _gaussian_tables() -> Iterator[str]:
    uneven = Network.star([2, 4], 2)  # its tables have different weights
    worlds = ((THREE, 2, "feature"), (uneven, 1, "record"), (TREE, 1, "record"), (3, 4, "record"))
    for (structure, n, unit), (epsilon, delta) in product(worlds, ((0.3, 1e-3), (1.0, 1e-6))):
        found = enumerate_delta("gaussian", structure, n, epsilon=epsilon, delta=delta, unit=unit)
        yield from beyond(f"gaussian, {unit}", found, 0.9)


def _several_draws() -> Iterator[str]:
    draws = enumerate_delta(Sampler(6, n_points=2), STAR, 3, epsilon=0.5, delta=0.01)
    yield from beyond("sampler", draws)


def _gaussian_steps(domain: MomentUniverse, tight: bool) -> Iterator[str]:
    """Compare the zCDP of every step of a regression, over all records, with what is claimed.

    The worst neighbours of one step need not be those of another.
    """
    epsilon, delta = 1.0, 1e-3
    found = enumerate_delta("gaussian", domain, 1, epsilon=epsilon, delta=delta, transcripts=1)
    yield from beyond("gaussian regression", found)
    budget = Budget(exact(epsilon), exact(delta, "delta"))
    data = [domain.statistics([i]) for i in range(len(domain.records))]
    prior, mechanism = domain.prior(1.0), Gaussian()
    transcript = Transcript(mechanism, data[0], prior, budget, 0)
    steps = zip(*(transcript.laws(one)[1:] for one in data), strict=True)
    worst = sum(map(_worst_rho, steps))
    claim = float(plan_for(mechanism, data[0], prior, budget).cost.rho or 0)
    if not (0.89 if tight else 0.6) * claim <= worst <= claim * (1 + 1e-9):
        yield f"gaussian regression: rho {worst:g} of {claim:g}"
    if gaussian_delta(math.sqrt(2 * claim), epsilon) > delta:
        yield f"gaussian regression: rho {claim:g} needs more than delta {delta:g}"


def _worst_rho(sides: tuple[Any, ...]) -> float:
    """Return the largest zCDP between two of these laws."""
    return max(lost(one, other).rho for one, other in combinations(sides, 2))


def gaussian_units() -> list[Case]:
    """Enumerate the delta of tables and of a slope for every unit."""
    slope = MomentUniverse(SLOPE, levels=3)
    return [
        Case(f"gaussian, {unit.label}, {structure}", partial(_gaussian, structure, unit))
        for structure, unit in product((PAIR, slope), UNITS)
    ]


def _gaussian(structure: Any, unit: PrivacyUnit) -> Iterator[str]:
    found = enumerate_delta("gaussian", structure, 2, delta=1e-3, unit=unit, transcripts=1)
    yield from beyond(f"gaussian, {unit.label}", found)


def common_texts(units: tuple[PrivacyUnit, ...] = (RECORD,)) -> list[Case]:
    """Enumerate the delta of publishing texts."""
    return [Case(f"texts, {unit.label}", partial(_texts, unit)) for unit in units]


def _texts(unit: PrivacyUnit) -> Iterator[str]:
    """Look at the whole law of texts, with a delta that its noise uses up, or nearly so."""
    settings: dict[tuple[float, float], float] = {(4.0, 0.0281): 0.98, (1.0, 0.3): 0.7}
    options: dict[str, Any] = {}
    if unit != RECORD:
        k, reach = unit.max_records, unit.max_records + 1
        law = TruncatedLaplace(Fraction(unit.n_changed, 4), reach)
        settings = {(4.0, float(law.beyond(k)) * unit.n_changed / k * (1 + 1e-9)): 0.5}
        options = {"texts": ("a", "b"), "n": 2 * reach + 2, "unit": unit}
    for (epsilon, delta), least in settings.items():
        found = enumerate_texts(**options, epsilon=epsilon, delta=delta)
        yield from beyond(f"texts, {unit.label}", found, least)


COARSE, FEW = 6, 4
MODELS = (
    NormalMean(bounds=(-1, 3), sigma=1.0),
    GammaExponential(bounds=(0, 5)),
    GammaExponential(bounds=(-2, 3), data="laplace", location=0.5),
    GammaExponential(bounds=(-2, 3), data="normal", location=0.5),
)


def sums() -> list[Case]:
    """Enumerate noise and draws of every family and unit, and replay neighbours."""
    kinds = {"draws": _draws, "noise": _noise}
    found = [
        Case(f"{name}, {model}, {unit.label}", partial(findings, model, unit))
        for (name, findings), model, unit in product(kinds.items(), MODELS, (RECORD, PERSON))
    ]
    found += [Case(f"replay, {model}", partial(_replayed, model)) for model in MODELS]
    return [*found, *(Case(f"closest, {model}", partial(_closest, model)) for model in MODELS)]


def _prior(model: Any, d: int = 1) -> Prior:
    interval = Interval(*model.bounds)
    columns, families = zip(*[model._column(interval)] * d, strict=True)
    return Prior(columns, families, COARSE)


def _draws(model: Any, unit: PrivacyUnit) -> Iterator[str]:
    sampler = Sampler(n_samples=2, n_points=33)
    plan: Any = release.plan(sampler, _prior(model), Facts(FEW), Budget(Fraction(1), unit=unit))
    low, step = plan.prior.bounds(0, FEW)[0], plan.prior.step(0)
    weights = plan.weights(0, low + step * np.arange(FEW * COARSE + 1)).astype(float)
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    shifts = range(1, unit.max_records * COARSE + 1)
    loss = max(float(np.abs(logs[s:] - logs[:-s]).max()) for s in shifts) * sampler.n_samples
    if loss > 1 + 1e-9:
        yield f"draws of {model}: loss {loss:.4f} of 1"


def _noise(model: Any, unit: PrivacyUnit) -> Iterator[str]:
    for d in (1, 5):
        budget = Budget(Fraction(1), unit=unit)
        plan: Any = release.plan(Laplace(), _prior(model, d), Facts(FEW), budget)
        loss = float(plan.law.privacy_loss(np.full(d, unit.max_records * COARSE)))
        if loss > 1 + 1e-9:
            yield f"noise of {d} sums of {model}: loss {loss:.4f} of 1"
        close = np.eye(d, dtype=np.int64)[0]
        if float(plan.law.privacy_loss(close)) > plan.slopes[0] * plan.prior.step(0) * (1 + 1e-9):
            yield f"noise of {d} sums of {model}: close records lose more than their slope"


def _closest(model: Any) -> Iterator[str]:
    """Look at two numbers side by side that are rounded to different steps."""
    n = 50
    fitted = clone(model).set_params(random_state=0).fit(np.full((n, 1), 1.0))
    prior = fitted._public_schema(fitted._nobody(n, 1), n)[0]
    (column,), (below, above) = prior.columns, fitted.bounds
    while below < (middle := (below + above) / 2) < above:
        codes = column.codes(np.array([below, middle]), prior.grid)
        below, above = (below, middle) if codes[0] != codes[1] else (middle, above)
    pair = np.array([below, above])
    (steps,) = np.diff(column.codes(pair, prior.grid))
    plan: Any = fitted._plan(prior, Facts(n), fitted._budget())
    loss = float(plan.law.privacy_loss(np.array([abs(steps)])))
    stated = fitted.protection(abs(np.diff(column.statistic(pair))))
    if not steps or loss > stated * (1 + 1e-9):
        yield f"the closest records of {model} lose {loss:.3g}, stated {stated:.3g}"


def _replayed(model: Any) -> Iterator[str]:
    X = np.array([[0.5], [1.0], [2.0]])
    for value in (np.nan, -1e300, 1e300, 2.75):
        other = np.array([[0.5], [value], [2.0]])
        yield from replay(model, X, None, other, None).divergences
