"""Small data universes: all data sets of n records, and which of them are neighbours."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from itertools import combinations_with_replacement, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.categories import plans as of_categories
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.columns.plans import ChoicePlan, QuantilePlan, TextCounts, TextPlan
from dpbayes_sklearn.columns.quantiles import QuantileQuestions, SortedColumns
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.moments import MomentsPlan
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.dependence import (
    ColumnChoice,
    ColumnScores,
    EdgeScores,
    PairTables,
    TreeChoice,
    TreePrices,
)
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.records import LocalRecords, Shard, Table
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.regression import plans as of_moments
from dpbayes_sklearn.release import Facts, Plan
from dpbayes_sklearn.schema import Interval

Indices = npt.NDArray[np.intp]
DataSet = tuple[int, ...]
Record = tuple[Any, ...]


class Known(NamedTuple):
    """Statistics, and what is public about the number of records."""

    statistics: Any
    facts: Facts


def plan_for(mechanism: Any, statistics: Any, prior: Any, budget: Budget) -> Plan[Any, Any]:
    """Return the plan of a release of such statistics; their number is public unless it is told.

    Quantiles, texts and choices have one way of release, whatever the mechanism.
    """
    if isinstance(mechanism, Mechanism):
        mechanism._validate_params()  # an option that no fit accepts is not audited either
    facts = Facts(statistics.n) if not isinstance(statistics, Known) else statistics.facts
    exact = statistics.statistics if isinstance(statistics, Known) else statistics
    if isinstance(exact, CountTables):
        return plans.plan(mechanism, prior, facts, budget)
    if isinstance(exact, SimplexCounts):
        return of_categories.plan(mechanism, prior, facts, budget)
    if isinstance(exact, SortedColumns):
        return QuantilePlan.of(prior, budget)
    if isinstance(exact, TextCounts):
        return TextPlan.of(exact.n_columns, budget)
    if isinstance(exact, (ColumnScores, EdgeScores)):
        return ChoicePlan.of(prior, budget)
    if isinstance(prior, Design):
        return MomentsPlan(cost=budget, mechanism="laplace", design=prior, facts=facts)
    return of_moments.plan(mechanism, prior, facts, budget)


def released(mechanism: Any, statistics: Any, prior: Any, budget: Budget, noise: Noise) -> Any:
    """Plan and release; return the posterior."""
    exact = statistics.statistics if isinstance(statistics, Known) else statistics
    return plan_for(mechanism, statistics, prior, budget).release(exact, noise)


class Universe(ABC):
    """The records that are possible, the statistics of any of them, and a prior to read them by."""

    is_finite: ClassVar[bool] = True
    """Whether these are all records there can be, and a release is one step."""

    @cached_property
    @abstractmethod
    def records(self) -> list[Record]:
        """Every possible record; what a feature is comes first, the label or target last."""

    @abstractmethod
    def statistics(self, chosen: Sequence[int]) -> Any:
        """Return the production statistics of a data set, given as positions in `records`."""

    @abstractmethod
    def prior(self, concentration: Any) -> Any:
        """Return a prior whose ``update`` hands back what was released, untouched."""

    def observed(self, chosen: Sequence[int], size: Facts | None) -> Any:
        """Return the statistics of a data set, with a number of records if it was released."""
        statistics = self.statistics(chosen)
        return statistics if size is None else Known(statistics, size)

    def data_sets(self, n: int, unit: PrivacyUnit = RECORD) -> list[DataSet]:
        """Return all multisets of n records, or of the fewer that a unit leaves, sorted."""
        least = max(n - unit.max_records, 0) if unit.size_is_secret else n
        return [d for size in range(least, n + 1) for d in self._multisets(size)]

    def _multisets(self, n: int) -> list[DataSet]:
        return list(combinations_with_replacement(range(len(self.records)), n))

    def neighbours(self, n: int, unit: PrivacyUnit) -> tuple[Indices, Indices]:
        """Return all pairs of neighbours, each once, as positions among `data_sets`."""
        rank = {d: i for i, d in enumerate(self.data_sets(n, unit))}
        pairs = [
            (rank[_joined(rest, one)], rank[_joined(rest, other)])
            for size, changes in self._changes(unit).items()
            for rest in self._multisets(n - size)
            for one, other in changes
        ]
        first, second = np.array(pairs, np.intp).reshape(-1, 2).T
        return first, second

    def _changes(self, unit: PrivacyUnit) -> dict[int, list[tuple[DataSet, DataSet]]]:
        """Return what the unit of privacy may exchange for what, by the number of records."""
        if unit.size_is_secret:
            sizes = range(1, unit.max_records + 1)
            return {size: [(some, ()) for some in self._multisets(size)] for size in sizes}
        records, alike = self.records, self._multisets(unit.max_records)
        pairs = [
            (one, other)
            for i, one in enumerate(alike)
            for other in alike[:i]
            if unit.whole_records or _one_feature(records[one[0]], records[other[0]])
        ]
        return {unit.max_records: pairs}


def _joined(rest: DataSet, some: DataSet) -> DataSet:
    return tuple(sorted(rest + some))


def _one_feature(one: Record, other: Record) -> bool:
    """Tell whether two records differ in one feature value and not in the label."""
    changed = [a != b for a, b in zip(one, other, strict=True)]
    return sum(changed) == 1 and not changed[-1]


class _Untouched:
    """A prior that hands back what a mechanism released, so that all of it can be looked at."""

    def update(self, released: Any) -> Any:
        return released


class _CountPrior(_Untouched, DirichletPrior):
    pass


class _SimplexPrior(_Untouched, SimplexPrior):
    pass


@dataclass(frozen=True)
class CountUniverse(Universe):
    """Records of a discrete network: the features' codes, then the class or None."""

    network: Network

    @cached_property
    def records(self) -> list[Record]:
        return [*product(*map(range, self.network.sizes)), (*[0] * self.network.target, None)]

    def statistics(self, chosen: Sequence[int]) -> CountTables:
        return CountTables.count(self.network, [self._codes(chosen)]).among(len(chosen))

    def _codes(self, chosen: Sequence[int]) -> tuple[AnyArray, AnyArray]:
        """Return features and classes of the records that have a class: others are in no cell."""
        known = [
            record for record in map(self.records.__getitem__, chosen) if record[-1] is not None
        ]
        codes = np.array(known, np.uint8).reshape(-1, len(self.network.sizes))
        return codes[:, :-1], codes[:, -1].astype(np.intp)

    def prior(self, concentration: Any) -> DirichletPrior:
        given = np.asarray(concentration, np.float64)
        return _CountPrior(self.network, tuple(np.resize(given, k) for k in self.network.sizes))


