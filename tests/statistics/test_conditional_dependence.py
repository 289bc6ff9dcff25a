"""Scores of edges: what they are, and how far a record can change them."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np

from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.statistics.choices import LARGEST
from dpbayes_sklearn.statistics.conditional_dependence import (
    EdgeScores,
    PairTables,
    conditional_dependence,
)


def table(records, shape=(2, 2, 2)):
    counts = np.zeros(shape, np.int64)
    for record in records:
        counts[record] += 1
    return counts


def test_no_replaced_record_changes_a_score_by_more_than_its_sensitivity():
    cells = [*product(range(2), repeat=3)]
    worst = 0
    for n in range(1, 6):
        score = {
            r: conditional_dependence(table(r)) for r in combinations_with_replacement(cells, n)
        }
        for records in score:
            for i, new in product(range(n), cells):
                other = tuple(sorted((*records[:i], *records[i + 1 :], new)))
                worst = max(worst, abs(score[records] - score[other]))
    assert 1.5 * 1024 < worst <= EdgeScores(np.zeros((2, 2)), 1).sensitivity(RECORD) == 4 * 1024 + 2


def test_no_record_that_comes_or_goes_changes_a_score_by_more_than_its_sensitivity():
    cells, scores = [*product(range(2), repeat=3)], EdgeScores(np.zeros((2, 2)), 1)
    score = {
        r: conditional_dependence(table(r))
        for n in range(6)
        for r in combinations_with_replacement(cells, n)
    }
    for k in (1, 2, 3):
        gone = ((r, r[:i] + r[i + k :]) for r in score for i in range(len(r) - k + 1))
        worst = max(abs(score[r] - score[rest]) for r, rest in gone)
        bound = scores.sensitivity(PrivacyUnit("person", "add_remove", k))
        assert 0.35 * bound < worst <= bound == 2 * k * 1024 + 2


def test_large_classes_come_near_to_the_bound():
    m = 2000
    apart = np.zeros((2, 2, 2), np.int64)
    apart[0, 0] = m  # all alike in both classes: the score is 0
    here, there = apart.copy(), apart.copy()
    here[1, 1, 0] += 1
    there[1, 1, 1] += 1
    assert conditional_dependence(apart) == 0
    assert abs(conditional_dependence(here) - conditional_dependence(apart)) <= 2 * 1024 + 1
    assert abs(conditional_dependence(here) - conditional_dependence(there)) <= 1


def test_independence_given_the_class_has_no_score():
    counts = np.stack([np.outer([3, 6], [2, 4]), np.outer([5, 5], [8, 2])], axis=2)
    assert conditional_dependence(counts) == 0


def test_edges_grow_from_the_first_feature():
    codes = np.random.default_rng(0).integers(0, 2, (200, 4)).astype(np.uint8)
    codes[:, 3] = codes[:, 1]
    scores = EdgeScores.of(PairTables.of(codes, np.zeros(200, np.intp), (2, 2, 2, 2, 1)))
    edges, values = scores.options(())
    assert edges == [(1, 0), (2, 0), (3, 0)]
    edges, values = scores.options(((1, 0),))
    assert edges[int(np.argmax(values))] == (3, 1)
    assert values.max() <= LARGEST
    assert scores.without_noise() is scores
