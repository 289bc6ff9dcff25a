"""The graph of a discrete model: nodes, their numbers of values and their parents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from dpbayes_sklearn.privacy.budget import PrivacyUnit

# All tables together have at most this many cells, which memory must hold.
_MOST_TABLE_CELLS = 2**26

CLASS = "class"
"""The name of the class node."""
_MOST_CELLS = 1 << 22  # One table has at most this many cells.


@dataclass(frozen=True)
class Network:
    """A directed acyclic graph over discrete nodes: the features in order, then the class.

    Naive Bayes is the star, whose class is the only parent of every feature:

    >>> star = Network.star([2, 3], n_classes=2)
    >>> star.families
    ((2, 0), (2, 1), (2,))
    >>> star.shapes
    ((2, 2), (2, 3), (2,))
    """

    sizes: tuple[int, ...]  # Number of values of every node.
    parents: tuple[tuple[int, ...], ...]  # Parents of every node.

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.parents):
            raise ValueError("A network needs one tuple of parents per node.")
        if not set().union(*self.parents) <= set(range(len(self.sizes))):
            raise ValueError("Every parent must be a node of the network.")
        if len(self.order) < len(self.sizes):
            raise ValueError("The parents must not form a cycle.")

    @classmethod
    def star(cls, feature_sizes: Sequence[int], n_classes: int) -> Network:
        """Return the naive Bayes network."""
        d = len(feature_sizes)
        return cls((*feature_sizes, n_classes), (*(((d,),) * d), ()))

    @cached_property
    def target(self) -> int:
        """Index of the class node: the last."""
        return len(self.sizes) - 1

    @cached_property
    def is_star(self) -> bool:
        """True for naive Bayes."""
        return self == Network.star(self.sizes[:-1], self.sizes[-1])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Nodes with parents before children; nodes of a cycle are left out."""
        missing = [len(set(parents)) for parents in self.parents]
        children: list[list[int]] = [[] for _ in self.sizes]
        for i, parents in enumerate(self.parents):
            for u in set(parents):
                children[u].append(i)
        done: list[int] = []
        ready = [i for i, number in enumerate(missing) if number == 0]
        while ready:
            done += ready
            freed = [i for u in ready for i in children[u]]
            for i in freed:
                missing[i] -= 1
            ready = sorted({i for i in freed if missing[i] == 0})
        return tuple(done)

    @cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """Parents of every node, then the node itself: the axes of its table."""
        return tuple((*parents, i) for i, parents in enumerate(self.parents))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of every node's table of counts."""
        return tuple(tuple(self.sizes[u] for u in family) for family in self.families)

    def tables_changed(self, unit: PrivacyUnit) -> int:
        """Return how many tables can differ between neighbours.

        A whole record changes every table of more than one cell, and one that is added or removed
        also those of one cell, which hold n. One feature value changes the tables of the families
        it belongs to; the class is not a feature.
        """
        if unit.size_is_secret:
            return len(self.families)
        pairs = zip(self.families, self.shapes, strict=True)
        movable = [family for family, shape in pairs if prod(shape) > 1]
        if unit.whole_records:
            return len(movable)
        features = [u for u in range(self.target) if self.sizes[u] > 1]
        return max((sum(u in family for family in movable) for u in features), default=0)


def check_cells(network: Network) -> None:
    """Refuse tables that are too large to be released, before they are counted."""
    cells = sum(map(prod, network.shapes))
    if cells > _MOST_TABLE_CELLS:
        raise ValueError(
            f"The tables of this model have {cells:,} cells, and at most {_MOST_TABLE_CELLS:,} can "
            "be released: declare fewer bins or categories."
        )


class LearnedParents(dict[str, list[str]]):
    """Parents of every node, chosen privately, with the guarantee of the choice.

    It is a dict like any other graph; models that are fitted with it name the price.

    Attributes
    ----------
    guarantee : PrivacyGuarantee or str
        Its text, if the graph was read from JSON.
    """

    def __init__(self, parents: Mapping[str, list[str]], guarantee: object) -> None:
        super().__init__(parents)
        self.guarantee = guarantee

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.guarantee)


def network_from_parents(
    parents: Any, names: Sequence[str], sizes: Sequence[int], n_classes: int
) -> Network:
    """Return the network that ``parents`` describes, parents in the order of the columns.

    It is ``{child: [parents]}``, ``(parent, child)`` pairs or a graph of networkx. A node is a
    feature's name or position, or ``"class"``; nodes that are not mentioned have no parents.
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
