"""Distances between posteriors, as scores of candidates and as errors of releases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from dpbayes_sklearn.categories.posterior import hellinger, kullback_leibler, total_variation
from dpbayes_sklearn.conjugate import BetaBinomial, certify, expected_distance, optimal_distance
from dpbayes_sklearn.mechanisms import Exponential
from dpbayes_sklearn.papers.candidates import Candidates
from dpbayes_sklearn.papers.choices import choice_law
from dpbayes_sklearn.privacy import Budget

PAIRS = [((2.0, 5.0), (5.0, 2.0)), ((1.0, 11.0), (2.0, 10.0)), ((31.0, 70.0), (30.0, 71.0))]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_closed_forms_equal_integrals(a, b) -> None:
    p, q = beta(*a).pdf, beta(*b).pdf
    variation = quad(lambda t: abs(p(t) - q(t)) / 2, 0, 1, limit=200)[0]
    divergence = quad(lambda t: p(t) * math.log(p(t) / q(t)), 0, 1, limit=200)[0]
    assert float(total_variation(a, b)) == pytest.approx(variation, abs=1e-6)
    assert float(kullback_leibler(a, b)) == pytest.approx(divergence, abs=1e-6)


def test_the_inequalities_that_motivate_the_hellinger_distance() -> None:
    """H² <= V <= √2 H and V <= √(D/2), over all posteriors of 30 records."""
    c = Candidates(30, (0.5, 2.0)).counts + np.array([0.5, 2.0])
    h, v, d = (f(c[:, None], c) for f in (hellinger, total_variation, kullback_leibler))
    assert (h**2 <= v + 1e-12).all()
    assert (v <= math.sqrt(2) * h + 1e-12).all()
    assert (v <= np.sqrt(d / 2) + 1e-9).all()
    near = h > 0
    assert (v[near] / h[near]).max() > 1.1  # H itself is no bound on V


@pytest.mark.parametrize("distance", ["total_variation", "kl"])
@pytest.mark.parametrize("n", [5, 40])
def test_other_scores_are_certified_too(distance: str, n: int) -> None:
    found = certify(Exponential(distance=distance), n, (1.0, 1.0), epsilon=1.0)
    assert 1 - 1e-5 < found.pure_epsilon <= 1


def test_kl_for_three_categories_and_a_fit() -> None:
    law = choice_law(Exponential(distance="kl"), 6, (1.0, 1.0, 1.0), Budget(1))
    assert law.worst_case().epsilon <= 1
    mechanism = Exponential(distance="total_variation")
    fitted = BetaBinomial(mechanism=mechanism, random_state=0).fit([1] * 12 + [0] * 28)
    assert 0 < fitted.posterior_.mean() < 1
    assert fitted.guarantee_.epsilon == 1


def test_likelihoods_of_a_choice_are_those_of_the_law() -> None:
    law = choice_law(Exponential(distance="kl"), 8, (1.0, 1.0), Budget(1))
    listed = law.log_probabilities(np.arange(9))[:, 3]
    assert law.log_likelihood(3) == pytest.approx(listed, abs=1e-9)


def test_other_scores_need_enumeration_and_a_form() -> None:
    with pytest.raises(ValueError, match="set calibrate=True"):
        choice_law(Exponential(calibrate=False, distance="kl"), 9, (1.0, 1.0), Budget(1))
    with pytest.raises(ValueError, match="two categories"):
        choice_law(Exponential(distance="total_variation"), 4, (1.0, 1.0, 1.0), Budget(1))


@pytest.mark.parametrize("distance", ["hellinger", "total_variation"])
def test_geometric_attains_the_optimum_in_other_distances_too(distance: str) -> None:
    """Any loss that grows with the distance of counts: Ghosh, Roughgarden and Sundararajan."""
    error = expected_distance("geometric", 12, (1, 1), distance=distance)
    assert error == pytest.approx(optimal_distance(12, (1, 1), distance=distance), rel=1e-3)


def test_hellinger_scores_err_least_in_total_variation_too() -> None:
    """The paper proposes to tailor the score to the error; here that does not pay."""
    errors = {
        score: expected_distance(
            Exponential(distance=score), 30, (1, 1), distance="total_variation"
        )
        for score in ("hellinger", "total_variation", "kl")
    }
    assert errors["hellinger"] < errors["total_variation"] < 1.1 * errors["hellinger"]
    assert errors["kl"] > 1.3 * errors["hellinger"]
