"""Exact Bayes on counts that were released with noise of a known law.

**Messages between noisy tables and the class counts they share: the star network.**

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

**Exact Bayes on counts that were released with discrete Laplace noise.**

The released tables are data with a known law, so their posterior is computed instead of taking
them for counts. For the star network, whose class is the only parent of every feature, that is
exact, by the messages above. Tables or class counts without noise fix all class counts; the rows of
different classes are then independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.count_lattice import (
    CountLattice,
    CountTable,
    log_lattice_weight,
    log_row_weight,
)
from dpbayes_sklearn.counts.messages import LINEAR, LOG, Algebra, Segment, SumTree, TotalsWindow
from dpbayes_sklearn.counts.posterior import InferredPosterior, Totals, siblings
from dpbayes_sklearn.counts.tables import ReleasedCounts, Tables
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.law import NO_NOISE, UNKNOWN

_SPAN = 300.0  # Log weights in a window differ by at most this, so that doubles multiply safely.
_NEGLIGIBLE_NATS = 40.0  # Class counts this many nats below the mode are left out.
_VISIBLE = 1e-9  # A larger probability at the end of a window shows that it is too narrow.


class NoisyStar:
    """Posterior of class counts that add to ``n`` and of the rows that hang on each of them.

    ``classes`` has one row of noisy class counts, each table one row per class. ``fresh`` is the
    power of all tables' evidence about class counts, below 1 for noises that repeat each other.
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
            n += int(size_noise.half_width(1, _NEGLIGIBLE_NATS)) + 1
        lattice = CountLattice.for_star(classes, tables, n, fresh, size_noise)
        wider = [replace(lattice, nats=factor * lattice.nats) for factor in (4.0, 12.0)]
        for attempt in (lattice, *wider, CountLattice.over_everything(n)):
            if self._solve(attempt):
                break

    @property
    def _secret(self) -> bool:
        """Whether the number of records is not known."""
        return self._size_noise.variance > 0.0

    def _missing(self, lattice: CountLattice) -> list[Segment]:
        """Return log weights of the number of records that are missing to the bound, if any."""
        if not self._secret:
            return []
        half_width = self._size_noise.half_width(1, max(lattice.nats, _NEGLIGIBLE_NATS))
        (first,), (last,) = lattice.around(np.array([float(self._released_n)]), half_width)
        alphas = tuple(self.classes.alpha.tolist())
        present = lattice.counts(np.arange(first, last + 1))
        log_weight = self._size_noise.log_weight(self._released_n - present)
        log_weight -= log_row_weight(alphas, int(first), int(last), lattice.step)
        return [Segment(lattice.points - int(last), log_weight[::-1].copy())]

    def _class_sums(self, lattice: CountLattice) -> TotalsWindow:
        """Return the windows of sums of class counts; those with missing records are open."""
        total = (0 if self._secret else lattice.points, lattice.points)
        within, n_classes = lattice.partial_sums(self.classes)(0, total), self.classes.noisy.size

        def window(first: int, last: int) -> tuple[int, int]:
            return (0, lattice.points) if last > n_classes else within(first, last)

        return window

    def _solve(self, lattice: CountLattice) -> bool:
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

    def _tree_of(self, log_parts: Sequence[Segment], window: TotalsWindow) -> SumTree:
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
    kept = _trimmed(log_weights, _NEGLIGIBLE_NATS)
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


def infer_star(
    class_counts: npt.ArrayLike,
    tables: Sequence[npt.ArrayLike],
    n: int,
    *,
    class_noise: Marginal,
    table_noises: Sequence[Marginal],
    class_alpha: npt.ArrayLike,
    table_alphas: Sequence[npt.ArrayLike],
    fresh: float = 1.0,
    size_noise: Marginal = NO_NOISE,
) -> StarInference:
    """Infer class probabilities and conditional tables from noisy counts of a star network.

    The class counts (C,) and the tables (C, K_j) have independent noises of these distributions in
    every cell, and Dirichlet priors. ``fresh`` is the share of what all tables say about the class
    counts that counts as evidence: below 1 if their noises repeat each other. Over a secret ``n``,
    released with ``size_noise``, the posterior integrates.

    A negative count says that the true one is small, and the other table agrees:

    >>> from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
    >>> noise = LaplaceMarginal(4.0)
    >>> inference = infer_star([45, 58], [[[-9, 47], [52, 8]]], 100,
    ...                        class_noise=noise, table_noises=[noise],
    ...                        class_alpha=[1.0, 1.0], table_alphas=[[1.0, 1.0]])
    >>> inference.class_mean.round(2)
    array([0.44, 0.56])
    >>> inference.table_means[0].round(2)
    array([[0.06, 0.94],
           [0.87, 0.13]])
    """
    classes = CountTable(
        np.atleast_2d(np.asarray(class_counts, dtype=float)),
        class_noise,
        np.asarray(class_alpha, dtype=float),
    )
    features = [
        CountTable(np.asarray(z, dtype=float), noise, np.asarray(alpha, dtype=float))
        for z, noise, alpha in zip(tables, table_noises, table_alphas, strict=True)
    ]
    return StarInference(classes, tuple(features), int(n), fresh, size_noise)


