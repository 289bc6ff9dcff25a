"""Choices by score: private on all small data sets, good on large ones."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from benchmarks.audit.tools import enumerate_loss
from dpbayes_sklearn.columns import plans
from dpbayes_sklearn.columns.plans import ChoicePlan
from dpbayes_sklearn.counts import dependence
from dpbayes_sklearn.counts.dependence import ColumnChoice, ColumnScores
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget

WORLDS = [
    (ColumnChoice(Network.star([2, 2], 2), 1), 4),
    (ColumnChoice(Network.star([2, 2, 2], 2), 2), 2),
    (ColumnChoice(Network.star([3, 3], 3), 1), 2),
]


@pytest.mark.parametrize(("choice", "n"), WORLDS, ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_all_neighbours_stay_within_the_claim(choice, n, epsilon):
    found = enumerate_loss(None, choice, n, epsilon=epsilon, transcripts=3)
    assert found.within
    assert found.ratio > 0.3


def test_the_exponential_mechanism_takes_over_for_many_candidates():
    with mock.patch.object(plans, "MAX_CHOICES", 1):
        found = enumerate_loss(None, *WORLDS[0], epsilon=8.0)
    assert found.within
    assert found.ratio > 0.5


def test_half_the_sensitivity_is_seen():
    real = dependence.dependence_sensitivity
    with mock.patch.object(dependence, "dependence_sensitivity", lambda *f: real(*f) // 2):
        found = enumerate_loss(None, *WORLDS[0], epsilon=8.0)
    assert not found.within


@pytest.mark.parametrize("d", [20, 200])
def test_high_scores_are_chosen(d):
    scores = np.arange(d) * 1024 * 1000 // d
    statistics = ColumnScores(scores, 1000, (2,) * (d + 1))
    choice = ColumnChoice(Network.star([2] * d, 2), 3)
    budget = Budget(Fraction(100))
    chosen = ChoicePlan.of(choice, budget).release(statistics, Noise.of(0))
    assert len({*chosen}) == 3
    assert min(chosen) > d * 0.8
    exact = ChoicePlan.of(choice, Budget(float("inf"))).release(statistics, Noise.of(0))
    assert exact == (d - 1, d - 2, d - 3)


def test_scores_that_no_record_can_change_are_compared_exactly():
    statistics = ColumnScores(np.array([3, 5, 1]), 1, (1, 1, 1, 2))
    choice = ColumnChoice(Network.star([1, 1, 1], 2), 1)
    found = ChoicePlan.of(choice, Budget(Fraction(1))).release(statistics, Noise.of(0))
    assert found == (1,)
