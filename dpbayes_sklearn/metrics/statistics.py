r"""What a private evaluation releases: tables of counts and sums of bounded losses.

**Sensitivity.** A record is in one cell of a table, and adds to each sum a whole number between
:math:`-H` and :math:`H`. If at most m records come or go (:attr:`PrivacyUnit.n_changed`; one that
is replaced goes, and another comes), a table changes by at most m in L1, and each sum by at most
mH.

* *Tables*: independent discrete Laplace noise of scale :math:`m/\varepsilon`.
* *Sums*: joint noise whose density decays with its largest entry (`SupNorm`), of sensitivity m in
  units of H, for any number of sums at once.
* *With a delta*: discrete Gaussian noise. The squared L2 sensitivity of a table is :math:`k^2` if k
  records are added and :math:`2k^2` if they are replaced (all from one cell to another); that of s
  sums is :math:`s(mH)^2`.

A loss with the public range [a, b] is written as :math:`H(2x - a - b)/(b - a)`, rounded. Centred
like that, replacing a record changes its sum by at most b - a and adding one by half of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.discrete_gaussian import representable_variance
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["HALF", "BoundedSums", "CellCounts", "Range"]

HALF = 2**20
"""The H: half the range of a loss, in steps."""

_MOST_RECORDS = 2**40  # then no sum of steps exceeds 64 bits


@dataclass(frozen=True)
class Range:
    """The public range of a loss; values outside are clipped.

    >>> Range(0.0, 4.0).steps(np.array([0.0, 3.0, 9.0])) / HALF
    array([-1. ,  0.5,  1. ])
    """

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Halfway between the ends."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Half of the width."""
        return (self.high - self.low) / 2

    def steps(self, values: FloatArray) -> IntArray:
        """Return values as whole steps from -HALF to HALF; what is no number is the largest."""
        inside = np.clip(np.nan_to_num(values, nan=self.high), self.low, self.high)
        return np.rint((inside - self.middle) / self.half * HALF).astype(np.int64)

    def centred(self, steps: FloatArray) -> FloatArray:
        """Return sums of steps as sums of (value - middle)."""
        return steps * (self.half / HALF)


@dataclass(frozen=True)
class CellCounts:
    """**Sensitive:** how many records are in each cell of a table, every record in one cell.

    >>> table = CellCounts.of(np.array([0, 1, 1]), np.array([0, 0, 1]), (2, 2))
    >>> table.counts.tolist(), table.sensitivity(PrivacyUnit("record"))
    ([[1, 0], [1, 1]], 2)
    """

    counts: IntArray

    @classmethod
    def of(cls, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> CellCounts:
        """Count records by the row and the column of their cell."""
        cells = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
        return cls(cells.astype(np.int64).reshape(shape))

    @staticmethod
    def sensitivity(unit: PrivacyUnit) -> int:
        """Return by how much the counts of neighbours differ in L1."""
        return unit.n_changed

    @staticmethod
    def squared_l2(unit: PrivacyUnit) -> int:
        """Return the squared L2 sensitivity."""
        return unit.max_records**2 * (1 if unit.size_is_secret else 2)

    @classmethod
    def law(
        cls, shape: tuple[int, ...], unit: PrivacyUnit, epsilon: Fraction, rho: Fraction | None
    ) -> NoiseLaw:
        """Return the noise of a table: Laplace for an epsilon, Gaussian for a rho."""
        numbers = int(np.prod(shape))
        if rho is not None:
            variance = representable_variance(cls.squared_l2(unit) / (2 * rho))
            return DiscreteGaussian((variance,), (numbers,))
        return DiscreteLaplace.of(laplace_scale(cls.sensitivity(unit), epsilon), [numbers])


@dataclass(frozen=True)
class BoundedSums:
    """**Sensitive:** sums over records of whole numbers from -HALF to HALF.

    >>> sums = BoundedSums.of(np.array([[HALF, -HALF], [HALF, 7]]))
    >>> int(sums.sums[0]) // HALF, sums.sensitivity(PrivacyUnit("record")) // HALF
    (2, 2)
    """

    sums: IntArray

    @classmethod
    def of(cls, steps: IntArray) -> BoundedSums:
        """Add up steps of shape (n_records, n_sums)."""
        if len(steps) > _MOST_RECORDS:
            raise ValueError("There are too many records to evaluate at once.")
        return cls(steps.sum(axis=0, dtype=np.int64))

    @staticmethod
    def sensitivity(unit: PrivacyUnit) -> int:
        """Return by how much one sum of neighbours differs."""
        return unit.n_changed * HALF

    @classmethod
    def law(
        cls, number: int, unit: PrivacyUnit, epsilon: Fraction, rho: Fraction | None
    ) -> NoiseLaw:
        """Return the noise of so many sums: joint for an epsilon, Gaussian for a rho."""
        if rho is not None:
            variance = representable_variance(number * cls.sensitivity(unit) ** 2 / (2 * rho))
            return DiscreteGaussian((variance,), (number,))
        return SupNorm.of((HALF,) * number, unit.n_changed, epsilon)
