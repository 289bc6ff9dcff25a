"""Gaussian releases one after the other: never less noise than the exact loss needs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.gaussian import composed_delta, composed_rho, grid_rounding_loss

BUDGETS = [
    (Fraction(e), Fraction(d))
    for e in ("0.01", "0.1", "0.5", "1", "3", "10", "50")
    for d in ("1e-3", "1e-6", "1e-12")
]
WIDE = 2**30


def exact_delta(mu, epsilon):
    """Balle and Wang (2018): two normals of variance 1 at distance mu."""
    return norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_rho_is_within_the_budget_and_nearly_uses_it_up(epsilon, delta):
    rho = composed_rho(epsilon, delta, 5000, WIDE)
    used = exact_delta(math.sqrt(2 * rho), float(epsilon))
    assert 0.98 * float(delta) < used <= float(delta)
    assert rho > zcdp_rho(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_noise_that_is_not_wide_falls_back_on_zcdp(epsilon, delta):
    assert composed_rho(epsilon, delta, 5000, 1) == zcdp_rho(epsilon, delta)


def test_mu_beyond_what_was_proven_falls_back_on_zcdp():
    epsilon, delta = Fraction(500), Fraction(1, 10**6)
    assert composed_rho(epsilon, delta, 10, 2**60) == zcdp_rho(epsilon, delta)


@pytest.mark.parametrize("sigma", [8.0, 20.0, 100.0])
def test_discrete_noise_is_as_near_to_rounded_noise_as_claimed(sigma):
    z = np.arange(-int(30 * sigma), int(30 * sigma) + 1)
    weights = np.exp(-(z**2) / (2 * sigma**2))
    low, high = ((z + side) / sigma for side in (-0.5, 0.5))
    # tails from the side where they are small
    rounded = np.where(z > 0, norm.sf(low) - norm.sf(high), norm.cdf(high) - norm.cdf(low))
    ratio = np.abs(np.log(weights / weights.sum()) - np.log(rounded))
    assert ratio.max() <= float(grid_rounding_loss(1, Fraction(sigma) ** 2))
    near = np.abs(z) <= 4 * sigma
    assert ratio[near].max() > 1e-3 / sigma**2, "they are not the same"


def test_the_exact_loss_of_two_discrete_steps_is_within_the_bound():
    """The second step's noise depends on the first answer; all outcomes are listed."""
    epsilon, sigmas = 0.8, (9.0, 14.0)
    z = np.arange(-160, 161)
    total = 0.0

    def law(sigma, shift):
        weights = np.exp(-((z - shift) ** 2) / (2 * sigma**2))
        return weights / np.exp(-(np.arange(-400, 401) ** 2) / (2 * sigma**2)).sum()

    first, moved = law(sigmas[0], 0), law(sigmas[0], 2)
    for index in range(len(z)):
        # the answer decides which sums are asked for next: shifts of 3 or -3, of equal size
        shift = 3 if z[index] % 2 else -3
        p = first[index] * law(sigmas[1], 0)
        q = moved[index] * law(sigmas[1], shift)
        total += np.clip(p - math.exp(epsilon) * q, 0, None).sum()
    rho = Fraction(4, 2 * 81) + Fraction(9, 2 * 196)
    eta = float(grid_rounding_loss(1, Fraction(81)) + grid_rounding_loss(1, Fraction(196)))
    mu = math.sqrt(2 * rho)
    assert total <= math.exp(eta) * exact_delta(mu, epsilon - 2 * eta)
    assert total == pytest.approx(exact_delta(mu, epsilon), rel=2e-2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (1, 0), (1, 1), (math.inf, 0.1)])
def test_budgets_that_are_none_are_refused(epsilon, delta):
    with pytest.raises(ValueError, match="must be positive"):
        composed_rho(epsilon, delta, 10, WIDE)


def test_delta_grows_with_rho_and_falls_with_epsilon():
    deltas = [composed_delta(Fraction(k, 100), Fraction(1)) for k in range(1, 40)]
    assert np.all(np.diff(deltas) > 0)
    deltas = [composed_delta(Fraction(1, 20), Fraction(k, 10)) for k in range(1, 40)]
    assert np.all(np.diff(deltas) < 0)


def test_dp_accounting_composes_gaussian_steps_alike():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    rho = composed_rho(Fraction(1), Fraction(1, 10**6), 5000, WIDE)
    mus = [math.sqrt(2 * rho * share) for share in (0.1, 0.2, 0.7)]
    total = pld.from_gaussian_mechanism(1 / mus[0], value_discretization_interval=1e-4)
    for mu in mus[1:]:
        more = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
        total = total.compose(more)
    assert total.get_epsilon_for_delta(1e-6) == pytest.approx(1.0, rel=2e-3)


def test_a_grid_too_coarse_for_exact_composition_leaves_zcdp():
    pair = Fraction(1, 10**4), Fraction(1, 10**6)
    assert composed_rho(*pair, 100, 0) == zcdp_rho(*pair)
