r"""The plan of an evaluation, made of public facts alone, and the metrics of what it releases.

Guarantee
---------
*Precondition*: the model is public, or its own guarantee is accounted for separately; what it says
about a record depends on no other record. *Claim*: an evaluation is :math:`(\varepsilon,
\delta)`-DP for its records. *Proof*: it releases at most one vector of bounded sums and some tables
of counts, each with the noise of its type (:mod:`~dpbayes_sklearn.metrics.statistics`) for a fixed
share of :math:`\varepsilon` (or of a zCDP :math:`\rho` that is within :math:`(\varepsilon,
\delta)`); then, with the last share, sums of squares of bounded functions of the records that
depend on what was released before. The shares add up to the whole. Metrics and intervals are
post-processing. ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.metrics.intervals import Noisy, Score, auc, mean_of, ratio, simulated
from dpbayes_sklearn.metrics.statistics import (
    OUTERMOST_LOGIT,
    SCORE_STEPS,
    CellCounts,
    Classification,
    Labelled,
    Measured,
    Range,
    Regression,
    ScoreSums,
    Task,
)
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit
from dpbayes_sklearn.privacy.gaussian import composed_rho
from dpbayes_sklearn.release import Step, StepPlan, composed

# Prior of a loss's variance over the largest possible one: median, and deviation of its log.
_USUAL_LOSS_VARIANCE, _LOG_LOSS_VARIANCE_SD = 0.3, 0.8

BESIDES = "the cost of the evaluated model is added if it was fitted to the same people"
# Names of the number of records among sums, and of the tables of those without a target and of
# those whose errors are cut.
COUNT, MISSING, CUT, SPREADS = "count", "missing", "cut", "spreads"
_MISSING_DEVIATIONS = 3.0  # A number of them below this many standard deviations counts as none.
# Parts of the budget: of sums and every table; squared influences and the share of errors that are
# cut have less, and the number of records without a target is free: a record that changes it
# changes the sums by half at most.
_NEED, _NEEDS = 5, {SPREADS: 1, CUT: 1, MISSING: 0}
_USUAL_BINS = 40  # A table has this many bins if the number of records is secret.
_LEAST_BINS = {"scores": 10, "confidence": 5}  # A table has at least this many bins.
_MOST_BINS = {"scores": 60, "confidence": 10}  # A table has at most this many bins.


class ConfusionMatrix(NamedTuple):
    """Counts by true class (rows) and predicted class, each with an interval."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


class CalibrationCurve(NamedTuple):
    """Share of right predictions in every bin of stated confidence, with an interval.

    ``confidence`` is the middle of the bin on the scale of logits, ``n_records`` the noisy number
    of records in it.
    """

    confidence: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    n_records: FloatArray


class ReleasedTable(NamedTuple):
    """Counts after noise, and the law of the noise; None if they are exact."""

    counts: FloatArray
    law: NoiseLaw | None

    def total(self, *cells: Any) -> Noisy:
        """Return the sum of some cells, given by their indices; () is all of them."""
        errors = simulated(self.law, self.counts.size).reshape(-1, *self.counts.shape)
        values = [float(self.counts[cell].sum()) for cell in cells]
        drawn = [errors[:, *cell].reshape(len(errors), -1).sum(axis=1) for cell in cells]
        return Noisy(sum(values), np.sum(drawn, axis=0))

    @property
    def variance(self) -> float:
        """Variance of the noise in a cell."""
        return 0.0 if self.law is None else self.law.variance()


