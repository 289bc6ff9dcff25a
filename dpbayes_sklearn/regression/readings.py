"""Two ways to read released moments: for predictions, and for single coefficients.

**Bayesian regression given moments with noise of known variance.**

Released are, up to noise, the means :math:`m` and covariances :math:`C` of the coordinates and
their covariances :math:`g` with the target, all in the windows where the columns lie. The linear
model says :math:`g = Cw` up to sampling error and noise. Plug-in inference takes the noisy C for C
and inverts it, which is unstable. Here the errors of C and of the means are part of the equations
(``equations``), and the same release is read twice:

- ``predictive``: for ``predict``. C is shrunk to what is usual, and so are the coefficients.
- ``slopes``: for the coefficients themselves. Weak priors only, and the error of every variance is
  integrated over, so that intervals cover.

As the noise vanishes both become the conjugate posterior, but that variances of the second allow
for residuals that are not the same everywhere.

**The reading for predictions: covariances and coefficients shrunk to what is usual.**

Variances are averaged with the located spreads, correlations with zero (their usual size is learned
from all of them). If the features then explain more than all of the target's variance, their own
variances must be too small and are raised. Coefficients have a heavy-tailed prior under which the
features explain a share of the target's variance; beliefs for several shares are averaged by their
evidence.

**Inference for single coefficients: weak priors, and intervals with the stated coverage.**

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
from dpbayes_sklearn.regression.equations import (
    Belief,
    Centred,
    Solution,
    divided,
    eigenvalues_at_least,
    solve,
    variance_posterior,
)

__all__ = ["predictive_belief", "slope_belief"]


_SHARES = np.array([0.03, 0.1, 0.2, 0.4, 0.7, 0.9])  # of the variance, that may be explained
_SHARE_WEIGHTS = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 0.25])
_USUAL, _USUAL_SD = 0.1, 1.0  # variance of a number that was not located, and its log's deviation
# Prior standard deviation of log(variance) around the released spread, added to its error.
_PREDICTIVE_LOOSE = 0.25
_SURE_ERROR = 0.02  # relative error from which a variance is taken as it was released
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
    s, c, error = _predictive_covariances(known)
    found = [
        solve(known, c, error, precisions, noise, s * s.sum() / (share * known.explainable))
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


def _predictive_covariances(known: Centred) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return standard deviations, shrunk covariances, and the variances of all errors."""
    design, c, error = known.design, known.covariance.copy(), known.error.copy()
    diagonal = np.diag_indices_from(c)
    # grid points are too far apart for a variance that is known as exactly as that
    learned = design.numbers & (known.own_error > _SURE_ERROR**2 * c[diagonal] ** 2)
    if learned.any():
        centre = np.log(_USUAL if design.intercept else 1 / 3)
        variances = variance_posterior(known, centre, _USUAL_SD, _PREDICTIVE_LOOSE)
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
    for number in _RAISED:
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


_CORRELATION = 0.6  # prior standard deviation of a correlation
_SURE_DEVIATIONS = 10.0  # standard deviations above zero from which a variance is taken for known
_CORRELATED = 0.5  # eigenvalue of the correlations below which columns are nearly dependent
_LEAST_EIGENVALUE = 1e-3  # of correlations
_QUANTILES = np.array([0.04, 0.25, 0.5, 0.75, 0.96])
_UNEVEN = 2.0  # variance of the sampling error, in units of that of even residuals
# Share of a slope that clipping of record norms can hide, per standard deviation at which they
# are clipped.
_SCALED = 0.6
_CLIPPED = 1.5  # standard deviations that clipped targets may be away from their windows
# Prior standard deviation of log(variance) around the released spread, added to its error.
_SLOPE_LOOSE = 0.9


def slope_belief(known: Centred, noise: float | None) -> Belief:
    """Return the belief about (constant, coefficients) whose intervals cover.

    The prior of a standardised coefficient is N(0, 1); `prior_precision` is no part of it, because
    on the scale of wide bounds any fixed precision decides the coefficients of narrow columns.
    """
    known = replace(known, n=max(1, int(known.n / _UNEVEN)))  # as fewer records have it
    own, own_error = np.diag(known.covariance), known.own_error
    unsure = own < _SURE_DEVIATIONS * np.sqrt(own_error)
    variances = np.where(unsure[:, None], _quantiles(known), np.maximum(own, 1e-9)[:, None])
    at_levels = [
        _slope_covariances(known, each, unsure, level)
        for each, level in zip(variances.T, _QUANTILES, strict=True)
    ]
    if np.array_equal(at_levels[0][0], at_levels[-1][0]):  # nothing is uncertain
        at_levels = at_levels[:1]
    found = [
        _solved(known, c, error, each / known.explainable, noise)
        for (c, error), each in zip(at_levels, variances.T, strict=False)
    ]
    w, spread = _combined(
        np.array([one.w for one in found]), np.array([one.spread for one in found])
    )
    rest = float(np.mean([one.rest for one in found]))
    spread = spread + np.diag(_clipping(known, w, np.median(variances, axis=1)))
    return Belief(*known.with_constant(w, spread, rest), rest)


def _solved(
    known: Centred, c: FloatArray, error: FloatArray, precisions: FloatArray, noise: float | None
) -> Solution:
    """Solve the equations; the variance that is due to the error of c is counted twice.

    They are linear in that error. Where features are correlated it is not small beside the least
    eigenvalue of c, and coefficients are off by a second-order term of the same size.
    """
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
    return variance_posterior(known, 0.0, np.inf, _SLOPE_LOOSE).quantiles(_QUANTILES)


def _slope_covariances(
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
    floor, reduced = _LEAST_EIGENVALUE * c[diagonal].min(initial=1.0), known.contrasts.reduced
    positive = eigenvalues_at_least(float(floor) + 1e-12, reduced(c))
    return _at_level(positive, reduced(error), level), error


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
    unsure = (values < _CORRELATED) & (values < _SURE_DEVIATIONS * sd)
    if not unsure.any():
        return c
    below = ndtr(-values[unsure] / sd[unsure])
    quantile = values[unsure] + sd[unsure] * ndtri(below + level * (1 - below))
    values[unsure] = np.maximum(quantile, _LEAST_EIGENVALUE)
    return np.asarray((axes * values) @ axes.T * size)


def _clipping(known: Centred, w: FloatArray, variances: FloatArray) -> FloatArray:
    r"""Return the variance of what clipping may hide of the slopes w.

    .. math:: (0.6\, w' r_t p_t + w r_x p_x)^2 + (1.5\, q\sqrt T/s)^2

    A share p of the values of the target, or of a column, is clipped r standard deviations away,
    where the window ends, or nearer, where records are scaled because of their target; the q lie
    outside of the window. Scaling takes 0.2 to 0.9 :math:`r_t p_t` of a slope in simulated
    families; with a first stage, of the change w' to it.
    """
    if known.places is None:
        return np.zeros(len(w))
    target, end, p_x = known.places.target, known.places.target_end, np.zeros(len(w))
    s = np.sqrt(np.maximum(variances, 1e-9))
    if known.numbers is not None:
        p_x[known.design.numbers] = known.numbers.beyond()
    scaled, outside = (float(target.beyond(part)[0]) for part in (end, 1.0))
    taken = w * _SCALED * scaled * end / np.sqrt(known.total)
    hidden = np.abs(taken) + np.abs((known.baseline + w) * p_x / s)
    return np.asarray(hidden**2 + (_CLIPPED * outside * np.sqrt(known.total) / s) ** 2)
