"""Records beyond the bound of their norm are scaled to it, numbers and target alike."""

import numpy as np
import pytest
from dpbayes_sklearn.regression.record_sums import RowNorm
from hypothesis import given
from hypothesis import strategies as st

GRID = 2**15


def clipped(norm, x, t, grid=GRID):
    x, t = np.array(x, float), np.array(t, float)
    norm.clip(x, t, grid)
    return x, t


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 400))
def test_no_record_is_beyond_the_bound_in_exact_arithmetic(seed, width, limit):
    rng = np.random.default_rng(seed)
    squares = (*rng.integers(0, 200, width).tolist(), int(rng.integers(1, 200)))
    x, t = rng.integers(-GRID, GRID + 1, (20, width)), rng.integers(-GRID, GRID + 1, 20)
    x[0], t[0] = GRID, -GRID
    kept, target = clipped(RowNorm(squares, limit), x, t)
    for row, last in zip(kept.tolist(), target.tolist(), strict=True):
        whole = [int(value) for value in (*row, last)]
        assert whole == [*row, last]
        assert sum(k * v**2 for k, v in zip(squares, whole, strict=True)) <= limit * GRID**2


def test_signs_and_records_within_the_bound_stay_as_they_are():
    norm = RowNorm((4, 0, 4), 5)
    x, t = (
        np.array([[0.4, 1.0], [1.0, -1.0], [-1.0, 1.0]]) * GRID,
        np.array([1.0, -1.0, 0.25]) * GRID,
    )
    x = np.rint(x)
    kept, target = clipped(norm, x, t)
    assert kept[[0, 2]].tolist() == x[[0, 2]].tolist()
    assert target[[0, 2]].tolist() == t[[0, 2]].tolist()
    assert kept[1, 1] == -GRID
    assert kept[1, 0] / GRID == pytest.approx(np.sqrt(5 / 8), abs=1e-4)
    assert target[1] == -kept[1, 0]


def test_a_record_is_scaled_by_itself():
    """Whatever stands beside it, so that one record changes no other."""
    rng = np.random.default_rng(0)
    norm = RowNorm((9, 16, 25, 30), 20)
    x, t = rng.integers(-GRID, GRID + 1, (500, 3)), rng.integers(-GRID, GRID + 1, 500)
    together = clipped(norm, x, t)
    for i in range(0, 500, 7):
        alone = clipped(norm, x[i : i + 1], t[i : i + 1])
        assert alone[0].tolist() == together[0][i : i + 1].tolist()
        assert alone[1].tolist() == together[1][i : i + 1].tolist()


def test_norms_beyond_the_exact_doubles_are_exact():
    rng = np.random.default_rng(0)
    squares = tuple(rng.integers(2**14, 2**16, 1500).tolist())
    x, t = rng.integers(-GRID, GRID + 1, (50, 1499)), rng.integers(-GRID, GRID + 1, 50)
    norms = RowNorm(squares, 1)._norms(x.astype(float), t.astype(float), GRID)
    rows = np.column_stack([x, t]).tolist()
    exact = [sum(k * v**2 for k, v in zip(squares, row, strict=True)) for row in rows]
    assert max(exact) > 2**53
    assert norms.tolist() == exact


def test_a_bound_that_no_record_exceeds_changes_nothing():
    x, t = np.full((1, 2), float(GRID)), np.full(1, -float(GRID))
    kept, target = clipped(RowNorm((4, 9, 4), 17), x, t)
    assert kept.tolist() == x.tolist()
    assert target.tolist() == t.tolist()
