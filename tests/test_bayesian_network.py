"""The network classifier: any graph, the class anywhere, exact inference from the tables."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BudgetAccountant,
    Categories,
    Interval,
    Schema,
    mechanisms,
)

MECHANISMS = ("laplace", "fourier", "sampler", "map")
SIZES = (3, 2, 2)
SCHEMA = Schema(
    {
        "a": Interval(0, 2, bins=3),
        "b": Categories(["no", "yes"]),
        "c": Interval(0, 1, bins=2),
    },
    Categories(["ill", "well"]),
)
GRAPHS: dict[str, dict[Any, list[Any]]] = {
    "root": {"a": ["class"], "b": ["class", "a"]},
    "leaf": {"class": ["a", "b", "c"], "b": ["a"]},
    "middle": {"class": ["a"], "b": ["class"], "c": ["class", "b"]},
    "isolated": {"b": ["a"], "c": ["a"]},
}


def simulate(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    y = rng.random(n) < 0.15 + 0.35 * a
    b = rng.random(n) < np.where(y, 0.8, 0.3)
    c = (rng.random(n) < np.where(b ^ y, 0.9, 0.2)).astype(float)
    X = pd.DataFrame({"a": a, "b": np.where(b, "yes", "no"), "c": c})
    return X, np.where(y, "well", "ill")


def classifier(epsilon: float = 1.0, **options: Any) -> BayesianNetworkClassifier:
    options = {"schema": SCHEMA, "random_state": 0, "inference": "plug_in"} | options
    return BayesianNetworkClassifier(epsilon, **options)


def every_record() -> pd.DataFrame:
    rows = product(range(3), ["no", "yes"], [0.0, 1.0])
    return pd.DataFrame([*rows], columns=["a", "b", "c"])


def enumerated(model: BayesianNetworkClassifier, power: float = 1.0) -> np.ndarray:
    """Return p(x, class) for every record by multiplying entries of the tables one by one.

    Those of features are taken to a power.
    """
    network, tables = model.posterior_.network, model.posterior_.mean()
    joint = np.ones((12, 2))
    for row, record in enumerate(product(range(3), range(2), range(2))):
        for label in range(2):
            values = (*record, label)
            for node, parents in enumerate(network.parents):
                entry = tables[node][(*(values[u] for u in parents), values[node])]
                joint[row, label] *= entry if node == network.target else entry**power
    return joint


def same_posterior(one: Any, other: Any) -> bool:
    pairs = zip(one.posterior_.mean(), other.posterior_.mean(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_probabilities_are_those_of_the_tables(graph: str, mechanism: str) -> None:
    model = classifier(parents=GRAPHS[graph], mechanism=mechanism)
    records = every_record()
    for temperature in (1.0, 0.5, "auto"):
        model.set_params(temperature=temperature).fit(*simulate(500))
        power = temperature if temperature == 1.0 else model.posterior_.tempering.temperature
        joint, plain = enumerated(model, power), enumerated(model)
        np.testing.assert_allclose(
            model.predict_proba(records), joint / joint.sum(axis=1, keepdims=True), rtol=1e-10
        )
        np.testing.assert_allclose(
            model.log_likelihood(records), np.log(plain.sum(axis=1)), rtol=1e-10
        )
        np.testing.assert_array_equal(model.predict(records), model.classes_[joint.argmax(axis=1)])


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware", "adaptive"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mechanism", [*MECHANISMS, mechanisms.Sampler(n_samples=3)], ids=str)
def test_likelihoods_of_all_records_add_to_one(graph: str, mechanism: Any, inference: str) -> None:
    model = classifier(parents=GRAPHS[graph], mechanism=mechanism, inference=inference)
    model.fit(*simulate(200))
    assert np.exp(model.log_likelihood(every_record())).sum() == pytest.approx(1, rel=1e-9)


def test_an_isolated_class_is_predicted_from_its_own_table() -> None:
    model = classifier(float("inf"), parents=GRAPHS["isolated"]).fit(*simulate(500))
    expected = np.broadcast_to(model.posterior_.mean()[-1], (12, 2))
    np.testing.assert_allclose(model.predict_proba(every_record()), expected)


def test_without_privacy_it_is_the_conjugate_update() -> None:
    X, y = simulate(500)
    model = classifier(float("inf"), parents=GRAPHS["middle"], alpha=[1.0, 2.0, 0.5]).fit(X, y)
    table = model.posterior_.mean()[2]  # c given b and the class
    for b, label in product(["no", "yes"], ["ill", "well"]):
        here = X["c"][(X["b"] == b) & (y == label)]
        expected = (0.5 + (here == 1).sum()) / (1 + len(here))
        assert table[int(b == "yes"), int(label == "well"), 1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware", "adaptive"])
@pytest.mark.parametrize("unit", ["record", "feature"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_star_is_naive_bayes(mechanism: str, unit: str, inference: str) -> None:
    X, y = simulate(300)
    options: dict[str, Any] = {
        "mechanism": mechanism,
        "privacy_unit": unit,
        "inference": inference,
        "schema": SCHEMA,
        "random_state": 7,
    }
    naive = BayesianNaiveBayes(1.0, **options).fit(X, y)
    star = {name: ["class"] for name in "abc"}
    for parents in (None, star, [("class", j) for j in range(3)]):
        model = BayesianNetworkClassifier(1.0, parents=parents, **options).fit(X, y)
        assert same_posterior(model, naive)
        np.testing.assert_array_equal(model.predict_proba(X), naive.predict_proba(X))
        assert model.guarantee_ == naive.guarantee_
    another = BayesianNetworkClassifier(1.0, parents={"class": ["a"]}, **options).fit(X, y)
    assert [t.shape for t in another.posterior_.mean()] != [
        t.shape for t in naive.posterior_.mean()
    ]


def test_one_graph_one_release() -> None:
    X, y = simulate(300)
    edges = [("class", "c"), ("b", "c"), ("a", "class"), ("class", "b")]
    written = [
        GRAPHS["middle"],
        edges,
        set(edges),
        nx.DiGraph(edges),
        {"class": [0], 1: ["class"], 2: [1, "class"]},
    ]
    fits = [classifier(parents=parents).fit(X, y) for parents in written]
    assert all(same_posterior(fits[0], other) for other in fits[1:])


def test_an_array_goes_by_the_names_of_the_schema() -> None:
    X, y = simulate(300)
    array = X.to_numpy(dtype=object)
    by_name = classifier(parents=GRAPHS["middle"]).fit(array, y)
    assert same_posterior(by_name, classifier(parents=GRAPHS["middle"]).fit(X, y))
    unnamed = classifier(
        parents={"class": ["x0"], "x1": ["class"]},
        schema=None,
        bounds=(0, 1),
        n_bins=2,
        classes=["ill", "well"],
    ).fit(np.zeros((10, 2)), y[:10])
    assert unnamed.posterior_.network.parents == ((), (2,), (0,))


MANY = Schema({f"x{j}": Interval(0, 1, bins=64) for j in range(4)}, Categories([0, 1]))
NAMED_CLASS = Schema({"class": Interval(0, 1, bins=2)}, Categories([0, 1]))


@pytest.mark.parametrize(
    ("parents", "schema", "message"),
    [
        ({"a": ["b"], "b": ["a"]}, SCHEMA, "cycle"),
        ({"a": ["B"]}, SCHEMA, "Unknown node 'B'"),
        ({"a": ["ill"]}, SCHEMA, "Unknown node 'ill'"),
        (nx.Graph([("a", "b")]), SCHEMA, "directed"),
        ({"class": [0]}, NAMED_CLASS, "must not be called 'class'"),
        ({"class": ["x0", "x1", "x2", "x3"]}, MANY, "33554432 cells"),
        ("a", SCHEMA, "'parents' parameter"),
        (3, SCHEMA, "'parents' parameter"),
    ],
)
def test_refused_before_anything_is_spent(parents: Any, schema: Schema, message: str) -> None:
    ledger = BudgetAccountant(1.0)
    X = np.full((20, len(schema)), 0.123456)
    model = classifier(parents=parents, schema=schema, accountant=ledger)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message) as caught:
            method(X, np.zeros(20))
        assert "0.123456" not in str(caught.value)
    assert ledger.total() == (0, 0)
    assert not hasattr(model, "posterior_")


@pytest.mark.parametrize("unit", ["record", "feature"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_laplace_scale_is_twice_the_tables_that_move(graph: str, unit: str) -> None:
    families = {  # in how many families the feature that is in most of them stands
        "root": 2,
        "leaf": 3,
        "middle": 2,
        "isolated": 3,
    }
    model = classifier(0.5, parents=GRAPHS[graph], privacy_unit=unit).fit(*simulate(50))
    moved = 4 if unit == "record" else families[graph]
    (law,) = model.posterior_.released.laws
    assert law.scales == (2 * moved / 0.5,) * 4
    assert model.guarantee_.unit == unit


# of fourier's sums in this graph one feature moves nearly as many as a whole record
@pytest.mark.parametrize("mechanism", ["laplace", "sampler", "map"])
def test_the_unit_feature_adds_less_noise(mechanism: str) -> None:
    X, y = simulate(300)
    exact = classifier(float("inf"), parents=GRAPHS["root"]).fit(X, y).posterior_.mean()

    def error(unit: str) -> float:
        model = classifier(1.0, parents=GRAPHS["root"], mechanism=mechanism, privacy_unit=unit)
        fits = [model.set_params(random_state=seed).fit(X, y) for seed in range(20)]
        tables = [table for fit in fits for table in zip(fit.posterior_.mean(), exact, strict=True)]
        return float(np.mean([np.abs(a - b).mean() for a, b in tables]))

    assert error("feature") < 0.9 * error("record")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_batches_are_charged_each_and_merged(mechanism: str) -> None:
    ledger = BudgetAccountant()
    model = classifier(parents=GRAPHS["middle"], mechanism=mechanism, accountant=ledger)
    for seed in range(3):
        model.partial_fit(*simulate(2000, seed))
    assert model.guarantee_.epsilon == 1  # of every person, who is in one batch only
    assert len(ledger) == 3
    X, y = simulate(2000, 9)
    assert np.mean(model.predict(X) == y) > 0.75


def test_batches_without_noise_are_one_fit() -> None:
    (X, y), (more_X, more_y) = simulate(200, 0), simulate(300, 1)
    model = classifier(float("inf"), parents=GRAPHS["leaf"]).partial_fit(X, y)
    model.partial_fit(more_X, more_y)
    whole = classifier(float("inf"), parents=GRAPHS["leaf"])
    whole.fit(pd.concat([X, more_X]), np.append(y, more_y))
    assert same_posterior(model, whole)


def test_later_batches_have_the_same_graph() -> None:
    ledger = BudgetAccountant()
    model = classifier(parents=GRAPHS["middle"], accountant=ledger).partial_fit(*simulate(100))
    model.set_params(parents=GRAPHS["leaf"])
    with pytest.raises(ValueError, match="parents must be the same"):
        model.partial_fit(*simulate(100, 1))
    assert len(ledger) == 1
    model.set_params(
        parents=nx.DiGraph([("a", "class"), ("class", "b"), ("b", "c"), ("class", "c")])
    )
    model.partial_fit(*simulate(100, 1))  # the same graph in other words
    assert len(ledger) == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "parents", [GRAPHS["middle"], nx.DiGraph([("class", "b")])], ids=["dict", "nx"]
)
def test_pickles_and_clones_keep_the_model(mechanism: str, parents: Any) -> None:
    X, y = simulate(200)
    model = classifier(parents=parents, mechanism=mechanism).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert same_posterior(again, model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.guarantee_ == model.guarantee_
    assert same_posterior(clone(model).fit(X, y), model)


def test_pipelines_and_searches() -> None:
    X, y = simulate(600)
    codes = Schema(
        {n: Interval(0, k - 1, bins=k) for n, k in zip("abc", SIZES, strict=True)}, SCHEMA.target
    )
    pipeline = make_pipeline(
        OrdinalEncoder(categories=[[0, 1, 2], ["no", "yes"], [0.0, 1.0]]),
        classifier(3.0, parents=GRAPHS["middle"], schema=codes),
    )
    assert cross_val_score(pipeline, X, y, cv=3, error_score="raise").mean() > 0.7
    search = GridSearchCV(
        classifier(mechanism=mechanisms.Sampler()),
        {"parents": [GRAPHS["leaf"], GRAPHS["isolated"]], "mechanism__omega": [0.1, 0.2]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_["parents"] == GRAPHS["leaf"]
