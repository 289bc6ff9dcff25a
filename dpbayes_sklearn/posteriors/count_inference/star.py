"""Messages between noisy tables and the class counts they share: the star network.

With class counts n_c, which add to the public n, a cell of a feature's table adds the factor

    f(k) = Gamma(alpha + k) / (Gamma(alpha) k!) P(noise = z - k),

so a row with total N is worth the message [N! Gamma(A) / Gamma(A + N)] (f_1 * ... * f_K)(N), A
the sum of the alphas and * the convolution, and the class counts have posterior weights (their
own factors) times (the product of their rows' messages). That is a tree, so two passes of
convolutions give everything.

If n is secret and was released with noise, N is a public bound on it, and the N - n records that
are missing are one more count of the sum N. Its weight is that of the noise in the released n,
times the normalisation n! Gamma(A) / Gamma(A + n) of the class counts' prior: the posterior
integrates over n, with a flat prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.law import NO_NOISE
from dpbayes_sklearn.posteriors.count_inference.cell_weights import (
    log_lattice_weight,
    log_row_weight,
)
from dpbayes_sklearn.posteriors.count_inference.lattice import CountTable, Lattice
from dpbayes_sklearn.posteriors.count_inference.messages import SumTree, Window
from dpbayes_sklearn.posteriors.count_inference.weights import LINEAR, LOG, Algebra, Segment

__all__ = ["NoisyStar"]


_SPAN = 300.0  # largest difference of log weights in a window that doubles multiply safely
_NEGLIGIBLE = 40.0  # nats below the mode from which a class count is not looked at any more
_VISIBLE = 1e-9  # probability at the end of a window that shows that the window is too narrow


class NoisyStar:
    """Posterior of class counts that add to ``n`` and of the rows that hang on each of them.

    Parameters
    ----------
    classes : CountTable
        One row of noisy class counts.
    tables : sequence of CountTable
        For every feature one row of noisy counts per class.
    n : int
        Number of records.
    fresh : float, default=1.0
        The power of all tables' evidence about class counts, for noises that repeat each other.
    size_noise : Marginal
        The distribution of the noise in ``n``, if it is secret.
    """

    _size_noise: Marginal = NO_NOISE
    _released_n: int

    def __init__(
        self,
        classes: CountTable,
        tables: Sequence[CountTable],
        n: int,
        fresh: float = 1.0,
        size_noise: Marginal = NO_NOISE,
    ) -> None:
        self.classes, self.tables, self.fresh = classes, tables, fresh
        self._released_n, self._size_noise = n, size_noise
        if self._secret:
            n += int(size_noise.half_width(1, _NEGLIGIBLE)) + 1
        lattice = Lattice.for_star(classes, tables, n, fresh, size_noise)
        wider = [replace(lattice, nats=factor * lattice.nats) for factor in (4.0, 12.0)]
        for attempt in (lattice, *wider, Lattice.over_everything(n)):
            if self._solve(attempt):
                break

    @property
    def _secret(self) -> bool:
        """Whether the number of records is not known."""
        return self._size_noise.variance > 0.0

    def _missing(self, lattice: Lattice) -> list[Segment]:
        """Return log weights of the number of records that are missing to the bound, if any."""
        if not self._secret:
            return []
        half_width = self._size_noise.half_width(1, max(lattice.nats, _NEGLIGIBLE))
        (first,), (last,) = lattice.around(np.array([float(self._released_n)]), half_width)
        alphas = tuple(self.classes.alpha.tolist())
        present = lattice.counts(np.arange(first, last + 1))
        log_weight = self._size_noise.log_weight(self._released_n - present)
        log_weight -= log_row_weight(alphas, int(first), int(last), lattice.step)
        return [Segment(lattice.points - int(last), log_weight[::-1].copy())]

    def _class_sums(self, lattice: Lattice) -> Window:
        """Return the windows of sums of class counts; those with missing records are open."""
        total = (0 if self._secret else lattice.points, lattice.points)
        within, n_classes = lattice.partial_sums(self.classes)(0, total), self.classes.noisy.size

        def window(first: int, last: int) -> tuple[int, int]:
            return (0, lattice.points) if last > n_classes else within(first, last)

        return window

    def _solve(self, lattice: Lattice) -> bool:
        """Send messages from the cells to the class counts; return whether the windows sufficed."""
        self.lattice = lattice
        lowest, highest = lattice.class_windows(
            self.classes, self.tables, self.fresh, adds_up=not self._secret
        )
        windows = list(zip(lowest.tolist(), highest.tolist(), strict=True))
        if np.any(lowest > highest):
            return False
        self._rows = [self._row_trees(table, windows) for table in self.tables]
        own = lattice.cells(self.classes)[0]
        parts = [self._class_weights(c, own[c], *window) for c, window in enumerate(windows)]
        if any(np.isneginf(part.values).all() for part in parts):
            return False
        parts += self._missing(lattice)
        self._tree = self._tree_of(parts, self._class_sums(lattice))
        known = Segment(lattice.points, self._tree.algebra.of_log(np.zeros(1)))
        given, to_log = self._tree.parts_given(known), self._tree.algebra.to_log
        log_laws = [
            Segment(own.start, to_log(own.values) + to_log(rest.values))
            for own, rest in zip(self._tree.parts, given, strict=True)
        ][: self.classes.noisy.size]
        if any(np.isneginf(law.values).all() for law in log_laws):
            return False
        self._laws = [_law(log_law) for log_law in log_laws]
        return not any(
            _cut(law, *window, lattice.points)
            for law, window in zip(self._laws, windows, strict=True)
        )

    def _row_trees(self, table: CountTable, windows: Sequence[tuple[int, int]]) -> list[SumTree]:
        """Return the tree of cells of every row, tilted by :meth:`_tilt`."""
        sums = self.lattice.partial_sums(table)
        trees = []
        for c, (cells, window) in enumerate(zip(self.lattice.cells(table), windows, strict=True)):
            tilt = self._tilt(table.alpha, *window)
            tilted = [
                Segment(cell.start, cell.values - tilt * np.arange(cell.start, cell.stop))
                for cell in cells
            ]
            trees.append(self._tree_of(tilted if tilt else cells, sums(c, window)))
        return trees

    def _tilt(self, alpha: FloatArray, lowest: int, highest: int) -> float:
        """Return the slope of a strong prior's log weights at the counts it expects.

        Taken off every cell it changes nothing but the scale of a row's total, and the weights of
        all likely counts stay within the range of a double.
        """
        step = self.lattice.step
        expected = step * max(0.5 * (lowest + highest), 1.0)
        return step * float(np.log1p(max(alpha.sum() - len(alpha), 0.0) / expected))

    def _tree_of(self, log_parts: Sequence[Segment], window: Window) -> SumTree:
        """Build a tree from log weights, in logarithms only if nothing may be cut off."""
        if np.isfinite(self.lattice.nats):
            log_parts = [_trimmed(part, _SPAN) for part in log_parts]
        span = max(float(np.ptp(part.values)) for part in log_parts)
        algebra = LINEAR if span <= _SPAN else LOG
        parts = [Segment(part.start, algebra.of_log(part.values)) for part in log_parts]
        return SumTree(parts, window, algebra)

    def _class_weights(self, c: int, own: Segment, lowest: int, highest: int) -> Segment:
        """Return log weights of a class count: its own factor times the messages of its rows."""
        log_weight = LOG.window(own, lowest, highest).copy()
        for trees, table in zip(self._rows, self.tables, strict=True):
            alphas = tuple(table.alpha.tolist())
            log_weight += _log_total(trees[c], lowest, highest)
            log_weight += self._tilt(table.alpha, lowest, highest) * np.arange(lowest, highest + 1)
            log_weight -= log_row_weight(alphas, lowest, highest, self.lattice.step)
        if self.fresh < 1.0:
            index, alpha = np.arange(lowest, highest + 1), float(self.classes.alpha[c])
            log_prior = log_lattice_weight(alpha, index, self.lattice.step)
            log_weight = log_prior + self.fresh * (log_weight - log_prior)
        return Segment(lowest, log_weight)

    def class_counts(self) -> list[tuple[FloatArray, FloatArray]]:
        """Return values and probabilities of every class count."""
        return [
            (self.lattice.counts(law.start + np.arange(len(law.values))), law.values)
            for law in self._laws
        ]

    def row_means(self, table: int) -> FloatArray:
        """Return E[theta] = E[(alpha + k) / (A + N)] for every row of a feature's table.

        Weights p(N) / (A + N) of the row totals are passed down to the cells.
        """
        alpha = self.tables[table].alpha
        means = []
        for tree, law, (counts, probabilities) in zip(
            self._rows[table], self._laws, self.class_counts(), strict=True
        ):
            log_message = _log_total(tree, law.start, law.stop - 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_given = np.log(probabilities / (alpha.sum() + counts)) - log_message
            log_given[probabilities == 0.0] = -np.inf
            given = tree.parts_given(Segment(law.start, tree.algebra.of_log(log_given)))
            cells = zip(tree.parts, given, strict=True)
            expected = np.array([_mean(own, rest, tree.algebra) for own, rest in cells])
            unnormalised = alpha + self.lattice.step * expected
            means.append(unnormalised / unnormalised.sum())
        return np.stack(means)

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, list[FloatArray]]:
        """Draw class counts, shape (size, C), and counts of every table, shape (size, C, K)."""
        drawn = self._tree.sample(np.full(size, self.lattice.points), rng)
        classes = drawn[:, : self.classes.noisy.size]
        tables = [
            np.stack([tree.sample(classes[:, c], rng) for c, tree in enumerate(trees)], axis=1)
            for trees in self._rows
        ]
        return self.lattice.counts(classes), [self.lattice.counts(table) for table in tables]


def _log_total(tree: SumTree, lowest: int, highest: int) -> FloatArray:
    """Return log weights of a row's total."""
    return tree.algebra.to_log(tree.algebra.window(tree.total, lowest, highest))


def _trimmed(log_weights: Segment, nats: float) -> Segment:
    """Drop both ends that are more than ``nats`` below the maximum."""
    values = log_weights.values
    kept = np.flatnonzero(values >= values.max() - nats)
    first, last = int(kept[0]), int(kept[-1])
    return Segment(log_weights.start + first, values[first : last + 1])


def _law(log_weights: Segment) -> Segment:
    """Normalise log weights to probabilities, without the ends that do not matter."""
    kept = _trimmed(log_weights, _NEGLIGIBLE)
    weights = LINEAR.of_log(kept.values)
    return Segment(kept.start, weights / weights.sum())


def _cut(law: Segment, lowest: int, highest: int, points: int) -> bool:
    """Tell whether probability is left at an end of a window that is not an end of all counts."""
    below = 0 < lowest == law.start and law.values[0] > _VISIBLE
    above = points > highest == law.stop - 1 and law.values[-1] > _VISIBLE
    return lowest < highest and bool(below or above)


def _mean(own: Segment, rest: Segment, algebra: Algebra) -> float:
    """Return the mean of a part with these own weights and weights from the rest."""
    weights = algebra.product(own.values, rest.values)
    return float(own.start + weights @ np.arange(len(weights)) / weights.sum())
