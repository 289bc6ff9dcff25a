"""Tables of counts: the sufficient statistics of a discrete network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema.domains import Categories
from dpbayes_sklearn.schema.encoder import Codes, Encoder
from dpbayes_sklearn.schema.records import Part
from dpbayes_sklearn.statistics.counting import count_by_state
from dpbayes_sklearn.statistics.network import Network

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
        tables = [np.zeros(shape, np.int64) for shape in network.shapes]
        same_parents: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for node, parents in enumerate(network.parents):
            same_parents[parents].append(node)
        n = 0
        for codes, classes in chunks:
            n += len(classes)
            for parents, nodes in same_parents.items():
                _add_counts(tables, network, parents, nodes, codes, classes)
        return cls(network, tuple(tables), n)

    @classmethod
    def of_part(
        cls, network: Network, encoder: Encoder, classes: Categories, part: Part
    ) -> CountTables:
        """Count some of the records by the public domains of features and class."""
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

    def without_noise(self) -> ReleasedCounts:
        """Return the released form when no privacy is asked for."""
        return ReleasedCounts(self.network, self.tables, self.n, ((),) * len(self.tables))


def _add_counts(
    tables: list[npt.NDArray[np.int64]],
    network: Network,
    parents: tuple[int, ...],
    nodes: list[int],
    codes: Codes,
    classes: npt.NDArray[Any],
) -> None:
    """Add one chunk to the tables of all nodes that have the same parents."""
    shape = tuple(network.sizes[u] for u in parents)
    state = np.zeros(len(classes), np.intp)
    for u, size in zip(parents, shape, strict=True):
        state = state * size + (classes if u == network.target else codes[:, u])
    if network.target in nodes:
        sizes = (prod(shape), network.sizes[network.target])
        joint = np.bincount(state * sizes[1] + classes, minlength=prod(sizes))
        tables[network.target] += joint.reshape(network.shapes[network.target])
    features = [u for u in nodes if u != network.target]
    if features:
        all_of_them = len(features) == codes.shape[1]
        sizes_of = [network.sizes[u] for u in features]
        counts = count_by_state(
            state, prod(shape), codes if all_of_them else codes[:, features], sizes_of
        )
        for column, u in enumerate(features):
            tables[u] += counts[:, column, : network.sizes[u]].reshape(network.shapes[u])


@dataclass(frozen=True)
class ReleasedCounts:
    """Counts after noise: public, with the public law of the noise.

    Attributes
    ----------
    tables : tuple of arrays of int
        Exact counts plus discrete Laplace noise in every cell.
    scales : tuple of tuple of Fraction
        For every table the scales of the independent noises in each of its cells: one per batch
        that was added up, none where there is no noise.
    """

    network: Network
    tables: Tables
    n: int
    scales: tuple[tuple[Fraction, ...], ...]

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
