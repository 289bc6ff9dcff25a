"""The reading for predictions: covariances and coefficients shrunk to what is usual.

Variances are averaged with the located spreads, correlations with zero (their usual size is learned
from all of them). If the features then explain more than all of the target's variance, their own
variances must be too small and are raised. Coefficients have a heavy-tailed prior under which the
features explain a share of the target's variance; beliefs for several shares are averaged by their
evidence.
"""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.regression.belief import Belief
from dpbayes_sklearn.posteriors.regression.centred import Centred
from dpbayes_sklearn.posteriors.regression.equations import divided, eigenvalues_at_least, solve
from dpbayes_sklearn.posteriors.regression.variances import variance_posterior

__all__ = ["predictive_belief"]

_SHARES = np.array([0.03, 0.1, 0.2, 0.4, 0.7, 0.9])  # of the variance, that may be explained
_SHARE_WEIGHTS = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 0.25])
_USUAL, _USUAL_SD = 0.1, 1.0  # variance of a number that was not located, and its log's deviation
_LOOSE = 0.25  # of the logarithm of a variance about its located spread, beside its error
_SURE = 0.02  # relative error from which a variance is taken as it was released
_LEAST_CORRELATION, _MOST_CORRELATION = 0.05, 0.5
_RAISED = np.arange(0, 4.25, 0.25)  # standard deviations by which variances may be raised


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
    c, error = _covariances(known)
    s = np.sqrt(np.diag(c))
    found = [
        solve(known, c, error, precisions, noise, s * s.sum() / (share * known.total))
        for share in _SHARES
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
    return Belief(*known.with_constant(np.asarray(w), np.asarray(spread), rest), rest)


def _covariances(known: Centred) -> tuple[FloatArray, FloatArray]:
    """Return shrunk covariances and the variances of their errors."""
    design, c, error = known.design, known.covariance.copy(), known.error.copy()
    diagonal = np.diag_indices_from(c)
    # grid points are too far apart for a variance that is known as exactly as that
    learned = design.numbers & (known.own_error > _SURE**2 * c[diagonal] ** 2)
    if learned.any():
        centre = np.log(_USUAL if design.intercept else 1 / 3)
        variances = variance_posterior(known, centre, _USUAL_SD, _LOOSE)
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
    return _explaining_at_most_all(known, eigenvalues_at_least(floor, c)), error


def _explaining_at_most_all(known: Centred, c: FloatArray) -> FloatArray:
    r"""Raise the variances until the features explain no more than the target's variance T.

    They explain :math:`g^\top C^{-1}g`, less :math:`\sum_j v_j (C^{-1})_{jj}` that the noise of g
    adds to it. All variances are raised by the same number of their standard deviations.
    """
    deviations, raised = np.diag(np.sqrt(known.own_error)), c
    for number in _RAISED:
        raised = c + number * deviations
        inverse, _ = divided(raised, np.eye(len(c)))
        explained = known.cross @ inverse @ known.cross - np.diag(inverse) @ known.cross_error
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
