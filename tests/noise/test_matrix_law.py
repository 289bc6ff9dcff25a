"""Matrix noise: variances, bounds and losses as declared."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from dpbayes_sklearn.noise import MatrixNoise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.matrix import GammaDifference, wishart_differences

WEIGHTS = (Fraction(1), Fraction(1, 2), Fraction(3, 2))
LAW = MatrixNoise(Fraction(500), WEIGHTS)


@pytest.fixture(scope="module")
def noise():
    return wishart_differences(LAW.scale, LAW.weights, 20_000, random_source(0))


def test_the_noise_varies_as_declared(noise):
    assert np.allclose(noise.var(axis=0) / LAW.variances, 1, atol=0.08)
    assert np.abs(np.corrcoef(noise.T) - np.eye(6)).max() < 0.05


def test_one_entry_is_a_difference_of_gammas(noise):
    marginal = LAW.marginal()
    grid = np.linspace(-9000, 9000, 20_001)
    density = np.exp(marginal.log_weight(grid))
    cdf = np.cumsum(density) / density.sum()
    seen = np.quantile(noise[:, 0], [0.01, 0.1, 0.25, 0.75, 0.9, 0.99])
    assert np.allclose(np.interp(seen, grid, cdf), [0.01, 0.1, 0.25, 0.75, 0.9, 0.99], atol=0.01)
    half = GammaDifference(marginal.order, marginal.scale / 2)
    density = np.exp(half.log_weight(grid))
    assert abs(np.interp(seen[1], grid, np.cumsum(density) / density.sum()) - 0.1) > 0.03


def test_the_largest_error_is_bounded(noise):
    for delta in (0.3, 0.05):
        bound = LAW.error_bound(delta)
        assert np.mean(np.abs(noise).max(axis=1) > bound) <= delta
        assert bound < 20 * np.sqrt(LAW.variances.max())


@pytest.mark.parametrize("order", [0.7, 1.0, 2.5])
def test_a_difference_of_gammas_has_its_moments(order):
    law = GammaDifference(order, 3.0)
    density = lambda x: float(np.exp(law.log_weight(np.array([x]))[0]))  # noqa: E731
    total = 2 * quad(density, 0, 200, limit=200)[0]
    square = 2 * quad(lambda x: x * x * density(x), 0, 200, limit=200)[0]
    assert square / total == pytest.approx(law.variance, rel=1e-3)
    mgf = 2 * quad(lambda x: np.cosh(0.1 * x) * density(x), 0, 200, limit=200)[0] / total
    assert np.log(mgf) == pytest.approx(float(law.log_mgf(np.array(0.1))), rel=1e-3)
    assert law.sharpness <= np.sqrt(law.variance)
    assert law.steepest == pytest.approx(1 / 3)


def test_one_coordinate_is_laplace_noise():
    """With p = 1 the difference of two exponentials is Laplace, whose loss is exact."""
    law = MatrixNoise(Fraction(4), (Fraction(1),))
    assert law.variances.tolist() == [2 * 4.0**2]
    assert law.privacy_loss(np.array([2])) == 0.5


def test_the_loss_is_the_nuclear_norm():
    z, other = np.array([1.0, 2, -1]), np.array([0.0, -2, 1])
    a = np.array([float(weight) for weight in WEIGHTS])
    shift = (np.outer(z, z) - np.outer(other, other))[LAW.upper].astype(int)
    u, v = a * (z - other), a * (z + other)
    expected = np.linalg.norm(u) * np.linalg.norm(v) / 500
    assert LAW.privacy_loss(shift) == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [(Fraction(0), WEIGHTS), (Fraction(1), ())])
def test_a_law_without_noise_is_refused(wrong):
    with pytest.raises(ValueError, match="positive weight"):
        MatrixNoise(*wrong)
