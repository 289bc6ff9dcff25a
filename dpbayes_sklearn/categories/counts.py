"""Counts of one categorical variable: the sufficient statistic of a Dirichlet-multinomial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, Marginal, NoiseLaw, ZeroSum
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit


@dataclass(frozen=True)
class SimplexCounts:
    """**Sensitive:** how often each category occurs among n records.

    The number of categories is public. If the sum n is, too, the counts are a point of a simplex.
    """

    counts: IntArray

    kind: ClassVar[str] = "simplex"

    @classmethod
    def count(cls, codes: npt.NDArray[np.intp], n_categories: int) -> SimplexCounts:
        """Count codes from 0 to ``n_categories`` - 1.

        >>> SimplexCounts.count(np.array([2, 0, 2]), 3).counts
        array([1, 0, 2])
        """
        return cls(np.bincount(codes, minlength=n_categories).astype(np.int64))

    @classmethod
    def of_size(cls, n: int, n_categories: int) -> SimplexCounts:
        """Return made-up counts with these public sizes: of n records in the first category."""
        return cls.count(np.zeros(n, np.intp), n_categories)

    @property
    def n(self) -> int:
        """Number of records: public, unless records may be added or removed."""
        return int(self.counts.sum())

    @property
    def n_categories(self) -> int:
        """Number of categories: public."""
        return len(self.counts)

    def sensitivity(self, unit: PrivacyUnit = RECORD, cells: int | None = None) -> int:
        """Return the L1 sensitivity of the first ``cells`` counts.

        A replaced record takes one from a count and adds one to another: 2 in all, but only 1 for
        a single count, and 0 where there is only one category. One that comes or goes changes one
        count by 1.
        """
        return unit.max_records * self._changed(unit, cells)

    def _changed(self, unit: PrivacyUnit, cells: int | None) -> int:
        """Return how many of the first ``cells`` counts one record of a unit changes."""
        if unit.size_is_secret:
            return 1
        movable = self.n_categories if cells is None else cells
        return min(2, movable) if self.n_categories > 1 else 0

    def shifts(self, unit: PrivacyUnit = RECORD) -> dict[tuple[int, int], int]:
        """Return how many released counts change by how much, by (amount, weight 1).

        All records of a person that are alike change the same counts, which has the largest L2
        norm.
        """
        changed = self._changed(unit, self._cells(unit))
        return {(unit.max_records, 1): changed} if changed else {}

    def _cells(self, unit: PrivacyUnit) -> int:
        """Return how many counts a release needs: of two a public sum tells the other."""
        return self.n_categories if self.n_categories > 2 or unit.size_is_secret else 1

    def law(self, noise: str, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return the law of the noise to add, from public facts only.

        ``"independent"`` is discrete Laplace noise in every count (of two, only in the first: they
        add to n), ``"all_but_last"`` in all counts but the last, and ``"zero_sum"`` in every count,
        given that it adds to zero. If n is secret, it is always in every count.
        """
        k = self.n_categories
        if unit.size_is_secret:
            return DiscreteLaplace.of(laplace_scale(self.sensitivity(unit), epsilon), [k])
        if noise == "zero_sum":
            return ZeroSum(laplace_scale(self.sensitivity(unit), epsilon), k)
        cells = k - 1 if noise == "all_but_last" else self._cells(unit)
        counted = cells if noise == "all_but_last" else None
        return DiscreteLaplace.of(laplace_scale(self.sensitivity(unit, counted), epsilon), [cells])

    def gaussian_law(
        self, unit: PrivacyUnit, calibrated: Callable[[dict[tuple[int, int], int]], Fraction]
    ) -> DiscreteGaussian:
        """Return Gaussian noise of one variance, which is ``calibrated`` to the shifts."""
        shifts = self.shifts(unit)
        variance = calibrated(shifts) if shifts else Fraction(0)
        return DiscreteGaussian((variance,), (self._cells(unit),))

    def without_noise(self) -> ReleasedSimplex:
        """Return the released form when no privacy is asked for."""
        return ReleasedSimplex.exact(self.counts)


@dataclass(frozen=True)
class ReleasedSimplex:
    """Counts of categories after noise: public, with the public law of the noise, if there is one.

    They are those of all categories, or of all but the last, which the sum ``n`` of the exact
    counts completes; it is None if it is secret.
    """

    counts: IntArray
    n: int | None
    laws: tuple[NoiseLaw, ...] = ()

    @property
    def noise(self) -> Marginal:
        """The distribution of the noise in one count, ignoring that the sum is known."""
        return sum_of([law.marginal() for law in self.laws])

    @classmethod
    def exact(cls, counts: IntArray) -> ReleasedSimplex:
        """Return counts without a noise law: exact ones, or ones selected by a mechanism."""
        return cls(counts, int(counts.sum()))
