r"""The plan of an evaluation: all of it follows from public facts, before a record is looked at.

Guarantee
---------
*Precondition*: the model is public, or its own guarantee is accounted for besides; what it says
about a record depends on no other record. *Claim*: an evaluation is
:math:`(\varepsilon, \delta)`-DP for its records. *Proof*: it releases at most one vector of bounded
sums and some tables of counts, each with the noise of its type (`statistics`) for a fixed share of
:math:`\varepsilon` (or of a zCDP :math:`\rho` that is within :math:`(\varepsilon, \delta)`); then,
with the last share, sums of squares of bounded functions of the records that depend on what was
released before. The shares add up to the whole. Metrics and intervals are post-processing. ∎
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.metrics.intervals import Noisy, simulated
from dpbayes_sklearn.metrics.released import Released, ReleasedTable
from dpbayes_sklearn.metrics.statistics import (
    HALF,
    BoundedSums,
    CellCounts,
    Classification,
    Range,
    Task,
)
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.gaussian import composed_rho
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.release import Plan

__all__ = ["EvaluationPlan", "plan"]

BESIDES = "the evaluated model is accounted for besides, if it was fitted to the same people"
COUNT = "count"
_SHARE, _SPREAD_SHARE = 5, 1  # of sums and of each table; of squared influences
_USUAL_BINS = 40  # if the number of records is secret
_LEAST_BINS = {"scores": 10, "confidence": 5}
_MOST_BINS = {"scores": 60, "confidence": 10}


@dataclass(frozen=True)
class Part:
    """Numbers that are released together, with their noise; a law of None adds none.

    ``columns`` are those of sums, ``shape`` that of a table and ``edges`` those between its rows.
    """

    name: str
    columns: tuple[str, ...] = ()
    shape: tuple[int, int] = (0, 0)
    edges: FloatArray | None = None
    law: NoiseLaw | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationPlan(Plan[Any, Released]):
    """What an evaluation releases, and at what cost.

    Attributes
    ----------
    task : Classification or Regression
    n : int or None
        Number of records, unless it is secret.
    parts : tuple of Part
        In the order of their release; squared influences come last.
    """

    task: Task
    n: int | None
    parts: tuple[Part, ...]

    def release(self, statistics: Any, noise: Noise) -> Released:
        """Release the statistics of what a model said about records, part by part."""
        records, found = statistics, Released(self.task, self.n)
        for part in self.parts:
            if part.name == "sums":
                found = replace(found, sums=_sums(part, self._losses(part, records), noise))
            elif part.name == "spreads":
                influences = [found.influence(records, name) for name in part.columns]
                squares = [(values**2, Range(0.0, bound**2)) for values, bound in influences]
                found = replace(found, spreads=_sums(part, squares, noise))
            else:
                counts = self._counts(part, records).counts
                table = ReleasedTable(_added(counts, part.law, noise), part.law)
                found = replace(found, tables={**found.tables, part.name: table})
        return found

    def _counts(self, part: Part, records: Any) -> CellCounts:
        edges, shape = part.edges, part.shape
        if self.cost.infinite and part.name == "scores":  # without privacy, a bin for every score
            edges = np.unique(records.proba[:, 1])[1:]
            shape = (len(edges) + 1, 2)
        assert isinstance(self.task, Classification)
        rows, columns = self.task.cells(records, part.name, edges)
        return CellCounts.of(rows, columns, shape)

    def _losses(self, part: Part, records: Any) -> list[tuple[FloatArray, Range]]:
        """Return the losses of every record, and 1 for the number of records."""
        ones = (np.ones(len(records.truth)), Range(-1.0, 1.0))
        return [
            ones if name == COUNT else (self.task.losses(records, name), self.task.ranges[name])
            for name in part.columns
        ]


def _added(numbers: IntArray, law: NoiseLaw | None, noise: Noise) -> FloatArray:
    noisy = numbers if law is None else noise.add([numbers], law)[0]
    return np.asarray(noisy, np.float64)


def _sums(part: Part, values: Sequence[tuple[FloatArray, Range]], noise: Noise) -> dict[str, Noisy]:
    """Release sums of values about the middle of their ranges, in their own units."""
    steps = np.stack([own.steps(column) for column, own in values], axis=1)
    sums = _added(BoundedSums.of(steps).sums, part.law, noise)
    errors = simulated(part.law, len(sums)).T
    return {
        name: Noisy(float(total), error).times(own.half / HALF)
        for name, total, error, (_, own) in zip(part.columns, sums, errors, values, strict=True)
    }


def plan(task: Task, scoring: Sequence[str], budget: Budget, n: int) -> EvaluationPlan:
    """Return the plan of an evaluation, refusing metrics that the model does not have.

    Parameters
    ----------
    task : Classification or Regression
    scoring : sequence of str
        Names of metrics.
    budget : Budget
        What it may spend, and whom it protects.
    n : int
        Number of records; not looked at where the unit keeps it secret.
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
    facts: dict[str, Any] = {"task": task, "n": known, "conditions": (BESIDES,)}
    if budget.infinite:
        return EvaluationPlan(cost=budget, mechanism="exact", parts=tuple(parts), **facts)
    shares = [_SPREAD_SHARE if part.name == "spreads" else _SHARE for part in parts]
    epsilon, cost, rho = Fraction(budget.epsilon), budget, None
    if budget.delta:
        numbers = sum(len(part.columns) or int(np.prod(part.shape)) for part in parts)
        rho = composed_rho(epsilon, budget.delta, numbers, 1)
        cost = budget._replace(rho=rho)
    noisy = [
        _with_noise(part, budget.unit, Fraction(share, sum(shares)), epsilon, rho)
        for part, share in zip(parts, shares, strict=True)
    ]
    mechanism = "laplace" if rho is None else "gaussian"
    return EvaluationPlan(cost=cost, mechanism=mechanism, parts=tuple(noisy), **facts)


def _with_noise(
    part: Part, unit: PrivacyUnit, share: Fraction, epsilon: Fraction, rho: Fraction | None
) -> Part:
    own = share * epsilon, None if rho is None else share * rho
    if part.columns:
        return replace(part, law=BoundedSums.law(len(part.columns), unit, *own))
    return replace(part, law=CellCounts.law(part.shape, unit, *own))


def _parts(task: Task, scoring: Sequence[str], budget: Budget, n: int | None) -> list[Part]:
    """Return what the metrics need: sums, tables, and the spread of what has a sum."""
    tables = _tables(task, scoring, budget, n) if isinstance(task, Classification) else []
    by_class = {"confusion", "recall"} & {table.name for table in tables}
    summed = [m for m in scoring if m in task.columns and not (m == "accuracy" and by_class)]
    columns = [*dict.fromkeys(column for m in summed for column in task.columns[m])]
    spread = tuple(m for m in summed if m != "accuracy")
    sums = [Part("sums", (*columns, *([COUNT] if n is None else [])))] if columns else []
    return [*sums, *tables, *([Part("spreads", spread)] if spread else [])]


def _tables(
    task: Classification, scoring: Sequence[str], budget: Budget, n: int | None
) -> list[Part]:
    k, found = task.n_classes, []
    if "confusion_matrix" in scoring:
        found.append(Part("confusion", shape=(k, k)))
    elif "balanced_accuracy" in scoring:
        found.append(Part("recall", shape=(k, 2)))
    for metric, name in (("roc_auc", "scores"), ("calibration_curve", "confidence")):
        if metric in scoring:
            edges = task.edges(name, n_bins(name, budget, n))
            found.append(Part(name, shape=(len(edges) + 1, 2), edges=edges))
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
