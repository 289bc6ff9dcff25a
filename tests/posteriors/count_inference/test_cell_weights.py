"""Prior weights and noise laws, on the integers and on a coarser lattice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from dpbayes_sklearn.posteriors.count_inference.cell_weights import (
    NoiseLaw,
    log_dirichlet_weight,
    log_lattice_weight,
    log_row_weight,
    noise_bound,
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


def convolved(scales, reach):
    x = np.arange(-reach, reach + 1)
    law = np.ones(1)
    for scale in scales:
        single = np.exp(-np.abs(x) / scale)
        law = np.convolve(law, single / single.sum())
    return law[len(law) // 2 :]


@pytest.mark.parametrize("scales", [(2.0,), (3.0, 3.0), (0.3, 2.0, 2.0), (7.0,) + (5.0,) * 9])
def test_law_of_a_sum_of_noises(scales):
    expected = np.log(convolved(scales, 2000)[:90])
    log_weight = NoiseLaw(scales).log_weight(np.arange(90.0))
    np.testing.assert_allclose(log_weight - log_weight[0], expected - expected[0], atol=1e-10)


def test_law_of_a_sum_of_wide_noises_is_interpolated():
    scales = (200.0, 200.0, 100.0)
    expected = np.log(convolved(scales, 8000)[:2500])
    log_weight = NoiseLaw(scales).log_weight(np.arange(2500.0))
    np.testing.assert_allclose(log_weight - log_weight[0], expected - expected[0], atol=1e-3)


def test_far_tails_stay_finite_and_fall():
    log_weight = NoiseLaw((5.0, 5.0)).log_weight(np.array([1e4, 1e5, 1e6]))
    assert np.all(np.diff(log_weight) < 0)
    assert np.isfinite(log_weight).all()


def test_noise_that_says_nothing_or_is_not_there():
    assert NoiseLaw([0.0]).exact
    assert NoiseLaw([]).half_width(3, 20.0) == 0.0
    assert NoiseLaw([np.inf]).half_width(3, 20.0) == np.inf
    assert NoiseLaw([np.inf]).log_weight(np.array([1.0, -9.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("terms", [1, 4, 30])
def test_bound_holds_and_is_not_far_off(terms):
    """The tail beyond the bound is below exp(-nats), and above it a third of the way in."""
    law = convolved((6.0,) * terms, 1500)
    nats = 12.0
    bound = noise_bound({6.0: terms}, nats)
    tail = law[int(np.floor(bound)) + 1 :].sum()
    inside = law[int(bound * 0.65) :].sum()
    assert tail < np.exp(-nats) < inside
