"""No pair of records may exceed a declared sensitivity, and some come near it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.regression.moments import (
    cross_block,
    first_block,
    gram,
    second_block,
    whole_block,
)
from dpbayes_sklearn.schema import Categories, Interval
from tests.linear_records import LEVELS, NUMBER, SIGN, one_record

GRID = 2**6
MARKED = Interval(-1, 1, missing="indicator")
BLOCKS = {
    "first": first_block,
    "cross": cross_block,
    "second": second_block,
    "whole": whole_block,
}


def gram_of(design, record):
    """The production path for a data set of one record."""
    return gram(one_record(record, design), GRID) / GRID**2


def values(domain, steps):
    if isinstance(domain, Categories):
        return list(domain.values)
    return [*np.linspace(-1, 1, steps), *[np.nan] * domain.marks_missing]


def designs():
    for intercept in (True, False):
        for kinds in [
            (),
            (NUMBER,),
            (NUMBER,) * 2,
            (SIGN,) * 3,
            (LEVELS,),
            (LEVELS,) * 2,
            (NUMBER, LEVELS),
            (NUMBER, SIGN),
            (SIGN, LEVELS),
            (NUMBER, SIGN, LEVELS),
            (MARKED,),
            (MARKED, LEVELS),
        ]:
            yield Design(kinds, intercept)


def worst_moves(design, block, steps):
    """Largest change together and each, over all pairs of records on a grid of values."""
    domains = [values(d, steps) for d in design.domains]
    records = [(*x, t) for x in product(*domains) for t in np.linspace(-1, 1, steps)]
    entries = np.array([gram_of(design, r)[block.rows, block.columns] for r in records])
    together, each = 0.0, np.zeros(len(block))
    for row in entries:
        moved = np.abs(entries - row)
        together = max(together, moved.sum(axis=1).max())
        each = np.maximum(each, moved.max(axis=0))
    return together, each


@pytest.mark.parametrize("design", list(designs()), ids=str)
@pytest.mark.parametrize("name", list(BLOCKS))
def test_no_pair_of_records_moves_a_block_further(name, design):
    block = BLOCKS[name](design)
    if not len(block):
        return
    steps = 5 if len(design.domains) <= 2 else 3
    together, each = worst_moves(design, block, steps)
    assert together <= float(block.l1_sensitivity)
    assert np.all(each <= block.entry_sensitivities)
    assert together >= 0.6 * float(block.l1_sensitivity), (
        "a bound far from what happens wastes budget"
    )
    if MARKED not in design.domains:  # beside it the number of a missing value is always the same
        assert np.all(each == block.entry_sensitivities), (
            "a single entry can move as far as declared"
        )


@pytest.mark.parametrize("intercept", [True, False])
@given(data=st.data())
def test_random_records_stay_within_the_bounds(intercept, data):
    kinds = data.draw(st.lists(st.sampled_from([NUMBER, SIGN, LEVELS]), max_size=6))
    design = Design(tuple(kinds), intercept)
    anything = st.floats(allow_nan=True, allow_infinity=True)
    a, b = (
        [
            data.draw(st.sampled_from("abxyz?") if isinstance(d, Categories) else anything)
            for d in kinds
        ]
        + [data.draw(anything)]
        for _ in range(2)
    )
    moved = np.abs(gram_of(design, a) - gram_of(design, b))
    for block in BLOCKS.values():
        entries = moved[block(design).rows, block(design).columns]
        assert entries.sum() <= float(block(design).l1_sensitivity)
        assert np.all(entries <= block(design).entry_sensitivities)


@pytest.mark.parametrize(("p", "intercept"), list(product(range(1, 8), [True, False])))
def test_numbers_alone_have_the_closed_forms(p, intercept):
    """p numbers, the target among them: p(p+1)/2 and ((p+1)² + p)/2, half of a sum of ranges."""
    design = Design((NUMBER,) * (p - 1), intercept)
    form = ((p + 1) ** 2 + p) / 2 if intercept else p * (p + 1) / 2
    assert whole_block(design).l1_sensitivity == form


def test_without_an_intercept_the_bound_is_attained():
    design = Design((NUMBER,) * 5, intercept=False)
    moved = np.abs(gram_of(design, [1.0] * 6) - gram_of(design, [0.0] * 6))
    block = whole_block(design)
    assert moved[block.rows, block.columns].sum() == float(block.l1_sensitivity)


def test_more_levels_cost_nothing():
    few, many = (Design((Categories(range(k)), Categories(range(k)), NUMBER)) for k in (3, 40))
    assert whole_block(few).l1_sensitivity == whole_block(many).l1_sensitivity
    assert second_block(few).l1_sensitivity == second_block(many).l1_sensitivity


@pytest.mark.parametrize("design", list(designs()), ids=str)
def test_what_no_block_holds_is_public(design):
    """Entries outside the whole triangle's block are the same for all records, or repeat one."""
    block = whole_block(design)
    held = np.zeros((design.width + 2,) * 2, bool)
    held[block.rows, block.columns] = held[block.columns, block.rows] = True
    rng = np.random.default_rng(0)
    levels = 1 + np.flatnonzero(design.levels)
    grams = []
    for _ in range(20):
        record = [
            rng.choice(list(d.values)) if isinstance(d, Categories) else rng.uniform(-1, 1)
            for d in design.domains
        ]
        found = gram_of(design, [*record, rng.uniform(-1, 1)])
        assert np.array_equal(found[levels, levels], found[0, levels])
        grams.append(found)
    held[levels, levels] = True
    if not design.intercept:
        held[0, 1:] = held[1:, 0] = True  # not used by the model
    assert np.all(np.ptp(grams, axis=0)[~held] == 0)
