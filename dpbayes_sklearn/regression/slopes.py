r"""Intervals of single coefficients: a test of every value, inverted.

Released are, up to noise, covariances C of the coordinates and covariances g with the target. For
the true coefficients w the residual :math:`u(w) = g - Cw` of the normal equations has mean 0 and
the covariance :math:`V(w) = \tfrac1n M + N(w)`: sampling error of the residuals, and the noise of
C, g and the means, quadratic in w (``equations``). An estimate that is linear in g,
:math:`\hat w = Hg - \dots` with :math:`H = (CV^{-1}C + \Lambda)^{-1}CV^{-1}`, has

.. math:: \hat w - w = H u(w) - (1 - HC)(w + w_0),

where the weak prior :math:`\Lambda` about :math:`w + w_0` (the change w to a first stage
:math:`w_0`) causes the second term. So a combination :math:`\theta = a^\top w` is tested by

.. math:: (\hat\theta - \theta)^2 \le \chi^2 \left(a^\top HV(w)H^\top a
          + (a^\top(1 - HC)(w + w_0))^2\right),

and all values that pass are the interval (Fieller 1954; Anderson and Rubin 1949). The other
coefficients follow :math:`\theta` along the direction in which the data tell least about it, but
for columns whose own variance the noise hides: they would hide what is identified. So the right
side is a parabola :math:`q_0 + q_1t + q_2t^2` in :math:`t = \theta - \hat\theta`, and the ends are
its two crossings. If :math:`\chi^2q_2 \ge 1` no value fails: the noise hides the variance that
identifies the coefficient, and the interval is unbounded.

**Sampling error.** :math:`M = \sigma^2 DCD`, where :math:`D_j^2` is the mean of the squared
residuals weighted by :math:`x_j^2`, over their plain mean (the diagonal of White's sandwich), if it
was released, else a public factor.

**Clipping.** What the scaling of records and the clipping of columns are expected to change of a
slope is corrected for, and what they may change beside it is counted as an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.regression.design import Design, Window, Windows
from dpbayes_sklearn.regression.equations import (
    Centred,
    divided,
    eigenvalues_at_least,
    noise_of_residual,
    noise_of_rows,
    solve,
    variance_posterior,
)
from dpbayes_sklearn.regression.location import COMMON_OUTSIDE
from dpbayes_sklearn.schema import Categories

_CORRELATION_SD = 0.6  # Prior standard deviation of a correlation.
_SURE_DEVIATIONS = 10.0  # A variance this many standard deviations above zero is taken for known.
_MOVED_DEVIATIONS = 4.0  # The same, from which a coefficient moves along with others.
_LEAST_CORRELATION_EIGENVALUE = 1e-3  # Eigenvalues of correlations are raised to this.
# Prior of log(variance) around the released spread: mean and standard deviation, added to its
# error. Windows cut the tails, so that the variance inside is smaller.
_WITHIN, _LOOSE = -0.2, 0.3
_UNEVEN = 1.25  # Variance of the sampling error over that of even residuals, if it is not released.
# Prior of this factor where it is released: its deviation from 1, and its range.
_UNEVEN_SD, _UNEVEN_ENDS = 0.7, (0.25, 9.0)
# If a share p of the records, r standard deviations of the target away, is scaled, a slope loses
# this part of rp times the square of its factor D², with this standard deviation.
_TAKEN, _TAKEN_SD = 0.3, 0.5
# Of what clipping a column adds to its slope, this part is seen: records in a tail are scaled, too.
_SEEN, _SEEN_SD = 0.67, 0.4
_LEAST_SIZE = 1e-200  # A row that depends on no coefficient has at least this variance.
_COLUMN = 0.8  # Clipping to windows of one common scale may change a slope by this part of rp.
_OUTSIDE = 0.8  # Clipped targets may be this many standard deviations outside of their windows.


class Contrast(NamedTuple):
    """What a row is about: a feature, and a category of it or None for a number.

    The feature is None for the constant.
    """

    feature: int | None
    category: int | None


def contrasts(design: Design) -> tuple[list[Contrast], FloatArray]:
    """Return the rows of a table: for each the combination of (constant, coordinates) that it is.

    Categories are compared with the first one of their column. Without an intercept, those of the
    first column that has any stand for the constant.
    """
    centres, halves = design.scales
    rows, about = [np.eye(design.width + 1)[0]], [Contrast(None, None)]
    whole: range | None = None
    for j, (_, domain) in enumerate(design.features):
        places = 1 + np.flatnonzero(design.column == j)
        if not isinstance(domain, Categories):
            slope = np.zeros(design.width + 1)
            slope[places] = 1 / halves[j]
            rows[0] = rows[0] - centres[j] * slope
            rows.append(slope)
            about.append(Contrast(j, None))
            continue
        units = np.zeros((domain.n_values, design.width + 1))
        signs = design.signs[places[0] - 1]
        units[:, places] = [[-1.0], [1.0]] if signs else np.eye(domain.n_values)
        if not design.intercept and whole is None:
            whole = range(len(rows), len(rows) + domain.n_values)
            rows += [*units]
            about += [Contrast(j, k) for k in range(domain.n_values)]
            continue
        for row in [0] if design.intercept else whole or []:
            rows[row] = rows[row] + units[0]
        rows += [unit - units[0] for unit in units[1:]]
        about += [Contrast(j, k) for k in range(1, domain.n_values)]
    return about, np.array(rows)


@dataclass(frozen=True)
class Slopes:
    """Estimates of (constant, coefficients) under weak priors, and their errors."""

    mean: FloatArray  # (width + 1,).
    # (width + 1, width + 1): covariance of the error that the records have as a sample.
    sampling: FloatArray
    # (width + 1, width + 1): covariance of all other errors: noise, clipping, and what the weak
    # prior changes.
    privacy: FloatArray
    # (rows, 2): how the variance of a row of `contrasts` grows if its value is larger than the
    # estimate by t: by ``growth[:, 0] * t + growth[:, 1] * t**2``.
    growth: FloatArray
    n: int | None = None  # Number of records: public, or released.
    explained: float | None = None  # Variance of the fitted values, if moments were released.

    @classmethod
    def of(cls, mean: FloatArray, covariance: FloatArray, design: Design) -> Slopes:
        """Return estimates whose errors are normal and depend on nothing."""
        rows = len(contrasts(design)[0])
        return cls(mean, covariance, np.zeros_like(covariance), np.zeros((rows, 2)))

    def on_bounds(self, window: Window, windows: Windows) -> Slopes:
        """Return the same on the scale of the bounds; ``growth`` is there already."""
        back = windows.to_bounds() * window.half
        mean = back @ self.mean
        mean[0] += window.centre
        return replace(
            self,
            mean=mean,
            sampling=back @ self.sampling @ back.T,
            privacy=back @ self.privacy @ back.T,
            explained=None if self.explained is None else self.explained * window.half**2,
        )

    def shifted(self, by: FloatArray, error: float) -> Slopes:
        """Return larger ones; ``error`` is the variance of the first of them, the constant."""
        privacy = self.privacy.copy()
        privacy[0, 0] += error
        return replace(self, mean=self.mean + by, privacy=privacy)


class Weighted(NamedTuple):
    """Released sums of squared residuals: plain, and weighted by every squared coordinate."""

    # sums, variance: (width + 1,): the sums, and the variances of their noise.
    sums: FloatArray
    variance: FloatArray

    def factors(self, squares: FloatArray) -> FloatArray:
        """Return the squares of D, for coordinates with these mean squares.

        They are averaged with 1, and seldom too small: a part of the variance that is left is
        added.
        """
        plain = max(float(self.sums[0]), 1.0) * np.maximum(squares, 1e-6)
        ratio = self.sums[1:] / plain
        error = self.variance[1:] / plain**2
        kept = _UNEVEN_SD**2 / (_UNEVEN_SD**2 + error)
        return np.asarray(np.clip(1 + kept * (ratio - 1) + kept * error, *_UNEVEN_ENDS))


def slopes(
    known: Centred, noise: float | None, rows: FloatArray, uneven: FloatArray | None = None
) -> Slopes:
    """Return the coefficients in units of the windows, with errors whose intervals cover.

    The prior of a standardised coefficient is N(0, 1); `prior_precision` is no part of it, because
    on the scale of wide bounds any fixed precision decides the coefficients of narrow columns.
    ``rows`` are the combinations of (constant, coefficients) whose intervals are asked for, and
    ``uneven`` the squares of D. The residual variance is learned if it is None.
    """
    basis = known.contrasts.basis
    uneven = np.full(len(basis), _UNEVEN) if uneven is None else uneven
    full, c, error = _covariances(known)
    own = np.diag(full)
    precisions = own / known.explainable
    found = solve(known, c, error, precisions, noise)
    w, root = found.w, np.sqrt(uneven)
    sampled = found.rest / known.n * (basis.T * root) @ full @ (basis.T * root).T
    v = basis.T @ noise_of_residual(known, error, w, found.spread) @ basis + sampled
    weighted, _ = divided(v, c)
    inner, _ = divided(c @ weighted + (basis.T * precisions) @ basis, np.eye(len(c)))
    h, shrinkage = basis @ inner @ weighted.T, basis @ inner @ (basis.T * precisions)  # H, 1 - HC
    noisy = h @ basis.T @ noise_of_residual(known, error, w, np.zeros_like(error)) @ basis @ h.T
    bias, (taken, hidden) = shrinkage @ (known.baseline + w), _clipping(known, w, own, uneven)
    mean, sampling = known.with_constant(w + taken, h @ sampled @ h.T, found.rest / known.n)
    _, privacy = known.with_constant(
        w, noisy + np.outer(bias, bias) + np.diag(hidden), known.noise_of_constant(w, noisy)
    )

    along = rows[:, 1:] - np.outer(rows[:, 0], known.mean)  # the constant is target - m'w
    spread = along @ basis @ inner @ basis.T
    size = np.maximum(np.einsum("ij,ij->i", spread, along), _LEAST_SIZE)
    # others move along if their own variances are known: else they would hide what is identified
    column, seen = known.design.column, own >= _MOVED_DEVIATIONS * np.sqrt(known.own_error)
    direction = np.where(seen | ((rows[:, 1:] != 0) @ (column[:, None] == column)), spread, 0.0)
    direction /= np.maximum(np.einsum("ij,ij->i", direction, along), _LEAST_SIZE)[:, None]
    y, step = along @ h @ basis.T, np.sqrt(size)

    def variance(t: FloatArray) -> FloatArray:
        at = w + t[:, None] * direction
        gone = np.einsum("ij,ij->i", along @ shrinkage, known.baseline + at)
        return np.asarray(noise_of_rows(known, error, y, at) + gone**2)

    less, here, more = (variance(side * step) for side in (-1, 0, 1))
    growth = np.column_stack([(more - less) / (2 * step), (more + less - 2 * here) / (2 * size)])
    away = known.baseline + w
    return Slopes(mean, sampling, privacy, growth, known.n, float(away @ full @ away))


def _covariances(known: Centred) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return covariances of all coordinates, of those that are kept, and the errors.

    Uncertain variances are averaged with the located spreads, correlations with 0.
    """
    c, error = known.covariance.copy(), known.error.copy()
    diagonal, own_error = np.diag_indices_from(c), known.own_error
    unsure = c[diagonal] < _SURE_DEVIATIONS * np.sqrt(own_error)
    if unsure.any():
        found = variance_posterior(known, 0.0, np.inf, _LOOSE, _WITHIN)
        c[diagonal] = np.where(unsure, found.mean, c[diagonal])
        less = found.error / np.maximum(own_error, np.finfo(float).tiny)
        error[diagonal] *= np.where(unsure, less, 1.0)
    c[diagonal] = np.maximum(c[diagonal], 1e-9)
    size = np.sqrt(np.outer(c[diagonal], c[diagonal]))
    apart = known.design.column[:, None] != known.design.column
    kept = np.where(apart, 1 / (1 + error / (_CORRELATION_SD * size) ** 2), 1.0)
    c[apart] *= kept[apart]
    error[apart] *= kept[apart]
    reduced = known.contrasts.reduced(c)
    size = np.sqrt(np.outer(np.diag(reduced), np.diag(reduced)))
    return c, eigenvalues_at_least(_LEAST_CORRELATION_EIGENVALUE, reduced / size) * size, error


