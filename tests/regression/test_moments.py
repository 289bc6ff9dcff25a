from itertools import product

import numpy as np
import pandas as pd
import pytest
from dpbayes_sklearn.regression.record_sums import RADII, Predictive, rounded

from dpbayes_sklearn.convex.design import WHOLE_WINDOW, Design, Scale, Window, Windows
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD
from dpbayes_sklearn.regression import design as design_module
from dpbayes_sklearn.regression.moments import (
    FINEST_GRID,
    Moments,
    largest_grid,
    weighted_block,
    whole_block,
)
from dpbayes_sklearn.schema import Categories, Interval

DESIGN = Design((Interval(-2, 5), Interval(0, 1), Interval(10, 30)))


def records(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [3, 1, 10] + [0, 0.5, 20], rng.normal(size=n)


def moments(X, y, design=DESIGN):
    records = LocalRecords([(Table(X), np.asarray(y, np.float64))])
    return Moments(design, Scale(0.0, 2.0), records)


def by_python_integers(X, y, grid):
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
        assert np.array_equal(
            moments(X, y).gram(grid, WHOLE_WINDOW), by_python_integers(X, y, grid)
        )


def test_rows_in_any_order_and_chunks_of_any_size_give_the_same_bits(monkeypatch):
    X, y = records()
    reference = moments(X, y).gram(FINEST_GRID, WHOLE_WINDOW)
    order = np.random.default_rng(1).permutation(len(y))
    assert np.array_equal(moments(X[order], y[order]).gram(FINEST_GRID, WHOLE_WINDOW), reference)
    for cells in (3, 1000, 10**9):
        monkeypatch.setattr(design_module, "_CHUNK_CELLS", cells)
        assert np.array_equal(
            moments(X[:500], y[:500]).gram(FINEST_GRID, WHOLE_WINDOW),
            by_python_integers(X[:500], y[:500], FINEST_GRID),
        )


def test_partial_sums_leave_doubles_before_they_round(monkeypatch):
    from dpbayes_sklearn.regression import record_sums as module

    X, y = records(500)
    reference = moments(X, y).gram(FINEST_GRID, WHOLE_WINDOW)
    monkeypatch.setattr(design_module, "_CHUNK_CELLS", 30)
    monkeypatch.setattr(module, "_DOUBLE", 20 * FINEST_GRID**2)
    assert np.array_equal(moments(X, y).gram(FINEST_GRID, WHOLE_WINDOW), reference)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32, object])
def test_every_type_gives_the_same_sums(dtype):
    X, y = np.random.default_rng(0).integers(0, 30, (100, 3)), np.arange(100) % 3
    reference = moments(X.astype(np.float64), y).gram(FINEST_GRID, WHOLE_WINDOW)
    assert np.array_equal(
        moments(X.astype(dtype), y.astype(dtype)).gram(FINEST_GRID, WHOLE_WINDOW), reference
    )
    assert np.array_equal(
        moments(np.asfortranarray(X), y).gram(FINEST_GRID, WHOLE_WINDOW), reference
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0])
@pytest.mark.parametrize("window", [WHOLE_WINDOW, Window(-0.3, 0.1, -0.2)])
def test_a_wild_record_moves_the_sums_no_further_than_declared(bad, window):
    X, y = records(300)
    before = moments(X, y).gram(FINEST_GRID, window)
    X[7], y[7] = bad, bad
    moved = np.abs(moments(X, y).gram(FINEST_GRID, window) - before) / FINEST_GRID**2
    block = whole_block(DESIGN)
    assert moved[block.rows, block.columns].sum() <= float(block.l1_sensitivity)
    assert np.all(moved[block.rows, block.columns] <= block.entry_sensitivities)


def test_sums_of_columns_and_target_are_those_of_the_gram_matrix():
    X, y = records()
    gram = moments(X, y).gram(FINEST_GRID, WHOLE_WINDOW)
    assert moments(X, y).location_sums(FINEST_GRID)[1].tolist() == gram[0, 1:].tolist()
    some = np.flatnonzero(np.random.default_rng(3).random(len(y)) < 0.3)
    rows, part = moments(X, y).about(some).location_sums(FINEST_GRID)
    assert rows == len(some)
    assert (
        part.tolist() == moments(X[some], y[some]).gram(FINEST_GRID, WHOLE_WINDOW)[0, 1:].tolist()
    )


def test_distances_count_every_record_once_at_its_distance():
    X, y = records(300)
    centres = np.array([0.3, -0.5, 0.0, 0.9])
    counts = moments(X, y).distance_counts(centres)
    x = np.clip((X - [1.5, 0.5, 20]) / [3.5, 0.5, 10], -1, 1)
    away = np.abs(np.column_stack([x, np.clip(y / 2, -1, 1)]) - centres)
    for column, distances in enumerate(away.T):
        assert counts[column].sum() == 300
        beyond = [(distances > r).sum() for r in RADII[1:]]
        assert np.cumsum(counts[column])[:-1].tolist() == beyond
    farthest = np.abs(x).max(axis=1)
    beyond = [(farthest > r).sum() for r in RADII[1:]]
    assert np.cumsum(moments(X, y).largest_counts())[:-1].tolist() == beyond


