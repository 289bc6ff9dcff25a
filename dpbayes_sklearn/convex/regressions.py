r"""Regressions and correlations from released second moments: post-processing, any number of them.

In turned coordinates z a column is a vector f: its value is :math:`f^\top z`. Let Q be an
orthonormal basis of the columns that explain, and :math:`f_\perp` the part of the target that is
orthogonal to them. The way from there to least squares solves
:math:`Q^\top GQ\,\delta = Q^\top Gf_\perp` with :math:`G = \sum zz^\top`. The noise of G has the
same law in every orthonormal basis, so that of :math:`Q^\top Gf_\perp` is independent of that of
:math:`Q^\top GQ`, and :mod:`~dpbayes_sklearn.convex.intervals` inverts the equation.

**What a limit takes** is a matrix L of known trace, made of records that lie far out. Where they
lie is told by :math:`K = \sum\|z\|^2zz^\top`, a sum of products of pairs. So
:math:`L \approx \tau K/\operatorname{tr}K` is added to G, and may be wrong by a part of its largest
value, :math:`\tau\sqrt{a^\top Ka\;c^\top Kc}/\operatorname{tr}K` for directions a, c.

**Sampling error.** A moment :math:`\sum z^\top Az` has the variance :math:`\sum(z^\top Az)^2`,
which is linear in the products of pairs, too. No residual is taken for even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.estimates import Measured, sampling_error
from dpbayes_sklearn.convex.intervals import NoisyEquation
from dpbayes_sklearn.convex.slopes import Slopes, slopes_of

_FLAT = 10.0  # Prior deviation of a turned coefficient, in spreads of the target.
_SURE = 5.0  # A variance is known if it is so many times its error.
_BELIEVED = 25.0  # Not identified if limits may have taken so many times the sampling variance.


@dataclass(frozen=True)
class Moments:
    """Released second moments of turned coordinates, and what is known about their errors."""

    first: FloatArray  # (p, width + 1): the map of (1, x) to coordinates of unit spread.
    turn: FloatArray  # (p, p): the map of these to turned ones.
    products: FloatArray  # (p, p): of G, with what the limit took.
    variance: float  # Of the noise in an entry beside the diagonal; on it, twice as much.
    pairs: FloatArray  # Of all pairs of coordinates.
    pair_variance: float  # Of the noise in an entry.
    far: FloatArray  # (p, p): where far records lie, with trace 1.
    lost_sd: float  # Error of what the limit took, along the far records.
    lost_pairs: float  # What the limit took from the pairs.
    n: int

    @classmethod
    def of(
        cls,
        first: FloatArray,
        turn: FloatArray,
        products: FloatArray,
        variance: float,
        pairs: FloatArray,
        pair_variance: float,
        lost: float,
        lost_sd: float,
        lost_pairs: float,
        n: int,
    ) -> Self:
        """Return moments with an estimate of what the limit took."""
        p = len(turn)
        weighted = _weighted(pairs, p)  # K, whose noise has these deviations
        error = math.sqrt(pair_variance * (p + 1) / 2)
        trace = max(float(np.trace(weighted)), n * p * (p + 2) / 4, 1e-9)
        values, vectors = np.linalg.eigh(weighted)
        squares = np.square(np.maximum(values, 0.0)) + 1e-300
        known = (vectors * (squares / squares.sum())) @ vectors.T
        unknown = doubt(math.sqrt(pair_variance), n, p)
        far = (1 - unknown) * known + unknown * 2 / p * np.eye(p)
        return cls(
            first, turn, products + lost * weighted / trace,
            variance + (lost / trace * error) ** 2, pairs, pair_variance,
            far, lost_sd, lost_pairs, n,
        )  # fmt: skip

    def like(self, other: Moments) -> Moments:
        """Return these moments in the coordinates of another release about the same columns.

        Noise is then not the same in all directions: its variance is at most the one that is
        stated.
        """
        moved = other.turn @ other.first @ np.linalg.pinv(self.first) @ np.linalg.inv(self.turn)
        rows, columns = np.triu_indices(len(moved))
        every = [_paired(moved[i], moved[j]) for i, j in zip(rows, columns, strict=True)]
        own = np.where(rows < columns, math.sqrt(2), 1.0)[:, None] * np.array(every)
        stretch = float(np.linalg.norm(moved, 2))
        return Moments(
            other.first, other.turn, moved @ self.products @ moved.T, self.variance * stretch**4,
            own @ self.pairs @ own.T, self.pair_variance * stretch**8,
            moved @ self.far @ moved.T, self.lost_sd, self.lost_pairs, self.n,
        )  # fmt: skip

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the records of both, which are in the same coordinates."""
        lost = self.lost_sd + other.lost_sd
        share = self.lost_sd / lost if lost else 0.5
        return Moments(
            self.first, self.turn, self.products + other.products, self.variance + other.variance,
            self.pairs + other.pairs, self.pair_variance + other.pair_variance,
            share * self.far + (1 - share) * other.far, lost, self.lost_pairs + other.lost_pairs,
            self.n + other.n,
        )  # fmt: skip

    def vectors(self) -> FloatArray:
        """Return the f of every first coordinate, as columns."""
        return np.asarray(np.linalg.inv(self.turn))

    def _spread(self, c: FloatArray, directions: FloatArray, even: float) -> FloatArray:
        """Return the covariance of the sums of c'z times directions'z, as of a sample."""
        basis = np.array([_paired(c, q) for q in directions.T]).T
        found = basis.T @ self.pairs @ basis
        size = basis.T @ basis
        noise = self.pair_variance * (np.outer(np.diag(size), np.diag(size)) + size**2)
        lost = self.lost_pairs * float(c @ self.far @ c) * directions.T @ self.far @ directions
        return sampling_error(Measured(found, noise), even) + lost

    def regression(self, design: Design, target: int, rows: list[int], places: Any) -> Fitted:
        """Return least squares of a coordinate on others.

        ``rows`` are the coordinates that explain, the constant first; ``design`` is that of their
        columns, and ``places`` are its coordinates among all.
        """
        vectors = self.vectors()
        q, r = np.linalg.qr(vectors[:, rows])
        start = q.T @ vectors[:, target]
        apart = vectors[:, target] - q @ start
        matrix, right = q.T @ self.products @ q, q.T @ self.products @ apart
        both = self.variance * (1 + np.eye(len(rows)))
        rest, even = apart, 0.0
        for _ in range(2):
            even = max(float(rest @ self.products @ rest), self.variance**0.5, 1e-12)
            far = self.lost_sd**2 * float(rest @ self.far @ rest) * q.T @ self.far @ q
            noise = self.variance * float(apart @ apart) * np.eye(len(rows))
            equation = NoisyEquation(
                matrix, both, right, noise + far, self._spread(rest, q, even),
                -start, np.full(len(rows), _FLAT),
            )  # fmt: skip
            rest = apart - q @ equation.estimate
        unit = self.first[target]
        step = float(unit[1:][np.flatnonzero(unit[1:])[0]])
        back = self.first[np.ix_(rows, [0, *(1 + np.asarray(places))])].T @ np.linalg.inv(r) / step
        level = np.eye(len(back))[0] * (unit[0] / step)
        mean = vectors.T[0] @ self.products / self.n
        total = float(vectors[:, target] @ self.products @ vectors[:, target]) / self.n
        total -= float(mean @ vectors[:, target]) ** 2
        slopes = slopes_of(
            equation, start, back, design, max(total - even / self.n, 0.0) / step**2,
            float(noise[0, 0]), _BELIEVED,
        )  # fmt: skip
        moved = Slopes(slopes.mean - level, *list(vars(slopes).values())[1:])
        error = math.sqrt(2 * self.variance) * float(rest @ rest)
        error = math.hypot(error, self.lost_sd * float(rest @ self.far @ rest))
        error /= max(total * self.n, 1e-300)
        return Fitted(moved, even / self.n / step**2, 1 - even / self.n / max(total, 1e-300), error)

    def correlation(self, both: list[int], rows: list[int]) -> tuple[float, float, float]:
        """Return the correlation of two coordinates given others, and two parts of its variance.

        The parts are those of sampling and of privacy.

        The latter is infinite if noise hides the variance of one of both.
        """
        vectors, n = self.vectors(), self.n
        q, _ = np.linalg.qr(vectors[:, rows])
        least = math.sqrt(2 * self.variance)
        inner = q.T @ self.products @ q + least * np.eye(len(rows))
        pair = vectors[:, both]
        pair = pair - q @ np.linalg.pinv(inner, hermitian=True) @ q.T @ self.products @ pair
        found = pair.T @ self.products @ pair
        far = np.diag(pair.T @ self.far @ pair)
        hidden = np.hypot(least * np.square(pair).sum(axis=0), self.lost_sd * far)
        if (np.diag(found) <= _SURE * hidden).any():
            return math.nan, math.nan, math.inf
        u, v = (pair / np.sqrt(np.diag(found) / n)).T
        value = float(u @ self.products @ v) / n
        moment = (np.outer(u, v) + np.outer(v, u) - value * (np.outer(u, u) + np.outer(v, v))) / 2
        combined = _vector(moment)
        size, reach = float(np.square(moment).sum()), _nuclear(moment, self.far)
        squares = float(combined @ self.pairs @ combined)
        usual = n * max(1 - value**2, 1e-9) ** 2
        noise = np.array([[2 * self.pair_variance * size**2]])
        sampling = sampling_error(Measured(np.array([[squares]]), noise), usual)
        sampling += self.lost_pairs * reach**2
        privacy = 2 * self.variance * size + (self.lost_sd * reach) ** 2
        return value, float(sampling[0, 0]) / n**2, privacy / n**2


