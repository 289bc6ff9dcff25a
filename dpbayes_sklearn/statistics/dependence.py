r"""How strongly columns depend on the target: scores of small sensitivity, for choosing columns.

With counts :math:`N_{vc}` of the values v of a column and c of the target, the score is n times the
distance in total variation between their joint law and the product of their laws,

.. math:: nR = \frac{1}{2n} \sum_{v,c} |n N_{vc} - N_v N_c|

(PrivBayes, Zhang et al. 2017), an integer over 2n, rounded down to steps of 1/1024.

**Sensitivity.** A record that is replaced changes the matrix :math:`n N_{vc} - N_v N_c` by

.. math:: n(e_{v'c'} - e_{vc}) - (e_{v'} - e_v) \otimes s - r \otimes (e_{c'} - e_c)
    - (e_{v'} - e_v) \otimes (e_{c'} - e_c)

r and s being the row and column sums. Its L1 norm depends on :math:`r_v, r_{v'}, s_c, s_{c'}` only,
and is convex in them, so it is largest at a corner of what they can be: `dependence_sensitivity`
goes through all corners. Over 2n it is below 2 if column or target has two values, otherwise
below 3.

A record that comes or goes changes the score by at most 2, as one of a single class does in
:mod:`~dpbayes_sklearn.statistics.conditional_dependence`. That it can be nearly 2 even for a column
of two values is seen from one record that differs from all others in both: without it the score is
0, with it :math:`2(n-1)/n`. Records of a person change it one after the other. If numbers change by
no more than a whole number of steps, so do they rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.choices import LARGEST, STEPS
from dpbayes_sklearn.statistics.counts import CountTables
from dpbayes_sklearn.statistics.size import ReleasedSize

__all__ = ["ColumnScores", "dependence", "dependence_sensitivity"]


def dependence(table: IntArray) -> int:
    """Return 2n times the score of a table of counts of values and classes.

    >>> dependence(np.array([[3, 0], [0, 1]]))
    12
    """
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    return int(np.abs(n * table - np.outer(rows, columns)).sum())


@lru_cache
def dependence_sensitivity(n: int, n_values: int, n_classes: int) -> int:
    """Return how far a replaced record can change `dependence` of n records.

    >>> dependence_sensitivity(10, 2, 2), dependence_sensitivity(10, 4, 3)
    (36, 54)
    """
    if min(n_values, n_classes) < 2:
        return 0

    def corners(size: int) -> list[tuple[int, int]]:
        """Return the extreme sums of the old and the new place, without the record itself."""
        return [(n, 0), (1, n - 1), *([(1, 0)] if size > 2 else [])]

    one_place = 4 * (n - 1)  # only the value or only the class is replaced
    return max(
        one_place,
        *(_change(n, *r, *s) for r, s in product(corners(n_values), corners(n_classes))),
    )


def _change(n: int, r: int, r_new: int, s: int, s_new: int) -> int:
    """Return the L1 norm of the change, for sums r, s of the old place and of the new one."""
    here, there = abs(n - s - r + 1), abs(n - s_new - r_new - 1)
    crossed = abs(r_new - s + 1) + abs(s_new - r + 1)
    return here + there + crossed + 2 * (n - s - s_new) + 2 * (n - r - r_new)


@dataclass(frozen=True, repr=False)
class ColumnScores:
    """Sensitive: the score of every column, from which some are chosen one after the other.

    Attributes
    ----------
    scores : array of int
        The score of each column, in steps.
    n : int
    sizes : tuple of int
        Numbers of values of the columns, and of the target.
    """

    scores: IntArray
    n: int
    sizes: tuple[int, ...]

    kind: ClassVar[str] = "scores"

    @classmethod
    def of(cls, counts: CountTables) -> ColumnScores:
        """Return the scores of counts of naive Bayes."""
        *tables, _ = counts.tables
        exact = (dependence(np.asarray(table, np.int64)) for table in tables)
        scores = [min(STEPS * score // (2 * max(counts.n, 1)), LARGEST) for score in exact]
        return cls(np.array(scores, np.int64), counts.n, counts.network.sizes)

    def sensitivity(self, unit: PrivacyUnit) -> int:
        """Return how far neighbours can differ in any of the scores, in steps."""
        *values, n_classes = self.sizes
        if min(max(values), n_classes) < 2:
            return 0
        if unit.size_is_secret:
            return 2 * STEPS * unit.max_records
        widest = max(dependence_sensitivity(self.n, k, n_classes) for k in values)
        return -(-unit.max_records * STEPS * widest // (2 * self.n))

    def sized(self, size: ReleasedSize) -> ColumnScores:
        """Return the same scores, with a released number of records for the exact one."""
        return replace(self, n=size.n)

    def options(self, chosen: tuple[int, ...]) -> tuple[list[int], IntArray]:
        """Return the columns that are not chosen yet, and their scores."""
        left = [j for j in range(len(self.scores)) if j not in chosen]
        return left, self.scores[left]

    def without_noise(self) -> ColumnScores:
        """Return the scores themselves, where no privacy is asked for."""
        return self
