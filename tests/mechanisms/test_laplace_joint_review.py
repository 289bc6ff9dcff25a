"""Joint noise on features of very many values."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.counts import CountTables, ReleasedCounts
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.row_noise import RowNoise, rows_vary_less

MANY = 5000  # values: 4**MANY is far beyond the largest float


@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_the_variance_of_a_cell_is_the_average_over_numbers_of_positive_entries(size):
    law = RowNoise.of((size, 2), 2, Fraction(1))
    ways = {i: comb(size, i) * comb(size - 2, i - 1) for i in range(1, size)}
    shares = sum(w * (Fraction(2, i + 1) + Fraction(2, size - i + 1)) for i, w in ways.items())
    half = law.squared_radius / 4 * (size - 1) / (size + 1)
    spread = half * float(shares / sum(ways.values()))
    wanted = spread / size + law.total_variance / size**2
    assert law.cell_variance(size) == pytest.approx(wanted)


def test_the_choice_of_noise_does_not_overflow():
    assert rows_vary_less((MANY,) * 2, 2, 6, Fraction(1)) in {True, False}
    network = Network.star([MANY], 2)
    exact = CountTables(network, tuple(np.zeros(s, np.int64) for s in network.shapes), 0)
    prior = DirichletPrior(network, tuple(np.ones(k) for k in network.sizes))
    Laplace(noise="auto").preflight(exact, prior, Budget(Fraction(1)))


def test_the_reading_of_many_values_does_not_overflow():
    """It comes after the charge: what was paid for must be readable."""
    network, law = Network.star([MANY], 2), RowNoise.of((MANY,), 2, Fraction(1))
    noisy = ReleasedCounts(network, tuple(np.zeros(s) for s in network.shapes), 0, ((law,),) * 2)
    assert 0 < noisy.laplace_scales(0)[0] < np.inf
