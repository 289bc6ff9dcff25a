"""Noise of a perturbed gradient: its ratio by the claim, and the exact delta of small worlds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import norm

from checker.laws import delta_of_zcdp
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.gradient import (
    BlockShape,
    gaussian_noise,
    hull_noise,
    in_hull,
    largest_ratio,
    least_gradient_noise,
)
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit

ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)
PERSON = PrivacyUnit("person", max_records=3)


def normal_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 10), ONE, Fraction(10)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**9), MILLIONTH, Fraction(1, 100)])
def test_the_corners_of_all_pairs_stay_within_delta(epsilon, delta, signed):
    """Two vectors of norm 1 at any angle, with residuals at their ends."""
    ratio, eps = largest_ratio(epsilon, delta, 2, signed) / 2, float(epsilon)
    ends, worst = ((0, 1) if signed else (-1, 1)), 0.0
    for angle in np.linspace(0, math.pi, 61):
        other = np.array([math.cos(angle), math.sin(angle)])
        corners = [a * np.array([1.0, 0.0]) + b * other for a, b in product(ends, ends)]
        norms = [ratio * float(np.linalg.norm(corner)) for corner in corners]
        worst = max(worst, sum(normal_delta(mu, eps) for mu in norms if mu > 1e-9))
    assert worst <= float(delta)
    capped = ratio * 2 > 0.99 * math.sqrt(2 * (math.sqrt(1 + eps**2) - 1))
    assert worst > 0.98 * float(delta) or capped


def test_delta_is_a_convex_function_of_the_squared_shift_where_it_is_used():
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        most = 2 * (math.sqrt(1 + epsilon**2) - 1)
        values = [normal_delta(math.sqrt(s), epsilon) for s in np.linspace(most / 50, most, 50)]
        slopes = np.diff(values)
        assert (np.diff(slopes) >= -1e-15).all()


def test_several_records_cost_twice_the_delta_of_zcdp():
    """Simulate the worst of dependent residuals: moments of the loss stay below the claim."""
    ratio = largest_ratio(ONE, MILLIONTH, PERSON.n_changed)
    rng = np.random.default_rng(0)
    for spread in (0.0, 0.3, 1.0):
        x = rng.normal(size=(6, 3)) * spread + np.array([1.0, 0, 0])
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        u = rng.normal(size=(400_000, 3))
        shift = np.sign(u @ x.T) @ x * ratio / 6
        loss = (u * shift).sum(axis=1) + (shift**2).sum(axis=1) / 2
        for power in (1.0, 5.0, 20.0):
            bound = 2 * math.exp(power * (power + 1) * ratio**2 / 2)
            assert np.exp(power * loss).mean() <= bound


@pytest.mark.parametrize("epsilon", [ONE / 4, ONE, ONE * 8])
def test_the_delta_of_several_records_is_used_up_and_no_more(epsilon):
    """Twice the delta of zCDP, by the second checker's own conversion."""
    ratio = largest_ratio(epsilon, MILLIONTH, PERSON.n_changed)
    spent = 2 * delta_of_zcdp(Fraction(ratio) ** 2 / 2, epsilon)
    assert 0.98 * MILLIONTH < spent <= MILLIONTH


@pytest.mark.parametrize("unit", [RECORD, PERSON, PrivacyUnit("record", neighbours="add_remove")])
def test_sensitivity_is_that_of_the_farthest_records(unit):
    """All corners of the blocks, in the metric of the noise that is drawn."""
    shape = BlockShape((2, 3, 4), (Fraction(4), Fraction(3), Fraction(4)), Fraction(1, 2))
    noise = gaussian_noise(shape, ONE, MILLIONTH, unit)
    deviations = [math.sqrt(parameter) / noise.lattice for parameter in noise.law.parameters]
    farthest = 0.0
    for levels in product(*map(range, shape.sizes)):
        squares = 1 / deviations[-1] ** 2
        for k, level, deviation in zip(shape.sizes, levels, deviations, strict=False):
            contrast = np.eye(k)[level] - 1 / k
            squares += float(contrast @ contrast) / deviation**2
        farthest = max(farthest, unit.n_changed / 2 * math.sqrt(squares))
    ratio = largest_ratio(ONE, MILLIONTH, unit.n_changed)
    assert 0.9999 * ratio < farthest <= ratio


def test_noise_lies_in_the_span_of_the_records():
    shape = BlockShape((2, 3, 5), (Fraction(2), Fraction(3), Fraction(5)))
    for made in (hull_noise(shape, ONE, RECORD), gaussian_noise(shape, ONE, MILLIONTH, RECORD)):
        drawn = np.split(Noise.of(0).draw(made.law, 4000), np.cumsum(made.law.sizes)[:-1], axis=1)
        rows = [in_hull(made.law, *(part[i] for part in drawn)) for i in range(4000)]
        blocks = [np.array([row[j] for row in rows]) / made.lattice for j in range(4)]
        for block, k in zip(blocks, shape.sizes, strict=False):
            assert np.allclose(block.sum(axis=1), blocks[-1][:, 0], rtol=1e-9, atol=1e-6)
            contrasts = block - block.mean(axis=1, keepdims=True)
            expected = made.law.contrast_variance(shape.sizes.index(k)) / made.lattice**2
            assert (contrasts**2).sum() / 4000 / (k - 1) == pytest.approx(expected, rel=0.15)
        assert max(np.abs(block).sum(axis=1).max() for block in blocks) < made.farthest


def test_the_smaller_noise_is_taken_and_a_delta_never_hurts():
    for k, pays in ((2, range(51, 59)), (4, range(20, 28))):
        taken = []
        for d in (5, pays.start, pays.stop, 200):
            shape = BlockShape((k,) * d, (Fraction(k),) * d)
            least = least_gradient_noise(shape, ONE, MILLIONTH, RECORD)
            assert least.total <= least_gradient_noise(shape, ONE, Fraction(0), RECORD).total
            taken.append(least.law.independent)
        assert taken == [False, False, True, True]


def test_totals_fall_with_the_budget_and_grow_with_records():
    shape = BlockShape((3,) * 40, (Fraction(3),) * 40)
    totals = [gaussian_noise(shape, e, MILLIONTH, RECORD).total for e in (ONE / 10, ONE, 10 * ONE)]
    assert all(a > b for a, b in pairwise(totals))
    deltas = [gaussian_noise(shape, ONE, d, RECORD).total for d in (MILLIONTH, Fraction(1, 1000))]
    assert deltas[0] > deltas[1]
    alone, three = (gaussian_noise(shape, ONE, MILLIONTH, u).total for u in (RECORD, PERSON))
    assert 9 < three / alone < 11


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(ONE, Fraction(0)), (65 * ONE, MILLIONTH), (Fraction(1, 10**9), MILLIONTH)],
)
def test_what_is_not_proven_is_refused_and_pure_noise_taken(epsilon, delta):
    shape = BlockShape((3,) * 100, (Fraction(3),) * 100)
    with pytest.raises(ValueError, match="Gaussian noise"):
        gaussian_noise(shape, epsilon, delta, RECORD)
    if epsilon >= 1:
        assert not least_gradient_noise(shape, epsilon, delta, RECORD).law.independent
