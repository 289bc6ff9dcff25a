"""Discrete Gaussian noise as a value: its densities, bounds and concentrated privacy loss."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from dpbayes_sklearn.noise import DiscreteGaussian, add
from dpbayes_sklearn.noise.discrete_gaussian import GaussianMarginal
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import draw

LAW = DiscreteGaussian((Fraction(9), Fraction(0), Fraction(49, 4)), (3, 2, 4))


@pytest.mark.parametrize("order", [2, 5, 30])
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_rho_bounds_every_renyi_divergence_of_a_shift(order: int, shift: int) -> None:
    """By enumeration: D_alpha <= alpha rho, nearly attained; half of rho is exceeded."""
    parameter = Fraction(9)
    z = np.arange(-300.0, 301.0)
    log_p = -(z**2) / (2 * float(parameter))
    log_p -= logsumexp(log_p)
    log_q = log_p + (z * shift - shift**2 / 2) / float(parameter)  # of z - shift
    divergence = logsumexp(order * log_p - (order - 1) * log_q) / (order - 1)
    rho = DiscreteGaussian((parameter,), (1,)).rho(np.array([shift]))
    assert divergence <= order * float(rho) * (1 + 1e-9)
    assert divergence > 0.99 * order * float(rho)


def test_rho_adds_up_over_arrays_and_public_arrays_must_not_change() -> None:
    shift = np.array([1, -1, 0, 0, 0, 2, 0, 0, 1])
    assert LAW.rho(shift) == Fraction(2, 18) + Fraction(5 * 4, 2 * 49)
    shift[3] = 1
    assert LAW.rho(shift) == math.inf


def test_draws_have_the_variances_of_the_law_and_public_arrays_none() -> None:
    noise = draw(LAW, 20_000, random_source(0)).astype(float)
    np.testing.assert_allclose((noise**2).mean(axis=0), LAW.variances, rtol=0.06)
    (first, public, last) = add(
        [np.full(3, 7), np.array([5, 5]), np.zeros(4, np.int64)], LAW, random_source(1)
    )
    assert first.shape == (3,)
    assert last.shape == (4,)
    assert public.tolist() == [5, 5]


@pytest.mark.parametrize("delta", [0.3, 0.02])
def test_the_largest_error_keeps_within_its_bound(delta: float) -> None:
    largest = np.abs(draw(LAW, 20_000, random_source(3))).max(axis=1)
    beyond = (largest > LAW.error_bound(delta)).mean()
    assert 0.03 * delta < beyond < delta


def test_the_marginal_is_gaussian_and_its_windows_hold() -> None:
    marginal = LAW.marginal(2)
    assert marginal == GaussianMarginal(12.25)
    z = np.arange(-60, 61)
    p = np.exp(marginal.log_weight(z.astype(float)))
    p /= p.sum()
    s = np.array([0.1, 0.5, 1.0])
    mgf = np.log((p * np.exp(np.outer(s, z))).sum(axis=1))
    assert (mgf <= marginal.log_mgf(s) + 1e-9).all()
    half = marginal.half_width(1, 9.0)
    assert p[np.abs(z) > half].sum() / 2 < np.exp(-9.0) < p[np.abs(z) > 0.6 * half].sum()


@pytest.mark.parametrize("wrong", [((Fraction(-1),), (2,)), ((Fraction(1),), (2, 3))], ids=str)
def test_impossible_laws_are_refused(wrong: tuple[tuple[Fraction, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="one parameter, not below zero"):
        DiscreteGaussian(*wrong)


def test_the_loss_of_a_shift_beyond_the_roots_of_64_bits_is_exact():
    law = DiscreteGaussian((Fraction(3),), (2,))
    assert law.rho(np.array([2**32, 2**33])) == Fraction(2**64 + 2**66, 6)