@dataclass(frozen=True)
class ReleasedEvaluation:
    """The noisy statistics of an evaluation; n is None if it is secret.

    Some of the n records may have no target. ``sums`` are those of losses about the middle of their
    range, and the number of records if it is secret; ``spreads`` those of squared influences of
    records on a metric, likewise.
    """

    task: Task
    n: int | None
    sums: Mapping[str, Noisy] = field(default_factory=dict)
    tables: Mapping[str, ReleasedTable] = field(default_factory=dict)
    spreads: Mapping[str, Noisy] = field(default_factory=dict)

    def score(self, metric: str, level: float) -> Any:
        """Return a metric with its interval."""
        of_name: dict[str, Callable[[float], Any]] = {
            "balanced_accuracy": self._balanced_accuracy,
            "calibration_curve": self._calibration_curve,
            "confusion_matrix": self._confusion_matrix,
            "r2": self._r2,
            "rmse": self._rmse,
            "roc_auc": lambda at: auc(*self._scores, at),
        }
        if metric == "accuracy" and self._by_class is not None:
            return self._table_accuracy(level)
        if metric in of_name:
            return of_name[metric](level)
        mean = self._mean(self.task.columns[metric][0], metric, level)
        return mean if isinstance(self.task, Classification) else self._as_error(mean)

    def cut(self, level: float) -> Score | None:
        """Return the share of records whose errors are cut; None if none can be."""
        if CUT not in self.tables:
            return None
        return _share(self.tables[CUT].total((0, 1)), self.records, level)

    @property
    def records(self) -> Noisy:
        """The number of records that have a target: n, unless noise does not explain fewer."""
        if COUNT in self.sums:
            return self.sums[COUNT]
        if MISSING in self.tables:
            missing = self.tables[MISSING].total(())
            found = Noisy.exact(self.n or 0) + missing.times(-1.0)
        else:
            found = next(iter(self.tables.values())).total(())
        if self.n is None or found.value < self.n - _MISSING_DEVIATIONS * np.std(found.errors):
            return found
        return Noisy.exact(self.n)

    def mean(self, column: str) -> float:
        """Return the mean of a loss, within its range."""
        bounds, n = self.task.ranges[column], max(self.records.value, 1.0)
        return float(np.clip(bounds.middle + self.sums[column].value / n, bounds.low, bounds.high))

    def influence(self, records: Any, metric: str) -> FloatArray:
        """Return by how much every record moves n times a metric: no more than its loss can."""
        first = self.task.columns[metric][0]
        loss = self.task.losses(records, first)
        if metric != "r2":
            return loss - self.mean(first)
        about = self.task.losses(records, "target") - self.mean("target")
        unexplained = self.mean("squared_error") / self._target_variance
        return loss - min(unexplained, 1 / self._squared_reach) * about**2

    @property
    def _squared_reach(self) -> float:
        """The unit of squared errors in that of squared targets."""
        assert isinstance(self.task, Regression)
        return self.task.reach**2

    @property
    def _target_variance(self) -> float:
        variance = self.mean("target_squared") - self.mean("target") ** 2
        return max(variance, self.task.ranges["target_squared"].high / 1e4)

    def _spread(self, metric: str) -> float:
        r"""Return the variance of a record's influence.

        The noisy one is combined with a guess: a loss in [0, c] of mean m has at most the variance
        m(c - m), and usually a third of it (log-normal, with standard deviation 0.8).
        """
        column = self.task.columns[metric][0]
        bounds, mean = self.task.ranges[column], self.mean(column)
        most = max((mean - bounds.low) * (bounds.high - mean), (0.01 * bounds.half) ** 2)
        width = 2 * bounds.half
        seen = self.spreads[metric].times(1 / max(self.records.value, 1.0))
        seen = Noisy(seen.value + width**2 / 2, seen.errors)
        if not seen.errors.any():
            return seen.value
        shares = np.geomspace(1e-3, 1.0, 200)
        prior = -(np.log(shares / _USUAL_LOSS_VARIANCE) ** 2) / (2 * _LOG_LOSS_VARIANCE_SD**2)
        error = (seen.value - shares * most) / (np.std(seen.errors) / math.sqrt(2))
        weight = np.exp(prior - np.abs(error) - (prior - np.abs(error)).max())
        return float(weight @ shares / weight.sum() * most)

    def _mean(self, column: str, metric: str, level: float) -> Score:
        bounds = self.task.ranges[column]
        n = max(self.records.value, 1.0)
        if metric == "accuracy":
            score = ratio(
                self.sums[column], self.records, lambda a: n * (0.25 - a**2), (-0.5, 0.5), level
            )
        else:
            variance = n * self._spread(metric)
            ends = (-bounds.half, bounds.half)
            score = ratio(self.sums[column], self.records, lambda a: variance, ends, level)
        return score.mapped(lambda centred: centred + bounds.middle, 1.0)

    def _as_error(self, score: Score) -> Score:
        """Return the score of an error in units of the target."""
        assert isinstance(self.task, Regression)
        largest = self.task.largest_error
        return score.mapped(lambda x: largest * x, largest)

    def _rmse(self, level: float) -> Score:
        mean = self._mean("squared_error", "rmse", level)
        root = math.sqrt(max(mean.value, 0.0))
        slope = 0.5 / max(root, 1e-12)
        return self._as_error(mean.mapped(lambda x: math.sqrt(max(x, 0.0)), slope))

    def _r2(self, level: float) -> Score:
        """Return 1 - u, u the squared errors over squared deviations of the target."""
        n, middle, unit = self.records, self.task.ranges, self._squared_reach
        errors, squares = (
            self.sums[c] + n.times(middle[c].middle) for c in ("squared_error", "target_squared")
        )
        target = self.sums["target"]
        size = max(n.value, 1.0)
        squared_mean = Noisy(
            target.value**2 / size, (2 * target.value * target.errors - target.errors**2) / size
        )
        about = squares + squared_mean.times(-1.0)
        variance = size * self._spread("r2") * unit**2
        unexplained = ratio(errors.times(unit), about, lambda u: variance, (0.0, math.inf), level)
        return unexplained.mapped(lambda u: 1.0 - u, -1.0)

    @property
    def _by_class(self) -> tuple[ReleasedTable, bool] | None:
        """The table of true classes, and whether it has a column for every predicted class."""
        if "confusion" in self.tables:
            return self.tables["confusion"], True
        return (self.tables["recall"], False) if "recall" in self.tables else None

    def _right(self, code: int) -> tuple[int, int]:
        """Return the cell of the right predictions of a class."""
        assert self._by_class is not None
        return (code, code) if self._by_class[1] else (code, 1)

    def _table_accuracy(self, level: float) -> Score:
        table, _ = self._by_class  # type: ignore[misc]
        right = table.total(*(self._right(c) for c in range(len(table.counts))))
        return _share(right, self.records, level)

    def _balanced_accuracy(self, level: float) -> Score:
        table, _ = self._by_class  # type: ignore[misc]
        recalls = [
            _share(table.total(self._right(c)), table.total((c,)), level)
            for c in range(len(table.counts))
        ]
        return mean_of(recalls)

    def _confusion_matrix(self, level: float) -> ConfusionMatrix:
        table, n = self.tables["confusion"], self.records
        scores = [_share(table.total(cell), n, level) for cell in np.ndindex(table.counts.shape)]
        ends = [[s.low, s.high] for s in scores]
        low, high = np.reshape(ends, (*table.counts.shape, 2)).transpose(2, 0, 1)
        return ConfusionMatrix(table.counts, n.value * low, n.value * high)

    @property
    def _scores(self) -> tuple[FloatArray, float, float]:
        """Counts by bin and class, the variance of their noise, and the width of a bin."""
        table = self.tables["scores"]
        width = 0.0 if table.law is None else 2 * OUTERMOST_LOGIT / (len(table.counts) - 2)
        return table.counts, table.variance, width

    def _calibration_curve(self, level: float) -> CalibrationCurve:
        table = self.tables["confidence"]
        assert isinstance(self.task, Classification)
        places = range(len(table.counts))
        found = [_share(table.total((b, 1)), table.total((b,)), level) for b in places]
        accuracy, low, high = np.array([[s.value, s.low, s.high] for s in found]).T
        stated = self.task.confidences(len(table.counts))
        return CalibrationCurve(stated, accuracy, low, high, table.counts.sum(axis=1))


