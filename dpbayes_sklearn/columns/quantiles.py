r"""Which quantiles of a column are asked for, in which order, and what a record can change in each.

The questions are public. They ask for one quantile after the other; an answer is public, too, so
the next question may use it: which records it is about, and from which lattice it is answered.

**Cost.** Questions of one level are about different parts of the records. A replaced record leaves
one part and enters another: the loss of a level with rate :math:`\eta` is at most :math:`\eta`
times the sum of the two largest ranges of change, or 2 if it stays in its part, whichever is more.
Quantiles that halve every part have range 1 each, so a level of any number of them costs as much
as one (Kaplan, Schnapp and Stemmer 2022). Two parts that share their ties can both see it
replaced: range 2 each.

A record that comes or goes is in one part: the largest range of change. Of two parts that share
their ties, a tie is the largest number of the lower, where q is at most 1/2, and the smallest of
the upper, where q is at least 1/2. On its one side d changes by q or -q (1 - q or q - 1), on the
other by q - 1 (-q): range 1 in each part, and 2 in both, no more than that of another record in one
of them. Records of a person come, go or are replaced one after the other, so ranges add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.columns.ranks import (
    LARGEST_NUMBER,
    Even,
    Lattice,
    Magnitudes,
    Ranks,
    change_range,
    shortened,
)
from dpbayes_sklearn.data.records import Records, Shard
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.schema.values import as_numbers

HALF = Fraction(1, 2)  # The median, or half of a budget.
MEDIAN_SHARE = Fraction(1, 4)  # The median gets this part of the budget of a centre and spread.
# The innermost place of an outer quantile, and the least of two shares of a budget.
QUARTER = Fraction(1, 4)
SPREAD_QUANTILE = Fraction(1, 20)  # The spread is read between this quantile and its mirror image.
# A quantile with fewer records beyond it than this over the rate may be answered by any point.
NATS = 18.0
_RANGE_RECORDS = 160  # With this many records over epsilon a range is found; measured.


@dataclass(frozen=True, repr=False)
class _Ordered:
    """Numbers in order, which are merged with others."""

    numbers: FloatArray

    @classmethod
    def of_shard(cls, j: int, shard: Shard) -> _Ordered:
        numbers = as_numbers(shard.table.column(j))
        return cls(np.sort(shortened(numbers[~np.isnan(numbers)])))

    def __add__(self, other: _Ordered) -> _Ordered:
        both = np.concatenate([self.numbers, other.numbers])
        return _Ordered(np.sort(both, kind="stable"))  # which merges runs that are in order


@dataclass(frozen=True, repr=False)
class SortedColumns:
    """Sensitive: the numbers of every column, sorted when they are asked for.

    Of records on a cluster one column at a time is brought here.
    """

    records: Records
    places: tuple[int, ...] | None = None
    """Positions of the columns that are meant; all if left out."""

    @property
    def n(self) -> int:
        """Number of records, missing values included."""
        return int(self.records.n)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.records.table.n_columns) if self.places is None else len(self.places)

    def column(self, j: int) -> FloatArray:
        """Return the numbers of a column in order, cut to 33 bits, without missing values."""
        place = j if self.places is None else self.places[j]
        return self.records.total(partial(_Ordered.of_shard, place)).numbers


Answers = tuple[tuple[float, ...], ...]
"""What was found: some numbers of every column."""

QuantileBounds = tuple[float, float] | None


@dataclass(frozen=True)
class Level:
    """Questions that are answered with one share of a column's budget; all shares add up to 1.

    ``replaced`` is the largest sum, over the questions, of the ranges by which a replaced record
    changes their distances, and ``moved`` the same for a record that comes or goes.
    """

    share: Fraction
    replaced: Fraction
    moved: Fraction

    def sensitivity(self, unit: PrivacyUnit) -> Fraction:
        """Return the largest sum of ranges of change between neighbours.

        >>> median = Level(Fraction(1), Fraction(2), Fraction(1))
        >>> three = PrivacyUnit("person", max_records=3, neighbours="add_remove")
        >>> str(median.sensitivity(three))
        '3'
        """
        return unit.max_records * (self.moved if unit.size_is_secret else self.replaced)

    def scaled(self, part: Fraction) -> Level:
        """Return the same level of a plan that has only a part of the column's budget."""
        return replace(self, share=part * self.share)


