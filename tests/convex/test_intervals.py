"""Estimates and intervals from an equation whose matrix is noisy."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn.convex.intervals import NoisyEquation

WIDE = 1e4


def _equation(matrix, matrix_noise, right, noise, sampling, prior_sd=WIDE):
    p = len(right)
    return NoisyEquation(
        matrix, matrix_noise, right, noise, sampling, np.zeros(p), np.full(p, prior_sd)
    )


def test_with_an_exact_matrix_it_is_weighted_least_squares():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 9))
    matrix, right = half @ half.T, rng.normal(size=4)
    noise = np.diag(rng.uniform(1, 2, 4))
    found = _equation(matrix, np.zeros((4, 4)), right, noise, matrix)
    estimates, deviations, sampling, privacy, low, high, by_prior = found.effects(np.eye(4), 1.96)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(estimates, inverse @ right, rtol=1e-5)
    variance = np.diag(inverse @ (noise + matrix) @ inverse)
    np.testing.assert_allclose(deviations, np.sqrt(variance), rtol=1e-5)
    np.testing.assert_allclose(sampling, np.sqrt(np.diag(inverse)), rtol=1e-5)
    np.testing.assert_allclose(sampling**2 + privacy**2, deviations**2)
    np.testing.assert_allclose([low, high], estimates + 1.96 * np.outer([-1, 1], deviations))
    assert by_prior.max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("weak", [2.0, 40.0])
def test_intervals_hold_the_solution_however_noisy_the_matrix_is(weak):
    rng, p, inside, identified = np.random.default_rng(1), 3, [], []
    matrix, solution = np.diag([200.0, 200.0, weak]), np.array([1.0, -0.5, 2.0])
    matrix_noise, noise = np.full((p, p), 15.0**2), 20.0**2 * np.eye(p)
    for _ in range(300):
        half = np.triu(rng.normal(size=(p, p)) * 15.0)
        released = matrix + half + np.triu(half, 1).T
        error = rng.normal(size=p) * 20 + np.sqrt(np.diag(matrix)) * rng.normal(size=p)
        found = _equation(released, matrix_noise, matrix @ solution + error, noise, matrix, 10.0)
        effects = found.effects(np.eye(p), 1.96)
        estimates, deviations, *_ = effects
        inside.append(np.abs(estimates - solution) <= 1.96 * deviations)
        identified.append(effects.identified)
    assert np.mean(inside, axis=0).min() > 0.92
    assert (np.mean(identified, axis=0)[2] < 0.2) == (weak < 10)


def test_a_matrix_of_noise_tells_no_more_than_the_prior():
    rng = np.random.default_rng(2)
    released = rng.normal(size=(2, 2)) * 50
    released = released + released.T
    found = _equation(released, np.full((2, 2), 1e6), np.ones(2), np.eye(2), np.eye(2), 3.0)
    effects = found.effects(np.eye(2), 1.96)
    np.testing.assert_allclose(effects.deviations, 3.0, rtol=0.1)
    assert not effects.identified.any()


@pytest.mark.parametrize("bent", [True, False])
def test_a_matrix_that_depends_on_the_solution_is_that_of_the_end(bent):
    # F(d) = 40 tanh(d) = 30 + noise of variance 9: H is the mean slope on the way, 40 tanh(d) / d
    def slope(delta):
        return 40 * np.tanh(delta[0]) / delta[0] if abs(delta[0]) > 1e-9 else 40.0

    found = NoisyEquation(
        np.array([[40.0]]), np.zeros((1, 1)), np.array([30.0]), 9 * np.eye(1), np.zeros((1, 1)),
        np.zeros(1), np.full(1, WIDE), (lambda d: np.sqrt([[slope(d) / 40]])) if bent else None,
    )  # fmt: skip
    effects = found.effects(np.eye(1), 1.96)
    exact = np.arctanh((30 + np.array([0, -1.96, 1.96]) * 3) / 40)
    agree = np.allclose([effects.estimates[0], effects.low[0], effects.high[0]], exact, rtol=1e-3)
    assert agree == bent
