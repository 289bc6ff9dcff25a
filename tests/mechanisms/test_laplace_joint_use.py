"""One noise for all tables of naive Bayes in estimators: errors, batches, JSON, plans."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.model_selection import GridSearchCV

from benchmarks.audit.tools import replay
from benchmarks.audit.tools.replaying import DRAWS
from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BudgetAccountant,
    from_json,
)
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.plans import plan
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import ClassRows, add
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.planning import epsilon_for, expected_error
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.release import Facts

STAR = Network.star([2] * 8, 2)
JOINT = '{"type":"ClassRows","scale":"2/1","values":[2,2,2,2,2,2,2,2],"n_classes":2,"grid":8}'
INDEPENDENT = json.dumps(
    {"type": "DiscreteLaplace", "scales": ["2/1"] * 9, "numbers": [4] * 8 + [2]},
    separators=(",", ":"),
)


def classifier(inference: str = "plug_in", epsilon: float = 1.0, d: int = 8, **options: Any) -> Any:
    return BayesianNaiveBayes(
        epsilon,
        bounds=([0] * d, [1] * d),
        n_bins=2,
        classes=[0, 1],
        inference=inference,
        mechanism=Laplace(**{"noise": "joint", **options}),
    )


def compacted(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"))


def data(n: int = 400, d: int = 8, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return (rng.random((n, d)) < np.linspace(0.1, 0.9, 2 * d).reshape(2, d)[y]).astype(int), y


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware"])
def test_batches_json_and_pickles(inference: str) -> None:
    X, y = data()
    model = classifier(inference).set_params(random_state=0)
    model.partial_fit(X[:200], y[:200])
    for batch in (1, 2, 3):
        released = model.posterior_.released
        for again in (from_json(model.to_json()), pickle.loads(pickle.dumps(model))):
            assert (again.predict_proba(X) == model.predict_proba(X)).all()
            assert again.posterior_.released.laws == released.laws
            pairs = zip(again.posterior_.released.tables, released.tables, strict=True)
            assert all(a.dtype == b.dtype and (a == b).all() for a, b in pairs)
        assert len(released.laws) == batch
        if batch < 3:  # the last one has another noise and another lattice
            noise, epsilon = ("joint", 1.0) if batch == 1 else ("independent", 5.0)
            model.set_params(mechanism__noise=noise, epsilon=epsilon)
            model.partial_fit(X[200:], y[200:])
    assert released.n == 600
    assert not released.independent
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    "tampered",
    [
        ('"grid":8', '"grid":3'),
        ('"grid":8', '"grid":1'),
        ('"scale":"2/1"', '"scale":"-2/1"'),
        ('"scale":"2/1"', '"scale":2'),
        ('"sizes":[2,2,2,2,2,2,2,2,2]', '"sizes":[2,2,2,2,2,2,2,3,2]'),
        ('"values":[2,2,2,2,2,2,2,2]', '"values":[2,2,2,2,2,2,2,4]'),
        ('"n_classes":2', '"n_classes":1'),
        (JOINT, '"2/1"'),
        (JOINT, INDEPENDENT),
    ],
    ids=str,
)
@pytest.mark.parametrize("everywhere", [True, False])
def test_a_law_that_does_not_fit_is_refused(tampered: tuple[str, str], everywhere: bool) -> None:
    X, y = data()
    text = classifier(inference="noise_aware").set_params(random_state=1).fit(X, y).to_json()
    compact = compacted(text)
    assert tampered[0] in compact
    from_json(compact)
    with pytest.raises(ValueError, match=r"released|network"):
        from_json(compact.replace(*tampered, -1 if everywhere else 1))


def test_counts_off_the_lattice_and_laws_of_another_graph_are_refused() -> None:
    X, y = data()
    model = classifier().set_params(random_state=1).fit(X, y)
    value = float(model.posterior_.released.tables[0][0, 0])
    compact = compacted(model.to_json())
    assert f"{value}" in compact
    with pytest.raises(ValueError, match="not on the grid"):
        from_json(compact.replace(f"{value}", f"{value + 1 / 16}", 1))
    with pytest.raises(ValueError, match="not on the grid"):
        from_json(compact.replace(JOINT, INDEPENDENT))


def test_a_grid_search_over_the_noise() -> None:
    X, y = data()
    grid = {"mechanism__noise": ["independent", "joint", "auto"]}
    search = GridSearchCV(classifier(epsilon=0.5), grid, cv=3).fit(X, y)
    assert search.best_params_["mechanism__noise"] in grid["mechanism__noise"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("network", "epsilon", "least"),
    [
        (STAR, 1, 0.45),
        (STAR, 300, 0.45),
        (Network.star([16, 2], 3), 1, 0.45),
        (Network.star([1, 5], 1), 40, 0.45),
        (Network.star([16] * 3, 2), 1, 0.3),  # the noise of a row is spread over its cells
    ],
    ids=str,
)
def test_bounds_hold_as_often_as_promised(network: Network, epsilon: int, least: float) -> None:
    delta, runs = 0.1, 400
    law = ClassRows.of(network.sizes[:-1], network.sizes[-1], 2, Fraction(epsilon))
    bound = law.error_bound(delta)
    nothing = tuple(np.zeros((runs, *shape), np.int64) for shape in network.shapes)
    *tables, classes = add(nothing, law, random_source(1))
    largest = np.max([np.abs(t).max(axis=(1, 2)) for t in tables], axis=0)
    largest = np.maximum(largest, np.abs(classes).max(axis=1))
    beyond = int((largest > bound).sum())
    assert binomtest(beyond, runs, delta, alternative="greater").pvalue > 1e-3
    norms = np.max([np.abs(t).sum(axis=2) for t in tables], axis=0).max(axis=1)
    assert binomtest(int((norms > bound).sum()), runs, delta, alternative="greater").pvalue > 1e-3
    used = [np.quantile(errors, 1 - delta) / bound for errors in (largest, norms)]
    assert least < used[0] < 0.9
    assert 0.7 < used[1] < 1.05


def test_estimators_know_the_bound() -> None:
    delta = 0.1
    bound = ClassRows.of((2,) * 8, 2, 2, Fraction(1)).error_bound(delta)
    X, y = data()
    for noise in ("joint", "auto"):
        model = classifier(noise=noise)
        assert model.utility_bound(delta, n=len(y)) == bound
        assert model.fit(X, y).utility_bound(delta) == bound
    assert classifier(noise="independent").fit(X, y).utility_bound(delta) > 2 * bound


@pytest.mark.slow
def test_planning_is_achieved() -> None:
    X, y = data()
    model = classifier().set_params(temperature=1)
    expected = expected_error(model, len(y)).mean
    truth, errors = CountTables.count(STAR, [(X.astype(np.uint8), y)]).tables, []
    for seed in range(1, 251):
        released = model.set_params(random_state=seed).fit(X, y).posterior_.released
        pairs = zip(released.tables, truth, strict=True)
        errors.append(np.concatenate([np.abs(t - u).ravel() for t, u in pairs]).mean())
    assert np.mean(errors) == pytest.approx(expected, rel=0.1)
    wanted = epsilon_for(model, len(y), expected / 2)
    assert wanted == pytest.approx(2.0, rel=0.15)


@pytest.mark.parametrize("inference", ["plug_in", "noise_aware"])
def test_nothing_but_the_release_tells_neighbours_apart(inference: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (30, 3)), rng.integers(0, 2, 30)
    X2, y2 = X.copy(), y.copy()
    X2[4], y2[4] = 1 - X[4], 1 - y[4]
    model = classifier(inference, d=3)
    for freeze in ({}, {"freeze": DRAWS}):
        found = replay(model, X, y, X2, y2, **freeze)
        assert found.sound, found.divergences
        assert ("largest rows of counts", 2.0, 2) in found.shifts


@pytest.mark.parametrize(
    ("options", "epsilon", "message"),
    [
        ({"noise": "jiont"}, 1.0, r"'noise' parameter of Laplace must be a str among"),
        ({"budget_split": 0.5}, 1.0, "budget_split must be 1 for joint noise"),
        ({}, 1e9, "too large for joint noise"),
    ],
    ids=str,
)
def test_errors_come_before_anything_is_spent(options: Any, epsilon: float, message: str) -> None:
    ledger = BudgetAccountant()
    X, y = data(40)
    model = classifier(epsilon=epsilon, **options).set_params(accountant=ledger)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert ledger.total() == (0, 0)


def test_a_share_of_the_class_table_makes_auto_independent() -> None:
    X, y = data(40)
    model = classifier(noise="auto", budget_split=0.5).fit(X, y)
    assert model.posterior_.released.independent
    assert not classifier(noise="auto").fit(X, y).posterior_.released.independent


def test_a_graph_is_refused_before_anything_is_spent() -> None:
    ledger = BudgetAccountant()
    X, y = data(40, d=3)
    model = BayesianNetworkClassifier(
        parents={"class": [0], 1: ["class", 0], 2: [1]},
        bounds=(0, 1),
        n_bins=2,
        classes=[0, 1],
        mechanism=Laplace(noise="joint"),
        accountant=ledger,
    )
    with pytest.raises(ValueError, match=r"is for naive Bayes; use noise='independent'"):
        model.fit(X, y)
    assert ledger.total() == (0, 0)
    assert model.set_params(mechanism__noise="auto").fit(X, y).posterior_.released.independent


def test_a_bound_for_a_graph_is_refused() -> None:
    tree = Network((2, 2, 2), ((2,), (0,), ()))
    with pytest.raises(ValueError, match="is for naive Bayes"):
        bound("joint", tree, 1)
    assert bound("auto", tree, 1) == bound("independent", tree, 1)
    assert bound("joint", STAR, math.inf) == 0


def bound(noise: str, network: Network, epsilon: float) -> float:
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    return plan(Laplace(noise=noise), prior, Facts(9), Budget(epsilon)).tables.error_bound(0.1)
