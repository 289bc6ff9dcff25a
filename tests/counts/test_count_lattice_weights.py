"""Prior weights, on the integers and on a coarser lattice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from dpbayes_sklearn.counts.count_lattice import (
    log_dirichlet_weight,
    log_lattice_weight,
    log_row_weight,
)


@pytest.mark.parametrize("alpha", [1e-4, 0.5, 1.0, 3.0, 250.0])
def test_dirichlet_weight_is_a_ratio_of_gammas(alpha):
    k = np.arange(200.0)
    expected = gammaln(alpha + k) - gammaln(alpha) - gammaln(k + 1)
    np.testing.assert_allclose(log_dirichlet_weight(alpha, k), expected, atol=1e-10)


def test_dirichlet_weight_keeps_its_digits_at_large_counts():
    """Gamma(2 + k) / k! is k + 1: a difference of log-gammas misses it by 1e-7 here."""
    k = np.array([1e8, 1e10])
    np.testing.assert_allclose(log_dirichlet_weight(2.0, k), np.log1p(k), rtol=1e-12)


def shared(alpha, step, points):
    """Mass of the integers, shared linearly between neighbouring lattice points."""
    k = np.arange(int(step * points) + 1)
    weight = np.exp(log_dirichlet_weight(alpha, k))
    below = np.floor(k / step).astype(int)
    part = k / step - below
    size = points + 2
    mass = np.bincount(below, weight * (1 - part), size) + np.bincount(
        below + 1, weight * part, size
    )
    return mass[: points - 1]


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 2.5, 20.0])
@pytest.mark.parametrize("step", [4.0, 50.0])
def test_lattice_weight_is_the_mass_nearby(alpha, step):
    mass = shared(alpha, step, 200)
    log_weight = log_lattice_weight(alpha, np.arange(len(mass)), step)
    np.testing.assert_allclose(log_weight, np.log(mass), atol=2e-3)


@pytest.mark.parametrize("alphas", [(1.0, 1.0), (0.3, 1.0, 2.0), (1.0,) * 12, (4.0,) * 5])
def test_row_weight_is_the_convolution_of_its_cells(alphas):
    step, points = 6.0, 400
    mass = np.ones(1)
    for alpha in alphas:
        cell = np.exp(log_lattice_weight(alpha, np.arange(points), step))
        mass = np.convolve(mass, cell)[:points]
    expected = np.log(mass)
    row = log_row_weight(alphas, 0, points - 1, step)
    np.testing.assert_allclose(row, expected, atol=3e-3)
    part = log_row_weight(alphas, 30, 340, step)
    np.testing.assert_array_equal(part, row[30:341])


def test_row_weight_on_the_integers_counts_splits():
    np.testing.assert_allclose(np.exp(log_row_weight((1.0, 1.0, 1.0), 0, 3, 1.0)), [1, 3, 6, 10])


@pytest.mark.parametrize("alpha", [1e-100, 1e-12, 1e-7, 5e-4])
def test_lattice_weight_of_a_tiny_alpha_keeps_its_digits(alpha):
    step = 37.5
    k = np.arange(1, int(8 * step))
    positive = alpha / k * np.exp(alpha * (digamma(k) - digamma(1.0)))  # to the square of alpha
    shares = np.maximum(1.0 - np.abs(k / step - np.arange(8)[:, None]), 0.0)
    masses = shares @ positive
    masses[0] += 1.0
    found = log_lattice_weight(alpha, np.arange(8), step)
    np.testing.assert_allclose(found[:7], np.log(masses[:7]), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-100, 1e-8, 1.0, 1e4, 1e9, 1e12])
@pytest.mark.parametrize("step", [1.0, 3.7, 1e5])
def test_every_alpha_gives_every_count_a_weight(alpha, step):
    assert np.isfinite(log_lattice_weight(alpha, np.arange(4096), step)).all()
    assert np.isfinite(log_row_weight((alpha,) * 3, 0, 4095, step)).all()
