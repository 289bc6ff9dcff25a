r"""Bayes on released moments: taken as exact, or as moments with noise of known variance.

The moments of a linear model are :math:`\sum zz^\top` for :math:`z = (1, x, t)`. With coefficients
w of the coordinates (1, x), their part A and the products b with the target, least squares solves
:math:`Aw = b`. Plug-in inference inverts the released A, which is unstable. Noise-aware inference
knows the variance of the noise in every entry of A and b, and solves the equation as
:mod:`~dpbayes_sklearn.convex.intervals` does, for predictions with a prior under which the features
explain a usual share of the target's variance.

Coordinates of a column's levels add up to the constant, so the equation is one of contrasts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.coordinates import first_map
from dpbayes_sklearn.convex.design import Windows
from dpbayes_sklearn.convex.intervals import NoisyEquation
from dpbayes_sklearn.convex.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.convex.slopes import Slopes, slopes_of
from dpbayes_sklearn.regression.moments import ReleasedMoments

_EXPLAINED = 0.5  # Share of the target's variance that the features explain, for predictions.
_FLAT = 10.0  # Prior deviation of a coefficient in intervals, in deviations of the target.
_LEAST = 0.02  # A variance is at least this part of that of a column which fills its bounds.
_ROUNDS = 20  # Of the residual variance, which depends on the coefficients.


def update(prior: GaussianPrior, released: ReleasedMoments) -> GaussianPosterior:
    """Return the belief after seeing released moments."""
    if prior.inference == "noise_aware" and released.variance.any():
        return _noise_aware(prior, released)
    belief = plug_in(released, prior)
    slopes = None
    if not released.variance.any():  # exact: the belief is all there is to know
        explained = _explained(released, belief.mean)
        slopes = Slopes.of(belief.mean, belief.covariance, released.design, explained)
    windows = Windows.whole(released.design.width)
    return GaussianPosterior(*belief, slopes, windows, released.n)


class Belief(NamedTuple):
    """Mean and covariance of (constant, coefficients), and the variance around the regression."""

    mean: FloatArray
    covariance: FloatArray
    noise: float


def _noise_aware(prior: GaussianPrior, released: ReleasedMoments) -> GaussianPosterior:
    """Solve the released equation for contrasts, with its noise; twice: weakly, and shrunk."""
    design, n = released.design, released.n
    first = first_map(design, np.zeros(0), np.ones(0))  # (p, width + 1)
    gram = released.gram - released.increment * np.eye(len(released.gram))
    a, b = first @ gram[:-1, :-1] @ first.T, first @ gram[:-1, -1]
    squares = np.square(first)
    noise_a = squares @ released.variance[:-1, :-1] @ squares.T
    noise_b = squares @ released.variance[:-1, -1]
    total = _positive(gram[-1, -1] / n, released.variance[-1, -1] / n**2)
    back = first.T  # from parameters to (constant, coefficients)
    weak = np.full(len(first), _FLAT * np.sqrt(total))
    residual = total if prior.noise_variance is None else prior.noise_variance
    values, vectors = np.linalg.eigh(a)
    least = _LEAST * n + np.sqrt(float(np.diag(noise_a).max()))
    spread = (vectors * np.maximum(values, least)) @ vectors.T / n
    declared = back[1:].T @ (back[1:] * prior.precisions(1.0)[:, None])
    usual = spread * len(first) / (_EXPLAINED * total)
    if design.intercept:
        usual[0, :] = usual[:, 0] = 0.0
    way = np.zeros(len(first))
    for _ in range(_ROUNDS):
        equation = NoisyEquation(
            a, noise_a, b, np.diag(noise_b), residual * spread * n, np.zeros(len(first)), weak
        )
        weighted, precision = equation.weighted(way, np.outer(way, way), usual + declared)
        way = (way + np.linalg.solve(precision, weighted.T @ b)) / 2
        if prior.noise_variance is None:
            left = total - (2 * way @ b - way @ a @ way) / n
            residual = float(np.clip(left, _LEAST * total, total))
    explained = max(total - residual, 0.0)
    return GaussianPosterior(
        back @ way,
        back @ np.linalg.inv(precision) @ back.T,
        residual,
        slopes_of(equation, np.zeros(len(first)), back, design, explained),
        Windows.whole(design.width),
        n,
    )


def _positive(value: float, variance: float) -> float:
    """Return a mean square, averaged with that of a target which fills its bounds."""
    usual = 1 / 3
    kept = usual**2 / (usual**2 + variance)
    return float(max(usual + kept * (value - usual), np.sqrt(kept * variance) / 2, 1e-9))


def plug_in(released: ReleasedMoments, prior: GaussianPrior) -> Belief:
    """Conjugate Bayes: precision A/v + L and mean (A/v + L)⁻¹ b/v, with noise variance v.

    Moments that noise left without a model are projected to the nearest that have one. An unknown
    v solves v = residual sum of squares / n.
    """
    gram = released.gram if not released.variance.any() else _semidefinite(released.gram)
    kept = np.arange(0 if released.design.intercept else 1, len(gram) - 1)
    precisions = np.append(0.0, prior.precisions(1.0))
    a, b, tt = gram[np.ix_(kept, kept)], gram[kept, -1], float(gram[-1, -1])
    most = max(tt / released.n, 1e-12)
    v = most if prior.noise_variance is None else prior.noise_variance
    for _ in range(100):
        factor = _cholesky(a / v + np.diag(precisions[kept]))
        w = cho_solve(factor, b / v)
        residual = float(np.clip((tt - 2 * w @ b + w @ a @ w) / released.n, 1e-9 * most, most))
        if prior.noise_variance is not None or abs(residual - v) <= 1e-12 * most:
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
        least = 1e-12 * matrix.diagonal().max() * np.eye(len(matrix))
        factor = cho_factor(_semidefinite(matrix) + least, lower=True)
    return factor


def _semidefinite(matrix: FloatArray) -> FloatArray:
    """Return the nearest positive semi-definite matrix."""
    values, axes = np.linalg.eigh(matrix)
    if values[0] >= 0:
        return matrix
    return np.asarray((axes * np.maximum(values, 0.0)) @ axes.T)
