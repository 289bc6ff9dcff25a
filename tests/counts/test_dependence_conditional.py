"""Scores of edges: what they are, and how far a record can change them."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import numpy as np

from dpbayes_sklearn.counts.dependence import (
    LARGEST_SCORE,
    STAR,
    TREE,
    EdgeScores,
    PairTables,
    TreePrices,
    conditional_dependence,
)
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit

FREE = TreePrices(np.zeros((1, 1), np.int64), 0)


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
    assert (
        1.5 * 1024 < worst <= EdgeScores(np.zeros((2, 2)), 0, 1).sensitivity(RECORD) == 4 * 1024 + 2
    )


def test_no_record_that_comes_or_goes_changes_a_score_by_more_than_its_sensitivity():
    cells, scores = [*product(range(2), repeat=3)], EdgeScores(np.zeros((2, 2)), 0, 1)
    score = {
        r: conditional_dependence(table(r))
        for n in range(6)
        for r in combinations_with_replacement(cells, n)
    }
    for k in (1, 2, 3):
        gone = ((r, r[:i] + r[i + k :]) for r in score for i in range(len(r) - k + 1))
        worst = max(abs(score[r] - score[rest]) for r, rest in gone)
        bound = scores.sensitivity(PrivacyUnit("person", max_records=k, neighbours="add_remove"))
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


def scores_of(codes, sizes, prices=FREE):
    labels = np.zeros(len(codes), np.intp)
    return EdgeScores.of(PairTables.of(codes.astype(np.uint8), labels, sizes), prices)


def test_edges_grow_from_the_first_feature():
    codes = np.random.default_rng(0).integers(0, 2, (200, 4))
    codes[:, 3] = codes[:, 1]
    scores = scores_of(codes, (2, 2, 2, 2, 1))
    edges, values = scores.options((TREE,))
    assert edges == [(1, 0), (2, 0), (3, 0)]
    edges, values = scores.options((TREE, (1, 0)))
    assert edges[int(np.argmax(values))] == (3, 1)
    assert values.max() <= LARGEST_SCORE


def test_the_mean_of_the_best_tree_is_compared_with_naive_bayes():
    codes = np.random.default_rng(0).integers(0, 2, (400, 4))
    codes[:, 3] = codes[:, 1]
    scores = scores_of(codes, (2, 2, 2, 2, 1)).scores
    trees = [tree for tree in combinations(combinations(range(4), 2), 3) if is_tree(tree)]
    assert len(trees) == 16
    best = max(sum(int(scores[edge]) for edge in tree) for tree in trees) // 3
    for star, wanted in ((0, TREE), (best - 1, TREE), (best + 1, STAR)):
        candidates, values = EdgeScores(scores, star, 400).options(())
        assert candidates == [TREE, STAR]
        assert values.tolist() == [best, star]
        assert candidates[int(np.argmax(values))] == wanted
    assert EdgeScores(scores, 0, 400).options((STAR,))[0] == []


def test_a_record_changes_the_mean_of_a_tree_no_more_than_one_score():
    rng, d, worst = np.random.default_rng(0), 8, 0
    bound = EdgeScores(np.zeros((d, d)), 0, 1).sensitivity(RECORD)
    for _ in range(60):
        codes = np.repeat(rng.integers(0, 2, (30, 1)), d, axis=1) ^ (rng.random((30, d)) < 0.05)
        other = codes.copy()
        other[0] = 1 - codes[0] if rng.random() < 0.5 else rng.integers(0, 2, d)
        one, two = (scores_of(each, (2,) * d + (1,)).options(())[1][0] for each in (codes, other))
        worst = max(worst, abs(one - two))
    assert worst <= bound < (d - 1) * worst  # their sums would differ by more


def is_tree(edges):
    reached = {0}
    for _ in edges:
        reached |= {v for edge in edges if reached & {*edge} for v in edge}
    return len(reached) == 4


def test_a_price_makes_a_wide_table_less_attractive():
    prices = TreePrices(np.array([[0, 7, 900], [7, 0, 0], [900, 0, 0]]), 30)
    codes = np.random.default_rng(1).integers(0, 3, (90, 3))
    free, priced = scores_of(codes, (3, 3, 3, 1)), scores_of(codes, (3, 3, 3, 1), prices)
    assert np.array_equal(free.scores - priced.scores, prices.edges - 900)
    assert priced.star == 870
