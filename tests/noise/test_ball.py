"""Noise of density exp(-|u|/s) for vectors: its law, its loss, and that its rounding is exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, gamma, kstest

from dpbayes_sklearn.noise import ball
from dpbayes_sklearn.noise.ball import BallNoise, ball_vectors
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import draw
from dpbayes_sklearn.noise.matrix import Normals

SCALE = Fraction(10**6)
SMALLEST_P = 1e-4  # chance of failing the right law; planted faults must fall far below it


def drawn(p, count=1500, scale=SCALE, seed=0):
    return ball_vectors(scale, p, count, random_source(seed)) / float(SCALE)


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_lengths_have_the_gamma_law_of_the_density(p):
    """The density e^-r of vectors makes that of their lengths r^(p-1) e^-r."""
    found = np.linalg.norm(drawn(p), axis=1)
    assert kstest(found, gamma(p).cdf).pvalue > SMALLEST_P
    for factor in (0.8, 1.25):
        assert kstest(factor * found, gamma(p).cdf).pvalue < SMALLEST_P / 10


@pytest.mark.parametrize("p", [2, 3, 6])
def test_no_direction_is_preferred(p):
    """Along any axis the square of a unit vector's part is Beta(1/2, (p - 1)/2)."""
    u, law = drawn(p), beta(0.5, (p - 1) / 2).cdf
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    for axis in (*np.eye(p), np.ones(p) / math.sqrt(p)):
        assert kstest((u @ axis) ** 2, law).pvalue > SMALLEST_P / (p + 1)
        assert abs(np.mean(u @ axis > 0) - 0.5) < 4.5 / math.sqrt(4 * len(u))
    bent = u * np.linspace(0.7, 1.3, p)
    bent /= np.linalg.norm(bent, axis=1, keepdims=True)
    assert kstest(bent[:, 0] ** 2, law).pvalue < SMALLEST_P / 10


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 4])
def test_variances_and_bounds_are_those_of_the_law(p):
    law = BallNoise(Fraction(1000), p)
    found = draw(law, 4000, random_source(1))
    assert found.shape == (4000, p)
    assert law.variances == pytest.approx(np.full(p, (p + 1) * 1000.0**2))
    assert found.var(axis=0) == pytest.approx(law.variances, rel=0.2)
    largest = np.abs(found).max(axis=1)
    assert np.mean(largest > law.error_bound(0.05)) <= 0.06
    assert law.error_bound(0.05) < 1.8 * np.quantile(largest, 0.95)  # no looser than that


def test_the_loss_of_a_shift_is_attained_by_the_density():
    law, w = BallNoise(Fraction(3), 2), np.array([2.0, -1.0])
    far = 1e6 * w
    log_ratio = (np.linalg.norm(far) - np.linalg.norm(far - w)) / 3
    assert law.privacy_loss(w.astype(int)) == pytest.approx(log_ratio, rel=1e-5)
    rng = np.random.default_rng(0)
    places = rng.normal(size=(1000, 2)) * 10
    lost = (np.linalg.norm(places, axis=1) - np.linalg.norm(places - w, axis=1)) / 3
    assert np.abs(lost).max() <= law.privacy_loss(w.astype(int))


def test_rounding_is_the_floor_of_the_exact_number(monkeypatch):
    rng, p = np.random.default_rng(0), 4
    cells = [int(v) for v in rng.integers(-(2**61), 2**61, (p + 1) ** 2)]
    monkeypatch.setattr(ball, "exact_normals", lambda *_: Normals(np.array(cells, object), 60))
    for scale in (Fraction(1, 3), Fraction(22, 7), Fraction(10**5)):
        (found,) = ball_vectors(scale, p, 1, random_source(0))
        g = np.array([Fraction(c, 2**60) for c in cells], object).reshape(p + 1, p + 1)
        u = (g[:, :1] * g[:, 1:]).sum(axis=0)
        assert found.tolist() == [math.floor(scale * v + Fraction(1, 2)) for v in u]


def test_bits_are_drawn_until_they_decide(monkeypatch):
    asked = []

    def source(size):
        asked.append(size)
        return random_source(len(asked))(size)

    coarse = Normals(np.array([3, -2, 1, 0] * 4, object), 2)
    monkeypatch.setattr(ball, "exact_normals", lambda *_: coarse)
    (found,) = ball_vectors(Fraction(10**6), 3, 1, source)
    assert asked
    fine = coarse
    for seed in range(1, len(asked) + 1):
        fine = fine.refined(random_source(seed))
    g = np.array([Fraction(int(c), 2**fine.bits) for c in fine.cells], object).reshape(4, 4)
    exact = 10**6 * (g[:, :1] * g[:, 1:]).sum(axis=0)
    assert np.abs(np.array([float(e) for e in exact]) - found).max() <= 0.51


def test_noise_beyond_64_bits_is_an_error_and_laws_need_a_scale():
    with pytest.raises(OverflowError, match="coarser grid"):
        ball_vectors(Fraction(2**70), 2, 1, random_source(0))
    for scale, p in ((Fraction(0), 2), (Fraction(1), 0)):
        with pytest.raises(ValueError, match="dimension and a scale"):
            BallNoise(scale, p)
