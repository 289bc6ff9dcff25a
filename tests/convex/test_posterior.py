"""A Gaussian belief about coefficients: what it predicts and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpbayes_sklearn.convex.design import Design, Windows
from dpbayes_sklearn.convex.posterior import CoefficientDraws, GaussianPosterior, GaussianPrior
from dpbayes_sklearn.convex.slopes import Slopes
from dpbayes_sklearn.schema import Categories, Interval

SLOPE = Design((Interval(-1, 1),))


def belief(covariance, windows=None):
    w = np.array([1.0, -2.0])
    whole = Windows.whole(1) if windows is None else windows
    return GaussianPosterior(w, covariance, 0.1, Slopes.of(w, covariance, SLOPE), whole, n=None)


def test_a_sign_has_a_prior_twice_as_sharp_as_a_number():
    design = Design((Interval(-1, 1), Categories([*"ab"]), Categories([*"xyz"])))
    assert GaussianPrior(design, 3.0).precisions(2.0).tolist() == [12, 24, 12, 12, 12]


def test_predictions_are_constant_outside_of_the_windows():
    narrow = belief(np.diag([0.5, 0.3]), Windows(np.array([0.2]), np.array([0.3])))
    inside, outside = (narrow.predictive(np.array([[x]])) for x in (0.5, 0.9))
    assert inside == outside
    assert narrow.predictive(np.array([[0.4]])) != inside


def test_draws_have_the_mean_and_covariance():
    posterior = belief(np.array([[0.5, 0.2], [0.2, 0.3]]))
    draws = posterior.sample(np.random.default_rng(0), 20_000)
    assert_allclose(draws.mean(axis=0), [1, -2], atol=0.03)
    assert_allclose(np.cov(draws.T), posterior.covariance, atol=0.03)


def test_draws_vary_as_intervals_say_not_as_predictions_do():
    shrunk, wide = 1e-6 * np.eye(2), Slopes.of(np.array([3.0, 4.0]), 4 * np.eye(2), SLOPE)
    posterior = GaussianPosterior(np.zeros(2), shrunk, 0.1, wide, Windows.whole(1), n=None)
    draws = posterior.sample(np.random.default_rng(0), 4000)
    assert_allclose(draws.mean(axis=0), [3, 4], atol=0.2)
    assert_allclose(draws.std(axis=0), 2, rtol=0.1)


def test_released_draws_are_sampled_as_they_are():
    drawn = np.arange(14.0).reshape(7, 2)
    posterior = CoefficientDraws(**vars(belief(np.eye(2))), draws=drawn)
    found = posterior.sample(np.random.default_rng(0), 50)
    assert {tuple(row) for row in found} == {tuple(row) for row in drawn}


def test_predictive_density_is_normal():
    posterior = belief(np.diag([0.5, 0.3]))
    x, grid = np.array([[0.5]]), np.linspace(-9, 9, 4001)
    density = np.exp(posterior.log_predictive(np.repeat(x, 4001, axis=0), grid))
    mean, variance = posterior.predictive(x)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-6)
    assert np.trapezoid(density * grid, grid) == pytest.approx(mean[0], abs=1e-6)
    assert variance[0] == pytest.approx(0.1 + 0.5 + 0.25 * 0.3)
