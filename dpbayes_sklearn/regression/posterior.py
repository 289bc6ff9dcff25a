"""Gaussian beliefs about the coefficients of a linear model: conjugate Bayes on moments.

Released are, up to noise, the means :math:`m` and covariances :math:`C` of the coordinates and
their covariances :math:`g` with the target, all in the windows where the columns lie. The linear
model says :math:`g = Cw` up to sampling error and noise. Plug-in inference takes the noisy C for C
and inverts it, which is unstable. Here the errors of C and of the means are part of the equations
(``equations``), and the same release is read twice:

- ``predictive``: for ``predict``. C is shrunk to what is usual, and so are the coefficients.
- ``slopes``: for the coefficients themselves. Weak priors only, and intervals by tests.

As the noise vanishes both become the conjugate posterior, but that variances of the second allow
for residuals that are not the same everywhere.

**The reading for predictions: covariances and coefficients shrunk to what is usual.**

Variances are averaged with the located spreads, correlations with zero (their usual size is learned
from all of them). If the features then explain more than all of the target's variance, their own
variances must be too small and are raised. Coefficients have a heavy-tailed prior under which the
features explain a share of the target's variance; beliefs for several shares are averaged by their
evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.records import blas_for
from dpbayes_sklearn.regression.design import Design, Window, Windows
from dpbayes_sklearn.regression.equations import (
    Belief,
    Centred,
    FirstStage,
    centred,
    divided,
    eigenvalues_at_least,
    solve,
    variance_posterior,
)
from dpbayes_sklearn.regression.location import Located
from dpbayes_sklearn.regression.moments import ReleasedMoments
from dpbayes_sklearn.regression.record_sums import Predictive
from dpbayes_sklearn.regression.slopes import Slopes, Weighted, contrasts, slopes

# Shares of the variance that features may explain, and their prior weights.
_EXPLAINED_SHARES = np.array([0.03, 0.1, 0.2, 0.4, 0.7, 0.9])
_SHARE_WEIGHTS = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 0.25])
# Prior of the variance of a number that was not located: its median, and its log's deviation.
_USUAL_VARIANCE, _LOG_VARIANCE_SD = 0.1, 1.0
# Prior standard deviation of log(variance) around the released spread, added to its error.
_PREDICTIVE_LOOSE = 0.25
_SURE_ERROR = 0.02  # With a smaller relative error a variance is taken as released.
# The prior standard deviation of a correlation is estimated between these ends.
_LEAST_CORRELATION, _MOST_CORRELATION = 0.05, 0.5
_RAISED_SDS = np.arange(0, 4.25, 0.25)  # Variances may be raised by these many standard deviations.


def predictive_belief(known: Centred, precisions: FloatArray, noise: float | None) -> Belief:
    """Return the belief about (constant, coefficients) that predicts best.

    Parameters
    ----------
    known : Centred
    precisions : array of shape (width,)
        Prior precisions of the coefficients, in the windows.
    noise : float or None
        Variance of the target around the regression; learned if None.
    """
    s, c, error = _predictive_covariances(known)
    alone = known.by_first(s**2)
    found = [
        solve(known, c, error, precisions, noise, s * s.sum() / (share * known.explainable), alone)
        for share in _EXPLAINED_SHARES
    ]
    log_weight = np.array([one.evidence for one in found]) + np.log(_SHARE_WEIGHTS)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    w = sum(p * one.w for p, one in zip(weight, found, strict=True))
    spread = sum(
        p * (one.spread + np.outer(one.w - w, one.w - w))
        for p, one in zip(weight, found, strict=True)
    )
    rest = float(sum(p * one.rest for p, one in zip(weight, found, strict=True)))
    w, spread = np.asarray(w), np.asarray(spread)
    own = rest / known.n + known.noise_of_constant(w, spread)
    return Belief(*known.with_constant(w, spread, own), rest)


def _predictive_covariances(known: Centred) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return standard deviations, shrunk covariances, and the variances of all errors."""
    design, c, error = known.design, known.covariance.copy(), known.error.copy()
    diagonal = np.diag_indices_from(c)
    # grid points are too far apart for a variance that is known as exactly as that
    learned = design.numbers & (known.own_error > _SURE_ERROR**2 * c[diagonal] ** 2)
    if learned.any():
        centre = np.log(_USUAL_VARIANCE if design.intercept else 1 / 3)
        variances = variance_posterior(known, centre, _LOG_VARIANCE_SD, _PREDICTIVE_LOOSE)
        error[diagonal] *= np.where(learned, variances.error / known.own_error, 1.0)
        c[diagonal] = np.where(learned, variances.mean, c[diagonal])
    c[diagonal] = np.maximum(c[diagonal], np.maximum(np.sqrt(known.own_error) / 4, 1e-6))
    size = np.sqrt(np.outer(c[diagonal], c[diagonal]))
    apart = design.column[:, None] != design.column
    usual = _usual_correlation(c / size, error / size**2, apart)
    kept_off = np.where(apart, 1 / (1 + error / (usual * size) ** 2), 1.0)
    off = ~np.eye(len(c), dtype=bool)
    c[off] *= kept_off[off]
    error[off] *= kept_off[off]
    floor = min(2e-3, float(np.sqrt(error.mean()) if error.size else 0.0)) + 1e-10
    deviations = np.sqrt(np.maximum(c[diagonal], floor))
    reduced = eigenvalues_at_least(floor, known.contrasts.reduced(c))
    return deviations, _explaining_at_most_all(known, reduced), error


