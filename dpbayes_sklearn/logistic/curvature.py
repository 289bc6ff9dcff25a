r"""The curvature of a logistic loss: where it is asked for, in which coordinates, what it tells.

**Coordinates.** :math:`\varphi = Q(B^\top x - \mu)` for each block, with the mean :math:`\mu` of
the *released* shares of bins and levels, and the axes Q of the covariance that they have. So what
a rare level has is one coordinate, and the intercept is the level of an average record.
Coordinates are a function of earlier answers, so every record enters the sum by itself.

**Release.** The sum of :math:`\sigma(1-\sigma)\,\varphi\varphi^\top` at a point c with
:class:`~dpbayes_sklearn.noise.MatrixNoise` of weights a. Records whose
:math:`\sum a_i^2\varphi_i^2` exceeds a limit T are scaled down to it. As
:math:`\sigma(1-\sigma) \le \tfrac14`, m records that come or go have a weighted nuclear norm of at
most mT/4, wherever c and :math:`\mu` are, so the scale :math:`mT/4\varepsilon` is enough. T follows
from released shares: no level is scaled down, and few numbers are.

**The point.** Between the mode and the true parameters the curvature changes, as a ridge shrinks
the mode. What counts is its mean on the way. For columns that are independent and normal, with the
released variances, the curvature at any parameters is known (:func:`supposed_curvature`, by Stein's
lemma). So the way is guessed, the curvature is asked for in the middle of it, and what is supposed
says how it differs elsewhere.

**Noise** of an entry is known, and what is supposed tells something, too: an entry has this mean,
with a doubt as large as the correlation that two such coordinates can have. Where the noise is much
larger, as beside a rare level, the entry is what is supposed, with the variance of the doubt. So a
weak direction does not spoil the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.convex.record_sums import symmetric
from dpbayes_sklearn.logistic.blocks import BINS, PLACES, WEIGHT_STEPS, Blocks, ColumnWeights
from dpbayes_sklearn.logistic.record_sums import MappedRecords, on_lattice
from dpbayes_sklearn.noise import MatrixNoise
from dpbayes_sklearn.privacy.budget import PrivacyUnit

PRIOR_SD = 10.0
"""Prior standard deviation of a coordinate's coefficient: so wide that it seldom decides."""
# Weight of the intercept among the coordinates, with matrix noise.
_INTERCEPT_WEIGHT = Fraction(1, 4)
_NORM_REACH = 2.0  # The limit of records' squared norm is this many deviations above its mean.
_LEAST_NORM = 1 / 64  # The limit is at least this part of the largest possible norm.
_FINEST_GRID = 2**15  # Coordinates in products have at most this many steps from 0 to 1.
_UPWARD = 1 + Fraction(1, 2**30)  # This factor covers the rounding of floats.
_LEAST_PART = 1e-9  # This part of the trace is added to a supposed curvature.
_LEAST_VARIANCE = 1e-6  # No coordinate is supposed to vary less.
# Doubt of what is supposed: of a diagonal entry, and of a correlation.
_DOUBT, _RELATED = 0.5, 1.0
_GUESSES = 40  # Turns of the guess of the way from the mode to the truth.
_ways = np.polynomial.legendre.leggauss(3)
_WAY, _WAY_WEIGHTS = (_ways[0] + 1) / 2, _ways[1] / 2  # Places on a way, and their weights.
_normals = np.polynomial.hermite_e.hermegauss(31)
_NORMAL, _NORMAL_WEIGHTS = _normals[0], _normals[1] / _normals[1].sum()


Bend = Callable[[FloatArray], FloatArray]
"""The expected second derivative of a record's loss in z."""


def bend_of_classes(z: FloatArray) -> FloatArray:
    r"""Return :math:`\sigma(z)(1 - \sigma(z))`."""
    q = expit(z)
    return np.asarray(q * (1 - q))


