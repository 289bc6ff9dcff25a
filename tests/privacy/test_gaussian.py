"""Calibrated Gaussian noise against the exact delta: never above, hardly below; faults are seen."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

import dpbayes_sklearn.privacy.gaussian as module
from benchmarks.audit.hockey_stick import convolved_delta
from dpbayes_sklearn.privacy.composition import zcdp_epsilon
from dpbayes_sklearn.privacy.gaussian import (
    Shifts,
    gaussian_delta,
    gaussian_rho,
    gaussian_variance,
    squared_norm,
)
from tests.hockey_stick import enumerated_delta

PATTERNS = [  # cells by (amount, weight)
    {(1, 1): 1},
    {(1, 1): 2},
    {(2, 1): 3},
    {(1, 1): 24},
    {(1, 1): 2, (3, 1): 2},
    {(5, 1): 2, (3, 1): 4},
    {(1, 1): 1, (2, 1): 1, (3, 1): 1},
    {(1, 2): 2, (1, 3): 4},
    {(1, 1): 2, (1, 6): 2},
    {(2, 3): 1, (1, 4): 3},
]
BUDGETS = [(Fraction(1), 1e-6), (Fraction(3), 1e-9), (Fraction(10), 1e-6), (Fraction(1, 5), 1e-3)]


def analytic_sigma(epsilon: float, delta: float) -> float:
    """Return sigma over sensitivity of the continuous Gaussian (Balle and Wang 2018)."""

    def excess(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        a, b = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
        return float(ndtr(a) - math.exp(epsilon + log_ndtr(b))) - delta

    return math.exp(brentq(excess, -4, 12))


def sigma(variance: Fraction, shifts: Shifts) -> float:
    return math.sqrt(variance / squared_norm(shifts))


ALIKE = [[(size, 1) for size in sizes] for sizes in ([1], [1, 1], [2, 1], [3], [2, 2], [1, 1, 1])]


@pytest.mark.parametrize("shifts", [*ALIKE, [(1, 1), (1, 2)], [(1, 2), (2, 3)]], ids=str)
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(9)])
def test_the_two_exact_ways_agree_and_the_bound_is_above(
    shifts: list[tuple[int, int]], variance: Fraction
) -> None:
    wide = variance >= 2
    variance *= max(weight for _, weight in shifts)
    counts = Counter(shifts)
    for epsilon in (0.1, 1.0, 2.5):
        listed = enumerated_delta(variance, epsilon, shifts)
        assert convolved_delta(variance, epsilon, counts) == pytest.approx(listed, rel=1e-6)
        bound = gaussian_delta(variance, Fraction(epsilon), counts)
        assert listed <= bound
        if wide:
            assert bound <= listed * 1.01


@pytest.mark.parametrize("shifts", PATTERNS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS, ids=str)
def test_the_noise_is_enough_and_hardly_more(
    epsilon: Fraction, delta: float, shifts: Shifts
) -> None:
    variance = gaussian_variance(epsilon, Fraction(delta), shifts)
    spent = convolved_delta(variance, float(epsilon), shifts)
    assert spent <= delta
    if variance > 1:
        assert spent >= 0.9 * delta
    assert sigma(variance, shifts) <= 1.03 * analytic_sigma(float(epsilon), delta)
    too_small = convolved_delta(variance * Fraction(95, 100) ** 2, float(epsilon), shifts)
    assert too_small > delta or variance == module.LEAST_VARIANCE
    one_more = {**shifts, (1, 1): shifts.get((1, 1), 0) + max(1, squared_norm(shifts) // 4)}
    assert convolved_delta(variance, float(epsilon), one_more) > delta


@pytest.mark.parametrize("cells", [2, 40, 120, 4000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(8)])
def test_count_releases_are_within_three_percent_of_the_analytic_gaussian(
    epsilon: Fraction, cells: int
) -> None:
    found = sigma(gaussian_variance(epsilon, Fraction(1, 10**6), {(1, 1): cells}), {(1, 1): cells})
    assert found / analytic_sigma(float(epsilon), 1e-6) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("shifts", PATTERNS, ids=str)
def test_very_many_terms_are_bounded_by_the_integral(
    shifts: Shifts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variance, epsilon in ((Fraction(400), Fraction(1, 3)), (Fraction(36), Fraction(0))):
        summed = gaussian_delta(variance, epsilon, shifts)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_MOST_TERMS", 0)
            bounded = gaussian_delta(variance, epsilon, shifts)
        assert summed <= bounded * (1 + 1e-8)
        divisor = math.gcd(*(size * weight for size, weight in shifts))
        spread = math.sqrt(variance * squared_norm(shifts)) / divisor
        assert bounded <= summed * (1 + 8 / spread)


@pytest.mark.parametrize(
    ("shifts", "variance"),
    [({(2, 1): cells}, 10) for cells in (1, 2, 30)]
    + [({(1, 1): 1, (1, 3): 20, (1, 5): 4}, 2000), ({(3, 1): 2, (3, 2): 6}, 50)],
)
def test_wide_noise_has_a_bound_of_its_own(
    shifts: Shifts, variance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = module._excess(Fraction(variance), shifts)
    monkeypatch.setattr(module, "_SHARP_EXCESS", -1.0)
    summed = module._excess(Fraction(variance), shifts)
    assert 1 <= summed * (1 + 1e-12) <= closed * (1 + 2e-12)
    assert closed <= 1 + 1e-6


@given(
    weights=st.lists(st.integers(2, 6), min_size=1, max_size=6),
    held=st.integers(1, 3),
    variance=st.integers(2, 400),
)
def test_the_bound_of_wide_noise_is_never_below_the_sum(
    weights: list[int], held: int, variance: int
) -> None:
    shifts = {(1, 1): held} | {(1, weight): weights.count(weight) for weight in weights}
    log_bound = module._wide_excess(float(variance), shifts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SHARP_EXCESS", -1.0)
        assert module._excess(Fraction(variance), shifts) <= math.exp(log_bound) * (1 + 1e-12)


def test_tables_of_different_weights_need_no_more_points_if_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then one more cell is counted, so that the bound of wide noise applies."""
    budget, shifts = (Fraction(1, 10), Fraction(1, 10**6)), {(1, 2): 2, (1, 3): 400, (1, 6): 40}
    monkeypatch.setattr(module, "_least_variance", module._least_variance.__wrapped__)
    few = gaussian_variance(*budget, shifts)
    monkeypatch.setattr(module, "_LARGE_NORM", 10**9)
    many = gaussian_variance(*budget, shifts)
    assert many <= few <= many * Fraction(1001, 1000)
    monkeypatch.setattr(module, "_MOST_FREQUENCIES", 8)
    assert gaussian_variance(*budget, shifts) > few * Fraction(105, 100)  # zCDP alone


