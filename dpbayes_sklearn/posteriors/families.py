"""Nodes with the same parents, inferred together through the row totals that their tables share."""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.law import UNKNOWN, sum_of
from dpbayes_sklearn.statistics.counts import ReleasedCounts

__all__ = ["Siblings", "Totals", "siblings"]


class Totals(NamedTuple):
    """What is known about the number of records in every state of some parents.

    Attributes
    ----------
    counts : array of shape (states,)
        Released, or summed from released counts.
    noise : Marginal
        The distribution of their noise.
    root : int, optional
        The node that the counts are the whole table of.
    """

    counts: npt.NDArray[Any]
    noise: Marginal
    root: int | None = None


class Siblings(NamedTuple):
    """Nodes with the same parents, and the totals of their rows."""

    nodes: list[int]
    totals: Totals


def siblings(released: ReleasedCounts) -> list[Siblings]:
    """Return all nodes but roots, grouped by parents; a root comes with the totals it is."""
    members: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for node, parents in enumerate(released.network.parents):
        members[parents].append(node)
    groups = [Siblings(nodes, _totals(released, p, nodes)) for p, nodes in members.items()]
    shared = {group.totals.root for group in groups}
    alone = [Siblings([u for u in g.nodes if u not in shared], g.totals) for g in groups]
    return [group for group in alone if group.nodes]


def _totals(released: ReleasedCounts, parents: tuple[int, ...], nodes: list[int]) -> Totals:
    """Return the parents' counts from the table that needs the fewest noisy cells for them."""
    network = released.network
    if not parents:
        return Totals(np.array([released.n]), released.size_noise)
    best: tuple[int, int] | None = None
    for node, family in enumerate(network.families):
        if node not in nodes and set(parents) <= set(family):
            cells = prod(network.sizes[u] for u in family if u not in parents)
            best = min(best or (cells, node), (cells, node))
    if best is None:
        return Totals(np.zeros(prod(network.sizes[u] for u in parents), np.int64), UNKNOWN)
    cells, node = best
    family = network.families[node]
    others = tuple(axis for axis, u in enumerate(family) if u not in parents)
    summed = released.tables[node].sum(axis=others)
    kept = [u for u in family if u in parents]
    counts = np.transpose(summed, [kept.index(u) for u in parents]).ravel()
    noise = sum_of([released.noise(node)] * cells)
    return Totals(counts, noise, root=node if parents == (node,) and len(family) == 1 else None)
