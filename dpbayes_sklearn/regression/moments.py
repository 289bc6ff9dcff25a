r"""Exact second moments of bounded records: the sufficient statistics of linear regression.

What one record changes bounds the noise of sums of products that are released together.

A record is :math:`z = (1, x, t)`: the constant, the coordinates of a
:class:`~dpbayes_sklearn.regression.design.Design`, the target. The moments are the upper triangle
of :math:`\sum z z^\top`; entries that are public need no noise: the constant's square n, squares
of signs (n again), products of two levels of one column (0). A level's square is the level
itself, so it is released once, as its sum.

Replacing z by z' changes the sums by :math:`zz^\top - z'z'^\top`. With r numbers, s numbers and
signs together, and q columns of levels, three facts bound it.

**Numbers and signs.** Put :math:`a = z - z'`, :math:`b = z + z'`. Then
:math:`z_iz_j - z'_iz'_j = \tfrac12(a_ib_j + b_ia_j)` and :math:`|a_i| + |b_i| \le 2`. So
:math:`\sum_{ij}|\cdot| \le (\sum|a_i|)(\sum|b_j|) \le s^2` by the inequality of the means, or
:math:`(s+1)^2` if the constant joins (it adds 2 to :math:`\sum|b|`, 0 to :math:`\sum|a|`);
squares change by :math:`|a_ib_i| \le 1`, those of signs not at all. The upper triangle is half
the sum of both: :math:`\tfrac12(s^2 + r)`, with the constant :math:`\tfrac12((s+1)^2 + r)`.

**Levels.** Two columns share one 1 in z and one in z': their products change by at most 2. A
column's own sums change by at most 2.

**Levels by numbers.** The product of one column's levels with a number has one entry of size at
most 1 in z and one in z': it changes by at most 2.

**A record without a target** adds nothing to any sum. Where another takes its place, the sums
change as if that one came: by no more than if it were replaced by a record with a target.

**A record that comes or goes** changes the sums by :math:`zz^\top` itself: any entry by at most 1,
and of the entries of one pair of columns, of which levels have several, one at most. Squares of
constant and signs are n, which is then secret and released before. **All records of one person**
change sums by as many times as much.

**Gaussian noise.** The entries are groups g with weights :math:`w_g`. If a record changes them by D
with :math:`\sum_g w_g \|D_g\|^2 \le c^2`, noise of variance :math:`c^2/2\rho w_g` in group g is
:math:`\rho`-zCDP: one noise law, whatever the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray, Positions
from dpbayes_sklearn.data.records import A, Records, Shard
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, NoiseLaw, SupNorm, least_noise
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.regression import record_sums
from dpbayes_sklearn.regression.design import WHOLE_WINDOW, Design, Scale, Window, Windows
from dpbayes_sklearn.regression.record_sums import (
    Baseline,
    LossDerivatives,
    Predictive,
    RowNorm,
    derivative_sums,
)
from dpbayes_sklearn.release import Facts


@dataclass(frozen=True)
class GaussianBlock:
    """Entries of the moments in groups of equal weight, one group after the other."""

    # rows, columns: Positions in the upper triangle; 0 is the constant, the last is the target.
    rows: Positions
    columns: Positions
    sizes: tuple[int, ...]  # How many entries each group has.
    weights: tuple[Fraction, ...]  # The w of every group.
    bound: Fraction  # The c², in units of the sums.

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, rho: Fraction, grid: int) -> DiscreteGaussian:
        """Return the law of rho-zCDP noise, on sums in units of 1/grid²."""
        scale = self.bound * grid**4 / (2 * rho)
        return DiscreteGaussian(tuple(scale / weight for weight in self.weights), self.sizes)


@dataclass(frozen=True)
class Block:
    """Entries of the moments that are released together, with their sensitivities."""

    # rows, columns: Positions in the upper triangle; 0 is the constant, the last is the target.
    rows: Positions
    columns: Positions
    l1_sensitivity: Fraction
    entry_sensitivities: IntArray  # The sensitivity of every single entry: 1 or 2.
    # What one record adds to all entries at most, in L1; by default 1 to each.
    l1_of_one_record: int | None = None
    times: int = 1  # How many records are protected together.

    @classmethod
    def of(
        cls,
        l1_sensitivity: Fraction,
        entry_sensitivities: IntArray,
        l1_of_one_record: int | None = None,
    ) -> Block:
        """Return sums that are no products of coordinates, and have no positions."""
        nowhere = np.zeros(len(entry_sensitivities), np.intp)
        return cls(nowhere, nowhere, l1_sensitivity, entry_sensitivities, l1_of_one_record)

    def protecting(self, unit: PrivacyUnit) -> Block:
        """Return the same sums with the sensitivities for a unit of privacy."""
        if not unit.size_is_secret:
            return replace(self, times=unit.max_records)
        one = Fraction(len(self) if self.l1_of_one_record is None else self.l1_of_one_record)
        return replace(
            self,
            l1_sensitivity=one,
            entry_sensitivities=np.ones_like(self.entry_sensitivities),
            times=unit.max_records,
        )

    @property
    def sensitivity(self) -> Fraction:
        """The L1 sensitivity of all entries."""
        return self.times * self.l1_sensitivity

    norm: ClassVar[None] = None
    """Records are not scaled: the sensitivities follow from the entries alone."""

    target_end: ClassVar[float] = 1.0
    """Part of the target's window beyond which records are scaled: none are."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def squared(self) -> Fraction:
        r"""Return the square of the L2 sensitivity: :math:`\|v\|_2^2 \le \max_i|v_i|\,\|v\|_1`.

        Exact for sums that are no products; for products ``gaussian_gram`` has less noise.
        """
        return self.times**2 * int(self.entry_sensitivities.max(initial=0)) * self.l1_sensitivity

    def gaussian(self) -> GaussianBlock:
        """Return the same sums, to be released with Gaussian noise."""
        size, one = (len(self),), (Fraction(1),)
        return GaussianBlock(self.rows, self.columns, size, one, self.squared)

    def law(self, epsilon: Fraction, grid: int) -> NoiseLaw:
        """Return the law of the noise, on sums in units of 1/grid²: whichever varies less."""
        unit = grid**2
        return least_noise(
            "auto",
            {
                "independent": partial(self._independent_noise, self.times * unit / epsilon),
                "joint": partial(self._sup_norm, self.times * unit / epsilon),
            },
        )

    def _independent_noise(self, scale: Fraction) -> DiscreteLaplace:
        return DiscreteLaplace.of(
            laplace_scale(self.l1_sensitivity * scale, Fraction(1)), [len(self)]
        )

    def _sup_norm(self, scale: Fraction) -> SupNorm:
        law = SupNorm(laplace_scale(scale, Fraction(1)), tuple(self.entry_sensitivities.tolist()))
        if law.acceptance <= 0.5:
            raise ValueError("The grid is too coarse for joint noise.")
        return law


