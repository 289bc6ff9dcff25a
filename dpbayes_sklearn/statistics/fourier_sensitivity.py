r"""The sensitivity of sums of characters.

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
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from heapq import heapify, heappop, heappush
from math import prod
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.splits import depths, haar

__all__ = [
    "block_sensitivity",
    "exact_sensitivity",
    "l1_sensitivity",
    "pair_types",
    "sup_sensitivity",
]

Support = tuple[int, ...]
_MOST_TERMS = 1 << 15  # nodes of all supports, each counted as often as it occurs
_MOST_CELLS = 1 << 20  # of all factors together, and of one table while eliminating


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
    found: IntArray = np.unique(pairs, axis=0)
    return found


def _factor(support: Support, types: Sequence[IntArray]) -> IntArray:
    """Return m_S for all types of the variables of one support, an axis for each of them."""

    def over(column: Any) -> IntArray:
        product: IntArray = reduce(np.multiply.outer, [column(types[u].T) for u in support])
        return product

    total = over(lambda t: t[0]) + over(lambda t: t[1])
    return total - over(lambda t: t[2] + t[3]) - over(lambda t: t[2] - t[3])


def _maximum(supports: Sequence[Support], types: Sequence[IntArray]) -> int | None:
    """Return the maximum of the sum of all m_S, eliminating variables of low degree first."""
    if sum(prod(len(types[u]) for u in support) for support in supports) > _MOST_CELLS:
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
        if prod(len(types[u]) for u in scope) > _MOST_CELLS:
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
    most = {s: unit.moves * prod(deepest[u] for u in s) for s in supports}
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
        return unit.moves if supports else 0
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
