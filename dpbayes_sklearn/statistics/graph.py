"""Graphs as users write them, turned into networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from dpbayes_sklearn.statistics.network import Network

__all__ = ["CLASS", "network_from_parents"]

CLASS = "class"
"""The name of the class node."""

_MOST_CELLS = 1 << 22  # of one table


def network_from_parents(
    parents: Any, names: Sequence[str], sizes: Sequence[int], n_classes: int
) -> Network:
    """Return the network that ``parents`` describes.

    Parameters
    ----------
    parents : mapping, iterable of edges, or networkx.DiGraph
        ``{child: [parents]}`` or ``(parent, child)`` pairs. A node is a feature's name or its
        position, or ``"class"``; nodes that are not mentioned have no parents.
    names, sizes : sequences
        Names and numbers of values of the features.
    n_classes : int
    """
    nodes = {name: j for j, name in enumerate(names)}
    if CLASS in nodes:
        raise ValueError(f"A feature must not be called {CLASS!r}: that is the class node.")
    nodes[CLASS] = len(names)
    found: list[list[int]] = [[] for _ in nodes]
    for parent, child in _edges(parents):
        source, destination = _node(parent, nodes), _node(child, nodes)
        if source not in found[destination]:
            found[destination].append(source)
    network = Network((*sizes, n_classes), tuple(tuple(p) for p in found))
    for name, shape in zip([*names, CLASS], network.shapes, strict=True):
        if prod(shape) > _MOST_CELLS:
            raise ValueError(
                f"The table of node {name!r} would have {prod(shape)} cells, more than "
                f"{_MOST_CELLS}; give it fewer parents or its family fewer values."
            )
    return network


def _edges(parents: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(parents, Mapping):
        return [(p, child) for child, above in parents.items() for p in above]
    edges = parents.edges if hasattr(parents, "edges") else parents
    edges = list(edges() if callable(edges) else edges)
    if any(isinstance(e, str) or not hasattr(e, "__len__") or len(e) != 2 for e in edges):
        raise ValueError("parents must be a dict, (parent, child) pairs or a networkx DiGraph.")
    return [(parent, child) for parent, child in edges]


def _node(node: Any, nodes: Mapping[str, int]) -> int:
    if isinstance(node, str) and node in nodes:
        return nodes[node]
    if not isinstance(node, str) and node in range(len(nodes) - 1):
        return int(node)
    raise ValueError(
        f"Unknown node {node!r} in parents; nodes are the features {[*nodes][:-1]} or their "
        f"positions, and {CLASS!r}."
    )
