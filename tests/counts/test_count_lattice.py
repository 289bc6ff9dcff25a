"""A coarser lattice changes little, and windows hold what noise does."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.counts.count_lattice import CountLattice, CountTable
from dpbayes_sklearn.counts.noise_aware import NoisyStar
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal


class FixedStar(NoisyStar):
    """A star on a lattice of the test's choice."""

    def __init__(self, classes, tables, lattice):
        self.classes, self.tables, self.fresh = classes, tables, 1.0
        assert self._solve(lattice)


def laplace(rng, scale, shape):
    q = np.exp(-1 / scale)
    return rng.geometric(1 - q, shape) - rng.geometric(1 - q, shape)


def noisy_star(seed, n, n_classes, n_cells, n_tables, scale, alpha):
    rng = np.random.default_rng(seed)
    classes = rng.multinomial(n, rng.dirichlet(np.ones(n_classes)))
    counts = [
        np.stack([rng.multinomial(m, rng.dirichlet(np.full(n_cells, alpha))) for m in classes])
        for _ in range(n_tables)
    ]
    law = LaplaceMarginal(scale)
    table = CountTable(
        (classes + laplace(rng, scale, n_classes))[None].astype(float), law, np.ones(n_classes)
    )
    tables = [
        CountTable(k + laplace(rng, scale, k.shape).astype(float), law, np.full(n_cells, alpha))
        for k in counts
    ]
    truth = [k / np.maximum(k.sum(axis=1, keepdims=True), 1) for k in counts]
    return table, tables, truth


PROBLEMS = [
    (1500, 2, 2, 8, 40.0, 1.0),
    (1500, 3, 6, 3, 25.0, 1.0),
    (1500, 3, 6, 3, 25.0, 0.2),
    (1500, 2, 3, 4, 30.0, 5.0),
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_coarser_lattice_adds_less_than_two_percent_to_the_error(problem):
    n, *_, scale, _ = problem
    classes, tables, truth = noisy_star(1, *problem)
    exact = FixedStar(classes, tables, CountLattice(n, 1.0, 30.0))
    chosen = CountLattice.for_star(classes, tables, n)
    assert chosen.step == 1.0  # cheap enough to be exact, so force a step like that of big tables
    points = round(n / (0.1 * scale))
    coarse = FixedStar(classes, tables, CountLattice(points, n / points, 20.0))
    difference = [exact.row_means(j) - coarse.row_means(j) for j in range(len(tables))]
    error = [exact.row_means(j) - truth[j] for j in range(len(tables))]
    assert rms(difference) < 0.02 * rms(error)
    assert rms(difference) > 0  # or nothing was compared


def rms(arrays):
    return np.sqrt(np.mean([np.square(a).mean() for a in arrays]))


def test_big_problems_get_a_lattice_that_resolves_the_noise():
    classes, tables, _ = noisy_star(2, 10**7, 3, 8, 10, 5000.0, 1.0)
    lattice = CountLattice.for_star(classes, tables, 10**7)
    assert 1.0 < lattice.step < 0.2 * 5000.0
    assert lattice.step * lattice.points == pytest.approx(10**7)


def test_narrow_windows_that_cut_the_posterior_are_noticed():
    classes, tables, _ = noisy_star(3, 1500, 2, 2, 4, 30.0, 1.0)
    star = FixedStar(classes, tables, CountLattice(1500, 1.0, 20.0))
    assert not star._solve(CountLattice(1500, 1.0, 2.0))


@pytest.mark.parametrize("seed", range(3))
def test_wider_windows_change_nothing(seed):
    classes, tables, _ = noisy_star(seed, 1200, 3, 4, 3, 20.0, 1.0)
    narrow = FixedStar(classes, tables, CountLattice(1200, 1.0, 20.0))
    wide = FixedStar(classes, tables, CountLattice(1200, 1.0, 60.0))
    for j in range(len(tables)):
        np.testing.assert_allclose(narrow.row_means(j), wide.row_means(j), atol=1e-7)