@settings(max_examples=25)
@given(
    shifts=st.dictionaries(
        st.tuples(st.integers(1, 4), st.integers(1, 4)), st.integers(1, 3), min_size=1, max_size=2
    ),
    variance=st.fractions(1, 30, max_denominator=16),
    epsilon=st.fractions(0, 4, max_denominator=16),
)
def test_the_bound_holds_for_any_shifts(
    shifts: Shifts, variance: Fraction, epsilon: Fraction
) -> None:
    exact = convolved_delta(variance, float(epsilon), shifts)
    bound = gaussian_delta(variance, epsilon, shifts)
    assert exact <= bound * (1 + 1e-9) + 1e-15
    smaller = dict(list(shifts.items())[:-1]) or {min(shifts): shifts[min(shifts)]}
    assert convolved_delta(variance, float(epsilon), smaller) <= exact * (1 + 1e-9) + 1e-15
    fewer = {(max(size - 1, 1), weight): count for (size, weight), count in [max(shifts.items())]}
    assert convolved_delta(variance, float(epsilon), fewer) <= exact * (1 + 1e-9) + 1e-15


def test_the_worst_of_several_patterns_counts() -> None:
    budget = (Fraction(1), Fraction(1, 10**6))
    both = gaussian_variance(*budget, {(1, 1): 20}, {(2, 1): 10})
    assert (
        both >= gaussian_variance(*budget, {(2, 1): 10}) > gaussian_variance(*budget, {(1, 1): 20})
    )
    assert gaussian_rho(both, {(1, 1): 20}, {(2, 1): 10}) == Fraction(20) / both


