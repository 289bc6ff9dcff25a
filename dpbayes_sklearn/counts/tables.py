r"""Tables of counts: the sufficient statistics of a discrete network.

**How precise each of several tables should be when they share one budget of Gaussian noise.**

Table j of :math:`m_j` cells gets noise of variance :math:`\sigma^2/w_j`. A record changes as many
cells of every table, so :math:`\sigma^2` must grow with :math:`\sum_j w_j`, and the sum of the
variances of all cells, :math:`\sum_i w_i \cdot \sum_j m_j/w_j`, is least for
:math:`w_j \propto \sqrt{m_j}` (Cauchy and Schwarz).

Codes are counted by state in nearly one pass over memory; of sparse rows, what they store.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, IntArray
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.data.encoder import Codes, Encoder
from dpbayes_sklearn.data.records import Shard, with_target
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    Marginal,
    NoiseLaw,
    least_noise,
)
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Released, bound_of
from dpbayes_sklearn.schema import Domain

_FEW_VALUES = 16  # Up to here comparing with each value is faster than a histogram.
_FEW_STATES = 3  # Up to here looking for each state is faster than sorting.
# Fewer records without a class than this many standard deviations of noise count as none.
_MISSING_DEVIATIONS = 3.0
_BYTE = 255  # A byte adds up at most this many ones.
_JOINT_CELLS = 1 << 12  # Joint tables of several columns stay in the cache up to this size.
_ROWS_A_CELL = 8  # With fewer rows a cell, adding up joint cells takes as long as counting.
_STORED_AT_A_TIME = 1 << 18  # This many stored values of sparse rows are counted at a time.

_WEIGHT_STEPS = 2  # The weight of the smallest table has this many steps.


class Space:
    """Memory that is used again for every chunk: fresh memory costs more than the counting."""

    def __init__(self) -> None:
        self._memory: dict[str, AnyArray] = {}

    def take(self, shape: tuple[int, ...], dtype: Any, purpose: str) -> AnyArray:
        """Return an array of this shape and type, with any content."""
        size, memory = prod(shape), self._memory.get(purpose)
        if memory is None or memory.dtype != dtype or memory.size < size:
            memory = self._memory[purpose] = np.empty(size, dtype)
        return memory[:size].reshape(shape)


def count_by_state(
    states: npt.NDArray[np.intp], n_states: int, codes: Codes, sizes: Sequence[int], space: Space
) -> IntArray:
    """Count the rows in each state that hold each code; shape (n_states, columns, max(sizes)).

    Written by hand because a float matrix product or one histogram per column costs several
    times the memory traffic, and sums in bytes are exact.
    """
    n_values = max(sizes)
    if n_values > _FEW_VALUES:
        return _together(states, n_states, codes, sizes)
    counts = np.zeros((n_states, codes.shape[1], n_values), np.int64)
    totals = np.bincount(states, minlength=n_states)
    if n_states == n_values == 2:
        counts[:, :, 1] = _ones_of_two_states(states, totals, codes, space)
    else:
        in_order = _rows_at(codes, _by_state(states, n_states), space)
        _count_each_value(counts, totals, in_order, space)
    counts[:, :, 0] = totals[:, None] - counts.sum(axis=2)
    return counts


def _rows_at(codes: Codes, positions: npt.NDArray[np.intp], space: Space) -> Codes:
    """Return a copy of the rows at some positions."""
    out = space.take((len(positions), codes.shape[1]), codes.dtype, "rows")
    # "clip" because other modes fill a buffer of their own first
    return codes.take(positions, axis=0, out=out, mode="clip")


def _ones_of_two_states(
    states: npt.NDArray[np.intp], totals: IntArray, codes: Codes, space: Space
) -> IntArray:
    """Sum zeros and ones of two states: copying the rows of the rarer one is enough."""
    rarer = int(totals.argmin())
    sums = np.empty((2, codes.shape[1]), np.int64)
    sums[rarer] = _column_sums(_rows_at(codes, np.flatnonzero(states == rarer), space))
    sums[1 - rarer] = _column_sums(codes) - sums[rarer]
    return sums


def _count_each_value(counts: IntArray, totals: IntArray, codes: Codes, space: Space) -> None:
    """Fill in the counts of all values but 0, for rows in the order of their states."""
    n_values = counts.shape[2]
    equal = space.take(codes.shape if n_values > 2 else (0,), np.bool_, "equal")
    start = 0
    for state, total in enumerate(totals):
        rows = codes[start : start + total]
        start += total
        ones: Codes = rows  # two-valued codes are their own indicator
        for value in range(1, n_values):
            if n_values > 2:
                ones = np.equal(rows, value, out=equal[: len(rows)]).view(np.uint8)
            counts[state, :, value] = _column_sums(ones)


def _by_state(states: npt.NDArray[np.intp], n_states: int) -> npt.NDArray[np.intp]:
    """Return the positions of all rows, those of a state after another."""
    if n_states <= _FEW_STATES:
        return np.concatenate([np.flatnonzero(states == state) for state in range(n_states)])
    # numpy sorts short words by counting them
    return np.argsort(states.astype(np.min_scalar_type(n_states)), kind="stable")


def _column_sums(ones: Codes) -> IntArray:
    """Sum zeros and ones down the columns, 255 rows at a time in single bytes."""
    n, d = ones.shape
    whole = n // _BYTE
    sums_of_255 = ones[: whole * _BYTE].reshape(_BYTE, whole * d).sum(axis=0, dtype=np.uint8)
    rest = ones[whole * _BYTE :].sum(axis=0, dtype=np.uint8)
    return np.asarray(sums_of_255.reshape(whole, d).sum(axis=0, dtype=np.int64) + rest)


def _together(
    states: npt.NDArray[np.intp], n_states: int, codes: Codes, sizes: Sequence[int]
) -> IntArray:
    """Count some columns at a time by all of their codes together, and add up for each of them."""
    counts = np.zeros((n_states, codes.shape[1], max(sizes)), np.int64)
    columns = np.asfortranarray(codes)
    most = min(_JOINT_CELLS, len(codes) // _ROWS_A_CELL)
    for group, n_cells in _groups(tuple(sizes[: codes.shape[1]]), n_states, most):
        cells: AnyArray = states.astype(np.uint16 if n_cells <= 2**16 else np.intp)
        for j in group:
            cells *= cells.dtype.type(sizes[j])
            cells += columns[:, j]
        joint = np.bincount(cells, minlength=n_cells).reshape(n_states, *(sizes[j] for j in group))
        for axis, j in enumerate(group, start=1):
            others = tuple(k for k in range(1, joint.ndim) if k != axis)
            counts[:, j, : sizes[j]] = joint.sum(axis=others)
    return counts


@lru_cache
def _groups(sizes: tuple[int, ...], n_states: int, most: int) -> list[tuple[list[int], int]]:
    """Return groups of columns with at most so many joint cells, and their numbers of cells.

    >>> _groups((4, 30, 4, 2), 2, 64)
    [([1], 60), ([0, 2, 3], 64)]
    """
    groups: list[tuple[list[int], int]] = []
    for j in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
        room = (i for i, (_, cells) in enumerate(groups) if cells * sizes[j] <= most)
        if (i := next(room, None)) is None:
            groups.append(([j], n_states * sizes[j]))
        else:
            groups[i] = [*groups[i][0], j], groups[i][1] * sizes[j]
    return groups


def count_sparse_star(
    network: Network, encoder: Encoder, classes: Domain, shard: Shard
) -> tuple[AnyArray, ...]:
    """Return the tables of a star: stored values are counted, zeros follow by difference.

    The time grows with the number of values that are stored.
    """
    n_classes, d, n_values = network.sizes[-1], network.target, max(network.sizes[:-1])
    table = shard.table
    of_class = np.zeros(n_classes, np.int64)
    flat = np.zeros(n_classes * d * n_values, np.int64)
    step = max(1, table.n_rows * max(_STORED_AT_A_TIME, flat.size) // max(1, table.n_stored))
    for rows, matrix in table.chunks(step):
        labels = classes.encode(shard.target[rows])
        of_class += np.bincount(labels, minlength=n_classes)
        label = np.repeat(labels, np.diff(matrix.indptr))
        cells = (label * d + matrix.indices) * n_values + encoder.stored(matrix)
        flat += np.bincount(cells, minlength=flat.size)
    counts = flat.reshape(n_classes, d, n_values)
    not_stored = of_class[:, None] - counts.sum(axis=2)
    counts[:, np.arange(d), encoder.zeros(table.dtype)] += not_stored
    return (*(counts[:, j, : network.sizes[j]] for j in range(d)), of_class)


def table_weights(sizes: Sequence[int]) -> tuple[int, ...]:
    r"""Return small integers near :math:`\sqrt{m_j}` times a constant, without a common divisor.

    >>> table_weights([4, 4, 16, 2]), table_weights([6, 6])
    ((3, 3, 6, 2), (1, 1))
    """
    least = min(sizes, default=1)
    weights = [_rounded_root(_WEIGHT_STEPS**2 * size, least) for size in sizes]
    divisor = math.gcd(*weights)
    return tuple(weight // divisor for weight in weights)


def _rounded_root(numerator: int, denominator: int) -> int:
    """Return the integer nearest to the root of a fraction, exactly."""
    return (math.isqrt(4 * numerator // denominator) + 1) // 2


Tables = tuple[AnyArray, ...]
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
    def count(cls, network: Network, chunks: Iterable[tuple[Codes, AnyArray]]) -> CountTables:
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
        cls, network: Network, encoder: Encoder, classes: Domain, skips: bool, shard: Shard
    ) -> CountTables:
        """Count the records of a shard by the public domains of features and class.

        If ``skips``, records without a class are in no cell.
        """
        n = shard.table.n_rows
        if skips:
            shard = with_target(shard, classes.is_known(shard.target))
        if shard.table.is_sparse and network.is_star:
            tables = count_sparse_star(network, encoder, classes, shard)
            return cls(network, tables, n)
        chunks = encoder.chunks(shard.table)
        codes = ((x, classes.encode(shard.target[rows])) for rows, x in chunks)
        return cls.count(network, codes).among(n)

    def among(self, n: int) -> CountTables:
        """Return the same counts for n records, some of which are in no cell."""
        return replace(self, n=n)

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
        for a replaced record, d + 1 for one that comes or goes, and 2 for a feature. A record
        without a class is in no cell: in the place of another it changes them as one that goes.
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
        """Return the law of the noise to add, from public facts only.

        Discrete Laplace noise in every cell ("independent"), noise of all tables together
        ("joint"), or whichever has less variance ("auto"). ``class_weight`` is the share of the
        budget that the class table gets, in units of any other table's share.
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

    def add(self, codes: Codes, classes: AnyArray, space: Space) -> None:
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
    """Counts after noise: public, with the public law of the noise."""

    network: Network
    tables: Tables  # Exact counts plus noise in every cell: integers, or multiples of 1/grid.
    n: int
    # The law of the noise of every batch that was added up: none without noise.
    laws: tuple[NoiseLaw, ...]
    # The same for ``n``: none if it is the public number of records.
    size_laws: tuple[NoiseLaw, ...] = ()

    def noise(self, node: int) -> Marginal:
        """Return the distribution of the noise in one cell of a node's table, all batches."""
        return sum_of([law.marginal(node) for law in self.laws])

    def row_noise(self, node: int) -> Marginal:
        """Return the distribution of the noise in one cell given its row's sum, all batches."""
        return sum_of([law.row_marginal(node) for law in self.laws])

    def with_class(self) -> ReleasedCounts:
        """Return the same counts; ``n`` is how many records are in them, by the counts themselves.

        All, unless the sum of the table that has least noise in it is below n by three standard
        deviations: the others have no class.
        """
        if self.size_laws:
            return self
        noise = [
            sum(law.marginal(u).variance for law in self.laws) for u in range(len(self.tables))
        ]
        sizes = [(t.size * v, u) for u, (t, v) in enumerate(zip(self.tables, noise, strict=True))]
        variance, node = min((each for each in sizes if each[0] > 0), default=(0.0, -1))
        total = float(self.tables[node].sum())
        if total >= self.n - _MISSING_DEVIATIONS * math.sqrt(variance):
            return self
        return replace(self, n=max(round(total), 1))

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
