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

**Predictions for the rows of a table, in chunks that stay in the cache.**

The mean is :math:`w_0 + w^T x` and the variance :math:`s^2 + (1, x)^T S (1, x)`, for coordinates x
that are clipped to the windows. Numbers are not mapped to coordinates: what is linear in x is
linear in the number. Around the middle m of the windows, with :math:`a = S_{xx}(x - m)`, the
variance is :math:`s^2 + a^T(x - m) + 2 b^T(x - m) + c`. The quadratic part, most of the work, is in
single precision where that changes no variance by more than a ten-thousandth, whatever the row;
usually it is less than a millionth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.encoder import PerColumn, long_rows
from dpbayes_sklearn.data.records import Table, blas_for, quiet_numpy
from dpbayes_sklearn.regression.design import DecorrelatedWindows, Design, Scale, Window, Windows
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


def predictive_belief(
    known: Centred, precisions: FloatArray, noise: float | None, coupled: FloatArray | None = None
) -> Belief:
    """Return the belief about (constant, coefficients) that predicts best.

    ``precisions`` are those of the prior, in the windows, and ``coupled`` the entries of their
    matrix off the diagonal; the residual variance is learned if None.
    """
    s, c, error = _predictive_covariances(known)
    alone = known.by_first(s**2)
    heavy = [s * s.sum() / (share * known.explainable) for share in _EXPLAINED_SHARES]
    found = [solve(known, c, error, precisions, noise, each, alone, coupled) for each in heavy]
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
        each = self._precisions(window, windows)
        if isinstance(windows, DecorrelatedWindows):
            each = np.diag(windows.precisions(each))
        return np.concatenate([[0.0], each])

    def coupled(self, window: Window, windows: Windows) -> FloatArray | None:
        """Return the entries of the precision matrix off its diagonal, if there are any."""
        if not isinstance(windows, DecorrelatedWindows):
            return None
        matrix = windows.precisions(self._precisions(window, windows))
        np.fill_diagonal(matrix, 0.0)
        return matrix

    def _precisions(self, window: Window, windows: Windows) -> FloatArray:
        each = self.precision * np.where(self.design.signs, 2.0, 1.0)
        return np.asarray(each * (window.half / windows.halves) ** 2)

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
            coupled = self.coupled(window, windows)
            predicting = predictive_belief(known, precisions[1:], noise, coupled)
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
        return cls(mean, spread, noise, Slopes.of(mean, spread, design), windows.plain)

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
        least = 1e-12 * matrix.diagonal().max() * np.eye(len(matrix))
        factor = cho_factor(_semidefinite(matrix) + least, lower=True)
    return factor


def _semidefinite(matrix: FloatArray) -> FloatArray:
    """Return the nearest positive semi-definite matrix."""
    values, axes = np.linalg.eigh(matrix)
    if values[0] >= 0:
        return matrix
    projected: FloatArray = (axes * np.maximum(values, 0.0)) @ axes.T
    return projected


_CHUNK_CELLS = 1 << 18  # A chunk of this many cells stays in the cache and keeps a thread busy.
# Farther from 0, in half-widths, products of unmapped numbers lose too many digits.
_FARTHEST_UNMAPPED = 2.0**20
_CLOSE_TO_BOUND = 2.0**-40  # A window that ends this near a bound ends there.