def test_zcdp_takes_over_where_the_loss_is_too_long_to_compute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_least_variance", module._least_variance.__wrapped__)
    monkeypatch.setattr(module, "_MOST_FREQUENCIES", 8)
    budget, shifts = (Fraction(1), Fraction(1, 10**6)), {(2, 1): 2, (3, 1): 4}
    assert gaussian_delta(Fraction(100), Fraction(1), shifts) == 1
    variance = gaussian_variance(*budget, shifts)
    assert zcdp_epsilon(gaussian_rho(variance, shifts), budget[1]) <= budget[0]
    assert sigma(variance, shifts) == pytest.approx(4.53, abs=0.01)


@given(variance=st.fractions(Fraction(1, 4), 2**40))
def test_variances_are_rounded_up_to_22_bits(variance: Fraction) -> None:
    rounded = module._rounded_up(variance)
    assert variance <= rounded <= variance * (1 + Fraction(1, 2**20))
    assert rounded.denominator <= 2**22
    assert rounded.numerator <= max(2**22, math.ceil(variance))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(Fraction(0), 0.1), (math.inf, 0.1), (Fraction(1), 0.0), (Fraction(1), 1.0)],
)
def test_budgets_that_no_gaussian_noise_has(epsilon: Fraction, delta: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        gaussian_variance(epsilon, Fraction(delta), {(1, 1): 2})
    with pytest.raises(ValueError, match="too small"):
        gaussian_variance(Fraction(1, 10**30), Fraction(1, 10**300), {(1, 1): 2})
    with pytest.raises(ValueError, match="at least 1/4"):
        gaussian_delta(Fraction(1, 5), Fraction(1), {(1, 1): 2})


@pytest.mark.parametrize("pure", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)])
@pytest.mark.parametrize(
    "shifts", [{(1, 1): 2}, {(1, 1): 60}, {(1, 1): 20, (2, 1): 1}, {(1, 2): 2, (1, 3): 6}]
)
def test_a_pure_release_besides_is_composed_exactly(pure: Fraction, shifts: Shifts) -> None:
    """By the joint law of T and a randomised response, whose loss is plus or minus ``pure``."""
    epsilon, delta = Fraction(1), Fraction(1, 10**5)
    variance = gaussian_variance(epsilon, delta, shifts, pure=pure)
    p = 1 / (1 + math.exp(-pure))
    joint = p * convolved_delta(variance, float(epsilon - pure), shifts)
    joint += (1 - p) * convolved_delta(variance, float(epsilon + pure), shifts)
    assert 0.9 * delta < joint <= delta
    assert joint <= gaussian_delta(variance, epsilon, shifts, pure) <= delta
    alone, split = (gaussian_variance(e, delta, shifts) for e in (epsilon, epsilon - pure))
    assert alone < variance < split


def test_a_pure_release_leaves_room_for_noise() -> None:
    with pytest.raises(ValueError, match="epsilon must be positive"):
        gaussian_variance(Fraction(1), Fraction(1, 10), {(1, 1): 1}, pure=Fraction(1))


@pytest.mark.parametrize("digits", [298, 301, 310, 330, 1000])
@pytest.mark.parametrize("shifts", [{(1, 1): 2}, {(1, 2): 20, (1, 3): 100}])
def test_the_smallest_deltas_are_not_lost_to_underflow(digits: int, shifts: Shifts) -> None:
    """In logarithms, and for continuous noise, of which delta is almost the same."""
    variance = gaussian_variance(Fraction(1), Fraction(1, 10**digits), shifts)
    ratio = math.sqrt(squared_norm(shifts) / variance)
    far, near = (float(log_ndtr(side * ratio / 2 - 1 / ratio)) for side in (-1, 1))
    log_delta = near + math.log(-math.expm1(1 + far - near))
    assert log_delta <= -(digits - 0.01) * math.log(10)
