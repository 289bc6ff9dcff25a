"""The products of two records never lie farther apart than declared, in the weighted L2 norm."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn.convex.design import Design, Reach
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.regression import gram as module
from dpbayes_sklearn.regression.gram import NARROWEST, gaussian_gram, noise_of_products
from dpbayes_sklearn.regression.moments import whole_block
from dpbayes_sklearn.regression.plans import gaussian_deviations
from tests.regression.records import DESIGNS, LEVELS, NUMBER, SIGN, reach_of, scaled

GRID = 2**6
ADDED = PrivacyUnit("record", neighbours="add_remove")


def products(block, records):
    """Sums of products: whole numbers, in steps of 1/grid²."""
    return np.array([np.outer(z, z)[block.rows, block.columns] for z in records], np.int64)


def squared(block, change):
    """The weighted square of one change, as an exact fraction of the bound."""
    each = [w for w, size in zip(block.weights, block.sizes, strict=True) for _ in range(size)]
    total = sum(w * v**2 for w, v in zip(each, change.tolist(), strict=True))
    return total / (block.bound * GRID**4)


def farthest(block, sums):
    """The change between the two records that differ most."""
    rooted = sums * np.sqrt(np.repeat([float(w) for w in block.weights], block.sizes))
    norms = np.square(rooted).sum(axis=1)
    apart = norms[:, None] + norms - 2 * rooted @ rooted.T
    i, j = np.unravel_index(np.argmax(apart), apart.shape)
    return sums[i] - sums[j]


def blocks_of(design, stretch, deviations, centre=None):
    reach = reach_of(design, stretch, centre)
    return module._whole(design), module._scaled(design, reach, deviations)


@pytest.mark.parametrize("centre", [None, 0.0, -0.8])
@pytest.mark.parametrize(("stretch", "deviations"), [(None, 0.0), (1.3, 1.0), (3.0, 0.5), (20, 1)])
@pytest.mark.parametrize("design", [*DESIGNS, Design((NUMBER,) * 3)], ids=str)
def test_no_pair_of_records_moves_the_products_further(design, stretch, deviations, centre):
    for block in blocks_of(design, stretch, deviations, centre):
        sums = products(block, list(scaled(block, design, GRID, centre)))
        assert squared(block, farthest(block, sums)) <= 1  # exactly
        nothing = np.zeros_like(sums[:1])
        alone = max(squared(block, farthest(block, np.vstack([nothing, [z]]))) for z in sums)
        assert alone * block.bound <= block.bound_of_one_record


def test_the_worst_records_use_up_the_bound():
    """Two records that share no coordinate, with the largest norm there is."""
    design = Design((NUMBER,) * 6, intercept=False)
    whole, block = blocks_of(design, None, 1.0)
    kept = np.array([[0, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]]) * GRID
    x, t = kept[:, 1:-1].astype(float), kept[:, -1].astype(float)
    block.norm.clip(x, t, GRID)
    kept[:, 1:-1], kept[:, -1] = x, t
    sums = products(block, kept)
    assert 0.9 < squared(block, sums[0] - sums[1]) <= 1
    rng = np.random.default_rng(0)
    records = np.hstack([np.ones((400, 1)), rng.choice([-1, 0, 1], (400, 7))]).astype(int) * GRID
    assert 0.8 < squared(whole, farthest(whole, products(whole, records))) <= 1


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), stretch=st.floats(0.5, 30), deviations=st.floats(0, 20))
def test_no_pair_that_is_searched_for_does_either(seed, stretch, deviations):
    rng = np.random.default_rng(seed)
    design = Design((NUMBER,) * 3 + (SIGN, LEVELS))
    reach = Reach(stretch * rng.uniform(0.5, 2, design.width + 1), None)
    block = module._scaled(design, reach, deviations)
    x, t = rng.integers(-GRID, GRID + 1, (2, 3)), rng.integers(-GRID, GRID + 1, 2)
    x *= rng.random(x.shape) < 0.6  # few coordinates in common
    categories = [[GRID, GRID, 0, 0], [-GRID, 0, GRID, 0]]
    X, T = np.hstack([x, categories]).astype(float), t.astype(float)
    block.norm.clip(X, T, GRID)
    records = np.column_stack([[GRID, GRID], X, T]).astype(int)
    sums = products(block, records)
    assert squared(block, sums[0] - sums[1]) <= 1
    assert squared(block, sums[0]) * block.bound <= block.bound_of_one_record


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_what_gaussian_products_leave_out_is_public(design):
    block, whole = gaussian_gram(design), whole_block(design)
    levels = set((1 + np.flatnonzero(design.levels)).tolist())
    released = set(zip(block.rows.tolist(), block.columns.tolist(), strict=True))
    wanted = set(zip(whole.rows.tolist(), whole.columns.tolist(), strict=True))
    squares = {(i, i) for i in levels}  # which are released a second time
    without = set() if design.intercept else {(0, i) for i in levels}  # a level is its own square
    assert released == (wanted - without) | squares
    assert len(released) == len(block) == sum(block.sizes)


@pytest.mark.parametrize("unit", [RECORD, ADDED, PrivacyUnit("person", max_records=3)])
def test_gaussian_noise_is_rho_zcdp_and_no_more(unit):
    design, rho = Design((NUMBER, LEVELS, SIGN)), Fraction(1, 50)
    block = gaussian_gram(design, deviations=None).protecting(unit)
    law, k = block.law(rho, GRID), unit.max_records
    sums = products(block, list(scaled(block, design, GRID)))
    others = [np.zeros_like(sums[0])] if unit.size_is_secret else sums[::5]
    worst = max(law.rho(k * (row - other)) for row in sums for other in others)
    assert 0.85 * rho < worst <= rho


def test_scaled_records_need_less_noise_where_there_are_several_numbers():
    for columns, factor in ((1, 0.9), (5, 0.35), (40, 0.2)):
        design = Design((NUMBER,) * columns)
        found = [noise_of_products(design, b, Fraction(1)) for b in blocks_of(design, None, 1.0)]
        chosen = noise_of_products(design, gaussian_gram(design, None, 1.0), Fraction(1))
        assert chosen == min(found)
        assert found[1] < factor * found[0]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 8), n_epsilon=st.floats(1, 1e9),
    intercept=st.booleans(),
)  # fmt: skip
def test_the_sampler_can_draw_the_noise_whatever_the_windows_are(
    seed, columns, n_epsilon, intercept
):
    rng = np.random.default_rng(seed)
    kinds = [(NUMBER, NUMBER, SIGN, LEVELS)[i] for i in rng.integers(0, 4, columns)]
    design = Design(tuple(kinds), intercept)
    signs = rng.uniform(-0.95, 0.95, int(design.signs.sum())) if rng.random() < 0.5 else None
    reach = Reach(rng.uniform(0.1, 40, design.width + 1), signs)
    block = gaussian_gram(design, reach, gaussian_deviations(n_epsilon))
    assert min(block.bound, block.bound_of_one_record) * NARROWEST**2 >= max(block.weights)
    assert block.deviation <= 50 * (design.width + 2)