def _share(part: Noisy, whole: Noisy, level: float) -> Score:
    """Return the share of some records among others."""
    n = max(whole.value, 1.0)
    return ratio(part, whole, lambda a: n * a * (1 - a), (0.0, 1.0), level)


@dataclass(frozen=True)
class ScorePart:
    """Numbers that are released together, with their noise; a law of None adds none.

    ``columns`` are those of sums, ``shape`` that of a table and ``edges`` those between its rows.
    """

    name: str
    columns: tuple[str, ...] = ()
    shape: tuple[int, int] = (0, 0)
    edges: FloatArray | None = None
    law: NoiseLaw | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationPlan(StepPlan[Labelled | Measured, ReleasedEvaluation]):
    """What an evaluation releases, part by part, squared influences last; n is None if secret."""

    task: Task
    n: int | None
    parts: tuple[ScorePart, ...]
    costs: tuple[Budget, ...]

    @property
    def start(self) -> ReleasedEvaluation:
        """Nothing but public facts."""
        return ReleasedEvaluation(self.task, self.n)

    @cached_property
    def steps(self) -> tuple[Step[Any, ReleasedEvaluation], ...]:
        """The parts."""
        return tuple(
            Step(
                f"{part.name} of an evaluation",
                cost,
                part.law,
                ask=partial(self._sums if part.columns else self._counts, part),
                read=partial(self._with_sums if part.columns else _with_table, part),
            )
            for part, cost in zip(self.parts, self.costs, strict=True)
        )

    def _counts(self, part: ScorePart, records: Any, found: ReleasedEvaluation) -> list[IntArray]:
        edges, shape = part.edges, part.shape
        if part.name == MISSING:
            return [CellCounts(np.full(shape, records.missing)).counts]
        if self.cost.infinite and part.name == "scores":  # without privacy, a bin for every score
            edges = np.unique(records.proba[:, 1])[1:]
            shape = (len(edges) + 1, 2)
        rows, columns = self.task.cells(records, part.name, edges)  # type: ignore[arg-type]
        return [CellCounts.of(rows, columns, shape).counts]

    def _sums(self, part: ScorePart, records: Any, found: ReleasedEvaluation) -> list[IntArray]:
        """Return sums about the middle of their ranges, and the number of records as one of 1."""
        if part.name == SPREADS:
            values = [found.influence(records, name) ** 2 for name in part.columns]
        else:
            ones = np.ones(len(records.truth))
            values = [ones if c == COUNT else self.task.losses(records, c) for c in part.columns]
        pairs = zip(values, self._ranges(part), strict=True)
        steps = np.stack([own.steps(column) for column, own in pairs], axis=1)
        return [ScoreSums.of(steps).sums]

    def _ranges(self, part: ScorePart) -> list[Range]:
        task = self.task
        if part.name == SPREADS:
            widths = [2 * task.ranges[task.columns[name][0]].half for name in part.columns]
            return [Range(0.0, width**2) for width in widths]
        return [Range(-1.0, 1.0) if c == COUNT else task.ranges[c] for c in part.columns]

    def _with_sums(
        self, part: ScorePart, found: ReleasedEvaluation, answer: Sequence[AnyArray]
    ) -> ReleasedEvaluation:
        """Return sums in their own units."""
        (totals,), errors = answer, simulated(part.law, len(part.columns)).T
        each = zip(part.columns, totals, errors, self._ranges(part), strict=True)
        sums = {
            name: Noisy(float(total), error).times(own.half / SCORE_STEPS)
            for name, total, error, own in each
        }
        return replace(found, **{part.name: sums})  # type: ignore[arg-type]


