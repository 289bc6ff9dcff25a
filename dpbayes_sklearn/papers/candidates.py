r"""All posteriors that n records can lead to, and laws of a released one.

With prior :math:`\alpha`, the counts x and y of two data sets of n records give posteriors with

.. math:: \log(1 - H^2(x, y)) = \sum_i \left[ T_i(x_i + y_i) - \tfrac12 T_i(2 x_i)
          - \tfrac12 T_i(2 y_i) \right], \qquad T_i(t) = \log\Gamma(\alpha_i + t/2),

so a table of 2n + 1 half-integer log-gammas for each category holds everything. The sensitivity of
the score -H(x, r) at x is the distance to the farthest neighbour of x: for every candidate r,
:math:`|H(x, r) - H(x', r)| \le H(x, x')`, with equality at r = x.

A law gives, for every data set (a row of :class:`Candidates`), the probability of every outcome.
Its loss is taken over **all** neighbouring data sets and all outcomes, from the integer weights
that are drawn, so nothing about it is estimated, and rounding is included.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.categories.posterior import DISTANCES
from dpbayes_sklearn.noise.finite import integer_weights
from dpbayes_sklearn.privacy.budget import round_up
from dpbayes_sklearn.privacy.gaussian import gaussian_delta

RowNumbers = npt.NDArray[np.intp]

MAX_CANDIDATES = 20_000
"""Largest number of candidates; comparing all pairs then takes about ten seconds."""

_OUTWARD = 2.0**-44  # The difference of two log-probabilities has a smaller error than this.
_CHUNK = 32  # How many rows or pairs are worked on at once.
_PATIENCE = 2.0  # A progress bar appears after this many seconds.
_MOST_CATEGORIES = 50  # Every pair of them is a way to be neighbours.


class Candidates:
    """The posteriors of all count vectors of sum n, in lexicographic order.

    ``prior`` has the pseudo-count of every category, at least two.

    >>> candidates = Candidates(2, (1.0, 1.0))
    >>> candidates.counts.tolist()
    [[0, 2], [1, 1], [2, 0]]
    >>> candidates.hellinger([0]).round(4).tolist()
    [[0.0, 0.4086, 0.7071]]
    """

    def __init__(self, n: int, prior: tuple[float, ...]) -> None:
        k = len(prior)
        size = comb(n + k - 1, k - 1)
        if size > MAX_CANDIDATES or k > _MOST_CATEGORIES:
            raise ValueError(
                f"{n} records in {k} categories have {size:,} possible posteriors; at most "
                f"{MAX_CANDIDATES:,}, of {_MOST_CATEGORIES} categories, can be compared. "
                "Use mechanism='geometric', 'laplace' or 'laplace_improved': they list none."
            )
        self.n, self.prior = n, prior
        self.counts = _compositions(n, k)
        # a straight line in t cancels, and without it fewer digits do
        tables = [gammaln(a + np.arange(2 * n + 1) / 2) for a in prior]
        self._tables = [each - np.linspace(each[0], each[-1], len(each)) for each in tables]
        self._own = self._sum_of_tables(2 * self.counts)
        # below[i, r]: how many vectors of the counts after i add to r
        below = [np.ones(n + 1, dtype=np.int64)]
        for _ in range(k - 1):
            below.append(np.cumsum(below[-1]))
        self._below = np.array(below[::-1])

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

    def distances(self, rows: npt.ArrayLike, kind: str = "hellinger") -> FloatArray:
        """Distances of a kind from the posteriors in ``rows`` to all candidates."""
        if kind == "hellinger":
            return self.hellinger(rows)
        concentration = self.counts + np.array(self.prior)
        return DISTANCES[kind](concentration[np.asarray(rows)][:, None], concentration)

    def distances_to(self, row: int, kind: str = "hellinger") -> FloatArray:
        """Distances of a kind from all candidates to the one in ``row``."""
        if kind == "hellinger":
            return np.asarray(self.hellinger([row])[0])
        concentration = self.counts + np.array(self.prior)
        return DISTANCES[kind](concentration, concentration[row])

    @property
    def rounding(self) -> float:
        """Bound on the error of a computed distance between different candidates.

        Each of k + 1 sums errs by an ulp of its largest term, and H by that over 2 H.
        """
        largest = max(float(np.abs(table).max()) for table in self._tables)
        error = 4 * (len(self.prior) + 1) * 2.0**-52 * (1 + largest)
        return error / float(self.neighbour_distances().min())

    def row_of(self, counts: npt.ArrayLike) -> RowNumbers:
        """Positions of count vectors in the list: the number of vectors before each of them."""
        x = np.asarray(counts, dtype=np.int64)
        place, left = np.arange(x.shape[-1] - 1), self.n - np.cumsum(x, axis=-1)[..., :-1]
        before = self._below[place, left + x[..., :-1]] - self._below[place, left]
        return np.asarray(before.sum(axis=-1), dtype=np.intp)

    def neighbours(self) -> Iterator[tuple[RowNumbers, RowNumbers]]:
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

    def largest_neighbour_distance(self, kind: str = "hellinger") -> float:
        """Return the largest distance of a kind between neighbours: the global sensitivity of H."""
        concentration = self.counts + np.array(self.prior)
        distance = DISTANCES[kind]
        return max(
            float(distance(concentration[first], concentration[second]).max())
            for a, b in self.neighbours()
            for first, second in ((a, b), (b, a))
        )

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


@dataclass(frozen=True)
class Worst:
    """A privacy loss, and the counts of the two neighbouring data sets that attain it."""

    epsilon: float
    pair: tuple[tuple[int, ...], tuple[int, ...]]


def _any_pair(n: int, n_categories: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rest = (0,) * (n_categories - 2)
    return (n, 0, *rest), (n - 1, 1, *rest)


class ReleaseLaw(ABC):
    """What a mechanism releases, as a probability law for every data set."""

    @abstractmethod
    def worst_case(self, delta: float = 0.0) -> Worst:
        """Smallest epsilon with P(S | x) <= exp(epsilon) P(S | x') + delta, for all neighbours."""


@dataclass(frozen=True)
class CountNoise(ReleaseLaw):
    """Discrete Laplace noise in some counts, independent or adding to zero.

    Neighbours differ by one in two counts, so log P differs by at most 2/scale (1/scale if
    one count only is released), and by just that much far out. The bound serves for every delta.
    """

    n: int
    n_categories: int
    cells: int
    scale: Fraction

    def worst_case(self, delta: float = 0.0) -> Worst:
        """Loss of any two neighbours; a delta is not made use of."""
        loss = round_up(min(2, self.cells) / self.scale)
        return Worst(loss, _any_pair(self.n, self.n_categories))


@dataclass(frozen=True)
class GaussianNoise(ReleaseLaw):
    """Discrete Gaussian noise in some counts; neighbours change ``changed`` of them by one."""

    n: int
    n_categories: int
    variance: Fraction
    changed: int

    def worst_case(self, delta: float = 0.0) -> Worst:
        """Return an epsilon of any two neighbours, tight to 1e-6; infinite without a delta."""
        pair = _any_pair(self.n, self.n_categories)
        if not delta:
            return Worst(math.inf, pair)
        shifts = {(1, 1): self.changed}
        low, high = Fraction(0), Fraction(1)
        while gaussian_delta(self.variance, high, shifts) > delta:
            low, high = high, 2 * high
        while high - low > high / 10**6:
            middle = (low + high) / 2
            enough = gaussian_delta(self.variance, middle, shifts) <= delta
            low, high = (low, middle) if enough else (middle, high)
        return Worst(round_up(high), pair)


class FiniteLaw(ReleaseLaw):
    """A law over finitely many candidates, whose loss is found by going through all of them."""

    candidates: Candidates

    @abstractmethod
    def log_probabilities(self, rows: RowNumbers) -> FloatArray:
        """Log probability of every candidate, for the data sets in ``rows``."""

    def expected_distance(self, rows: RowNumbers, kind: str = "hellinger") -> FloatArray:
        """Return the mean distance of the exact posterior from the release, for ``rows``."""
        law = np.exp(self.log_probabilities(rows))
        return np.asarray((law * self.candidates.distances(rows, kind)).sum(axis=1))

    def loss(self, a: RowNumbers, b: RowNumbers) -> FloatArray:
        """Pure loss of each pair of rows, rounded outward."""
        rows, position = np.unique(np.concatenate([a, b]), return_inverse=True)
        logs = self.log_probabilities(rows)
        difference = logs[position[: len(a)]] - logs[position[len(a) :]]
        return np.asarray(np.abs(difference).max(axis=1) + _OUTWARD)

    def worst_rows(self, delta: float = 0.0) -> tuple[float, tuple[int, int]]:
        """Return the worst loss, and between which rows it is."""
        worst, pair = 0.0, (0, 0)
        for a, b, log_a, log_b in self._neighbours():
            for first, second, p, q in ((a, b, log_a, log_b), (b, a, log_b, log_a)):
                losses = (p - q).max(axis=1) + _OUTWARD
                for i in np.argsort(-losses):
                    if losses[i] <= worst:
                        break
                    epsilon = _epsilon_at(p[i], q[i], delta) if delta else float(losses[i])
                    if epsilon > worst:
                        worst, pair = epsilon, (int(first[i]), int(second[i]))
        return worst, pair

    def worst_case(self, delta: float = 0.0) -> Worst:
        """Exact worst loss over all neighbouring data sets."""
        epsilon, (a, b) = self.worst_rows(delta)
        counts = self.candidates.counts
        return Worst(epsilon, (tuple(counts[a].tolist()), tuple(counts[b].tolist())))

    def _neighbours(self) -> Iterator[tuple[RowNumbers, RowNumbers, FloatArray, FloatArray]]:
        """All neighbouring pairs of rows, a few at a time, with the laws of both.

        A replaced record changes the first count by at most one, so the laws of two
        consecutive first counts are all that is ever held.
        """
        n, first_count = self.candidates.n, self.candidates.counts[:, 0]
        starts = np.searchsorted(first_count, np.arange(n + 3))
        a, b = (np.concatenate(side) for side in zip(*self.candidates.neighbours(), strict=True))
        order = np.argsort(first_count[a], kind="stable")
        ends = np.searchsorted(first_count[a][order], np.arange(n + 2))
        this = self._laws(starts[0], starts[1])
        for block in progress(range(n + 1), "certification", delay=_PATIENCE):
            following = self._laws(starts[block + 1], starts[block + 2])
            held = np.concatenate([this, following])
            for some in _chunks(order[ends[block] : ends[block + 1]]):
                at_a, at_b = a[some] - starts[block], b[some] - starts[block]
                yield a[some], b[some], held[at_a], held[at_b]
            this = following

    def _laws(self, first: int, last: int) -> FloatArray:
        held = np.empty((last - first, len(self.candidates)))
        for rows in _chunks(np.arange(first, last)):
            held[rows - first] = self.log_probabilities(rows)
        return held


@dataclass(frozen=True)
class ScoredCandidates(FiniteLaw):
    """P(r | x) proportional to exp(-exponent H(x, r) / sensitivity(x)), in integer weights.

    H is the Hellinger distance, or another ``kind``.
    """

    candidates: Candidates
    sensitivity: FloatArray
    exponent: float
    kind: str = "hellinger"

    def weights(self, rows: RowNumbers) -> npt.NDArray[np.uint64]:
        """Integer weights of all candidates: exactly what is drawn."""
        return integer_weights(self._scores(rows))

    def _scores(self, rows: RowNumbers) -> FloatArray:
        steepness = self.exponent / self.sensitivity[rows][:, None]
        return np.asarray(-steepness * self.candidates.distances(rows, self.kind))

    def log_probabilities(self, rows: RowNumbers) -> FloatArray:
        """Log probability of every candidate, for the data sets in ``rows``."""
        weights = self.weights(rows)
        totals = weights.sum(axis=1, keepdims=True, dtype=np.uint64)
        return np.asarray(np.log(weights.astype(float)) - np.log(totals.astype(float)))

    def log_likelihood(self, chosen: int) -> FloatArray:
        """Log probability that a candidate is chosen, for every data set."""
        distance = self.candidates.distances_to(chosen, self.kind)
        return np.asarray(-self.exponent / self.sensitivity * distance - self.log_normalisers)

    @cached_property
    def log_normalisers(self) -> FloatArray:
        """Log of the sum of all weights, for every data set: one pass over all pairs."""
        chunks = [*_chunks(np.arange(len(self.candidates)))]
        rows = progress(chunks, "normalisers", delay=_PATIENCE)
        sums = [np.exp(self._scores(some)).sum(axis=1) for some in rows]
        return np.asarray(np.log(np.concatenate(sums)))


@dataclass(frozen=True)
class ClippedNoise(FiniteLaw):
    """P(r | x) of min(max(x + noise, 0), n), noise discrete Laplace, x the first of two counts.

    The ends 0 and n collect the tails: q**d/(1+q) each, with q = exp(-1/scale).
    """

    candidates: Candidates
    scale: Fraction

    def worst_case(self, delta: float = 0.0) -> Worst:
        """Exact worst loss; the triangle inequality says that 1/scale is never exceeded."""
        enumerated = super().worst_case(delta)
        return Worst(min(enumerated.epsilon, round_up(1 / self.scale)), enumerated.pair)

    def log_probabilities(self, rows: RowNumbers) -> FloatArray:
        """Log probability of every candidate, for the data sets in ``rows``."""
        rate = 1.0 / float(self.scale)
        ones = self.candidates.counts[:, 0]
        log_law = math.log(math.tanh(rate / 2)) - rate * np.abs(ones[rows][:, None] - ones)
        log_law[:, [0, -1]] -= math.log(-math.expm1(-rate))
        return np.asarray(log_law)


def noise_law(n: int, prior: tuple[float, ...], cells: int, scale: Fraction) -> ReleaseLaw:
    """Law of noise in some counts, listed for each outcome where there are few."""
    if len(prior) == 2 and n < MAX_CANDIDATES:
        return ClippedNoise(Candidates(n, prior), scale)
    return CountNoise(n, len(prior), cells, scale)


def _chunks(rows: npt.NDArray[np.intp]) -> Iterator[RowNumbers]:
    for first in range(0, len(rows), _CHUNK):
        yield rows[first : first + _CHUNK]


def _epsilon_at(log_p: FloatArray, log_q: FloatArray, delta: float) -> float:
    """Smallest epsilon, from above, with sum(max(0, p - exp(epsilon) q)) <= delta."""

    def excess(epsilon: float) -> float:
        return float(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0.0).sum())

    low, high = 0.0, float((log_p - log_q).max()) + _OUTWARD
    if excess(0.0) <= delta:
        return 0.0
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= delta else (middle, high)
    return high
