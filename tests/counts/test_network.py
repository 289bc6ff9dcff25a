"""Graphs: families, order, what a change can move, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD


def test_a_star() -> None:
    star = Network.star([2, 3], 4)
    assert star.is_star
    assert star.target == 2
    assert star.families == ((2, 0), (2, 1), (2,))
    assert star.shapes == ((4, 2), (4, 3), (4,))
    assert star.order[0] == 2
    assert not Network((2, 2, 2), ((2,), (0, 2), ())).is_star
    assert not Network((2, 2), ((), (0,))).is_star


def test_parents_come_first() -> None:
    network = Network((2, 2, 2, 2), ((1, 3), (2,), (), (2, 1)))
    order = network.order
    for node, parents in enumerate(network.parents):
        assert all(order.index(u) < order.index(node) for u in parents)


def test_order_is_by_levels_and_soon_found() -> None:
    """The levels of a graph one after the other; the longest chain takes no longer than a star."""
    assert Network((2,) * 5, ((1, 3), (2,), (), (2, 2), ())).order == (2, 4, 1, 3, 0)
    last = 30_000
    chain = Network((2,) * (last + 1), (*((i + 1,) for i in range(last)), ()))
    assert chain.order == tuple(range(last, -1, -1))


@pytest.mark.parametrize(
    ("sizes", "parents", "message"),
    [
        ((2, 2), ((),), "one tuple of parents"),
        ((2, 2), ((2,), ()), "must be a node"),
        ((2, 2), ((-1,), ()), "must be a node"),
        ((2, 2), ((1,), (0,)), "cycle"),
        ((2,), ((0,),), "cycle"),
        ((2, 2, 2), ((1,), (2,), (0,)), "cycle"),
    ],
)
def test_graphs_that_are_refused(sizes: Any, parents: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Network(sizes, parents)


def test_tables_moved() -> None:
    star = Network.star([2, 3, 4], 2)
    assert star.tables_changed(RECORD) == 4
    assert star.tables_changed(FEATURE) == 1
    assert Network.star([2, 1], 1).tables_changed(RECORD) == 1  # one cell holds n, which is public
    assert Network.star([1, 1], 2).tables_changed(FEATURE) == 0
    chain = Network((2, 2, 2, 2), ((), (0,), (0, 1), (0,)))
    assert chain.tables_changed(RECORD) == 4
    assert chain.tables_changed(FEATURE) == 4  # node 0 is in every family
