"""Second moments are exact sums of whole numbers, however the records are stored and read."""

import numpy as np
import pandas as pd
import pytest

from dpbayes_sklearn.convex import design as design_module
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.regression import moments as module
from dpbayes_sklearn.regression.moments import (
    FINEST_GRID,
    exact_moments,
    gram,
    largest_grid,
    whole_block,
)
from dpbayes_sklearn.schema import Categories, Interval
from tests.linear_records import linear_records

DESIGN = Design((Interval(-2, 5), Interval(0, 1), Interval(10, 30)))


def records(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [3, 1, 10] + [0, 0.5, 20], rng.normal(size=n)


def sums(X, y, grid=FINEST_GRID, design=DESIGN):
    return gram(linear_records(X, y, design, Scale(0.0, 2.0)), grid)


def by_python_integers(X, y, grid=FINEST_GRID):
    """The same sums in exact arithmetic, one record at a time."""
    low, high = np.array([-2, 0, 10]), np.array([5, 1, 30])
    x = np.clip((X - (low + high) / 2) / ((high - low) / 2), -1, 1)
    z = np.column_stack([np.ones(len(x)), x, np.clip(y / 2, -1, 1)])
    steps = [[int(v) for v in row] for row in np.rint(z * grid)]
    k = z.shape[1]
    return np.array([[sum(r[i] * r[j] for r in steps) for j in range(k)] for i in range(k)])


def test_sums_are_exact():
    X, y = records(200)
    for grid in (1, 64, FINEST_GRID):
        assert np.array_equal(sums(X, y, grid), by_python_integers(X, y, grid))


def test_rows_in_any_order_and_chunks_of_any_size_give_the_same_bits(monkeypatch):
    X, y = records()
    reference = sums(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    assert np.array_equal(sums(X[order], y[order]), reference)
    for cells in (3, 1000, 10**9):
        monkeypatch.setattr(design_module, "_CHUNK_CELLS", cells)
        assert np.array_equal(sums(X[:500], y[:500]), by_python_integers(X[:500], y[:500]))


def test_partial_sums_leave_doubles_before_they_round(monkeypatch):
    X, y = records(500)
    reference = sums(X, y)
    monkeypatch.setattr(design_module, "_CHUNK_CELLS", 30)
    monkeypatch.setattr(module, "_DOUBLE", 20 * FINEST_GRID**2)
    assert np.array_equal(sums(X, y), reference)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32, object])
def test_every_type_gives_the_same_sums(dtype):
    X, y = np.random.default_rng(0).integers(0, 30, (100, 3)), np.arange(100) % 3
    reference = sums(X.astype(np.float64), y)
    assert np.array_equal(sums(X.astype(dtype), y.astype(dtype)), reference)
    assert np.array_equal(sums(np.asfortranarray(X), y), reference)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0])
def test_a_wild_record_moves_the_sums_no_further_than_declared(bad):
    X, y = records(300)
    before = sums(X, y)
    X[7], y[7] = bad, bad
    moved = np.abs(sums(X, y) - before) / FINEST_GRID**2
    block = whole_block(DESIGN)
    assert moved[block.rows, block.columns].sum() <= float(block.l1_sensitivity)
    assert np.all(moved[block.rows, block.columns] <= block.entry_sensitivities)


def test_a_record_without_a_target_adds_nothing():
    X, y = records(300)
    y[::7] = np.nan
    kept = ~np.isnan(y)
    assert np.array_equal(sums(X, y), sums(X[kept], y[kept]))
    assert exact_moments(linear_records(X, y, DESIGN)).n == kept.sum()


def test_without_noise_nothing_is_rounded():
    X, y = records(50)
    z = np.column_stack(
        [np.ones(50), np.clip((X - [1.5, 0.5, 20]) / [3.5, 0.5, 10], -1, 1), np.clip(y / 2, -1, 1)]
    )
    released = exact_moments(linear_records(X, y, DESIGN, Scale(0.0, 2.0)))
    assert np.allclose(released.gram, z.T @ z, rtol=1e-13)
    assert not released.variance.any()


def test_sums_that_could_overflow_are_refused_while_they_are_planned():
    assert largest_grid(2**40, 1.0) ** 2 * 2**40 < 2**63
    with pytest.raises(ValueError, match="larger epsilon"):
        largest_grid(10, 1e16)


def test_categories_of_a_data_frame():
    design = Design((Categories(["a", "b", "c"]), Interval(0, 1)))
    X = pd.DataFrame({"job": ["a", "c", "?", None], "part": [0, 1, np.nan, 0.5]})
    assert sums(X, np.zeros(4), 1, design)[0].tolist() == [4, 3, 0, 1, 0, 0]