def supposed_curvature(
    moments: FloatArray, n: float, w: FloatArray, bend: Bend = bend_of_classes
) -> FloatArray:
    r"""Return the curvature of n records with independent coordinates, of these moments.

    A coordinate without variance is the constant 1. With :math:`z \sim N(m, s^2)`,
    :math:`c = \Sigma w/s^2` and :math:`a_k = E\,\sigma'(z)(z-m)^k`, the curvature of normal
    coordinates is

    .. math:: a_0(\Sigma + e_0e_0^\top) + (a_2 - a_0s^2)cc^\top + a_1(e_0c^\top + ce_0^\top).

    A coordinate that leans, as that of a rare level, has most of its variance at
    :math:`\kappa = E\varphi^3/E\varphi^2`. There :math:`a_0` is another, which scales its row and
    column.
    """
    (variances, leans), one = moments, (moments[0] == 0).astype(float)
    spread = w * variances
    square = max(float(spread @ w), np.finfo(float).tiny)
    t = math.sqrt(square) * _NORMAL
    z = float(one @ w) + np.append(0.0, leans * w)[:, None] + t
    a = _NORMAL_WEIGHTS * np.maximum(bend(z), _LEAST_PART)
    level, own = float(a[0].sum()), a[1:].sum(axis=1)
    tilt, bent = float(a[0] @ t), float(a[0] @ t**2)
    c = spread / square
    beside = tilt * np.outer(one, c)
    along = (bent - level * square) * np.outer(c, c)
    scale = np.sqrt(own / level)
    whole = np.diag(level * (variances + one)) + along + beside + beside.T
    return np.asarray(n * whole * np.outer(scale, scale))


def on_the_way(
    moments: FloatArray, n: float, start: FloatArray, way: FloatArray, bend: Bend = bend_of_classes
) -> FloatArray:
    """Return the mean of the supposed curvature between two points."""
    each = [supposed_curvature(moments, n, start + place * way, bend) for place in _WAY]
    return np.asarray(np.tensordot(_WAY_WEIGHTS, each, 1))