def location_block(which: npt.NDArray[np.bool_]) -> Block:
    """Return the sums of some coordinates, numbers or signs: sensitivity 2 for each."""
    x = 1 + np.flatnonzero(which)
    return Block(np.zeros(len(x), np.intp), x, Fraction(2 * len(x)), np.full(len(x), 2), len(x))


def pairs_block(design: Design) -> Block:
    r"""Return the products of two different numbers: r of them change by :math:`r^2/2` at most.

    The change is convex in every number of either record, so it is largest where all are -1 or 1.
    There a product changes, by 2, if just one of its two factors does. If k factors change these
    are :math:`k(r - k)` products.
    """
    x = 1 + np.flatnonzero(design.numbers)
    rows, columns = (x[each] for each in np.triu_indices(len(x), 1))
    l1 = Fraction(2 * (len(x) // 2) * ((len(x) + 1) // 2))
    return Block(rows, columns, l1, np.full(len(rows), 2), len(rows))


def target_block() -> Block:
    """Return the sum of the target, of sensitivity 2."""
    return Block.of(Fraction(2), np.array([2]))


def counting_missing(block: Block) -> Block:
    """Return a block with one more entry, the number of records that have no target, at no cost.

    A record that loses its target takes what it added from the other entries, and adds 1 to this.
    For the sum of the target, and for its distances, that is what a replaced record changes: 2.
    """
    one = block.l1_of_one_record or len(block)
    l1 = max(block.l1_sensitivity, Fraction(one + 1))
    return Block.of(l1, np.append(block.entry_sensitivities, 1), one)


def distance_block(columns: int, bins: int) -> Block:
    """Return histograms of distances: a record leaves one bin of a column and enters another."""
    return Block.of(Fraction(2 * columns), np.ones(columns * bins, np.int64), columns)


def residual_block() -> Block:
    """Return a sum of numbers in [0, 1]."""
    return Block.of(Fraction(1), np.ones(1, np.int64))


def weighted_block(design: Design) -> Block:
    """Return sums of numbers in [0, 1]: squared residuals, and times the square of a coordinate.

    Replace a record with the squared residual a by one with b <= a <= 1. The first sum changes by
    a - b, that of a number or sign by at most 1, those of a column of levels by at most a + b. The
    total is linear in b: with s numbers and signs and q columns, s + 1 + q for 0 and s + 2q for 1.
    """
    _, single, columns = _counts(design)
    each = np.ones(design.width + 1, np.int64)
    l1 = Fraction(single + columns + max(1, columns))
    return Block.of(l1, each, 1 + single + columns)


def first_block(design: Design) -> Block:
    """Return the sums of the coordinates: sensitivity 2 for a number, sign or column of levels.

    Without an intercept only the levels are needed, whose sums are their squares.
    """
    wanted = np.flatnonzero(design.levels | design.intercept)
    columns = len(np.unique(design.column[wanted]))
    each = np.where(design.levels[wanted], 1, 2)
    return Block(np.zeros(len(wanted), np.intp), wanted + 1, Fraction(2 * columns), each, columns)


def cross_block(design: Design) -> Block:
    """Return the products of coordinates and target, and the two sums of the target.

    A number or sign times t lies in [-1, 1]; the levels of a column times t change by
    abs(t) + abs(t') <= 2. With a = abs(t - t') and b = abs(t + t') <= 2 - a the sums of t and t²
    change by a + ab <= a(3 - a) <= 9/4.
    """
    t = design.width + 1
    return Block(
        np.append(np.arange(1, t), [0, t]),
        np.full(t + 1, t),
        2 * len(design.features) + Fraction(9, 4),
        np.append(np.full(t - 1, 2), [2, 1]),
        len(design.features) + 2,
    )


def second_block(design: Design) -> Block:
    r"""Return the products of the coordinates: :math:`\tfrac12(s^2 + r) + q(q-1) + 2qs`."""
    r, s, q = _counts(design)
    rows, columns, each = _products(design)
    l1 = Fraction(s * s + r, 2) + q * (q - 1) + 2 * q * s
    one_record = s * (s - 1) // 2 + r + q * (q - 1) // 2 + q * s
    return Block(rows + 1, columns + 1, l1, each, one_record)


def whole_block(design: Design) -> Block:
    r"""Return the whole upper triangle at once, the target counted as a number.

    :math:`\tfrac12((s+\iota)^2 + r) + q(q+1) + 2qs`, with :math:`\iota = 1` for an intercept; for
    p numbers :math:`p(p+1)/2` without an intercept and :math:`((p+1)^2 + p)/2` with it.
    """
    r, s, q = _counts(design)
    first, second, cross = first_block(design), second_block(design), cross_block(design)
    r, s = r + 1, s + 1  # the target
    l1 = Fraction((s + design.intercept) ** 2 + r, 2) + q * (q + 1) + 2 * q * s
    parts = (first, second, cross)
    whole = Block(
        np.concatenate([b.rows for b in parts]),
        np.concatenate([b.columns for b in parts]),
        l1,
        np.concatenate([b.entry_sensitivities for b in parts]),
        sum(b.l1_of_one_record or 0 for b in parts),
    )
    return whole if design.intercept else _without(whole, 0, design.width + 1)


def _without(block: Block, row: int, column: int) -> Block:
    """Return the block without one entry; its L1 sensitivity can only shrink."""
    keep = (block.rows != row) | (block.columns != column)
    return replace(
        block,
        rows=block.rows[keep],
        columns=block.columns[keep],
        entry_sensitivities=block.entry_sensitivities[keep],
    )


def _counts(design: Design) -> tuple[int, int, int]:
    """Return r numbers, s numbers and signs, q columns of levels."""
    q = len(np.unique(design.column[design.levels]))
    return int(design.numbers.sum()), int(design.single.sum()), q


def _products(design: Design) -> tuple[Positions, Positions, IntArray]:
    """Return positions and sensitivities of the products of coordinates that are not public."""
    rows, columns = np.triu_indices(design.width)
    same_column = design.column[rows] == design.column[columns]
    keep = ~same_column | (design.numbers[rows] & (rows == columns))
    rows, columns = rows[keep], columns[keep]
    one = (rows == columns) | (design.levels[rows] & design.levels[columns])
    return rows, columns, np.where(one, 1, 2)


FINEST_GRID = 2**15
"""Steps from 0 to 1 that coordinates are rounded to: far finer than any private noise."""

_MOST_SUM = 2**62  # Sums stay below this, which leaves room for the noise in 64 bits.


def largest_grid(n: int, largest_scale: float) -> int:
    """Return the finest grid whose sums and noise of ``largest_scale`` fit 64-bit integers.

    >>> largest_grid(1000, 1e3), largest_grid(1000, 1e9)
    (32768, 1024)
    """
    grid = FINEST_GRID
    while grid and (n * grid**2 >= _MOST_SUM or largest_scale * grid**2 >= 2**50):
        grid //= 2
    if not grid:
        raise ValueError(
            f"No exact noise of scale {largest_scale:g} is available for {n} samples; "
            "use a larger epsilon or fewer columns."
        )
    return grid


@dataclass(frozen=True, repr=False)
class Moments:
    """Queries about the second moments of records, each answered exactly.

    **Sensitive.** It refers to the records and holds no sums. A mechanism asks one query after
    another, because a later one may depend on what an earlier one has released: first where the
    target lies, then the products of targets clipped to that window, then the residuals of what
    was learned. Each query is asked of every shard of the records and the answers are added up;
    they are sums of integers, so they do not depend on how the records are spread.
    """

    design: Design  # What the columns of the records mean.
    scale: Scale  # The map of the target's bounds to [-1, 1].
    records: Records  # Features and targets, wherever they are.
    unit: PrivacyUnit = RECORD  # Who is protected.
    size: Facts | None = None  # The released number of records, if the exact one is secret.
    # The records that the queries are about, in increasing order; all if left out.
    sample: Positions | None = None
    share_known: float = 1.0  # The released share of the records that have a target.

    @property
    def n_known(self) -> int:
        """Released number of the records asked that have a target; others add nothing."""
        return max(1, round(self.n * self.share_known))

    @property
    def n(self) -> int:
        """Number of records asked: exact if it is public, otherwise the released one."""
        if self.size is not None:
            return self.size.n
        return self.records.n if self.sample is None else len(self.sample)

    @property
    def n_bound(self) -> int:
        """A public number that the number of records does not exceed."""
        return self.n if self.size is None else self.size.n_bound

    def sized(self, size: Facts) -> Moments:
        """Return the same queries, with a released number of records for the exact one."""
        return replace(self, size=size)

    def protecting(self, unit: PrivacyUnit) -> Moments:
        """Return the same queries, answered for a unit of privacy."""
        return replace(self, unit=unit)

    def about(self, sample: Positions | None) -> Moments:
        """Return the same queries about some records, drawn at random; about all if None."""
        return replace(self, sample=sample)

    def knowing(self, share: float) -> Moments:
        """Return the same queries, with the released share of the records that have a target."""
        return replace(self, share_known=share)

    @property
    def n_missing(self) -> int:
        """Exact number of the records asked that have no target."""
        return self.records.total(record_sums.count_missing, self.sample)

    def _total(self, ask: Callable[[Shard], A]) -> A:
        return self.records.total(partial(record_sums.of_known, ask), self.sample)

    @property
    def structure(self) -> tuple[Design, Scale]:
        """The public model: what merged moments must have in common."""
        return self.design, self.scale

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the records of both, which must be different records."""
        if self.structure != other.structure:
            raise ValueError("Moments of different models cannot be added.")
        return replace(self, records=self.records + other.records)

    def sensitivity(self, unit: PrivacyUnit) -> float:
        """Return the L1 sensitivity of the whole upper triangle; see `whole_block`."""
        if not unit.whole_records:
            raise ValueError("Linear regression protects whole records: privacy_unit='record'.")
        return float(whole_block(self.design).protecting(unit).sensitivity)

    def location_sums(self, grid: int) -> tuple[int, IntArray]:
        """Return how many rows, and the sums of numbers, signs and target in units of 1/grid².

        The number of rows is public or released, too.
        """
        self._check_grid(grid)
        ask = partial(record_sums.location_sums, design=self.design, scale=self.scale)
        return self.n, self._total(partial(ask, grid=grid))

    def distance_counts(self, centres: FloatArray) -> IntArray:
        """Count the distances of numbers and target from public centres; see `record_sums`."""
        ask = partial(record_sums.distance_counts, design=self.design, scale=self.scale)
        counts: IntArray = self._total(partial(ask, centres=centres))
        return counts

    def largest_counts(self) -> IntArray:
        """Count the distances of the farthest number of every record; see `record_sums`."""
        ask = partial(record_sums.largest_counts, design=self.design, scale=self.scale)
        counts: IntArray = self._total(ask)
        return counts

    def window_counts(self, windows: Windows, which: Positions, grid: int) -> IntArray:
        """Count the distances from 0 of some coordinates in their windows."""
        self._check_grid(grid)
        ask = partial(record_sums.window_counts, design=self.design, windows=windows)
        counts: IntArray = self._total(partial(ask, which=which, grid=grid))
        return counts

    def residual_sum(self, baseline: Baseline, grid: int) -> IntArray:
        """Return the sum of the residuals of a released model, in units of 1/grid²."""
        self._check_grid(grid)
        ask = partial(record_sums.residual_sum, design=self.design, scale=self.scale)
        return np.array([self._total(partial(ask, baseline=baseline, grid=grid))])

    def residual_counts(self, baseline: Baseline, grid: int) -> IntArray:
        """Count the distances of a released model's residuals from 0."""
        self._check_grid(grid)
        ask = partial(record_sums.residual_counts, design=self.design, scale=self.scale)
        counts: IntArray = self._total(partial(ask, baseline=baseline, grid=grid))
        return counts

    def clipped_excess(self, baseline: Baseline, half: float, grid: int) -> IntArray:
        """Return the sum of what clipping takes of residuals, in units of 1/grid²."""
        self._check_grid(grid)
        ask = partial(record_sums.clipped_excess, design=self.design, scale=self.scale)
        asked = partial(ask, baseline=baseline, half=half)
        return np.array([self._total(partial(asked, grid=grid))])

    def gram(
        self,
        grid: int,
        window: Window,
        windows: Windows | None = None,
        norm: RowNorm | None = None,
        baseline: Baseline | None = None,
    ) -> IntArray:
        """Return the sums of zz' in units of 1/grid², exactly, for z = (1, x, t)."""
        self._check_grid(grid)
        ask = partial(record_sums.gram, design=self.design, scale=self.scale)
        clipped = partial(ask, window=window, windows=windows, norm=norm, baseline=baseline)
        sums: IntArray = self._total(partial(clipped, grid=grid))
        return sums

    def loss_derivatives(
        self, grid: int, window: Window, windows: Windows, coefficients: FloatArray, limit: int
    ) -> LossDerivatives:
        """Return gradient and curvature of the robust loss; see `derivative_sums`."""
        self._check_grid(grid)
        ask = partial(derivative_sums, design=self.design, scale=self.scale, window=window)
        asked = partial(ask, windows=windows, coefficients=coefficients, limit=limit)
        return LossDerivatives.read(self._total(partial(asked, grid=grid)), grid)

    def squared_residuals(self, model: Predictive, grid: int) -> tuple[int, int]:
        """Return the sum of min(1, |y - f|/bound)² in units of 1/grid², and the rows it is of."""
        self._check_grid(grid)
        ask = partial(record_sums.squared_residuals, design=self.design, scale=self.scale)
        return int(self._total(partial(ask, model=model, grid=grid))), self.n_known

    def weighted_residuals(self, model: Predictive, grid: int) -> IntArray:
        """Return the same sum, and those of squares times x² for every coordinate in its window."""
        self._check_grid(grid)
        ask = partial(record_sums.weighted_residuals, design=self.design, scale=self.scale)
        sums: IntArray = self._total(partial(ask, model=model, grid=grid))
        return sums

    def without_noise(self) -> ReleasedMoments:
        """Return the moments when no privacy is asked for: not rounded to the grid either."""
        ask = partial(record_sums.plain_gram, design=self.design, scale=self.scale)
        gram = self._total(ask)
        nothing, windows = np.zeros(gram.shape), Windows.whole(self.design.width)
        known = max(1, self.n - self.n_missing)
        return ReleasedMoments(self.design, known, gram, nothing, WHOLE_WINDOW, windows)

    def _check_grid(self, grid: int) -> None:
        """Refuse more records than 64-bit sums on this grid can hold."""
        if self.n * grid**2 >= _MOST_SUM:
            raise ValueError(f"{self.n} samples are too many for exact sums on a grid of {grid}.")


@dataclass(frozen=True)
class ReleasedMoments:
    """Moments after noise: public, with the variance of the noise."""

    design: Design
    n: int  # Number of records.
    gram: FloatArray  # (width + 2, width + 2): sums of zz' plus noise, z = (1, x, t).
    # Variance of the noise in every entry; 0 where an entry is public or free of noise.
    variance: FloatArray
    window: Window  # Where the target was clipped, and the scale of t.
    windows: Windows  # Where the columns were clipped, and the scale of x.
    # What was added to every diagonal entry so that the matrix is positive semi-definite.
    increment: float = 0.0