@dataclass(frozen=True)
class ClippedNumbers:
    """Where each column of numbers is clipped, and what stands for a missing one."""

    # low, high, missing: In the units of the columns.
    low: PerColumn
    high: PerColumn
    missing: PerColumn

    @classmethod
    def of(cls, design: Design, windows: Windows, table: Table) -> ClippedNumbers | None:
        """Return the ends of bounds and windows; None if that is not all that a table needs.

        So it is if a column has categories or a type of its own, or bounds far from 0.
        """
        centres, halves = design.scales
        numbers = bool(design.width) and bool(design.numbers.all())
        if not numbers or table.as_numbers(table.without_rows()) is None:
            return None
        if (np.abs(centres) > _FARTHEST_UNMAPPED * halves).any():
            return None
        low, high = windows.centres - windows.halves, windows.centres + windows.halves
        low = np.where(low < _CLOSE_TO_BOUND - 1, -1.0, low)
        high = np.where(high > 1 - _CLOSE_TO_BOUND, 1.0, high)
        missing = np.clip(design.stand_ins, low, high)
        return cls(*(PerColumn(centres + halves * each) for each in (low, high, missing)))

    def chunks(self, table: Table) -> Iterator[tuple[slice, FloatArray]]:
        """Yield ``(rows, numbers)``; the array is used again for the next chunk."""
        step = max(1, _CHUNK_CELLS // table.n_columns)
        buffer = np.empty((min(step, table.n_rows), table.n_columns))
        for rows, chunk in table.chunks(step):
            out = buffer[: rows.stop - rows.start]
            numbers = table.as_numbers(chunk)
            assert numbers is not None
            for x, clipped, many in long_rows(numbers, out, self.low, self.high, self.missing):
                np.clip(x, self.low.of(many), self.high.of(many), out=clipped)
                if np.isnan(clipped.min(initial=0.0)):
                    np.copyto(clipped, self.missing.of(many), where=np.isnan(clipped))
            yield rows, out


_LARGEST_ERROR = 1e-4  # Single precision errs by at most this part of a target's variance.
_SINGLE_BITS = 30  # Units up to 2**30 neither overflow nor vanish in single precision.
_FEW_ROWS = 64  # With fewer rows, preparing the faster way takes longer than it saves.
_NEAR_HALF_WIDTHS = 2.0  # If 0 is farther from the middle than this many half-widths, it is far.
_WIDE_TABLE = 64  # From this many columns on, two products of halves are faster than one.


class LinearModel(NamedTuple):
    """A released linear model: its coordinates, the scale of its target and its coefficients."""

    design: Design
    scale: Scale
    posterior: GaussianPosterior


class _Rows(NamedTuple):
    """Clipped rows, of which ``(row - offset) / unit`` are the coordinates of the model."""

    chunks: Iterator[tuple[slice, FloatArray]]
    offset: FloatArray
    unit: FloatArray


def _rows(model: LinearModel, table: Table) -> _Rows:
    design, windows = model.design, model.posterior.windows
    few = table.n_rows < _FEW_ROWS
    numbers = None if few else ClippedNumbers.of(design, windows, table)
    if numbers is not None:
        return _Rows(numbers.chunks(table), *design.scales)
    inside = ((rows, windows.clip(x)) for rows, x in design.chunks(table))
    return _Rows(inside, np.zeros(design.width), np.ones(design.width))


def _line(model: LinearModel, rows: _Rows) -> tuple[FloatArray, float]:
    """Return slopes and constant of the expected target, in units of the rows and the target."""
    coefficients = model.scale.half * model.posterior.mean()
    slopes = coefficients[1:] / rows.unit
    return slopes, float(coefficients[0] - slopes @ rows.offset + model.scale.centre)


def means(model: LinearModel, table: Table) -> FloatArray:
    """Return the expected target of every row."""
    out = np.empty(table.n_rows)
    with quiet_numpy():
        rows = _rows(model, table)
        slopes, constant = _line(model, rows)
        for which, x in rows.chunks:
            np.matmul(x, slopes, out=out[which])
        out += constant
    return out


def means_and_deviations(model: LinearModel, table: Table) -> FloatArray:
    """Return the expected target of every row and its standard deviation, in two columns."""
    out = np.empty((table.n_rows, 2))
    with quiet_numpy():
        rows = _rows(model, table)
        slopes, constant = _line(model, rows)
        few = table.n_rows < _FEW_ROWS
        variance = model.posterior.variance_inside if few else _Variance(model, rows).at
        for which, x in rows.chunks:
            out[which, 0] = x @ slopes
            out[which, 1] = variance(x)
        out[:, 0] += constant
        np.sqrt(out[:, 1], out=out[:, 1])
        out[:, 1] *= model.scale.half
    return out


def means_by_row(model: LinearModel, table: Table) -> FloatArray:
    """Return the expected targets; no row changes another, not even by rounding.

    Products are added up column by column, since BLAS may round a row by its position.
    """
    out, (constant, *slopes) = np.empty(table.n_rows), model.posterior.mean()
    for rows, x in model.design.chunks(table):
        total = np.zeros(len(x))
        for column, slope in zip(model.posterior.windows.clip(x).T, slopes, strict=True):
            total += column * slope
        out[rows] = total + constant
    out *= model.scale.half
    out += model.scale.centre
    return out


class _Variance:
    """The variance of a target on its scale: a quadratic function of rows around a middle.

    The middle is 0, if that is not far from the windows, or where the windows have theirs. The
    matrix is made upper triangular, so that half of its columns need half of a row only.
    """

    def __init__(self, model: LinearModel, rows: _Rows) -> None:
        covariance, windows = model.posterior.covariance, model.posterior.windows
        zero = -rows.offset / rows.unit
        far = bool((np.abs(zero - windows.centres) > _NEAR_HALF_WIDTHS * windows.halves).any())
        middle = windows.centres if far else zero
        point, squares = np.append(1.0, middle), covariance[1:, 1:]
        self._middle = rows.offset + rows.unit * middle if far else None
        quadratic = squares / np.outer(rows.unit, rows.unit)
        self._linear = 2 * (covariance[1:] @ point) / rows.unit
        self._constant = float(point @ covariance @ point)
        self._noise = model.posterior.noise_variance
        reach = windows.halves + np.abs(windows.centres - middle)
        ordinary = bool((np.abs(np.log2(rows.unit)) < _SINGLE_BITS).all())
        if ordinary and _single_error(squares, reach) <= _LARGEST_ERROR * self._noise:
            quadratic = quadratic.astype(np.float32)
        self._space = np.empty((2, 0, len(middle)), quadratic.dtype)
        upper = np.triu(quadratic, 1) + np.triu(quadratic)
        half = len(middle) // 2 if len(middle) >= _WIDE_TABLE else 0
        self._halves = [
            (slice(a, b), upper[:b, a:b].copy()) for a, b in pairwise([0, half, len(middle)]) if b
        ]

    def at(self, x: FloatArray) -> FloatArray:
        """Return the variances for rows, which may be changed."""
        if self._middle is not None:
            x -= self._middle
        if len(x) > self._space.shape[1]:
            self._space = np.empty((2, *x.shape), self._space.dtype)
        away, products = self._space[:, : len(x)]
        np.copyto(away, x, casting="same_kind")
        for columns, upper in self._halves:
            np.matmul(away[:, : columns.stop], upper, out=products[:, columns])
        spread = np.einsum("ij,ij->i", products, away) + (x @ self._linear + self._constant)
        variance: FloatArray = self._noise + np.maximum(spread, 0.0)
        return variance


def _single_error(covariance: FloatArray, reach: FloatArray) -> float:
    r"""Bound the error of :math:`x^\top \Sigma x` in single precision, for :math:`|x| \le r`.

    It is :math:`(d + 2)\,2^{-24}\, r^\top |\Sigma| r`.
    """
    return (len(reach) + 2) * 2.0**-24 * float(reach @ np.abs(covariance) @ reach)