def _clipping(
    known: Centred, w: FloatArray, own: FloatArray, uneven: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return what is added to the slopes w for clipping, and the variance that is left of it.

    .. math:: 0.3\,wD^4r_tp_t - 0.67\,w'\ell, \qquad
              (0.5\,wD^4r_tp_t)^2 + w'^2(v_\ell + (0.4\,\ell)^2) + (0.8\,q\sqrt T/s)^2

    A share p of the targets is clipped r standard deviations away, where the window ends, or
    nearer, where records are scaled because of their target; the q lie outside of the window. With
    a first stage, w is the change to it, w' the whole. Clipping makes the slope of a column larger
    by the part :math:`\ell`, of variance :math:`v_\ell` (``location``). In windows of one common
    scale it is only known that a column's p is at most :math:`E x^2 = 1/r_x^2`, and at most a
    quarter, so :math:`v_\ell` is :math:`(0.8\,r_xp)^2`. Where a column is taken less what others
    predict of it, its :math:`\ell` is about w only, since the first stage is one of columns.
    """
    if known.places is None:
        return np.zeros_like(w), np.zeros_like(w)
    target, end, numbers = known.places.target, known.places.target_end, known.design.numbers
    lost, error = np.zeros((2, len(w)))
    if known.numbers is not None:
        lost[numbers], error[numbers] = known.numbers.lost(own[numbers])
    elif known.places.common < 1:
        error = _COLUMN * np.where(numbers, np.minimum(own, COMMON_OUTSIDE), 0.0) / np.sqrt(own)
    scaled, outside = (float(target.beyond(part)[0]) for part in (end, 1.0))
    taken, whole = w * uneven**2 * scaled * end / np.sqrt(known.total), known.baseline + w
    hidden = (_TAKEN_SD * taken) ** 2 + (_OUTSIDE * outside) ** 2 * known.total / own
    hidden += (whole * known.places.lost_of_rests(known.design, own)) ** 2
    if known.places.decorrelated is not None:
        which = known.places.decorrelated.which
        whole[which] = w[which]
    hidden += whole**2 * (error**2 + (_SEEN_SD * lost) ** 2)
    return _TAKEN * taken - _SEEN * whole * lost, np.asarray(hidden)
