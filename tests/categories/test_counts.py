from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.privacy.budget import RECORD


@pytest.mark.parametrize(("n", "k"), [(4, 2), (3, 3), (2, 4)])
@pytest.mark.parametrize("all_cells", [True, False])
def test_declared_sensitivity_is_what_neighbours_move(n: int, k: int, all_cells: bool) -> None:
    cells = k if all_cells else k - 1
    moved = 0
    for records in itertools.product(range(k), repeat=n):
        exact = SimplexCounts.count(np.array(records), k)
        for i, value in itertools.product(range(n), range(k)):
            other = list(records)
            other[i] = value
            neighbour = SimplexCounts.count(np.array(other), k)
            assert neighbour.n == exact.n == n
            moved = max(moved, np.abs(exact.counts - neighbour.counts)[:cells].sum())
    assert moved == exact.sensitivity(RECORD, cells)


@pytest.mark.parametrize(("n", "k"), [(4, 2), (3, 3), (2, 4)])
def test_released_counts_change_by_one_in_as_many_cells_as_declared(n: int, k: int) -> None:
    cells, most = k if k > 2 else 1, 0
    for records in itertools.product(range(k), repeat=n):
        exact = SimplexCounts.count(np.array(records), k)
        for i, value in itertools.product(range(n), range(k)):
            other = [*records[:i], value, *records[i + 1 :]]
            moved = np.abs(exact.counts - SimplexCounts.count(np.array(other), k).counts)[:cells]
            assert moved.max() <= 1
            most = max(most, int(moved.sum()))
    assert exact.shifts() == {(1, 1): most}
    assert SimplexCounts.count(np.zeros(5, dtype=int), 1).shifts() == {}


def test_one_category_does_not_move() -> None:
    assert SimplexCounts.count(np.zeros(5, dtype=int), 1).sensitivity() == 0


def test_order_of_records_does_not_matter() -> None:
    codes = np.random.default_rng(0).integers(0, 5, 1000)
    a, b = (SimplexCounts.count(c, 5).counts for c in (codes, np.sort(codes)))
    assert (a == b).all()


def test_without_noise_is_exact() -> None:
    released = SimplexCounts.count(np.array([0, 2, 2]), 3).without_noise()
    assert (released.counts.tolist(), released.n, released.laws) == ([1, 0, 2], 3, ())
