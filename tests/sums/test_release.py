"""Releases of bounded sums: their losses by enumeration, their laws, and faults that are seen."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpbayes_sklearn.mechanisms import Laplace, Sampler
from dpbayes_sklearn.noise import DiscreteLaplace, Noise, SupNorm
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Interval
from dpbayes_sklearn.sums.posterior import GammaFamily, NormalFamily, moments_given
from dpbayes_sklearn.sums.release import BoundedSums, Column, Prior, draw_loss, plan

GRID = 6  # few enough steps to list all sums
NORMAL = (Column(Interval(-1, 3)), NormalFamily(-1, 3, 1.0, 4.0, 1.0))
EXPONENTIAL = (
    Column(Interval(0, 5), 1, 0.0, True),
    GammaFamily(0.2, 6.4, 1.0, 0.6, 1.0),
)
LAPLACE = (Column(Interval(-2, 3), 1, 0.5), GammaFamily(0.4, 12.8, 1.0, 0.3, 1.0))
PRECISION = (Column(Interval(-2, 3), 2, 0.5), GammaFamily(0.16, 10.0, 1.0, 0.1, 0.5))
ALL = {"normal": NORMAL, "exponential": EXPONENTIAL, "laplace": LAPLACE, "precision": PRECISION}
PERSON = PrivacyUnit("person", max_records=2)


def prior_of(*names: str, grid: int = GRID) -> Prior:
    columns, families = zip(*(ALL[name] for name in names), strict=True)
    return Prior(columns, families, grid)


def draw_plan(name, n, epsilon, unit=None, n_samples=1):
    budget = Budget(Fraction(epsilon)) if unit is None else Budget(Fraction(epsilon), unit=unit)
    return plan(Sampler(n_samples=n_samples, n_points=65), prior_of(name), Facts(n), budget)


def enumerated_loss(found, n, moved):
    """Largest loss over all sums of n records and neighbours, from the integers that are drawn."""
    sums = np.arange(n * GRID + 1)
    totals = np.array([found.prior.totals(np.array([s]), n)[0] for s in sums])
    weights = found.weights(0, totals).astype(float)
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    shifts = range(1, moved * GRID + 1)
    return max(float(np.abs(logs[s:] - logs[:-s]).max()) for s in shifts) * found.n_draws


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n", [1, 4, 9])
def test_the_loss_of_a_draw_is_within_epsilon_and_not_far_below(name, n):
    found = draw_plan(name, n, 1)
    loss = enumerated_loss(found, n, 1)
    assert loss <= 1
    assert loss > 0.999 or found.tempers[0] == 1.0
    closed = draw_loss(found.prior, 0, n, 1, 65, found.tempers[0])
    assert loss <= closed < loss + 1e-5  # four numbers decide


@pytest.mark.parametrize("name", ["normal", "exponential"])
def test_persons_and_several_draws_share_the_budget(name):
    persons = draw_plan(name, 5, 1, unit=PERSON)
    assert 0.99 < enumerated_loss(persons, 5, 2) <= 1
    several = draw_plan(name, 5, 1, n_samples=3)
    assert 0.99 < enumerated_loss(several, 5, 1) <= 1


@pytest.mark.parametrize("fault", ["temper", "draws"])
def test_a_wrong_plan_is_seen(fault):
    found = draw_plan("normal", 5, 1)
    wrong = {"temper": {"tempers": (1.1 * found.tempers[0],)}, "draws": {"n_draws": 2}}[fault]
    assert enumerated_loss(replace(found, **wrong), 5, 1) > 1.05


@pytest.mark.parametrize("name", ALL)
def test_close_records_are_protected_better(name):
    """Definition 2: the slope bounds the loss of every shift of a sum, for noise and for draws."""
    n, d = 4, draw_plan(name, 4, 1)
    totals = np.array([d.prior.totals(np.array([s]), n)[0] for s in range(n * GRID + 1)])
    weights = d.weights(0, totals).astype(float)
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    for steps in range(1, GRID + 1):
        loss = np.abs(logs[steps:] - logs[:-steps]).max()
        assert loss <= d.slopes[0] * steps * d.prior.step(0) + 1e-5
    for names in ((name,), (name, "normal", "laplace")):
        noise = plan(Laplace(), prior_of(*names), Facts(n), Budget(Fraction(1)))
        for steps in range(1, GRID + 1):
            shift = np.zeros(len(names), np.int64)
            shift[0] = steps
            loss = float(noise.law.privacy_loss(shift))
            allowed = noise.slopes[0] * steps * noise.prior.step(0)
            assert loss <= allowed * (1 + 1e-9)
        whole = np.full(len(names), GRID)
        assert float(noise.law.privacy_loss(whole)) == pytest.approx(1.0)


@pytest.mark.parametrize("d", [1, 2, 6])
def test_noise_takes_the_law_with_less_variance(d):
    found = plan(Laplace(), prior_of(*["normal"] * d), Facts(10), Budget(Fraction(1)))
    together = 2 * (GRID * d) ** 2  # of independent Laplace noise
    assert found.law.variance() <= together * 1.01
    assert float(found.law.privacy_loss(np.full(d, GRID))) <= 1


def test_options_of_mechanisms_are_used_or_refused():
    prior, budget = prior_of(*["normal"] * 4), Budget(Fraction(1))
    kinds = [
        type(plan(Laplace(noise=noise), prior, Facts(10), budget).law)
        for noise in ("independent", "joint", "auto")
    ]
    assert kinds == [DiscreteLaplace, SupNorm, SupNorm]
    with pytest.raises(ValueError, match="budget_split is for tables"):
        plan(Laplace(budget_split=0.5), prior, Facts(10), budget)
    with pytest.raises(ValueError, match="omega is for tables"):
        plan(Sampler(omega=0.1), prior, Facts(10), budget)


def test_statistics_are_exact_sums_of_rounded_values():
    column, _ = PRECISION
    numbers = np.array([-7.0, -2.0, 0.5, 3.0, np.nan, np.inf])
    least, most = column.range
    assert (least, most) == (0.0, 3.125)
    expected = np.rint(np.array([3.125, 3.125, 0.0, 3.125, 0.0, 3.125]) / 3.125 * GRID)
    assert column.codes(numbers, GRID).tolist() == expected.tolist()
    below, _ = EXPONENTIAL
    assert below.codes(np.array([-1.0, 0.0, 5.0]), GRID).tolist() == [0, 0, GRID]


def test_no_record_moves_a_sum_further_than_the_grid():
    rng = np.random.default_rng(0)
    for column, _ in ALL.values():
        codes = column.codes(rng.normal(scale=10, size=1000), GRID)
        assert codes.min() >= 0
        assert codes.max() <= GRID


def test_without_privacy_the_posterior_is_conjugate():
    prior = prior_of("normal", "exponential", grid=2**20)
    sums = BoundedSums(np.array([2**20 * 3, 2**20 * 2]), 10)
    found = plan(Laplace(), prior, Facts(10), Budget(math.inf)).release(sums, Noise())
    precision = 1 / 4.0 + 10
    assert found.means[0] == pytest.approx((1 / 4.0 + (-10 + 4 * 3)) / precision)
    assert found.variances[0] == pytest.approx(1 / precision)
    assert found.means[1] == pytest.approx((1 + 10) / (0.6 + 10.0))


def test_moments_given_a_release_are_those_of_the_mixture():
    """Against brute force over all sums, for noise as wide as the data."""
    family, n = EXPONENTIAL[1], 5
    sums = np.linspace(0.0, 25.0, 400_001)
    log_weight = family.log_evidence(n, sums) - np.abs(sums - 7.0) / 2.0
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    means, variances = family.moments(n, sums)
    mean = weight @ means
    variance = weight @ (variances + (means - mean) ** 2)
    found = moments_given(family, n, (0.0, 25.0), lambda s: -np.abs(s - 7.0) / 2.0)
    assert found == pytest.approx((mean, variance), rel=1e-3)


def test_what_cannot_be_released_is_refused():
    secret = Budget(Fraction(1), unit=PrivacyUnit(neighbours="add_remove"))
    for mechanism in (Laplace(), Sampler()):
        with pytest.raises(ValueError, match="public number of records"):
            plan(mechanism, prior_of("normal"), Facts(10), secret)
    with pytest.raises(ValueError, match="too small to draw"):
        draw_plan("normal", 5, Fraction(1, 10**9))