def _with_table(
    part: ScorePart, found: ReleasedEvaluation, answer: Sequence[AnyArray]
) -> ReleasedEvaluation:
    table = ReleasedTable(np.asarray(answer[0], np.float64), part.law)
    return replace(found, tables={**found.tables, part.name: table})


def plan(task: Task, scoring: Sequence[str], budget: Budget, n: int) -> EvaluationPlan:
    """Return the plan of an evaluation, refusing metrics that the model does not have.

    The number of records n is not looked at where the unit keeps it secret.
    """
    for name in scoring:
        if name not in task.metrics:
            raise ValueError(
                f"scoring must be among {', '.join(task.metrics)} for this model. "
                f"Got {name!r} instead."
            )
        if name == "roc_auc" and getattr(task, "n_classes", 2) != 2:
            raise ValueError("roc_auc is for two classes: leave it out.")
    known = None if budget.unit.size_is_secret else n
    parts = _parts(task, [*dict.fromkeys(scoring)], budget, known)
    mechanism, costs = "exact", [budget] * len(parts)
    if not budget.infinite:
        epsilon, rho = Fraction(budget.epsilon), None
        if budget.delta:
            numbers = sum(len(part.columns) or int(np.prod(part.shape)) for part in parts)
            rho = composed_rho(epsilon, budget.delta, numbers, 1)
        needs = [_NEEDS.get(part.name, _NEED) for part in parts]
        shares = [Fraction(need, sum(needs)) for need in needs]
        free = Fraction(_NEED, sum(needs))  # noise of what costs nothing
        parts = [
            _with_noise(part, budget.unit, share or free, epsilon, rho)
            for part, share in zip(parts, shares, strict=True)
        ]
        mechanism = "laplace" if rho is None else "gaussian"
        costs = [budget._replace(rho=rho).part(share) for share in shares]
    return EvaluationPlan(
        cost=composed(costs),
        mechanism=mechanism,
        conditions=(BESIDES,),
        task=task,
        n=known,
        parts=tuple(parts),
        costs=tuple(costs),
    )


