r"""The steps of a release, and their shares: look, mode, curvature.

1. **Look** (a tenth of epsilon, only if there are numbers). A histogram of every number on 16
   equal-width bins, with joint noise of all of them: a record adds one to one bin of each, so a
   replaced record changes :math:`\max_j \|\cdot\|_1` by at most 2, and one that is added by 1. Its
   cumulative sums, mixed with the uniform law, are a rough rank; its ends a window.
2. **Mode** (:mod:`dpbayes_sklearn.logistic.mode`).
3. **Curvature** (.3 of epsilon, or .15 where records are many, if intervals are released). The sum
   of :math:`vv^\top, v = \sqrt{\sigma(1-\sigma)}\,B^\top x` at the released mode, with
   :class:`~dpbayes_sklearn.noise.MatrixNoise` of weights a. Records whose :math:`\sum a_i^2(B^\top
   x)_i^2` exceeds a limit T, which the released histograms suggest, are scaled down to it. As
   :math:`\sigma(1-\sigma) \le \tfrac14`, m records that come or go have a weighted nuclear norm of
   at most mT/4, and the scale :math:`mT/4\varepsilon` is enough.

With ``mechanism="sampler"`` half of the budget of the mode is for draws
(:mod:`dpbayes_sklearn.logistic.draws`), not for a curvature.

*Guarantee.* *Precondition*: schema and prior are public, and so is the number of records, or it was
released before. *Claim*: pure :math:`\varepsilon`-DP; with a delta where the mode has Gaussian
noise, or draws spend it. *Proof*: given what earlier ones released, each step is a function of the
records, private by 1, 3, :mod:`~dpbayes_sklearn.convex.perturbed` and
:mod:`~dpbayes_sklearn.logistic.draws`, so their epsilons add up. ∎
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn._compat import InvalidParameterError
from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.convex.draws import REAL_ARITHMETIC, loss_of_a_draw
from dpbayes_sklearn.convex.perturbed import PerturbedLoss, PerturbedPlan
from dpbayes_sklearn.convex.record_sums import Histograms
from dpbayes_sklearn.logistic.blocks import BINS, Blocks
from dpbayes_sklearn.logistic.curvature import (
    AskedCurvature,
    Curvature,
    CurvaturePlan,
    coordinates,
    half_way,
    widest_norm,
)
from dpbayes_sklearn.logistic.draws import LogisticDrawPlan
from dpbayes_sklearn.logistic.mode import LogisticLoss, exact_mode, plan_mode, records_per_parameter
from dpbayes_sklearn.logistic.ordered import OrderedLoss, OrderedPosterior, plan_ordered, with_cuts
from dpbayes_sklearn.logistic.posterior import LogisticPosterior
from dpbayes_sklearn.logistic.record_sums import (
    MOST_RECORDS,
    CodedRecords,
    LabelledRecords,
    MappedRecords,
)
from dpbayes_sklearn.logistic.softmax import SoftmaxLoss, plan_classes
from dpbayes_sklearn.mechanisms import Mechanism, Sampler
from dpbayes_sklearn.noise import ClassRows, Noise
from dpbayes_sklearn.privacy.budget import Budget, Exact, PrivacyUnit
from dpbayes_sklearn.release import Facts, Plan, Step, StepPlan, composed

# Of ordered classes, which have one parameter a column each, the second times their number.
_FEW_RECORDS, _FEW_WITH_CLASSES = 20, 40
_LOOK_SHARE = Fraction(1, 10)  # Histograms of the numbers get this part of epsilon.
# The curvature gets the first part of epsilon, or the second if records are very many.
_CURVATURE_SHARE, _LESS_CURVATURE_SHARE = Fraction(3, 10), Fraction(3, 20)
# From this n epsilon / p on records are very many, and intervals are released unless refused.
_MANY_PER_PARAMETER = 4000.0
# More parameters than the first are refused; more than the second get no intervals by default.
_MOST_PARAMETERS, _MOST_WITH_INTERVALS = 2000, 200
_HISTOGRAM_TRUST = 0.7  # A released histogram has at most this weight beside the uniform law.
_COUNT_DOUBT = 0.5  # This many standard deviations are taken off a released count.
_WINDOW_TAIL = 0.005  # At most this share of the values lies beyond each end of a window.
_SURE_TAIL = 1.5  # A tail within a window exceeds this many standard deviations of noise.
_PREDICTION_SCALE = 2.0  # Predictions multiply the mode by 1 + this / sqrt(n epsilon / p).


class Look(NamedTuple):
    """What the histograms tell: a map of every number, and the shares of bins or levels."""

    nodes: FloatArray
    shares: tuple[FloatArray, ...]
    errors: tuple[float, ...]


class LookPlan(NamedTuple):
    """The noise of the histograms."""

    blocks: Blocks
    columns: tuple[int, ...]
    law: ClassRows

    @classmethod
    def of(
        cls, blocks: Blocks, columns: tuple[int, ...], epsilon: Fraction, unit: PrivacyUnit
    ) -> LookPlan:
        """Return the plan for a share of epsilon."""
        sizes = tuple(blocks.cells(j).n_values for j in columns)
        return cls(blocks, columns, ClassRows.of(sizes, 1, unit.n_changed, epsilon))

    def ask(self, records: CodedRecords) -> list[IntArray]:
        """Return the histograms, and the number of records that they share."""
        exact = np.split(records.histograms(self.columns), np.cumsum(self.law.values)[:-1])
        return [*exact, np.array([records.records.n])]

    def step(self, cost: Budget, n: int) -> Step[CodedRecords, Any]:
        """Return the step of the histograms; what is found has a look."""
        return Step(
            "histograms of columns", cost, self.law,
            structure=Histograms(len(self.columns), self.law.sizes),
            ask=lambda records, _: self.ask(records),
            read=lambda found, noisy: replace(found, look=self.read(noisy, n)),
        )  # fmt: skip

    def read(self, noisy: Sequence[AnyArray], n: int) -> Look:
        """Return maps and shares of all numbers; n is public, the exact number may not be."""
        deviations = [math.sqrt(self.law.variance(j)) for j in range(len(self.columns))]
        return seen(self.blocks, self.columns, noisy[:-1], n, deviations)


def seen(
    blocks: Blocks,
    columns: tuple[int, ...],
    counts: Sequence[AnyArray],
    n: int,
    deviations: Sequence[float],
) -> Look:
    """Return maps and shares by counts whose noise has these standard deviations."""
    map_of = _rank if blocks.effects == "smooth" else _window
    each = [*zip(counts, deviations, strict=True)]
    numbers = [pair for j, pair in zip(columns, each, strict=True) if j in blocks.numbers]
    maps = [map_of(count, n, deviation) for count, deviation in numbers]
    shares = tuple(
        _shares(*pair) if j in blocks.numbers else _level_shares(*pair)
        for j, pair in zip(columns, each, strict=True)
    )
    errors = tuple(deviation / max(n, 1) for deviation in deviations)
    return Look(np.array(maps).reshape(-1, BINS + 1), shares, errors)


def seen_exactly(records: CodedRecords, blocks: Blocks) -> Look:
    """Return maps and shares of the numbers without noise."""
    columns = blocks.numbers
    ends = np.cumsum([blocks.cells(j).n_values for j in columns])[:-1]
    counts = np.split(records.histograms(columns), ends) if columns else []
    return seen(blocks, columns, counts, max(records.records.n, 1), [0.0] * len(columns))


def _shares(counts: FloatArray, deviation: float) -> FloatArray:
    """Return the shares of bins; even ones if nothing is left."""
    kept = np.maximum(counts - _COUNT_DOUBT * deviation, 0.0)
    return np.asarray(kept / kept.sum()) if kept.sum() > 0 else np.full(len(kept), 1 / len(kept))


def _level_shares(counts: FloatArray, deviation: float) -> FloatArray:
    kept = np.maximum(counts, max(_COUNT_DOUBT * deviation, 1.0))
    return np.asarray(kept / kept.sum())


def _rank(counts: FloatArray, n: int, deviation: float) -> FloatArray:
    """Return the cumulative distribution at the ends of the bins, mixed with the uniform one."""
    trust = _HISTOGRAM_TRUST * n / (n + BINS * deviation)
    mass = trust * _shares(counts[:BINS], deviation) + (1 - trust) / BINS
    return np.concatenate([[0.0], np.minimum(np.cumsum(mass[:-1]), 1.0), [1.0]])


def _window(counts: FloatArray, n: int, deviation: float) -> FloatArray:
    """Return a map that is linear between the ends of a window, and constant beyond."""
    first, last = _end(counts[:BINS], n, deviation), _end(counts[BINS - 1 :: -1], n, deviation)
    if first + last >= BINS:
        first = last = 0
    return np.clip((np.arange(BINS + 1) - first) / (BINS - last - first), 0.0, 1.0)


def _end(counts: FloatArray, n: int, deviation: float) -> int:
    """Return how many bins hold, from this side, no more than a few records and noise."""
    noise = deviation * np.sqrt(np.arange(1, BINS + 1))
    found = int(np.argmax(np.cumsum(counts) > _WINDOW_TAIL * n + _SURE_TAIL * noise))
    return max(0, found - 1)


@dataclass(frozen=True)
class LogisticPrior:
    """The model before any data."""

    blocks: Blocks
    precision: float | None = None  # Prior precision of the contrasts; None for the public rule.
    intervals: bool | None = None  # Whether the curvature is released; None for the public rule.
    n_classes: int = 2
    ordered: bool = False  # Whether three classes and more have an order.

    @property
    def has_cuts(self) -> bool:
        """Whether the mode has a block of cuts between classes."""
        return self.ordered and self.n_classes > 2

    @property
    def of_mode(self) -> tuple[Blocks, int]:
        """The blocks of the mode, and its classes: two of ordered ones, with a block of cuts."""
        cut = self.has_cuts
        return (with_cuts(self.blocks, self.n_classes), 2) if cut else (self.blocks, self.n_classes)

    @property
    def few_records(self) -> int:
        """Records times epsilon per parameter below which naive Bayes is usually better."""
        if self.n_classes == 2:
            return _FEW_RECORDS
        return _FEW_WITH_CLASSES * (self.n_classes if self.has_cuts else 1)

    @property
    def structure(self) -> dict[str, Any]:
        """What the loss of a mode follows from."""
        known = {"kind": "gradients", "signed": not self.has_cuts, "classes": self.n_classes}
        return known | ({"ordered": True} if self.has_cuts else {})

    def loss(self, records: MappedRecords) -> LogisticLoss:
        """Return the loss of all records."""
        blocks, n_classes = self.of_mode
        if n_classes > 2:
            return SoftmaxLoss(records, blocks, n_classes)
        return (OrderedLoss if self.has_cuts else LogisticLoss)(records, blocks)

    def perturbed(
        self, n: int, epsilon: Fraction, unit: PrivacyUnit, rho: float, delta: Exact
    ) -> PerturbedPlan:
        """Return the plan of the mode; with two classes it may have Gaussian noise."""
        blocks, n_classes = self.of_mode
        given = n, epsilon, unit, rho, self.precision
        if n_classes > 2:
            return plan_classes(blocks, n_classes, *given)
        return plan_ordered(blocks, *given) if self.has_cuts else plan_mode(blocks, *given, delta)

    def posterior(
        self, mode: FloatArray, nodes: FloatArray, ridge: FloatArray, noise: FloatArray,
        scale: float, curvature: Curvature,
    ) -> LogisticPosterior:  # fmt: skip
        """Return the posterior with a mode, one row for each contrast of classes."""
        blocks, n_classes = self.of_mode
        shape = (n_classes - 1, -1) if n_classes > 2 else (-1,)
        parameters, precision, variance = (np.reshape(a, shape) for a in (mode, ridge, noise))
        found = LogisticPosterior(parameters, nodes, precision, variance, scale, *curvature)
        return OrderedPosterior.of(blocks, found) if self.has_cuts else found


_REFUSED = {
    "laplace": "a noisy quadratic approximation of the loss pays for all products of two weights, "
    "and holds near one point only",
    "fourier": "the loss has no sufficient statistics that are tables",
    "gaussian": "it is for sums that are released; with a delta and many columns the mode has "
    "Gaussian noise",
}


def check_mechanism(mechanism: Mechanism | str) -> None:
    """Refuse a mechanism by name, with the reason; unknown names are left to others."""
    name = mechanism if isinstance(mechanism, str) else mechanism.name()
    if name in _REFUSED:
        raise InvalidParameterError(
            f"mechanism={name!r} is not available for BayesianLogisticRegression: "
            f"{_REFUSED[name]}. Use mechanism='map'."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPlan(Plan[LabelledRecords, LogisticPosterior]):
    """A release without noise, where no privacy is asked for."""

    prior: LogisticPrior

    rho = math.inf

    def release(self, statistics: LabelledRecords, noise: Noise) -> LogisticPosterior:
        """Return the mode and the curvature there."""
        records, precision = statistics.read(), self.prior.precision
        look = seen_exactly(records, self.prior.blocks)
        mapped = records.mapped(look.nodes)
        least = 1.0 if precision is None else precision
        loss = self.prior.loss(mapped)
        ridge = np.full(loss.n_parameters, least)
        mode, nothing = exact_mode(loss, ridge), np.zeros(len(ridge))
        if self.prior.n_classes > 2:
            return self.prior.posterior(mode, look.nodes, ridge, nothing, 1.0, Curvature.none())
        found = Curvature.exact(mapped, self.prior.blocks, mode)
        return self.prior.posterior(mode, look.nodes, ridge, nothing, 1.0, found)


@dataclass(frozen=True)
class Found:
    """What earlier steps have released: all of it public."""

    look: Look
    mode: FloatArray = field(default_factory=lambda: np.zeros(0))
    asked: AskedCurvature | None = None
    curvature: Curvature = field(default_factory=Curvature.none)
    draws: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticPlan(StepPlan[Any, LogisticPosterior]):
    """Look, mode, and curvature or draws, with the epsilon of each."""

    prior: LogisticPrior
    facts: Facts
    rho: float
    look_share: Fraction
    mode: PerturbedPlan
    mode_cost: Budget
    curvature_share: Fraction = Fraction(0)
    draws: LogisticDrawPlan | None = None
    draws_cost: Budget | None = None

    def with_draws(self, n_draws: int, delta: Exact) -> LogisticPlan:
        """Return a plan that makes draws with as much epsilon as the mode has."""
        share, unit, precision = self.mode_cost.epsilon, self.cost.unit, self.prior.precision
        assert isinstance(share, Fraction)
        loss = loss_of_a_draw(share, delta, n_draws)
        draws = LogisticDrawPlan.of(
            self.prior.blocks, self.mode, self.facts.n, loss, unit, precision or 1.0, n_draws
        )
        spent = delta if n_draws * loss > share else Fraction(0)
        whole = replace(
            self, conditions=(REAL_ARITHMETIC,), draws=draws,
            draws_cost=Budget(share, spent, unit, n_draws * loss**2 / 8),
        )  # fmt: skip
        cost = composed(step.cost for step in whole.steps)
        return replace(whole, cost=self.cost._replace(delta=cost.delta, rho=cost.rho))

    @cached_property
    def start(self) -> Found:
        """Columns without a look are spread evenly."""
        return Found(seen(self.prior.blocks, (), [], self.facts.n, []))

    def release(self, statistics: LabelledRecords, noise: Noise) -> LogisticPosterior:
        """Take the steps; the codes of few records are kept meanwhile."""
        return super().release(statistics.read(), noise)

    @cached_property
    def steps(self) -> tuple[Step[Any, Found], ...]:
        """Those that get a part of epsilon."""
        noise = "Gaussian" if self.mode.gradient_noise.independent else "exponential"
        mode = Step(
            "perturbed mode", self.mode_cost, self.mode, f"{noise} noise of the gradient",
            structure=self.prior.structure,
            ask=self.ask_mode, read=self.read_mode,
            draw=lambda loss, law, noise: noise.minimum(loss),
        )  # fmt: skip
        return (*self._look, mode, *self._curvature, *self._draws)

    # Look

    @cached_property
    def _look(self) -> tuple[Step[CodedRecords, Found], ...]:
        if not self.look_share:
            return ()
        blocks, unit = self.prior.blocks, self.cost.unit
        columns = tuple(range(len(blocks.sizes))) if self.curvature_share else blocks.numbers
        look = LookPlan.of(blocks, columns, self.look_share, unit)
        return (look.step(Budget(self.look_share, unit=unit), self.facts.n),)

    # Mode

    def ask_mode(self, records: CodedRecords, found: Found) -> PerturbedLoss:
        """Return the loss of all records."""
        return PerturbedLoss(self.prior.loss(records.mapped(found.look.nodes)), self.mode)

    def read_mode(self, found: Found, mode: FloatArray) -> Found:
        """Return the mode, and where the curvature is asked for."""
        if not self.curvature_share:
            return replace(found, mode=mode)
        blocks, look = self.prior.blocks, found.look
        known = coordinates(blocks, blocks.tables(look.nodes), look.shares, look.errors)
        plan = CurvaturePlan.of(
            blocks, self.facts.n_bound, self.curvature_share, self.cost.unit, known.limit
        )
        point = half_way(known, self.facts.n, mode, self.mode.ridge)
        return replace(found, mode=mode, asked=AskedCurvature(known, plan, point))

    # Curvature

    @cached_property
    def _curvature(self) -> tuple[Step[CodedRecords, Found], ...]:
        if not self.curvature_share:
            return ()
        return (
            Step(
                "curvature for intervals", Budget(self.curvature_share, unit=self.cost.unit),
                attrgetter("asked.plan.law"), "exponential noise of a matrix",
                structure=attrgetter("asked.plan.structure"),
                ask=self.ask_curvature, read=self.read_curvature,
            ),
        )  # fmt: skip

    def ask_curvature(self, records: CodedRecords, found: Found) -> list[IntArray]:
        """Return the sum of second derivatives at the point, by coordinates."""
        assert found.asked is not None
        return found.asked.ask(records.mapped(found.look.nodes))

    def read_curvature(self, found: Found, noisy: Sequence[IntArray]) -> Found:
        """Return what is known about the curvature."""
        assert found.asked is not None
        return replace(found, curvature=found.asked.read(noisy, self.facts.n))

    # Draws

    @cached_property
    def _draws(self) -> tuple[Step[CodedRecords, Found], ...]:
        draws, cost = self.draws, self.draws_cost
        if draws is None or cost is None:
            return ()
        return (
            Step(
                "draws of the posterior", cost, draws.law, "draws of a normal law in a ball",
                structure={"kind": "logistic scores in a ball"},
                ask=lambda records, found: draws.ask(records.mapped(found.look.nodes), found.mode),
                read=lambda found, drawn: replace(found, draws=found.mode + drawn),
                draw=draws.draw,
            ),
        )  # fmt: skip

    def posterior(self, found: Found) -> LogisticPosterior:
        """Return the mode and its curvature; of draws, their mean."""
        nodes = found.look.nodes
        if self.draws is not None:
            mean = found.draws.mean(axis=0)
            ridge, error = np.full(len(mean), self.draws.prior), np.zeros(len(mean))
            return LogisticPosterior(
                mean, nodes, ridge, error, 1.0, *found.curvature, draws=found.draws
            )
        scale = 1 + _PREDICTION_SCALE / math.sqrt(self.rho)
        released = found.mode, nodes, self.mode.ridge, self.mode.body.variance, scale
        return self.prior.posterior(*released, found.curvature)


def plan(
    mechanism: Mechanism, prior: LogisticPrior, facts: Facts, budget: Budget
) -> LogisticPlan | ExactPlan:
    """Return the steps of a release, or refuse it."""
    check_mechanism(mechanism)
    blocks, unit = prior.blocks, budget.unit
    if facts.n_bound > MOST_RECORDS:
        raise ValueError(f"More than {MOST_RECORDS} records are not supported.")
    if not blocks.parameters:
        raise ValueError("Without an intercept, some column needs two values or more.")
    if prior.has_cuts and not blocks.intercept:
        raise ValueError("ordered=True needs fit_intercept=True: cut points are constants.")
    own, classes = prior.of_mode
    free = (classes - 1) * own.parameters
    if free > _MOST_PARAMETERS:
        raise ValueError(
            f"The model has {free} parameters, more than {_MOST_PARAMETERS}: merge "
            "categories, or use BayesianNaiveBayes."
        )
    n_draws = mechanism.n_samples if isinstance(mechanism, Sampler) else 0
    if prior.n_classes > 2 and n_draws:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass. "
            f"mechanism='sampler' needs two classes. Got {prior.n_classes} instead."
        )
    if prior.n_classes > 2 and prior.intervals:
        raise ValueError(
            f"intervals=True needs two classes. Got {prior.n_classes} instead: without it, "
            "coefficients() has estimates of all classes."
        )
    if n_draws and prior.intervals:
        raise ValueError("intervals=True needs mechanism='map': draws tell no curvature.")
    name = "sampler" if n_draws else "map"
    if budget.infinite:
        return ExactPlan(cost=budget.without_delta, mechanism=name, prior=prior)
    epsilon = Fraction(budget.epsilon)
    rho = records_per_parameter(own, facts.n, float(epsilon), unit, classes)
    curvature = Fraction(0) if n_draws else _curvature_share(prior, rho) * epsilon
    look = epsilon * _LOOK_SHARE if curvature or blocks.numbers else Fraction(0)
    if curvature:
        CurvaturePlan.of(blocks, facts.n_bound, curvature, unit, widest_norm(blocks))
    share = (epsilon - look - curvature) / (2 if n_draws else 1)
    delta = Fraction(0) if n_draws else budget.delta
    ratio = rho * float(share / epsilon) if n_draws else rho
    # of a secret number of records: sums and searches must end for all
    mode = prior.perturbed(facts.n_bound, share, unit, ratio, delta)
    spent = Budget(share, delta if mode.gradient_noise.independent else Fraction(0), unit)
    whole = LogisticPlan(
        cost=budget._replace(delta=spent.delta, rho=None), mechanism=name, prior=prior,
        facts=facts, rho=rho, look_share=look, mode=mode, mode_cost=spent,
        curvature_share=curvature,
    )  # fmt: skip
    whole = whole.with_draws(n_draws, budget.delta) if n_draws else whole
    _ = whole.steps  # refuses an epsilon that is too large for the noise of histograms
    return whole


def _curvature_share(prior: LogisticPrior, rho: float) -> Fraction:
    """Return the share of epsilon for intervals: none if not asked for, unless it costs little."""
    few = prior.blocks.parameters <= _MOST_WITH_INTERVALS and prior.n_classes == 2
    if prior.intervals and not few:
        raise ValueError(
            f"intervals=True is available for at most {_MOST_WITH_INTERVALS} parameters; the model "
            f"has {prior.blocks.parameters}. Set intervals=False."
        )
    wanted = rho >= _MANY_PER_PARAMETER and few if prior.intervals is None else prior.intervals
    return (
        Fraction(0)
        if not wanted
        else _LESS_CURVATURE_SHARE
        if rho >= _MANY_PER_PARAMETER
        else _CURVATURE_SHARE
    )