def test_windows_clip_columns_further_and_missing_numbers_are_the_middle():
    X, y = records(200)
    X[3, 0] = np.nan
    windows = Windows(np.array([0.4, 0.0, -0.2]), np.array([0.5, 1.0, 0.25]))
    x = np.clip((X - [1.5, 0.5, 20]) / [3.5, 0.5, 10], -1, 1)
    x[3, 0] = 0.0
    mapped = np.rint(FINEST_GRID * np.clip((x - windows.centres) / windows.halves, -1, 1))
    gram = moments(X, y).gram(FINEST_GRID, WHOLE_WINDOW, windows)
    assert np.abs(gram[1:-1, 1:-1] - mapped.T @ mapped).max() <= 200 * 2 * FINEST_GRID
    assert np.allclose(windows.clip(x.copy()), np.clip(x, [-0.1, -1, -0.45], [0.9, 1.0, 0.05]))


def test_a_map_to_windows_is_undone():
    windows = Windows(np.array([0.4, 0.0]), np.array([0.5, 1.0]))
    w, x = np.array([0.1, 0.2, -0.3]), np.array([0.6, -0.7])
    inside = w[0] + w[1:] @ ((x - windows.centres) / windows.halves)
    back = windows.to_bounds() @ w
    assert inside == pytest.approx(back[0] + back[1:] @ x)


def test_the_window_clips_and_recentres():
    window = Window(-0.5, 0.25, -0.25)
    assert window.half == 0.5
    assert window.map(np.array([-9, -0.5, -0.25, 0.25, 9])).tolist() == [-0.5, -0.5, 0, 1, 1]


def test_without_noise_nothing_is_rounded():
    X, y = records(50)
    z = np.column_stack(
        [np.ones(50), np.clip((X - [1.5, 0.5, 20]) / [3.5, 0.5, 10], -1, 1), np.clip(y / 2, -1, 1)]
    )
    released = moments(X, y).without_noise()
    assert np.allclose(released.gram, z.T @ z, rtol=1e-13)
    assert not released.variance.any()


def test_sums_that_could_overflow_are_refused_before_they_are_made():
    many = moments(np.broadcast_to(0.0, (2**33, 3)), np.broadcast_to(0.0, 2**33))
    with pytest.raises(ValueError, match="too many"):
        many.gram(FINEST_GRID, WHOLE_WINDOW)
    assert largest_grid(2**40, 1.0) ** 2 * 2**40 < 2**63
    with pytest.raises(ValueError, match="larger epsilon"):
        largest_grid(10, 1e16)


def test_only_whole_records_are_protected():
    X, y = records(5)
    assert moments(X, y).sensitivity(RECORD) == (5**2 + 4) / 2
    with pytest.raises(ValueError, match="whole records"):
        moments(X, y).sensitivity(FEATURE)


def test_categories_of_a_data_frame():
    import pandas as pd

    design = Design((Categories(["a", "b", "c"]), Interval(0, 1)))
    X = pd.DataFrame({"job": ["a", "c", "?", None], "part": [0, 1, np.nan, 0.5]})
    gram = moments(X, np.zeros(4), design).gram(1, WHOLE_WINDOW)
    assert gram[0].tolist() == [4, 3, 0, 1, 0, 0]


def model(design=DESIGN, noise=0.04):
    roots = np.random.default_rng(3).normal(size=(design.width + 1, 3)) * 0.1
    both = np.column_stack([[0.1, 0.3, -0.2, 0.1], roots])
    return Predictive(both, noise, 3.0, Windows.whole(design.width))


def test_residuals_are_those_of_a_model_that_is_constant_outside_of_its_windows():
    X, y = records(400)
    windows = Windows(np.array([0.4, 0.0, -0.2]), np.array([0.5, 1.0, 0.25]))
    x = np.clip((X - [1.5, 0.5, 20]) / [3.5, 0.5, 10], -1, 1)
    inside = windows.clip(x) * [3.5, 0.5, 10] + [1.5, 0.5, 20]
    narrow = model()._replace(windows=windows)
    ours, _ = moments(X, y).squared_residuals(narrow, FINEST_GRID)
    theirs, _ = moments(inside, y).squared_residuals(model(), FINEST_GRID)
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert ours != moments(X, y).squared_residuals(model(), FINEST_GRID)[0]


