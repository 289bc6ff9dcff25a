"""Gaussian beliefs about the coefficients of a linear model: conjugate Bayes on moments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dpbayes_sklearn._arviz import ToArviz
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.records import blas_for
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.equations import Belief, FirstStage, centred
from dpbayes_sklearn.regression.location import Located
from dpbayes_sklearn.regression.moments import Predictive, ReleasedMoments, Window, Windows
from dpbayes_sklearn.regression.readings import predictive_belief, slope_belief

__all__ = ["GaussianPosterior", "GaussianPrior"]


@dataclass(frozen=True)
class GaussianPrior:
    """Independent N(0, 1/precision) beliefs about all coefficients but the constant's.

    Features and target are on the scale of their bounds, [-1, 1]; the constant has a flat prior.
    A sign stands for two indicators, so its prior is twice as sharp.

    Attributes
    ----------
    design : Design
    precision : float
        The b of N(0, 1/b).
    noise_variance : float or None
        Variance of the target around the regression; None learns it from what is released.
    inference : {"plug_in", "noise_aware"}
        How released moments are read: as exact moments, or as moments with noise of known variance.
    coef_bound : float or None
        Norm that drawn coefficients may have, in units of the windows; None if it has no bound.
    """

    design: Design
    precision: float = 1.0
    noise_variance: float | None = None
    inference: str = "plug_in"
    coef_bound: float | None = None

    def precisions(self, window: Window, windows: Windows) -> FloatArray:
        """Return the prior precisions of (constant, coefficients) in units of the windows."""
        each = self.precision * np.where(self.design.signs, 2.0, 1.0)
        return np.concatenate([[0.0], each * (window.half / windows.halves) ** 2])

    def update(
        self,
        released: ReleasedMoments,
        places: Located | None = None,
        first: FirstStage | None = None,
    ) -> GaussianPosterior:
        """Return the belief after seeing released moments, and where target and columns lie.

        With a first stage, the moments are those of its residuals.
        """
        window, windows = released.window, released.windows
        noise = None if self.noise_variance is None else self.noise_variance / window.half**2
        precisions = self.precisions(window, windows)
        if not self._sees_noise(released):
            belief = plug_in_belief(released, precisions, noise)
            return GaussianPosterior.of(belief, belief, window, windows)
        with blas_for(self.design.width):
            known = centred(released, places, first)
            predicting = predictive_belief(known, precisions[1:], noise)
            slopes = slope_belief(known, noise)
        found = GaussianPosterior.of(predicting, slopes, window, windows)
        return found if first is None else found.shifted(first.coefficients)

    def _sees_noise(self, released: ReleasedMoments) -> bool:
        return self.inference == "noise_aware" and bool(released.variance.any())


@dataclass(frozen=True)
class GaussianPosterior(ToArviz):
    """A Gaussian belief about (constant, coefficients) on the scale of the bounds.

    Attributes
    ----------
    coefficients : array of shape (width + 1,)
        Posterior mean, as predictions use it.
    covariance : array of shape (width + 1, width + 1)
        Uncertainty that the data and the privacy noise leave.
    noise_variance : float
        Variance of the target around the regression.
    slopes : array of shape (width + 1,)
        Posterior mean under weak priors, for statements about single coefficients.
    slope_covariance : array of shape (width + 1, width + 1)
        Its uncertainty.
    windows : Windows
        Where the coordinates were clipped: the model is constant outside.
    """

    _parameter: ClassVar[str] = "coefficients"

    coefficients: FloatArray
    covariance: FloatArray
    noise_variance: float
    slopes: FloatArray
    slope_covariance: FloatArray
    windows: Windows

    @classmethod
    def of(
        cls, predicting: Belief, slopes: Belief, window: Window, windows: Windows
    ) -> GaussianPosterior:
        """Return beliefs in units of the windows as beliefs on the scale of the bounds."""
        back = windows.to_bounds() * window.half
        means = [back @ belief.mean for belief in (predicting, slopes)]
        spreads = [back @ belief.covariance @ back.T for belief in (predicting, slopes)]
        for mean in means:
            mean[0] += window.centre
        noise = predicting.noise * window.half**2
        return cls(means[0], spreads[0], noise, means[1], spreads[1], windows)

    def scaled(self, factor: float) -> Self:
        """Return the belief with all variances times ``factor``."""
        return replace(
            self,
            covariance=factor * self.covariance,
            noise_variance=factor * self.noise_variance,
        )

    def shifted(self, by: FloatArray, error: float = 0.0) -> Self:
        """Return the belief about coefficients that are larger by these.

        ``error`` is the variance of the first of them, the constant.
        """
        constant = np.zeros_like(self.covariance)
        constant[0, 0] = error
        return replace(
            self,
            coefficients=self.coefficients + by,
            covariance=self.covariance + constant,
            slopes=self.slopes + by,
            slope_covariance=self.slope_covariance + constant,
        )

    def as_predictive(self, reach: float) -> Predictive:
        """Return mean and variance as products, to ask for residuals of this model."""
        values, axes = np.linalg.eigh(self.covariance)
        roots = axes * np.sqrt(np.maximum(values, 0.0))
        both = np.column_stack([self.coefficients, roots])
        return Predictive(both, self.noise_variance, reach, self.windows)

    def mean(self) -> FloatArray:
        """Return the expected (constant, coefficients)."""
        return self.coefficients

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` draws of (constant, coefficients)."""
        return rng.multivariate_normal(self.coefficients, self.covariance, size=n, method="eigh")

    def predictive(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the target for rows of coordinates."""
        inside = self.windows.clip(x.copy())
        mean = inside @ self.coefficients[1:] + self.coefficients[0]
        return mean, self.variance_inside(inside)

    def variance_inside(self, x: FloatArray) -> FloatArray:
        """Return the variance of the target for rows of coordinates that lie in the windows."""
        products = x @ self.covariance[1:, 1:]
        products += 2 * self.covariance[0, 1:]
        spread = np.einsum("ij,ij->i", products, x) + self.covariance[0, 0]
        variance: FloatArray = self.noise_variance + np.maximum(spread, 0.0)
        return variance

    def log_predictive(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the log density of targets for rows of coordinates."""
        mean, variance = self.predictive(x)
        density: FloatArray = -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)
        return density


