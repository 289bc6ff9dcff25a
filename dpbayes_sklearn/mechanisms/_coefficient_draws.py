r"""Draws of regression coefficients in a ball, for the sampler and the MAP mechanism.

With coordinates of norm at most R (one for every number, sign, column of levels and the constant),
a target in [-1, 1] and coefficients of norm at most B, the residual of one record is at most
:math:`1 + BR`. So the score :math:`-\tfrac\kappa2 \sum (t - w^\top x)^2` of any w changes by at
most :math:`\tfrac\kappa2(1 + BR)^2` when a record is replaced, and a draw from

.. math:: p(w) \propto \pi(w)\, e^{-\frac\kappa2 \sum (t - w^\top x)^2}, \qquad \|w\| \le B

is :math:`\kappa(1+BR)^2`-private (half for the density, half for its normalisation). A record that
comes or goes multiplies the density by a factor from :math:`e^{-\frac\kappa2(1+BR)^2}` to 1, and
its normalisation too, so it loses half of that; k records of a person lose k times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn.mechanisms._location import located
from dpbayes_sklearn.mechanisms._moment_noise import grid_for, widening
from dpbayes_sklearn.mechanisms._moment_release import calibrated
from dpbayes_sklearn.mechanisms._moment_shares import Shares
from dpbayes_sklearn.noise.ball_gaussian import ball_gaussian
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.coefficient_draws import (
    CoefficientDraws,
    ReleasedDraws,
    posterior_of_draws,
)
from dpbayes_sklearn.posteriors.gaussian import GaussianPrior
from dpbayes_sklearn.privacy.budget import Budget, Exact
from dpbayes_sklearn.privacy.zcdp import zcdp_rho
from dpbayes_sklearn.statistics.moments import Moments, Window, Windows, largest_grid

__all__ = [
    "REAL_ARITHMETIC",
    "DrawPlan",
    "check_draws",
    "draws_cost",
    "largest_residual",
    "loss_of_a_draw",
    "release_draws",
]


REAL_ARITHMETIC = (
    "the Gaussian draws behave as draws of real numbers (they are made in 64-bit floats and "
    "rounded to a public lattice)"
)
_SPARE = 1 - 2.0**-30  # pays for the rounding of floats
_MOST_EVIDENCE = 10**13  # records times epsilon, from which floats cannot hold the density


class Units(NamedTuple):
    """Where target and columns lie, and how the target varies in its window."""

    window: Window
    windows: Windows
    variance: float


def read_units(statistics: Moments, shares: Shares, source: RandomSource) -> Units:
    """Release where target and columns lie."""
    places = located(statistics, shares, source, widening(statistics.n * float(shares.per_record)))
    window = places.window
    spread = float(np.exp(places.target.log_spread[0] + places.target.log_spread_sd[0] / 2))
    windows = places.windows(statistics.design.numbers)
    return Units(window, windows, min((spread / window.half) ** 2, 1.0))


def release_draws(
    statistics: Moments,
    prior: GaussianPrior,
    budget: Budget,
    source: RandomSource,
    plan: Callable[[float, float], DrawPlan],
    n_draws: int = 1,
) -> CoefficientDraws:
    """Read the units, draw as ``plan(affordable kappa, target's variance)`` says, calibrate."""
    shares = _shares(statistics, prior, budget)
    units = read_units(statistics, shares, source)
    if prior.noise_variance is not None:
        units = units._replace(variance=prior.noise_variance / units.window.half**2)
    loss = float(loss_of_a_draw(shares.model, budget.delta, n_draws))
    affordable = 2 * loss / (budget.unit.moves * largest_residual(prior) ** 2)
    drawn = draw_coefficients(statistics, prior, units, plan(affordable, units.variance), source)
    return calibrated(drawn, statistics, shares, source)


def _shares(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Shares:
    numbers = int(statistics.design.numbers.sum())
    learn = prior.noise_variance is None
    return Shares.of(budget, statistics.n, numbers, mean=False, residuals=learn)


def loss_of_a_draw(epsilon: Fraction, delta: Exact, n_draws: int) -> Fraction:
    r"""Return the range of the log ratio that each of N draws may have.

    :math:`\varepsilon/N`, or with a delta :math:`\sqrt{8\rho/N}` if that is more: a draw whose log
    ratio has a range of w is :math:`w^2/8`-zCDP (``_split_release.release_rho``).

    >>> float(loss_of_a_draw(Fraction(1), Fraction(1, 10**6), 50))
    0.062...
    """
    squared = 8 * Fraction(zcdp_rho(epsilon, delta)) / n_draws
    root = Fraction(isqrt(int(squared * 10**40)), 10**20)
    return max(epsilon / n_draws, root)


def draws_cost(
    statistics: Moments, prior: GaussianPrior, budget: Budget, n_draws: int
) -> tuple[Fraction, bool]:
    """Return the zCDP of all steps, and whether the draws need the budget's delta."""
    shares = _shares(statistics, prior, budget)
    loss = loss_of_a_draw(shares.model, budget.delta, n_draws)
    others = (shares.target, shares.columns, shares.residuals)
    rho = n_draws * loss**2 / 8 + sum(share**2 / 2 for share in others)
    return rho, n_draws * loss > shares.model


class DrawPlan(NamedTuple):
    """How to draw: the kappa of one draw, the power of the prior, and the number of draws."""

    weight: float
    sharpness: float
    n_draws: int


def check_draws(statistics: Moments, budget: Budget) -> None:
    """Refuse, from public facts, budgets at which floats could not hold the density."""
    if statistics.n * budget.epsilon > _MOST_EVIDENCE:
        raise ValueError(
            f"epsilon={float(budget.epsilon):g} is too large for draws of coefficients from "
            f"{statistics.n} records; use float('inf') for exact Bayes without privacy."
        )
    epsilon = Fraction(budget.epsilon) / budget.unit.max_records
    grid_for(statistics.design, statistics.n, epsilon)


def largest_residual(prior: GaussianPrior) -> float:
    """Return 1 + BR, the largest residual of a record."""
    columns = len(prior.design.features) + prior.design.intercept
    return 1 + prior.radius * float(np.sqrt(columns))


def draw_coefficients(
    statistics: Moments,
    prior: GaussianPrior,
    units: Units,
    plan: DrawPlan,
    source: RandomSource,
) -> CoefficientDraws:
    """Draw from prior^sharpness * exp(-kappa/2 * squared residuals) in the ball."""
    grid = largest_grid(statistics.n, 1.0)
    gram = statistics.gram(grid, units.window, units.windows) / grid**2
    weight = plan.weight * _SPARE
    first = 0 if prior.design.intercept else 1
    precisions = plan.sharpness * prior.precisions(units.window, units.windows)
    precisions[1:] += prior.design.width / prior.radius**2  # the ball, as a prior
    precision = np.diag(precisions) + weight * gram[:-1, :-1]
    draws = np.zeros((plan.n_draws, len(precisions)))
    draws[:, first:] = ball_gaussian(
        precision[first:, first:], weight * gram[first:-1, -1], prior.radius, plan.n_draws, source
    )
    released = ReleasedDraws(
        draws, precisions, weight, statistics.n, units.window, units.windows, units.variance
    )
    return posterior_of_draws(released, prior)