@dataclass(frozen=True)
class SimplexUniverse(Universe):
    """Records of one variable of k categories."""

    n_categories: int

    @cached_property
    def records(self) -> list[Record]:
        return [(code,) for code in range(self.n_categories)]

    def statistics(self, chosen: Sequence[int]) -> SimplexCounts:
        return SimplexCounts.count(np.asarray(chosen, np.intp), self.n_categories)

    def prior(self, concentration: Any) -> SimplexPrior:
        given = np.resize(np.asarray(concentration, np.float64), self.n_categories)
        return _SimplexPrior(Dirichlet(given))


@dataclass(frozen=True)
class MomentUniverse(Universe):
    """Records of a regression: some values of every column, and a target in [-1, 1] or none."""

    design: Design
    levels: int = 5

    is_finite: ClassVar[bool] = False

    @cached_property
    def records(self) -> list[Record]:
        columns = [
            [*np.linspace(d.low, d.high, self.levels).tolist(), *[math.nan] * d.marks_missing]
            if isinstance(d, Interval)
            else d.values
            for d in self.design.domains
        ]
        targets = [*np.linspace(-1.0, 1.0, self.levels).tolist(), math.nan]
        return list(product(*columns, targets))

    def statistics(self, chosen: Sequence[int]) -> LinearRecords:
        records = [self.records[i] for i in chosen]
        table = np.array([record[:-1] for record in records], dtype=object)
        table = table.reshape(len(records), len(self.design.domains))
        target = np.array([record[-1] for record in records], np.float64)
        return LinearRecords(self.design, Scale(0.0, 1.0), LocalRecords([(Table(table), target)]))

    def prior(self, concentration: Any) -> GaussianPrior:
        return GaussianPrior(self.design, float(concentration), inference="noise_aware")


