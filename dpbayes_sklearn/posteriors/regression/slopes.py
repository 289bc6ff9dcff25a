r"""Inference for single coefficients: weak priors, and intervals with the stated coverage.

A coefficient is a covariance over a variance. Where the noise leaves a variance uncertain, so is
the coefficient, in proportion: no single guess of it may decide. So the equations are solved at
several quantiles of the posterior of every uncertain variance, and the solutions are combined,
their differences counted as uncertainty. Coefficients of correlated columns are divided by the
variance of a combination of columns, a small eigenvalue of their correlations, so that is treated
in the same way. What clipping to the windows may hide is counted too, and so is a residual variance
that is not the same everywhere, up to a public factor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.regression.belief import Belief
from dpbayes_sklearn.posteriors.regression.centred import Centred
from dpbayes_sklearn.posteriors.regression.equations import Solution, eigenvalues_at_least, solve
from dpbayes_sklearn.posteriors.regression.variances import variance_posterior

__all__ = ["slope_belief"]

_CORRELATION = 0.6  # prior standard deviation of a correlation
_SURE = 10.0  # standard deviations above zero from which a variance is taken for known
_CORRELATED = 0.5  # eigenvalue of the correlations below which columns are nearly dependent
_LEAST_EIGENVALUE = 1e-3  # of correlations
_QUANTILES = np.array([0.04, 0.25, 0.5, 0.75, 0.96])
_UNEVEN = 2.0  # variance of the sampling error, in units of that of even residuals
_SCALED = 0.6  # of a slope that may be hidden, for all records scaled at one standard deviation
_CLIPPED = 1.5  # standard deviations that clipped targets may be away from their windows
_LOOSE = 0.9  # of the logarithm of a variance about its located spread, beside its error


def slope_belief(known: Centred, noise: float | None) -> Belief:
    """Return the belief about (constant, coefficients) whose intervals cover.

    The prior of a standardised coefficient is N(0, 1); `prior_precision` is no part of it, because
    on the scale of wide bounds any fixed precision decides the coefficients of narrow columns.
    """
    known = replace(known, n=max(1, int(known.n / _UNEVEN)))  # as fewer records have it
    own, own_error = np.diag(known.covariance), known.own_error
    unsure = own < _SURE * np.sqrt(own_error)
    variances = np.where(unsure[:, None], _quantiles(known), np.maximum(own, 1e-9)[:, None])
    at_levels = [
        _covariances(known, each, unsure, level)
        for each, level in zip(variances.T, _QUANTILES, strict=True)
    ]
    if np.array_equal(at_levels[0][0], at_levels[-1][0]):  # nothing is uncertain
        at_levels = at_levels[:1]
    found = [_solved(known, c, error, noise) for c, error in at_levels]
    w, spread = _combined(
        np.array([one.w for one in found]), np.array([one.spread for one in found])
    )
    rest = float(np.mean([one.rest for one in found]))
    spread = spread + np.diag(_clipping(known, w, np.median(variances, axis=1)))
    return Belief(*known.with_constant(w, spread, rest), rest)


def _solved(known: Centred, c: FloatArray, error: FloatArray, noise: float | None) -> Solution:
    """Solve the equations; the variance that is due to the error of c is counted twice.

    They are linear in that error. Where features are correlated it is not small beside the least
    eigenvalue of c, and coefficients are off by a second-order term of the same size.
    """
    precisions = np.diag(c) / known.total
    found = solve(known, c, error, precisions, noise)
    without = solve(known, c, np.zeros_like(error), precisions, noise)
    more = np.maximum(np.diag(found.spread) - np.diag(without.spread), 0.0)
    return found._replace(spread=found.spread + np.diag(more))


def _combined(w: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average solutions by their precisions; what they differ by is uncertainty."""
    weight = 1 / np.maximum(np.diagonal(spread, axis1=1, axis2=2), 1e-300)
    mean = (weight * w).sum(axis=0) / weight.sum(axis=0)
    off = w - mean
    return mean, np.asarray(spread.mean(axis=0) + np.einsum("qi,qj->ij", off, off) / len(w))


def _quantiles(known: Centred) -> FloatArray:
    """Return quantiles of the posterior of every variance, shape (width, quantiles).

    The logarithm of a variance that was not located is flat.
    """
    return variance_posterior(known, 0.0, np.inf, _LOOSE).quantiles(_QUANTILES)


def _covariances(
    known: Centred, own: FloatArray, unsure: npt.NDArray[np.bool_], level: float
) -> tuple[FloatArray, FloatArray]:
    """Return covariances for these variances; what stands for the error of one has none.

    Small eigenvalues of the correlations are put at their quantiles of this level.
    """
    c, error = known.covariance.copy(), known.error.copy()
    diagonal = np.diag_indices_from(c)
    c[diagonal] = np.maximum(own, 1e-9)
    error[diagonal] = np.where(unsure, 0.0, error[diagonal])
    size = np.sqrt(np.outer(c[diagonal], c[diagonal]))
    apart = known.design.column[:, None] != known.design.column
    kept = np.where(apart, 1 / (1 + error / (_CORRELATION * size) ** 2), 1.0)
    off = ~np.eye(len(c), dtype=bool)
    c[off] *= kept[off]
    error[off] *= kept[off]
    floor = _LEAST_EIGENVALUE * float(c[diagonal].min(initial=1.0)) + 1e-12
    return _at_level(eigenvalues_at_least(floor, c), error, level), error


def _at_level(c: FloatArray, error: FloatArray, level: float) -> FloatArray:
    r"""Return covariances with the small eigenvalues of the correlations at a quantile.

    An eigenvalue :math:`u^\top R u` of the correlations has the error
    :math:`\sum_{ij} (2 - [i=j]) u_i^2 u_j^2 v_{ij}`; its posterior under a flat prior is a normal
    distribution, restricted to positive values.
    """
    size = np.sqrt(np.outer(np.diag(c), np.diag(c)))
    values, axes = np.linalg.eigh(c / size)
    squares, v = axes**2, error / size**2
    sd = np.sqrt(2 * np.sum(squares * (v @ squares), axis=0) - squares.T**2 @ np.diag(v))
    unsure = (values < _CORRELATED) & (values < _SURE * sd)
    if not unsure.any():
        return c
    below = ndtr(-values[unsure] / sd[unsure])
    quantile = values[unsure] + sd[unsure] * ndtri(below + level * (1 - below))
    values[unsure] = np.maximum(quantile, _LEAST_EIGENVALUE)
    return np.asarray((axes * values) @ axes.T * size)


def _clipping(known: Centred, w: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the variance of what clipping may hide: (w (0.6 r_t p_t + r_x p_x))² + (1.5 q √T/s)².

    A share p of the values of the target, or of a column, is clipped r standard deviations away.
    That is where the window ends, or nearer, where records are scaled because of their target; the
    q lie outside of the window. Scaling takes 0.2 to 0.9 r_t p_t of a slope in simulated families.
    """
    if known.places is None:
        return np.zeros(len(w))
    target, end, p_x = known.places.target, known.places.target_end, np.zeros(len(w))
    s = np.sqrt(np.maximum(variances, 1e-9))
    if known.numbers is not None:
        p_x[known.design.numbers] = known.numbers.beyond()
    scaled, outside = (float(target.beyond(part)[0]) for part in (end, 1.0))
    relative = _SCALED * scaled * end / np.sqrt(known.total) + p_x / s
    return np.asarray((w * relative) ** 2 + (_CLIPPED * outside * np.sqrt(known.total) / s) ** 2)
