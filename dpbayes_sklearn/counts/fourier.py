r"""Counts in the Fourier domain: sums of characters, and their sensitivity.

**The sensitivity of sums of characters.**

Let a value v of a variable have D(v) characters besides the constant (its depth in the tree of
splits). Between two values v, v' some of these, r, are shared with the same sign and some, s, with
opposite signs. Over a set S of variables a record then has :math:`\prod D` characters, and a pair
of records shares :math:`\prod(r+s)` of them, of which those with an even number of opposite signs,
:math:`\frac12(\prod(r+s) + \prod(r-s))`, cancel. So replacing one record by the other changes the
sums over S by

.. math:: m_S = \prod D(v) + \prod D(v') - \prod (r+s) - \prod (r-s).

The sensitivity is the maximum over pairs of records of the sum of :math:`m_S` over all S of the
closure. It depends on each variable only through the type (D, D', r, s) of its pair of values, a
handful (two for a Boolean), and every S lies inside a family: a maximum over a graph, found
exactly by eliminating one variable after another.

A record that comes or goes changes the sums over S by its own :math:`\prod D`, most where every
value is the deepest one. All records of a person change them by as many times as much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial, reduce
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import depths, haar, inverse_haar, leaf_levels
from dpbayes_sklearn.counts.tables import CountTables, Tables
from dpbayes_sklearn.noise import DiscreteLaplace, Marginal, Noise, NoiseLaw, SupNorm, least_noise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Released

Support = tuple[int, ...]

_MOST_DRAWS = 1_000_000
"""Numbers that the public simulation of an increment draws at most."""

_MOST_TERMS = 1 << 15  # All supports together have at most this many nodes.
_MOST_FACTOR_CELLS = (
    1 << 20
)  # All factors, and a table while eliminating, have at most this many cells.


@lru_cache(maxsize=64)
def l1_sensitivity(network: Network, supports: tuple[Support, ...], unit: PrivacyUnit) -> int:
    """Return the L1 sensitivity of the character sums with these supports.

    Exact where the graph is small and can be eliminated in tables of a million cells, else a
    sound bound.
    """
    one = None if unit.size_is_secret else exact_sensitivity(network, supports, unit)
    return unit.max_records * one if one is not None else block_sensitivity(network, supports, unit)


def exact_sensitivity(
    network: Network, supports: Sequence[Support], unit: PrivacyUnit
) -> int | None:
    """Return the exact maximum for one replaced record, or None if the graph is too dense.

    Supports are sorted.
    """
    if sum(map(len, supports)) > _MOST_TERMS:
        return None
    if unit.whole_records:
        return _maximum(supports, [pair_types(size) for size in network.sizes])
    types = [pair_types(size, same=True) for size in network.sizes]
    containing = _containing(supports)
    most = 0
    for changed in range(network.target):
        types[changed] = pair_types(network.sizes[changed])
        change = _maximum(containing[changed], types)
        if change is None:
            return None
        most = max(most, change)
        types[changed] = pair_types(network.sizes[changed], same=True)
    return most


def _containing(supports: Iterable[Support]) -> dict[int, list[Support]]:
    """Return for every variable the supports that contain it."""
    containing: dict[int, list[Support]] = defaultdict(list)
    for support in supports:
        for u in support:
            containing[u].append(support)
    return containing


@lru_cache(maxsize=256)
def pair_types(size: int, same: bool = False) -> IntArray:
    """Return the different (D, D', r, s) of pairs of values, of equal values only if ``same``.

    >>> pair_types(2).tolist()
    [[1, 1, 0, 1], [1, 1, 1, 0]]
    """
    h = haar(size)[:, 1:]
    shared = np.abs(h) @ np.abs(h).T
    product = h @ h.T
    own = np.broadcast_to(depths(size)[:, None], shared.shape)
    table = np.stack([own, own.T, (shared + product) // 2, (shared - product) // 2], axis=-1)
    pairs = table[np.diag_indices(size)] if same else table.reshape(-1, 4)
    return np.asarray(np.unique(pairs, axis=0))


def _factor(support: Support, types: Sequence[IntArray]) -> IntArray:
    """Return m_S for all types of the variables of one support, an axis for each of them."""

    def over(column: Any) -> IntArray:
        return np.asarray(reduce(np.multiply.outer, [column(types[u].T) for u in support]))

    total = over(lambda t: t[0]) + over(lambda t: t[1])
    return total - over(lambda t: t[2] + t[3]) - over(lambda t: t[2] - t[3])


def _maximum(supports: Sequence[Support], types: Sequence[IntArray]) -> int | None:
    """Return the maximum of the sum of all m_S, eliminating variables of low degree first."""
    if sum(prod(len(types[u]) for u in support) for support in supports) > _MOST_FACTOR_CELLS:
        return None
    factors = {support: _factor(support, types) for support in supports}
    holding = {u: set(held) for u, held in _containing(supports).items()}
    neighbours = {u: set().union(*held) for u, held in holding.items()}
    waiting = [(len(near), u) for u, near in neighbours.items()]
    heapify(waiting)
    while waiting:
        degree, chosen = heappop(waiting)
        if degree != len(neighbours.get(chosen, ())):
            continue  # eliminated already, or its degree has changed
        scope = tuple(sorted(neighbours.pop(chosen)))
        if prod(len(types[u]) for u in scope) > _MOST_FACTOR_CELLS:
            return None
        held = holding.pop(chosen)
        table = sum(_aligned(s, factors.pop(s), scope) for s in held)
        rest = tuple(u for u in scope if u != chosen)
        factors[rest] = factors.get(rest, 0) + np.max(table, axis=scope.index(chosen))
        for u in rest:
            holding[u].difference_update(held)
            holding[u].add(rest)
            neighbours[u].discard(chosen)
            neighbours[u].update(rest)
            heappush(waiting, (len(neighbours[u]), u))
    return int(factors.get((), 0))


def _aligned(support: Support, table: IntArray, scope: Support) -> IntArray:
    """Return a factor's table with the axes of ``scope``, 1 long where it does not vary."""
    length = dict(zip(support, table.shape, strict=True))
    return table.reshape([length.get(u, 1) for u in scope])


def block_sensitivity(network: Network, supports: Iterable[Support], unit: PrivacyUnit) -> int:
    """Return an upper bound: the sum of the sensitivities of all blocks of characters.

    A record has at most prod(depth_u) characters in a block, each of them 1 or -1, so replacing
    it changes the block by at most twice that. For records that come or go it is exact.
    """
    deepest = [int(depths(size).max()) for size in network.sizes]
    most = {s: unit.n_changed * prod(deepest[u] for u in s) for s in supports}
    if unit.whole_records:
        return sum(most.values())
    containing = _containing(most)
    return max((sum(most[s] for s in containing[u]) for u in range(network.target)), default=0)


@lru_cache(maxsize=64)
def sup_sensitivity(network: Network, supports: tuple[Support, ...], unit: PrivacyUnit) -> int:
    """Return the sensitivity of any single sum: that in the sup norm.

    Replacing a record changes the sum of a character by the difference of its two values. Over a
    set of variables the character is a product, whose range has its ends at products of ends; if
    only one variable changes, the others scale its range by their absolute value. A record that
    comes or goes changes it by its value, 1 at most.
    """
    if unit.size_is_secret:
        return unit.n_changed if supports else 0
    ends = [(int(h.min()), int(h.max())) for h in map(haar, network.sizes)]
    if unit.whole_records:
        widest = max((_range([ends[u] for u in s]) for s in supports), default=0)
        return unit.max_records * widest
    return max(
        (
            _range([ends[u]]) * prod(max(map(abs, ends[v])) for v in s if v != u)
            for s in supports
            for u in s
            if u != network.target
        ),
        default=0,
    )


def _range(ends: Sequence[tuple[int, int]]) -> int:
    """Return max - min of a product of independent factors between these ends."""
    low = high = 1
    for corner in ends:
        products = [a * b for a in (low, high) for b in corner]
        low, high = min(products), max(products)
    return high - low


Blocks = Mapping[Support, AnyArray]
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

    The constant character's sum is n. A plan asks sums without blocks for laws; their n is a public
    bound.
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
        """Return the law of the noise to add, from public facts only.

        Discrete Laplace noise in every sum ("independent"), noise of the sup norm ("joint"), or
        whichever has less variance ("auto").
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
        if self.n * law.grid >= 2**60:
            raise ValueError("There are too many records for joint noise; use noise='independent'.")
        return law


@dataclass(frozen=True)
class ReleasedCharacters(Released):
    """Character sums after noise: public, with the public law of the noise."""

    network: Network
    blocks: Blocks  # Exact sums plus noise in every one of them.
    n: int
    # The law of the noise of every batch that was added up: none without noise.
    laws: tuple[NoiseLaw, ...]
    # What was added to the constant character so that no cell is negative (stealth).
    increment: float = 0.0
    # The law of the noise in n, of every batch: none if it is public.
    size_laws: tuple[NoiseLaw, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields with blocks as pairs: skops stores no mapping whose keys are tuples."""
        return {**self.__dict__, "blocks": [*self.blocks.items()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, blocks=dict(state["blocks"]))

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
            increment=self.increment + other.increment,
            **self._together(other),
        )

    @property
    def tables(self) -> Tables:
        """Consistent tables of counts; a cell may be negative."""
        return tables_from_characters(self.network, self.blocks, self.n + self.increment)

    def clipped(self) -> Tables:
        """Return the tables with negative cells, if the increment left any, set to zero."""
        return tuple(np.maximum(table, 0.0) for table in self.tables)


def _along_axes(table: AnyArray, matrices: Sequence[AnyArray]) -> AnyArray:
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


def paper_increment(network: Network, epsilon: float, t: float) -> float:
    """Return 4 t N^2 / epsilon, N the number of coefficients of the network's closure.

    >>> paper_increment(Network.star([2] * 16, 2), 1.0, t=2.3)
    10635.2
    """
    return 4 * t * (1 + sum_count(network)) ** 2 / epsilon


@lru_cache(maxsize=256)
def stealth_increment(network: Network, law: NoiseLaw, stealth: float) -> float:
    """Return the ``stealth`` quantile of the largest max over cells of -noise * 2^h.

    Raising the constant coefficient by s raises a cell by s * 2^-h. The quantile is found by
    simulating the public noise law with a fixed generator: no data, so no cost.
    """
    if sum_count(network) == 0:  # every variable has a single value
        return 0.0
    repeats = int(np.clip(_MOST_DRAWS // sum_count(network), 200, 2000))
    noise = simulated_noise(network, law, repeats, Noise(random_source(0)))
    needed = np.zeros(repeats)
    for table in tables_from_characters(network, noise, 0):
        lack = -table * 2.0 ** leaf_levels(table.shape[1:])
        needed = np.maximum(needed, lack.reshape(repeats, -1).max(axis=1))
    return float(np.quantile(needed, stealth, method="higher"))


def simulated_noise(network: Network, law: NoiseLaw, repeats: int, noise: Noise) -> Blocks:
    """Return noises of all sums, ``repeats`` of each."""
    shapes = {s: (repeats, *(network.sizes[u] - 1 for u in s)) for s in closure(network)}
    nothing = [np.zeros(shape, np.int64) for shape in shapes.values()]
    return dict(zip(shapes, noise.add(nothing, law), strict=True))
