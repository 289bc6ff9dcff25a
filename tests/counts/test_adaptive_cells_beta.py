"""Moments of a Beta prior with a Gaussian likelihood, against fine quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln

from dpbayes_sklearn.counts.adaptive_cells import beta_moments

CASES = [
    (m, k, y, v, n)
    for m in (0.001, 0.1, 0.5, 0.8)
    for k in (0.67, 9.0, 300.0)
    for y, v in ((0.1, 1e-3), (0.4, 0.01), (-0.3, 0.04), (1.3, 0.2), (0.2, 100.0))
    for n in (50.0, 1e4)
    if (y - m) ** 2 < 16 * (m * (1 - m) / (1 + k) + v + 1 / n)  # no conflict beyond belief
]


@pytest.mark.parametrize(("m", "k", "y", "v", "n"), CASES)
def test_moments_are_those_of_the_posterior(
    m: float, k: float, y: float, v: float, n: float
) -> None:
    nearest, constant = min(max(y, 0.0), 1.0), betaln(k * m, k * (1 - m))

    def density(odds: float, power: int) -> float:
        theta = 1 / (1 + math.exp(-odds))
        error = v + theta * (1 - theta) / n + 0.25 / n**2
        z = (y - theta) ** 2 / error - (y - nearest) ** 2 / (v + 1 / n)  # largest near 0
        prior = k * m * math.log(theta) + k * (1 - m) * math.log1p(-theta) - constant
        return theta**power * math.exp(prior - z / 2) / math.sqrt(error)

    # below the first node the likelihood is that at zero
    low, points = -16.0, [-8.0, -4.0, -2.0, 0.0, 2.0, 5.0]
    parts = [quad(density, low, 25.0, (power,), points=points, limit=500)[0] for power in (0, 1, 2)]
    parts[0] += density(low, 0) / (k * m)
    mean = parts[1] / parts[0]
    variance = parts[2] / parts[0] - mean**2
    arrays = [np.array([value]) for value in (m, k, y, v, n)]
    found = beta_moments(*arrays)
    assert found[0][0] == pytest.approx(mean, rel=0.05, abs=2e-4)
    assert found[1][0] == pytest.approx(variance, rel=0.25, abs=1e-6)


def test_without_data_the_prior_remains() -> None:
    m = np.linspace(0.01, 0.99, 21)
    found, spread, slope = beta_moments(m, 0.67 + 0 * m, 0.3 + 0 * m, 1e12 + 0 * m, 10 + 0 * m)
    np.testing.assert_allclose(found, m, atol=0.01)
    np.testing.assert_allclose(spread, m * (1 - m) / 1.67, rtol=0.1)
    np.testing.assert_allclose(slope, 1.0, atol=0.1)


# at m = 1/2 the nodes change sides, so a difference across it is no slope
@pytest.mark.parametrize(("m", "k", "y", "v", "n"), [case for case in CASES if case[0] != 0.5])
def test_the_slope_is_that_of_the_mean(m: float, k: float, y: float, v: float, n: float) -> None:
    arrays = [np.array([value]) for value in (k, y, v, n)]
    low, high = (beta_moments(np.array([m * f]), *arrays)[0][0] for f in (0.98, 1.02))
    slope = beta_moments(np.array([m]), *arrays)[2][0]
    assert slope == pytest.approx((high - low) / (0.04 * m), rel=0.4, abs=0.05)
