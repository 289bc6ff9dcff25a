r"""Which outcomes distinguish two data sets, learned from one half of the runs.

Any event S bounds the privacy loss from below: :math:`\varepsilon \ge \ln (P(S)-\delta)/P'(S)`.
How S was found does not matter, as long as it is measured on runs that were not used to find it. A
good S is a set of outcomes that are much likelier on one side, so outcomes are ordered by

- each single number of the outcome that distinguishes most,
- the linear combination that separates the sides best (Fisher's), and
- the sum over all numbers of the log ratio of their histograms, which is the log-likelihood
  ratio itself wherever the numbers carry independent noise,

and S is all that lies beyond a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from dpbayes_sklearn._typing import FloatArray

__all__ = ["Event", "Sides", "epsilon_below", "learn_event"]

Score = Callable[[FloatArray], FloatArray]

_BINS = (2, 4, 8, 16, 64)
_SINGLE = 8  # so many numbers are also tried alone
_THRESHOLDS = np.linspace(0.0, 0.9999, 400)


class Sides(NamedTuple):
    """Outcomes on two neighbouring data sets, one row for each run."""

    first: FloatArray
    second: FloatArray

    def halves(self) -> tuple[Sides, Sides]:
        """Return the runs that choose an event and the runs that measure it."""
        pairs = [(side[: len(side) // 2], side[len(side) // 2 :]) for side in self]
        (choose, measure), (choose_other, measure_other) = pairs
        return Sides(choose, choose_other), Sides(measure, measure_other)


def epsilon_below(
    hits: npt.ArrayLike, others: npt.ArrayLike, runs: int, confidence: float, delta: float = 0.0
) -> FloatArray:
    """Return ln((p - delta) / q), p from below and q from above by Clopper and Pearson.

    ``hits`` of the runs of one side and ``others`` of the other fall into the event. Both bounds
    hold together with at least this confidence.

    >>> round(float(epsilon_below(1144, 164, 3000, 0.99)), 2)
    1.69
    """
    hits, others = np.asarray(hits, float), np.asarray(others, float)
    error = (1 - confidence) / 2
    low = np.where(hits > 0, beta.ppf(error, np.maximum(hits, 1), runs - hits + 1), 0.0)
    high = np.where(
        others < runs, beta.ppf(1 - error, others + 1, np.maximum(runs - others, 1)), 1.0
    )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(low - delta, 0.0)) - np.log(high))


@dataclass(frozen=True)
class Event:
    """All outcomes whose score is at least the threshold.

    Attributes
    ----------
    name : str
        What orders the outcomes.
    score : callable
        From rows of outcomes to their places in that order.
    threshold : float
    swapped : bool
        True if the event is likelier on the second side.
    """

    name: str
    score: Score
    threshold: float
    swapped: bool

    def hits(self, sides: Sides) -> tuple[int, int]:
        """Return how many runs are in the event: of the side where it is likelier, the other."""
        first, second = (int((self.score(side) >= self.threshold).sum()) for side in sides)
        return (second, first) if self.swapped else (first, second)


def learn_event(sides: Sides, confidence: float, delta: float = 0.0) -> Event:
    """Return the event with the largest bound on these runs.

    Orders that have to be learned are learned from one half of these runs and judged by the other:
    one that merely knows its own runs by heart does badly there. A single number needs no learning,
    so if it is best, its threshold is looked for among all runs.
    """
    train, judges = sides.halves()
    learned, single = [*_learned_orders(train)], [*_single_numbers(train)]
    nothing = [("everything", lambda rows: np.zeros(len(rows)))]
    _, event = _best_event(learned + single + nothing, judges, confidence, delta)
    if event.score not in [score for _, score in single]:
        return event
    return _best_event([(event.name, event.score)], sides, confidence, delta)[1]


def _best_event(
    orders: list[tuple[str, Score]], sides: Sides, confidence: float, delta: float
) -> tuple[float, Event]:
    """Return the largest bound that a threshold in one of some orders gives, and that event."""
    found = []
    for name, score in orders:
        scores = score(sides.first), score(sides.second)
        for swapped in (False, True):
            likely, rare = (np.sort(s) for s in (scores[::-1] if swapped else scores))
            thresholds = np.unique(np.quantile(likely, _THRESHOLDS, method="nearest"))
            hits, others = (len(s) - np.searchsorted(s, thresholds) for s in (likely, rare))
            bounds = epsilon_below(hits, others, len(likely), confidence, delta)
            at = int(bounds.argmax())
            found.append((float(bounds[at]), Event(name, score, float(thresholds[at]), swapped)))
    return max(found, key=lambda one: one[0])


def _learned_orders(sides: Sides) -> Iterator[tuple[str, Score]]:
    """Yield ways to order outcomes that depend on these, each also the other way round."""
    for bins in _BINS:
        histograms = _Histograms.of(sides, bins)
        yield "all numbers", histograms.log_ratio
        yield "all numbers", lambda rows, h=histograms: -h.log_ratio(rows)  # type: ignore[misc]
    linear = _fisher(sides)
    yield "a linear combination", lambda rows: _finite(rows) @ linear
    yield "a linear combination", lambda rows: -(_finite(rows) @ linear)


def _single_numbers(sides: Sides) -> Iterator[tuple[str, Score]]:
    """Yield the numbers that distinguish most, each also with its sign changed."""
    for j in np.argsort(-_Histograms.of(sides, max(_BINS)).divergence)[:_SINGLE]:
        yield f"number {j}", lambda rows, j=j: rows[:, j]  # type: ignore[misc]
        yield f"number {j}", lambda rows, j=j: -rows[:, j]  # type: ignore[misc]


@dataclass(frozen=True)
class _Histograms:
    """Log ratios of the two sides' histograms of every number."""

    edges: list[FloatArray]
    ratios: list[FloatArray]
    divergence: FloatArray

    @classmethod
    def of(cls, sides: Sides, bins: int) -> _Histograms:
        edges, ratios, divergence = [], [], []
        for first, second in zip(sides.first.T, sides.second.T, strict=True):
            both = np.concatenate([first, second])
            edge = _edges(both[np.isfinite(both)], bins)
            counts = [_counts(edge, side) + 0.5 for side in (first, second)]
            ratio = np.log(counts[0] / counts[1])
            edges.append(edge)
            ratios.append(ratio)
            divergence.append(float(((counts[0] - counts[1]) * ratio).sum()))
        return cls(edges, ratios, np.array(divergence))

    def log_ratio(self, rows: FloatArray) -> FloatArray:
        """Sum of the log ratios of all numbers in every row."""
        total = np.zeros(len(rows))
        for column, edge, ratio in zip(rows.T, self.edges, self.ratios, strict=True):
            total += ratio[np.searchsorted(edge, column, side="right")]
        return total


