r"""A belief about coefficients that is known by a few released draws.

The moments are not released, so the error of a draw is not known from the release. *Nominally*,
for columns that fill their domains evenly, entry j has mean square :math:`s_j`, and n records of
weight :math:`\kappa` against a prior precision :math:`\lambda_j` give

.. math:: \tilde w_j \approx \frac{\kappa n s_j}{\kappa n s_j + \lambda_j} w_j + N(0, v_j),
          \qquad v_j = \frac{1}{\kappa n s_j + \lambda_j}

for a draw, no wider than the ball allows. ``plug_in`` takes the draws as they are;
``noise_aware`` does Bayes on them with a prior that explains a public share of the target's
variance, so that a draw which is mostly noise counts for little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.gaussian import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.posteriors.regression.belief import EXPLAINED, Belief
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.moments import Window, Windows

__all__ = ["CoefficientDraws", "ReleasedDraws", "posterior_of_draws"]


class ReleasedDraws(NamedTuple):
    """Draws of (constant, coefficients) and the public law they came from.

    Attributes
    ----------
    draws : array of shape (n_draws, width + 1)
        For a target on the scale of the window.
    precisions : array of shape (width + 1,)
        Precisions of the prior in the law.
    weight : float
        What a squared residual counts in the law, the kappa.
    n : int
        Number of records.
    window : Window
    windows : Windows
    target_variance : float
        Variance of the target, released or declared, on the scale of the window.
    """

    draws: FloatArray
    precisions: FloatArray
    weight: float
    n: int
    window: Window
    windows: Windows
    target_variance: float


@dataclass(frozen=True)
class CoefficientDraws(GaussianPosterior):
    """A belief whose draws are public, on the scale of the bounds."""

    draws: FloatArray

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` of the draws, with replacement."""
        return self.draws[rng.integers(len(self.draws), size=n)]


def posterior_of_draws(released: ReleasedDraws, prior: GaussianPrior) -> CoefficientDraws:
    """Return the belief that the draws leave."""
    draws, window = released.draws, released.window
    squares = even_squares(prior.design)
    seen = released.weight * released.n * squares
    even = released.precisions + seen
    widest = prior.radius**2 / (len(even) + 2)  # the variance of a uniform draw from the ball
    spread = np.minimum(1 / even, widest)
    mean, variance = draws.mean(axis=0), spread * (1 + 1 / len(draws))
    if prior.inference == "noise_aware":
        columns = len(prior.design.features) + prior.design.intercept
        expected = EXPLAINED * released.target_variance / (columns * squares)
        gain, noise = seen / even, spread / len(draws)
        variance = 1 / (gain**2 / noise + 1 / expected)
        mean = variance * gain / noise * mean
    if not prior.design.intercept:
        mean[0], variance[0] = 0.0, 0.0
    moved = draws @ released.windows.to_bounds().T * window.half
    moved[:, 0] += window.centre
    belief = Belief(mean, np.diag(variance), released.target_variance)
    scaled = GaussianPosterior.of(belief, belief, window, released.windows)
    return CoefficientDraws(**vars(scaled), draws=moved)


def even_squares(design: Design) -> FloatArray:
    """Mean squares of (constant, coordinates) of columns that fill their domains evenly."""
    squares = np.where(design.numbers, 1 / 3, np.where(design.signs, 1.0, 1 / design.n_values))
    return np.concatenate([[1.0], squares])
