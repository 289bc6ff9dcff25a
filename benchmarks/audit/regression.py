"""Statistical audit of regressions, step by step: histograms, modes, scores, products, draws.

A regression is released in several steps, each with a share of epsilon. For every step the worst
neighbours are looked for among all records of a small world: those whose laws lose most. Then the
step is drawn many times on both sides and judged by the exact log likelihood ratio of the law that
it draws from. No step may lose more than its share, and if its noise is halved it must be seen.
Of a logistic regression these are histograms, the mode, the curvature and draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.audit._cases import Row
from benchmarks.audit._models import ADDED, RECORD
from benchmarks.audit.tools.ratios import audit_ratios, drawn_steps
from benchmarks.audit.tools.recording import ModeSearch, Recording, lost, planted
from benchmarks.audit.tools.steps import Added, Ball, PerturbedMinimum, StepLaw
from benchmarks.audit.tools.universes import MomentUniverse, plan_for
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.convex import hull
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.perturbed import PerturbedLoss
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.convex.record_sums import STEPS, VectorSum
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic.blocks import BINS, Blocks, even_nodes
from dpbayes_sklearn.logistic.curvature import CurvaturePlan, coordinates
from dpbayes_sklearn.logistic.draws import LogisticDrawPlan
from dpbayes_sklearn.logistic.mode import LogisticLoss, plan_mode
from dpbayes_sklearn.logistic.record_sums import CodedRecords, LabelledRecords, MappedRecords
from dpbayes_sklearn.logistic.release import LookPlan
from dpbayes_sklearn.mechanisms import MAP, Auto, Fourier, Gaussian, Laplace, Mechanism, Sampler
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.gradient import GradientNoise, gaussian_noise
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.regression.gram import GramMatrix
from dpbayes_sklearn.schema import Categories, Interval

RUNS = {"noise": 400_000, "draws": 1_000_000, "modes": 20_000}
LEAST = {"noise": 20_000, "draws": 400_000, "modes": 4_000}  # enough to see half the noise
_LEAST_LOSS = 0.2
GAUSSIAN = Fraction(1), Fraction(1, 100)  # epsilon and delta
DELTA = Fraction(1, 10)  # of a mode, so large that few runs see half of its noise


class Worst(NamedTuple):
    """A step of two neighbours that tells most about them, and its part of epsilon."""

    one: StepLaw
    other: StepLaw
    share: Fraction


@dataclass(frozen=True)
class ReplacedRecord:
    """A release of ``others`` equal records and one more, which neighbours replace."""

    name: str
    mechanism: Mechanism
    domain: MomentUniverse
    other: tuple[float, ...]
    others: int
    epsilon: Fraction
    prior: GaussianPrior
    unit: PrivacyUnit = RECORD

    def __str__(self) -> str:
        return self.name

    def worst_steps(self) -> list[Worst]:
        """Return every step at the pair of neighbours whose laws lose most there."""
        among = [self.domain.records.index(self.other)] * self.others
        budget = Budget(self.epsilon, unit=self.unit)
        sides: list[list[StepLaw]] = []
        past: Recording | None = None
        for record in range(len(self.domain.records)):
            data = self.domain.statistics([*among, record])
            past = drawn_steps(self.mechanism, data, self.prior, budget, past, record)
            sides.append([step for step in past.steps if not isinstance(step, ModeSearch)])
        plan = plan_for(self.mechanism, data, self.prior, budget)
        return [
            Worst(
                *max(combinations(steps, 2), key=lambda pair: (_loss(*pair), _entries(*pair))),
                Fraction(listed.cost.epsilon),
            )
            for listed, steps in zip(plan.steps, zip(*sides, strict=True), strict=True)
        ]

    def reached(self, worst: Sequence[Worst]) -> list[float]:
        """Return what the worst neighbours of every step lose; it can be less than its share."""
        return [min(float(share), _loss(one, other)) for one, other, share in worst]


def kind_of(step: StepLaw) -> str:
    """Return which number of runs a step takes."""
    if isinstance(step, PerturbedMinimum):
        return "modes"
    return "draws" if isinstance(step, Ball) else "noise"


def _loss(one: StepLaw, other: StepLaw) -> float:
    return float(max(one.loss(other), other.loss(one)))


def _entries(one: StepLaw, other: StepLaw) -> int:
    """Return how many entries differ: of equal losses, what more of them tell is seen sooner."""
    centres = [getattr(side, "centre", np.zeros(1)) for side in (one, other)]
    return int(np.count_nonzero(centres[0] - centres[1]))


def _cases() -> Iterator[ReplacedRecord]:
    numbers = MomentUniverse(Design((Interval(-1, 1), Interval(-1, 1))), levels=3)
    line, five = MomentUniverse(Design((Interval(-1, 1),)), levels=3), Fraction(5)
    middle, prior = (0.0, 0.0, 0.0), numbers.prior(1.0)
    yield ReplacedRecord("moments, fourier", Fourier(), numbers, middle, 40, five, prior)
    yield ReplacedRecord("moments, laplace", Laplace(), line, middle[1:], 40, five, line.prior(1.0))
    # others at 0 hold the mode there, where the records at the ends have residuals beyond its limit
    engine = Auto(), line, middle[1:]
    yield ReplacedRecord("whole recipe", *engine, 200, 2 * five, line.prior(1.0))
    yield ReplacedRecord("look, mode and level", MAP(), *engine[1:], 400, five, line.prior(1.0))
    # A draw loses its whole share where residuals reach 1 + BR with BR = 1. Others at one end keep
    # most draws there, and the few at the other end tell most.
    slope = MomentUniverse(Design((Interval(-1, 1),), intercept=False), levels=3)
    flat = GaussianPrior(slope.design, precision=1e-6, coef_bound=1.0)
    for draws in (Sampler(), MAP()):
        name = f"draws, {draws.name()}"
        yield ReplacedRecord(name, draws, slope, (1.0, -1.0), 1, five, flat)


CASES = tuple(_cases())


def mode_steps(epsilon: Fraction = Fraction(20)) -> Worst:
    """Return the mode of the whole recipe, at an epsilon that few runs can show."""
    worst = replace(CASES[2], epsilon=epsilon).worst_steps()
    return next(step for step in worst if kind_of(step.one) == "modes")


def score_steps(epsilon: Fraction = Fraction(2)) -> Worst:
    """Return noise of a ball on a score that a replaced record turns round: the worst."""
    asked = VectorSum(3)
    side = np.array([STEPS, 0, 0])
    return Worst(*(Added(c, asked.law(RECORD, epsilon)) for c in (side, -side)), epsilon)


def matrix_steps(epsilon: Fraction = Fraction(2)) -> Worst:
    """Return matrix noise on the moments of two records that are nearly orthogonal: the worst."""
    design, grid = Design((Interval(-1, 1),)), 2**6
    matrix = GramMatrix.of(design)
    law, sides = matrix.law(epsilon, grid), []
    for target in (1.0, -1.0):
        z = np.array([1, 1, target]) * grid
        moments = np.outer(z, z)[matrix.rows, matrix.columns].astype(np.int64)
        sides.append(Added(moments, law))
    return Worst(*sides, epsilon)


class _Labelled(NamedTuple):
    """Rows of (value, label) of one column."""

    blocks: Blocks
    rows: tuple[tuple[float, int], ...]

    @property
    def coded(self) -> CodedRecords:
        table = np.array([row[:1] for row in self.rows], float).reshape(-1, 1)
        records = LocalRecords([(Table(table), np.array([row[1] for row in self.rows], int))])
        return LabelledRecords(self.blocks, Categories([0, 1]), records).read()

    @property
    def mapped(self) -> MappedRecords:
        return self.coded.mapped(even_nodes(len(self.blocks.numbers)))


def logistic_steps() -> Iterator[tuple[str, Worst, str]]:
    """Yield the steps of logistic regressions at neighbours that lose all, and what runs they need.

    Two records with residuals of -1 and 1 move the gradient most; others hold the mode where they
    have these. One more keeps most draws at one end, and the few at the other end tell most.
    """
    two, levels = Fraction(2), Blocks((Categories(range(2)),))
    number, slope = Blocks((Interval(0, 1),), "linear"), replace(levels, intercept=False)
    look = LookPlan.of(number, (0,), two, RECORD)
    ends = [_Labelled(number, ((x, 0),)) for x in (0.0, 1.0)]
    steps = [_step(lambda noise, s=s: noise.add(look.ask(s.coded), look.law)) for s in ends]
    yield "histograms", Worst(*steps, two), "noise"
    apart = ((0.0, 0),) * 30 + ((1.0, 1),) * 30
    sides = [_Labelled(levels, (*apart, own)).mapped for own in ((0.0, 1), (1.0, 0))]
    mode = plan_mode(levels, 61, two, RECORD, 100.0, 1e-6)
    losses = [PerturbedLoss(LogisticLoss(side, levels), mode) for side in sides]
    steps = [_step(lambda noise, own=own: noise.minimum(own)) for own in losses]
    yield "mode", Worst(*steps, two), "modes"
    sides = [_Labelled(number, ((1.0, 0),) * k).mapped for k in (0, 1)]
    far = [np.eye(BINS)[0]]  # the record is at the other end
    known = coordinates(number, sides[0].tables, far, [0.0])
    curvature = CurvaturePlan.of(number, 2, two, ADDED, known.limit)
    asked = [curvature.ask(side, np.zeros(2), known.centred) for side in sides]
    steps = [_step(lambda noise, own=own: noise.add([own], curvature.law)) for own in asked]
    yield "curvature", Worst(*steps, two), "noise"
    around = plan_mode(slope, 2, two, ADDED, 100.0, 1e-6)
    draws = LogisticDrawPlan.of(slope, around, 2, two, ADDED, 1e-6, 1)
    sides = [_Labelled(slope, ((0.0, 1),) * k).mapped for k in (1, 2)]
    asked = [draws.ask(side, np.array([-30.0])) for side in sides]
    steps = [_step(lambda noise, own=own: draws.draw(own, None, noise)) for own in asked]
    yield "draw", Worst(*steps, two), "draws"


def gaussian_modes() -> tuple[list[StepLaw], list[StepLaw], Budget]:
    """Return a mode with Gaussian noise at neighbours that lose most: others hold it between them.

    For one column pure noise would be smaller.
    """
    slope = MomentUniverse(Design((Interval(-1, 1),), intercept=False), levels=3)
    among, budget = [slope.records.index((1.0, 0.0))] * 100, Budget(Fraction(1), DELTA)

    def noise(design: Design, *public: Any) -> GradientNoise:
        return gaussian_noise(hull._block_shape(design), *public)

    past, steps = None, list[list[StepLaw]]()
    with planted((hull, "_gradient_noise", noise)):
        for t in (1.0, -1.0):
            data = slope.statistics([*among, slope.records.index((1.0, t))])
            past = drawn_steps(MAP(), data, slope.prior(1.0), budget, past, 0)
            steps.append([s for s in past.steps if isinstance(s, PerturbedMinimum)])
        plan = plan_for(MAP(), data, slope.prior(1.0), budget)
    (cost,) = (step.cost for step in plan.steps if step.law is None)
    return steps[0], steps[1], cost


def gaussian_sides() -> tuple[list[StepLaw], list[StepLaw], Budget]:
    """Return all steps of two neighbours, with Gaussian noise, that lose most."""
    slope = MomentUniverse(Design((Interval(-1, 1),)), levels=3)
    prior, budget = slope.prior(1.0), Budget(*GAUSSIAN)
    among, past, sides = [slope.records.index((0.0, 0.0))] * 400, None, list[list[StepLaw]]()
    for record in range(len(slope.records)):
        data = slope.statistics([*among, record])
        past = drawn_steps(Gaussian(), data, prior, budget, past, record)
        sides.append(past.steps)
    one, other = max(combinations(sides, 2), key=lambda pair: _rho(*pair))
    return one, other, budget


def _rho(one: Sequence[StepLaw], other: Sequence[StepLaw]) -> float:
    return sum(lost(*steps).rho for steps in zip(one, other, strict=True))


def _step(release: Callable[[Noise], Any]) -> StepLaw:
    """Return the first step that a release takes."""
    recording = Recording()
    release(recording.noise())
    return recording.steps[0]


def relative_bounds(
    case: ReplacedRecord, worst: Sequence[Worst], scale: float, sharper: bool
) -> Any:
    """Return for every step the bound on its loss over its share.

    With half the noise, over what its worst neighbours lose with all of it. What loses little is
    left out: it takes too many runs.
    """
    bounds = []
    for (one, other, share), reached in zip(worst, case.reached(worst), strict=True):
        kind = kind_of(one)
        if kind == "modes" or reached < _LEAST_LOSS:  # modes: `mode_steps`
            continue
        runs = max(LEAST[kind], int(RUNS[kind] * scale))
        found = audit_ratios([one], [other], runs, sharper).epsilon
        bounds.append(found / (reached if sharper else float(share)))
    return np.array(bounds)


def run(scale: float) -> Iterator[Row]:
    """Audit every step of every mechanism, as it is and with half the noise."""
    yield from single_steps(scale)
    yield from gaussian_steps(scale)
    for case in CASES:
        yield from every_step(case, scale)


def single_steps(scale: float) -> Iterator[Row]:
    """Audit noise of matrices and of a ball, and the steps of a logistic regression."""
    steps = [("matrix noise", matrix_steps(), "noise"), ("score", score_steps(), "noise")]
    steps += [("mode with noise of a ball", mode_steps(), "modes")]
    steps += [(f"logistic regression, {name}", *rest) for name, *rest in logistic_steps()]
    for name, (one, other, whole), kind in progress(steps, "steps"):
        share, runs = float(whole), max(LEAST[kind], int(RUNS[kind] * scale / 2))
        for sharper, what in ((False, "as it is"), (True, "with half the noise")):
            bound = audit_ratios([one], [other], runs, sharper).epsilon / share
            passed, must = (bound > 1, "> 1") if sharper else (bound <= 1, "<= 1")
            what = f"{name} {what}"
            yield Row(what, f"bound / share = {bound:.3f}", must, passed)


def gaussian_steps(scale: float) -> Iterator[Row]:
    """Audit a release of products, all of its steps together, and a mode, at their delta."""
    for name, kind, (one, other, budget) in (
        ("gaussian products", "noise", gaussian_sides()),
        ("mode with Gaussian noise", "modes", gaussian_modes()),
    ):
        for sharper, must in ((False, "<= 1"), (True, "> 1")):
            runs = max(LEAST[kind], int(RUNS[kind] * scale))
            found = audit_ratios(one, other, runs, sharper, float(budget.delta)).epsilon
            bound = found / float(budget.epsilon)
            what = f"{name}, all {len(one)} steps" + ", half the noise" * sharper
            yield Row(what, f"bound / epsilon = {bound:.3f}", must, (bound > 1) == sharper)


def every_step(case: ReplacedRecord, scale: float) -> Iterator[Row]:
    """Audit the steps of a release one by one; their shares add up to epsilon."""
    worst = case.worst_steps()
    total, name = float(sum(step.share for step in worst)), str(case)
    what = f"linear regression, {name}: {len(worst)} steps"
    adds = bool(np.isclose(total, float(case.epsilon)))
    yield Row(what, f"shares add to {total:g}", f"{case.epsilon}", adds)
    largest = relative_bounds(case, worst, scale, sharper=False).max()
    what = f"{name}, the step that shows most of its share"
    yield Row(what, f"bound / share = {largest:.3f}", "<= 1", largest <= 1)
    least = relative_bounds(case, worst, scale, sharper=True).min()
    what = f"{name} with half the noise, the step that shows least"
    yield Row(what, f"bound / loss = {least:.3f}", "> 1", least > 1)
