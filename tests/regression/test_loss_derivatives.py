"""Derivatives of a robust loss: right, exact, and the same in whatever order records come."""

from __future__ import annotations

import numpy as np
import pytest
from dpbayes_sklearn.regression.record_sums import COEFFICIENT_LATTICE, on_lattice, rounding
from numpy.testing import assert_array_equal

from dpbayes_sklearn.convex.design import Design, Scale, Window, Windows
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.regression import record_sums as module
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.schema import Categories, Interval

GRID, LIMIT = 2**15, 2**14
DESIGN = Design((Interval(-1, 1), Interval(-1, 1), Categories([*"xyz"])))
WINDOW = Window(-0.8, 0.6, -0.1)
WINDOWS = Windows(np.array([0.1, 0, 0, 0, 0]), np.array([0.7, 1, 1, 1, 1]))


def records(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, :2], X[:, 2] = rng.uniform(-1.2, 1.2, (n, 2)), rng.choice(list("xyz"), n)
    return X, rng.uniform(-1.2, 1.2, n)


def moments(*shards):
    return Moments(DESIGN, Scale(0.0, 1.0), LocalRecords([(Table(X), y) for X, y in shards]))


def coefficients(seed=0, size=1.0):
    return on_lattice(np.random.default_rng(seed).normal(scale=size, size=6))


@pytest.mark.parametrize("size", [0.0, 0.3, 100.0])
def test_gradients_and_second_derivatives(size):
    X, y = records()
    w = coefficients(size=size)
    found = moments((X, y)).loss_derivatives(GRID, WINDOW, WINDOWS, w, LIMIT)
    x = np.concatenate([c.copy() for _, c in DESIGN.chunks(Table(X), GRID, WINDOWS)])
    z = np.column_stack([np.full(len(x), GRID), x]).astype(np.longdouble) / GRID
    t = np.rint(GRID * WINDOW.map(np.clip(y, -1, 1))).astype(np.longdouble) / GRID
    residual = t - z @ w.astype(np.longdouble)
    error = np.abs(found.negative_gradient - np.clip(residual, -0.5, 0.5) @ z)
    assert error.max() <= len(y) * rounding(GRID)
    inside = z * (np.abs(residual) < 0.5)[:, None]
    np.testing.assert_allclose(found.curvature, (inside.T @ inside).astype(float), rtol=1e-12)
    assert found.rows == len(y)
    assert np.abs(np.clip(residual, -0.5, 0.5)).max() == 0.5  # some residuals are beyond the limit


def test_order_shards_and_chunks_change_no_bit(monkeypatch):
    X, y = records()
    order = np.random.default_rng(1).permutation(len(y))
    w = coefficients(2)
    whole = moments((X, y)).loss_derivatives(GRID, WINDOW, WINDOWS, w, LIMIT)
    monkeypatch.setattr(module, "_ROWS_AT_A_TIME", 7)
    shards = [(X[part], y[part]) for part in np.array_split(order, 3)]
    for one, other in zip(
        whole, moments(*shards).loss_derivatives(GRID, WINDOW, WINDOWS, w, LIMIT), strict=True
    ):
        assert_array_equal(one, other)


@pytest.mark.parametrize("size", [0.1, 1.0, 1e9])
def test_no_record_changes_the_gradient_by_more_than_the_limit(size):
    X, y = records(40)
    for trial in range(30):
        w = coefficients(trial, size)
        one = moments((X, y)).loss_derivatives(GRID, WINDOW, WINDOWS, w, LIMIT).negative_gradient
        other = (
            moments((X[1:], y[1:]))
            .loss_derivatives(GRID, WINDOW, WINDOWS, w, LIMIT)
            .negative_gradient
        )
        assert np.abs(one - other).max() <= 0.5 + 1e-12


def test_the_lattice():
    w = on_lattice(np.array([0.1, -1e9, 1e9, 3.0]))
    assert_array_equal(w / COEFFICIENT_LATTICE, np.rint(w / COEFFICIENT_LATTICE))
    assert np.abs(w).max() == 256
    assert np.abs(on_lattice(np.full(4096, 1e9))).sum() <= 2**16
