r"""What a release draws from, read off the production code, and the exact loss between two of them.

A release is a list of steps. Each has a law, and the loss between the laws of two data sets is
known in closed form:

- **Noise** adds :math:`z \sim e^{-\|z\|/b}` to some integers c: the loss is
  :math:`\|c - c'\|/b`, by the triangle inequality, and no less, because it is the log ratio at
  z = 0. The norm is L1 or the box's :math:`\max_i\lceil|z_i|/s_i\rceil`. Both laws must have the
  same b, or the ratio of their tails has no bound.
- **RowNoise** adds rows z of equal sum, with the norm :math:`\max_j \|z_j\|_1`: the same, but
  where the rows of c - c' have different sums, no noise leads from one to the other.
- **Choice** draws independent points with integer weights: the sum over rows of
  :math:`\max_j [\log (w_j/W) - \log(w'_j/W')]`.
- **Ball** draws from :math:`e^{-\frac12 w^\top A w + b^\top w}` on a ball: at most the range of
  :math:`\tfrac12 w^\top(A'-A)w + (b-b')^\top w` over it.

Whatever else a release contains must not move at all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from dpbayes_sklearn._typing import FloatArray, IntArray

__all__ = ["Ball", "Choice", "Fixed", "Law", "Noise", "Opaque", "RowNoise", "quadratic_range"]


_OUTWARD = 2.0**-44  # a difference of logarithms of 62-bit integers errs by less


class Law(ABC):
    """One step of a release on one data set."""

    @property
    def n_outcomes(self) -> int:
        """Number of log ratios that a loss looks at."""
        return 1

    @abstractmethod
    def key(self) -> bytes:
        """Return bytes that are the same for equal laws, and for them only."""

    @abstractmethod
    def loss(self, other: Law) -> Fraction | float:
        """Return the worst of log(P(outcome) / P'(outcome)), or a bound from above."""


@dataclass(frozen=True)
class Noise(Law):
    """Integers with noise whose law falls with a norm."""

    centre: IntArray
    scale: Fraction
    sides: IntArray | None = None  # of the box; None for the L1 norm

    def key(self) -> bytes:
        """Return centre, scale and norm."""
        sides = b"" if self.sides is None else self.sides.tobytes()
        return repr(self.scale).encode() + b"|" + sides + b"|" + self.centre.tobytes()

    def loss(self, other: Law) -> Fraction | float:
        """Return the norm of the move over the scale, exactly."""
        if not isinstance(other, Noise) or self._law != other._law:
            return math.inf
        moved = np.abs(self.centre - other.centre)
        size = int(moved.sum() if self.sides is None else (-(-moved // self.sides)).max(initial=0))
        if self.scale == 0:
            return math.inf if size else Fraction(0)
        return size / self.scale

    @property
    def _law(self) -> tuple[Fraction, tuple[int, ...] | None, int]:
        sides = None if self.sides is None else tuple(self.sides.tolist())
        return self.scale, sides, self.centre.size


@dataclass(frozen=True)
class RowNoise(Law):
    """Rows of integers with noise that has the same sum in every row."""

    centre: IntArray
    scale: Fraction
    rows: tuple[int, ...]  # the row of every integer

    def key(self) -> bytes:
        """Return centre, scale and rows."""
        return repr((self.scale, self.rows)).encode() + b"|" + self.centre.tobytes()

    def loss(self, other: Law) -> Fraction | float:
        """Return the largest row's L1 move over the scale, exactly."""
        if not isinstance(other, RowNoise) or (self.scale, self.rows) != (other.scale, other.rows):
            return math.inf
        move, members = self.centre - other.centre, np.array(self.rows)
        moves = [move[members == row] for row in sorted(set(self.rows))]
        if len({int(row.sum()) for row in moves}) > 1:
            return math.inf
        return max(int(np.abs(row).sum()) for row in moves) / self.scale


@dataclass(frozen=True)
class Choice(Law):
    """Independent draws from rows of integer weights."""

    weights: npt.NDArray[np.uint64]

    @property
    def n_outcomes(self) -> int:
        """Number of points."""
        return self.weights.size

    def key(self) -> bytes:
        """Return the weights."""
        return repr(self.weights.shape).encode() + self.weights.tobytes()

    def loss(self, other: Law) -> float:
        """Return the sum over rows of the largest log ratio, rounded outward."""
        if not isinstance(other, Choice) or self.weights.shape != other.weights.shape:
            return math.inf
        if ((self.weights == 0) != (other.weights == 0)).any():
            return math.inf
        most = float((self._log_law - other._log_law).max(axis=-1).sum())
        return most + len(self.weights) * _OUTWARD

    @property
    def _log_law(self) -> FloatArray:
        totals = self.weights.sum(axis=-1, keepdims=True, dtype=np.uint64)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights.astype(np.float64)) - np.log(totals.astype(np.float64))
        return np.where(self.weights == 0, 0.0, logs)

    def ratio(self, other: Choice) -> Fraction:
        """Return the worst ratio of probabilities as an exact fraction."""
        product = Fraction(1)
        for mine, theirs in zip(self.weights.tolist(), other.weights.tolist(), strict=True):
            pairs = zip(mine, theirs, strict=True)
            product *= max(Fraction(w, v) for w, v in pairs if v) * Fraction(sum(theirs), sum(mine))
        return product


@dataclass(frozen=True)
class Ball(Law):
    """Independent draws from a Gaussian restricted to a ball."""

    precision: FloatArray
    linear: FloatArray
    radius: float
    n_draws: int

    def key(self) -> bytes:
        """Return everything."""
        numbers = (self.radius, self.n_draws)
        return repr(numbers).encode() + self.precision.tobytes() + self.linear.tobytes()

    def loss(self, other: Law) -> float:
        """Return the range of the difference of the exponents over the ball, from above."""
        if not isinstance(other, Ball):
            return math.inf
        if (self.radius, self.n_draws) != (other.radius, other.n_draws):
            return math.inf
        curvature, slope = other.precision - self.precision, self.linear - other.linear
        return self.n_draws * quadratic_range(curvature, slope, self.radius)


@dataclass(frozen=True)
class Fixed(Law):
    """What leaves a release without noise: it must be the same for all data sets."""

    content: bytes

    def key(self) -> bytes:
        """Return the content."""
        return self.content

    def loss(self, other: Law) -> Fraction | float:
        """Return 0 for the same content and infinity for any other."""
        same = isinstance(other, Fixed) and self.content == other.content
        return Fraction(0) if same else math.inf


@dataclass(frozen=True)
class Opaque(Law):
    """Numbers whose law could not be read: nothing can be promised about them."""

    def key(self) -> bytes:
        """Return nothing: all are alike."""
        return b""

    def loss(self, other: Law) -> float:
        """Return infinity."""
        return math.inf


def quadratic_range(curvature: FloatArray, slope: FloatArray, radius: float) -> float:
    r"""Bound max - min of :math:`\tfrac12 w^\top Hw + g^\top w` over a ball, from above.

    For every :math:`\lambda > \max(0, h_i)` the maximum is at most
    :math:`\tfrac12(\sum_i g_i^2/(\lambda - h_i) + \lambda B^2)`, and the best of them is exact.

    >>> round(quadratic_range(np.array([[2.0]]), np.array([0.0]), 3.0), 6)
    9.0
    """
    return _largest(curvature, slope, radius) + _largest(-curvature, -slope, radius)


def _largest(curvature: FloatArray, slope: FloatArray, radius: float) -> float:
    values, axes = np.linalg.eigh(curvature)
    squares = (axes.T @ slope) ** 2
    top = max(0.0, float(values[-1]))
    size = top + float(np.sqrt(squares.sum())) / radius
    if size == 0:
        return 0.0

    def bound(log_gap: float) -> float:
        gap = size * math.exp(log_gap)
        return 0.5 * float((squares / (gap + (top - values))).sum() + (top + gap) * radius**2)

    best = minimize_scalar(bound, bounds=(-40.0, 3.0), method="bounded", options={"xatol": 1e-9})
    return min(float(best.fun), bound(-40.0)) * (1 + 1e-9)
