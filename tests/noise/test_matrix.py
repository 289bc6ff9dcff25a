"""Exact matrix noise: products without rounding, and more bits where the first do not decide."""

from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.noise import MatrixNoise, add, matrix
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.matrix import Normals, wishart_differences

ONES = (Fraction(1),) * 3


def test_products_of_large_integers_are_exact():
    rng = np.random.default_rng(0)
    g = np.array(
        [int(v) * 2**70 + int(w) for v, w in rng.integers(-(2**40), 2**40, (24, 2))], object
    )
    g = g.reshape(2, 4, 3)
    expected = [
        [sum(a[k, i] * a[k, j] for k in range(4)) for i in range(3) for j in range(i, 3)] for a in g
    ]
    assert matrix._products(g).tolist() == expected


def test_entries_are_the_rounded_products_of_the_normals():
    rng = np.random.default_rng(0)
    exact = rng.normal(size=(2, 1, 4, 3))
    cells = np.array([int(np.floor(v * 2.0**60)) for v in exact.ravel()], object)
    found = matrix._rounded(Normals(cells, 60), Fraction(1000), ONES, 1, random_source(0))
    a, b = (g.T @ g for g in exact[:, 0])
    assert found[0].tolist() == np.rint(500 * (a - b))[np.triu_indices(3)].astype(int).tolist()


def test_coarse_cells_are_refined_until_they_decide():
    cells = np.array([3, -2, 1, 0] * 6, object)
    asked = []

    def source(size):
        asked.append(size)
        return random_source(len(asked))(size)

    found = matrix._rounded(Normals(cells, 2), Fraction(100), ONES, 1, source)
    assert found.shape == (1, 6)
    assert asked == [8 * len(cells)] * len(asked)
    assert asked
    fine = Normals(cells, 2)
    for seed in range(1, len(asked) + 1):
        fine = fine.refined(random_source(seed))
    g = np.array([float(cell) / 2.0**fine.bits for cell in fine.cells]).reshape(2, 4, 3)
    a, b = (one.T @ one for one in g)
    assert found[0].tolist() == np.rint(50 * (a - b))[np.triu_indices(3)].astype(int).tolist()


def test_only_undecided_entries_are_computed_again():
    """Each entry is what all of the normals, known to many more bits, round to."""
    scale, weights = Fraction(2**45), tuple(Fraction(k, 32) for k in range(20, 40))
    p = len(weights)
    for seed in range(5):
        first = matrix.exact_normals(2 * (p + 1) * p, random_source(seed))
        found = matrix._rounded(first, scale, weights, 1, random_source(100 + seed))
        fine = first.refined(random_source(100 + seed)).refined(random_source(7))
        again = matrix._rounded(fine, scale, weights, 1, random_source(8))
        assert (found == again).all()


def test_noise_beyond_64_bits_is_refused():
    with pytest.raises(OverflowError, match="coarser grid"):
        wishart_differences(Fraction(2**70), ONES, 4, random_source(0))


def test_many_matrices_are_drawn_in_parts(monkeypatch):
    monkeypatch.setattr(matrix, "_NORMALS_AT_A_TIME", 50)
    assert wishart_differences(Fraction(100), ONES, 7, random_source(0)).shape == (7, 6)
    law = MatrixNoise(Fraction(100), ONES)
    (noisy,) = add([np.zeros(6, np.int64)], law, random_source(0))
    assert noisy.dtype == np.int64