def root(matrix: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a supposed curvature."""
    least = _LEAST_PART * float(np.trace(matrix)) + np.finfo(float).tiny
    return np.asarray(np.linalg.cholesky(matrix + least * np.eye(len(matrix))))


class Coordinates(NamedTuple):
    """Coordinates of the curvature, by released shares, and what these suggest about them."""

    centred: FloatArray  # (width, p): weights of a record times this are its centred contrasts.
    turn: FloatArray  # (p, p), orthogonal: coordinates are turn @ centred contrasts.
    axes: FloatArray  # (p, p): coordinates are axes @ contrasts.
    moments: FloatArray  # (2, p): variances, 0 of the constant; mean cubes over mean squares.
    sizes: FloatArray  # (p,): mean absolute values.
    unsure: FloatArray  # (p,): what noise in the shares may add to variances and sizes.
    limit: float  # The T.

    def of_parameters(self, w: FloatArray) -> FloatArray:
        """Return the same parameters as coefficients of the coordinates."""
        return np.asarray(np.linalg.solve(self.axes.T, w))

    def doubt(self, about: FloatArray) -> FloatArray:
        """Return standard deviations of the entries, given what is supposed about them.

        Two coordinates have a covariance of at most the mean absolute value of one times the
        deviation of the other, roughly.
        """
        variances = self.moments[0]
        constant = variances == 0
        level = about.diagonal() / np.where(constant, 1.0, variances)
        deviations = np.where(constant, 1.0, np.sqrt(variances + self.unsure))
        sizes = np.where(constant, 1.0, self.sizes + self.unsure)
        products = np.minimum(np.outer(sizes, deviations), np.outer(deviations, sizes))
        found = _RELATED * products * np.sqrt(np.outer(level, level))
        np.fill_diagonal(found, np.hypot(_DOUBT * about.diagonal(), level * self.unsure))
        return np.asarray(found)


def coordinates(
    blocks: Blocks,
    tables: tuple[ColumnWeights, ...],
    shares: Sequence[FloatArray],
    errors: Sequence[float],
) -> Coordinates:
    """Return the coordinates; ``shares`` are those of bins or levels of every column.

    ``errors`` are standard deviations of the noise in the shares.
    """
    p, first = blocks.parameters, int(blocks.intercept)
    centred, turn, shift = blocks.basis.copy(), np.eye(p), np.eye(p)
    moments, (sizes, unsure) = np.zeros((2, p)), np.zeros((2, p))
    square = largest = float(_INTERCEPT_WEIGHT) ** 2 * first
    spread, place = 0.0, first
    for j, (table, share, error) in enumerate(zip(tables, shares, errors, strict=True)):
        own = slice(place, place + blocks.sizes[j] - 1)
        law = _by_code(share) if blocks.knots(blocks.domains[j]) else share
        block = slice(blocks.starts[j], blocks.starts[j + 1])
        x = _weights(table, blocks.sizes[j]) @ blocks.basis[block, own]
        mean = law @ x * first  # without an intercept nothing can stand for the mean
        x = x - mean
        values, vectors = np.linalg.eigh((x * law[:, None]).T @ x)
        centred[0, own] -= mean
        shift[own, :first] -= mean[:, None]
        turn[own, own] = vectors.T
        turned, least = x @ vectors, np.maximum(values, _LEAST_VARIANCE)
        moments[:, own] = least, law @ turned**3 / least
        sizes[own] = law @ np.abs(turned)
        unsure[own] = error * np.sqrt((turned**4).sum(axis=0)) if law is share else 0.0
        norms = (x**2).sum(axis=1)
        largest += float(norms.max(initial=0.0))
        usual = float(law @ norms) if law is not share else float(norms.max(initial=0.0))
        square += usual
        spread += float(law @ (norms - usual) ** 2) if law is not share else 0.0
        place = own.stop
    limit = min(largest, max(square + _NORM_REACH * math.sqrt(spread), _LEAST_NORM * largest))
    return Coordinates(centred, turn, turn @ shift, moments, sizes, unsure, limit)


def _by_code(share: FloatArray) -> FloatArray:
    """Return the probability of every position of a number (uniform in a bin), then of missing."""
    each = PLACES // BINS
    return np.concatenate([np.repeat(share[:BINS] / each, each), [0.0], share[BINS:]])


def _weights(table: ColumnWeights, size: int) -> FloatArray:
    """Return the weights of a column, one row for each code."""
    weights, rows = np.zeros((len(table.left), size + 1)), np.arange(len(table.left))
    weights[rows, table.left] = 1 - table.part / WEIGHT_STEPS
    weights[rows, table.left + 1] += table.part / WEIGHT_STEPS
    return weights[:, :-1]


class CurvaturePlan(NamedTuple):
    """The noise of the second derivatives, in units of 1/grid²."""

    blocks: Blocks
    grid: int
    law: MatrixNoise
    limit: float
    heaviest: int = 1

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        n: int,
        epsilon: Fraction,
        unit: PrivacyUnit,
        limit: float,
        heaviest: int = 1,
    ) -> CurvaturePlan:
        """Return the plan for a share of epsilon, and a limit on the norms of records."""
        bound = unit.n_changed * Fraction(limit) * heaviest / 4 * _UPWARD / epsilon
        grid = _FINEST_GRID
        # An entry of a record is at most one grid: contrasts are below 1, and so are their means.
        while grid and (n * grid**2 >= 2**61 or bound * grid**2 * blocks.parameters >= 2**50):
            grid //= 2
        if not grid:
            raise ValueError("epsilon is too small for exact noise; use a larger one.")
        weights = tuple(Fraction(1) if j >= 0 else _INTERCEPT_WEIGHT for j in blocks.block_of)
        return cls(blocks, grid, MatrixNoise(bound * grid**2, weights), limit, heaviest)

    @property
    def structure(self) -> dict[str, Any]:
        """What the sensitivity follows from: the limit on records, and on the weight of one."""
        heaviest = {"heaviest": self.heaviest} if self.heaviest > 1 else {}
        return {"kind": "curvature", "limit": self.limit, "grid": self.grid, **heaviest}

    def ask(
        self, records: MappedRecords, point: FloatArray, centred: FloatArray, squares: bool = False
    ) -> IntArray:
        """Return the second derivatives by centred contrasts: the upper triangle, in steps.

        With ``squares``, of which the plan has to allow for 4 times as much, those of residuals.
        """
        weights = np.array([float(weight) for weight in self.law.weights])
        at = self.blocks.basis @ point
        return records.products(at, centred, weights, self.limit, self.grid, squares)

    def read(self, noisy: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the second derivatives, and the noise's variances."""
        return symmetric(noisy / self.grid**2), symmetric(self.law.variances / self.grid**4)


def widest_norm(blocks: Blocks) -> float:
    """Return a limit on the squared norm of centred records, the constant weighted."""
    return float(_INTERCEPT_WEIGHT) ** 2 * blocks.intercept + 2.0 * len(blocks.sizes)


class Curvature(NamedTuple):
    """What is known about the curvature, in coordinates; empty if nothing was released."""

    curvature: FloatArray
    curvature_noise: FloatArray
    axes: FloatArray
    moments: FloatArray
    point: FloatArray
    records: float

    @classmethod
    def none(cls) -> Curvature:
        """Return what is known if nothing was released."""
        nothing = np.zeros((0, 0))
        return cls(nothing, nothing, nothing, np.zeros((2, 0)), np.zeros(0), 0.0)

    @classmethod
    def exact(cls, records: MappedRecords, blocks: Blocks, mode: FloatArray) -> Curvature:
        """Return the curvature at a mode, without noise."""
        basis, p = blocks.basis, len(mode)
        matrix = basis.T @ records.curvature(on_lattice(basis @ mode)) @ basis
        matrix = (matrix + matrix.T) / 2  # but for rounding it is symmetric
        return cls(matrix, np.zeros((p, p)), np.eye(p), np.zeros((2, p)), mode, 0.0)


def half_way(
    known: Coordinates, n: int, mode: FloatArray, ridge: FloatArray, bend: Bend = bend_of_classes
) -> FloatArray:
    """Return the middle between the mode and where the truth is supposed, in coordinates."""
    w, right = known.of_parameters(mode), known.axes @ (ridge * mode)
    precision, way = PRIOR_SD**-2, np.zeros(len(w))
    for _ in range(_GUESSES):
        matrix = on_the_way(known.moments, n, w, way, bend) + precision * np.eye(len(w))
        way = (way + np.linalg.solve(matrix, right - precision * w)) / 2
    return np.asarray(w + way / 2)


class AskedCurvature(NamedTuple):
    """The curvature that is asked for: in which coordinates, with what noise, and where."""

    known: Coordinates
    plan: CurvaturePlan
    point: FloatArray

    def ask(self, records: MappedRecords) -> list[IntArray]:
        """Return the sum of second derivatives at the point, by centred contrasts."""
        at, centred = self.known.axes.T @ self.point, self.known.centred
        return [self.plan.ask(records, at, centred)]

    def read(self, noisy: Sequence[IntArray], n: int, bend: Bend = bend_of_classes) -> Curvature:
        """Return what is known of n records by the answer, and by what is supposed."""
        return told(self.known, n, self.point, *self.plan.read(noisy[0]), bend)


def told(
    known: Coordinates,
    n: int,
    point: FloatArray,
    matrix: FloatArray,
    variances: FloatArray,
    bend: Bend = bend_of_classes,
) -> Curvature:
    """Combine the released matrix of centred contrasts with the curvature assumed beforehand.

    Noise of equal weights has the same law in turned coordinates.
    """
    about = supposed_curvature(known.moments, n, point, bend)
    doubt = known.doubt(about) ** 2
    kept = doubt / (doubt + variances)
    found = about + kept * (known.turn @ matrix @ known.turn.T - about)
    found = (found + found.T) / 2  # but for rounding it is symmetric
    return Curvature(found, kept * variances, known.axes, known.moments, point, float(n))
