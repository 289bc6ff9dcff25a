"""Conversions of zCDP: against the definition, against each other, and never too small."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import log_ndtr

from dpbayes_sklearn.privacy.composition import (
    best_order,
    pure_divergence,
    pure_left,
    renyi_epsilon,
    zcdp_epsilon,
    zcdp_rho,
)

MILLIONTH = Fraction(1, 10**6)
deltas = st.fractions(Fraction(1, 10**12), Fraction(1, 2)).filter(bool)


def randomised_response(order: np.ndarray, epsilon: float) -> np.ndarray:
    """Return its divergence by the definition, and the bound that it tends to where that is off."""
    honest = 1 / (1 + math.exp(-epsilon))
    logs = np.logaddexp(
        order * math.log(honest) + (1 - order) * math.log1p(-honest),
        order * math.log1p(-honest) + (1 - order) * math.log(honest),
    )
    square = order * epsilon**2 / 2
    return np.where(order * epsilon < 1e-3, square, np.minimum(logs / (order - 1), square))


def conversion(rho: float, delta: float, pure: dict[float, int] | None = None) -> float:
    """Return the bound by a fine grid of orders, in plain floats."""
    order = 1 + np.geomspace(1e-6, 1e13, 40_001)
    divergence = order * rho
    for epsilon, count in (pure or {}).items():
        divergence = divergence + count * randomised_response(order, epsilon)
    gap = (-math.log(delta) - np.log(order)) / (order - 1) + np.log1p(-1 / order)
    return float((divergence + gap).min())


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Return the exact delta of the continuous Gaussian of this rho: a lower bound for zCDP."""
    ratio = math.sqrt(2 * rho)
    upper, lower = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
    return float(np.exp(log_ndtr(upper)) - np.exp(epsilon + log_ndtr(lower)))


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 0.0244, 1.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_epsilon_is_the_best_order_of_a_fine_grid_and_no_less(rho: float, delta: float) -> None:
    epsilon = float(zcdp_epsilon(Fraction(rho), Fraction(delta)))
    assert epsilon == pytest.approx(max(conversion(rho, delta), 0), rel=1e-6, abs=1e-15)
    assert gaussian_delta(rho, epsilon) <= delta


def test_conversions_give_the_figures_of_the_literature() -> None:
    rho = zcdp_rho(Fraction(1), MILLIONTH)
    assert float(rho) == pytest.approx(0.0244, abs=1e-4)
    assert math.sqrt(1 / (2 * rho)) == pytest.approx(4.53, abs=0.005)
    # rho + 2 sqrt(rho log(1/delta)) is Bun and Steinke's simple conversion
    simple = float(rho) + 2 * math.sqrt(rho * math.log(10**6))
    assert 1 < simple < 1.2


@given(epsilon=st.fractions(Fraction(1, 10**4), 50), delta=deltas)
def test_what_is_afforded_costs_no_more_than_was_given(epsilon: Fraction, delta: Fraction) -> None:
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon
    assert zcdp_epsilon(rho * Fraction(1001, 1000), delta) > epsilon


@given(epsilon=st.fractions(Fraction(1, 100), 5), delta=deltas)
def test_an_inverted_conversion_would_be_seen(epsilon: Fraction, delta: Fraction) -> None:
    """Taking rho for epsilon, or delta for 1 - delta, does not pass the test above."""
    assume(delta < Fraction(1, 1000))  # a large delta pays for a small epsilon
    assert zcdp_epsilon(epsilon, delta) > epsilon
    assert zcdp_epsilon(zcdp_rho(epsilon, 1 - delta), delta) > epsilon or delta == Fraction(1, 2)


@given(
    rho=st.fractions(0, 1, max_denominator=10**4),
    pure=st.dictionaries(
        st.fractions(Fraction(1, 1000), 3, max_denominator=1000), st.integers(1, 200), max_size=3
    ),
)
def test_mixtures(rho: Fraction, pure: dict[Fraction, int]) -> None:
    epsilon = zcdp_epsilon(rho, MILLIONTH, pure)
    expected = conversion(float(rho), 1e-6, {float(e): n for e, n in pure.items()})
    assert float(epsilon) == pytest.approx(max(expected, 0) if rho or pure else 0, rel=1e-5)
    apart = zcdp_epsilon(rho, MILLIONTH) + sum(e * n for e, n in pure.items())
    together = zcdp_epsilon(rho + sum(n * e**2 / 2 for e, n in pure.items()), MILLIONTH)
    assert epsilon <= min(apart, together) + Fraction(1, 10**9)


@pytest.mark.parametrize("order", [1.001, 1.5, 3, 22, 1000])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.01, 0.1, 0.5, 2, 40])
def test_the_divergence_of_a_pure_release(order: float, epsilon: float) -> None:
    """That of randomised response, by the definition, in a hundred digits."""
    with localcontext(prec=100):
        alpha, e = Decimal(str(order)), Decimal(str(epsilon))
        honest = 1 / (1 + (-e).exp())
        moment = honest * ((alpha - 1) * e).exp() + (1 - honest) * ((1 - alpha) * e).exp()
        exact = Fraction(moment.ln() / (alpha - 1))
    bound = pure_divergence(Fraction(str(order)), Fraction(str(epsilon)))
    assert exact <= bound <= exact * (1 + Fraction(1, 10**6)) + Fraction(1, 10**30)
    assert bound <= min(Fraction(str(epsilon)), Fraction(str(order * epsilon**2 / 2)) * 2)


@given(order=st.fractions(Fraction(11, 10), 1000), slack=st.fractions(0, 20))
def test_what_is_left_uses_the_slack_up(order: Fraction, slack: Fraction) -> None:
    def divergence(epsilon: Fraction) -> Fraction:
        return pure_divergence(order, epsilon)

    left = pure_left(order, slack)
    assert divergence(left) <= slack
    assert divergence(left * Fraction(1001, 1000) + Fraction(1, 10**12)) > slack


def test_the_order_of_a_ceiling_is_the_best_when_zcdp_alone_reaches_it() -> None:
    order, rho = best_order(Fraction(1), MILLIONTH), zcdp_rho(Fraction(1), MILLIONTH)
    at_order = renyi_epsilon(order, rho, MILLIONTH)
    assert zcdp_epsilon(rho, MILLIONTH) <= at_order + Fraction(1, 10**14) <= 1
    assert renyi_epsilon(order, rho / 2, MILLIONTH) > zcdp_epsilon(rho / 2, MILLIONTH)


def test_the_edges() -> None:
    assert zcdp_epsilon(Fraction(1), Fraction(0)) == math.inf
    assert zcdp_epsilon(math.inf, MILLIONTH) == math.inf
    assert zcdp_epsilon(Fraction(1), Fraction(1)) == 0
    assert zcdp_epsilon(Fraction(0), MILLIONTH) == 0
    assert zcdp_rho(Fraction(1), Fraction(0)) == 0
    assert zcdp_rho(math.inf, MILLIONTH) == math.inf
    assert zcdp_rho(Fraction(1), Fraction(1)) == math.inf
    assert zcdp_rho(Fraction(0), MILLIONTH) >= 0
    assert zcdp_rho(Fraction(1, 10**9), Fraction(1, 10**300)) > 0
