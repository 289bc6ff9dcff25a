"""One graph, however it is written, is one network; what is no graph is refused."""

from __future__ import annotations

from itertools import combinations, product
from types import MappingProxyType
from typing import Any

import networkx as nx
import numpy as np
import pytest

from dpbayes_sklearn.counts.network import Network, network_from_parents
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD, PrivacyUnit

NAMES, SIZES, N_CLASSES = ["age", "smoke", "cough"], [3, 2, 4], 2
PARENTS = {"class": ["age", "smoke"], "cough": ["class"], "smoke": ["age"]}
EDGES = [("smoke", "class"), ("age", "class"), ("class", "cough"), ("age", "smoke")]
EXPECTED = Network((3, 2, 4, 2), ((), (0,), (3,), (0, 1)))


def read(parents: Any, names: list[str] = NAMES, sizes: list[int] = SIZES) -> Network:
    return network_from_parents(parents, names, sizes, N_CLASSES)


@pytest.mark.parametrize(
    "parents",
    [
        PARENTS,
        {"class": ["smoke", "age"], "cough": ("class",), "smoke": {"age"}, "age": []},
        MappingProxyType(PARENTS),
        {"class": [0, 1], 2: ["class"], 1: [0]},
        {"class": np.array([0, 1]), np.int64(2): ["class"], "smoke": [0]},
        EDGES,
        set(EDGES),
        [list(edge) for edge in EDGES],
        [*EDGES, *EDGES],
        nx.DiGraph(EDGES),
        nx.MultiDiGraph([*EDGES, *EDGES]),
        nx.DiGraph([(1, "class"), (0, "class"), ("class", 2), (0, 1)]),
    ],
    ids=lambda parents: type(parents).__name__,
)
def test_all_ways_to_write_it(parents: Any) -> None:
    assert read(parents) == EXPECTED


def test_nodes_that_are_not_mentioned_stand_alone() -> None:
    assert read({}) == read([]) == read(nx.DiGraph()) == Network((3, 2, 4, 2), ((), (), (), ()))


def test_star() -> None:
    star = Network.star(SIZES, N_CLASSES)
    assert read({name: ["class"] for name in NAMES}) == star
    assert read([("class", j) for j in range(3)]).is_star


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"smoke": ["age"], "age": ["smoke"]}, "cycle"),
        ({"smoke": ["smoke"]}, "cycle"),
        ([("age", "class"), ("class", "smoke"), ("smoke", "age")], "cycle"),
        ({"smoke": ["Age"]}, "Unknown node 'Age'"),
        ({"Smoke": ["age"]}, "Unknown node 'Smoke'"),
        ({"Smoke": []}, "Unknown node 'Smoke'"),
        (nx.DiGraph({"Smoke": []}), "Unknown node 'Smoke'"),
        ({3: ["age"]}, "Unknown node 3"),  # the class is called by name
        ({"smoke": [-1]}, "Unknown node -1"),
        ({"smoke": [None]}, "Unknown node None"),
        ({"smoke": [0.5]}, "Unknown node 0.5"),
        ({"smoke": "age"}, "a list of parents"),
        ({"smoke": 0}, "a list of parents"),
        ({"smoke": None}, "a list of parents"),
        (["ab"], "pairs"),
        ([("age", "smoke", "class")], "pairs"),
        ([1, 2], "pairs"),
        (nx.Graph(EDGES), "directed"),
    ],
)
def test_what_is_no_graph(parents: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(parents)


def test_letters_of_a_name_are_not_parents() -> None:
    """Features a and b, and a parent written as "ab" in place of ["a", "b"]."""
    with pytest.raises(ValueError, match="a list of parents"):
        read({"class": "ab"}, ["a", "b"], [2, 2])


def test_a_feature_called_class() -> None:
    with pytest.raises(ValueError, match="must not be called 'class'"):
        read({}, ["class", "age"], [2, 2])


def test_tables_that_are_too_large_are_refused() -> None:
    names = [f"x{j}" for j in range(22)]
    sizes = [2] * 22
    assert len(read({"class": names[:21]}, names, sizes).families[-1]) == 22
    with pytest.raises(ValueError, match=r"node 'class' would have 8388608 cells"):
        read({"class": names}, names, sizes)


def counts_of(network: Network, record: tuple[int, ...]) -> CountTables:
    codes = np.array([record[:-1]], np.uint8)
    return CountTables.count(network, [(codes, np.array(record[-1:]))])


@pytest.mark.parametrize("unit", [RECORD, FEATURE])
@pytest.mark.parametrize(
    "parents",
    [
        PARENTS,
        {},
        {"class": ["cough"]},
        [("class", j) for j in range(3)],
        {"cough": [0, 1, "class"]},
    ],
)
def test_sensitivity_of_the_counts_over_all_neighbours(parents: Any, unit: PrivacyUnit) -> None:
    """2|I| for a record: every table moves by two; for a feature, those it is in."""
    network = read(parents)
    records = [*product(*map(range, network.sizes))]
    cells = [np.concatenate([t.ravel() for t in counts_of(network, r).tables]) for r in records]
    most = 0
    for (record, own), (other, theirs) in combinations(zip(records, cells, strict=True), 2):
        changed = [u for u in range(4) if record[u] != other[u]]
        if unit == RECORD or (len(changed) == 1 and changed != [3]):
            most = max(most, int(np.abs(own - theirs).sum()))
    assert counts_of(network, records[0]).sensitivity(unit) == most
    if unit == RECORD:
        assert most == 2 * len(network.sizes)
