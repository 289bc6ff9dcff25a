"""Inference from noisy moments: exact without noise, careful with it, and it knows its errors."""

from dataclasses import replace

import numpy as np
import pytest
from dpbayes_sklearn.regression.equations import centred
from numpy.testing import assert_allclose

from dpbayes_sklearn.convex.design import WHOLE_WINDOW, Design, Windows
from dpbayes_sklearn.convex.posterior import (
    GaussianPrior,
    _explaining_at_most_all,
    plug_in_belief,
    predictive_belief,
)
from dpbayes_sklearn.regression import posterior
from dpbayes_sklearn.regression.moments import ReleasedMoments, whole_block
from dpbayes_sklearn.schema import Categories, Interval

DESIGN = Design((Interval(-1, 1),) * 3 + (Categories([*"ab"]), Categories([*"xyz"])))
WINDOWS = Windows.whole(DESIGN.width)
W = np.array([0.1, 0.3, -0.2, 0.1, 0.05, 0.0, 0.1, -0.1])


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
    raised = gram + increment * np.eye(9)
    return ReleasedMoments(DESIGN, n, raised, spread**2, WHOLE_WINDOW, WINDOWS, increment)


def prediction_error(belief, w=W):
    """Mean square error of the mean, in units of the variance of the true regression."""
    x = coordinates(2000, np.random.default_rng(9))
    return np.mean((x @ (belief.mean - w)) ** 2) / np.var(x @ w)


PRECISIONS = GaussianPrior(DESIGN).precisions(WHOLE_WINDOW, WINDOWS)


def noise_aware_belief(moments, precisions, noise):
    return predictive_belief(centred(moments, None), precisions[1:], noise)


def test_little_noise_gives_the_conjugate_posterior():
    moments = released(20_000, 1e-6)
    aware = noise_aware_belief(moments, PRECISIONS, None)
    plain = plug_in_belief(moments, PRECISIONS, None)
    assert prediction_error(aware) < 1e-3
    assert aware.noise == pytest.approx(plain.noise, rel=0.01)
    x = np.concatenate([[1.0, 0.5, -0.5, 0.2, 1.0], [0, 1, 0]])
    assert x @ aware.covariance @ x == pytest.approx(x @ plain.covariance @ x, rel=0.05)


@pytest.mark.parametrize(("noise", "worst"), [(10, 0.05), (100, 0.6), (1000, 1.2), (1e5, 1.2)])
def test_more_noise_fades_to_the_mean(noise, worst):
    errors = [
        prediction_error(noise_aware_belief(released(3000, noise, seed), PRECISIONS, None))
        for seed in range(10)
    ]
    assert np.mean(errors) < worst


def test_plugging_in_explodes_where_this_does_not():
    pairs = []
    for seed in range(10):
        moments = released(3000, 500, seed)
        pairs.append(
            [
                prediction_error(f(moments, PRECISIONS, None))
                for f in (noise_aware_belief, plug_in_belief)
            ]
        )
    aware, plain = np.median(pairs, axis=0)
    assert aware < 1.1
    assert plain > 3 * aware


@pytest.mark.parametrize("noise", [5, 100, 1000])
def test_the_predictive_variance_matches_the_errors(noise):
    """Over models from the prior, squared errors of the mean have the size they are said to.

    Coefficients of size 0.1 explain a variance of 0.027, a fifth of the whole. The prior allows for
    more, so that with much noise the variance is too large rather than too small.
    """
    x, ratios = coordinates(300, np.random.default_rng(9)), []
    for seed in range(40):
        w = np.random.default_rng(1000 + seed).normal(size=8) * 0.1
        moments = released(3000, noise, seed, w, around=0.33)
        belief = noise_aware_belief(moments, PRECISIONS, None)
        variance = np.einsum("ij,jk,ik->i", x, belief.covariance, x)
        ratios.append(np.mean((x @ (belief.mean - w)) ** 2) / np.mean(variance))
    assert 0.3 < np.mean(ratios) < 1.6


def test_variances_are_raised_if_the_features_explain_more_than_there_is():
    known = centred(released(3000, 50), None)
    kept, ample = known.contrasts.kept, replace(known, total=1.0)
    c = known.contrasts.reduced(known.covariance) + 0.05 * np.eye(len(kept))
    assert_allclose(_explaining_at_most_all(ample, c), c, rtol=0)
    short = replace(known, total=0.1 * known.total)
    raised = np.diag(_explaining_at_most_all(short, c) - c) / np.sqrt(known.own_error[kept])
    assert_allclose(raised, raised[0])
    assert 0 < raised[0] <= 4


def test_variances_that_are_far_too_small_by_chance_do_not_explode(monkeypatch):
    two, square = Design((Interval(-1, 1),) * 2), np.array([[0.128, -0.003], [-0.003, 0.058]])
    gram = 2000 * np.diag([1.0, 0.121, 0.029, 0.107])  # the second should be 0.058
    gram[1, 2] = gram[2, 1] = 2000 * -0.025
    gram[1:3, 3] = gram[3, 1:3] = 2000 * np.array([0.027, 0.0625])
    errors = (2000 * np.array([[0, 9, 9, 9], [9, 8, 5, 5], [9, 5, 7, 5], [9, 5, 5, 6]]) / 1000) ** 2
    moments = ReleasedMoments(two, 2000, gram, errors, WHOLE_WINDOW, Windows.whole(2), 0.0)

    def explained():
        w = predictive_belief(centred(moments, None), np.ones(2), None).mean[1:]
        return w @ square @ w / 0.107

    careful = explained()
    monkeypatch.setattr(posterior, "_explaining_at_most_all", lambda known, c: c)
    assert careful < 1.2
    assert explained() > 1.5 * careful


def test_a_public_increment_is_taken_out_again():
    plain = noise_aware_belief(released(3000, 50), PRECISIONS, None)
    raised = noise_aware_belief(released(3000, 50, increment=777.0), PRECISIONS, None)
    assert_allclose(raised.mean, plain.mean, atol=1e-6)


def test_a_declared_noise_variance_is_kept():
    assert noise_aware_belief(released(3000, 50), PRECISIONS, 0.02).noise == pytest.approx(0.02)


@pytest.mark.parametrize("noise", [5, 100])
def test_a_declared_precision_is_not_undone_by_heavy_tails(noise):
    moments = released(3000, noise)
    loose, sharp = (noise_aware_belief(moments, b * PRECISIONS, None).mean[1:] for b in (1, 1e6))
    assert np.abs(sharp).max() < 0.02 < np.abs(loose).max()
