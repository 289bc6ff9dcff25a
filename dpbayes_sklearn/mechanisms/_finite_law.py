"""Laws of a released posterior, and their exact privacy loss.

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

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._progress import progress
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.mechanisms._candidates import MAX_CANDIDATES, Candidates
from dpbayes_sklearn.noise.finite import integer_weights
from dpbayes_sklearn.privacy.gaussian import gaussian_delta
from dpbayes_sklearn.privacy.guarantee import round_up

__all__ = [
    "ClippedNoise",
    "CountNoise",
    "FiniteLaw",
    "GaussianNoise",
    "Law",
    "ScoredCandidates",
    "Worst",
    "noise_law",
]

Rows = npt.NDArray[np.intp]

_OUTWARD = 2.0**-44  # the difference of two log-probabilities errs by less
_CHUNK = 32  # rows or pairs that are worked on at once
_PATIENCE = 2.0  # seconds before a terminal is shown how far it is


@dataclass(frozen=True)
class Worst:
    """A privacy loss, and the counts of the two neighbouring data sets that attain it."""

    epsilon: float
    pair: tuple[tuple[int, ...], tuple[int, ...]]


class Law(ABC):
    """What a mechanism releases, as a probability law for every data set."""

    @abstractmethod
    def worst_case(self, delta: float = 0.0) -> Worst:
        """Smallest epsilon with P(S | x) <= exp(epsilon) P(S | x') + delta, for all neighbours."""


@dataclass(frozen=True)
class CountNoise(Law):
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
        rest = (0,) * (self.n_categories - 2)
        pair = ((self.n, 0, *rest), (self.n - 1, 1, *rest))
        return Worst(round_up(min(2, self.cells) / self.scale), pair)


@dataclass(frozen=True)
class GaussianNoise(Law):
    """Discrete Gaussian noise in some counts, of which neighbours change ``changed`` by one."""

    n: int
    n_categories: int
    variance: Fraction
    changed: int

    def worst_case(self, delta: float = 0.0) -> Worst:
        """Return an epsilon of any two neighbours, tight to 1e-6; infinite without a delta."""
        rest = (0,) * (self.n_categories - 2)
        pair = ((self.n, 0, *rest), (self.n - 1, 1, *rest))
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


class FiniteLaw(Law):
    """A law over finitely many candidates, whose loss is found by going through all of them."""

    candidates: Candidates

    @abstractmethod
    def log_probabilities(self, rows: Rows) -> FloatArray:
        """Log probability of every candidate, for the data sets in ``rows``."""

    def expected_distance(self, rows: Rows) -> FloatArray:
        """Return the mean Hellinger distance from the exact posterior, for data sets ``rows``."""
        law = np.exp(self.log_probabilities(rows))
        return np.asarray((law * self.candidates.hellinger(rows)).sum(axis=1))

    def loss(self, a: Rows, b: Rows) -> FloatArray:
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

    def _neighbours(self) -> Iterator[tuple[Rows, Rows, FloatArray, FloatArray]]:
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
    """P(r | x) proportional to exp(-exponent H(x, r) / sensitivity(x)), in integer weights."""

    candidates: Candidates
    sensitivity: FloatArray
    exponent: float

    def weights(self, rows: Rows) -> npt.NDArray[np.uint64]:
        """Integer weights of all candidates: exactly what is drawn."""
        steepness = self.exponent / self.sensitivity[rows][:, None]
        return integer_weights(-steepness * self.candidates.hellinger(rows))

    def log_probabilities(self, rows: Rows) -> FloatArray:
        """Log probability of every candidate, for the data sets in ``rows``."""
        weights = self.weights(rows)
        totals = weights.sum(axis=1, keepdims=True, dtype=np.uint64)
        return np.asarray(np.log(weights.astype(float)) - np.log(totals.astype(float)))

    def log_likelihood(self, chosen: int) -> FloatArray:
        """Log probability that a candidate is chosen, for every data set."""
        distance = self.candidates.hellinger([chosen])[0]
        return np.asarray(-self.exponent / self.sensitivity * distance - self._log_normalisers)

    @cached_property
    def _log_normalisers(self) -> FloatArray:
        """Log of the sum of all weights, for every data set: one pass over all pairs."""
        chunks = [*_chunks(np.arange(len(self.candidates)))]
        rows = progress(chunks, "normalisers", delay=_PATIENCE)
        return np.asarray(np.log(np.concatenate([self._sums_of_weights(some) for some in rows])))

    def _sums_of_weights(self, rows: Rows) -> FloatArray:
        steepness = self.exponent / self.sensitivity[rows][:, None]
        return np.asarray(np.exp(-steepness * self.candidates.hellinger(rows)).sum(axis=1))


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

    def log_probabilities(self, rows: Rows) -> FloatArray:
        """Log probability of every candidate, for the data sets in ``rows``."""
        rate = 1.0 / float(self.scale)
        ones = self.candidates.counts[:, 0]
        log_law = math.log(math.tanh(rate / 2)) - rate * np.abs(ones[rows][:, None] - ones)
        log_law[:, [0, -1]] -= math.log(-math.expm1(-rate))
        return np.asarray(log_law)


def noise_law(n: int, prior: tuple[float, ...], cells: int, scale: Fraction) -> Law:
    """Law of noise in some counts, listed for each outcome where there are few."""
    if len(prior) == 2 and n < MAX_CANDIDATES:
        return ClippedNoise(Candidates(n, prior), scale)
    return CountNoise(n, len(prior), cells, scale)


def _chunks(rows: npt.NDArray[np.intp]) -> Iterator[Rows]:
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
