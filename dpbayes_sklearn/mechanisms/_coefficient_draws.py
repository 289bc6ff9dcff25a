r"""What the sampler and the MAP mechanism share for regression: draws of coefficients in a ball.

With coordinates of norm at most R (one for every number, sign, column of levels and the constant),
a target in [-1, 1] and coefficients of norm at most B, the residual of one record is at most
:math:`1 + BR`. So the score :math:`-\tfrac\kappa2 \sum (t - w^\top x)^2` of any w moves by at most
:math:`\tfrac\kappa2(1 + BR)^2` when a record is replaced, and a draw from

.. math:: p(w) \propto \pi(w)\, e^{-\frac\kappa2 \sum (t - w^\top x)^2}, \qquad \|w\| \le B

is :math:`\kappa(1+BR)^2`-private (half for the density, half for its normalisation).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.mechanisms._moment_release import grid_for, noisy_target, target_share
from dpbayes_sklearn.noise.ball_gaussian import ball_gaussian
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.coefficient_draws import (
    CoefficientDraws,
    ReleasedDraws,
    posterior_of_draws,
)
from dpbayes_sklearn.posteriors.gaussian import GaussianPrior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.moments import WHOLE, Moments, Window, largest_grid

__all__ = ["REAL_ARITHMETIC", "Target", "draw_coefficients", "largest_residual", "read_target"]

FloatArray = npt.NDArray[np.float64]

REAL_ARITHMETIC = (
    "the Gaussian draws behave as draws of real numbers (they are made in 64-bit floats and "
    "rounded to a public lattice)"
)
_SPARE = 1 - 2.0**-30  # pays for the rounding of floats


class Target(NamedTuple):
    """Where the target lies, how it varies there, and the budget that is left for the draws."""

    window: Window
    variance: float
    epsilon: float


def read_target(
    statistics: Moments, prior: GaussianPrior, budget: Budget, source: RandomSource
) -> Target:
    """Release the target's mean and variance if the noise variance is to be learned."""
    epsilon, n = Fraction(budget.epsilon), statistics.n
    if prior.noise_variance is not None:
        return Target(WHOLE, prior.noise_variance, float(epsilon))
    design, share = statistics.design, target_share(epsilon, n)
    grid = grid_for(design, n, epsilon)
    target = noisy_target(statistics, grid, share * epsilon, source)
    window = target.window(n * float(epsilon), design.intercept)
    return Target(window, target.variance / window.half**2, float((1 - share) * epsilon))


def largest_residual(prior: GaussianPrior) -> float:
    """Return 1 + BR, the largest residual of a record."""
    columns = len(prior.design.domains) + prior.design.intercept
    return 1 + prior.radius * float(np.sqrt(columns))


def draw_coefficients(
    statistics: Moments,
    prior: GaussianPrior,
    target: Target,
    *,
    weight: float,
    sharpness: float,
    n_draws: int,
    source: RandomSource,
) -> CoefficientDraws:
    """Draw from prior^sharpness * exp(-weight/2 * squared residuals) in the ball.

    ``weight`` is the kappa of one draw.
    """
    grid = largest_grid(statistics.n, 1.0)
    gram = statistics.gram(grid, target.window) / grid**2
    weight = weight * _SPARE
    first = 0 if prior.design.intercept else 1
    precisions = sharpness * prior.precisions(target.window.half)
    precision = np.diag(precisions) + weight * gram[:-1, :-1]
    draws = np.zeros((n_draws, len(precisions)))
    draws[:, first:] = ball_gaussian(
        precision[first:, first:], weight * gram[first:-1, -1], prior.radius, n_draws, source
    )
    released = ReleasedDraws(
        draws, precisions, weight, statistics.n, target.window, target.variance
    )
    return posterior_of_draws(released, prior)
