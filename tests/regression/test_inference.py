"""Inference from noisy moments: exact without noise, careful with it, and it knows its errors."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import BayesianRidge

from dpbayes_sklearn.convex.coefficients import coefficient_table
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.regression.inference import update
from dpbayes_sklearn.regression.moments import ReleasedMoments, exact_moments, whole_block
from dpbayes_sklearn.schema import Categories, Interval, Schema
from tests.linear_records import linear_records

NUMBERS = Design((Interval(-1, 1),) * 4)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 4))
T = X @ [0.3, -0.1, 0.0, 0.2] + 0.1 + RNG.normal(size=300) * 0.05

DESIGN = Design((Interval(-1, 1),) * 3 + (Categories([*"ab"]), Categories([*"xyz"])))
W = np.array([0.1, 0.3, -0.2, 0.1, 0.05, 0.0, 0.1, -0.1])
TRUTH = [0.3, -0.2, 0.1, 0.1, 0.1, -0.1]  # of numbers, sign (twice its slope), levels
SCHEMA = Schema(dict(zip("abcde", DESIGN.domains, strict=True)), target=Interval(-1, 1))


def exact(X=X, t=T, design=NUMBERS):
    return exact_moments(linear_records(X, t, design))


def aware(moments, **options):
    return update(GaussianPrior(moments.design, inference="noise_aware", **options), moments)


def plugged(moments, **options):
    return update(GaussianPrior(moments.design, **options), moments)


# Exact moments, or noisy ones that are taken as exact


def test_update_is_the_closed_form():
    posterior = plugged(exact(), precision=3.0, noise_variance=0.01)
    z = np.column_stack([np.ones(300), X])
    precision = z.T @ z / 0.01 + np.diag([0, 3, 3, 3, 3.0])
    assert_allclose(posterior.covariance, np.linalg.inv(precision), rtol=1e-9)
    assert_allclose(posterior.mean(), np.linalg.solve(precision, z.T @ T / 0.01), rtol=1e-9)
    assert posterior.noise_variance == 0.01


def test_learned_noise_variance_is_the_mean_squared_residual():
    posterior = plugged(exact(), precision=1e-9)
    residuals = T - (X @ posterior.mean()[1:] + posterior.mean()[0])
    assert posterior.noise_variance == pytest.approx(np.mean(residuals**2), rel=1e-9)


def test_predictions_agree_with_bayesian_ridge_given_its_hyperparameters():
    ridge = BayesianRidge().fit(X, T)
    posterior = plugged(exact(), precision=ridge.lambda_, noise_variance=1 / ridge.alpha_)
    mean, variance = posterior.predictive(X)
    expected, std = ridge.predict(X, return_std=True)
    assert_allclose(mean, expected, atol=1e-6)
    assert_allclose(np.sqrt(variance), std, rtol=5e-3)  # it leaves out that of the constant


def test_a_sign_has_the_prior_of_two_indicators():
    labels = np.array([["a"], ["b"], ["b"], ["a"], ["b"]], dtype=object)
    t = np.array([0.1, 0.5, 0.4, 0.0, 0.9])
    sign = exact(labels, t, Design((Categories([*"ab"]),)))
    mean = plugged(sign, precision=2.0, noise_variance=0.1).mean()
    one_hot = np.column_stack([np.ones(5), labels == ["a", "b"]]).astype(float)
    precision = one_hot.T @ one_hot / 0.1 + np.diag([0.0, 2.0, 2.0])
    w = np.linalg.solve(precision, one_hot.T @ t / 0.1)
    assert_allclose([mean[0] - mean[1], mean[0] + mean[1]], [w[0] + w[1], w[0] + w[2]])


def test_without_an_intercept_the_constant_is_nothing():
    posterior = plugged(exact(design=Design((Interval(-1, 1),) * 4, intercept=False)))
    assert posterior.mean()[0] == 0
    assert not posterior.covariance[0].any()


def test_moments_without_a_model_are_projected():
    gram = exact().gram - 400 * np.eye(6)
    posterior = plugged(ReleasedMoments(NUMBERS, 300, gram, np.ones((6, 6))))
    assert np.isfinite(posterior.mean()).all()
    assert np.linalg.eigvalsh(posterior.covariance)[0] > 0


def test_errors_of_coefficients_are_known_unless_noise_is_ignored():
    assert plugged(exact()).slopes is not None
    assert aware(released(3000, 50)).slopes is not None
    assert plugged(released(3000, 50)).slopes is None


# Moments whose noise is known


def coordinates(n, rng):
    levels = np.eye(3)[rng.integers(0, 3, n)]
    return np.column_stack(
        [np.ones(n), rng.uniform(-1, 1, (n, 3)), rng.choice([-1.0, 1.0], n), levels]
    )


def released(n, noise, seed=0, w=W, around=0.1, increment=0.0):
    """Moments of a linear model with independent Gaussian noise of this standard deviation.

    The target's own two sums have noise of their own.
    """
    rng = np.random.default_rng(seed)
    x = coordinates(n, rng)
    z = np.column_stack([x, x @ w + rng.normal(size=n) * around])
    block = whole_block(DESIGN)
    spread = np.zeros((9, 9))
    spread[block.rows, block.columns] = noise
    spread[[0, -1], -1] = min(noise, 5)
    gram = np.triu(z.T @ z + rng.normal(size=(9, 9)) * spread)
    gram, spread = gram + np.triu(gram, 1).T, np.maximum(spread, spread.T)
    levels = 1 + np.flatnonzero(DESIGN.levels)
    gram[levels, levels], spread[levels, levels] = gram[0, levels], spread[0, levels]
    return ReleasedMoments(DESIGN, n, gram + increment * np.eye(9), spread**2, increment)


def table(posterior, level=0.95):
    return coefficient_table(SCHEMA, DESIGN, posterior, 1.0, 0.0, level, "").rows[1:]


def prediction_error(belief, w=W):
    """Mean square error of the mean, in units of the variance of the true regression."""
    x = coordinates(2000, np.random.default_rng(9))
    return np.mean((x @ (belief.mean() - w)) ** 2) / np.var(x @ w)


def test_little_noise_gives_the_conjugate_posterior():
    moments = released(20_000, 1e-6)
    careful, plain = aware(moments), plugged(moments)
    assert prediction_error(careful) < 1e-3
    assert careful.noise_variance == pytest.approx(plain.noise_variance, rel=0.05)
    rows = table(careful)
    assert_allclose([row.estimate for row in rows], TRUTH, atol=0.01)
    assert max(row.privacy_sd for row in rows) < 0.1 * min(row.sampling_sd for row in rows)


@pytest.mark.parametrize(("noise", "worst"), [(10, 0.05), (100, 0.8), (1000, 1.2), (1e5, 4)])
def test_more_noise_does_not_explode(noise, worst):
    errors = [prediction_error(aware(released(3000, noise, seed))) for seed in range(10)]
    assert np.mean(errors) < worst


def test_plugging_in_explodes_where_this_does_not():
    pairs = [
        [prediction_error(f(released(3000, 500, seed))) for f in (aware, plugged)]
        for seed in range(10)
    ]
    careful, plain = np.median(pairs, axis=0)
    assert careful < 1.1
    assert plain > 3 * careful


@pytest.mark.parametrize("noise", [5, 100, 1000])
def test_the_predictive_variance_is_no_smaller_than_the_errors(noise):
    """Over models in which the features explain about a fifth of the target's variance."""
    x, ratios = coordinates(300, np.random.default_rng(9)), []
    for seed in range(30):
        w = np.random.default_rng(1000 + seed).normal(size=8) * 0.1
        belief = aware(released(3000, noise, seed, w, around=0.33))
        variance = np.einsum("ij,jk,ik->i", x, belief.covariance, x)
        ratios.append(np.mean((x @ (belief.mean() - w)) ** 2) / np.mean(variance))
    assert 0.05 < np.mean(ratios) < 1.6


