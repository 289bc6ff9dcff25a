r"""Draws of coefficients from a Gaussian restricted to a ball: the paper's truncated prior.

**Draws of regression coefficients in a ball, for the sampler.**

The ball has a public centre c, the perturbed mode that half of the budget is spent on
(:mod:`~dpbayes_sklearn.regression.mode`), and a radius B, what is nominally known of
the error of c. With the residual :math:`r = t - c^\top x`, clipped to h, and :math:`v = w - c` the
score of a record is

.. math:: \kappa\left(r\,v^\top x - \tfrac12 (v^\top x)^2\right), \qquad \|v\| \le B

which is that of the Gaussian likelihood but for what does not depend on v. Records have a norm of
at most R (one for every number, sign, column of levels and the constant), so
:math:`|v^\top x| \le BR`, and over the ball the score of a record has a range of at most
:math:`\kappa\,a(h, BR)`,

.. math:: a(h, b) = 2hb \text{ if } b \le h, \text{ else } \tfrac12(h + b)^2 .

A record that comes or goes changes the exponent of every w by its score, and the normalisation by
a number within its range: so a draw loses :math:`\kappa\,a`, twice that if a record is replaced,
and k times as much for k records of a person.

With ``coef_bound`` there is no mode: c is 0, h is 1 (the target itself), and B is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, frexp, isqrt, ldexp, sqrt
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget, Exact
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.mode import (
    LIMIT,
    MOST_COLUMNS,
    CoefficientDraws,
    DrawLaw,
    Units,
    check_mode,
    even_squares,
    has_mode,
    posterior_of_draws,
    read_units,
    released_mode,
    shares_of,
    usual_variances,
)
from dpbayes_sklearn.regression.moments import Moments, largest_grid
from dpbayes_sklearn.regression.posterior import GaussianPrior
from dpbayes_sklearn.regression.record_sums import on_lattice
from dpbayes_sklearn.regression.release import scaled_by_residuals
from dpbayes_sklearn.regression.step_noise import grid_for

REAL_ARITHMETIC = (
    "the Gaussian draws behave as draws of real numbers (they are made in 64-bit floats and "
    "rounded to a public lattice)"
)
_MODE_SHARE = Fraction(1, 2)  # The centre of the draws is found with this part of the budget.
_FLOAT_SPARE = 1 - 2.0**-30  # This factor covers the rounding of floats.
_MOST_EVIDENCE = 10**13  # From this n times epsilon on floats cannot hold the density.


class Place(NamedTuple):
    """The ball in which coefficients are drawn."""

    centre: FloatArray  # (width + 1,).
    radius: float
    limit: Fraction  # What residuals at the centre are clipped to.
    expected: FloatArray  # (width + 1,): variance of the coefficients around the centre.


class BallDrawPlan(NamedTuple):
    """How to draw: the kappa of one draw, the power of the prior, and the number of draws."""

    weight: float
    sharpness: float
    n_draws: int


def release_draws(
    statistics: Moments,
    prior: GaussianPrior,
    budget: Budget,
    noise: Noise,
    plan: Callable[[float, float], BallDrawPlan],
    n_draws: int = 1,
) -> CoefficientDraws:
    """Read the units, draw as ``plan(affordable kappa, target's variance)`` says, calibrate."""
    shares = shares_of(statistics, prior, budget)
    units = read_units(statistics, prior, shares, noise)
    statistics = statistics.knowing(units.share_known)
    share = _mode_share(prior, shares.model)
    place = _place(statistics, prior, units, share, noise)
    loss = float(loss_of_a_draw(shares.model - share, budget.delta, n_draws))
    worst = score_range(float(place.limit), place.radius * _norm(prior.design))
    drawn = draw_coefficients(
        statistics,
        prior,
        units,
        place,
        plan(loss / (budget.unit.n_changed * worst), units.variance),
        noise,
    )
    return scaled_by_residuals(drawn, statistics, shares, noise)


def _mode_share(prior: GaussianPrior, epsilon: Fraction) -> Fraction:
    return epsilon * _MODE_SHARE if prior.coef_bound is None else Fraction(0)


def _place(
    statistics: Moments, prior: GaussianPrior, units: Units, share: Fraction, noise: Noise
) -> Place:
    """Return the declared ball, or one around a released mode, as wide as its nominal error."""
    design = prior.design
    if prior.coef_bound is not None:
        usual = usual_variances(design, units)
        return Place(np.zeros(design.width + 1), prior.coef_bound, Fraction(1), usual)
    mode = released_mode(statistics, prior, units, share, noise)
    centre, error = mode.law.belief(mode.coefficients[None], prior.inference)
    if not design.intercept:
        centre[0] = error[0] = 0.0
    spread = units.variance / (statistics.n_known * units.squares)
    radius = _few_bits(sqrt(float((error + spread).sum())))
    return Place(on_lattice(centre), radius, LIMIT, error)


def _few_bits(radius: float) -> float:
    """Round up to eight bits, so that multiples of a power of two of it are exact.

    >>> _few_bits(0.3)
    0.30078125
    """
    part, power = frexp(radius)
    return ldexp(ceil(256 * part), power - 8)


def score_range(limit: float, reach: float) -> float:
    r"""Return the range of :math:`ru - u^2/2` over :math:`|r| \le` limit, :math:`|u| \le` reach.

    >>> score_range(1.0, 0.5), score_range(1.0, 1.0), score_range(1.0, 3.0)
    (1.0, 2.0, 8.0)
    """
    return 2 * limit * reach if reach <= limit else (limit + reach) ** 2 / 2


def _norm(design: Design) -> float:
    """Return R, the largest norm of a record."""
    return sqrt(len(design.features) + design.intercept)


def loss_of_a_draw(epsilon: Fraction, delta: Exact, n_draws: int) -> Fraction:
    r"""Return the range of the log ratio that each of N draws may have.

    :math:`\varepsilon/N`, or with a delta :math:`\sqrt{8\rho/N}` if that is more: a draw whose log
    ratio has a range of w is :math:`w^2/8`-zCDP (``counts.splits.release_rho``).

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
    shares = shares_of(statistics, prior, budget)
    mode = _mode_share(prior, shares.model)
    loss = loss_of_a_draw(shares.model - mode, budget.delta, n_draws)
    others = (shares.target, shares.columns, shares.residuals, mode)
    rho = n_draws * loss**2 / 8 + sum(share**2 / 2 for share in others)
    return rho, n_draws * loss > shares.model - mode


def check_draws(statistics: Moments, prior: GaussianPrior, budget: Budget) -> None:
    """Refuse, from public facts, budgets at which floats could not hold the density.

    Refused, too, is a mode of more coefficients than a search can find.
    """
    if prior.coef_bound is None and not has_mode(prior.design):
        raise ValueError(
            f"The model has {prior.design.width} coefficients, more than the {MOST_COLUMNS} for "
            "which a mode can be sought; give coef_bound, or use mechanism='laplace'."
        )
    if statistics.n * budget.epsilon > _MOST_EVIDENCE:
        raise ValueError(
            f"epsilon={float(budget.epsilon):g} is too large for draws of coefficients from "
            f"{statistics.n} records; use float('inf') for exact Bayes without privacy."
        )
    epsilon = Fraction(budget.epsilon) / budget.unit.max_records
    grid_for(statistics.design, statistics.n, epsilon)
    share = _mode_share(prior, shares_of(statistics, prior, budget).model)
    if share:
        check_mode(statistics, share, budget)


def draw_coefficients(
    statistics: Moments,
    prior: GaussianPrior,
    units: Units,
    place: Place,
    plan: BallDrawPlan,
    noise: Noise,
) -> CoefficientDraws:
    """Draw from prior^sharpness * exp(kappa * score) in the ball."""
    grid = largest_grid(32 * statistics.n, 1.0)
    gram = statistics.gram(grid, units.window, units.windows)[:-1, :-1] / grid**2
    limit = int(place.limit * grid)
    found = statistics.loss_derivatives(grid, units.window, units.windows, place.centre, limit)
    weight = plan.weight * _FLOAT_SPARE
    first = 0 if prior.design.intercept else 1
    precisions = plan.sharpness * prior.precisions(units.window, units.windows)
    linear = weight * found.negative_gradient - precisions * place.centre
    precisions[1:] += prior.design.width / place.radius**2  # the ball, as a prior
    precision = np.diag(precisions) + weight * gram
    draws = np.repeat(place.centre[None], plan.n_draws, axis=0)
    draws[:, first:] += noise.ball(
        precision[first:, first:], linear[first:], place.radius, plan.n_draws
    )
    seen = weight * statistics.n_known * even_squares(prior.design)
    widest = place.radius**2 / (len(seen) + 2)  # the variance of a uniform draw from the ball
    spread = np.minimum(1 / (precisions + seen), widest)
    law = DrawLaw(place.centre, seen / (precisions + seen), spread, place.expected)
    return posterior_of_draws(draws, law, units, prior, statistics.n_known)
