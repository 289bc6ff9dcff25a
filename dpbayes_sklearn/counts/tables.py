r"""Tables of counts: the sufficient statistics of a discrete network.

**How precise each of several tables should be when they share one budget of Gaussian noise.**

Table j of :math:`m_j` cells gets noise of variance :math:`\sigma^2/w_j`. A record changes as many
cells of every table, so :math:`\sigma^2` must grow with :math:`\sum_j w_j`, and the sum of the
variances of all cells, :math:`\sum_i w_i \cdot \sum_j m_j/w_j`, is least for
:math:`w_j \propto \sqrt{m_j}` (Cauchy and Schwarz).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.counts.counting import Space, count_by_state, count_sparse_star
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.data.encoder import Codes, Encoder
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    Marginal,
    NoiseLaw,
    least_noise,
)
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.release import Released, bound_of
from dpbayes_sklearn.schema.domains import Categories

__all__ = ["CountTables", "ReleasedCounts", "Tables", "table_weights"]


_STEPS = 2  # in the weight of the smallest table


def table_weights(sizes: Sequence[int]) -> tuple[int, ...]:
    r"""Return small integers near :math:`\sqrt{m_j}` times a constant, without a common divisor.

    >>> table_weights([4, 4, 16, 2]), table_weights([6, 6])
    ((3, 3, 6, 2), (1, 1))
    """
    least = min(sizes, default=1)
    weights = [_rounded_root(_STEPS**2 * size, least) for size in sizes]
    divisor = math.gcd(*weights)
    return tuple(weight // divisor for weight in weights)


def _rounded_root(numerator: int, denominator: int) -> int:
    """Return the integer nearest to the root of a fraction, exactly."""
    return (math.isqrt(4 * numerator // denominator) + 1) // 2


Tables = tuple[npt.NDArray[Any], ...]
"""One array per node of a network, shaped as its family."""


@dataclass(frozen=True)
class CountTables:
    """Sensitive: exact counts of every family of a network.

    ``tables[i][parents' values..., value]`` is the number of records in that state, ``n`` the
    number of records. A plan, which has seen no record, asks tables without cells for laws; their
    n is a public bound.
    """

    network: Network
    tables: Tables
    n: int

    @classmethod
    def count(
        cls, network: Network, chunks: Iterable[tuple[Codes, npt.NDArray[Any]]]
    ) -> CountTables:
        """Count records given as chunks of feature codes and class codes."""
        same_parents: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for node, parents in enumerate(network.parents):
            same_parents[parents].append(node)
        groups = [_Group(network, *item) for item in same_parents.items()]
        n, space = 0, Space()
        for codes, classes in chunks:
            n += len(classes)
            for group in groups:
                group.add(codes, classes, space)
        by_node = dict(table for group in groups for table in group.tables())
        return cls(network, tuple(by_node[node] for node in range(len(network.sizes))), n)

    @classmethod
    def of_shard(
        cls, network: Network, encoder: Encoder, classes: Categories, shard: Shard
    ) -> CountTables:
        """Count the records of a shard by the public domains of features and class."""
        if shard.table.is_sparse and network.is_star:
            tables = count_sparse_star(network, encoder, classes, shard)
            return cls(network, tables, shard.table.n_rows)
        chunks = encoder.chunks(shard.table)
        return cls.count(network, ((x, classes.encode(shard.target[rows])) for rows, x in chunks))

    @property
    def structure(self) -> Network:
        """The public network that was counted."""
        return self.network

    def __add__(self, other: CountTables) -> CountTables:
        """Return the counts of the records of both, which must be different records."""
        if self.network != other.network:
            raise ValueError("Counts of different networks cannot be added.")
        pairs = zip(self.tables, other.tables, strict=True)
        return CountTables(self.network, tuple(a + b for a, b in pairs), self.n + other.n)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return the L1 sensitivity of all tables together.

        A replaced record takes one from a cell of a table and adds one to another, so each of the
        :meth:`Network.tables_changed` tables changes by 2; one that comes or goes changes it by 1,
        k records of a person by k times as much. For naive Bayes with d features that is 2(d+1)
        for a replaced record, d + 1 for one that comes or goes, and 2 for a feature.
        """
        return unit.n_changed * self.network.tables_changed(unit)

    def table_weights(self, unit: PrivacyUnit) -> tuple[int, ...]:
        """Return the weight of every table: Gaussian noise has its variance over the weight.

        Where a record changes all tables, larger ones get more; where one feature changes some of
        them at a time, all have weight 1. A table of one cell holds n, and has weight 0 if that is
        public.
        """
        sizes = [prod(shape) for shape in self.network.shapes]
        least = 0 if unit.size_is_secret else 1
        noisy = [size for size in sizes if size > least]
        weights = iter(table_weights(noisy) if unit.whole_records else [1] * len(noisy))
        return tuple(next(weights) if size > least else 0 for size in sizes)

    def shifts(self, unit: PrivacyUnit) -> dict[tuple[int, int], int]:
        """Return how many cells of all tables change by how much, by (amount, weight).

        A cell loses one record, gains one or stays, so as many cells change by one as the L1
        sensitivity says: two of every table that a replaced record changes. With equal weights
        the L2 sensitivity of naive Bayes with d features is the square root of 2(d+1). Of k
        records of one person, the same cells change by k if all are alike: no other change has so
        large an L2 norm.
        """
        k, cells = unit.max_records, unit.n_changed // unit.max_records
        if not unit.whole_records:
            changed = cells * self.network.tables_changed(unit)
            return {(k, 1): changed} if changed else {}
        weights = Counter(filter(None, self.table_weights(unit)))
        return {(k, weight): cells * tables for weight, tables in sorted(weights.items())}

    def class_row_sensitivity(self, unit: PrivacyUnit) -> int:
        r"""Return the sensitivity in the norm :math:`\sum_c \max_j \|row_{cj}\|_1`.

        Only for naive Bayes, where the rows of class c in all tables, and its count, change by
        one record at a time: a replaced record takes 1 from the norm of a class's rows and adds 1
        to that of another's, or changes the same rows by 2. All k records of a person together
        move it by k times as much, whatever their classes are.
        """
        if not self.network.is_star:
            raise ValueError("Joint noise on counts is for naive Bayes; use noise='independent'.")
        return unit.n_changed if self.network.tables_changed(unit) else 0

    def law(
        self, noise: str, unit: PrivacyUnit, epsilon: Fraction, class_weight: Fraction = Fraction(1)
    ) -> NoiseLaw:
        """Return the law of the noise to add, chosen from public facts only.

        Parameters
        ----------
        noise : {"independent", "joint", "auto"}
            Discrete Laplace noise in every cell, joint noise of all tables, or whichever has less
            variance.
        unit : PrivacyUnit
        epsilon : Fraction
        class_weight : Fraction
            Share of the budget that the class table gets, in units of any other table's share.
        """
        independent = partial(self._independent_noise, unit, epsilon, class_weight)
        if not self.sensitivity(unit):  # no record can change them: no noise is needed
            return independent()
        if class_weight != 1 and noise == "joint":
            raise ValueError("budget_split must be 1 for joint noise, which all tables share.")
        laws: dict[str, Callable[[], NoiseLaw]] = {"independent": independent}
        if class_weight == 1:
            laws["joint"] = partial(self._class_rows, unit, epsilon)
        return least_noise(noise, laws)

    def _independent_noise(
        self, unit: PrivacyUnit, epsilon: Fraction, class_weight: Fraction
    ) -> DiscreteLaplace:
        """Return scales with which the sensitivities of all tables over scales add to epsilon."""
        network, everything = self.network, self.sensitivity(unit)
        sizes = [prod(shape) for shape in network.shapes]
        if class_weight == 1:
            scale = class_scale = laplace_scale(everything, epsilon)
        elif network.parents[network.target]:
            raise ValueError("budget_split must be 1 for a network whose class has parents.")
        else:
            # a class without parents changes with its own label only: its part can be taken off
            own = unit.n_changed * Network((network.sizes[-1],), ((),)).tables_changed(unit)
            scale = laplace_scale(everything - own + class_weight * own, epsilon)
            class_scale = laplace_scale(scale / class_weight, Fraction(1))
        scales = [scale] * network.target + [class_scale]
        # a table of one cell holds n, which may be public
        least = 0 if unit.size_is_secret else 1
        noisy = [b if size > least else Fraction(0) for b, size in zip(scales, sizes, strict=True)]
        return DiscreteLaplace(tuple(noisy), tuple(sizes))

    def gaussian_law(self, unit: PrivacyUnit, variance: Fraction) -> DiscreteGaussian:
        """Return Gaussian noise with this variance of weight 1."""
        sizes, weights = map(prod, self.network.shapes), self.table_weights(unit)
        return DiscreteGaussian(
            tuple(variance / w if w else Fraction(0) for w in weights), tuple(sizes)
        )

    def _class_rows(self, unit: PrivacyUnit, epsilon: Fraction) -> ClassRows:
        *values, n_classes = self.network.sizes
        law = ClassRows.of(tuple(values), n_classes, self.class_row_sensitivity(unit), epsilon)
        if self.n * law.grid >= 2**60:
            raise ValueError("There are too many records for joint noise; use noise='independent'.")
        return law

    def without_noise(self) -> ReleasedCounts:
        """Return the released form when no privacy is asked for."""
        return ReleasedCounts(self.network, self.tables, self.n, ())


class _Group:
    """Counts of all nodes that have the same parents."""

    def __init__(self, network: Network, parents: tuple[int, ...], nodes: list[int]) -> None:
        self._network, self._parents = network, parents
        self._features = [u for u in nodes if u != network.target]
        self._has_class = len(self._features) < len(nodes)
        self._n_states = prod(network.sizes[u] for u in parents)
        self._sizes = [network.sizes[u] for u in self._features]
        shape = self._n_states, len(self._features), max(self._sizes, default=0)
        self._counts = np.zeros(shape, np.int64)
        self._classes = np.zeros(self._n_states * network.sizes[-1], np.int64)

    def add(self, codes: Codes, classes: npt.NDArray[Any], space: Space) -> None:
        """Add one chunk of records."""
        target, sizes = self._network.target, self._network.sizes
        columns = [classes if u == target else codes[:, u].astype(np.intp) for u in self._parents]
        state = columns[0] if columns else np.zeros(len(classes), np.intp)
        for u, column in zip(self._parents[1:], columns[1:], strict=True):
            state = state * sizes[u] + column
        if self._has_class:
            cells = state * sizes[target] + classes if columns else classes
            self._classes += np.bincount(cells, minlength=len(self._classes))
        if self._features:
            every = len(self._features) == codes.shape[1]
            wanted = codes if every else codes[:, self._features]
            counts = count_by_state(state, self._n_states, wanted, self._sizes, space)
            self._counts += counts

    def tables(self) -> Iterator[tuple[int, IntArray]]:
        """Yield every node of the group and its table."""
        shapes, target = self._network.shapes, self._network.target
        if self._has_class:
            yield target, self._classes.reshape(shapes[target])
        for column, (u, size) in enumerate(zip(self._features, self._sizes, strict=True)):
            yield u, self._counts[:, column, :size].reshape(shapes[u])


@dataclass(frozen=True)
class ReleasedCounts(Released):
    """Counts after noise: public, with the public law of the noise.

    Attributes
    ----------
    tables : tuple of arrays
        Exact counts plus noise in every cell: integers, or multiples of 1/grid.
    laws : tuple of NoiseLaw
        The law of the noise of every batch that was added up: none without noise.
    size_laws : tuple of NoiseLaw
        The same for ``n``: none if it is the public number of records.
    """

    network: Network
    tables: Tables
    n: int
    laws: tuple[NoiseLaw, ...]
    size_laws: tuple[NoiseLaw, ...] = ()

    def noise(self, node: int) -> Marginal:
        """Return the distribution of the noise in one cell of a node's table, all batches."""
        return sum_of([law.marginal(node) for law in self.laws])

    def row_noise(self, node: int) -> Marginal:
        """Return the distribution of the noise in one cell given its row's sum, all batches."""
        return sum_of([law.row_marginal(node) for law in self.laws])

    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the largest error of a count, all batches together."""
        return sum(law.error_bound(delta / len(self.laws)) for law in self.laws)

    def merge(self, other: ReleasedCounts) -> ReleasedCounts:
        """Return the released counts of both batches together."""
        tables = tuple(a + b for a, b in zip(self.tables, other.tables, strict=True))
        return replace(self, tables=tables, **self._together(other))

    def clipped(self) -> Tables:
        """Return the counts clipped to [0, n], or to what n may be if it is secret."""
        most = bound_of(self.n, self.size_laws)
        return tuple(np.clip(table, 0, most).astype(np.float64) for table in self.tables)