def doubt(deviation: float, n: int, p: int) -> float:
    """Return the part of K that its noise may be, by the deviation of the noise of pairs.

    If all of it, far records may lie in any direction: without this, the slope of a number that 8 %
    have was in 0.50 of its intervals (3,000 records, epsilon 1).
    """
    return min(1.0, deviation * math.sqrt(2 * p * (p + 1)) / (n * (p + 2)))


class Fitted(NamedTuple):
    """A regression: what is known of the coefficients on the scale of bounds, and R²."""

    slopes: Slopes
    residual: float
    r2: float
    r2_sd: float


def _nuclear(a: FloatArray, far: FloatArray) -> float:
    """Return the most that a'Lz may be in a matrix whose far part is known: a nuclear norm."""
    values, vectors = np.linalg.eigh(far)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return float(np.abs(np.linalg.eigvalsh(root @ a @ root)).sum())


def _paired(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the v with v'q = a'z b'z, q the vector of all products of pairs of z."""
    return _vector((np.outer(a, b) + np.outer(b, a)) / 2)


def _vector(matrix: FloatArray) -> FloatArray:
    """Return the v with v'q = z'Az, q the vector of all products of pairs of z."""
    rows, columns = np.triu_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows < columns, math.sqrt(2), 1.0))


def _weighted(pairs: FloatArray, p: int) -> FloatArray:
    """Return K, the sum of |z|² zz'."""
    rows, columns = np.triu_indices(p)
    upper = pairs[rows == columns].sum(axis=0) / np.where(rows < columns, math.sqrt(2), 1.0)
    matrix = np.zeros((p, p))
    matrix[rows, columns] = matrix[columns, rows] = upper
    return matrix
