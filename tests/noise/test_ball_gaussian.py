import numpy as np
import pytest
from scipy.stats import kstest

from dpbayes_sklearn.noise import discrete_gaussian as module
from dpbayes_sklearn.noise.discrete_gaussian import DRAW_LATTICE, _unit_ball, ball_gaussian
from dpbayes_sklearn.noise.integers import random_source

RADIUS = 1.5
SMALLEST_P = 1e-4  # chance of failing the right law; planted faults must fall far below it


def rotation(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def cases():
    """Means inside, at the edge and far outside; stiff, soft and flat directions."""
    for d in (1, 2, 3):
        for eigenvalues, out in [
            ([1.0, 4.0, 0.3], 0.5),
            ([50.0, 2.0, 9.0], 1.0),
            ([3.0, 0.7, 200.0], 8.0),
            ([0.0, 0.0, 0.0], 0.0),
        ]:
            axes = rotation(d, d)
            precision = axes @ np.diag(eigenvalues[:d]) @ axes.T
            mean = out * RADIUS * rotation(d, d + 7)[:, 0]
            yield pytest.param(precision, precision @ mean, id=f"d{d}-out{out}")


def integrated_marginal(precision, linear):
    """Distribution function of the first entry by summing the density over a fine grid."""
    d = len(linear)
    points = {1: 20001, 2: 1201, 3: 141}[d]
    axis = np.linspace(-RADIUS, RADIUS, points)
    w = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    log = -0.5 * np.einsum("ij,jk,ik->i", w, precision, w) + w @ linear
    inside = (w**2).sum(axis=1) <= RADIUS**2
    density = np.where(inside, np.exp(log - log[inside].max()), 0.0).reshape((points,) * d)
    mass = density.reshape(points, -1).sum(axis=1)
    cdf = np.cumsum(mass) - mass / 2
    mean = (w * density.reshape(-1, 1)).sum(axis=0) / density.sum()
    return lambda x: np.interp(x, axis, cdf / mass.sum()), mean


@pytest.mark.parametrize(("precision", "linear"), list(cases()))
def test_marginal_law_and_mean_agree_with_numerical_integration(precision, linear):
    draws = ball_gaussian(precision, linear, RADIUS, 4000, random_source(3))
    cdf, mean = integrated_marginal(precision, linear)
    assert kstest(draws[:, 0], cdf).pvalue > SMALLEST_P
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4.5 * error + 2e-3)


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_a_wrong_precision_is_noticed(factor):
    precision, linear = np.diag([8.0, 3.0]), np.array([1.0, 2.0])
    draws = ball_gaussian(factor * precision, factor * linear, RADIUS, 4000, random_source(3))
    cdf, _ = integrated_marginal(precision, linear)
    assert kstest(draws[:, 0], cdf).pvalue < SMALLEST_P / 10


def uniform_ball_p_value(d=6):
    """In a ball that nothing pulls at, norm**d is uniform."""
    draws = ball_gaussian(np.zeros((d, d)), np.zeros(d), RADIUS, 2000, random_source(3))
    return kstest((np.linalg.norm(draws, axis=1) / RADIUS) ** d, "uniform").pvalue


def test_dropping_the_acceptance_step_is_noticed(monkeypatch):
    assert uniform_ball_p_value() > SMALLEST_P
    monkeypatch.setattr(module._Entry, "log_ratio", lambda self, c, c0: np.full(c.shape, np.inf))
    assert uniform_ball_p_value() < SMALLEST_P / 10


@pytest.mark.parametrize("d", [2, 14, 50, 200, 500])
def test_acceptance_does_not_collapse(d):
    rng = np.random.default_rng(d)
    worst = 1.0
    for stiffness in (1e-6, 1.0, 1e3, 1e6, 1e12):
        for spread in (0, 6):
            for outside in (0, 1, 30):
                eigenvalues = stiffness * 10 ** rng.uniform(-spread, 0, d)
                direction = rng.normal(size=d)
                mean = outside * direction / np.linalg.norm(direction)
                draws, share = _unit_ball(eigenvalues, eigenvalues * mean, 1, random_source(1))
                assert (draws**2).sum() <= 1 + 1e-9
                worst = min(worst, share)
    assert worst > 0.01


def test_draws_lie_on_the_public_lattice_inside_the_ball():
    draws = ball_gaussian(np.eye(4), np.full(4, 1e9), RADIUS, 20, random_source(0))
    steps = draws / (DRAW_LATTICE * RADIUS)
    assert np.array_equal(steps, np.rint(steps))
    assert np.all(np.linalg.norm(draws, axis=1) <= RADIUS * (1 + 4 * DRAW_LATTICE))


def test_a_seed_repeats_and_the_secure_source_does_not():
    arguments = np.eye(3), np.ones(3), 1.0, 2
    same = [ball_gaussian(*arguments, random_source(5)) for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(ball_gaussian(*arguments, random_source()), same[0])
