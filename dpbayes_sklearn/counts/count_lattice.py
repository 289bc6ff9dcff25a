"""Where to look for the counts behind noisy ones, and the prior's weight of each.

**The prior's factor in a noisy count's posterior.**

It is needed at integers and, where the noise is so wide that a coarser lattice does, at the points
``0, step, 2 step, ...``.

**Where to look for the counts behind noisy ones: windows that noise does not leave, and a step.**

A sum of noises exceeds a known bound with negligible probability, so the sum of any cells lies in
a window around the sum of their released values, whose width does not depend on the number of
records. Every integer in the windows is visited as long as that is cheap; otherwise the lattice
gets as coarse as the work demands, but no coarser than a fraction of the smallest standard
deviation that the noise leaves, unless noises differ so much that inference would not end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, polygamma

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.counts.messages import LINEAR, LOG, Segment, TotalsWindow
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.law import NO_NOISE, deviation_bound

_MOST_SUMMED = 2048  # Near zero the prior mass of this many points is summed, not approximated.
# Either of two lattice points gets at least this share of the mass between them.
_LEAST_SHARE = 1e-12
_TINY_ALPHA = 1e-3  # Below it, differences of beta functions are rounding errors only.

_WINDOW_NATS = 20.0  # A sum of noises leaves its window with probability exp(-20).
_FINE_WORK = 1e8  # Up to this many products a table, every integer is visited (about 10 ms).
_COARSE_WORK = 1e7  # A coarser lattice takes at most this many products a table.
_MOST_WORK = 1e9  # No table takes more products than this (about a second).
_MOST_WORK_OF_A_CELL = 1e6  # In tables of over a thousand cells, no cell takes more products.
_RESOLUTION = 8.0  # A standard deviation has at least this many lattice points.
_EVERY_COUNT = 64  # Up to this n all counts from 0 to n are visited.
# If every lattice would take too many products, one of this many points is used.
_FALLBACK_POINTS = 256


def log_dirichlet_weight(alpha: float, k: npt.ArrayLike) -> FloatArray:
    """Log of Gamma(alpha + k) / (Gamma(alpha) k!), a cell's factor in a Dirichlet-multinomial.

    Summed over all ways to split a row total N this gives the same expression in the sum of the
    alphas and N, which is why it also normalises a row. Written with the beta function, because
    the difference of two log-gammas loses seven digits at a hundred million records.
    """
    k = np.asarray(k, dtype=float)
    if alpha == 1.0:
        return np.zeros_like(k)
    return np.asarray(-betaln(alpha, k + 1.0) - np.log(alpha + k))


def log_lattice_weight(alpha: float, index: npt.ArrayLike, step: float) -> FloatArray:
    """Log prior weight of lattice points ``index * step``, each standing for the counts near it.

    A count between two points is shared between them linearly, which keeps the mass and the mean.
    Away from zero, sharing only adds a variance of step^2 / 6: see :func:`_log_sharing`.
    """
    index = np.asarray(index)
    weight = log_dirichlet_weight(alpha, index * step)
    if step > 1.0:
        smooth_from = int(np.clip(2.0 * alpha, 12, _MOST_SUMMED))
        weight += np.log(step) + _log_sharing(alpha, np.maximum(index, smooth_from), step)
        near = index < smooth_from
        weight[near] = _shared_mass(alpha, smooth_from, step)[index[near]]
    return weight


def _log_sharing(alpha: float, index: AnyArray, step: float) -> FloatArray:
    """Log of what linear sharing makes of a smooth weight, relative to the weight itself.

    With log weight a + s u + t u^2 / 2 at distance u from a point, in steps, the triangular
    average of exp(s u) is (2 sinh(s / 2) / s)^2, and the curvature
    t = -(alpha - 1) step^2 / ((alpha + k)(1 + k)) at the count k adds t / 12.
    """
    count = np.multiply(index, step, dtype=float)
    slope = step * np.log((alpha + count) / (1.0 + count))
    half = np.maximum(np.abs(slope) / 2.0, 1e-9)
    log_ratio = half + np.log(-np.expm1(-2.0 * half) / (2.0 * half))  # of sinh(half) and half
    curvature = -(alpha - 1.0) * (step / (alpha + count)) * (step / (1.0 + count))
    return np.asarray(2.0 * log_ratio + curvature / 12.0)


@lru_cache(maxsize=64)
def _shared_mass(alpha: float, points: int, step: float) -> FloatArray:
    """Log of sum_k max(0, 1 - |k/step - i|) w(k) for the first points i, w the Dirichlet weight.

    With S0(x) = sum_{k<=x} w(k) = w_{alpha+1}(x) and S1(x) = sum_{k<=x} k w(k)
    = alpha w_{alpha+2}(x-1), both telescoping, each side of a point is a difference. Every
    interval is scaled by its own largest term.
    """
    edges = np.arange(points + 1) * step
    last = np.floor(edges)
    log_mass = _log_mass(alpha, last)
    log_first = log_dirichlet_weight(alpha + 2.0, np.maximum(last - 1.0, 0.0)) + np.log(alpha)
    log_first[last < 1.0] = -np.inf
    scale = log_mass[1:]
    mass = -np.expm1(log_mass[:-1] - scale)
    first = np.exp(log_first[1:] - scale) - np.exp(log_first[:-1] - scale)
    # where weights are so steep that rounding hides a share, some of the mass is left to each end
    rising = np.clip((first - edges[:-1] * mass) / step, _LEAST_SHARE * mass, mass)
    falling = mass - rising
    with np.errstate(divide="ignore"):
        log_rising, log_falling = np.log(rising) + scale, np.log(falling) + scale
    log_falling[1:] = np.logaddexp(log_falling[1:], log_rising[:-1])
    log_falling[0] = np.logaddexp(log_falling[0], 0.0)  # zero itself has a Dirichlet weight of one
    return np.asarray(log_falling)


def _log_mass(alpha: float, x: FloatArray) -> FloatArray:
    """Log of w_{alpha+1}(x), the mass of all counts up to x; as precise as alpha if that is tiny.

    Then it is alpha (psi(x+1) - psi(1)) + alpha^2 (psi'(x+1) - psi'(1)) / 2 + O(alpha^3).
    """
    if alpha >= _TINY_ALPHA:
        return log_dirichlet_weight(alpha + 1.0, x)
    first, second = (polygamma(order, x + 1.0) - polygamma(order, 1.0) for order in (0, 1))
    return np.asarray(alpha * first + 0.5 * alpha**2 * second)


def log_row_weight(alphas: tuple[float, ...], lowest: int, highest: int, step: float) -> FloatArray:
    """Log of the prior mass of all splits of a row whose total is one of a range of points.

    At step one this is the Dirichlet weight of the total. On a coarser lattice the cells' shared
    masses are convolved as far as needed; beyond, sharing only adds the variance step^2 / 6 of
    each cell.
    """
    n_cells, alpha = len(alphas), float(sum(alphas))
    index = np.arange(lowest, highest + 1)
    weight = log_lattice_weight(alpha, index, step)
    if step > 1.0 and n_cells > 1:
        smooth_from = int(np.clip(alpha * np.sqrt(n_cells), 64, _MOST_SUMMED))
        sharing = _log_sharing(alpha, np.maximum(index, smooth_from), step)
        weight = log_dirichlet_weight(alpha, index * step) + np.log(step) + n_cells * sharing
        near = index < smooth_from
        if near.any():
            weight[near] = _split_mass(alphas, smooth_from, step)[index[near]]
    return weight


@lru_cache(maxsize=64)
def _split_mass(alphas: tuple[float, ...], length: int, step: float) -> FloatArray:
    """Log mass of all splits over these cells of totals 0, ..., length - 1; equal halves once."""
    if len(alphas) == 1:
        return log_lattice_weight(alphas[0], np.arange(length), step)
    middle = len(alphas) // 2
    left, right = (_split_mass(half, length, step) for half in (alphas[:middle], alphas[middle:]))
    algebra = LINEAR if max(np.ptp(left), np.ptp(right)) < 300.0 else LOG
    mass = algebra.convolve(algebra.of_log(left), algebra.of_log(right))[:length]
    scale = left.max() + right.max() if algebra is LINEAR else 0.0
    return algebra.to_log(mass) + scale


CountBounds = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class CountTable:
    """A released table: rows of noisy cells that share the law of their noise and their prior."""

    noisy: FloatArray
    noise: Marginal
    alpha: FloatArray

    @property
    def exact(self) -> bool:
        """True if there is no noise."""
        return self.noise.variance == 0.0

    def row(self, index: int) -> CountTable:
        """Return the table that has only this row."""
        return CountTable(self.noisy[index : index + 1], self.noise, self.alpha)


@dataclass(frozen=True)
class CountLattice:
    """The counts 0, step, 2 step, ..., n; windows on it that noise leaves with odds exp(-nats)."""

    points: int
    step: float
    nats: float

    @classmethod
    def for_star(
        cls,
        classes: CountTable,
        tables: Sequence[CountTable],
        n: int,
        fresh: float = 1.0,
        size_noise: Marginal = NO_NOISE,
    ) -> CountLattice:
        """Choose the lattice for a class table and the feature tables that hang on it.

        ``size_noise`` is the distribution of the noise in a secret number of records, which is
        then one more count.
        """
        every = [classes, *tables]
        if n <= _EVERY_COUNT and sum(t.noisy.size for t in every) * (n + 1) ** 2 <= _COARSE_WORK:
            return cls(n, 1.0, np.inf)
        work = sum(_work(table, n) for table in every) / len(every)
        work += 3.0 * min(2.0 * size_noise.half_width(1, _WINDOW_NATS), n) ** 2
        if work <= _FINE_WORK:
            return cls(n, 1.0, _WINDOW_NATS)
        step = min(np.sqrt(work / _COARSE_WORK), _spread(classes, tables, fresh) / _RESOLUTION)
        cells = sum(table.noisy.size for table in every) / len(every)
        step = max(step, np.sqrt(work / max(_MOST_WORK, _MOST_WORK_OF_A_CELL * cells)))
        points = int(np.clip(round(n / step), 1, n))
        return cls(points, n / points, _WINDOW_NATS)

    @classmethod
    def over_everything(cls, n: int) -> CountLattice:
        """Choose windows from 0 to n, coarse if need be, for counts that noise hardly produces."""
        points = min(n, _FALLBACK_POINTS)
        return cls(points, n / max(points, 1), np.inf)

    def counts(self, index: IntArray) -> FloatArray:
        """Return the counts at lattice points."""
        return np.multiply(index, self.step, dtype=np.float64)

    def around(self, noisy: FloatArray, half_width: float) -> CountBounds:
        """Return the first and last lattice points within ``half_width`` of noisy sums."""
        lowest, highest = np.floor((noisy - half_width) / self.step), noisy + half_width
        last = float(self.points)
        return (
            np.clip(lowest, 0.0, last).astype(np.int64),
            np.clip(np.ceil(highest / self.step), 0.0, last).astype(np.int64),
        )

    def class_windows(
        self,
        classes: CountTable,
        tables: Sequence[CountTable],
        fresh: float = 1.0,
        *,
        adds_up: bool = True,
    ) -> CountBounds:
        """Return the range of every class count.

        A class count is seen in the class table and as the sum of a row of every other table.
        Weighted by inverse variance these make one noisy count, whose noise is a weighted sum;
        wider by 1/sqrt(fresh) if the noises repeat each other. ``adds_up`` tells whether all class
        counts together are the last lattice point.
        """
        if classes.noisy.size == 1 and adds_up:
            return np.array([self.points]), np.array([self.points])
        seen = [(classes.noisy[0], 1, classes.noise)]
        seen += [(t.noisy.sum(axis=1), t.noisy.shape[1], t.noise) for t in tables]
        precision = np.array([1.0 / (terms * noise.variance) for _, terms, noise in seen])
        share = precision / precision.sum() if precision.any() else precision
        weighted = [(w, m, noise) for w, (_, m, noise) in zip(share.tolist(), seen, strict=True)]
        spread = deviation_bound(weighted, self.nats) / np.sqrt(fresh)
        half_width = spread if precision.any() else np.inf
        centre = sum(weight * noisy for weight, (noisy, _, _) in zip(share, seen, strict=True))
        lowest, highest = self.around(np.asarray(centre), half_width)
        if not adds_up:
            return lowest, highest
        others_low, others_high = lowest.sum() - lowest, highest.sum() - highest
        return (
            np.maximum(lowest, self.points - others_high),
            np.minimum(highest, self.points - others_low),
        )

    def partial_sums(self, table: CountTable) -> Callable[[int, tuple[int, int]], TotalsWindow]:
        """Return the windows of sums of neighbouring cells, by row and window of its total."""
        n_cells = table.noisy.shape[1]
        cumulative = np.pad(np.cumsum(table.noisy, axis=1), ((0, 0), (1, 0)))
        half_widths = [table.noise.half_width(m, self.nats) for m in range(n_cells)]

        def row(index: int, total: tuple[int, int]) -> TotalsWindow:
            def window(first: int, last: int) -> tuple[int, int]:
                if last - first == n_cells:
                    return total
                half_width = half_widths[last - first]
                if half_width == np.inf:
                    return 0, total[1]
                centre = float(cumulative[index, last] - cumulative[index, first])
                return (
                    int((centre - half_width) // self.step),
                    min(total[1], int((centre + half_width) // self.step) + 1),
                )

            return window

        return row

    def cells(self, table: CountTable) -> list[list[Segment]]:
        """Return log f(k) = log prior weight + log P(noise = z - k) of every cell, row by row."""
        half_width = table.noise.half_width(1, self.nats)
        lowest, highest = self.around(table.noisy, half_width)
        width = int((highest - lowest).max(initial=0)) + 1
        index = lowest[..., None] + np.arange(width)
        log_weight = table.noise.log_weight(table.noisy[..., None] - index * self.step)
        for alpha in set(table.alpha.tolist()):
            same = table.alpha == alpha
            log_weight[:, same] += self._prior(alpha, index[:, same])
        length = highest - lowest + 1
        return [
            [
                Segment(int(lowest[r, v]), log_weight[r, v, : length[r, v]])
                for v in range(table.noisy.shape[1])
            ]
            for r in range(table.noisy.shape[0])
        ]

    def _prior(self, alpha: float, index: IntArray) -> FloatArray:
        """Look log prior weights up in a table if that is shorter than computing each."""
        first, last = int(index.min()), int(index.max())
        if last - first > index.size:
            return log_lattice_weight(alpha, index, self.step)
        return log_lattice_weight(alpha, np.arange(first, last + 1), self.step)[index - first]


def _spread(classes: CountTable, tables: Sequence[CountTable], fresh: float) -> float:
    """Return the smallest standard deviation that the noise leaves to a cell or a class count."""
    cell = float(np.sqrt(min((table.noise.variance for table in tables), default=np.inf)))
    if classes.noisy.size == 1:
        return cell
    rows = sum(1.0 / (table.noisy.shape[1] * table.noise.variance) for table in tables)
    whole = float(1.0 / np.sqrt(1.0 / classes.noise.variance + rows))
    return min(whole / float(np.sqrt(fresh)), max(whole, cell))


def _work(table: CountTable, n: int) -> float:
    """Return the number of products of the two passes over all rows of a table, at step one."""
    rows, n_cells = table.noisy.shape
    terms = 2.0 ** np.arange(np.ceil(np.log2(max(n_cells, 2))))
    bounds = np.array([table.noise.half_width(int(m), _WINDOW_NATS) for m in terms])
    width = np.minimum(2.0 * bounds, n) + 1.0
    return float(3.0 * rows * (n_cells / (2.0 * terms) * width**2).sum())
