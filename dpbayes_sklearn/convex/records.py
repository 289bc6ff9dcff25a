"""The records of a linear model, and the queries that are asked of them.

**Sensitive.** Nothing here is public but the structure: columns, the target's scale, who is
protected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray, Positions
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.data.records import A, Records, Shard, with_target
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.release import Facts, P, Step, StepPlan
from dpbayes_sklearn.schema.values import as_numbers


@dataclass(frozen=True, repr=False)
class LinearRecords:
    """Queries about records, each asked of every shard and added up.

    **Sensitive.** It refers to the records and holds no sums. Answers are sums of integers, so they
    do not depend on how the records are spread. A record without a target adds nothing to them.
    """

    design: Design  # What the columns of the records mean.
    scale: Scale  # The map of the target's bounds to [-1, 1].
    records: Records  # Features and targets, wherever they are.
    # The records that the queries are about, in increasing order; all if left out.
    sample: Positions | None = None

    @property
    def n(self) -> int:
        """Exact number of the records asked, with a target or without."""
        return self.records.n if self.sample is None else len(self.sample)

    @property
    def n_missing(self) -> int:
        """Exact number of the records asked that have no target."""
        return self.records.total(_count_missing, self.sample)

    def about(self, sample: Positions | None) -> LinearRecords:
        """Return the same queries about some records; about all if None."""
        return replace(self, sample=sample)

    def every(self, step: int) -> LinearRecords:
        """Return the same queries about one record out of n."""
        some = np.arange(0, self.n, step)
        return replace(self, sample=some if self.sample is None else self.sample[some])

    def total(self, ask: Callable[[Shard], A]) -> A:
        """Return the sum of the answers of all shards, about records that have a target."""
        return self.records.total(partial(_of_known, ask), self.sample)

    def asked(self, ask: Callable[..., Any], **public: Any) -> AnyArray:
        """Return the sum of what is asked of shards, columns and target's scale."""
        given = partial(ask, design=self.design, scale=self.scale, **public)
        return np.asarray(self.total(given))

    @property
    def structure(self) -> tuple[Design, Scale]:
        """The public model: what merged records must have in common."""
        return self.design, self.scale

    def __add__(self, other: LinearRecords) -> LinearRecords:
        """Return the queries about the records of both, which must be different records."""
        if self.structure != other.structure:
            raise ValueError("Records of different models cannot be added.")
        return replace(self, records=self.records + other.records)


@dataclass(frozen=True, kw_only=True, eq=False)
class SumsPlan(StepPlan[LinearRecords, P]):
    """A release of sums over records, each with the noise of its own law."""

    facts: Facts

    def _step(self, what: str, of: Any, share: Fraction, ask: Any, read: Any) -> Step[Any, Any]:
        if self.cost.infinite:
            return Step(what, self.cost, None, "none", ask=ask, read=partial(read, law=None))
        law = of.law(self.cost.unit, share)
        about = what, self._part(share), law
        return Step(*about, structure=of, ask=ask, read=partial(read, law=law))

    def _part(self, share: Fraction) -> Budget:
        return Budget(share, unit=self.cost.unit)


def _of_known(ask: Callable[[Shard], A], shard: Shard) -> A:
    return ask(with_target(shard, ~np.isnan(as_numbers(shard.target))))


def _count_missing(shard: Shard) -> int:
    return int(np.isnan(as_numbers(shard.target)).sum())


_TARGETS_AT_A_TIME = 1 << 15  # This many targets are mapped at a time.


def scaled_target(y: FloatArray, scale: Scale) -> FloatArray:
    """Return targets on the scale of their bounds, in [-1, 1]."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip((y - scale.centre) / scale.half, -1.0, 1.0)


def coordinates(
    shard: Shard, design: Design, scale: Scale, grid: int | None = None
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield chunks of x and of (1, t), in [-1, 1], or in whole steps of a grid."""
    y, first, t = as_numbers(shard.target), 0, np.empty(0)
    for rows, x in design.chunks(shard.table, grid):
        if rows.stop > first + len(t):  # targets of several chunks at once
            first = rows.start
            t = scaled_target(y[first : first + max(len(x), _TARGETS_AT_A_TIME)], scale)
            t = np.rint(grid * t) if grid else t
        edge = np.full((len(x), 2), float(grid or 1))
        edge[:, 1] = t[rows.start - first : rows.stop - first]
        yield x, edge