ChooseQuantile = Callable[[Ranks, Level], float]
"""Answers a question: with the quantile, or a number near it in rank."""


@dataclass(frozen=True)
class QuantileQuestions:
    """The questions about every column."""

    each: tuple[ColumnQuestions, ...]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.each)

    def ask(self, columns: SortedColumns, choose: ChooseQuantile) -> Answers:
        """Return the answers of all columns."""
        return tuple(one.ask(columns.column(j), choose) for j, one in enumerate(self.each))

    def exact(self, columns: SortedColumns) -> Answers:
        """Return exact answers, where no privacy is asked for."""
        return self.ask(columns, lambda ranks, level: ranks.exact())


def _disjoint(share: Fraction, fractions: Sequence[Fraction]) -> Level:
    """Return the level of quantiles of disjoint parts."""
    ranges = sorted(map(change_range, fractions))
    return Level(share, max(Fraction(2), sum(ranges[-2:], Fraction(0))), ranges[-1])


def _lattices(low: float | None, high: float | None) -> tuple[Lattice, ...]:
    """Return a lattice for numbers between two ends, either of which may be unknown."""
    whole = Magnitudes.between(0.0, low, high)
    if low is not None and high is not None:
        return (Even(low, high), whole)
    if low is None and high is None:
        return (whole,)
    known = low if low is not None else high
    assert known is not None
    return (Magnitudes.between(known, low, high), whole)


def _ends(bounds: QuantileBounds) -> tuple[float | None, float | None]:
    return (None, None) if bounds is None else bounds


@dataclass(frozen=True)
class _Node:
    """An edge, the part of the records below it, and the level of its question."""

    edge: int
    q: Fraction
    level: int
    lower: _Node | None
    upper: _Node | None


def _tree(first: int, last: int, level: int = 0) -> _Node | None:
    """Return the questions for the edges first, ..., last, the middle one first."""
    if first > last:
        return None
    middle = (first + last) // 2
    q = Fraction(middle - first + 1, last - first + 2)
    lower, upper = _tree(first, middle - 1, level + 1), _tree(middle + 1, last, level + 1)
    return _Node(middle, q, level, lower, upper)


@dataclass(frozen=True)
class BinEdges:
    """Edges of bins with about equal numbers of records, by recursion from the median.

    Records that are equal to an edge are in no part of the next level: a value that many records
    share takes one edge, and the others go to the rest.

    >>> plan = BinEdges(8)
    >>> len(plan.levels), [str(level.sensitivity(RECORD)) for level in plan.levels]
    (3, ['2', '2', '2'])
    """

    n_bins: int
    bounds: QuantileBounds = None
    _root: _Node | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_root", _tree(0, self.n_bins - 2))

    @property
    def levels(self) -> Sequence[Level]:
        """All levels, with the same share each."""
        found: dict[int, list[Fraction]] = {}
        pending = [self._root]
        while pending:
            node = pending.pop()
            if node is not None:
                found.setdefault(node.level, []).append(node.q)
                pending += [node.lower, node.upper]
        share = Fraction(1, len(found))
        return [_disjoint(share, found[level]) for level in sorted(found)]

    def ask(self, column: FloatArray, choose: ChooseQuantile) -> tuple[float, ...]:
        """Return the edges in ascending order."""
        edges, levels = [0.0] * (self.n_bins - 1), self.levels
        pending: list[tuple[_Node | None, FloatArray, float | None, float | None]]
        pending = [(self._root, column, *_ends(self.bounds))]
        while pending:
            node, part, low, high = pending.pop()
            if node is None:
                continue
            question = Ranks(part, node.q, _lattices(low, high))
            edge = edges[node.edge] = choose(question, levels[node.level])
            below, up_to = (int(np.searchsorted(part, edge, side)) for side in ("left", "right"))
            pending.append((node.lower, part[:below], low, edge))
            pending.append((node.upper, part[up_to:], edge, high))
        return tuple(edges)

    def could_answer(self, numbers: Sequence[float]) -> bool:
        """Say whether the numbers could be the answer: the right number of edges, ascending."""
        return len(numbers) == self.n_bins - 1 and _ascending(numbers)