@dataclass(frozen=True)
class ChoiceUniverse(CountUniverse):
    """Records of naive Bayes, whose columns are chosen from."""

    choice: ColumnChoice

    is_finite: ClassVar[bool] = False

    def statistics(self, chosen: Sequence[int]) -> Any:
        return ColumnScores.of(super().statistics(chosen))

    def prior(self, concentration: Any) -> Any:
        return self.choice


@dataclass(frozen=True)
class TreeUniverse(CountUniverse):
    """Records of features and a class, among which a tree is chosen."""

    choice: TreeChoice

    is_finite: ClassVar[bool] = False

    def statistics(self, chosen: Sequence[int]) -> Any:
        tables = PairTables.of(*self._codes(chosen), self.network.sizes)
        prices = TreePrices.of(self.network, RECORD, math.inf)  # none: few records may have a tree
        return EdgeScores.of(replace(tables, n=len(chosen)), prices)

    def prior(self, concentration: Any) -> Any:
        return self.choice


@dataclass(frozen=True)
class ColumnUniverse(Universe):
    """Records of columns whose quantiles are asked for: some numbers, ties and a missing one."""

    questions: QuantileQuestions
    numbers: tuple[float, ...] = (-7.5, 0.0, 3.0, 3.5, 1e300, np.nan)

    is_finite: ClassVar[bool] = False

    @cached_property
    def records(self) -> list[Record]:
        return list(product(self.numbers[: 6 if self._width == 1 else 3], repeat=self._width))

    @property
    def _width(self) -> int:
        return len(self.questions.each)

    def statistics(self, chosen: Sequence[int]) -> SortedColumns:
        table = np.array([self.records[i] for i in chosen], np.float64).reshape(-1, self._width)
        return SortedColumns(LocalRecords.unlabelled(Table(table)))

    def prior(self, concentration: Any) -> QuantileQuestions:
        return self.questions


@dataclass(frozen=True)
class TextUniverse(Universe):
    """Records of one column of a few texts."""

    texts: tuple[str, ...]

    @cached_property
    def records(self) -> list[Record]:
        return [(text,) for text in self.texts]

    def statistics(self, chosen: Sequence[int]) -> TextCounts:
        column = np.array([self.records[i] for i in chosen], dtype=object).reshape(-1, 1)
        return TextCounts.of_shard((0,), Shard(Table(column), np.empty(0)))

    def prior(self, concentration: Any) -> None:
        """Return nothing: which texts are common is all that is asked."""


@singledispatch
def universe_of(structure: Any) -> Universe:
    """Return the small world of a network, a number of categories, a design or questions."""
    raise TypeError(
        "structure must be a Network, a number of categories, a Design, QuantileQuestions or "
        "ColumnChoice. "
        f"Got {type(structure).__name__} instead."
    )


universe_of.register(Universe, lambda universe: universe)
universe_of.register(Network, CountUniverse)
universe_of.register(int, SimplexUniverse)
universe_of.register(Design, MomentUniverse)
universe_of.register(QuantileQuestions, ColumnUniverse)
universe_of.register(ColumnChoice, lambda choice: ChoiceUniverse(choice.network, choice))
universe_of.register(TreeChoice, lambda choice: TreeUniverse(choice.network, choice))
