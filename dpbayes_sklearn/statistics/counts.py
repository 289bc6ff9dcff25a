"""Tables of counts: the sufficient statistics of a discrete network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.data.encoder import Codes, Encoder
from dpbayes_sklearn.data.records import Part
from dpbayes_sklearn.laws.class_rows import RowNoise, rows_vary_less
from dpbayes_sklearn.schema.domains import Categories
from dpbayes_sklearn.statistics.counting import Space, count_by_state
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.sparse_counting import count_sparse_star

__all__ = ["CountTables", "ReleasedCounts", "Tables"]

Tables = tuple[npt.NDArray[Any], ...]
"""One array per node of a network, shaped as its family."""


@dataclass(frozen=True)
class CountTables:
    """Sensitive: exact counts of every family of a network.

    ``tables[i][parents' values..., value]`` is the number of records in that state.
    """

    network: Network
    tables: Tables
    n: int

    kind: ClassVar[str] = "counts"

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
    def of_part(
        cls, network: Network, encoder: Encoder, classes: Categories, part: Part
    ) -> CountTables:
        """Count some of the records by the public domains of features and class."""
        if part.table.is_sparse and network.is_star:
            tables = count_sparse_star(network, encoder, classes, part)
            return cls(network, tables, part.table.n_rows)
        chunks = encoder.chunks(part.table)
        return cls.count(network, ((x, classes.encode(part.target[rows])) for rows, x in chunks))

    @property
    def structure(self) -> Network:
        """The public model that the counts are of."""
        return self.network

    def __add__(self, other: CountTables) -> CountTables:
        """Return the counts of the records of both, which must be different records."""
        if self.network != other.network:
            raise ValueError("Counts of different networks cannot be added.")
        pairs = zip(self.tables, other.tables, strict=True)
        return CountTables(self.network, tuple(a + b for a, b in pairs), self.n + other.n)

    def sensitivity(self, unit: str) -> int:
        """Return the most that neighbouring data move all tables together, in L1.

        A table that a change can move loses one record in one cell and gains it in another, so
        every one of the :meth:`Network.tables_moved` tables moves by 2. For naive Bayes with d
        features that is 2(d+1) for a record and 2 for a feature.
        """
        return 2 * self.network.tables_moved(unit)

    def row_movement(self, unit: str) -> int:
        r"""Return the most that neighbouring data move :math:`\sum_c \max_j \|row_{cj}\|_1`.

        Only for naive Bayes, where the rows of class c in all tables, and its count, change by
        one record at a time: a replaced record takes 1 from the norm of a class's rows and adds 1
        to that of another's, or moves the same rows by 2.
        """
        if not self.network.is_star:
            raise ValueError("Joint noise on counts is for naive Bayes; use noise='independent'.")
        return 2 if self.network.tables_moved(unit) else 0

    def row_noise(self, noise: str, unit: str, epsilon: Fraction) -> RowNoise | None:
        """Return the law of joint noise, or None for independent noise, from public facts only."""
        automatic = noise == "auto"
        if noise == "independent" or (automatic and not self.network.is_star):
            return None
        movement, sizes = self.row_movement(unit), self.network.sizes[:-1]
        worse = not rows_vary_less(sizes, movement, self.sensitivity(unit), epsilon)
        if movement == 0 or (automatic and worse):
            return None
        law = RowNoise.of(sizes, movement, epsilon)
        if self.n * law.grid < 2**60:
            return law
        if automatic:
            return None
        raise ValueError("There are too many records for joint noise; use noise='independent'.")

    def without_noise(self) -> ReleasedCounts:
        """Return the released form when no privacy is asked for."""
        return ReleasedCounts(self.network, self.tables, self.n, ((),) * len(self.tables))


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
        state = np.zeros(len(classes), np.intp)
        for u in self._parents:
            state = state * sizes[u] + (classes if u == target else codes[:, u])
        if self._has_class:
            cells = state * sizes[target] + classes
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
class ReleasedCounts:
    """Counts after noise: public, with the public law of the noise.

    Attributes
    ----------
    tables : tuple of arrays
        Exact counts plus noise in every cell: integers, or multiples of 1/grid.
    scales : tuple of tuple of Fraction or RowNoise
        For every table the scales of the independent noises in each of its cells, or the law of
        the noise that all tables share: one per batch that was added up, none without noise.
    """

    network: Network
    tables: Tables
    n: int
    scales: tuple[tuple[Fraction | RowNoise, ...], ...]

    @property
    def grid(self) -> int:
        """Number of steps in one count: the finest lattice among the noises."""
        laws = (law for table in self.scales for law in table if isinstance(law, RowNoise))
        return max((law.grid for law in laws), default=1)

    @property
    def independent(self) -> bool:
        """True if every cell has a noise of its own."""
        return all(isinstance(scale, Fraction) for table in self.scales for scale in table)

    def laplace_scales(self, node: int) -> tuple[float, ...]:
        """Return the scales of a table's noises; of joint noise, those of Laplace noise as wide."""
        size = None if node == self.network.target else self.network.sizes[node]
        return tuple(
            law.laplace_scale(size) if isinstance(law, RowNoise) else float(law)
            for law in self.scales[node]
        )

    def merge(self, other: ReleasedCounts) -> ReleasedCounts:
        """Return the released counts of both batches together."""
        return replace(
            self,
            tables=tuple(a + b for a, b in zip(self.tables, other.tables, strict=True)),
            n=self.n + other.n,
            scales=tuple(a + b for a, b in zip(self.scales, other.scales, strict=True)),
        )

    def clipped(self) -> Tables:
        """Return the counts brought back to what counts can be: from 0 to n."""
        return tuple(np.clip(table, 0, self.n).astype(np.float64) for table in self.tables)
