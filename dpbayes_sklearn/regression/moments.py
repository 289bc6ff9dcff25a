"""Exact second moments of bounded records: the sufficient statistics of linear regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.data.records import Positions, Records, Shard
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.regression import record_sums
from dpbayes_sklearn.regression.design import WHOLE_WINDOW, Design, Scale, Window, Windows
from dpbayes_sklearn.regression.record_sums import Baseline, Predictive, Pulls, RowNorm, pull_sums
from dpbayes_sklearn.regression.sensitivity import whole_block
from dpbayes_sklearn.release import Facts

__all__ = [
    "FINEST_GRID",
    "WHOLE_WINDOW",
    "Moments",
    "Predictive",
    "ReleasedMoments",
    "Window",
    "Windows",
    "largest_grid",
]


FINEST_GRID = 2**15
"""Steps from 0 to 1 that coordinates are rounded to: far finer than any private noise."""

_INT64 = 2**62  # sums stay below it, which leaves room for the noise


def largest_grid(n: int, largest_scale: float) -> int:
    """Return the finest grid whose sums and noise of ``largest_scale`` fit 64-bit integers.

    >>> largest_grid(1000, 1e3), largest_grid(1000, 1e9)
    (32768, 1024)
    """
    grid = FINEST_GRID
    while grid and (n * grid**2 >= _INT64 or largest_scale * grid**2 >= 2**50):
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

    Attributes
    ----------
    design : Design
        What the columns of the records mean.
    scale : Scale
        The map of the target's bounds to [-1, 1].
    records : Records
        Features and targets, wherever they are; a missing target counts as the middle of its
        bounds.
    unit : PrivacyUnit
        Who is protected.
    size : Facts, optional
        The released number of records, if the exact one is secret.
    sample : array of positions, optional
        The records that the queries are about, in increasing order; all if left out.
    """

    design: Design
    scale: Scale
    records: Records
    unit: PrivacyUnit = RECORD
    size: Facts | None = None
    sample: Positions | None = None

    kind: ClassVar[str] = "moments"

    @property
    def n(self) -> int:
        """Number of records asked: exact if it is public, otherwise the released one."""
        if self.size is not None:
            return self.size.n
        return self.records.n if self.sample is None else len(self.sample)

    def sized(self, size: Facts) -> Moments:
        """Return the same queries, with a released number of records for the exact one."""
        return replace(self, size=size)

    def protecting(self, unit: PrivacyUnit) -> Moments:
        """Return the same queries, answered for a unit of privacy."""
        return replace(self, unit=unit)

    def about(self, sample: Positions | None) -> Moments:
        """Return the same queries about some records, drawn at random; about all if None."""
        return replace(self, sample=sample)

    def _total(self, ask: Callable[[Shard], Any]) -> Any:
        return self.records.total(ask, self.sample)

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
        """Return the L1 sensitivity of the whole upper triangle; see `moment_blocks`."""
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

    def shell_counts(self, centres: FloatArray) -> IntArray:
        """Count the numbers and the target in shells around public centres; see `moment_sums`."""
        ask = partial(record_sums.shell_counts, design=self.design, scale=self.scale)
        counts: IntArray = self._total(partial(ask, centres=centres))
        return counts

    def residual_sum(self, baseline: Baseline, grid: int) -> IntArray:
        """Return the sum of the residuals of a released model, in units of 1/grid²."""
        self._check_grid(grid)
        ask = partial(record_sums.residual_sum, design=self.design, scale=self.scale)
        return np.array([self._total(partial(ask, baseline=baseline, grid=grid))])

    def residual_counts(self, baseline: Baseline, grid: int) -> IntArray:
        """Count the residuals of a released model in shells around 0."""
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

    def pulls(
        self, grid: int, window: Window, windows: Windows, coefficients: FloatArray, limit: int
    ) -> Pulls:
        """Return how the records pull at coefficients; see `pulls`."""
        self._check_grid(grid)
        ask = partial(pull_sums, design=self.design, scale=self.scale, window=window)
        asked = partial(ask, windows=windows, coefficients=coefficients, limit=limit)
        return Pulls.read(self._total(partial(asked, grid=grid)), grid)

    def squared_residuals(self, model: Predictive, grid: int) -> tuple[int, int]:
        """Return the sum of min(1, |y - f|/bound)² in units of 1/grid², and the rows it is over."""
        self._check_grid(grid)
        ask = partial(record_sums.squared_residuals, design=self.design, scale=self.scale)
        return int(self._total(partial(ask, model=model, grid=grid))), self.n

    def without_noise(self) -> ReleasedMoments:
        """Return the moments when no privacy is asked for: not rounded to the grid either."""
        ask = partial(record_sums.plain_gram, design=self.design, scale=self.scale)
        gram = self._total(ask)
        nothing, windows = np.zeros(gram.shape), Windows.whole(self.design.width)
        return ReleasedMoments(self.design, self.n, gram, nothing, WHOLE_WINDOW, windows)

    def _check_grid(self, grid: int) -> None:
        """Refuse more records than 64-bit sums on this grid can hold."""
        if self.n * grid**2 >= _INT64:
            raise ValueError(f"{self.n} samples are too many for exact sums on a grid of {grid}.")


@dataclass(frozen=True)
class ReleasedMoments:
    """Moments after noise: public, with the variance of the noise.

    Attributes
    ----------
    design : Design
    n : int
        Number of records.
    gram : array of shape (width + 2, width + 2)
        Sums of zz' plus noise, z = (1, x, t).
    variance : array of the same shape
        Variance of the noise in every entry; 0 where an entry is public or free of noise.
    window : Window
        Where the target was clipped, and the scale of t.
    windows : Windows
        Where the columns were clipped, and the scale of x.
    increment : float
        What was added to every diagonal entry so that the matrix is positive semi-definite.
    """

    design: Design
    n: int
    gram: FloatArray
    variance: FloatArray
    window: Window
    windows: Windows
    increment: float = 0.0
