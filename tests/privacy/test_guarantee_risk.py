"""Risks: closed forms that are attained, and bounds that no known mechanism crosses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee, exact
from dpbayes_sklearn.privacy.composition import zcdp_epsilon, zcdp_rho
from dpbayes_sklearn.privacy.guarantee import privacy_risk, true_positive_rate

RATES = (1e-4, 0.01, 0.05, 0.3, 0.7, 0.99)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_attains_the_pure_bounds(epsilon):
    """It tells the truth with probability e^eps/(1 + e^eps), the most that is allowed."""
    truth = 1 / (1 + math.exp(-epsilon))
    risk = privacy_risk(epsilon, 0.0, None, 0.5, 1 - truth)
    assert risk.true_positive_rate == pytest.approx(truth)
    assert risk.posterior == pytest.approx(truth)
    assert risk.advantage == pytest.approx(2 * truth - 1)
    assert risk.exception == 0.0


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 3.0, 40.0, 900.0])
def test_a_pure_guarantee_has_the_least_mu_that_no_attack_crosses(epsilon):
    mu = privacy_risk(epsilon, 0.0, None, 0.5, 0.05).mu
    kink = 1 / (1 + math.exp(min(epsilon, 700.0)))
    for q in (*RATES, kink):
        line = min(math.exp(min(epsilon, 700.0)) * q, 1 - math.exp(-epsilon) * (1 - q))
        assert line <= norm.cdf(norm.ppf(q) + mu) * (1 + 1e-9)
    if epsilon < 30:
        assert norm.cdf(norm.ppf(kink) + 0.999 * mu) < 1 - kink


def test_there_is_no_mu_with_a_delta_or_without_privacy():
    assert privacy_risk(1.0, 1e-6, 0.0243, 0.5, 0.05).mu is None
    assert privacy_risk(math.inf, 0.0, None, 0.5, 0.05).mu == math.inf


def test_bayes_rule_with_other_priors():
    risk = privacy_risk(math.log(4), 0.0, None, 0.2, 0.05)
    assert risk.posterior == pytest.approx(0.2 * 4 / (0.2 * 4 + 0.8))


@pytest.mark.parametrize("rho", [1e-4, 0.0244, 0.5, 2.0])
def test_gaussian_noise_never_crosses_its_bound_and_comes_near_it(rho):
    epsilon = float(zcdp_epsilon(exact(rho), exact(1e-6)))
    for q in RATES:
        attained = norm.cdf(norm.ppf(q) + math.sqrt(2 * rho))
        bound = true_positive_rate(q, epsilon, 1e-6, rho)
        assert attained <= bound <= min(1.7 * attained, 1.0)
    assert (
        2 * norm.cdf(math.sqrt(rho / 2)) - 1
        <= privacy_risk(epsilon, 1e-6, rho, 0.5, 0.05).advantage
    )


def test_discrete_gaussian_noise_does_not_cross_it_either():
    rho, variance = 0.125, 4.0  # of a shift by one
    z = np.arange(-60, 61)
    weights = np.exp(-(z**2) / (2 * variance))
    tail = (weights / weights.sum())[::-1].cumsum()[::-1]  # P(Z >= z)
    epsilon = float(zcdp_epsilon(exact(rho), exact(1e-6)))
    for k in range(50, 80):  # accuse if the released number is at least z[k]
        assert tail[k - 1] <= true_positive_rate(float(tail[k]), epsilon, 1e-6, rho) * (1 + 1e-9)


def test_a_larger_loss_than_that_of_the_posterior_is_as_rare_as_stated():
    rho, delta = 0.0244, 1e-3
    risk = privacy_risk(1.0, delta, rho, 0.5, 0.05)
    loss = math.log(risk.posterior / (1 - risk.posterior))
    mu = math.sqrt(2 * rho)  # the loss of Gaussian noise is normal: mean rho, variance 2 rho
    assert norm.sf((loss - rho) / mu) <= risk.exception == delta


def test_a_delta_without_zcdp():
    risk = privacy_risk(1.0, 1e-6, None, 0.5, 0.05)
    assert risk.exception == 2e-6
    assert risk.posterior == pytest.approx(2 * math.e / (1 + 2 * math.e))
    assert risk.true_positive_rate == pytest.approx(0.05 * math.e + 1e-6)


def test_no_privacy_no_limit():
    guarantee = PrivacyGuarantee.of(Budget(math.inf), "laplace")
    risk = guarantee.risk()
    assert (risk.posterior, risk.true_positive_rate, risk.advantage) == (1.0, 1.0, 1.0)
    assert "Nothing limits" in guarantee.risk_sentence
    assert not guarantee.is_private
    with pytest.raises(ValueError, match="not private"):
        guarantee.to_registry()


@pytest.mark.parametrize("bad", [0, 1, -0.1, math.nan, "0.5", None])
def test_probabilities_are_checked(bad):
    guarantee = PrivacyGuarantee.of(Budget(exact(1.0)), "laplace")
    with pytest.raises(ValueError, match="'prior' parameter of risk must be a float"):
        guarantee.risk(prior=bad)
    with pytest.raises(ValueError, match="'false_positive_rate' parameter of risk"):
        guarantee.risk(false_positive_rate=bad)


def test_the_sentence_rounds_up_and_names_the_unit():
    guarantee = PrivacyGuarantee.of(Budget(exact(1.0)), "laplace")
    assert "about one record is at most 73.2 % sure" in guarantee.risk_sentence
    assert guarantee.risk().posterior < 0.732


def test_a_registry_entry_of_every_variant():
    rho = zcdp_rho(exact(1.0), exact(1e-6))
    budgets = {
        "Pure DP": Budget(exact(1.0)),
        "Approximate DP": Budget(exact(1.0), exact(1e-6)),
        "Zero-concentrated DP": Budget(exact(1.0), exact(1e-6), rho=rho),
    }
    for name, budget in budgets.items():
        entry = PrivacyGuarantee.of(budget, "gaussian", ["it rains"]).to_registry()["deployment"]
        assert entry["dp_flavor"]["name"] == name
        assert "provided that it rains" in entry["dp_flavor"]["unprotected_quantities"]
        assert "number of records" in entry["dp_flavor"]["unprotected_quantities"]
        assert entry["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0
        assert ("delta" in entry["privacy_loss"]["privacy_parameters"]) == (name != "Pure DP")


def test_an_epsilon_beyond_all_exponentials_bounds_nothing():
    assert privacy_risk(800.0, 0.0, None, 0.5, 0.05).true_positive_rate == 1


def test_gaussian_noise_limits_tests_more_than_pure_noise_but_rare_accusations_less():
    """The statement of docs/user_guide/what_epsilon_means.md."""
    rho = 0.0243  # for epsilon = 1 and delta = 1e-6
    for rate in (2.1e-5, 1e-4, 0.01, 0.05, 0.3, 0.5):
        assert true_positive_rate(rate, 1.0, 1e-6, rho) < true_positive_rate(rate, 1.0, 0.0, None)
    few = [true_positive_rate(1e-6, 1.0, delta, rho) for delta in (1e-6, 0.0)]
    assert few == pytest.approx([3.11e-6, 2.72e-6], rel=1e-2)
    # noise itself, not only its bound: continuous Gaussian noise of this rho
    assert norm.cdf(norm.ppf(2e-6) + math.sqrt(2 * rho)) > math.e * 2e-6
    assert norm.cdf(norm.ppf(2e-5) + math.sqrt(2 * rho)) < math.e * 2e-5
