"""Bayes on character sums that were released with noise of a known law.

**Exact Bayes on noisy character sums of the Boolean star: two classes, two-valued features.**

The released numbers are sums of signs, c_y of the class, c_j of every feature and c_jy of their
product, each with noise of a known law. With n_1 records of class 1, of which k_1 have the
feature, and n_0 and k_0 likewise, c_y = n_0 - n_1, c_j = n - 2 (k_0 + k_1) and
c_jy = n_0 - n_1 - 2 (k_0 - k_1). Given n_1 the features are independent, so everything follows
from weights on the plane of (k_0, k_1), one plane for every feature and every n_1:

    P(noise = z_j - c_j) P(noise = z_jy - c_jy) p(k_0 | n_0) p(k_1 | n_1).

**Counts that are not negative and agree with each other, nearest to noisy character sums.**

All sums have the same noise, so the nearest in their own coordinates is generalised least squares
under the covariance of the noise. The dual has one non-negative multiplier per cell: with tables
T(c) linear in the sums c, the fit is c = z + T'(multipliers), and multipliers grow where cells are
negative. Accelerated projected gradient steps find them (Beck and Teboulle 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.counts.count_lattice import CountLattice, log_lattice_weight, log_row_weight
from dpbayes_sklearn.counts.fourier import (
    Blocks,
    ReleasedCharacters,
    closure,
    coefficient_tables,
    sum_count,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.noise_aware import dirichlet_draws
from dpbayes_sklearn.counts.posterior import InferredPosterior
from dpbayes_sklearn.counts.splits import inverse_haar
from dpbayes_sklearn.counts.tables import Tables
from dpbayes_sklearn.noise import Marginal

_NOISE_NATS = 12.0  # Noise leaves its window with probability exp(-12).
_PLANE_WORK = 1e7  # Up to this many points of all planes every integer is visited (0.1 s).
_SCALE_POINTS = 6.0  # The scale of the noise has at least this many lattice points.
_EVERY_COUNT = 64  # Up to this n all counts from 0 to n are visited.
# If a plane sums to less than this, products underflowed: add logarithms instead.
_UNDERFLOW = 1e-200

_PROJECTION_STEPS = 2000  # A projection ends after at most this many steps.
_POWER_STEPS = 30  # The largest eigenvalue is found in this many steps of the power method.


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
        """Return the log weights at ``length`` points from ``first`` on, shape (d, length)."""
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

    They are the sums of the class signs, +1 for class 0 and -1 for class 1, of every feature's
    signs (d,), and of their products with the class signs (d,), all with the same noise.
    """

    class_sum: float
    feature_sums: FloatArray
    product_sums: FloatArray
    n: int
    law: Marginal
    class_alpha: FloatArray
    feature_alphas: FloatArray

    @cached_property
    def lattice(self) -> CountLattice:
        """Every integer if that is cheap, else points that resolve the noise."""
        if self.n <= _EVERY_COUNT:
            return CountLattice(self.n, 1.0, np.inf)
        width = min(self.law.half_width(1, _NOISE_NATS), self.n)
        work = len(self.feature_sums) * width**3
        step = min((work / _PLANE_WORK) ** (1 / 3), self.law.sharpness / _SCALE_POINTS)
        points = int(np.clip(round(self.n / max(step, 1.0)), 1, self.n))
        return CountLattice(points, self.n / points, _NOISE_NATS)

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
        """Log weights of k_1 - k_0 minus the number of records of class 1, in lattice points."""
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
        return np.asarray(total / total.sum())

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
    if (weights.sum(axis=(1, 2)) > _UNDERFLOW).all():
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


