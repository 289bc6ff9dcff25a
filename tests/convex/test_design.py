import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpbayes_sklearn.convex.design import Design, Scale, Windows
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema import Categories, Interval

MIXED = Design((Interval(0, 10), Categories([*"ab"]), Categories([*"xyz"]), Interval(-1, 3)))


def coordinates(design, X):
    return np.concatenate([chunk.copy() for _, chunk in design.chunks(Table(X))])


def test_each_kind_of_column_has_its_coordinates():
    assert MIXED.width == 6
    assert MIXED.numbers.tolist() == [True, False, False, False, False, True]
    assert MIXED.signs.tolist() == [False, True, False, False, False, False]
    assert MIXED.column.tolist() == [0, 1, 2, 2, 2, 3]


def test_without_an_intercept_two_categories_are_two_levels():
    design = Design((Categories([*"ab"]),), intercept=False)
    x = coordinates(design, np.array([["a"], ["b"]], dtype=object))
    assert x.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_arrays_and_frames_give_the_same(frame):
    X = frame(np.array([[0.0, 4.0], [5.0, -9.0], [99.0, 1.0]]))
    x = coordinates(Design((Interval(0, 10), Interval(-2, 2))), X)
    assert x.tolist() == [[-1, 1], [0, -1], [1, 0.5]]


def test_every_value_has_a_place():
    values = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, "text", None]
    X = np.array([[v] for v in values], dtype=object)
    x = coordinates(Design((Interval(-1, 1),)), X).ravel()
    assert x.tolist() == [0, 1, -1, 1, -1, 5e-324, 0, 0, 0]
    numbers = X[:7].astype(float)
    assert coordinates(Design((Interval(-1, 1),)), numbers).ravel().tolist() == x[:7].tolist()


def test_a_missing_number_has_its_place():
    X = np.array([[np.nan], [10.0]])
    assert coordinates(Design((Interval(0, 10, missing=2.5),)), X).tolist() == [[-0.5], [1]]
    marked = Design((Interval(0, 10, missing="indicator"), Interval(0, 1)))
    x = coordinates(marked, np.array([[np.nan, 1.0], [10.0, 0.0]]))
    assert x.tolist() == [[0, 1, 1], [1, -1, -1]]
    assert [feature.column for feature in marked.features] == [0, 0, 1]
    assert marked.signs.tolist() == [False, True, False]


def test_windows_map_numbers_and_signs_and_leave_levels():
    design = Design((Interval(-1, 1), Categories([*"ab"]), Categories([*"xyz"])))
    windows = Windows(np.array([0.5, 0, 0, 0, 0]), np.array([0.25, 1, 1, 1, 1]))
    X = Table(np.array([[0.625, "a", "y"], [9.0, "b", "z"]], dtype=object))
    ((_, x),) = design.chunks(X, windows=windows)
    assert x.tolist() == [[0.5, -1, 0, 1, 0], [1, 1, 0, 0, 1]]


def test_a_missing_number_is_mapped_with_its_window():
    windows = Windows(np.array([0.5]), np.array([0.25]))
    X = Table(np.array([[np.nan], [8.0]]))
    for missing, place in ((7.0, -0.4), ("middle", -1.0), (10.0, 1.0)):
        design = Design((Interval(0, 10, missing=missing),))
        ((_, x),) = design.chunks(X, windows=windows)
        assert np.allclose(x.ravel(), [place, 0.4])


def test_coordinates_stay_in_the_unit_cube():
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((1000, 5)) * 1e200
    x = coordinates(Design((Interval(3, 4),) * 5), X)
    assert np.abs(x).max() <= 1


def test_chunks_cover_all_rows_in_order():
    X = np.arange(70_000.0)[:, None] % 977
    x = coordinates(Design((Interval(0, 976),)), X)
    assert np.allclose(x, X / 488 - 1)


def test_slopes_in_units_of_columns_describe_the_same_function():
    rng = np.random.default_rng(1)
    w = rng.normal(size=MIXED.width + 1)
    X = np.array([[3.0, "b", "y", 2.0], [10.0, "a", "z", -1.0]], dtype=object)
    by_coordinates = coordinates(MIXED, X) @ w[1:] + w[0]
    slopes, constant = MIXED.in_units_of_columns(w)
    one_hot = np.array([[3.0, 0, 1, 0, 1, 0, 2.0], [10.0, 1, 0, 0, 0, 1, -1.0]])
    assert np.allclose(one_hot @ slopes + constant, by_coordinates)


def test_scale_moves_the_middle_only_with_an_intercept():
    assert Scale.of(Interval(2, 6), intercept=True) == (4, 2)
    assert Scale.of(Interval(2, 6), intercept=False) == (0, 6)


def test_a_map_to_windows_is_undone():
    windows = Windows(np.array([0.4, 0.0]), np.array([0.5, 1.0]))
    w, x = np.array([0.1, 0.2, -0.3]), np.array([0.6, -0.7])
    inside = w[0] + w[1:] @ ((x - windows.centres) / windows.halves)
    back = windows.to_bounds() @ w
    assert inside == pytest.approx(back[0] + back[1:] @ x)
