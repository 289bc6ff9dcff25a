r"""All posteriors that n records can lead to, and their Hellinger distances.

With prior :math:`\alpha`, the counts x and y of two data sets of n records give posteriors with

.. math:: \log(1 - H^2(x, y)) = \sum_i \left[ T_i(x_i + y_i) - \tfrac12 T_i(2 x_i)
          - \tfrac12 T_i(2 y_i) \right], \qquad T_i(t) = \log\Gamma(\alpha_i + t/2),

so a table of 2n + 1 half-integer log-gammas for each category holds everything. The sensitivity of
the score -H(x, r) at x is the distance to the farthest neighbour of x: for every candidate r,
:math:`|H(x, r) - H(x', r)| \le H(x, x')`, with equality at r = x.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpbayes_sklearn._typing import FloatArray, IntArray

__all__ = ["MAX_CANDIDATES", "Candidates"]

Rows = npt.NDArray[np.intp]

MAX_CANDIDATES = 20_000
"""Largest number of candidates; comparing all pairs then takes about ten seconds."""


class Candidates:
    """The posteriors of all count vectors of sum n, in lexicographic order.

    Parameters
    ----------
    n : int
        Number of records.
    prior : tuple of float
        Pseudo-count of every category, at least two.

    Examples
    --------
    >>> candidates = Candidates(2, (1.0, 1.0))
    >>> candidates.counts.tolist()
    [[0, 2], [1, 1], [2, 0]]
    >>> candidates.hellinger([0]).round(4).tolist()
    [[0.0, 0.4086, 0.7071]]
    """

    def __init__(self, n: int, prior: tuple[float, ...]) -> None:
        k = len(prior)
        size = comb(n + k - 1, k - 1)
        if size > MAX_CANDIDATES:
            raise ValueError(
                f"{n} records in {k} categories have {size:,} possible posteriors; at most "
                f"{MAX_CANDIDATES:,} can be compared with each other. Use mechanism='geometric', "
                "'laplace' or 'laplace_improved', which do not list them."
            )
        self.n, self.prior = n, prior
        self.counts = _compositions(n, k)
        # a straight line in t cancels, and without it fewer digits do
        self._tables = [_without_chord(gammaln(a + np.arange(2 * n + 1) / 2)) for a in prior]
        self._own = self._sum_of_tables(2 * self.counts)
        # below[p][r]: how many vectors of p + 1 counts add to r
        self._below = [np.ones(n + 1, dtype=np.int64)]
        for _ in range(k - 1):
            self._below.append(np.cumsum(self._below[-1]))

    def __len__(self) -> int:
        return len(self.counts)

    def _sum_of_tables(self, twice: IntArray) -> FloatArray:
        return np.asarray(sum(table[twice[..., i]] for i, table in enumerate(self._tables)))

    def hellinger(self, rows: npt.ArrayLike) -> FloatArray:
        """Hellinger distances from the posteriors in ``rows`` to all candidates."""
        rows = np.asarray(rows, dtype=np.intp)
        log_affinity = -(self._own[rows][:, None] + self._own) / 2
        for i, table in enumerate(self._tables):
            log_affinity += table[self.counts[rows, i][:, None] + self.counts[:, i]]
        np.minimum(log_affinity, 0.0, out=log_affinity)
        distance: FloatArray = np.sqrt(-np.expm1(log_affinity))
        distance[np.arange(len(rows)), rows] = 0.0
        return distance

    @property
    def rounding(self) -> float:
        """Bound on the error of a computed distance between different candidates.

        Each of k + 1 sums errs by an ulp of its largest term, and H by that over 2 H.
        """
        largest = max(float(np.abs(table).max()) for table in self._tables)
        error = 4 * (len(self.prior) + 1) * 2.0**-52 * (1 + largest)
        return error / float(self.neighbour_distances().min())

    def row_of(self, counts: npt.ArrayLike) -> Rows:
        """Positions of count vectors in the list: the number of vectors before each of them."""
        x = np.asarray(counts, dtype=np.int64)
        k = x.shape[-1]
        left = self.n - np.cumsum(x, axis=-1) + x
        before = [
            self._below[k - 1 - i][left[..., i]] - self._below[k - 1 - i][left[..., i] - x[..., i]]
            for i in range(k - 1)
        ]
        return np.asarray(sum(before), dtype=np.intp)

    def neighbours(self) -> Iterator[tuple[Rows, Rows]]:
        """Pairs of rows that one replaced record leads to, each pair once."""
        k = self.counts.shape[1]
        for gains, loses in combinations(range(k), 2):
            rows = np.flatnonzero(self.counts[:, loses] > 0)
            moved = self.counts[rows]
            moved[:, gains] += 1
            moved[:, loses] -= 1
            yield rows, self.row_of(moved)

    def neighbour_distances(self) -> FloatArray:
        """Hellinger distances of all neighbouring pairs, in the order of :meth:`neighbours`."""
        distances = []
        for a, b in self.neighbours():
            log_affinity = self._sum_of_tables(self.counts[a] + self.counts[b])
            log_affinity -= (self._own[a] + self._own[b]) / 2
            distances.append(np.sqrt(-np.expm1(np.minimum(log_affinity, 0.0))))
        return np.concatenate(distances)

    def local_sensitivity(self) -> FloatArray:
        """Distance from every candidate to its farthest neighbour: LS(x)."""
        a, b = (np.concatenate(side) for side in zip(*self.neighbours(), strict=True))
        distances = self.neighbour_distances()
        farthest = np.zeros(len(self))
        np.maximum.at(farthest, a, distances)
        np.maximum.at(farthest, b, distances)
        return farthest

    def smooth_sensitivity(self, gamma: float) -> FloatArray:
        """S(x) = max over x' of LS(x') exp(-gamma d(x, x')), d the number of replaced records.

        One step along an edge costs exp(-gamma), so the maximum spreads from neighbour to
        neighbour until nothing changes any more.
        """
        log_smooth = np.log(self.local_sensitivity())
        pairs = list(self.neighbours())
        while True:
            before = log_smooth.copy()
            for a, b in pairs:
                log_smooth[a] = np.maximum(log_smooth[a], before[b] - gamma)
                log_smooth[b] = np.maximum(log_smooth[b], before[a] - gamma)
            if (log_smooth == before).all():
                return np.exp(log_smooth)


def _compositions(n: int, k: int) -> IntArray:
    """All vectors of k counts with sum n: the gaps between k - 1 bars among n + k - 1 places."""
    bars = np.array(list(combinations(range(n + k - 1), k - 1)), dtype=np.int64)
    ends = np.full((len(bars), 1), n + k - 1)
    return np.diff(np.hstack([np.full_like(ends, -1), bars, ends]), axis=1) - 1


def _without_chord(table: FloatArray) -> FloatArray:
    return np.asarray(table - np.linspace(table[0], table[-1], len(table)))