def plug_in_belief(
    released: ReleasedMoments, precisions: FloatArray, noise: float | None
) -> Belief:
    """Conjugate Bayes: precision A/v + L and mean (A/v + L)⁻¹ b/v, with noise variance v.

    Moments that noise left without a model are projected to the nearest that have one. An unknown
    v solves v = residual sum of squares / n.
    """
    gram = released.gram if not released.variance.any() else _semidefinite(released.gram)
    kept = np.arange(0 if released.design.intercept else 1, len(gram) - 1)
    a, b, tt = gram[np.ix_(kept, kept)], gram[kept, -1], float(gram[-1, -1])
    most = max(tt / released.n, 1e-12)
    v = most if noise is None else noise
    for _ in range(100):
        factor = _cholesky(a / v + np.diag(precisions[kept]))
        w = cho_solve(factor, b / v)
        residual = float(np.clip((tt - 2 * w @ b + w @ a @ w) / released.n, 1e-9 * most, most))
        if noise is not None or abs(residual - v) <= 1e-12 * most:
            break
        v = residual
    mean, covariance = np.zeros(len(gram) - 1), np.zeros((len(gram) - 1,) * 2)
    mean[kept] = w
    covariance[np.ix_(kept, kept)] = cho_solve(factor, np.eye(len(kept)))
    return Belief(mean, covariance, v)


def _cholesky(matrix: FloatArray) -> tuple[FloatArray, bool]:
    """Factor a matrix that is positive definite up to rounding."""
    try:
        factor: tuple[FloatArray, bool] = cho_factor(matrix, lower=True)
    except LinAlgError:  # singular moments and a prior too weak for a double to notice
        factor = cho_factor(matrix + 1e-12 * matrix.diagonal().max() * np.eye(len(matrix)), True)
    return factor


def _semidefinite(matrix: FloatArray) -> FloatArray:
    """Return the nearest positive semi-definite matrix."""
    values, axes = np.linalg.eigh(matrix)
    if values[0] >= 0:
        return matrix
    projected: FloatArray = (axes * np.maximum(values, 0.0)) @ axes.T
    return projected
