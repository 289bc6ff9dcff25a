"""Graphs as users write them, turned into networks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

from dpbayes_sklearn.statistics.network import Network

__all__ = ["CLASS", "LearnedParents", "network_from_parents"]

CLASS = "class"
"""The name of the class node."""

_MOST_CELLS = 1 << 22  # of one table


class LearnedParents(dict[str, list[str]]):
    """Parents of every node, chosen privately, with the guarantee of the choice.

    It is a dict like any other graph; models that are fitted with it name the price.

    Attributes
    ----------
    guarantee : PrivacyGuarantee or str
        Its text, if the graph was read from JSON.
    """

    def __init__(self, parents: Mapping[str, list[str]], guarantee: Any) -> None:
        super().__init__(parents)
        self.guarantee = guarantee

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.guarantee)


def network_from_parents(
    parents: Any, names: Sequence[str], sizes: Sequence[int], n_classes: int
) -> Network:
    """Return the network that ``parents`` describes, parents in the order of the columns.

    Parameters
    ----------
    parents : mapping, collection of edges, or networkx.DiGraph
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
    found: list[set[int]] = [set() for _ in nodes]
    for child, above in _parents_by_child(parents):
        found[_node(child, nodes)].update(_node(parent, nodes) for parent in above)
    # sorted, so that one graph is one network however it was written
    network = Network((*sizes, n_classes), tuple(tuple(sorted(above)) for above in found))
    for name, shape in zip([*names, CLASS], network.shapes, strict=True):
        if prod(shape) > _MOST_CELLS:
            raise ValueError(
                f"The table of node {name!r} would have {prod(shape)} cells, more than "
                f"{_MOST_CELLS}; give it fewer parents or its family fewer values."
            )
    return network


def _parents_by_child(parents: Any) -> list[tuple[Any, list[Any]]]:
    """Return (child, parents) pairs; every node that is mentioned is in one of them."""
    if isinstance(parents, Mapping):
        if not all(_is_list(above) for above in parents.values()):
            raise ValueError("parents must give every node a list of parents: {child: [parent]}.")
        return [(child, list(above)) for child, above in parents.items()]
    if hasattr(parents, "is_directed"):  # a graph of networkx
        if not parents.is_directed():
            raise ValueError("parents must be a directed graph: networkx.DiGraph.")
        return [(child, list(parents.predecessors(child))) for child in parents]
    edges = list(parents)
    if not all(_is_list(edge) and len(edge) == 2 for edge in edges):
        raise ValueError("parents must be a dict, (parent, child) pairs or a networkx DiGraph.")
    return [(child, [parent]) for parent, child in edges]


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes))


def _node(node: Any, nodes: Mapping[str, int]) -> int:
    if isinstance(node, str) and node in nodes:
        return nodes[node]
    if not isinstance(node, str) and node in range(len(nodes) - 1):
        return int(node)
    raise ValueError(
        f"Unknown node {node!r} in parents; nodes are the features {[*nodes][:-1]} or their "
        f"positions, and {CLASS!r}."
    )
