"""Predictions from clipped numbers are those of the posterior, whatever the units."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from dpbayes_sklearn.convex import posterior as predict
from dpbayes_sklearn.convex.design import Design, Scale, Windows
from dpbayes_sklearn.convex.posterior import (
    ClippedNumbers,
    GaussianPosterior,
    LinearModel,
    means,
    means_and_deviations,
    means_by_row,
)
from dpbayes_sklearn.convex.slopes import Slopes
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema import Categories, Interval

RNG = np.random.default_rng(0)
BOUNDS = {
    "alike": [(-1, 1)] * 4,
    "different": [(0, 10), (-3, 5), (2000, 2030), (1e-3, 2e-3)],
    "far from zero": [(1e9, 1e9 + 1)] * 4,
    "huge": [(-1e60, 1e60), (0, 1e-60), (-1, 1), (0, 1)],
    "beyond squares": [(-1e300, 1e300), (0, 1e-200), (-1, 1), (0, 1)],
}


def model(bounds, spread=1e-3, narrow=True, intercept=True) -> LinearModel:
    domains = tuple(Interval(low, high) for low, high in bounds)
    width = len(domains)
    root = RNG.normal(size=(width + 1, width + 1))
    windows = Windows.whole(width)
    if narrow:
        windows = Windows(RNG.uniform(-0.3, 0.3, width), RNG.uniform(0.3, 1.2, width))
    covariance, w = spread * root @ root.T, RNG.normal(size=width + 1)
    design = Design(domains, intercept)
    slopes = Slopes.of(w, covariance, design)
    posterior = GaussianPosterior(w, covariance, 0.04, slopes, windows, n=None)
    return LinearModel(design, Scale(3.0, 7.0), posterior)


def rows(bounds, n=500) -> np.ndarray:
    low, high = np.array(bounds, dtype=float).T
    X = low + (high - low) * RNG.uniform(-0.2, 1.2, (n, len(low)))
    X[3, 1], X[5, 2], X[6, 0] = np.nan, np.inf, -np.inf
    return X


def expected(given: LinearModel, X) -> np.ndarray:
    """Return means and deviations by the posterior's own formula."""
    x = np.concatenate([chunk.copy() for _, chunk in given.design.chunks(Table(X))])
    mean, variance = given.posterior.predictive(x)
    return np.column_stack(
        [given.scale.centre + given.scale.half * mean, given.scale.half * np.sqrt(variance)]
    )


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_predictions_are_those_of_the_posterior(bounds, narrow, intercept, monkeypatch):
    given, X = model(bounds, narrow=narrow, intercept=intercept), rows(bounds)
    both = expected(given, X)
    for cells in (1 << 18, 4 * 37):
        monkeypatch.setattr(predict, "_CHUNK_CELLS", cells)
        assert_allclose(means(given, Table(X)), both[:, 0], rtol=0, atol=1e-7)
        assert_allclose(means_by_row(given, Table(X)), both[:, 0], rtol=0, atol=1e-9)
        assert_allclose(means_and_deviations(given, Table(X)), both, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("layout", [np.asfortranarray, np.float32, np.int64, pd.DataFrame])
def test_every_layout_is_read(layout):
    given = model([(-10, 10)] * 4)
    X = layout(RNG.integers(-12, 13, (200, 4)).astype(float))
    both = expected(given, X)
    assert_allclose(means(given, Table(X)), both[:, 0], rtol=1e-9)
    assert_allclose(means_and_deviations(given, Table(X)), both, rtol=1e-5)


def test_no_rows_and_one_row():
    given, X = model(BOUNDS["alike"]), rows(BOUNDS["alike"])
    assert means(given, Table(X[:0])).shape == (0,)
    assert means_and_deviations(given, Table(X[:0])).shape == (0, 2)
    assert_allclose(means_and_deviations(given, Table(X[:1])), expected(given, X[:1]), rtol=1e-5)


def test_single_precision_only_where_it_changes_nothing():
    """Doubles are used if coefficients are far less certain than the target is noisy."""
    for spread, dtype, error in ((1e-3, np.float32, 1e-6), (1e6, np.float64, 1e-12)):
        given, X = model(BOUNDS["alike"], spread), rows(BOUNDS["alike"])
        table = Table(X)
        found = predict._Variance(given, predict._rows(given, table))
        assert found._space.dtype == dtype
        deviations = means_and_deviations(given, table)[:, 1]
        assert_allclose(deviations, expected(given, X)[:, 1], rtol=error)


def test_the_bound_on_the_error_holds():
    root = RNG.normal(size=(50, 50))
    covariance, reach = root @ root.T, RNG.uniform(0.5, 2, 50)
    x = reach * RNG.uniform(-1, 1, (2000, 50))
    single = x.astype(np.float32)
    exact = np.einsum("ij,ij->i", x @ covariance, x)
    found = np.einsum("ij,ij->i", single @ covariance.astype(np.float32), single)
    bound = predict._single_error(covariance, reach)
    assert np.abs(found - exact).max() <= bound
    assert np.abs(found - exact).max() >= 1e-4 * bound


def test_numbers_in_their_own_units_only_where_no_digits_are_lost():
    table, whole = Table(np.zeros((3, 4))), Windows.whole(4)
    for name, bounds in BOUNDS.items():
        design = Design(tuple(Interval(*each) for each in bounds))
        found = ClippedNumbers.of(design, whole, table)
        assert (found is None) == (name in {"far from zero", "beyond squares"})
    mixed = Design((*(Interval(0, 1),) * 3, Categories([*"ab"])))
    assert ClippedNumbers.of(mixed, whole, table) is None
    texts = Table(np.full((3, 4), "x", dtype=object))
    assert ClippedNumbers.of(Design((Interval(0, 1),) * 4), whole, texts) is None
