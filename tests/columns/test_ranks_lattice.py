"""Public lattices: keys in order, values that come back, a measure that adds up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbayes_sklearn.columns.ranks import (
    LARGEST_NUMBER,
    Even,
    Magnitudes,
    _of_multiples,
    key_at,
    shortened,
)

LATTICES = [
    Magnitudes(),
    Magnitudes.between(37.25, low=37.25),
    Magnitudes.between(-1e300, high=-1e300),
    Magnitudes.between(0.0, -3.0, 8.0),
    Even(-3.0, 8.0),
    Even(-1e308, 1e308),
    Even(2.0, 2.0),
]
NUMBERS = st.floats(allow_nan=False, allow_infinity=True)


@pytest.mark.parametrize("lattice", LATTICES, ids=repr)
@given(values=st.lists(NUMBERS, min_size=2, max_size=20))
def test_keys_are_in_the_order_of_the_numbers(lattice, values):
    keys = lattice.keys(np.sort(np.array(values)))
    assert (np.diff(keys) >= 0).all()
    assert (keys >= lattice.first).all()
    assert (keys < lattice.stop).all()


@pytest.mark.parametrize("lattice", LATTICES[:5], ids=repr)
@given(share=st.floats(0, 1))
def test_a_value_has_the_key_it_came_from_or_one_beside_it(lattice, share):
    key = lattice.first + int(share * (lattice.stop - 1 - lattice.first))
    value = lattice.value(key)
    assert np.isfinite(value)
    again = lattice.value(int(lattice.keys(np.array([value]))[0]))
    near = 1e-8 if isinstance(lattice, Even) else 0
    assert again == pytest.approx(value, rel=1e-9, abs=near)


@pytest.mark.parametrize("lattice", LATTICES, ids=repr)
@given(data=st.data())
def test_the_measure_grows_with_every_key(lattice, data):
    key = data.draw(st.integers(lattice.first, lattice.stop - 2))
    step = lattice.below(np.array([key, key + 1, key + 2]))
    assert (np.diff(step) >= 1).all()


@pytest.mark.parametrize("lattice", LATTICES, ids=repr)
@given(data=st.data())
def test_a_unit_of_measure_is_found_in_its_point(lattice, data):
    ends = lattice.below(np.array([lattice.first, lattice.stop]))
    offset = data.draw(st.integers(0, int(np.diff(ends)[0]) - 1))
    key = key_at(lattice, lattice.first, lattice.stop, offset)
    low, high = (lattice.below(np.array([key, key + 1])) - ends[0]).tolist()
    assert low <= offset < high


def test_whole_numbers_and_the_origin_weigh_more_than_their_neighbours():
    lattice = Magnitudes()

    def mass(key: int) -> int:
        return int(np.diff(lattice.below(np.array([key, key + 1])))[0])

    odd = int(lattice.keys(np.array([np.pi]))[0])
    assert mass(int(lattice.keys(np.array([37.0]))[0])) > 1e6 * mass(odd)
    whole = int(np.diff(lattice.below(np.array([lattice.first, lattice.stop])))[0])
    assert 1 / 130 < mass(0) / whole < 1 / 128
    assert whole < 2**63


@given(value=NUMBERS)
def test_shortened_numbers_are_points(value):
    (short,) = shortened(np.array([value])).tolist()
    assert abs(short) <= LARGEST_NUMBER
    assert abs(short) <= abs(value)
    lattice = Magnitudes()
    assert lattice.value(int(lattice.keys(np.array([short]))[0])) == short


def test_integers_and_seconds_are_kept():
    exact = np.array([0.0, -1.0, 2.0**33 - 1, 1.7e9, 0.5])
    assert np.array_equal(shortened(exact), exact)


def test_multiples_of_powers_of_two_are_added_up_as_one_by_one():
    rng = np.random.default_rng(0)
    steps = np.concatenate(
        [np.arange(300), 2**32 - 1 - np.arange(300), rng.integers(0, 2**32, 999)]
    )
    expected = sum((-(-steps >> bits) << bits for bits in range(33)), np.zeros_like(steps))
    assert _of_multiples(steps).tolist() == expected.tolist()
