"""Where to look for the counts behind noisy ones: windows that noise does not leave, and a step.

A sum of noises exceeds a known bound with negligible probability, so the sum of any cells lies in
a window around the sum of their released values, whose width does not depend on the number of
records. Every integer in the windows is visited as long as that is cheap; otherwise the lattice
gets as coarse as the work demands, but no coarser than a fraction of the smallest standard
deviation that the noise leaves, unless noises differ so much that inference would not end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.law import NO_NOISE, deviation_bound
from dpbayes_sklearn.posteriors.count_inference.cell_weights import log_lattice_weight
from dpbayes_sklearn.posteriors.count_inference.messages import Window
from dpbayes_sklearn.posteriors.count_inference.weights import Segment

__all__ = ["CountTable", "Lattice"]

Bounds = tuple[IntArray, IntArray]

_NATS = 20.0  # a sum of noises leaves its window with probability exp(-20)
_WORK = 1e8  # products per table up to which every integer is visited: about ten milliseconds
_COARSE_WORK = 1e7  # products per table on a coarser lattice
_MOST_WORK = 1e9  # products per table that are never exceeded: about a second
_MOST_WORK_OF_A_CELL = 1e6  # likewise, for tables of more than a thousand cells
_RESOLUTION = 8.0  # lattice points per standard deviation, at the least
_SMALL = 64  # up to here all counts from 0 to n are visited
_FALLBACK_POINTS = 256


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
class Lattice:
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
    ) -> Lattice:
        """Choose the lattice for a class table and the feature tables that hang on it.

        ``size_noise`` is the distribution of the noise in a secret number of records, which is
        then one more count.
        """
        every = [classes, *tables]
        if n <= _SMALL and sum(t.noisy.size for t in every) * (n + 1) ** 2 <= _COARSE_WORK:
            return cls(n, 1.0, np.inf)
        work = sum(_work(table, n) for table in every) / len(every)
        work += 3.0 * min(2.0 * size_noise.half_width(1, _NATS), n) ** 2
        if work <= _WORK:
            return cls(n, 1.0, _NATS)
        step = min(np.sqrt(work / _COARSE_WORK), _spread(classes, tables, fresh) / _RESOLUTION)
        cells = sum(table.noisy.size for table in every) / len(every)
        step = max(step, np.sqrt(work / max(_MOST_WORK, _MOST_WORK_OF_A_CELL * cells)))
        points = int(np.clip(round(n / step), 1, n))
        return cls(points, n / points, _NATS)

    @classmethod
    def over_everything(cls, n: int) -> Lattice:
        """Choose windows from 0 to n, coarse if need be, for counts that noise hardly produces."""
        points = min(n, _FALLBACK_POINTS)
        return cls(points, n / max(points, 1), np.inf)

    def counts(self, index: IntArray) -> FloatArray:
        """Return the counts at lattice points."""
        return np.multiply(index, self.step, dtype=np.float64)

    def around(self, noisy: FloatArray, half_width: float) -> Bounds:
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
    ) -> Bounds:
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

    def partial_sums(self, table: CountTable) -> Callable[[int, tuple[int, int]], Window]:
        """Return the windows of sums of neighbouring cells, by row and window of its total."""
        n_cells = table.noisy.shape[1]
        cumulative = np.pad(np.cumsum(table.noisy, axis=1), ((0, 0), (1, 0)))
        half_widths = [table.noise.half_width(m, self.nats) for m in range(n_cells)]

        def row(index: int, total: tuple[int, int]) -> Window:
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
    bounds = np.array([table.noise.half_width(int(m), _NATS) for m in terms])
    width = np.minimum(2.0 * bounds, n) + 1.0
    return float(3.0 * rows * (n_cells / (2.0 * terms) * width**2).sum())
