"""Blocks: weights that are whole numbers, add to one, and follow the declared domains."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.logistic.blocks import BINS, PLACES, WEIGHT_STEPS, Blocks, even_nodes
from dpbayes_sklearn.schema import Categories, Interval

DOMAINS = (Interval(-2, 6), Categories([*"abc"]), Interval(0, 1, missing="indicator"))


def weights_of(blocks, rows, nodes=None):
    table = Table(np.array(rows, dtype=object))
    nodes = even_nodes(len(blocks.numbers)) if nodes is None else nodes
    return blocks.weights(blocks.encode(table), blocks.tables(nodes))


@pytest.mark.parametrize("effects", ["smooth", "linear"])
@pytest.mark.parametrize("n_bins", [None, 5])
def test_every_block_adds_to_one_exactly(effects, n_bins):
    rng = np.random.default_rng(0)
    blocks = Blocks(DOMAINS, effects, n_bins)
    odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0]
    numbers = [*rng.uniform(-3, 7, 50), *odd]
    rows = [[v, "abcx"[i % 4], numbers[-1 - i]] for i, v in enumerate(numbers)]
    nodes = np.sort(rng.uniform(0, 1, (len(blocks.numbers), BINS + 1)), axis=1)
    weights = weights_of(blocks, rows, nodes)
    assert np.array_equal(weights, np.rint(weights))
    assert (weights >= 0).all()
    assert (weights[:, 0] == WEIGHT_STEPS).all()
    assert (np.add.reduceat(weights, blocks.starts[:-1], axis=1) == WEIGHT_STEPS).all()


def test_hats_interpolate_between_knots_and_missing_values_have_a_level():
    blocks = Blocks(DOMAINS)
    weights = weights_of(blocks, [[2.0, "b", np.nan], [6.0, "c", 1 / 6]]) / WEIGHT_STEPS
    assert weights[0].tolist() == [1, 0, 0.5, 0.5, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    expected = [1, 0, 0, 0, 1, 0, 0, 1, 0.5, 0.5, 0, 0, 0]
    assert weights[1] == pytest.approx(expected, abs=3 / PLACES)


def test_linear_effects_are_the_clipped_value_in_its_window():
    blocks, values = Blocks((Interval(0, 16),), "linear"), np.linspace(-1, 17, 200)
    nodes = np.clip((np.arange(BINS + 1) - 4) / 8, 0, 1)[None]
    weights = weights_of(blocks, values[:, None], nodes) / WEIGHT_STEPS
    assert (
        np.abs(weights[:, 2] - np.clip((values - 4) / 8, 0, 1)).max()
        < 2 / PLACES + 1 / WEIGHT_STEPS
    )


def test_the_basis_is_orthonormal_and_adds_to_zero_in_every_block():
    for intercept in (True, False):
        blocks = Blocks((*DOMAINS, Categories([*"a"]), Categories(range(9))), intercept=intercept)
        basis = blocks.basis
        assert basis.shape == (blocks.width, blocks.parameters)
        assert np.abs(basis.T @ basis - np.eye(blocks.parameters)).max() < 1e-14
        assert np.abs(np.add.reduceat(basis, blocks.starts[:-1])[:, int(intercept) :]).max() < 1e-14
        assert len(blocks.block_of) == blocks.parameters


def test_containers_and_types_have_the_same_codes():
    values = np.array([0, 3, 7, 12])
    blocks = Blocks((Interval(0, 10),))
    codes = [
        blocks.encode(Table(values[:, None].astype(dtype))).tolist()
        for dtype in (np.int8, np.uint16, np.float32, np.float64, object)
    ]
    assert all(code == codes[0] for code in codes)


def test_too_many_levels_are_refused():
    with pytest.raises(ValueError, match="at most 65536"):
        Blocks((Categories(range(70_000)),))