def _ascending(numbers: Sequence[float]) -> bool:
    return all(a <= b for a, b in pairwise(numbers))


def reachable(tail: Fraction, n: int, rate: float, at_most: Fraction) -> Fraction:
    """Return the share of n records beyond a quantile that can be found with ``rate``.

    A quantile with fewer than about `NATS` / rate records beyond it may be answered by any point
    that is farther out.

    >>> str(reachable(Fraction(1, 100), 100_000, 0.1, Fraction(1, 4)))
    '1/100'
    >>> str(reachable(Fraction(1, 100), 100, 0.1, Fraction(1, 4)))
    '1/4'
    """
    needed = Fraction(NATS / rate / n).limit_denominator(1000) if rate > 0 else at_most
    return min(max(tail, needed), at_most)


def _nats_per_rank(level: Level, unit: PrivacyUnit, epsilon: float) -> float:
    """Return the rate at which a level of a column with budget ``epsilon`` tells ranks apart."""
    return float(level.share / level.sensitivity(unit)) * epsilon


def _normal_ratio(wanted: Fraction, found: Fraction) -> float:
    """Return how much farther out one tail of a normal law begins than another."""
    return 1.0 if wanted == found else float(ndtri(float(wanted)) / ndtri(float(found)))


def _around(centre: float, down: float, up: float) -> tuple[float, float]:
    """Return a non-empty range, also where distances are lost to rounding of the centre.

    >>> _around(5.0, 1.0, 0.0), _around(0.25, 0.0, 0.0), _around(1e22, 1.0, 2.0)
    ((4.0, 5.0), (-0.75, 1.25), (0.0, 2e+22))
    """
    low, high = max(centre - down, -LARGEST_NUMBER), min(centre + up, LARGEST_NUMBER)
    if low < high:
        return low, high
    wide = max(1.0, abs(centre))
    return max(centre - wide, -LARGEST_NUMBER), min(centre + wide, LARGEST_NUMBER)


