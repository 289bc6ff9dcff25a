"""Counts in the Fourier domain: sums of characters, each shared by all families that hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import DiscreteLaplace, Marginal, NoiseLaw, SupNorm, least_noise
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.counts import CountTables, Tables
from dpbayes_sklearn.statistics.fourier_sensitivity import l1_sensitivity, sup_sensitivity
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.size import bound_of
from dpbayes_sklearn.statistics.splits import haar, inverse_haar

__all__ = [
    "CharacterSums",
    "ReleasedCharacters",
    "closure",
    "coefficient_tables",
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

    The constant character's sum is n, which is public, or was released before.
    """

    network: Network
    blocks: Blocks
    n: int
    size_laws: tuple[NoiseLaw, ...] = ()

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
        return cls(network, blocks, counts.n, counts.size_laws)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return the L1 sensitivity of all sums together."""
        return l1_sensitivity(self.network, closure(self.network), unit)

    def sup_sensitivity(self, unit: PrivacyUnit) -> int:
        """Return the sensitivity of any single sum: that in the sup norm."""
        return sup_sensitivity(self.network, closure(self.network), unit)

    @property
    def size(self) -> int:
        """Return the number of sums."""
        return sum_count(self.network)

    def law(self, noise: str, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return the law of the noise to add, chosen from public facts only.

        Parameters
        ----------
        noise : {"independent", "joint", "auto"}
            Discrete Laplace noise in every sum, joint noise of the sup norm, or whichever has less
            variance.
        unit : PrivacyUnit
        epsilon : Fraction
        """
        independent = partial(self._independent_noise, unit, epsilon)
        if not self.sensitivity(unit):  # no record can change them: no noise is needed
            return independent()
        joint = partial(self._sup_norm, unit, epsilon)
        return least_noise(noise, {"independent": independent, "joint": joint})

    def _independent_noise(self, unit: PrivacyUnit, epsilon: Fraction) -> DiscreteLaplace:
        return DiscreteLaplace.of(laplace_scale(self.sensitivity(unit), epsilon), [self.size])

    def _sup_norm(self, unit: PrivacyUnit, epsilon: Fraction) -> SupNorm:
        law = SupNorm.of((1,) * self.size, self.sup_sensitivity(unit), epsilon)
        if bound_of(self.n, self.size_laws) * law.grid >= 2**60:
            raise ValueError("There are too many records for joint noise; use noise='independent'.")
        return law


@dataclass(frozen=True)
class ReleasedCharacters:
    """Character sums after noise: public, with the public law of the noise.

    Attributes
    ----------
    blocks : mapping of tuple of int to array of int, or of float on a grid
        Exact sums plus noise in every one of them.
    laws : tuple of NoiseLaw
        The law of the noise of every batch that was added up: none without noise.
    increment : float
        What was added to the constant character so that no cell is negative (stealth).
    size_laws : tuple of NoiseLaw
        The law of the noise in n, of every batch: none if it is public.
    """

    network: Network
    blocks: Blocks
    n: int
    laws: tuple[NoiseLaw, ...]
    increment: float = 0.0
    size_laws: tuple[NoiseLaw, ...] = ()

    @property
    def size_noise(self) -> Marginal:
        """The distribution of the noise in n, all batches together; exact if n is public."""
        return sum_of([law.marginal() for law in self.size_laws])

    @property
    def independent(self) -> bool:
        """True if every sum has a noise of its own."""
        return all(law.independent for law in self.laws)

    @property
    def grid(self) -> int:
        """Sums are multiples of 1/grid, a public power of two."""
        return max((law.grid for law in self.laws), default=1)

    @property
    def noise(self) -> Marginal:
        """The distribution of the noise in one sum, all batches together."""
        return sum_of([law.marginal() for law in self.laws])

    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the L1 error of any table, all batches, the increment left out.

        A table of m cells is rebuilt from m - 1 sums, each of which contributes its own error.
        """
        one_sum = sum(law.error_bound(delta / len(self.laws)) for law in self.laws)
        return (max(map(prod, self.network.shapes)) - 1) * one_sum

    def merge(self, other: ReleasedCharacters) -> ReleasedCharacters:
        """Return the released sums of both batches together."""
        return replace(
            self,
            blocks={
                support: block + other.blocks[support] for support, block in self.blocks.items()
            },
            n=self.n + other.n,
            laws=self.laws + other.laws,
            increment=self.increment + other.increment,
            size_laws=self.size_laws + other.size_laws,
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
    coefficients = coefficient_tables(network, blocks, n)
    return tuple(
        _along_axes(table, [inverse_haar(k) for k in shape])
        for table, shape in zip(coefficients, network.shapes, strict=True)
    )


def coefficient_tables(network: Network, blocks: Blocks, n: float) -> list[FloatArray]:
    """Return the character sums at their places in the coefficients of every table."""
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
        tables.append(coefficients)
    return tables
