"""Scores of columns: what they are, and exactly how far a record can change them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.counts.dependence import ColumnScores, dependence, dependence_sensitivity
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.privacy.budget import PrivacyUnit


def compositions(n, cells):
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, cells - 1):
            yield (first, *rest)


def largest_change(n, shape):
    """Return the largest change of the score over all tables and all replaced records."""
    cells = shape[0] * shape[1]
    score = {c: dependence(np.array(c).reshape(shape)) for c in compositions(n, cells)}
    return max(
        abs(score[table] - score[moved(table, old, new)])
        for table in score
        for old in range(cells)
        if table[old]
        for new in range(cells)
    )


def moved(table, old, new):
    changed = list(table)
    changed[old] -= 1
    changed[new] += 1
    return tuple(changed)


@pytest.mark.parametrize("n", range(1, 13))
def test_the_sensitivity_of_two_by_two_is_exact(n):
    assert largest_change(n, (2, 2)) == dependence_sensitivity(n, 2, 2) == 4 * (n - 1)


@pytest.mark.parametrize(
    ("n", "shape"), [*((n, (3, 2)) for n in range(2, 8)), *((n, (3, 3)) for n in (2, 3, 4))]
)
def test_no_record_changes_a_score_by_more(n, shape):
    assert largest_change(n, shape) <= dependence_sensitivity(n, *shape)
    assert dependence_sensitivity(n, *shape) == dependence_sensitivity(n, *shape[::-1])


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (3, 3)])
def test_no_record_that_comes_or_goes_changes_a_score_by_more(shape):
    cells = shape[0] * shape[1]
    network, units = Network.star([shape[0]], shape[1]), ("record", "person")

    def scores(table):
        counts = np.array(table, np.int64).reshape(shape)
        return ColumnScores.of(CountTables(network, (counts.T.copy(), counts.sum(0)), sum(table)))

    assert scores((0,) * cells).scores.tolist() == [0]
    worst = 0
    for n in range(1, 5 if cells > 4 else 9):
        for table in compositions(n, cells):
            for old in np.flatnonzero(table):
                less = (*table[:old], table[old] - 1, *table[old + 1 :])
                worst = max(worst, abs(int(scores(table).scores[0] - scores(less).scores[0])))
    bounds = [
        scores(table).sensitivity(PrivacyUnit(unit, neighbours="add_remove")) for unit in units
    ]
    assert 0.7 * 2048 < worst <= 2048 == bounds[0] == bounds[1]
    assert (
        scores(table).sensitivity(PrivacyUnit("person", max_records=3, neighbours="add_remove"))
        == 3 * 2048
    )


def test_it_is_never_above_the_published_bound():
    for n, values, classes in ((1, 5, 4), (2, 2, 2), (10, 3, 3), (1000, 16, 9), (1000, 2, 9)):
        bound = 2 * n * (3 + Fraction(2, n))  # PrivBayes
        assert dependence_sensitivity(n, values, classes) <= bound
    assert dependence_sensitivity(1000, 16, 2) < 2 * 2 * 1000
    assert dependence_sensitivity(5, 1, 3) == 0


def test_independence_has_no_score_and_a_copy_the_largest():
    assert dependence(np.outer([2, 3], [5, 5])) == 0
    assert dependence(np.diag([50, 50])) == 2 * 100 * 50


def test_columns_that_are_chosen_are_no_option_any_more():
    codes = np.array([[0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], np.uint8)
    counts = CountTables.count(Network.star([2, 2, 2], 2), [(codes, np.array([0, 1, 0, 1]))])
    scores = ColumnScores.of(counts)
    left, values = scores.options((0,))
    assert left == [1, 2]
    assert values.tolist() == scores.scores[1:].tolist()