@dataclass(frozen=True)
class StarInference:
    """Posterior of the parameters of a star network given noisy counts of its tables."""

    classes: CountTable
    tables: tuple[CountTable, ...]
    n: int
    fresh: float = 1.0
    size_noise: Marginal = NO_NOISE

    @cached_property
    def _known_class_counts(self) -> FloatArray | None:
        """Class counts that some table shows without noise."""
        if self.classes.exact:
            return np.asarray(self.classes.noisy[0])
        exact = (table.noisy.sum(axis=1) for table in self.tables if table.exact)
        return next(exact, None)

    @cached_property
    def _noisy_tables(self) -> list[int]:
        return [j for j, table in enumerate(self.tables) if not table.exact]

    @cached_property
    def _stars(self) -> list[NoisyStar]:
        """One star of all classes, or one of each class if the class counts are known."""
        tables = [self.tables[j] for j in self._noisy_tables]
        known = self._known_class_counts
        if known is None:
            return [NoisyStar(self.classes, tables, self.n, self.fresh, self.size_noise)]
        one = np.ones(1)
        return [
            NoisyStar(
                CountTable(np.full((1, 1), count), UNKNOWN, one),
                [table.row(c) for table in tables],
                int(count),
            )
            for c, count in enumerate(known)
        ]

    @cached_property
    def class_count_laws(self) -> list[tuple[FloatArray, FloatArray]]:
        """Values and probabilities of every class count."""
        return [law for star in self._stars for law in star.class_counts()]

    @cached_property
    def class_mean(self) -> FloatArray:
        """Expected class probabilities (alpha + E[n_c]) / (sum of alphas + n)."""
        expected = np.array([values @ weights for values, weights in self.class_count_laws])
        total = self.classes.alpha + expected
        return np.asarray(total / total.sum())

    @cached_property
    def table_means(self) -> list[FloatArray]:
        """Expected conditional probabilities of every table, each row adding to one."""
        noisy = iter(range(len(self.tables)))
        means = []
        for table in self.tables:
            if table.exact:
                total = table.alpha + table.noisy
                means.append(total / total.sum(axis=1, keepdims=True))
            else:
                position = next(noisy)
                means.append(np.concatenate([star.row_means(position) for star in self._stars]))
        return means

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, list[FloatArray]]:
        """Draw class probabilities (size, C) and tables (size, C, K_j) from the joint posterior.

        Class counts first, then the cells of every row, then the probabilities given the counts.
        """
        draws = [star.sample(rng, size) for star in self._stars]
        classes = np.concatenate([classes for classes, _ in draws], axis=1)
        counts = [np.broadcast_to(t.noisy, (size, *t.noisy.shape)) for t in self.tables]
        for position, j in enumerate(self._noisy_tables):
            counts[j] = np.concatenate([rows[position] for _, rows in draws], axis=1)
        return (
            dirichlet_draws(self.classes.alpha + classes, rng),
            [dirichlet_draws(t.alpha + k, rng) for t, k in zip(self.tables, counts, strict=True)],
        )


def dirichlet_draws(concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw Dirichlet vectors along the last axis, also for parameters near zero.

    Gamma(a) is Gamma(a + 1) U^(1/a), whose logarithm does not underflow.
    """
    log_gamma = np.log(rng.standard_gamma(concentration + 1.0))
    log_gamma -= rng.standard_exponential(concentration.shape) / concentration
    weights = np.exp(log_gamma - log_gamma.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class NoiseAwarePosterior(InferredPosterior):
    """Bayes on released counts and the public law of their noise.

    Nodes with the same parents are read together, through the row totals that their tables
    share. Those totals are also seen in the table of another family that holds the parents, if
    there is one. For a star (naive Bayes) with independent noise this is the exact posterior. In
    other graphs every group of nodes is exact for what it reads, but its evidence about shared
    totals is not propagated to other groups; see :attr:`exact`.
    """

    released: ReleasedCounts

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", self._expected_tables())

    @property
    def exact(self) -> bool:
        """True if this is the exact posterior given all released tables."""
        return self.network.is_star and self.released.independent

    def _infer(self, nodes: Sequence[int], totals: Totals) -> StarInference:
        alpha = np.ones(len(totals.counts)) if totals.root is None else self.alphas[totals.root]
        return infer_star(
            totals.counts,
            [self.released.tables[u].reshape(len(totals.counts), -1) for u in nodes],
            self.released.n,
            class_noise=totals.noise,
            table_noises=[self.released.row_noise(u) for u in nodes],
            class_alpha=alpha,
            table_alphas=[self.alphas[u] for u in nodes],
            fresh=self._fresh,
            size_noise=self.released.size_noise,
        )

    @property
    def _fresh(self) -> float:
        """Share of the tables' evidence about the class counts that is independent.

        Joint noise has the same sum in every table, so the precision-weighted average of all
        tables' row sums has the variance of that sum, plus that of independent noises of other
        batches. Without this factor all tables would be treated as independent.
        """
        laws, cells = self.released.laws, np.array([*self.network.sizes[:-1], 1.0])
        shared = sum(law.shared_row_variance for law in laws)
        if not shared:
            return 1.0
        nodes = range(len(cells))
        noises = [self.released.row_noise(u).variance for u in nodes]
        own = [sum(law.variance(u) for law in laws if law.independent) for u in nodes]
        precision = 1.0 / (cells * noises)
        supposed, weight = 1.0 / precision.sum(), precision / precision.sum()
        return float(min(1.0, supposed / (shared + weight**2 @ (cells * own))))

    def _expected_tables(self) -> Tables:
        means: dict[int, FloatArray] = {}
        for nodes, totals in siblings(self.released):
            star = self._infer(nodes, totals)
            means |= dict(zip(nodes, star.table_means, strict=True))
            if totals.root is not None:
                means[totals.root] = star.class_mean
        return tuple(means[u].reshape(s) for u, s in enumerate(self.network.shapes))

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws: exact counts given released ones, then tables given counts."""
        draws: dict[int, FloatArray] = {}
        for nodes, totals in siblings(self.released):
            classes, tables = self._infer(nodes, totals).sample(rng, n)
            draws |= dict(zip(nodes, tables, strict=True))
            if totals.root is not None:
                draws[totals.root] = classes
        return tuple(draws[u].reshape(n, *s) for u, s in enumerate(self.network.shapes))
