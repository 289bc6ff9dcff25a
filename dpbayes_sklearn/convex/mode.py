r"""A linear model of few records: a perturbed mode in windows, and its level.

1. **Look.** Even histograms of the target, and of numbers if there are enough records: they become
   windows, in which numbers lie in [-1, 1].
2. **Mode.** The perturbed minimum of Huber's loss (:mod:`~dpbayes_sklearn.convex.perturbed`).
3. **Residuals.** A histogram of their sizes: their variance, and a limit of the next step.
4. **Level.** The sum of residuals that are cut at the limit. Huber's centre of a skewed target is
   not its mean; this corrects the constant, as far as it is not noise.

Single coefficients have no intervals: their errors are not known from so few records.

*Privacy.* As for :mod:`~dpbayes_sklearn.convex.linear`, whose steps these are: the last two ask for
residuals in the coordinates of the constant alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import attrgetter

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.convex.design import Windows
from dpbayes_sklearn.convex.estimates import Tails, choose_limits
from dpbayes_sklearn.convex.hull import hull_body, record_squares
from dpbayes_sklearn.convex.linear import places
from dpbayes_sklearn.convex.losses import HuberLoss, InWindows, least_ridge
from dpbayes_sklearn.convex.perturbed import (
    Body,
    PerturbedLoss,
    PerturbedPlan,
    perturbed_mode,
    search_share,
)
from dpbayes_sklearn.convex.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.convex.record_sums import (
    BINS,
    STEPS,
    UNIT_TARGET,
    Histograms,
    Target,
    VectorSum,
    count_evenly,
)
from dpbayes_sklearn.convex.records import LinearRecords, SumsPlan
from dpbayes_sklearn.convex.tails import EDGES, MIDDLES, Counts, Place
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.noise.gradient import search_delta
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.release import Facts, Step

_LOOK_COUNTS = 60.0  # The look gets what this many records are worth, for every column.
_LEAST_LOOK, _MOST_LOOK = Fraction(1, 20), Fraction(1, 4)  # Parts of epsilon.
_LOCATED = 200.0  # Numbers are located if there are so many records times epsilon for each.
# Residuals and level get what this many records are worth each, if that is at most this part.
_LEVEL_COUNTS, _MOST_LEVEL = 40.0, Fraction(1, 25)
_VOLUME = Fraction(1, 8)  # The determinants cost this part of the share of the mode.
_REACH = 2.5  # Windows reach so many spreads from their centre.
_USUAL_SPREAD = 0.3  # Of a number that was not located, on the scale of its bounds.
_EXPLAINED = 0.2  # Share of the target's variance that features usually explain.
_CENTRE = 0.1  # Usual square of the distance from a target's located centre to its mean.
_SKEW = 0.05  # Usual level of residuals of a mode, in deviations.
MOST_PARAMETERS = 4000
"""More need tens of gigabytes."""


@dataclass(frozen=True)
class Found:
    """What earlier steps have released: all of it public."""

    n: int = 0  # Records with a target.
    target: Target = UNIT_TARGET
    place: Place | None = None
    windows: Windows = field(default_factory=lambda: Windows.whole(0))
    squares: FloatArray = field(default_factory=lambda: np.zeros(0))  # Mean squares in windows.
    rows: InWindows | None = None
    plan: PerturbedPlan | None = None  # Noise and ridge of the mode.
    mode: FloatArray = field(default_factory=lambda: np.zeros(0))
    # The expected parameters, and their variances.
    belief: FloatArray = field(default_factory=lambda: np.zeros(0))
    variance: FloatArray = field(default_factory=lambda: np.zeros(0))
    tails: Tails | None = None
    limit: float = 1.0
    level: float = 0.0  # What is added to the constant.
    level_sd: float = 0.0
    draws: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class ModePlan(SumsPlan[GaussianPosterior]):
    """Look, mode, residuals, level."""

    prior: GaussianPrior

    start = Found()

    @classmethod
    def of(cls, mechanism: str, prior: GaussianPrior, facts: Facts, budget: Budget) -> ModePlan:
        """Return the plan, refusing what cannot be released."""
        if prior.design.width > MOST_PARAMETERS:
            raise ValueError(
                f"The model has {prior.design.width} coefficients, more than {MOST_PARAMETERS}: "
                "merge categories or leave out columns."
            )
        plan = cls(cost=budget, mechanism=mechanism, prior=prior, facts=facts)
        gaussian = plan.unit_body.law.independent
        cost = budget._replace(rho=None) if gaussian else budget.without_delta
        return replace(plan, cost=cost)

    @cached_property
    def epsilon(self) -> Fraction:
        """The whole epsilon."""
        return Fraction(self.cost.epsilon)

    @cached_property
    def located(self) -> int:
        """How many numbers are located: all or none."""
        numbers = int(self.prior.design.numbers.sum())
        return numbers if self._records >= _LOCATED * numbers else 0

    @cached_property
    def _records(self) -> float:
        return self.facts.n * float(self.cost.unit.equivalent(self.epsilon))

    @cached_property
    def look_share(self) -> Fraction:
        """The epsilon of the look."""
        wanted = Fraction(_LOOK_COUNTS * (1 + self.located) / self._records)
        return self.epsilon * min(max(wanted, _LEAST_LOOK), _MOST_LOOK)

    @cached_property
    def mode_share(self) -> Fraction:
        """The epsilon of the mode."""
        return self.epsilon - self.look_share - 2 * self.level_share

    @cached_property
    def level_share(self) -> Fraction:
        """The epsilon of residuals and of the level, each; none if noise would hide the level."""
        part = Fraction(_LEVEL_COUNTS / self._records)
        wanted = self.prior.design.intercept and part <= _MOST_LEVEL
        return self.epsilon * part if wanted else Fraction(0)

    @property
    def purely(self) -> bool:
        """Whether the mode spends no delta."""
        return False

    def body(self, h: float) -> Body:
        """Return the noise of gradients for a limit."""
        share = self.mode_share
        pure = self.purely or not self.cost.delta
        search = search_share(share)
        delta = Fraction(0) if pure else search_delta(self.cost.delta, search)
        return hull_body(
            self.prior.design, h, share - search - share * _VOLUME, self.cost.unit, delta
        )

    @cached_property
    def unit_body(self) -> Body:
        """The noise of gradients for a limit of 1."""
        return self.body(1.0)

    @cached_property
    def steps(self) -> tuple[Step[LinearRecords, Found], ...]:
        """Look, mode, residuals, level."""
        own, bins = self.level_share, len(EDGES) + 1
        if not own:
            return self.look, self.mode
        counts, sums = Histograms(1, (bins, bins)), VectorSum(1)
        return (
            self.look,
            self.mode,
            self._step("sizes of residuals", counts, own, self.ask_sizes, self.read_sizes),
            self._step("level", sums, own, self.ask_level, self.read_level),
        )

    @cached_property
    def look(self) -> Step[LinearRecords, Found]:
        """Histograms of the target, and of numbers that are located."""
        evenly = Histograms(1 + self.located, (BINS + 1, *(BINS,) * self.located))
        what, share = "where target and columns lie", self.look_share
        return self._step(what, evenly, share, self.ask_look, self.read_look)

    @cached_property
    def mode(self) -> Step[LinearRecords, Found]:
        """The perturbed mode."""
        delta = self.cost.delta if self.unit_body.law.independent else Fraction(0)
        cost = Budget(self.mode_share, delta, self.cost.unit)
        law = attrgetter("plan")
        return perturbed_mode(cost, law, self.ask_mode, self.read_mode, signed=False)

    def ask_look(self, records: LinearRecords, found: Found) -> list[IntArray]:
        """Return the counts of targets, with missing ones last, and of numbers."""
        counts = records.asked(count_evenly)
        return [np.append(counts[0], records.n_missing), *counts[1 : 1 + self.located]]

    def read_look(self, found: Found, noisy: list[IntArray], law: NoiseLaw) -> Found:
        """Return windows and their usual mean squares."""
        design, (n, own, *columns) = self.prior.design, places(self.facts, noisy, law)
        centres, halves = np.zeros(design.width), np.ones(design.width)
        spreads = np.full(int(design.numbers.sum()), _USUAL_SPREAD)
        if self.located:
            spreads = np.array([each.spread for each in columns])
            middles = np.array([each.centre for each in columns])
            away = np.zeros(len(middles)) if design.intercept else np.abs(middles)
            middles = middles * design.intercept  # without a constant windows are around 0
            halves[design.numbers] = np.minimum(_REACH * spreads + away, 1 + np.abs(middles))
            spreads = np.hypot(spreads, away)
            centres[design.numbers] = middles
        squares = np.where(design.signs, 1.0, 1 / design.n_values)
        squares[design.numbers] = np.minimum((spreads / halves[design.numbers]) ** 2, 1.0)
        centre = own.centre if design.intercept else 0.0
        found = replace(
            found, n=n, target=Target(centre, own.spread), place=own,
            windows=Windows(centres, halves), squares=squares,
        )  # fmt: skip
        rows, plan = self.problem(found) if self.mode_share else (None, None)
        return replace(found, rows=rows, plan=plan)

    def problem(self, found: Found) -> tuple[InWindows, PerturbedPlan]:
        """Return how records are read, and the noise and ridge of the mode: all public."""
        design, n, share = self.prior.design, found.n, self.mode_share
        assert found.place is not None
        seen, usual = n * self.with_constant(1.0, found.squares), self.usual(found)
        h = limit_of(found.place, found.target, seen, usual, self.unit_body.variance)
        rows = InWindows(found.windows, found.target, h, record_squares(design))
        shape, far = rows.shape(self.facts.n_bound), found.target.farthest

        def ridge(body: Body) -> FloatArray:
            return np.maximum(body.variance / (seen * usual), least_ridge(shape, far, body))

        return rows, PerturbedPlan.of(
            shape, share, share * _VOLUME, self.cost.unit, lambda _: self.body(h), ridge
        )

    def with_constant(self, constant: float, each: FloatArray) -> FloatArray:
        """Return numbers of the coordinates, after that of the constant if there is one."""
        return np.append(constant, each) if self.prior.design.intercept else each

    def usual(self, found: Found) -> FloatArray:
        """Return the expected squares of parameters, in deviations of the target."""
        design = self.prior.design
        columns = len(design.features) + design.intercept
        usual = 1 / (columns * found.squares / _EXPLAINED + self.declared(found))
        assert found.place is not None
        level = (found.place.centre_sd / found.target.deviation) ** 2
        return self.with_constant(_EXPLAINED / columns + _CENTRE + level, usual)

    def declared(self, found: Found) -> FloatArray:
        """Return the declared prior precisions, in deviations of the target and windows."""
        return self.prior.precisions(found.target.deviation) / found.windows.halves**2

    def ask_mode(self, records: LinearRecords, found: Found) -> PerturbedLoss:
        """Return the loss of records in windows."""
        assert found.rows is not None
        assert found.plan is not None
        return PerturbedLoss(HuberLoss(records, found.rows, len(found.plan.ridge)), found.plan)

    def read_mode(self, found: Found, mode: FloatArray) -> Found:
        """Return the mode, less what the ridge takes, and what is nominally known of its error.

        The ridge of numbers and signs is taken back as far as their usual size needs none. That of
        levels is not: one by one it would move the mean of all predictions, which all columns of
        levels have in common with the constant. Nor is it where numbers were not located: how much
        they vary is then not known (seven columns that are correlated: R2 .01 of .54, else .21).
        """
        plan = found.plan
        assert plan is not None
        seen, usual = found.n * self.with_constant(1.0, found.squares), self.usual(found)
        gain, error = seen / (seen + plan.ridge), plan.body.variance / (seen + plan.ridge) ** 2
        variance = 1 / (gain**2 / error + 1 / usual)
        joint = self.with_constant(1.0, self.prior.design.levels.astype(float)) > 0
        back = variance * gain / error if self.located else np.minimum(variance * gain / error, 1.0)
        belief = np.where(joint, 1.0, back) * mode
        return replace(found, mode=mode, belief=belief, variance=variance)

    def _loss(self, records: LinearRecords, found: Found) -> HuberLoss:
        assert found.rows is not None
        return HuberLoss(records, found.rows, len(found.mode))

    def ask_sizes(self, records: LinearRecords, found: Found) -> list[IntArray]:
        """Return the counts of positive and of negative residuals by size."""
        loss = self._loss(records, found)
        return [*loss.count_residuals(loss.at(found.belief), EDGES)]

    def read_sizes(self, found: Found, noisy: list[IntArray], law: NoiseLaw) -> Found:
        """Return their variance, and the limit of the level."""
        sd = math.sqrt(law.variance(0))
        up, down = (Counts.of(np.asarray(each, np.float64), sd) for each in noisy)
        far = found.target.farthest
        fitted = float(np.abs(found.belief).sum())
        tails = Tails(up, down, up, sd, far + fitted, 1.0)
        score = math.sqrt(self.steps[-1].law.variance(0)) / STEPS
        limit = choose_limits(tails, found.n, 1, score, 0.0, math.inf).score
        return replace(found, tails=tails, limit=limit)

    def ask_level(self, records: LinearRecords, found: Found) -> list[IntArray]:
        """Return the sum of residuals, each cut at the limit."""
        loss = self._loss(records, found)
        return [loss.sum_residuals(loss.at(found.belief), found.limit)]

    def read_level(self, found: Found, noisy: list[IntArray], law: NoiseLaw) -> Found:
        """Return the level of the residuals, shrunk by its noise."""
        unit = found.limit / STEPS / found.n
        assert found.tails is not None
        beyond = found.tails.beyond(found.limit, found.n)
        error = law.variance(0) * unit**2 + beyond.variance / found.n
        level = float(noisy[0][0]) * unit + beyond.uneven / found.n
        return replace(
            found, level=level * _SKEW**2 / (_SKEW**2 + error), level_sd=math.sqrt(error)
        )

    def posterior(self, found: Found) -> GaussianPosterior:
        """Return the model in windows; its coefficients have no intervals."""
        design, units = self.prior.design, found.target
        first = 0 if design.intercept else 1
        w, variance = (np.append(np.zeros(first), each) for each in (found.belief, found.variance))
        kept = min(found.level_sd**2, _SKEW**2)
        w[0], variance[0] = w[0] + found.level, variance[0] + kept * design.intercept
        back = found.windows.to_bounds() * units.deviation
        mean = back @ w
        mean[0] += units.centre
        residual = self.prior.noise_variance
        if residual is None:
            sizes = found.tails
            square = 1.0 if sizes is None else sizes.mean_square(sizes.farthest_score)
            residual = square * units.deviation**2
        return GaussianPosterior(
            mean, (back * variance) @ back.T, residual, None, found.windows, found.n
        )


_LEVEL_WEIGHT = 0.1  # The level is corrected by a later step, or shrunk by the ridge anyway.
_LIMITS = np.geomspace(1.0, 6.0, 12)
"""Limits of a mode, in spreads of the target."""


def limit_of(
    at: Place, target: Target, seen: FloatArray, usual: FloatArray, noise: FloatArray
) -> float:
    """Return the h with the least predicted error of the mode; the noise is that of h = 1."""
    away = target.map(MIDDLES)

    def cost(h: float) -> float:
        cut = np.clip(away, -h, h)
        inside = max(float(at.shares @ (np.abs(away) <= h)), 0.1)
        error = noise * (h / (inside * seen)) ** 2
        shrunk = float((seen * error * usual / (error + usual)).sum()) / seen.max()
        level = float(at.shares @ (away - cut))
        sampling = len(seen) * float(at.shares @ cut**2) / (seen.max() * inside**2)
        return float(shrunk + sampling + _LEVEL_WEIGHT * level**2)

    return float(min(_LIMITS, key=cost))
