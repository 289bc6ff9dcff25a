r"""How far neighbouring data can move sums of characters.

Let a value v of a variable have D(v) characters besides the constant (its depth in the tree of
splits). Between two values v, v' some of these, r, are shared with the same sign and some, s, with
opposite signs. Over a set S of variables a record then has :math:`\prod D` characters, and a pair
of records shares :math:`\prod(r+s)` of them, of which those with an even number of opposite signs,
:math:`\frac12(\prod(r+s) + \prod(r-s))`, cancel. So replacing one record by the other moves the
sums over S by

.. math:: m_S = \prod D(v) + \prod D(v') - \prod (r+s) - \prod (r-s).

The sensitivity is the maximum over pairs of records of the sum of :math:`m_S` over all S of the
closure. It depends on each variable only through the type (D, D', r, s) of its pair of values, a
handful (two for a Boolean), and every S lies inside a family: a maximum over a graph, found
exactly by eliminating one variable after another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.splits import depths, haar

__all__ = ["block_movement", "character_movement", "exact_movement", "pair_types"]

Support = tuple[int, ...]
IntArray = npt.NDArray[np.int64]
Factor = tuple[Support, IntArray]
"""A function of some variables, as an array with one axis for each of them in turn."""

_MOST_CELLS = 1 << 20  # of one table while eliminating


@lru_cache(maxsize=64)
def character_movement(network: Network, supports: tuple[Support, ...], unit: str) -> int:
    """Return the L1 sensitivity of the character sums with these supports.

    Exact where the graph can be eliminated in tables of a million cells, else a sound bound.
    """
    exact = exact_movement(network, supports, unit)
    return block_movement(network, supports, unit) if exact is None else exact


def exact_movement(network: Network, supports: Sequence[Support], unit: str) -> int | None:
    """Return the exact maximum, or None if the graph is too dense for it."""
    if unit == "record":
        types = [pair_types(size) for size in network.sizes]
        return _maximum([_factor(s, types) for s in supports])
    movements = []
    for changed in range(network.target):
        types = [pair_types(k, same=u != changed) for u, k in enumerate(network.sizes)]
        movements.append(_maximum([_factor(s, types) for s in supports if changed in s]))
    return None if None in movements else max((m for m in movements if m is not None), default=0)


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


def _factor(support: Support, types: Sequence[IntArray]) -> Factor:
    """Return m_S for all types of the variables of one support."""

    def over(column: Any) -> IntArray:
        product: IntArray = reduce(np.multiply.outer, [column(types[u].T) for u in support])
        return product

    movement = over(lambda t: t[0]) + over(lambda t: t[1])
    return support, movement - over(lambda t: t[2] + t[3]) - over(lambda t: t[2] - t[3])


def _maximum(factors: list[Factor]) -> int | None:
    """Return the maximum of the sum of the factors, eliminating variables of low degree first."""
    touching: dict[int, list[Factor]] = defaultdict(list)
    neighbours: dict[int, set[int]] = defaultdict(set)
    for factor in factors:
        for u in factor[0]:
            touching[u].append(factor)
            neighbours[u].update(factor[0])
    size = {u: k for s, table in factors for u, k in zip(s, table.shape, strict=True)}
    total = 0
    while neighbours:
        chosen = min(neighbours, key=lambda u: (len(neighbours[u]), u))
        around = neighbours.pop(chosen) - {chosen}
        if prod(size[u] for u in (chosen, *around)) > _MOST_CELLS:
            return None
        scope = (chosen, *sorted(around))
        rest = np.max(sum(_aligned(f, scope) for f in touching[chosen]), axis=0)
        if not around:
            total += int(rest)
        for u in around:
            touching[u] = [f for f in touching[u] if chosen not in f[0]] + [(scope[1:], rest)]
            neighbours[u] = (neighbours[u] | around) - {chosen}
    return total


def _aligned(factor: Factor, scope: Support) -> IntArray:
    """Return a factor's table with its axes in the order of ``scope``, 1 long where absent."""
    support, table = factor
    order = sorted(range(len(support)), key=lambda axis: scope.index(support[axis]))
    length = dict(zip(support, table.shape, strict=True))
    return np.transpose(table, order).reshape([length.get(u, 1) for u in scope])


def block_movement(network: Network, supports: Iterable[Support], unit: str) -> int:
    """Return a bound that adds up what each block of characters can move by itself.

    A record has at most prod(depth_u) characters in a block, each of them 1 or -1, so replacing
    it moves the block by at most twice that.
    """
    most = {s: 2 * prod(int(depths(network.sizes[u]).max()) for u in s) for s in supports}
    if unit == "record":
        return sum(most.values())
    features = range(network.target)
    return max((sum(m for s, m in most.items() if u in s) for u in features), default=0)
