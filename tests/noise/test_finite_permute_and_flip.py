"""Permute-and-flip: its law, its privacy, and what rounding may add."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.noise.finite import choice_log_law, choice_loss, integer_weights
from tests.releasing import law_loss

SCORES = st.lists(st.floats(-200, 200), min_size=1, max_size=30)


def by_enumeration(scores: list[float]) -> np.ndarray:
    """Go through all orders: the chance of each candidate to be the first that is taken."""
    taken = np.exp(np.array(scores) - max(scores))
    chance = np.zeros(len(scores))
    orders = [*permutations(range(len(scores)))]
    for order in orders:
        left = 1.0
        for r in order:
            chance[r] += left * taken[r] / len(orders)
            left *= 1.0 - taken[r]
    return chance


@pytest.mark.parametrize(
    "scores", [[0.0], [0.0, -1.0], [3.0, 3.0, 1.0], [0.0, -0.1, -5.0, -0.5, -40.0, 0.0]]
)
def test_law_is_that_of_all_orders(scores: list[float]) -> None:
    np.testing.assert_allclose(np.exp(choice_log_law(np.array(scores))), by_enumeration(scores))


@given(SCORES)
def test_law_sums_to_one(scores: list[float]) -> None:
    assert np.exp(choice_log_law(np.array(scores))).sum() == pytest.approx(1.0, abs=1e-12)


@given(st.data(), SCORES, st.floats(0.001, 5))
def test_loss_is_at_most_epsilon_with_rounding(
    data: st.DataObject, scores: list[float], epsilon: float
) -> None:
    """Scores that move by epsilon/2 at most lose epsilon at most, once drawn as integers."""
    moves = data.draw(
        st.lists(st.floats(-epsilon / 2, epsilon / 2), min_size=len(scores), max_size=len(scores))
    )
    here, there = np.array(scores), np.array(scores) + np.array(moves)
    laws = [integer_weights(choice_log_law(q)) for q in (here, there)]
    assert law_loss(laws[0], laws[1]) <= epsilon + choice_loss(len(scores), 210.0)


def test_worst_case_reaches_epsilon() -> None:
    """A bound of less than epsilon would be wrong: one candidate up and all others down."""
    q = np.array([-30.0, 0.0])
    moved = q + np.array([0.5, -0.5])
    assert choice_log_law(moved)[0] - choice_log_law(q)[0] == pytest.approx(1.0, abs=1e-6)


def test_never_worse_than_the_exponential_mechanism() -> None:
    scores = np.random.default_rng(0).normal(scale=3, size=(50, 12))
    exponential = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    flipped = np.exp(choice_log_law(scores))
    assert ((flipped * scores).sum(axis=1) >= (exponential * scores).sum(axis=1)).all()


@pytest.mark.parametrize("count", [0, 65])
def test_number_of_candidates_is_limited(count: int) -> None:
    with pytest.raises(ValueError, match="candidates"):
        choice_log_law(np.zeros(count))
