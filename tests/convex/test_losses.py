"""Huber's loss of records: gradients that are right, exact, and bounded record by record."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dpbayes_sklearn.convex import losses as module
from dpbayes_sklearn.convex import record_sums
from dpbayes_sklearn.convex.design import Design, Windows
from dpbayes_sklearn.convex.hull import record_squares
from dpbayes_sklearn.convex.losses import (
    FARTHEST,
    LATTICE,
    HuberLoss,
    InWindows,
    Turned,
    on_lattice,
)
from dpbayes_sklearn.convex.record_sums import STEPS, Coordinates, Target
from tests.linear_records import LEVELS, NUMBER, linear_records

DESIGN = Design((NUMBER, NUMBER, LEVELS))
WINDOWS = Windows(np.array([0.1, 0, 0, 0, 0]), np.array([0.7, 1, 1, 1, 1]))
MATRIX = np.random.default_rng(5).normal(size=(4, 6))
TURNED = Turned(Coordinates.of(MATRIX), Target(0.1, 0.3), 2.1, 1.5, 1.7)
IN_WINDOWS = InWindows(WINDOWS, Target(-0.1, 0.4), 1.3, record_squares(DESIGN))
each_way = pytest.mark.parametrize(("rows", "p"), [(TURNED, 4), (IN_WINDOWS, 6)])


def records(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, :2], X[:, 2] = rng.uniform(-1.2, 1.2, (n, 2)), rng.choice(list("xyz"), n)
    return X, rng.uniform(-1.2, 1.2, n)


def loss(X, y, rows, p):
    return HuberLoss(linear_records(X, y, DESIGN), rows, p)


def parameters(p, seed=0, size=1.0):
    return on_lattice(np.random.default_rng(seed).normal(scale=size, size=p))


def seen(of):
    """Records, targets and limits as a loss sees them."""
    found = []
    of.records.total(lambda s: found.extend(of.rows.chunks(s, *of.records.structure)) or 0)
    v, t, limits = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    return v * of.rows.unit, t, limits


@each_way
@pytest.mark.parametrize("size", [0.0, 0.3, 100.0])
def test_gradients_and_second_derivatives_equal_plain_sums(rows, p, size):
    of, w = loss(*records(), rows, p), parameters(p, size=size)
    v, t, limits = (each.astype(np.longdouble) for each in seen(of))
    r = t - w.astype(np.longdouble) @ v
    psi = np.clip(r, -limits, limits)
    error = np.linalg.norm((of.gradient(w) + v @ psi).astype(float))
    assert error <= 500 * of.rows.shape(500).rounding
    inside = (v * (np.abs(r) < limits)).astype(float)
    assert_allclose(of.curvature(w), inside @ inside.T, rtol=1e-9, atol=1e-9)
    assert_allclose(of.products(), (v @ v.T).astype(float), rtol=1e-12)
    assert (np.abs(r) > limits).any() or size == 0


@each_way
def test_order_and_chunks_change_no_bit(rows, p, monkeypatch):
    X, y = records()
    order, w = np.random.default_rng(1).permutation(len(y)), parameters(p, 2)

    def everything(X, y):
        of = loss(X, y, rows, p)
        edges = np.array([0.1, 0.5, 1.0])
        return [
            of.gradient(w), of.products(), of.count_residuals(w, edges), of.sum_residuals(w, 0.7)
        ]  # fmt: skip

    whole = everything(X, y)
    monkeypatch.setattr(record_sums, "_ROWS", 7)
    monkeypatch.setattr("dpbayes_sklearn.convex.design._CHUNK_CELLS", 40)
    for one, other in zip(whole, everything(X[order], y[order]), strict=True):
        assert_array_equal(one, other)


@each_way
def test_weights_lead_beyond_64_bits(rows, p):
    """A wrapped gradient would be that of another loss, for which nothing is proven."""
    X, y = records(60)
    of, w = loss(X, y, rows, p), parameters(p)
    heavy = of.records.records.weighted(np.full(60, 2**40))
    assert 2.0**40 * 60 * 2**31 > 2**64
    weighted = replace(of, records=replace(of.records, records=heavy))
    assert_array_equal(weighted.gradient(w), 2.0**40 * of.gradient(w))


anything = st.floats(allow_nan=True)


@settings(max_examples=150)
@given(x=st.tuples(anything, anything, st.sampled_from("xyz?")), y=st.floats(allow_nan=False),
       log_size=st.integers(-12, 12), seed=st.integers(0, 99))  # fmt: skip
def test_no_gradient_is_longer_than_its_bound(x, y, log_size, seed):
    X = np.array([x], object)
    w = parameters(4, seed, 10.0**log_size)
    matrix = Coordinates.of(
        np.random.default_rng(seed).normal(size=(4, 6)) * 10.0 ** (log_size / 4)
    )
    rows = TURNED._replace(coordinates=matrix)
    of = loss(X, [y], rows, 4)
    slack = rows.shape(1).rounding
    assert np.linalg.norm(of.gradient(w)) <= rows.limit * rows.radius + slack
    v, _, limits = seen(of)
    whole = np.rint(v[:, 0] / rows.unit).astype(int).tolist()
    assert sum(k**2 for k in whole) <= STEPS**2  # in whole numbers: exactly
    assert limits[0] * np.linalg.norm(v) <= rows.limit * rows.radius
    gradient = loss(X, [y], IN_WINDOWS, 6).gradient(parameters(6, seed, 10.0**log_size))
    each = [gradient[:1], gradient[1:2], gradient[2:3], gradient[3:]]
    assert max(np.abs(part).sum() for part in each) <= IN_WINDOWS.limit * (1 + 1e-9)


def test_a_length_that_is_not_kept_is_seen(monkeypatch):
    X, y = np.array([[1.0, -1.0, "x"]], object), [1.0]
    monkeypatch.setattr(module, "shrinking", lambda length, limit: np.ones_like(length))
    v, _, _ = seen(loss(X, y, TURNED._replace(length=0.1), 4))
    assert np.linalg.norm(v) > 0.1


@each_way
def test_a_record_without_a_target_is_not_there(rows, p):
    X, y = records()
    y[::5] = np.nan
    kept, w = ~np.isnan(y), parameters(p)
    assert_array_equal(loss(X, y, rows, p).gradient(w), loss(X[kept], y[kept], rows, p).gradient(w))


def test_residuals_are_counted_and_cut():
    of, w = loss(*records(), IN_WINDOWS, 6), parameters(6)
    v, t, _ = seen(of)
    r, edges = t - w @ v, np.array([0.1, 0.5, 1.0])
    bins = [0, *edges, np.inf]
    up = [((low <= r) & (r < high)).sum() for low, high in pairwise(bins)]
    down = [((low <= -r) & (-r < high) & (r < 0)).sum() for low, high in pairwise(bins)]
    assert of.count_residuals(w, edges).tolist() == [up, down]
    total = of.sum_residuals(w, 0.5)[0]
    assert abs(total - (np.clip(r, -0.5, 0.5) * STEPS / 0.5).sum()) <= len(r)
    (one,) = loss(*(each[:1] for each in records()), IN_WINDOWS, 6).sum_residuals(w, 1e-6)
    assert abs(int(one)) <= STEPS


def test_the_lattice_and_its_reach():
    w = on_lattice(np.array([0.1, -1e9, 1e9, 3.0]))
    assert_array_equal(w / LATTICE, np.rint(w / LATTICE))
    assert np.linalg.norm(w) <= FARTHEST
    assert np.linalg.norm(on_lattice(np.full(4096, 1e9))) <= FARTHEST * (1 + 1e-12)


def test_a_search_may_start_with_some_of_very_many_records():
    of = loss(*records(), TURNED, 4)
    assert of.some(500) is of
    assert of.some(10).n == 10