def _with_noise(
    part: ScorePart, unit: PrivacyUnit, share: Fraction, epsilon: Fraction, rho: Fraction | None
) -> ScorePart:
    own = share * epsilon, None if rho is None else share * rho
    if part.columns:
        return replace(part, law=ScoreSums.law(len(part.columns), unit, *own))
    return replace(part, law=CellCounts.law(part.shape, unit, *own))


def _parts(task: Task, scoring: Sequence[str], budget: Budget, n: int | None) -> list[ScorePart]:
    """Return what the metrics need: sums, tables, and the spread of what has a sum."""
    if isinstance(task, Classification):
        tables = _tables(task, scoring, budget, n)
    else:
        tables = [ScorePart(CUT, shape=(1, 2))] if task.largest_error < task.high - task.low else []
    by_class = {"confusion", "recall"} & {table.name for table in tables}
    summed = [m for m in scoring if m in task.columns and not (m == "accuracy" and by_class)]
    columns = [*dict.fromkeys(column for m in summed for column in task.columns[m])]
    spread = tuple(m for m in summed if m != "accuracy")
    sums = [ScorePart("sums", (*columns, *([COUNT] if n is None else [])))] if columns else []
    if sums and n is not None:
        sums += [ScorePart(MISSING, shape=(1, 1))]
    return [*sums, *tables, *([ScorePart(SPREADS, spread)] if spread else [])]


def _tables(
    task: Classification, scoring: Sequence[str], budget: Budget, n: int | None
) -> list[ScorePart]:
    k, found = task.n_classes, []
    if "confusion_matrix" in scoring:
        found.append(ScorePart("confusion", shape=(k, k)))
    elif "balanced_accuracy" in scoring:
        found.append(ScorePart("recall", shape=(k, 2)))
    for metric, name in (("roc_auc", "scores"), ("calibration_curve", "confidence")):
        if metric in scoring:
            edges = task.edges(name, n_bins(name, budget, n))
            found.append(ScorePart(name, shape=(len(edges) + 1, 2), edges=edges))
    return found


def n_bins(table: str, budget: Budget, n: int | None) -> int:
    """Return how many bins a table has: more of them cost accuracy, fewer blur the scores.

    About twice the cube root of n times epsilon: 10 to 60 for scores, 5 to 10 for confidence.

    >>> [n_bins("scores", Budget(Fraction(1)), n) for n in (50, 500, 20_000)]
    [10, 16, 54]
    """
    if budget.infinite:
        return _MOST_BINS[table]
    strength = float(budget.unit.equivalent(Fraction(budget.epsilon)))
    usual = _USUAL_BINS if n is None else 2 * round(np.cbrt(n * strength))
    return int(np.clip(usual, _LEAST_BINS[table], _MOST_BINS[table]))
