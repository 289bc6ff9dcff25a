"""Counts in the Fourier domain: sums of characters, each shared by all families that hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.sup_norm import JointNoise
from dpbayes_sklearn.statistics.counts import CountTables, Tables
from dpbayes_sklearn.statistics.fourier_sensitivity import character_movement, largest_movement
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.splits import haar, inverse_haar

__all__ = [
    "CharacterSums",
    "ReleasedCharacters",
    "closure",
    "sum_count",
    "tables_from_characters",
    "varying_families",
]

Support = tuple[int, ...]
Blocks = Mapping[Support, npt.NDArray[Any]]
"""For every set of nodes, the sums of the characters that vary in exactly these nodes."""


@lru_cache(maxsize=64)
def closure(network: Network) -> tuple[Support, ...]:
    """Return the sets of nodes inside some family, the empty one left out, each once.

    Nodes of a single value have no character, so they are in none.
    """
    inside = {
        support
        for family in varying_families(network)
        for size in range(1, len(family) + 1)
        for support in combinations(family, size)
    }
    return tuple(sorted(inside))


def varying_families(network: Network) -> set[Support]:
    """Return the nodes of more than one value in every family, in increasing order."""
    sizes = network.sizes
    return {tuple(sorted(u for u in family if sizes[u] > 1)) for family in network.families}


def sum_count(network: Network) -> int:
    """Return the number of character sums, the constant one left out."""
    return sum(prod(network.sizes[u] - 1 for u in support) for support in closure(network))


@dataclass(frozen=True)
class CharacterSums:
    """Sensitive: c_a, the sum over records of the product of one character per node.

    The constant character's sum is n, which neighbours share, so it is public.
    """

    network: Network
    blocks: Blocks
    n: int

    @classmethod
    def of(cls, counts: CountTables) -> CharacterSums:
        """Return the characters of exact counts; all integers.

        Tables may have further axes in front, the same for all.
        """
        network = counts.network
        blocks: dict[Support, IntArray] = {}
        for family, shape, table in zip(
            network.families, network.shapes, counts.tables, strict=True
        ):
            coefficients = _along_axes(table, [haar(k).T for k in shape])
            front = range(table.ndim - len(shape))
            for support, index in _blocks_of(network, family):
                if support not in blocks:
                    axes = (*front, *(len(front) + a for a in _sorting(family, support)))
                    at: tuple[Any, ...] = (..., *index)
                    blocks[support] = np.transpose(coefficients[at], axes)
        return cls(network, blocks, counts.n)

    def sensitivity(self, unit: str) -> int:
        """Return the most that neighbouring data move all sums together, in L1."""
        return character_movement(self.network, closure(self.network), unit)

    def largest_movement(self, unit: str) -> int:
        """Return the most that neighbouring data move any single sum: the sup norm."""
        return largest_movement(self.network, closure(self.network), unit)

    @property
    def size(self) -> int:
        """Return the number of sums."""
        return sum_count(self.network)


@dataclass(frozen=True)
class ReleasedCharacters:
    """Character sums after noise: public, with the public law of the noise.

    Attributes
    ----------
    blocks : mapping of tuple of int to array of int, or of float on a grid
        Exact sums plus noise in every one of them.
    scales : tuple of Fraction or JointNoise
        The law of the noise, one per batch and none if there is no noise: the scale of independent
        discrete Laplace noise in each sum, or the law of one noise for all of them.
    increment : float
        What was added to the constant character so that no cell is negative (stealth).
    """

    network: Network
    blocks: Blocks
    n: int
    scales: tuple[Fraction | JointNoise, ...]
    increment: float = 0.0

    @property
    def joint(self) -> tuple[JointNoise, ...]:
        """The batches whose sums share one noise."""
        return tuple(law for law in self.scales if isinstance(law, JointNoise))

    @property
    def grid(self) -> int:
        """Sums are multiples of 1/grid, a public power of two."""
        return max((law.grid for law in self.joint), default=1)

    def merge(self, other: ReleasedCharacters) -> ReleasedCharacters:
        """Return the released sums of both batches together."""
        return replace(
            self,
            blocks={
                support: block + other.blocks[support] for support, block in self.blocks.items()
            },
            n=self.n + other.n,
            scales=self.scales + other.scales,
            increment=self.increment + other.increment,
        )

    @property
    def tables(self) -> Tables:
        """Consistent tables of counts; a cell may be negative."""
        return tables_from_characters(self.network, self.blocks, self.n + self.increment)

    def clipped(self) -> Tables:
        """Return the tables with negative cells, if the increment left any, set to zero."""
        return tuple(np.maximum(table, 0.0) for table in self.tables)


def _along_axes(table: npt.NDArray[Any], matrices: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Apply one matrix along each of the last axes."""
    first = table.ndim - len(matrices)
    for axis, matrix in enumerate(matrices, start=first):
        table = np.moveaxis(np.moveaxis(table, axis, -1) @ matrix.T, -1, axis)
    return table


def _blocks_of(network: Network, family: Support) -> list[tuple[Support, tuple[Any, ...]]]:
    """Return every part of a family with where its block lies in the coefficient array."""
    parts, varying = [], sorted(u for u in family if network.sizes[u] > 1)
    for size in range(1, len(varying) + 1):
        for part in combinations(varying, size):
            parts.append((part, tuple(slice(1, None) if u in part else 0 for u in family)))
    return parts


def _sorting(family: Support, support: Support) -> list[int]:
    """Return the axes that bring a block from the family's order to increasing node order."""
    inside = [u for u in family if u in support]
    return [inside.index(u) for u in support]


def tables_from_characters(network: Network, blocks: Blocks, n: float) -> Tables:
    """Return the tables with these character sums; families agree on shared marginals bit for bit.

    All numbers are integers over powers of two, so floating point makes no error here. Blocks
    may have further axes in front, the same for all: one set of tables for each of them.
    """
    some_support, some_block = next(iter(blocks.items()), ((), np.zeros(())))
    batch = some_block.shape[: some_block.ndim - len(some_support)]
    tables = []
    for family, shape in zip(network.families, network.shapes, strict=True):
        coefficients = np.zeros((*batch, *shape))
        coefficients.reshape(*batch, -1)[..., 0] = n  # the constant character
        for support, index in _blocks_of(network, family):
            if support in blocks:
                back = np.argsort(_sorting(family, support)) - len(support)
                axes = (*range(len(batch)), *back)
                coefficients[(..., *index)] = np.transpose(blocks[support], axes)
        tables.append(_along_axes(coefficients, [inverse_haar(k) for k in shape]))
    return tuple(tables)
