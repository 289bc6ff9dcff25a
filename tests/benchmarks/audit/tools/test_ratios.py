"""Exact likelihood ratios: right for every law, and sharp enough to see half the noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.audit import regression, statistical
from benchmarks.audit.tools.ratios import audit_ratios, drawn_steps, halved, log_density, log_ratios
from benchmarks.audit.tools.steps import Added
from dpbayes_sklearn.categories import plans
from dpbayes_sklearn.mechanisms import Gaussian, Laplace
from dpbayes_sklearn.noise import (
    ClassRows,
    DiscreteGaussian,
    DiscreteLaplace,
    MatrixNoise,
    SupNorm,
    ZeroSum,
    add,
)
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.noise.law import NoiseLaw
from dpbayes_sklearn.privacy import Budget

LAWS = [
    DiscreteLaplace((Fraction(3), Fraction(0), Fraction(5, 2)), (2, 1, 3)),
    ZeroSum(Fraction(4), 3),
    SupNorm(Fraction(2), (1, 2, 1), 4),
    ClassRows(Fraction(2), (2, 3), 2, 4),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_density_falls_as_the_law_says_that_its_loss_does(law: NoiseLaw) -> None:
    arrays = [np.zeros((50, size), np.int64) for size in law.sizes]
    shifts = np.rint(np.hstack(add(arrays, law, random_source(0))) * law.grid).astype(np.int64)
    density = log_density(law, shifts * law.grid)
    for shift, value in zip(shifts, density, strict=True):
        assert value == pytest.approx(-float(law.privacy_loss(shift)))
    assert log_density(halved(law), shifts * law.grid) == pytest.approx(2 * density)


def test_no_density_is_made_up() -> None:
    with pytest.raises(TypeError, match="No density"):
        log_density(object(), np.zeros((1, 1)))  # type: ignore[arg-type]


def test_ratios_of_a_release_keep_within_epsilon() -> None:
    sides, prior = statistical.MIXED
    one, other = (
        drawn_steps(Laplace(), side, prior, Budget(Fraction(1)), random_state=0).steps
        for side in sides
    )
    assert isinstance(one[0], Added)
    ratios = log_ratios(one, other, 1_000)
    assert np.abs(ratios).max() == pytest.approx(1)
    assert ratios.mean() > 0
    with pytest.raises(ValueError, match="depends on the data"):
        log_ratios(one, [], 10)


def test_a_gaussian_density_falls_with_the_squares() -> None:
    law = DiscreteGaussian((Fraction(3), Fraction(0), Fraction(5, 2)), (2, 1, 3))
    noise = np.array([[1, -2, 0, 3, 0, 0], [0, 0, 0, 0, 0, 4]])
    assert log_density(law, noise) == pytest.approx([-5 / 6 - 9 / 5, -16 / 5])
    assert log_density(halved(law), noise) == pytest.approx(4 * log_density(law, noise))


PURE = [case for case in statistical.CASES if not case.delta]


@pytest.mark.parametrize("case", PURE, ids=lambda c: f"{c.what}, {c.mechanism}")
def test_every_pair_uses_up_most_of_its_claim(case: statistical.Trial) -> None:
    loss = statistical.pair_loss(*statistical.steps_of(case, (0, 1)))
    assert 0.85 * case.epsilon <= loss <= case.epsilon * (1 + 1e-9)


# `make audit` has all cases: other units, joint noise, other tables
FAST = list({str(c.mechanism): c for c in reversed(statistical.CASES) if c.part >= 0.5}.values())


@pytest.mark.slow
@pytest.mark.parametrize("case", FAST, ids=lambda case: f"{case.what}, {case.mechanism}")
def test_half_the_noise_is_seen(case: statistical.Trial) -> None:
    _, sound, caught = statistical.bounds_of(case, 0.0, seeds=(0, 1))
    assert sound <= case.epsilon < caught


def test_gaussian_noise_shows_most_of_its_claim_and_ten_percent_less_of_it_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With Clopper-Pearson bounds at delta = 0.01, from half a million runs."""
    sides, prior = statistical.THREE
    budget, real = Budget(Fraction(1), Fraction(1, 100)), plans.gaussian_law

    def bound() -> float:
        steps = [drawn_steps(Gaussian(), s, prior, budget, random_state=0).steps for s in sides]
        return audit_ratios(*steps, 500_000, delta=0.01).epsilon

    def ten_percent_less(*public: Any) -> DiscreteGaussian:
        law = real(*public)
        return DiscreteGaussian(tuple(s * Fraction(9, 10) ** 2 for s in law.parameters), law.sizes)

    assert 0.9 < bound() <= 1
    monkeypatch.setattr(plans, "gaussian_law", ten_percent_less)
    assert bound() > 1


@pytest.mark.slow
@pytest.mark.parametrize("case", regression.CASES, ids=str)
def test_half_the_noise_of_any_step_of_a_regression_is_seen(
    case: regression.ReplacedRecord,
) -> None:
    worst = case.worst_steps()
    assert sum(step.share for step in worst) == case.epsilon
    reached_all = case.reached(worst)
    assert min(reached_all) > 0  # every step tells something about a record
    for (one, other, share), reached in zip(worst, reached_all, strict=True):
        if regression.kind_of(one) != "noise" or reached < 0.5 or _has_matrix_noise(one):
            continue  # they take longer, so `make audit` does; the tests below have some
        runs = 15_000 if reached < 3 else 30_000  # large losses rest on rare events
        assert audit_ratios([one], [other], runs).epsilon <= share
        assert audit_ratios([one], [other], runs, sharper=True).epsilon > reached


def _has_matrix_noise(step: Any) -> bool:
    return isinstance(step, Added) and isinstance(step.law, MatrixNoise)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [regression.matrix_steps, regression.score_steps])
def test_half_of_noise_of_matrices_and_of_a_ball_is_seen(steps: Any) -> None:
    one, other, whole = steps()
    share = float(whole)
    assert audit_ratios([one], [other], 20_000).epsilon <= share
    assert audit_ratios([one], [other], 20_000, sharper=True).epsilon > share


@pytest.mark.slow
def test_half_the_noise_of_the_steps_of_a_logistic_regression_is_seen() -> None:
    # mode and draws: tests/logistic
    for name, (one, other, whole), _ in regression.logistic_steps():
        if name in {"histograms", "curvature"}:
            share = float(whole)
            assert audit_ratios([one], [other], 6_000).epsilon <= share
            assert audit_ratios([one], [other], 6_000, sharper=True).epsilon > share
