import numpy as np
import pytest
from dpbayes_sklearn.regression.slopes import Slopes
from numpy.testing import assert_allclose
from sklearn.linear_model import BayesianRidge

from dpbayes_sklearn.convex.design import WHOLE_WINDOW, Design, Scale, Windows
from dpbayes_sklearn.convex.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.regression.moments import Moments, ReleasedMoments
from dpbayes_sklearn.schema import Categories, Interval

DESIGN = Design((Interval(-1, 1),) * 4)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 4))
T = X @ [0.3, -0.1, 0.0, 0.2] + 0.1 + RNG.normal(size=300) * 0.05


def exact(X=X, t=T, design=DESIGN):
    return Moments(design, Scale(0.0, 1.0), LocalRecords([(Table(X), t)])).without_noise()


def test_update_is_the_closed_form():
    posterior = GaussianPrior(DESIGN, precision=3.0, noise_variance=0.01).update(exact())
    z = np.column_stack([np.ones(300), X])
    precision = z.T @ z / 0.01 + np.diag([0, 3, 3, 3, 3.0])
    assert_allclose(posterior.covariance, np.linalg.inv(precision), rtol=1e-9)
    assert_allclose(posterior.mean(), np.linalg.solve(precision, z.T @ T / 0.01), rtol=1e-9)
    assert posterior.noise_variance == 0.01


def test_learned_noise_variance_is_the_mean_squared_residual():
    posterior = GaussianPrior(DESIGN, precision=1e-9).update(exact())
    residuals = T - (X @ posterior.mean()[1:] + posterior.mean()[0])
    assert posterior.noise_variance == pytest.approx(np.mean(residuals**2), rel=1e-9)


def test_predictions_agree_with_bayesian_ridge_given_its_hyperparameters():
    ridge = BayesianRidge().fit(X, T)
    prior = GaussianPrior(DESIGN, precision=ridge.lambda_, noise_variance=1 / ridge.alpha_)
    mean, variance = prior.update(exact()).predictive(X)
    expected, std = ridge.predict(X, return_std=True)
    assert_allclose(mean, expected, atol=1e-6)
    assert_allclose(np.sqrt(variance), std, rtol=5e-3)  # it leaves out that of the constant


def test_a_sign_has_the_prior_of_two_indicators():
    labels = np.array([["a"], ["b"], ["b"], ["a"], ["b"]], dtype=object)
    t = np.array([0.1, 0.5, 0.4, 0.0, 0.9])
    sign = Design((Categories([*"ab"]),))
    mean = GaussianPrior(sign, 2.0, 0.1).update(exact(labels, t, sign)).mean()
    one_hot = np.column_stack([np.ones(5), labels == ["a", "b"]]).astype(float)
    precision = one_hot.T @ one_hot / 0.1 + np.diag([0.0, 2.0, 2.0])
    w = np.linalg.solve(precision, one_hot.T @ t / 0.1)
    assert_allclose([mean[0] - mean[1], mean[0] + mean[1]], [w[0] + w[1], w[0] + w[2]])


def test_without_an_intercept_the_constant_is_nothing():
    design = Design((Interval(-1, 1),) * 4, intercept=False)
    posterior = GaussianPrior(design).update(exact(design=design))
    assert posterior.mean()[0] == 0
    assert not posterior.covariance[0].any()


def test_moments_without_a_model_are_projected():
    gram = exact().gram - 400 * np.eye(6)
    released = ReleasedMoments(DESIGN, 300, gram, np.ones((6, 6)), WHOLE_WINDOW, Windows.whole(4))
    posterior = GaussianPrior(DESIGN).update(released)
    assert np.isfinite(posterior.mean()).all()
    assert np.linalg.eigvalsh(posterior.covariance)[0] > 0


def belief(covariance, windows=None):
    w = np.array([1.0, -2.0])
    whole = Windows.whole(1) if windows is None else windows
    slopes = Slopes.of(w, covariance, Design((Interval(-1, 1),)))
    return GaussianPosterior(w, covariance, 0.1, slopes, whole)


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


def test_predictive_density_is_normal():
    posterior = belief(np.diag([0.5, 0.3]))
    x, grid = np.array([[0.5]]), np.linspace(-9, 9, 4001)
    density = np.exp(posterior.log_predictive(np.repeat(x, 4001, axis=0), grid))
    mean, variance = posterior.predictive(x)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-6)
    assert np.trapezoid(density * grid, grid) == pytest.approx(mean[0], abs=1e-6)
    assert variance[0] == pytest.approx(0.1 + 0.5 + 0.25 * 0.3)
