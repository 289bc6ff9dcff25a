r"""A belief about coefficients that is known by a few released draws, or by a released mode.

The moments are not released, so the error of a draw is not known from the release. *Nominally*,
for columns that fill their domains evenly, a draw around a public centre c is

.. math:: \tilde w_j \approx c_j + g_j (w_j - c_j) + N(0, v_j)

with a gain g below one, because a prior holds the draw back, and a variance v. ``plug_in`` takes
the draws as they are; ``noise_aware`` does Bayes on them with a prior around c, so that a draw
which is mostly noise counts for little.
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

__all__ = [
    "CoefficientDraws",
    "DrawLaw",
    "Units",
    "even_squares",
    "posterior_of_draws",
    "usual_variances",
]


class Units(NamedTuple):
    """Where target and columns lie, and how the target varies in its window: all released."""

    window: Window
    windows: Windows
    variance: float


class DrawLaw(NamedTuple):
    """The nominal law of a draw of (constant, coefficients), by public facts.

    Attributes
    ----------
    centre : array of shape (width + 1,)
        Where draws are centred.
    gain, noise : arrays of shape (width + 1,)
        The share of a distance from the centre that a draw shows, and its variance.
    expected : array of shape (width + 1,)
        Variance of the coefficients around the centre.
    """

    centre: FloatArray
    gain: FloatArray
    noise: FloatArray
    expected: FloatArray

    def belief(self, draws: FloatArray, inference: str) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the coefficients, given draws."""
        mean, noise = draws.mean(axis=0), self.noise / len(draws)
        if inference != "noise_aware":
            return mean, self.noise + noise
        variance = 1 / (self.gain**2 / noise + 1 / self.expected)
        return self.centre + variance * self.gain / noise * (mean - self.centre), variance


@dataclass(frozen=True)
class CoefficientDraws(GaussianPosterior):
    """A belief whose draws are public, on the scale of the bounds."""

    draws: FloatArray

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` of the draws, with replacement."""
        return self.draws[rng.integers(len(self.draws), size=n)]


def posterior_of_draws(
    draws: FloatArray, law: DrawLaw, units: Units, prior: GaussianPrior
) -> CoefficientDraws:
    """Return the belief that draws leave, in units of the windows, on the scale of the bounds."""
    mean, variance = law.belief(draws, prior.inference)
    if not prior.design.intercept:
        mean[0], variance[0] = 0.0, 0.0
    moved = draws @ units.windows.to_bounds().T * units.window.half
    moved[:, 0] += units.window.centre
    belief = Belief(mean, np.diag(variance), units.variance)
    scaled = GaussianPosterior.of(belief, belief, units.window, units.windows)
    return CoefficientDraws(**vars(scaled), draws=moved)


def usual_variances(design: Design, target_variance: float) -> FloatArray:
    """Variances of (constant, coefficients) that explain a public share of the target's."""
    columns = len(design.features) + design.intercept
    return EXPLAINED * target_variance / (columns * even_squares(design))


def even_squares(design: Design) -> FloatArray:
    """Mean squares of (constant, coordinates) of columns that fill their domains evenly."""
    squares = np.where(design.numbers, 1 / 3, np.where(design.signs, 1.0, 1 / design.n_values))
    return np.concatenate([[1.0], squares])