@dataclass(frozen=True)
class OuterQuantiles:
    """The range between two quantiles, low < 1/2 < high, one on each side of the median.

    Without bounds the median comes first. It is found wherever the column lies, and both other
    quantiles are distances from it. Records equal to it count on both sides. Where ``n`` and
    ``epsilon`` are too small for the quantiles, ones that are nearer to the median are asked for,
    and the wanted distances follow from theirs as for a normal distribution; a distance of 0 is
    then that of the other side. Where they are too small even for that, one distance serves both
    sides. A column of one value has a range around it.
    """

    low: Fraction
    high: Fraction
    n: int
    epsilon: float
    bounds: QuantileBounds = None
    unit: PrivacyUnit = RECORD

    @property
    def levels(self) -> Sequence[Level]:
        """The median and both quantiles, or one distance; with bounds one after the other."""
        if self.bounds is not None:
            return [_disjoint(HALF, [self.low]), _disjoint(HALF, [self.high])]
        return self._distance.levels if self._symmetric else self._sides

    @property
    def _sides(self) -> Sequence[Level]:
        """The median, then a quantile on each side of it."""
        return [
            _disjoint(MEDIAN_SHARE, [HALF]),
            Level(1 - MEDIAN_SHARE, replaced=Fraction(4), moved=Fraction(2)),
        ]

    @property
    def _distance(self) -> CentreAndSpread:
        """One distance for both sides."""
        return CentreAndSpread(self.n, self.epsilon, unit=self.unit)

    @property
    def _symmetric(self) -> bool:
        """Whether there are too few records for quartiles on both sides."""
        return self.n * _nats_per_rank(self._sides[1], self.unit, self.epsilon) < 4 * NATS

    def ask(self, column: FloatArray, choose: ChooseQuantile) -> tuple[float, ...]:
        """Return both ends of the range."""
        first, second = self.levels
        if self.bounds is not None:
            within, column = _lattices(*self.bounds), np.clip(column, *self.bounds)
            ends = [
                choose(Ranks(column, q, within), level)
                for q, level in ((self.low, first), (self.high, second))
            ]
            return min(ends), max(ends)
        if self._symmetric:
            centre, spread = self._distance.ask(column, choose)
            tail = max(min(self.low, 1 - self.high), Fraction(1, 1000))
            away = -spread * float(ndtri(float(tail)))
            return _around(centre, away, away)
        rate = _nats_per_rank(second, self.unit, self.epsilon)
        low = reachable(self.low, self.n, rate, QUARTER)
        high = reachable(1 - self.high, self.n, rate, QUARTER)
        centre = choose(Ranks(column, HALF, _lattices(None, None)), first)
        lower, upper = column[column <= centre], column[column >= centre]
        bottom = choose(Ranks(lower, 2 * low, _lattices(None, centre)), second)
        top = choose(Ranks(upper, 1 - 2 * high, _lattices(centre, None)), second)
        down = _normal_ratio(self.low, low) * (centre - bottom)
        up = _normal_ratio(1 - self.high, high) * (top - centre)
        if not down and low > self.low:  # many records have this value: look as far as above
            down = up
        if not up and high > 1 - self.high:
            up = down
        return _around(centre, down, up)

    def could_answer(self, numbers: Sequence[float]) -> bool:
        """Tell whether numbers are two ends."""
        return len(numbers) == 2 and _ascending(numbers)


def _window(low: float, high: float) -> tuple[float, float]:
    """Return a range with as much room again on both sides, of round ends.

    Edges in it are looked for on a lattice that has whole numbers, if the range is of such.

    >>> _window(0.5, 6.5), _window(-0.1, 0.3)
    ((-16.0, 16.0), (-1.0, 1.0))
    """
    step = 2.0 ** math.ceil(math.log2(high - low))
    centre = step * round((low / 2 + high / 2) / step)
    ends = min(low, centre - 2 * step), max(high, centre + 2 * step)
    return max(ends[0], -LARGEST_NUMBER), min(ends[1], LARGEST_NUMBER)


