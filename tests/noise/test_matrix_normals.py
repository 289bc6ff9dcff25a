"""Normal numbers in cells of a lattice: the law, and what happens where floats cannot decide."""

from decimal import localcontext

import numpy as np
import pytest
from scipy.stats import kstest

from dpbayes_sklearn.noise import matrix
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.matrix import BITS, Normals, exact_normals


def values(drawn):
    return np.array([int(cell) / 2**drawn.bits for cell in drawn.cells])


@pytest.mark.parametrize("sure", [1e-12, 0.03])
def test_the_law_is_normal_whoever_decides(sure):
    x = values(exact_normals(8000, random_source(3), sure))
    assert kstest(x, "norm").pvalue > 1e-3
    assert kstest(x * 1.15, "norm").pvalue < 1e-3
    assert kstest(x / 1.15, "norm").pvalue < 1e-3


def test_more_bits_stay_in_the_cell():
    drawn = exact_normals(200, random_source(0))
    fine = drawn.refined(random_source(1))
    assert fine.bits == drawn.bits + 64
    assert ((fine.cells >> 64) == drawn.cells).all()
    low = np.array([int(c) & (2**64 - 1) for c in fine.cells]) / 2.0**64
    assert kstest(low, "uniform").pvalue > 1e-3


def test_a_comparison_that_sixty_bits_leave_open_gets_more():
    """At the threshold itself more bits of both numbers are drawn, and kept."""
    cell = 1 << (BITS - 1)
    with localcontext() as context:
        context.prec = 60
        coin = int(2**64 * matrix._probability(cell, BITS, 0)) - 2
    found = [matrix._compared(cell, 0, coin, random_source(seed)) for seed in range(20)]
    assert None in found
    kept = [one for one in found if one is not None]
    assert kept
    for refined, extra in kept:
        assert extra == BITS
        assert refined >> BITS == cell
    assert matrix._compared(cell, 0, 0, random_source(0)) == (cell, 0)
    assert matrix._compared(cell, 0, 2**64 - 1, random_source(0)) is None


def test_cells_of_different_bits_are_brought_to_the_same(monkeypatch):
    def some(size, source, sure):
        cells = np.array([1 << BITS, (1 << BITS) << 10] * size, object)
        return cells, np.array([0, 10] * size)

    monkeypatch.setattr(matrix, "_accepted", some)
    drawn = exact_normals(6, random_source(0))
    assert drawn.bits == BITS + 10
    assert np.allclose(np.abs(values(drawn)), 1.0, atol=1e-12)
    assert isinstance(drawn, Normals)
