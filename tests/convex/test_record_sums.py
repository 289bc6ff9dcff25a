"""Sums in turned coordinates: exact, and no record changes one by more than its limit."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn.convex import record_sums as module
from dpbayes_sklearn.convex.coordinates import first_map, n_coordinates
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.losses import on_lattice
from dpbayes_sklearn.convex.record_sums import (
    BINS,
    GRID,
    STEPS,
    Coordinates,
    Histograms,
    ProductSum,
    Residuals,
    Target,
    VectorSum,
    count_evenly,
    count_tails,
    shrinking,
    sum_products,
    sum_scores,
)
from dpbayes_sklearn.convex.tails import EDGES
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval
from tests.linear_records import DESIGNS, LEVELS, NUMBER, SIGN, linear_records

ADDED = PrivacyUnit("record", neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=3)
UNITS = [RECORD, ADDED, PERSON]
MIXED = Design((NUMBER, NUMBER, SIGN, LEVELS))
WILD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 1.0, -1.0, 0.3]


def asked(ask, X, y, design=MIXED, **public):
    records = linear_records(X, y, design)
    return records.total(partial(ask, design=design, scale=records.scale, **public))


def residuals(design=MIXED, seed=0, size=1.0):
    rng, p = np.random.default_rng(seed), n_coordinates(design)
    matrix = rng.normal(size=(p, design.width + 1)) * size
    return Residuals.of(matrix, on_lattice(rng.normal(size=p)), Target(0.1, 0.05 + rng.random()))


def upper(v):
    return np.outer(v, v)[np.triu_indices(len(v))]


record = st.tuples(
    st.floats(allow_nan=True), st.floats(allow_nan=True), st.sampled_from("ab?"),
    st.sampled_from("xyz?"), st.floats(allow_nan=True),
)  # fmt: skip


@settings(max_examples=150)
@given(record=record, seed=st.integers(0, 999), log_size=st.integers(-9, 9),
       limit=st.sampled_from([2.0**-4, 0.37, 1.0, 91.0, 2.0**14]))  # fmt: skip
def test_no_record_adds_more_than_its_limit_in_whole_numbers(record, seed, log_size, limit):
    left = residuals(seed=seed, size=10.0**log_size)
    X, y = np.array([record[:-1]], object), [record[-1]]
    score = asked(sum_scores, X, y, residuals=left, limit=limit)
    assert sum(int(v) ** 2 for v in score) <= STEPS**2
    for weighted in (False, True):
        sums = asked(sum_products, X, y, residuals=left, limit=limit, weighted=weighted)
        p = len(score)
        trace = sum(int(sums[i * p - i * (i - 1) // 2]) for i in range(p))
        assert 0 <= trace <= STEPS**2
    if not np.isnan(record[-1]):
        sums = asked(sum_products, X, y, residuals=left, limit=limit, weighted=True)
        assert sums.tolist() == upper(score).tolist()  # the same vector
    bins = asked(count_tails, X, y, residuals=left, edges=EDGES)
    present = 0 if np.isnan(record[-1]) else 1
    assert [bins[:2].sum(), bins[2].sum()] == [present, present]
    even = asked(count_evenly, X, y)
    assert even.shape == (3, BINS)
    assert even.sum(axis=1).tolist() == [present] * 3


def test_long_records_come_as_near_to_the_limit_as_rounding_lets_them():
    left = residuals()
    X, y = np.array([[1.0, -1.0, "a", "x"]], object), [1.0]
    score = asked(sum_scores, X, y, residuals=left, limit=1e-3).astype(float)
    assert STEPS - 2 * len(score) < np.linalg.norm(score) <= STEPS
    short = asked(sum_scores, X, y, residuals=left, limit=1e3).astype(float)
    assert np.linalg.norm(short) < STEPS / 50


def test_limits_that_are_dropped_are_seen(monkeypatch):
    left, X, y = residuals(), np.array([[1.0, -1.0, "a", "x"]], object), [1.0]
    monkeypatch.setattr(module, "shrinking", lambda length, limit: np.ones_like(length))
    score = asked(sum_scores, X, y, residuals=left, limit=0.1)
    assert sum(int(v) ** 2 for v in score) > STEPS**2


@pytest.mark.parametrize("limit", [1e-6, 1.0, 3.7, 2.0**14])
def test_what_was_shortened_is_never_longer_than_the_limit(limit):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(7, 2000)) * 10.0 ** rng.uniform(-12, 12, 2000)
    z *= shrinking(module.lengths(z), limit)
    z[:, 0] = 0.0
    for column in np.trunc(z * (STEPS / limit)).T[:200]:
        assert sum(int(v) ** 2 for v in column) <= STEPS**2


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_neighbours_of_a_small_world_lose_what_is_claimed_and_nearly_attain_it(design, unit):
    """All pairs of records, for every statistic; with a third of the noise it is exceeded."""
    p, k, share = n_coordinates(design), unit.max_records, Fraction(1, 3)
    left = Residuals.of(first_map(design, np.zeros(0), np.ones(0)), np.zeros(p), Target(0.0, 1.0))
    values = [[-1.0, 0.0, 1.0] if d.is_numeric else list(d.values) for d in design.domains]
    some = [*product(*values, [-1.0, 1.0])]
    numbers, bins = int(design.numbers.sum()), len(EDGES) + 1

    def each(ask, **public):
        return [
            asked(ask, np.array([r[:-1]], object), [r[-1]], design, **public).ravel().astype(int)
            for r in some
        ]

    tails = each(count_tails, residuals=left, edges=EDGES)
    cases = [
        (Histograms(1 + numbers, (BINS,) * (1 + numbers)), each(count_evenly), 1.0),
        (Histograms(1, (bins, bins)), [one[: 2 * bins] for one in tails], 1.0),
        (VectorSum(p), each(sum_scores, residuals=left, limit=0.5), 0.95),
        (ProductSum(p), each(sum_products, residuals=left, limit=0.5), 0.6 if p > 1 else 0.49),
    ]
    for statistic, found, attained in cases:
        law = statistic.law(unit, share)
        others = [np.zeros_like(found[0])] if unit is ADDED else found
        worst = max(float(law.privacy_loss(k * (a - b))) for a in found for b in others)
        assert attained * float(share) * (1 - 1e-6) <= worst <= float(share) * (1 + 1e-9)
        less = statistic.law(unit, 3 * share)
        assert max(float(less.privacy_loss(k * (a - b))) for a in found for b in others) > share


@pytest.mark.parametrize("width", [1, 5, 200])
def test_products_with_a_matrix_are_exact(width):
    rng = np.random.default_rng(0)
    for size in (1e-9, 1.0, 1e9):
        matrix = rng.normal(size=(3, width + 1)) * size
        coordinates = Coordinates.of(matrix)
        assert np.abs(coordinates.matrix - matrix).max() <= coordinates.unit
        x = rng.integers(-GRID, GRID + 1, (5, width)).astype(float)
        x[0] = GRID * np.sign(matrix[0, 1:])
        z = coordinates.of_rows(x)
        whole = [[int(v) for v in (GRID, *row)] for row in x]
        for i, row in enumerate(coordinates.steps.astype(object)):
            for j, values in enumerate(whole):
                exact = sum(int(a) * b for a, b in zip(row, values, strict=True))
                assert abs(exact) <= 2**53
                assert Fraction(z[i, j]) == Fraction(coordinates.unit) * exact / GRID


def test_the_law_of_records_does_not_depend_on_chunks_or_order(monkeypatch):
    rng, n = np.random.default_rng(0), 300
    X = np.empty((n, 4), object)
    X[:, :2], X[:, 2], X[:, 3] = rng.choice(WILD, (n, 2)), rng.choice([*"ab"], n), "y"
    y = rng.choice(WILD, n)
    left, order = residuals(), rng.permutation(n)

    def everything(X, y):
        return [
            asked(count_evenly, X, y),
            asked(count_tails, X, y, residuals=left, edges=EDGES),
            asked(sum_scores, X, y, residuals=left, limit=1.3),
            asked(sum_products, X, y, residuals=left, limit=1.3),
        ]

    whole = everything(X, y)
    alone = [
        sum(parts) for parts in zip(*(everything(X[[i]], y[[i]]) for i in range(n)), strict=True)
    ]
    monkeypatch.setattr(module, "_ROWS", 13)
    for one, other, third in zip(whole, everything(X[order], y[order]), alone, strict=True):
        assert one.tolist() == other.tolist() == third.tolist()


@pytest.mark.parametrize("bounds", [(0.0, 1e-200), (-1e300, 1e300), (1e299, 1e300)])
def test_bounds_of_any_size_are_mapped(bounds):
    design = Design((Interval(*bounds), Categories([*"ab"])))
    X = np.array([[bounds[0], "a"], [bounds[1], "b"], [np.inf, "?"]], object)
    left = residuals(design)
    assert np.isfinite(
        asked(sum_scores, X, [0.0, 1.0, -1.0], design, residuals=left, limit=1.0)
    ).all()
    assert asked(count_evenly, X, [0.0, 1.0, -1.0], design).sum(axis=1).tolist() == [3, 3]
