"""A regression released as one perturbed mode: for the MAP mechanism, and where draws start."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.mechanisms import _perturbed_mode
from dpbayes_sklearn.mechanisms._location import located
from dpbayes_sklearn.mechanisms._moment_noise import widening
from dpbayes_sklearn.mechanisms._moment_release import calibrated
from dpbayes_sklearn.mechanisms._moment_shares import Shares
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.coefficient_draws import (
    CoefficientDraws,
    DrawLaw,
    Units,
    even_squares,
    posterior_of_draws,
    usual_variances,
)
from dpbayes_sklearn.posteriors.gaussian import GaussianPrior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.moments import Moments

__all__ = ["Mode", "check_mode", "read_units", "release_mode", "released_mode", "shares_of"]


class Mode(NamedTuple):
    """A released mode, and what is nominally known about its error."""

    coefficients: FloatArray
    law: DrawLaw


def shares_of(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Shares:
    """Share the budget; residuals have a part of it unless their variance is declared."""
    numbers = int(statistics.design.numbers.sum())
    learn = prior.noise_variance is None
    return Shares.of(budget, statistics.n, numbers, mean=False, residuals=learn)


def read_units(
    statistics: Moments, prior: GaussianPrior, shares: Shares, source: RandomSource
) -> Units:
    """Release where target and columns lie; a declared variance stands for the released one."""
    places = located(statistics, shares, source, widening(statistics.n * float(shares.per_record)))
    window = places.window
    spread = float(np.exp(places.target.log_spread[0] + places.target.log_spread_sd[0] / 2))
    variance = min((spread / window.half) ** 2, 1.0)
    if prior.noise_variance is not None:
        variance = prior.noise_variance / window.half**2
    return Units(window, places.windows(statistics.design), variance)


def check_mode(statistics: Moments, epsilon: Fraction, budget: Budget) -> None:
    """Refuse, from public facts, budgets for which there is no exact noise."""
    nothing = np.zeros(statistics.design.width + statistics.design.intercept)
    _perturbed_mode.plan_mode(statistics.design, statistics.n, nothing, epsilon, budget.unit)


def released_mode(
    statistics: Moments,
    prior: GaussianPrior,
    units: Units,
    epsilon: Fraction,
    source: RandomSource,
) -> Mode:
    """Release the perturbed mode of the posterior in the windows."""
    design, first = statistics.design, 0 if statistics.design.intercept else 1
    precisions = units.variance * prior.precisions(units.window, units.windows)[first:]
    plan = _perturbed_mode.plan_mode(design, statistics.n, precisions, epsilon, statistics.unit)
    mode = _perturbed_mode.perturbed_mode(statistics, units.window, units.windows, plan, source)
    seen = statistics.n * even_squares(design)
    even = seen.copy()
    even[first:] += plan.ridge
    declared = prior.precisions(units.window, units.windows)
    usual = 1 / (1 / usual_variances(design, units.variance) + declared)
    law = DrawLaw(np.zeros(len(seen)), seen / even, plan.noise / even**2, usual)
    return Mode(mode, law)


def release_mode(
    statistics: Moments, prior: GaussianPrior, budget: Budget, source: RandomSource
) -> CoefficientDraws:
    """Read the units, release the mode, calibrate."""
    shares = shares_of(statistics, prior, budget)
    units = read_units(statistics, prior, shares, source)
    mode = released_mode(statistics, prior, units, shares.model, source)
    posterior = posterior_of_draws(mode.coefficients[None], mode.law, units, prior)
    return calibrated(posterior, statistics, shares, source)
