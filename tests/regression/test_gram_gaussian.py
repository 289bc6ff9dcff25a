"""The products of two records never lie farther apart than declared, in the weighted L2 norm."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.gram import NARROWEST, gaussian_gram
from dpbayes_sklearn.regression.moments import whole_block
from tests.linear_records import DESIGNS, LEVELS, NUMBER, SIGN, whole_steps

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


@pytest.mark.parametrize("design", [*DESIGNS, Design((NUMBER,) * 3)], ids=str)
def test_no_pair_of_records_moves_the_products_further(design):
    block = gaussian_gram(design)
    sums = products(block, list(whole_steps(design, GRID)))
    assert squared(block, farthest(block, sums)) <= 1  # exactly
    alone = max(squared(block, z) for z in sums)
    assert alone * block.bound <= block.bound_of_one_record


def test_the_worst_records_nearly_use_up_the_bound():
    block = gaussian_gram(Design((NUMBER,) * 6, intercept=False))
    rng = np.random.default_rng(0)
    records = np.hstack([np.ones((400, 1)), rng.choice([-1, 0, 1], (400, 7))]).astype(int) * GRID
    assert 0.8 < squared(block, farthest(block, products(block, records))) <= 1


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_pair_that_is_searched_for_does_either(seed):
    rng, block = np.random.default_rng(seed), gaussian_gram(Design((NUMBER,) * 3 + (SIGN, LEVELS)))
    x, t = rng.integers(-GRID, GRID + 1, (2, 3)), rng.integers(-GRID, GRID + 1, 2)
    x *= rng.random(x.shape) < 0.6  # few coordinates in common
    categories = [[GRID, GRID, 0, 0], [-GRID, 0, GRID, 0]]
    sums = products(block, np.column_stack([[GRID, GRID], x, categories, t]).astype(int))
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
    block = gaussian_gram(design).protecting(unit)
    law, k = block.law(rho, GRID), unit.max_records
    sums = products(block, list(whole_steps(design, GRID)))
    others = [np.zeros_like(sums[0])] if unit.size_is_secret else sums[::5]
    worst = max(law.rho(k * (row - other)) for row in sums for other in others)
    assert 0.75 * rho < worst <= rho


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 8), intercept=st.booleans())
def test_the_sampler_can_draw_the_noise(seed, columns, intercept):
    kinds = np.random.default_rng(seed).integers(0, 4, columns)
    design = Design(tuple((NUMBER, NUMBER, SIGN, LEVELS)[i] for i in kinds), intercept)
    block = gaussian_gram(design)
    assert min(block.bound, block.bound_of_one_record) * NARROWEST**2 >= max(block.weights)
