r"""The steps of a release of rates: look, level, mode, curvature, dispersion.

1. **Look** (a tenth of epsilon). As for :mod:`~dpbayes_sklearn.logistic.release`.
2. **Level** (a twenty-fifth). Sums of counts, and of exposures: the rate of all records, which
   parameters are relative to, so that the ridge shrinks to it. A record changes each of these sums
   of numbers in [0, 1] by at most 1.
3. **Mode**. The perturbed minimum of the loss over the cap
   (:mod:`~dpbayes_sklearn.rates.records`): noise for a slope of 1, and
   :math:`\varepsilon_1 = m/t + k\ln(1 + \tfrac12\ell)` with the :math:`\ell` of
   :mod:`~dpbayes_sklearn.logistic.mode`, whose proof holds as it is.
4. **Curvature** (a fifth, if intervals are released), with the limit T on records and the scale
   :math:`mT/2\varepsilon`: second derivatives are at most twice those of a logistic loss.
5. **Dispersion** (a twenty-fifth, with intervals). The sum of square residuals, which a record
   changes by at most 1. They are not cut at less: where few counts are large and all others small,
   these few make the sampling error.
6. **Square residuals** (three fiftieths, with intervals). The sum of
   :math:`r^2\varphi\varphi^\top`, in the coordinates of the curvature and with the same limit T: as
   :math:`r^2 \le 1`, the scale :math:`mT/\varepsilon` is enough. It is the variance of the score,
   however counts vary. Where noise hides an entry it is as many times the curvature as the
   dispersion is that of the constant, and its doubt, twice as much, widens intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.convex.perturbed import PerturbedLoss, PerturbedPlan, perturbed_mode
from dpbayes_sklearn.logistic.blocks import PLACES
from dpbayes_sklearn.logistic.curvature import (
    AskedCurvature,
    Curvature,
    CurvaturePlan,
    coordinates,
    half_way,
    widest_norm,
)
from dpbayes_sklearn.logistic.mode import LogisticLoss, exact_mode, plan_mode
from dpbayes_sklearn.logistic.posterior import positive_part
from dpbayes_sklearn.logistic.record_sums import (
    MOST_RECORDS,
    CodedRecords,
    LabelledRecords,
    MappedRecords,
    on_lattice,
)
from dpbayes_sklearn.logistic.release import Look, LookPlan, seen, seen_exactly
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.rates.posterior import RatePosterior, bend_of_rates
from dpbayes_sklearn.rates.records import (
    HEAVIEST,
    STEPS,
    LevelSums,
    RateBlocks,
    noise_of_sums,
    sum_squares,
)
from dpbayes_sklearn.release import Facts, Plan, Step, StepPlan

_LOOK, _LEVEL = Fraction(1, 10), Fraction(1, 25)  # Parts of epsilon.
_CURVATURE, _DISPERSION, _SQUARES = Fraction(1, 5), Fraction(1, 25), Fraction(3, 50)
_SQUARE = 4  # Square residuals are at most so many times the largest curvature of a logistic loss.
# Where noise hides it, the variance of a score may be so many times what one dispersion says.
_UNEVEN = 2.0
# From this n epsilon / p on intervals are released unless refused, with at most so many parameters.
_MANY, _MOST_WITH_INTERVALS, _MOST_PARAMETERS = 500.0, 200, 2000
_LEAST_DISPERSION = 1e-6
_PREDICTION_SCALE = 2.0  # Predictions multiply the mode by 1 + this / sqrt(rho).


@dataclass(frozen=True)
class RatePrior:
    """The model before any data."""

    blocks: RateBlocks
    cap: float
    precision: float | None = None  # Prior precision of the contrasts; None for the public rule.
    intervals: bool | None = None  # Whether they are released; None for the public rule.


@dataclass(frozen=True)
class Found:
    """What earlier steps have released: all of it public."""

    look: Look
    n: float = 0.0  # Records with a count.
    level: float = 0.0
    usual: float = 0.0
    rho: float = 1.0
    plan: PerturbedPlan | None = None
    mode: FloatArray = field(default_factory=lambda: np.zeros(0))
    asked: AskedCurvature | None = None
    curvature: Curvature = field(default_factory=Curvature.none)
    dispersion: float = 1.0
    squares_plan: CurvaturePlan | None = None
    scores: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class RatePlan(StepPlan[Any, RatePosterior]):
    """Look, level, mode, and curvature with dispersion and square residuals."""

    prior: RatePrior
    facts: Facts
    intervals: bool

    @cached_property
    def start(self) -> Found:
        """Columns without a look are spread evenly."""
        return Found(seen(self.prior.blocks, (), [], self.facts.n, []))

    def release(self, statistics: LabelledRecords, noise: Noise) -> RatePosterior:
        """Take the steps; the codes of few records are kept meanwhile."""
        return super().release(statistics.read(), noise)

    def share(self, part: Fraction) -> Budget:
        """Return a part of epsilon."""
        return Budget(Fraction(self.cost.epsilon) * part, unit=self.cost.unit)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns that are looked at."""
        blocks = self.prior.blocks
        return blocks.looked_at if self.intervals else blocks.numbers

    @cached_property
    def parts(self) -> tuple[Fraction, ...]:
        """The parts of look and level, and of curvature, dispersion and square residuals."""
        look = _LOOK if self.columns else Fraction(0)
        others = (_CURVATURE, _DISPERSION, _SQUARES) if self.intervals else (Fraction(0),) * 3
        return look, _LEVEL, *others

    @property
    def mode_part(self) -> Fraction:
        """The part of the mode: what is left."""
        return Fraction(1 - sum(self.parts))

    @cached_property
    def steps(self) -> tuple[Step[CodedRecords, Found], ...]:
        """Those that get a part of epsilon."""
        blocks, unit = self.prior.blocks, self.cost.unit
        look, level, curvature, dispersion, squares = map(self.share, self.parts)
        sums = LevelSums(blocks)
        steps = [
            Step(
                "level of the rates", level, sums.law(unit, Fraction(level.epsilon)),
                structure={"kind": "bounded", "columns": sums.size, "grid": STEPS},
                ask=lambda records, _: sums.ask(records), read=self.read_level,
            ),
            perturbed_mode(
                self.share(self.mode_part), attrgetter("plan"), self.ask_mode, self.read_mode,
                signed=True,
            ),
        ]  # fmt: skip
        if self.columns:
            asked = LookPlan.of(blocks, self.columns, Fraction(look.epsilon), unit)
            steps.insert(0, asked.step(look, self.facts.n))
        if self.intervals:
            law = noise_of_sums(1, unit, Fraction(dispersion.epsilon))
            steps += [
                Step(
                    "curvature for intervals", curvature, attrgetter("asked.plan.law"),
                    "exponential noise of a matrix",
                    structure=attrgetter("asked.plan.structure"),
                    ask=self.ask_curvature, read=self.read_curvature,
                ),
                Step(
                    "dispersion of the counts", dispersion, law,
                    structure={"kind": "bounded", "columns": 1, "grid": STEPS},
                    ask=self.ask_dispersion,
                    read=lambda found, noisy: self.read_dispersion(found, noisy, law),
                ),
                Step(
                    "squares of residuals", squares, attrgetter("squares_plan.law"),
                    "exponential noise of a matrix",
                    structure=attrgetter("squares_plan.structure"),
                    ask=self.ask_squares, read=self.read_squares,
                ),
            ]  # fmt: skip
        return tuple(steps)

    # Level and mode

    def read_level(self, found: Found, noisy: Sequence[IntArray]) -> Found:
        """Return the level, by counts and exposures that are positive, and the mode's noise."""
        blocks, epsilon = self.prior.blocks, float(self.cost.epsilon)
        numbers = np.maximum(np.asarray(noisy[0], np.float64) / STEPS, 1.0)
        n = min(numbers[0], max(self.facts.n, 1))
        share = float(np.clip(numbers[1] / n, 1 / n, 1.0))
        usual = 0.0
        for (_, exposure), total in zip(blocks.exposures, numbers[2:], strict=True):
            low, high = exposure.bounds.low, exposure.bounds.high
            usual = math.log(float(np.clip(total / n * high, low, high)))
        level = float(on_lattice(np.array(math.log(share) - usual)))
        information = 4 * share / (1 + share)
        unit = self.cost.unit
        rho = n * float(unit.equivalent(epsilon)) * information / max(blocks.parameters, 1)
        mode = plan_mode(
            blocks, self.facts.n_bound, Fraction(self.share(self.mode_part).epsilon), unit,
            rho, self.prior.precision, heaviest=HEAVIEST,
        )  # fmt: skip
        return replace(found, n=n, level=level, usual=usual, rho=rho, plan=mode)

    def _mapped(self, records: CodedRecords, found: Found) -> MappedRecords:
        return records.mapped(found.look.nodes, found.level)

    def ask_mode(self, records: CodedRecords, found: Found) -> PerturbedLoss:
        """Return the loss of all records."""
        assert found.plan is not None
        loss = LogisticLoss(self._mapped(records, found), self.prior.blocks)
        return PerturbedLoss(loss, found.plan)

    def read_mode(self, found: Found, mode: FloatArray) -> Found:
        """Return the mode, and where the curvature is asked for."""
        if not self.intervals:
            return replace(found, mode=mode)
        assert found.plan is not None
        blocks, look = self.prior.blocks, found.look
        shares, errors = [*look.shares], [*look.errors]
        for j, _ in blocks.exposures:
            shares.insert(j, np.full(PLACES + 1, 1 / (PLACES + 1)))
            errors.insert(j, 0.0)
        known = coordinates(blocks, blocks.tables(look.nodes), shares, errors)
        bend = bend_of_rates(found.level + found.usual)
        point = half_way(known, round(found.n), mode, found.plan.ridge, bend)
        curvature, squares = self.plan_matrices(known.limit)
        asked = AskedCurvature(known, curvature, point)
        return replace(found, mode=mode, asked=asked, squares_plan=squares)

    # Curvature and dispersion

    def plan_matrices(self, limit: float) -> list[CurvaturePlan]:
        """Return the noise of curvature and square residuals for a limit on records."""
        unit, most, blocks = self.cost.unit, self.facts.n_bound, self.prior.blocks
        return [
            CurvaturePlan.of(
                blocks, most, Fraction(self.share(part).epsilon), unit, limit, heaviest
            )
            for part, heaviest in ((_CURVATURE, HEAVIEST), (_SQUARES, _SQUARE))
        ]

    def ask_curvature(self, records: CodedRecords, found: Found) -> list[IntArray]:
        """Return the sum of second derivatives at the point, by coordinates."""
        assert found.asked is not None
        return found.asked.ask(self._mapped(records, found))

    def read_curvature(self, found: Found, noisy: Sequence[IntArray]) -> Found:
        """Return what is known about the curvature."""
        assert found.asked is not None
        bend = bend_of_rates(found.level + found.usual)
        return replace(found, curvature=found.asked.read(noisy, round(found.n), bend))

    def ask_dispersion(self, records: CodedRecords, found: Found) -> list[IntArray]:
        """Return the sum of square residuals, in units of the curvature."""
        coefficients = on_lattice(self.prior.blocks.basis @ found.mode)
        return [sum_squares(self._mapped(records, found), coefficients)]

    def read_dispersion(self, found: Found, noisy: Sequence[IntArray], law: NoiseLaw) -> Found:
        """Return the dispersion, one deviation of its noise above what was released."""
        own = max(float(found.curvature.curvature[0, 0]), 1.0)
        seen = (float(noisy[0][0]) + math.sqrt(law.variance())) / STEPS
        return replace(found, dispersion=max(seen / own, _LEAST_DISPERSION))

    def ask_squares(self, records: CodedRecords, found: Found) -> list[IntArray]:
        """Return the sum of square residuals by coordinates."""
        assert found.asked is not None
        assert found.squares_plan is not None
        mapped, centred = self._mapped(records, found), found.asked.known.centred
        return [found.squares_plan.ask(mapped, found.mode, centred, squares=True)]

    def read_squares(self, found: Found, noisy: Sequence[IntArray]) -> Found:
        """Return the variance of the score: what was released, and what one dispersion says."""
        assert found.asked is not None
        assert found.squares_plan is not None
        matrix, variances = found.squares_plan.read(noisy[0])
        turn = found.asked.known.turn
        about = found.dispersion * positive_part(found.curvature.curvature)
        doubt = _UNEVEN**2 * np.outer(about.diagonal(), about.diagonal())
        kept = doubt / np.maximum(doubt + variances, np.finfo(float).tiny)
        scores = positive_part(about + kept * (turn @ matrix @ turn.T - about))
        scores = scores + np.diag(np.sqrt(kept * variances).diagonal())
        return replace(found, scores=(scores + scores.T) / 2)

    def posterior(self, found: Found) -> RatePosterior:
        """Return the mode and its curvature."""
        assert found.plan is not None
        scale = 1 + _PREDICTION_SCALE / math.sqrt(max(found.rho, 1.0))
        return RatePosterior(
            found.mode, found.look.nodes, found.plan.ridge, found.plan.body.variance, scale,
            *found.curvature, cap=self.prior.cap, level=found.level, usual=found.usual,
            scores=found.scores,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPlan(Plan[LabelledRecords, RatePosterior]):
    """A release without noise, where no privacy is asked for."""

    prior: RatePrior

    def release(self, statistics: LabelledRecords, noise: Noise) -> RatePosterior:
        """Return the mode and the curvature there."""
        records, blocks = statistics.read(), self.prior.blocks
        look = seen_exactly(records, blocks)
        mapped, precision = records.mapped(look.nodes), self.prior.precision
        ridge = np.full(blocks.parameters, 1.0 if precision is None else precision)
        mode = exact_mode(LogisticLoss(mapped, blocks), ridge, HEAVIEST)
        found, basis = Curvature.exact(mapped, blocks, mode), blocks.basis
        scores = basis.T @ mapped.curvature(on_lattice(basis @ mode), squares=True) @ basis
        return RatePosterior(
            mode, look.nodes, ridge, np.zeros(len(mode)), 1.0, *found, cap=self.prior.cap,
            scores=(scores + scores.T) / 2,
        )  # fmt: skip


def plan(prior: RatePrior, facts: Facts, budget: Budget) -> RatePlan | ExactPlan:
    """Return the steps of a release, or refuse it."""
    blocks, unit = prior.blocks, budget.unit
    if facts.n_bound > MOST_RECORDS:
        raise ValueError(f"More than {MOST_RECORDS} records are not supported.")
    few = blocks.parameters <= _MOST_WITH_INTERVALS
    if blocks.parameters > _MOST_PARAMETERS or (prior.intervals and not few):
        most = _MOST_WITH_INTERVALS if prior.intervals else _MOST_PARAMETERS
        raise ValueError(
            f"The model has {blocks.parameters} parameters, more than {most}: merge categories, or "
            "set intervals=False."
        )
    if budget.infinite:
        return ExactPlan(cost=budget.without_delta, mechanism="map", prior=prior)
    enough = facts.n * float(unit.equivalent(float(budget.epsilon))) >= _MANY * blocks.parameters
    intervals = enough and few if prior.intervals is None else prior.intervals
    made = RatePlan(
        cost=budget.without_delta._replace(rho=None), mechanism="map", prior=prior, facts=facts,
        intervals=intervals,
    )  # fmt: skip
    if intervals:
        made.plan_matrices(widest_norm(blocks))
    _ = made.steps  # whatever noise cannot be drawn is refused here, before the charge
    for share in (1e-9, 1.0):  # rates as low and as high as they may turn out
        noisy = np.array([facts.n, share * facts.n, *[facts.n] * len(blocks.exposures)]) * STEPS
        made.read_level(made.start, [noisy])
    return made