def _explaining_at_most_all(known: Centred, c: FloatArray) -> FloatArray:
    r"""Raise the variances until the features explain no more than the target's variance T.

    They explain :math:`g^\top C^{-1}g`, less :math:`\sum_j v_j (C^{-1})_{jj}` that the noise of g
    adds to it. All variances are raised by the same number of their standard deviations.
    """
    kept, raised = known.contrasts.kept, c
    deviations, g = np.diag(np.sqrt(known.own_error[kept])), known.cross[kept]
    for number in _RAISED_SDS:
        raised = c + number * deviations
        inverse, _ = divided(raised, np.eye(len(c)))
        explained = g @ inverse @ g - np.diag(inverse) @ known.cross_error[kept]
        if explained <= known.total:
            break
    return raised


def _usual_correlation(r: FloatArray, error: FloatArray, apart: FloatArray) -> float:
    """Return the root mean square of the correlations, their errors left out."""
    seen, noise = r[apart], error[apart]
    if not len(seen):
        return _LEAST_CORRELATION
    weight = 1 / (noise + 0.1**2) ** 2
    square = float((weight * (seen**2 - noise)).sum() / weight.sum())
    return float(np.sqrt(np.clip(square, _LEAST_CORRELATION**2, _MOST_CORRELATION**2)))


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
        uneven: Callable[[GaussianPosterior], Weighted] | None = None,
    ) -> GaussianPosterior:
        """Return the belief after seeing released moments, and where target and columns lie.

        With a first stage, the moments are those of its residuals. ``uneven`` asks for squared
        residuals of a belief, weighted by the coordinates.
        """
        window, windows = released.window, released.windows
        noise = None if self.noise_variance is None else self.noise_variance / window.half**2
        precisions = self.precisions(window, windows)
        if not self._sees_noise(released):
            belief = plug_in_belief(released, precisions, noise)
            found = GaussianPosterior.of(belief, window, windows, self.design)
            explained = _explained(released, belief.mean) * window.half**2
            return replace(found, slopes=replace(found.slopes, n=released.n, explained=explained))
        with blas_for(self.design.width):
            known = centred(released, places, first)
            predicting = predictive_belief(known, precisions[1:], noise)
        start = np.zeros(self.design.width + 1) if first is None else first.coefficients
        found = GaussianPosterior.of(predicting, window, windows, self.design).shifted(start)
        gram = np.diag(released.gram)[1:-1] - released.increment
        factors = None if uneven is None else uneven(found).factors(gram / released.n)
        with blas_for(self.design.width):
            rows = contrasts(self.design)[1] @ windows.to_bounds() * window.half
            read = slopes(known, noise, rows, factors).on_bounds(window, windows)
        return replace(found, slopes=read.shifted(start, 0.0))

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
    slopes : Slopes
        Estimates under weak priors, for statements about single coefficients.
    windows : Windows
        Where the coordinates were clipped: the model is constant outside.
    """

    _parameter: ClassVar[str] = "coefficients"

    coefficients: FloatArray
    covariance: FloatArray
    noise_variance: float
    slopes: Slopes
    windows: Windows

    @classmethod
    def of(
        cls, belief: Belief, window: Window, windows: Windows, design: Design
    ) -> GaussianPosterior:
        """Return a belief in units of the windows as one on the scale of the bounds."""
        back = windows.to_bounds() * window.half
        mean, spread = back @ belief.mean, back @ belief.covariance @ back.T
        mean[0] += window.centre
        noise = belief.noise * window.half**2
        return cls(mean, spread, noise, Slopes.of(mean, spread, design), windows)

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
            slopes=self.slopes.shifted(by, error),
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


def _explained(released: ReleasedMoments, w: FloatArray) -> float:
    """Return the variance of the fitted values; without an intercept, their mean square."""
    gram = released.gram / released.n
    fitted = float(w @ gram[:-1, :-1] @ w)
    return fitted - float(gram[0, :-1] @ w) ** 2 if released.design.intercept else fitted


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
