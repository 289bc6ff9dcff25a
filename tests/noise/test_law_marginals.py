"""Noise in one number: sums of several noises, and bounds that they keep within."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
from dpbayes_sklearn.noise.joint import SupNormMarginal
from dpbayes_sklearn.noise.law import NO_NOISE, UNKNOWN, deviation_bound, sum_of


def laplace_sum(scales):
    return sum_of([LaplaceMarginal(scale) for scale in scales])


def convolved(scales, reach):
    x = np.arange(-reach, reach + 1)
    law = np.ones(1)
    for scale in scales:
        single = np.exp(-np.abs(x) / scale)
        law = np.convolve(law, single / single.sum())
    return law[len(law) // 2 :]


@pytest.mark.parametrize("scales", [(2.0,), (3.0, 3.0), (0.3, 2.0, 2.0), (7.0,) + (5.0,) * 9])
def test_the_law_of_a_sum_of_noises_is_their_convolution(scales):
    expected = np.log(convolved(scales, 2000)[:90])
    log_weight = laplace_sum(scales).log_weight(np.arange(90.0))
    np.testing.assert_allclose(log_weight - log_weight[0], expected - expected[0], atol=1e-10)


def test_law_of_a_sum_of_wide_noises_is_interpolated():
    scales = (200.0, 200.0, 100.0)
    expected = np.log(convolved(scales, 8000)[:2500])
    log_weight = laplace_sum(scales).log_weight(np.arange(2500.0))
    np.testing.assert_allclose(log_weight - log_weight[0], expected - expected[0], atol=1e-3)


def test_far_tails_stay_finite_and_fall():
    log_weight = laplace_sum((5.0, 5.0)).log_weight(np.array([1e4, 1e5, 1e6]))
    assert np.all(np.diff(log_weight) < 0)
    assert np.isfinite(log_weight).all()


def test_noise_that_says_nothing_or_is_not_there():
    assert sum_of([]).variance == 0.0
    assert sum_of([]).half_width(3, 20.0) == 0.0
    assert sum_of([NO_NOISE, NO_NOISE]) is NO_NOISE
    np.testing.assert_array_equal(NO_NOISE.log_weight(np.array([0.0, 1.0])), [0.0, -np.inf])
    nothing_known = sum_of([UNKNOWN, LaplaceMarginal(2.0)])
    assert nothing_known is UNKNOWN
    assert nothing_known.half_width(3, 20.0) == np.inf
    assert nothing_known.log_weight(np.array([1.0, -9.0])).tolist() == [0.0, 0.0]


def test_a_single_noise_stays_as_it_is():
    assert sum_of([NO_NOISE, LaplaceMarginal(3.0)]) == LaplaceMarginal(3.0)


def test_sums_of_different_laws_add_their_variances():
    both = sum_of([LaplaceMarginal(4.0), SupNormMarginal(9, 1.0)])
    x = np.arange(-400.0, 401.0)
    weights = np.exp(both.log_weight(x))
    variance = weights @ x**2 / weights.sum()
    assert variance == pytest.approx(both.variance, rel=0.02)
    assert both.half_width(2, 12.0) > both.half_width(1, 12.0) > 5 * np.sqrt(both.variance)


@pytest.mark.parametrize("terms", [1, 4, 30])
def test_bound_holds_and_is_not_far_off(terms):
    """The tail beyond the bound is below exp(-nats), and above it a third of the way in."""
    law = convolved((6.0,) * terms, 1500)
    nats = 12.0
    bound = deviation_bound([(1.0, terms, LaplaceMarginal(6.0))], nats)
    assert deviation_bound([(2.0, terms, LaplaceMarginal(3.0))], nats) == pytest.approx(bound)
    tail = law[int(np.floor(bound)) + 1 :].sum()
    inside = law[int(bound * 0.65) :].sum()
    assert tail < np.exp(-nats) < inside
