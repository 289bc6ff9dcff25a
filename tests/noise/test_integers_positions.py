"""Random sets of positions: exact, by going through all draws, and quick for many records."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chisquare

from dpbayes_sklearn.noise import integers
from dpbayes_sklearn.noise.integers import random_positions, random_source


@pytest.mark.parametrize(("n", "size"), [(3, 1), (4, 2), (5, 2), (5, 3), (5, 4), (6, 3)])
def test_all_sets_are_alike(monkeypatch: pytest.MonkeyPatch, n: int, size: int) -> None:
    """Feed all sequences of draws of one length: of those that are enough, all sets get as many."""
    sets: Counter[tuple[int, ...]] = Counter()
    for sequence in product(range(n), repeat=5):
        left = [*sequence]
        monkeypatch.setattr(
            integers,
            "uniform_below",
            lambda bound, k, source, left=left: np.array([left.pop(0) for _ in range(k)]),
        )
        try:
            sets[tuple(random_positions(n, size, bytes).tolist())] += 1
        except IndexError:  # too many repeated positions
            continue
    assert sorted(sets) == [*combinations(range(n), size)]
    assert len(set(sets.values())) == 1


@pytest.mark.parametrize(("n", "size"), [(1, 1), (7, 0), (7, 7), (1000, 1), (1000, 999)])
def test_as_many_different_positions_in_order(n: int, size: int) -> None:
    drawn = random_positions(n, size, random_source(0))
    assert len(drawn) == size
    assert (np.diff(drawn) > 0).all()
    assert set(drawn.tolist()) <= set(range(n))


def test_many_records_in_equal_parts() -> None:
    drawn = random_positions(10**6, 10**5, random_source(1))
    assert chisquare(np.bincount(drawn // 10**4, minlength=100)).pvalue > 1e-4
    assert chisquare(np.bincount(drawn % 10, minlength=10)).pvalue > 1e-4


def test_a_broken_source_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="repeating itself"):
        random_positions(10, 2, bytes)
