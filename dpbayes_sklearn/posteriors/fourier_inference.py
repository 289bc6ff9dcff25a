"""Exact Bayes on noisy character sums of the Boolean star: two classes, two-valued features.

The released numbers are sums of signs, c_y of the class, c_j of every feature and c_jy of their
product, each with noise of a known law. With n_1 records of class 1, of which k_1 have the
feature, and n_0 and k_0 likewise, c_y = n_0 - n_1, c_j = n - 2 (k_0 + k_1) and
c_jy = n_0 - n_1 - 2 (k_0 - k_1). Given n_1 the features are independent, so everything follows
from weights on the plane of (k_0, k_1), one plane for every feature and every n_1:

    P(noise = z_j - c_j) P(noise = z_jy - c_jy) p(k_0 | n_0) p(k_1 | n_1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.posteriors.count_inference.cell_weights import (
    log_lattice_weight,
    log_row_weight,
)
from dpbayes_sklearn.posteriors.count_inference.inference import dirichlet_draws
from dpbayes_sklearn.posteriors.count_inference.lattice import Lattice

__all__ = ["BooleanCharacters"]

_NATS = 12.0  # noise leaves its window with probability exp(-12)
_WORK = 1e7  # points of all planes up to which every integer is visited: a tenth of a second
_RESOLUTION = 6.0  # lattice points per scale of the noise, at the least
_SMALL = 64  # up to here all counts from 0 to n are visited
_LEAST = 1e-200  # sum of products that are none of them too small for a float


@dataclass(frozen=True)
class _Plane:
    """Weights of (k_0, k_1) for every feature, at one class count; shape (d, W, W)."""

    first: IntArray
    weights: FloatArray
    log_message: float


class _NoiseTable:
    """Log weights of numbers of records that were ``released`` with noise, at lattice points.

    All planes need about the same points, so the weights are computed for three times as many as
    the first plane asks for, and again only if a plane needs others.
    """

    def __init__(self, law: Marginal, released: FloatArray, step: float) -> None:
        self._law, self._released, self._step = law, released, step
        self._first, self._log = np.zeros(len(released), np.int64), np.empty((len(released), 0))

    def at(self, first: IntArray, length: int) -> FloatArray:
        """Return the log weights at so many points from the first one on, (d, length)."""
        start = first - self._first
        if start.min() < 0 or start.max() + length > self._log.shape[1]:
            self._first = first - length
            points = self._first[:, None] + np.arange(3 * length)
            away = self._step * points - self._released[:, None]
            self._log = self._law.log_weight(2.0 * away)
            start = first - self._first
        return np.take_along_axis(self._log, start[:, None] + np.arange(length), axis=1)


@dataclass(frozen=True)
class BooleanCharacters:
    """Posterior of a Boolean star given noisy character sums.

    Parameters
    ----------
    class_sum : float
        Noisy sum of the class signs, +1 for class 0 and -1 for class 1.
    feature_sums, product_sums : array of shape (d,)
        Noisy sums of every feature's signs, and of their products with the class signs.
    n : int
        Number of records.
    law : Marginal
        The noise in each of these sums.
    class_alpha, feature_alphas : array of shape (2,) and (d, 2)
        Parameters of the Dirichlet priors.
    """

    class_sum: float
    feature_sums: FloatArray
    product_sums: FloatArray
    n: int
    law: Marginal
    class_alpha: FloatArray
    feature_alphas: FloatArray

    @cached_property
    def lattice(self) -> Lattice:
        """Every integer if that is cheap, else points that resolve the noise."""
        if self.n <= _SMALL:
            return Lattice(self.n, 1.0, np.inf)
        width = min(self.law.half_width(1, _NATS), self.n)
        work = len(self.feature_sums) * width**3
        step = min((work / _WORK) ** (1 / 3), self.law.sharpness / _RESOLUTION)
        points = int(np.clip(round(self.n / max(step, 1.0)), 1, self.n))
        return Lattice(points, self.n / points, _NATS)

    @cached_property
    def _class_points(self) -> IntArray:
        """Lattice points of the number of records of class 1."""
        centre = np.array((self.n - self.class_sum) / 2.0)
        half_width = self.law.half_width(1, self.lattice.nats) / 2.0
        lowest, highest = self.lattice.around(centre, half_width)
        return np.arange(int(lowest), int(highest) + 1)

    @cached_property
    def _log_class_weights(self) -> FloatArray:
        """Log weight of every number of records of class 1, before the features are seen."""
        ones, lattice = self._class_points, self.lattice
        noise = self.class_sum - (self.n - 2.0 * lattice.counts(ones))
        zeros = lattice.points - ones
        return (
            self.law.log_weight(noise)
            + log_lattice_weight(float(self.class_alpha[0]), zeros, lattice.step)
            + log_lattice_weight(float(self.class_alpha[1]), ones, lattice.step)
        )

    @cached_property
    def _noise_of_sums(self) -> _NoiseTable:
        """Log weights of k_0 + k_1, in lattice points."""
        return _NoiseTable(self.law, (self.n - self.feature_sums) / 2.0, self.lattice.step)

    @cached_property
    def _noise_of_gaps(self) -> _NoiseTable:
        """Log weights of k_1 - k_0 less the records of class 1, in lattice points."""
        return _NoiseTable(self.law, (self.product_sums - self.n) / 2.0, self.lattice.step)

    def _plane(self, point: int) -> _Plane:
        """Return the weights of (k_0, k_1) when class 1 has this many records."""
        lattice, step = self.lattice, self.lattice.step
        totals = np.array([lattice.points - point, point])
        ones = step * point
        with_feature = (self.n - self.feature_sums) / 2.0  # k_0 + k_1, up to noise
        surplus = (self.product_sums - self.n) / 2.0 + ones  # k_1 - k_0, up to noise
        centre = np.stack([with_feature - surplus, with_feature + surplus], axis=1) / 2.0
        half_width = self.law.half_width(1, lattice.nats) / 2.0
        lowest, highest = lattice.around(centre, half_width)
        lowest = np.minimum(lowest, totals)
        width = int((np.minimum(highest, totals) - lowest).max()) + 1
        index = lowest[..., None] + np.arange(width)
        log_rows = self._log_rows(index, totals)
        # k_0 + k_1 and k_1 - k_0 take 2 W - 1 values each
        log_f = self._noise_of_sums.at(lowest.sum(axis=1), 2 * width - 1)
        gaps = lowest[:, 1] - lowest[:, 0] - (width - 1)
        log_g = self._noise_of_gaps.at(gaps - point, 2 * width - 1)
        weights, log_scale = _products(log_f, log_g, log_rows)
        messages = log_scale + np.log(weights.sum(axis=(1, 2)))
        return _Plane(lowest, weights, float(messages.sum()))

    def _log_rows(self, index: IntArray, totals: IntArray) -> FloatArray:
        """Log prior of k given the class count, minus infinity outside 0..n_c; shape of index."""
        step = self.lattice.step
        log_rows = np.full(index.shape, -np.inf)
        for alphas in np.unique(self.feature_alphas, axis=0):
            same = (self.feature_alphas == alphas).all(axis=1)
            for c, total in enumerate(totals):
                k = index[same, c]
                inside = k <= total
                without, with_feature = (float(a) for a in alphas)
                split = log_lattice_weight(with_feature, np.where(inside, k, 0), step)
                split += log_lattice_weight(without, np.where(inside, total - k, 0), step)
                split -= log_row_weight((without, with_feature), int(total), int(total), step)
                log_rows[same, c] = np.where(inside, split, -np.inf)
        return log_rows

    @cached_property
    def _solution(self) -> tuple[FloatArray, FloatArray]:
        """Probabilities of the class points, and E[k] given each of them, shape (points, d, 2)."""
        log_weights = self._log_class_weights.copy()
        expected = np.empty((len(log_weights), len(self.feature_sums), 2))
        for i, point in enumerate(self._class_points):
            plane = self._plane(int(point))
            log_weights[i] += plane.log_message
            for c, other in enumerate((2, 1)):
                law = plane.weights.sum(axis=other)
                mean = law @ np.arange(law.shape[1]) / law.sum(axis=1)
                expected[i, :, c] = self.lattice.step * (plane.first[:, c] + mean)
        weights = np.exp(log_weights - log_weights.max())
        return weights / weights.sum(), expected

    @cached_property
    def class_mean(self) -> FloatArray:
        """Expected class probabilities."""
        probabilities, _ = self._solution
        ones = probabilities @ self.lattice.counts(self._class_points)
        total = self.class_alpha + np.array([self.n - ones, ones])
        mean: FloatArray = total / total.sum()
        return mean

    @cached_property
    def table_means(self) -> list[FloatArray]:
        """Expected conditional probabilities E[(alpha + k) / (A + n_c)], each of shape (2, 2)."""
        probabilities, expected = self._solution
        ones = self.lattice.counts(self._class_points)
        totals = np.stack([self.n - ones, ones], axis=1)[:, None, :]
        alpha = self.feature_alphas
        share = (alpha[:, 1, None] + expected) / (alpha.sum(axis=1)[:, None] + totals)
        with_feature = np.tensordot(probabilities, share, 1)
        return list(np.stack([1.0 - with_feature, with_feature], axis=2))

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, list[FloatArray]]:
        """Draw class probabilities (size, 2) and tables (size, 2, 2) from the joint posterior."""
        probabilities, _ = self._solution
        points = rng.choice(self._class_points, size=size, p=probabilities)
        counts = np.empty((size, len(self.feature_sums), 2))
        for point in np.unique(points):
            chosen = np.flatnonzero(points == point)
            plane = self._plane(int(point))
            width = plane.weights.shape[1]
            cumulative = plane.weights.reshape(len(plane.weights), -1).cumsum(axis=1)
            for j, row in enumerate(cumulative):
                cell = np.searchsorted(row, rng.random(len(chosen)) * row[-1], side="right")
                cell = np.minimum(cell, len(row) - 1)
                counts[chosen, j] = plane.first[j] + np.stack(np.divmod(cell, width), axis=1)
        ones = self.lattice.counts(points)[:, None]
        totals = np.concatenate([self.n - ones, ones], axis=1)
        k = counts * self.lattice.step
        tables = np.stack([totals[:, None, :] - k, k], axis=3)
        return dirichlet_draws(self.class_alpha + totals, rng), [
            dirichlet_draws(self.feature_alphas[j] + tables[:, j], rng)
            for j in range(len(self.feature_sums))
        ]


def _products(
    log_f: FloatArray, log_g: FloatArray, log_rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weights on planes (d, W, W), and the logarithms of what they were divided by.

    Exponentials of the factors are multiplied, where the products are no smaller than a float can
    hold; otherwise their logarithms are added first.
    """
    factors = [log_f, log_g, log_rows[:, 0], log_rows[:, 1]]
    peaks = [log.max(axis=1) for log in factors]
    scaled = [np.exp(log - peak[:, None]) for log, peak in zip(factors, peaks, strict=True)]
    weights = _on_plane(scaled, np.multiply)
    if (weights.sum(axis=(1, 2)) > _LEAST).all():
        return weights, np.sum(peaks, axis=0)
    log_plane = _on_plane(factors, np.add)
    peak = log_plane.max(axis=(1, 2))
    return np.exp(log_plane - peak[:, None, None]), peak


def _on_plane(factors: list[FloatArray], by: np.ufunc) -> FloatArray:
    """Combine what depends on k_0 + k_1, on k_1 - k_0, on k_0 and on k_1; views spread it."""
    of_sum, of_gap, row_0, row_1 = factors
    spread, width = np.lib.stride_tricks.sliding_window_view, row_0.shape[1]
    plane: FloatArray = by(spread(of_sum, width, axis=1), spread(of_gap, width, axis=1)[:, ::-1])
    by(plane, row_0[:, :, None], out=plane)
    by(plane, row_1[:, None, :], out=plane)
    return plane
