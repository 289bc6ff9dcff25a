"""Distances in ranks: the law of every point, and how far a record can change it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpbayes_sklearn.columns.ranks import ROUNDING, Even, Ranks, change_range, decay

STEP = 2.0**-32
KEYS = (0, 2, 3, 7)
POINTS = range(9)
FRACTIONS = [Fraction(1, 2), Fraction(1, 50), Fraction(1, 3), Fraction(9, 10), Fraction(0)]


def distance(keys, q, z):
    below, up_to = sum(k < z for k in keys), sum(k <= z for k in keys)
    return max(Fraction(0), below - q * len(keys), q * len(keys) - up_to)


@pytest.mark.parametrize("q", FRACTIONS)
@pytest.mark.parametrize("rate", [0.0, 0.1, 3.0, 100.0])
def test_every_point_has_the_weight_of_its_distance(q, rate):
    for n in range(5):
        for keys in combinations_with_replacement(KEYS, n):
            (law,) = Ranks(np.array(keys) * STEP, q, (Even(0.0, 1.0),)).law(rate)
            for z in POINTS:
                i = int(np.searchsorted(law.starts, z, side="right")) - 1
                steps = int(distance(keys, q, z) * q.denominator)
                assert law.weights[i] == decay(rate * steps / q.denominator)
            assert sum(law.masses) == int(np.diff(Even(0, 1).below(law.starts[[0, -1]]))[0])


def test_far_records_need_not_be_looked_at():
    (law,) = Ranks(np.arange(100_000) * STEP, Fraction(1, 2), (Even(0.0, 1.0),)).law(1.0)
    assert len(law.weights) < 300
    assert law.weights[0] == law.weights[-1] == 2**40
    assert max(law.weights) == 2**100


@pytest.mark.parametrize("q", FRACTIONS)
def test_the_range_of_change_is_as_stated_and_reached(q):
    def spread(one, other):
        changes = [distance(one, q, z) - distance(other, q, z) for z in POINTS]
        return max(changes) - min(changes)

    comes, replaced = Fraction(0), Fraction(0)
    for n in range(1, 6):
        for keys in combinations_with_replacement(KEYS, n):
            for i, new in product(range(n), KEYS):
                rest = keys[:i] + keys[i + 1 :]
                comes = max(comes, spread(keys, rest))
                replaced = max(replaced, spread(keys, (*rest, new)))
    assert comes <= change_range(q)
    assert replaced <= 2
    if q == Fraction(1, 2):
        assert (comes, replaced) == (1, 2)


def test_decay_is_exact_within_its_rounding():
    for x in (0.0, 1e-9, 0.3, 1.0, 20.0, 41.0):
        assert abs(math.log(decay(x)) - 100 * math.log(2) + x) < float(ROUNDING) / 8
    assert decay(50.0) == decay(1e300) == 2**40
    assert all(decay(x) >= decay(x + 1e-3) for x in np.linspace(0, 60, 500))


def test_the_exact_quantile():
    values, lattices = np.array([1.0, 1.0, 5.0, 9.0]), (Even(0.0, 1.0),)
    assert [Ranks(values, Fraction(k, 4), lattices).exact() for k in range(5)] == [1, 1, 1, 5, 9]
    assert Ranks(values[:0], Fraction(1, 2), lattices).exact() == 0