def nonnegative_fit(network: Network, blocks: Blocks, n: int, tolerance: float) -> Tables:
    """Return the tables without negative cells whose sums are nearest to noisy ones.

    The constant character is exactly ``n``. When the steps end, cells that are still negative by no
    more than the tolerance are set to zero.
    """
    z = np.concatenate([np.zeros(0), *(blocks[s].ravel() for s in closure(network))])
    linear = _CellsOfSums(network)
    step = 1.0 / linear.squared_norm()
    multipliers = momentum = np.zeros(linear.n_cells)
    pace = 1.0
    for _ in range(_PROJECTION_STEPS):
        cells = linear.cells(z + linear.transposed(momentum), n)
        gradient_step = np.maximum(momentum - step * cells, 0.0)
        if np.abs(gradient_step - momentum).max() <= step * tolerance:
            break
        before, multipliers = multipliers, gradient_step
        faster = (1.0 + np.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        ahead = (pace - 1.0) / faster
        momentum = np.maximum(multipliers + ahead * (multipliers - before), 0.0)
        pace = faster
    return _as_tables(np.maximum(cells, 0.0), network)


def _as_tables(cells: FloatArray, network: Network) -> Tables:
    """Return the cells of all tables, one after another, as tables."""
    ends = np.cumsum([prod(shape) for shape in network.shapes])
    parts = zip(np.split(cells, ends[:-1]), network.shapes, strict=True)
    return tuple(part.reshape(shape) for part, shape in parts)


class _CellsOfSums:
    """The linear map from all character sums to the cells of all tables, and its transpose.

    Both are vectors. A cell depends on few sums, so there is one sparse matrix for each axis.
    """

    def __init__(self, network: Network) -> None:
        self._places = _places(network)
        self.n_cells, self.n_sums = self._places.size, sum_count(network)
        self._axes = [
            _inverse_haar_along(axis, network.shapes)
            for axis in range(max(len(shape) for shape in network.shapes))
        ]
        self._transposed = [matrix.T.tocsr() for matrix in self._axes]

    def cells(self, sums: FloatArray, n: float) -> FloatArray:
        """Return the cells of the tables with these character sums."""
        cells: FloatArray = np.append(sums, n)[self._places]
        for matrix in self._axes:
            cells = matrix @ cells
        return cells

    def transposed(self, cells: FloatArray) -> FloatArray:
        """Return the transpose of the map, without the constant."""
        for matrix in self._transposed:
            cells = matrix @ cells
        return np.bincount(self._places, cells, self.n_sums + 1)[:-1].astype(np.float64, copy=False)

    def squared_norm(self) -> float:
        """Return a bound on the largest squared singular value, by power iteration."""
        vector, norm = np.random.default_rng(0).random(self.n_sums), 1.0
        for _ in range(_POWER_STEPS):
            vector = self.transposed(self.cells(vector, 0.0))
            norm = float(np.linalg.norm(vector)) or 1.0
            vector /= norm
        return 1.1 * norm


def _places(network: Network) -> IntArray:
    """Return the index of the sum behind every coefficient of every table; n comes last."""
    shapes = {s: tuple(network.sizes[u] - 1 for u in s) for s in closure(network)}
    starts = accumulate(map(prod, shapes.values()), initial=0)
    numbers = {
        support: start + np.arange(prod(shape)).reshape(shape)
        for (support, shape), start in zip(shapes.items(), starts, strict=False)
    }
    tables = coefficient_tables(network, numbers, sum_count(network))
    return np.asarray(np.concatenate([table.ravel() for table in tables]).astype(np.int64))


def _inverse_haar_along(axis: int, shapes: Sequence[tuple[int, ...]]) -> Any:
    """Return the matrix that inverts the characters of one axis in the cells of all tables."""
    blocks = {shape: _inverse_haar_of_table(axis, shape) for shape in set(shapes)}
    return sparse.block_diag([blocks[shape] for shape in shapes], format="csr")


def _inverse_haar_of_table(axis: int, shape: tuple[int, ...]) -> Any:
    """Return I ⊗ M ⊗ I, with M at the place of the axis."""
    if axis >= len(shape):
        return sparse.identity(prod(shape), format="csr")
    before, after = sparse.identity(prod(shape[:axis])), sparse.identity(prod(shape[axis + 1 :]))
    return sparse.kron(before, sparse.kron(inverse_haar(shape[axis]), after), format="csr")


@dataclass(frozen=True)
class NoiseAwareCharacters(InferredPosterior):
    """Inference from released character sums and the public law of their noise.

    For a star with two classes and two-valued features this is the exact posterior. For any other
    graph it is the Dirichlet posterior at the non-negative, consistent tables that are nearest to
    the released sums under the covariance of the noise; see :attr:`exact`. In both cases the
    increment that plug-in needs against negative cells is not used.

    Joint noise is treated as independent noise with the same marginals: the dependence through the
    common radius is ignored, so the posterior is then not exact. A secret number of records is
    taken as it was released: the sums of other characters say nothing about it.
    """

    released: ReleasedCharacters

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", self._expected_tables())

    @property
    def exact(self) -> bool:
        """True if this is the exact posterior given all released sums."""
        return self._boolean and self.released.independent and not self.released.size_laws

    @property
    def _boolean(self) -> bool:
        """Whether planes of counts can be summed: two classes, two-valued features."""
        return self.network.is_star and set(self.network.sizes) == {2}

    def _infer(self) -> BooleanCharacters:
        target, blocks = self.network.target, self.released.blocks
        return BooleanCharacters(
            float(blocks[target,].item()),
            np.array([blocks[j,].item() for j in range(target)], dtype=float),
            np.array([blocks[j, target].item() for j in range(target)], dtype=float),
            self.released.n,
            self.released.noise,
            self.alphas[target],
            np.stack(self.alphas[:target]),
        )

    @cached_property
    def concentrations(self) -> Tables:
        """Parameters of the Dirichlet of every row, at the fitted counts."""
        tolerance = 1e-3 * float(np.sqrt(self.released.noise.variance))
        released = self.released
        counts = nonnegative_fit(self.network, released.blocks, released.n, tolerance)
        return tuple(a + t for a, t in zip(self.alphas, counts, strict=True))

    def _expected_tables(self) -> Tables:
        if self._boolean:
            inference = self._infer()
            return (*inference.table_means, inference.class_mean)
        return tuple(c / c.sum(axis=-1, keepdims=True) for c in self.concentrations)

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws of the tables."""
        if self._boolean:
            classes, tables = self._infer().sample(rng, n)
            return (*tables, classes)
        return tuple(
            dirichlet_draws(np.broadcast_to(c, (n, *c.shape)), rng) for c in self.concentrations
        )
