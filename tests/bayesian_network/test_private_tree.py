"""A private tree: found, charged, and nothing else of the data."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from benchmarks.audit.tools import enumerate_loss
from benchmarks.audit.tools.replaying import CHOKE_POINT, DRAWS, replay
from dpbayes_sklearn import (
    BayesianNetworkClassifier,
    BudgetAccountant,
    Categories,
    Interval,
    Schema,
    tree_augmented,
)
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.columns.plans import ChoicePlan
from dpbayes_sklearn.counts.dependence import TREE, EdgeScores, TreeChoice
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import PrivacyUnit

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, (3000, 5))
CODES[:, 3] = (CODES[:, 1] + (RNG.random(3000) < 0.1)) % 3
CODES[:, 4] = (CODES[:, 2] + (RNG.random(3000) < 0.1)) % 3
LABELS = RNG.integers(0, 2, 3000)
SCHEMA = Schema({f"x{j}": Interval(0, 2, bins=3) for j in range(5)}, Categories([0, 1]))


def edges(parents):
    return {frozenset((child, p)) for child, above in parents.items() for p in above[1:]}


def test_edges_that_matter_are_found_for_one_charge():
    ledger = BudgetAccountant()
    tree = tree_augmented(CODES, LABELS, SCHEMA, epsilon=1.0, accountant=ledger)
    (entry,) = ledger
    assert float(entry.epsilon) == 1.0
    assert {frozenset(("x1", "x3")), frozenset(("x2", "x4"))} <= edges(tree)
    assert len(edges(tree)) == 4
    model = BayesianNetworkClassifier(parents=tree, schema=SCHEMA).fit(CODES, LABELS)
    assert model.guarantee_.epsilon == 1.0


@pytest.mark.parametrize(
    ("n", "model_epsilon", "found"),
    [(3000, None, 4), (3000, 0.05, 0), (60, 1.0, 0), (60, float("inf"), 4)],
)
def test_a_tree_that_is_not_worth_its_noise_is_left_out(n, model_epsilon, found):
    tree = tree_augmented(CODES[:n], LABELS[:n], SCHEMA, epsilon=20.0, model_epsilon=model_epsilon)
    assert len(edges(tree)) == found
    assert tree.guarantee.epsilon == 20.0
    if not found:
        model = BayesianNetworkClassifier(parents=tree, schema=SCHEMA).fit(CODES, LABELS)
        assert model.posterior_.released.network.is_star


def test_independent_features_get_no_tree():
    codes = np.random.default_rng(1).integers(0, 3, (3000, 5))
    assert not edges(tree_augmented(codes, LABELS, SCHEMA, epsilon=1.0, model_epsilon=1.0))


def test_without_noise_it_is_the_best_tree():
    tree = tree_augmented(CODES, LABELS, SCHEMA, epsilon=float("inf"))
    public = tree_augmented(CODES, LABELS, SCHEMA)
    strong = {frozenset(("x1", "x3")), frozenset(("x2", "x4"))}
    assert strong <= edges(tree) & edges(public)


def test_all_neighbours_stay_within_the_claim():
    choice = TreeChoice(Network.star([2, 2, 2], 2))
    for epsilon in (0.5, 8.0):
        found = enumerate_loss(None, choice, 2, epsilon=epsilon, transcripts=2)
        assert found.within
        assert found.loss > 0


@pytest.mark.parametrize(
    "unit", [PrivacyUnit(), PrivacyUnit("person", max_records=3, neighbours="add_remove")], ids=str
)
def test_the_question_takes_a_quarter_of_the_budget(unit):
    """Of two candidates x nats apart, permute-and-flip draws the lower one in e^-x / 2 of cases."""
    scores, weights = np.array([[0, 50_000], [50_000, 0]]), []
    sensitivity = EdgeScores(scores, 0, 9).sensitivity(unit)
    question = EdgeScores(scores, 50_000 - 4 * sensitivity, 9)

    class First(Noise):
        def choose(self, row):
            weights.append(row[0].astype(float))
            return [0]

    choice, budget = TreeChoice(Network.star([2, 2], 2)), Budget(Fraction(2), unit=unit)
    found = ChoicePlan.of(choice, budget).release(question, First())
    assert found == (TREE, (1, 0))
    nats = 4 * (2 / 4) / 2  # four sensitivities, a quarter of epsilon = 2
    assert weights[0][1] / weights[0].sum() == pytest.approx(np.exp(-nats) / 2, rel=1e-5)
    assert weights[1].shape == (1,)


@pytest.mark.parametrize("freeze", [CHOKE_POINT, DRAWS])
def test_a_neighbour_differs_in_nothing_but_the_release(freeze):
    for _ in range(5):
        X, y = RNG.integers(0, 3, (8, 5)).astype(float), RNG.integers(0, 2, 8)
        X2, y2 = X.copy(), y.copy()
        X2[3], y2[3] = [np.nan, np.inf, -1e308, 1, 2], 9
        found = replay(PrivateTree(0.5, schema=SCHEMA), X, y, X2, y2, freeze=freeze)
        assert found.sound, found.divergences
        assert found.epsilon == 0.5


def test_one_feature_has_no_edges():
    one = Schema({"a": Interval(0, 2, bins=3)}, Categories([0, 1]))
    assert tree_augmented(CODES[:, :1], LABELS, one, epsilon=1.0) == {"a": ["class"]}


def test_dask_collections_are_counted_where_they_are():
    dask = pytest.importorskip("dask.array")
    X, y = dask.from_array(CODES, chunks=(1000, 5)), dask.from_array(LABELS, chunks=1000)
    for epsilon in (float("inf"), 1.0):
        there = tree_augmented(X, y, SCHEMA, epsilon=epsilon, random_state=0)
        assert there == tree_augmented(CODES, LABELS, SCHEMA, epsilon=epsilon, random_state=0)


def test_a_model_names_the_price_of_its_tree():
    tree = tree_augmented(CODES, LABELS, SCHEMA, epsilon=0.25)
    assert tree.guarantee.epsilon == 0.25
    model = BayesianNetworkClassifier(parents=tree, schema=SCHEMA)
    for made in (model, clone(model), pickle.loads(pickle.dumps(model))):
        (condition,) = made.fit(CODES, LABELS).guarantee_.conditions
        assert "learned parents" in condition
        assert "epsilon = 0.25" in condition
    again = BayesianNetworkClassifier.from_json(made.to_json())
    assert again.guarantee_ == made.guarantee_
    assert again.fit(CODES, LABELS).guarantee_ == made.guarantee_
    public = tree_augmented(CODES, LABELS, SCHEMA)
    model = BayesianNetworkClassifier(parents=public, schema=SCHEMA).fit(CODES, LABELS)
    assert model.guarantee_.conditions == ()


def test_a_wrong_budget_is_refused_and_a_tree_has_no_json_form():
    with pytest.raises(ValueError, match="epsilon"):
        tree_augmented(CODES, LABELS, SCHEMA, epsilon=-1.0)
    with pytest.raises(ValueError, match="JSON"):
        PrivateTree(1.0, schema=SCHEMA).fit(CODES, LABELS).to_json()


def test_too_many_features_are_refused_before_the_charge():
    most = TreeChoice(Network.star([2] * 1024, 2))
    ChoicePlan.of(most, Budget(1))
    assert most.most_candidates == 2**18
    one_more = TreeChoice(Network.star([2] * 1025, 2))
    with pytest.raises(ValueError, match="262656 candidates would be chosen at a time"):
        ChoicePlan.of(one_more, Budget(1))
    assert TreeChoice(Network.star([2], 2)).most_candidates == 0
