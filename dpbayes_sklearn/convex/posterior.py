r"""A Gaussian belief about the coefficients of a linear model, and what it predicts.

The same release is read twice. ``coefficients`` and ``covariance`` are for predictions and shrunk
to what is usual; ``slopes`` are for statements about single coefficients, under weak priors only.

**Predictions for the rows of a table, in chunks that stay in the cache.**

The mean is :math:`w_0 + w^T x` and the variance :math:`s^2 + (1, x)^T S (1, x)`, for coordinates x
that are clipped to the windows. Numbers are not mapped to coordinates: what is linear in x is
linear in the number. Around the middle m of the windows, with :math:`a = S_{xx}(x - m)`, the
variance is :math:`s^2 + a^T(x - m) + 2 b^T(x - m) + c`. The quadratic part, most of the work, is in
single precision where that changes no variance by more than a ten-thousandth, whatever the row;
usually it is less than a millionth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.design import Design, Scale, Windows
from dpbayes_sklearn.convex.slopes import Slopes
from dpbayes_sklearn.data.encoder import PerColumn, long_rows
from dpbayes_sklearn.data.records import Table, quiet_numpy


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

    def precisions(self, deviation: float) -> FloatArray:
        """Return the prior precisions of the coefficients, in deviations of the target."""
        return self.precision * np.where(self.design.signs, 2.0, 1.0) * deviation**2


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
    slopes : Slopes, optional
        Estimates under weak priors, for statements about single coefficients; None if their errors
        are not known.
    windows : Windows
        Where the coordinates were clipped: the model is constant outside.
    n : int, optional
        Number of records: public, or released.
    """

    _parameter: ClassVar[str] = "coefficients"

    coefficients: FloatArray
    covariance: FloatArray
    noise_variance: float
    slopes: Slopes | None
    windows: Windows
    n: int | None

    def mean(self) -> FloatArray:
        """Return the expected (constant, coefficients)."""
        return self.coefficients

    @property
    def believed(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of (constant, coefficients), under weak priors if they are known."""
        if self.slopes is None:
            return self.coefficients, self.covariance
        return self.slopes.mean, self.slopes.sampling + self.slopes.privacy

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` draws of (constant, coefficients), which vary as their intervals say."""
        return rng.multivariate_normal(*self.believed, size=n, method="eigh")

    def sample_predicting(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` draws of (constant, coefficients) around those that predictions use."""
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
        return np.asarray(self.noise_variance + np.maximum(spread, 0.0))

    def log_predictive(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the log density of targets for rows of coordinates."""
        mean, variance = self.predictive(x)
        return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance))


@dataclass(frozen=True)
class CoefficientDraws(GaussianPosterior):
    """A belief whose draws are public, on the scale of the bounds."""

    draws: FloatArray

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` of the draws, with replacement."""
        return np.asarray(self.draws[rng.integers(len(self.draws), size=n)])

    sample_predicting = sample


_CHUNK_CELLS = 1 << 18  # A chunk of this many cells stays in the cache and keeps a thread busy.
# Farther from 0, in half-widths, products of unmapped numbers lose too many digits.
_FARTHEST_UNMAPPED = 2.0**20
_UNMAPPED_BITS = 400  # Squares of units beyond 2**±400 might overflow, or vanish.
_CLOSE_TO_BOUND = 2.0**-40  # A window that ends this near a bound ends there.


@dataclass(frozen=True)
class ClippedNumbers:
    """Where each column of numbers is clipped, and the value of a missing one."""

    # low, high, missing: In the units of the columns.
    low: PerColumn
    high: PerColumn
    missing: PerColumn

    @classmethod
    def of(cls, design: Design, windows: Windows, table: Table) -> ClippedNumbers | None:
        """Return the ends of bounds and windows; None if that is not all that a table needs.

        So it is if a column has categories or a type of its own, or bounds far from 0, or of a size
        whose square is none.
        """
        centres, halves = design.scales
        numbers = bool(design.width) and bool(design.numbers.all())
        if not numbers or table.as_numbers(table.without_rows()) is None:
            return None
        if (np.abs(centres) > _FARTHEST_UNMAPPED * halves).any():
            return None
        if (np.abs(np.log2(halves)) > _UNMAPPED_BITS).any():
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
        return np.asarray(self._noise + np.maximum(spread, 0.0))


def _single_error(covariance: FloatArray, reach: FloatArray) -> float:
    r"""Bound the error of :math:`x^\top \Sigma x` in single precision, for :math:`|x| \le r`.

    It is :math:`(d + 2)\,2^{-24}\, r^\top |\Sigma| r`.
    """
    return (len(reach) + 2) * 2.0**-24 * float(reach @ np.abs(covariance) @ reach)