@dataclass(frozen=True)
class RangeAndEdges:
    """A range that nearly all records are in, then edges between bins within it.

    Without a range the outer edges would be looked for among all numbers, and found wherever there
    is most room for them if the records beyond are few.

    >>> plan = RangeAndEdges(8, 4000, 0.1)
    >>> [str(level.share) for level in plan.levels]
    ['1/5', '1/5', '1/5', '1/5', '1/5']
    """

    n_bins: int
    n: int
    epsilon: float
    unit: PrivacyUnit = RECORD

    @property
    def levels(self) -> Sequence[Level]:
        """Those of the range, then those of the edges."""
        part, inner = self._range_part, BinEdges(self.n_bins).levels
        return [
            *(level.scaled(part) for level in self._outer.levels),
            *(level.scaled(1 - part) for level in inner),
        ]

    @property
    def _range_part(self) -> Fraction:
        """Part of the budget for the range: as much as it needs, from 1/8 to 3/4."""
        known = self.n * self.unit.equivalent(self.epsilon)
        wanted = Fraction(_RANGE_RECORDS / known).limit_denominator(100) if known else Fraction(1)
        return min(max(wanted, QUARTER / 2), 1 - QUARTER)

    @property
    def _finds_outer_edges(self) -> bool:
        """Whether the outermost bins have enough records that their edges need no range."""
        level = BinEdges(self.n_bins).levels[-1].scaled(1 - self._range_part)
        rate = _nats_per_rank(level, self.unit, self.epsilon)
        return self.n * rate >= self.n_bins * NATS / 2

    @property
    def _outer(self) -> OuterQuantiles:
        tail = min(Fraction(1, 100), Fraction(1, 2 * self.n_bins))
        epsilon = self.epsilon * float(self._range_part)
        return OuterQuantiles(tail, 1 - tail, self.n, epsilon, unit=self.unit)

    def ask(self, column: FloatArray, choose: ChooseQuantile) -> tuple[float, ...]:
        """Return the low end of the range, the edges, and the high end."""
        part = self._range_part
        low, high = self._outer.ask(column, _with_part(choose, part))
        window = _window(low, high) if self._finds_outer_edges else (low, high)
        edges = BinEdges(self.n_bins, window)
        inner = edges.ask(np.clip(column, *window), _with_part(choose, 1 - part))
        return min(low, inner[0]), *inner, max(high, inner[-1])

    def could_answer(self, numbers: Sequence[float]) -> bool:
        """Tell whether numbers are two ends and the edges between them, in ascending order."""
        return len(numbers) == self.n_bins + 1 and _ascending(numbers)


def _with_part(choose: ChooseQuantile, part: Fraction) -> ChooseQuantile:
    """Return what answers with a part of the budget; questions of one level still share one."""
    scaled: dict[int, tuple[Level, Level]] = {}

    def within(ranks: Ranks, level: Level) -> float:
        return choose(ranks, scaled.setdefault(id(level), (level, level.scaled(part)))[1])

    return within


@dataclass(frozen=True)
class CentreAndSpread:
    """The median, and the distance from it that 95 % of the records keep.

    Where ``n`` and ``epsilon`` are too small for that, the distance of fewer records is asked for.
    The spread is the standard deviation of a normal law with the same distance.
    """

    n: int
    epsilon: float
    bounds: QuantileBounds = None
    unit: PrivacyUnit = RECORD

    @property
    def levels(self) -> Sequence[Level]:
        """First the median, then the distance of any share of the records."""
        median = Fraction(1, 3) if self.unit.size_is_secret else HALF  # in proportion to changes
        distance = Level(1 - median, replaced=Fraction(2), moved=Fraction(2))
        return [_disjoint(median, [HALF]), distance]

    def ask(self, column: FloatArray, choose: ChooseQuantile) -> tuple[float, ...]:
        """Return median and spread."""
        first, second = self.levels
        low, high = _ends(self.bounds)
        clipped = np.clip(column, *(self.bounds or (-LARGEST_NUMBER, LARGEST_NUMBER)))
        centre = choose(Ranks(clipped, HALF, _lattices(low, high)), first)
        distances = np.sort(np.abs(clipped - centre))
        span = None if low is None or high is None else min(high - low, LARGEST_NUMBER)
        rate = _nats_per_rank(second, self.unit, self.epsilon)
        beyond = reachable(SPREAD_QUANTILE, self.n, rate, HALF)
        distance = choose(Ranks(distances, 1 - beyond, _lattices(0.0, span)), second)
        return centre, distance / -float(ndtri(float(beyond / 2)))

    def could_answer(self, numbers: Sequence[float]) -> bool:
        """Tell whether numbers are a centre and a spread."""
        return len(numbers) == 2 and numbers[1] >= 0


ColumnQuestions = BinEdges | OuterQuantiles | RangeAndEdges | CentreAndSpread
"""The questions about one column, by levels whose shares add up to 1; answers are ascending."""