def test_a_public_increment_is_taken_out_again():
    plain, raised = aware(released(3000, 50)), aware(released(3000, 50, increment=777.0))
    assert_allclose(raised.mean()[:5], plain.mean()[:5], atol=1e-6)


def test_a_declared_noise_variance_is_kept():
    assert aware(released(3000, 50), noise_variance=0.02).noise_variance == pytest.approx(0.02)


@pytest.mark.parametrize("noise", [5, 100])
def test_a_declared_precision_is_kept(noise):
    loose, sharp = (aware(released(3000, noise), precision=b).mean()[1:] for b in (1, 1e6))
    assert np.abs(sharp).max() < 0.02 < np.abs(loose).max()


@pytest.mark.parametrize("noise", [5, 50, 200])
def test_intervals_of_coefficients_cover(noise):
    """95 % intervals of slopes and contrasts, over 40 releases of one model."""
    hits = []
    for seed in range(40):
        rows = table(aware(released(3000, noise, seed, around=0.3)))
        hits.append([row.low < truth < row.high for row, truth in zip(rows, TRUTH, strict=True)])
    assert np.mean(hits, axis=0).min() >= 0.8
    assert np.mean(hits) >= 0.92


def test_a_column_that_the_noise_hides_is_not_identified():
    rows = table(aware(released(3000, 1e5)))
    assert not any(row.identified for row in rows[:3])
    assert all(math.isinf(row.high) and math.isinf(row.low) for row in rows[:3])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_larger_levels_are_wider(level):
    found = aware(released(3000, 100))
    for narrow, wide in zip(table(found, level - 0.1), table(found, level), strict=True):
        assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high
        assert wide.sd == narrow.sd  # of the 95 % interval, whichever is asked for


def test_a_model_without_a_constant_has_no_error_of_one():
    design = Design((Interval(-1, 1),), intercept=False)
    gram = np.array([[100.0, 0, 0], [0, 30, 10], [0, 10, 30]])
    slopes = aware(ReleasedMoments(design, 100, gram, np.diag([0.0, 4, 4]))).slopes
    assert np.isfinite(slopes.growth).all()
    assert slopes.mean[0] == 0
    assert not (slopes.sampling + slopes.privacy)[0].any()


def test_a_curvature_within_its_own_noise_identifies_nothing():
    """Whatever the noise made of it: a tenth of such releases would exclude the slope by far."""
    design = Design((Interval(-1, 1),), intercept=False)
    for seen, known in ((30.0, False), (-30.0, False), (60.0, True)):
        gram = np.array([[100.0, 0, 0], [0, seen, 10], [0, 10, 30]])
        noise = np.array([[0.0, 0, 0], [0, 100, 4], [0, 4, 4]])
        growth = aware(ReleasedMoments(design, 100, gram, noise)).slopes.growth[1]
        assert (growth < 0.2) == known
