"""Moments around the means, in the windows of the columns, with the variances of their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.location import Located, Location
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.moments import ReleasedMoments

__all__ = ["Centred", "centred"]

_CLIPPED = 0.05  # by which clipping may move the mean of a window
_CENTRED = 0.1  # by which a sign may be away from the mean at which it was centred
_USUAL_TARGET = 0.1  # variance of a target on the scale of its bounds, if not known better


@dataclass(frozen=True)
class Centred:
    """Means, covariances and products with the target, and the variances of their noise.

    Attributes
    ----------
    design : Design
    n : int
    mean, mean_error : arrays of shape (width,)
        0 without an intercept: then nothing is centred.
    target, target_error : float
        Mean of the target.
    covariance, error : arrays of shape (width, width)
        ``error`` is that of the mean products: 0 where they are public, or known by the means.
    cross, cross_error : arrays of shape (width,)
        Covariances with the target; the errors are again those of the mean products.
    total, total_error : float
        Variance of the target.
    places : Located
    square_slope : array of shape (width,)
        Change of a coordinate's mean square with its mean, if that is all it depends on: 1 for a
        level, whose square is itself; 0 for numbers.
    """

    design: Design
    n: int
    mean: FloatArray
    mean_error: FloatArray
    target: float
    target_error: float
    covariance: FloatArray
    error: FloatArray
    cross: FloatArray
    cross_error: FloatArray
    total: float
    total_error: float
    places: Located | None
    square_slope: FloatArray

    @property
    def own_error(self) -> FloatArray:
        """Variance of the errors of the variances, those of the means counted in."""
        slope, v = self.square_slope - 2 * self.mean, self.mean_error
        return np.asarray(np.diag(self.error) + slope**2 * v + 2 * v**2)

    @property
    def numbers(self) -> Location | None:
        """Where the numbers lie, if they were located."""
        return None if self.places is None else self.places.numbers

    def with_constant(
        self, w: FloatArray, spread: FloatArray, rest: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of (constant, coefficients): constant = target - m'w."""
        mean, covariance = np.append(0.0, w), np.zeros((len(w) + 1,) * 2)
        covariance[1:, 1:] = spread
        if self.design.intercept:
            m = self.mean
            mean[0] = self.target - m @ w
            covariance[0, 1:] = covariance[1:, 0] = -spread @ m
            covariance[0, 0] = (
                m @ spread @ m
                + self.target_error
                + rest / self.n
                + self.mean_error @ (w**2 + np.diag(spread))
            )
        return mean, covariance


def centred(released: ReleasedMoments, places: Located | None) -> Centred:
    """Return means and covariances of released moments."""
    design, n, x, t = released.design, released.n, slice(1, -1), -1
    gram = (released.gram - released.increment * np.eye(len(released.gram))) / n
    noise = released.variance / n**2
    mean, mean_error = np.zeros(design.width), np.zeros(design.width)
    target = target_error = 0.0
    if design.intercept:
        mean, mean_error = _means(gram[0, x], noise[0, x], design, places)
        at = None if places is None else places.target
        target, target_error = _averaged(
            gram[0, t], noise[0, t], at.error[0] / at.half[0] if at else np.inf
        )
    covariance = gram[x, x] - np.outer(mean, mean)
    error = noise[x, x].copy()
    own, windows = np.diag(gram[x, x]).copy(), released.windows
    square_slope = np.where(design.signs, windows.square_slopes, 0.0)
    if design.intercept:
        own[design.levels], square_slope[design.levels] = mean[design.levels], 1.0
        own[design.signs] = windows.squares_of_signs(mean, 1)[design.signs]
    covariance[np.diag_indices_from(covariance)] = own - mean**2 - mean_error
    if design.intercept:  # a level's square is its sum: known by the means
        error[design.levels, design.levels] = 0.0
    usual = min(_USUAL_TARGET / released.window.half**2, 0.5)
    total_error = noise[t, t] + 4 * target**2 * target_error
    total = _positive(gram[t, t] - target**2 - target_error, total_error, usual)
    return Centred(
        design,
        n,
        mean,
        mean_error,
        float(target),
        float(target_error),
        covariance,
        error,
        gram[x, t] - mean * target,
        noise[x, t],
        total,
        float(total_error),
        places,
        square_slope,
    )


def _averaged(value: float, error: float, known: float) -> tuple[float, float]:
    """Average a mean in its window with the centre of the window, known to a deviation."""
    prior = known**2 + _CLIPPED**2
    kept = prior / (prior + error) if np.isfinite(prior) else 1.0
    return float(kept * np.clip(value, -1, 1)), float(kept * error)


def _means(
    value: FloatArray, error: FloatArray, design: Design, places: Located | None
) -> tuple[FloatArray, FloatArray]:
    """Average means with what is known: windows, or columns that fill their domain."""
    k, levels = design.n_values, design.levels
    guess = np.where(levels, 1 / k, 0.0)
    spread = np.where(levels, np.sqrt((k - 1) / (k + 1)) / k, np.sqrt(1 / 3))
    if places is not None and places.numbers is not None:
        at = places.numbers
        spread[design.numbers] = np.hypot(at.error / at.half, _CLIPPED)
    if places is not None and places.signs is not None:
        spread[design.signs] = _CENTRED
    with np.errstate(divide="ignore"):
        kept = 1 / (1 + error / np.maximum(spread, 1e-6) ** 2)
    mean = np.clip(guess + kept * (value - guess), np.where(levels, 0.0, -1.0), 1.0)
    return mean, kept * error


def _positive(value: float, error: float, guess: float) -> float:
    """Return a variance averaged with a guess of the same size, and not below half its error."""
    kept = guess**2 / (guess**2 + error)
    least = max(np.sqrt(kept * error) / 2, np.finfo(float).tiny ** 0.25)
    return float(max(guess + kept * (value - guess), least))