def _edges(values: FloatArray, bins: int) -> FloatArray:
    """Return quantiles; one that recurs has a bin of its own, and so has what is not finite."""
    shares = np.linspace(0, 1, bins + 1)[1:-1]
    cuts = np.quantile(values, shares, method="nearest") if values.size else np.empty(0)
    return np.unique(np.concatenate([cuts, np.nextafter(cuts, np.inf), [np.inf]]))


def _counts(edges: FloatArray, column: FloatArray) -> FloatArray:
    places = np.searchsorted(edges, column, side="right")
    return np.bincount(places, minlength=len(edges) + 1).astype(float)


def _finite(rows: FloatArray) -> FloatArray:
    return np.nan_to_num(rows, nan=0.0, posinf=1e150, neginf=-1e150)


def _fisher(sides: Sides) -> FloatArray:
    """Direction (S + S')^-1 (m - m') in which the sides are farthest apart, in units of spread."""
    first, second = (_finite(side) for side in sides)
    size = np.abs(np.concatenate([first, second])).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    first, second = first / size, second / size
    gap = first.mean(axis=0) - second.mean(axis=0)
    spread = sum(np.atleast_2d(np.cov(side, rowvar=False)) for side in (first, second))
    ridge = (1e-9 * float(np.trace(spread)) + 1e-12) * np.eye(len(gap))
    direction = np.linalg.solve(spread + ridge, gap)
    return np.asarray(direction / max(np.abs(direction).max(initial=0.0), 1e-100) / size)
