"""Counts of one categorical variable: the sufficient statistic of a Dirichlet-multinomial."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray

__all__ = ["ReleasedSimplex", "SimplexCounts"]


@dataclass(frozen=True)
class SimplexCounts:
    """**Sensitive:** how often each category occurs among n records.

    The number of categories and the sum n are public, so the counts are a point of a simplex.
    """

    counts: IntArray

    kind: ClassVar[str] = "simplex"

    @classmethod
    def count(cls, codes: npt.NDArray[np.intp], n_categories: int) -> SimplexCounts:
        """Count codes from 0 to ``n_categories`` - 1.

        Examples
        --------
        >>> SimplexCounts.count(np.array([2, 0, 2]), 3).counts
        array([1, 0, 2])
        """
        return cls(np.bincount(codes, minlength=n_categories).astype(np.int64))

    @property
    def n(self) -> int:
        """Number of records: public."""
        return int(self.counts.sum())

    @property
    def n_categories(self) -> int:
        """Number of categories: public."""
        return len(self.counts)

    def sensitivity(self, unit: str = "record", cells: int | None = None) -> int:
        """Return the most that neighbouring data move the first ``cells`` counts, in L1.

        A replaced record takes one from a count and adds one to another: 2 in all, but only 1 if
        a single count is looked at, and nothing where there is only one category.
        """
        return min(2, self.n_categories if cells is None else cells) if self._moves else 0

    @property
    def _moves(self) -> bool:
        return self.n_categories > 1

    def without_noise(self) -> ReleasedSimplex:
        """Return the released form when no privacy is asked for."""
        return ReleasedSimplex.exact(self.counts)


@dataclass(frozen=True)
class ReleasedSimplex:
    """Counts of categories after noise: public, with the public law of the noise.

    Attributes
    ----------
    counts : array of int
        Noisy counts of the first categories: all of them, or all but the last, which the public
        sum then completes.
    n : int
        The public sum of the exact counts.
    scale : Fraction
        Discrete Laplace noise of this scale is in every one of ``counts``, independent or given
        that the noises add to zero; 0 means that there is none.
    """

    counts: IntArray
    n: int
    scale: Fraction

    @classmethod
    def exact(cls, counts: IntArray) -> ReleasedSimplex:
        """Return counts without noise: not private, or chosen privately as they are."""
        return cls(counts, int(counts.sum()), Fraction(0))
