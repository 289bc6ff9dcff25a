"""Sums over labelled records: exact, the same in any order, moved by no more than is claimed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.logistic import record_sums as module
from dpbayes_sklearn.logistic.blocks import WEIGHT_STEPS, Blocks, even_nodes
from dpbayes_sklearn.logistic.record_sums import (
    LabelledRecords,
    check_classes,
    on_lattice,
    residual_error,
)
from dpbayes_sklearn.schema import Categories, Interval

BLOCKS = Blocks((Interval(0, 1), Categories(range(3)), Interval(0, 1, missing="indicator")))
CLASSES = Categories([0, 1])


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(n), rng.integers(0, 3, n), rng.random(n)])
    X[::7, 2] = np.nan
    return X, rng.integers(0, 2, n)


def mapped(X, y, blocks=BLOCKS, cuts=()):
    parts = zip(np.split(X, cuts), np.split(y, cuts), strict=True)
    records = LocalRecords([(Table(a), b) for a, b in parts])
    read = LabelledRecords(blocks, CLASSES, records).read()
    return read, read.mapped(even_nodes(len(blocks.numbers)))


def dense(X):
    tables = BLOCKS.tables(even_nodes(2))
    return BLOCKS.weights(BLOCKS.encode(Table(X)), tables) / WEIGHT_STEPS


def test_gradient_and_curvature_are_those_of_the_loss():
    X, y = data(500)
    beta, x = on_lattice(np.random.default_rng(1).normal(size=BLOCKS.width)), dense(X)
    _, queries = mapped(X, y)
    sums, rows = queries.gradient(beta)
    q = 1 / (1 + np.exp(-(x @ beta)))
    assert rows == 500
    assert np.abs(sums - (q - y) @ x).max() < 500 * residual_error(3) + 1e-11
    exact = (x * (q * (1 - q))[:, None]).T @ x
    assert np.abs(queries.curvature(beta) - exact).max() < 1e-10


@pytest.mark.parametrize("kept", [True, False])
def test_sums_do_not_depend_on_order_chunks_or_where_codes_are(kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(module, "_KEPT_CELLS", 0)
    X, y = data(5000)
    order = np.random.default_rng(2).permutation(5000)
    beta = on_lattice(np.random.default_rng(1).normal(size=BLOCKS.width))
    first, queries = mapped(X, y)
    same, shuffled = mapped(X[order], y[order], cuts=(17, 4001))
    assert np.array_equal(first.histograms((0, 1, 2)), same.histograms((0, 1, 2)))
    assert np.array_equal(queries.gradient(beta)[0], shuffled.gradient(beta)[0])
    basis, weights = BLOCKS.basis, np.ones(BLOCKS.parameters)
    asked = beta, basis, weights, 1.0, 2**10
    assert np.array_equal(queries.products(*asked), shuffled.products(*asked))


def test_no_record_rounds_another():
    blocks = Blocks((Interval(0, 1),) * 7 + (Categories(range(5)),) * 3)
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.random((1000, 7)), rng.integers(0, 5, (1000, 3))])
    x = blocks.weights(blocks.encode(Table(X)), blocks.tables(even_nodes(7)))
    asked = blocks.basis, np.linspace(0.25, 1, blocks.parameters)
    v, norms = module._contrasts(x, *asked)
    for rows in (slice(1), slice(3, 10), slice(17, 18), slice(1, 1000), slice(5, 7)):
        alone, squares = module._contrasts(np.ascontiguousarray(x[rows]), *asked)
        assert np.array_equal(alone, v[rows])
        assert np.array_equal(squares, norms[rows])
    exact = x @ asked[0] / WEIGHT_STEPS
    assert np.abs(v - exact).max() < 1e-10
    assert np.allclose(norms, np.square(exact) @ asked[1] ** 2)


def test_histograms_count_bins_with_missing_values_last_and_levels():
    X = np.array([[0.0, 0, 0.0], [1.0, 0, np.nan], [0.999, 1, 0.5], [np.nan, 2, 2.0]])
    counts = np.split(mapped(X, np.zeros(4, int))[0].histograms((0, 2, 1)), [16, 33])
    assert np.flatnonzero(counts[0]).tolist() == [0, 8, 15]  # a missing one is in the middle
    assert counts[0][15] == 2
    assert [counts[1][k] for k in (0, 8, 15, 16)] == [1, 1, 1, 1]
    assert counts[2].tolist() == [2, 1, 1]


def test_a_record_moves_gradients_by_one_in_the_norm_of_the_noise():
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(200):
        X, y = data(1, int(rng.integers(10**6)))
        beta = on_lattice(rng.normal(size=BLOCKS.width) * 10 ** rng.uniform(-2, 2))
        moved = mapped(X, y)[1].gradient(beta)[0]
        norms = np.abs(np.add.reduceat(np.abs(moved), [0, *BLOCKS.starts[:-1]]))
        sums = np.add.reduceat(moved, [0, *BLOCKS.starts[:-1]])
        assert np.abs(sums - sums[0]).max() < 1e-12
        worst = max(worst, norms.max())
    assert 0.99 < worst <= 1 + 1e-12


@pytest.mark.parametrize("limit", [0.2, 1.0, 4.0])
def test_a_record_moves_products_by_no_more_than_the_limit(limit):
    rng, grid = np.random.default_rng(4), 2**12
    weights, worst = rng.uniform(0.2, 1, BLOCKS.parameters), 0.0
    for seed in range(100):
        X, y = data(1, seed)
        beta = on_lattice(rng.normal(size=BLOCKS.width) * 10 ** rng.uniform(-3, 1))
        upper = mapped(X, y)[1].products(beta, BLOCKS.basis, weights, limit, grid)
        matrix = np.zeros((BLOCKS.parameters,) * 2)
        matrix[np.triu_indices(len(matrix))] = upper
        trace = sum(
            Fraction(int(v)) * Fraction(a) ** 2
            for v, a in zip(np.diag(matrix), weights, strict=True)
        )
        worst = max(worst, float(trace / (Fraction(limit) / 4 * grid**2)))
    assert worst <= 1 + 2**-30
    assert worst > (0.9 if limit < 1 else 0.2)


def test_one_class_and_very_many_are_refused():
    check_classes(Categories([*"abc"]), 3)
    with pytest.raises(ValueError, match="At most 2 classes are supported"):
        check_classes(Categories([*"abc"]), 2)
    with pytest.raises(ValueError, match="needs two classes"):
        check_classes(Categories([*"a"]), 2)
