"""Trees learned from public data, to augment naive Bayes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    Categories,
    Interval,
    Schema,
    tree_augmented,
)

NAMES = [f"f{j}" for j in range(6)]
TREE = [(0, 1), (1, 2), (1, 3), (3, 4), (0, 5)]
SIZES = [2, 3, 2, 4, 2, 3]


def schema(names: list[str] = NAMES) -> Schema:
    sizes = dict(zip(NAMES, SIZES, strict=True))
    return Schema(
        {name: Interval(0, sizes[name] - 1, bins=sizes[name]) for name in names}, Categories([0, 1])
    )


def planted(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A feature repeats its parent's value, turned by the class, or is noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.zeros((n, 6), int)
    X[:, 0] = rng.integers(0, 2, n)
    for parent, child in TREE:
        copied = (X[:, parent] + y) % SIZES[child]
        X[:, child] = np.where(rng.random(n) < 0.6, copied, rng.integers(0, SIZES[child], n))
    return X, y


def edges_of(parents: dict[str, list[str]]) -> set[frozenset[str]]:
    return {frozenset({c, p}) for c, above in parents.items() for p in above if p != "class"}


EXPECTED = {frozenset({f"f{a}", f"f{b}"}) for a, b in TREE}


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_tree_is_found(seed: int) -> None:
    parents = tree_augmented(*planted(5000, seed), schema())
    assert edges_of(parents) == EXPECTED
    assert all("class" in parents[name] for name in NAMES)
    assert [len(parents[name]) for name in NAMES] == [1, 2, 2, 2, 2, 2]
    assert nx.is_directed_acyclic_graph(
        nx.DiGraph([(p, child) for child, above in parents.items() for p in above])
    )


def test_the_tree_is_that_of_the_largest_information() -> None:
    """Against networkx's spanning tree of information computed from scratch."""
    X, y = planted(2000)
    graph = nx.Graph()
    for j in range(6):
        for k in range(j):
            table = pd.crosstab(y, [X[:, j], X[:, k]], normalize=True)
            joint = table.stack([0, 1], future_stack=True).reset_index(name="p")
            joint.columns = ["y", "j", "k", "p"]
            by = joint.groupby("y")["p"].transform("sum")
            expected = (
                joint.groupby(["y", "j"])["p"].transform("sum")
                * joint.groupby(["y", "k"])["p"].transform("sum")
                / by
            )
            seen = joint["p"] > 0
            ratio = np.log(joint["p"][seen] / expected[seen])
            graph.add_edge(NAMES[j], NAMES[k], weight=(joint["p"][seen] * ratio).sum())
    best = {frozenset(edge) for edge in nx.maximum_spanning_tree(graph).edges}
    assert edges_of(tree_augmented(X, y, schema())) == best


def test_data_frames_go_by_name() -> None:
    X, y = planted(5000)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "unused", 7)
    shuffled = frame[["f3", "unused", "f0", "f5", "f1", "f4", "f2"]]
    assert edges_of(tree_augmented(shuffled, y, schema())) == EXPECTED


def test_independent_features_still_give_a_tree() -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((100, 6), int)  # no information at all
    parents = tree_augmented(X, rng.integers(0, 2, 100), schema())
    assert nx.is_tree(nx.Graph([tuple(edge) for edge in edges_of(parents)]))


def test_one_feature_is_naive_bayes() -> None:
    X, y = planted(50)
    assert tree_augmented(X[:, :1], y, schema(NAMES[:1])) == {"f0": ["class"]}


def test_columns_that_do_not_match() -> None:
    X, y = planted(50)
    with pytest.raises(ValueError, match="declares 6 columns, but X has 4 features"):
        tree_augmented(X[:, :4], y, schema())
    with pytest.raises(ValueError, match="Categories"):
        tree_augmented(X, y, Schema(schema().columns))


@pytest.mark.parametrize("as_frame", [False, True])
def test_it_pays_where_features_depend_on_each_other(as_frame: bool) -> None:
    parents = tree_augmented(*planted(2000, seed=1), schema())  # public
    X, y = planted(20_000, seed=2)
    X_new, y_new = planted(2000, seed=3)
    if as_frame:
        X, X_new = (pd.DataFrame(part, columns=NAMES) for part in (X, X_new))
    options = {"schema": schema(), "random_state": 0, "inference": "plug_in"}
    tree = BayesianNetworkClassifier(1.0, parents=parents, **options).fit(X, y)
    naive = BayesianNaiveBayes(1.0, **options).fit(X, y)
    assert tree.score(X_new, y_new) > naive.score(X_new, y_new) + 0.1