def test_squared_residuals_are_standardised_and_clipped():
    X, y = records(400)
    x = np.clip((X - [1.5, 0.5, 20]) / [3.5, 0.5, 10], -1, 1)
    products = np.column_stack([np.ones(400), x]) @ model().coefficients
    std = np.sqrt(0.04 + (products[:, 1:] ** 2).sum(axis=1))
    share = np.minimum(np.abs(np.clip(y / 2, -1, 1) - products[:, 0]) / (3 * std), 1)
    total, rows = moments(X, y).squared_residuals(model(), FINEST_GRID)
    assert rows == 400
    assert total / FINEST_GRID**2 == pytest.approx((share**2).sum(), rel=1e-3)
    part, rows = moments(X, y).about(np.arange(5, 139)).squared_residuals(model(), FINEST_GRID)
    assert rows == 134
    assert part / FINEST_GRID**2 == pytest.approx((share[5:139] ** 2).sum(), rel=1e-3)


@pytest.mark.parametrize("width", [1, 100, 4095, 4097, 20_000])
def test_products_with_coefficients_are_exact(width):
    steps = rounded(np.full((width, 2), 1e9), FINEST_GRID)
    assert FINEST_GRID * steps.sum(axis=0).max() <= 2**53
    if width < 4096:
        assert (steps == 64 * 2**20).all()


def test_squared_residuals_do_not_depend_on_order_or_chunks(monkeypatch):
    X, y = records()
    reference = moments(X, y).squared_residuals(model(), FINEST_GRID)
    order = np.random.default_rng(1).permutation(len(y))
    for cells in (3, 100, 1000, 10**9):
        monkeypatch.setattr(design_module, "_CHUNK_CELLS", cells)
        assert moments(X[order], y[order]).squared_residuals(model(), FINEST_GRID) == reference


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0])
def test_one_record_moves_the_squared_residuals_by_one_at_most(bad):
    X, y = records(300)
    before, _ = moments(X, y).squared_residuals(model(noise=1e-9), FINEST_GRID)
    X[5], y[5] = bad, bad
    after, _ = moments(X, y).squared_residuals(model(noise=1e-9), FINEST_GRID)
    assert abs(after - before) <= FINEST_GRID**2


def test_weighted_residuals_are_products_with_coordinates_in_their_windows(monkeypatch):
    X, y = records(400)
    windows = Windows(np.array([0.4, 0.0, -0.2]), np.array([0.5, 1.0, 0.25]))
    narrow = model()._replace(windows=windows)
    sums = moments(X, y).weighted_residuals(narrow, FINEST_GRID)
    assert sums[0] == moments(X, y).squared_residuals(narrow, FINEST_GRID)[0]
    x = windows.clip(np.clip((X - [1.5, 0.5, 20]) / [3.5, 0.5, 10], -1, 1))
    products = np.column_stack([np.ones(400), x]) @ narrow.coefficients
    std = np.sqrt(0.04 + (products[:, 1:] ** 2).sum(axis=1))
    share = np.minimum(np.abs(np.clip(y / 2, -1, 1) - products[:, 0]) / (3 * std), 1)
    inside = (x - windows.centres) / windows.halves
    assert sums[1:] / FINEST_GRID**2 == pytest.approx(share**2 @ inside**2, rel=1e-3)
    order = np.random.default_rng(1).permutation(len(y))
    monkeypatch.setattr(design_module, "_CHUNK_CELLS", 50)
    assert (moments(X[order], y[order]).weighted_residuals(narrow, FINEST_GRID) == sums).all()


MIXED = Design((Interval(-1, 1), Categories([*"ab"]), Categories([*"pqr"]), Categories([*"uvw"])))


@pytest.mark.parametrize("domains", [MIXED.domains, MIXED.domains[:2], MIXED.domains[:3]])
def test_the_sensitivity_of_weighted_residuals_is_what_a_record_can_change(domains):
    """All pairs of records at the ends of their domains: never more, for some nearly as much."""
    design, grid = Design(domains), 2**10
    signs = np.where(design.signs, 0.9, 0.0)
    far = Predictive(np.zeros((design.width + 1, 1)), 1.0, 1.0, Windows(signs, 1 + signs))
    values = [[-1.0, 0.0, 1.0], [*"ab"], [*"pqr"], [*"uvw"]][: len(domains)]
    alone = []
    for *row, y in product(*values, [0.0, 1.0, 2.0]):  # the target's scale is 2
        X = pd.DataFrame([row], columns=[*"abcd"][: len(row)])
        alone.append(moments(X, np.array([y]), design).weighted_residuals(far, grid) / grid**2)
    block, sums = weighted_block(design), np.array(alone)
    changes = np.abs(sums[:, None] - sums)
    assert changes.max() == 1 == block.entry_sensitivities.max()
    assert 0 <= block.l1_sensitivity - changes.sum(axis=2).max() < 0.02
    assert sums.sum(axis=1).max() == pytest.approx(float(block.l1_of_one_record), abs=0.02)
    assert sums.sum(axis=1).max() <= block.l1_of_one_record
