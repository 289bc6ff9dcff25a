r"""A lower bound on epsilon, by how well runs on two neighbouring data sets can be distinguished.

The bound is from below and holds with the stated confidence, whatever the mechanism: a claim below
it is refuted. It proves nothing about pairs of data sets and events that were not tried.

Which outcomes distinguish two data sets, learned from one half of the runs.

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
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy.stats import beta
from sklearn.base import clone
from sklearn.utils import check_random_state

from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.audit.leaks import fitted_numbers
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.budget import at_most

_BATCHES = 200  # The runs are divided into at most this many tasks.

_BINS = (2, 4, 8, 16, 64)  # Outcomes are put into histograms of each of these numbers of bins.
_SINGLE = 8  # This many single coordinates are tried as an order of outcomes.


@dataclass(frozen=True)
class EpsilonBound:
    """A lower bound on epsilon, and the event that shows it.

    Attributes
    ----------
    epsilon : float
        The true epsilon of this pair of data sets is at least this, with ``confidence``. At most 0
        if the runs could not be distinguished.
    confidence : float
    runs : int
        Runs on each side that the event was measured on: half of all.
    hits : tuple of int
        How many runs were in the event, for the data set where it is more likely and the other.
    event : str
        Description of the event.
    """

    epsilon: float
    confidence: float
    runs: int
    hits: tuple[int, int]
    event: str

    def __str__(self) -> str:
        return (
            f"epsilon is at least {at_most(max(self.epsilon, 0.0), 3)} with "
            f"{100 * self.confidence:g} % confidence: an event of {self.event} has "
            f"{self.hits[0]:,} hits against {self.hits[1]:,} in {self.runs:,} runs a side"
        )


def audit(
    estimator: Any,
    X: Any,
    y: Any,
    X2: Any,
    y2: Any,
    n_runs: int = 2000,
    *,
    observe: Callable[[Any], Any] | None = None,
    delta: float = 0.0,
    confidence: float = 0.999,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: bool = True,
) -> EpsilonBound:
    """Fit an estimator repeatedly to two neighbouring data sets and bound epsilon from below.

    Works for any estimator with ``fit``, of this library or not. Use simulated data: the fits are
    not charged (except to the accountant of an open ``with`` block), and thousands of them
    together are not private.

    Parameters
    ----------
    estimator : estimator
        Cloned for every run, without its ``accountant`` and with another ``random_state``.
    X, y, X2, y2 : arrays
        The two data sets, which differ in one record. ``y`` may be None.
    n_runs : int, default=2000
        Fits to each data set. One half chooses an event, the other half measures it.
    observe : callable, optional
        From the fitted estimator to a number or an array of numbers, of the same shape each time.
        By default all numbers in its fitted attributes.
    delta : float, default=0.0
        Bound the epsilon that goes with this delta.
    confidence : float, default=0.999
        Of the Clopper-Pearson bounds of both probabilities together.
    n_jobs : int, optional
        Runs at the same time, as in joblib.
    random_state : int, RandomState or None, default=None
        Makes the audit reproducible, for estimators that have such a parameter.
    verbose : bool, default=True
        Whether to show a progress bar, if tqdm is installed.

    Returns
    -------
    EpsilonBound

    Examples
    --------
    Noise that is four times too small is detected:

    >>> from dpbayes_sklearn import BetaBinomial
    >>> model = BetaBinomial(epsilon=4.0)
    >>> x, x2 = [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]
    >>> bound = audit(model, x, None, x2, None, n_runs=150, random_state=0)
    >>> 1.0 < bound.epsilon <= 4.0
    True
    """
    rng = check_random_state(random_state)
    sides = []
    with Parallel(n_jobs=n_jobs) as workers:
        for name, data, target in (("first side", X, y), ("second side", X2, y2)):
            seeds = rng.randint(np.iinfo(np.int32).max, size=n_runs).tolist()
            tasks = (
                delayed(_fits)(estimator, data, target, batch, random_state is None, observe)
                for batch in _batches(seeds)
            )
            done = workers(tasks) if n_jobs not in (None, 1) else (f(*a, **k) for f, a, k in tasks)
            total = min(_BATCHES, n_runs)
            sides.append(
                [row for rows in progress(done, name, total=total, verbose=verbose) for row in rows]
            )
    return bound_from_outcomes(*sides, delta=delta, confidence=confidence)


def bound_from_outcomes(
    first: npt.ArrayLike, second: npt.ArrayLike, *, delta: float = 0.0, confidence: float = 0.999
) -> EpsilonBound:
    """Bound epsilon from given outcomes on two neighbouring data sets.

    Parameters
    ----------
    first, second : array of shape (n_runs,) or (n_runs, n_numbers)
        The outcomes, one row for each independent run.
    delta, confidence : float
        As for :func:`audit`.

    Returns
    -------
    EpsilonBound

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.laplace(size=(2, 20_000))
    >>> 0.8 < bound_from_outcomes(noise[0], noise[1] + 1).epsilon < 1.0
    True
    """
    sides = _as_sides(first, second)
    choose, measure = sides.halves()
    event = learn_event(choose, confidence, delta)
    hits, runs = event.hits(measure), len(measure.first)
    epsilon = float(epsilon_below(*hits, runs, confidence, delta))
    return EpsilonBound(epsilon, confidence, runs, hits, event.name)


def _as_sides(first: npt.ArrayLike, second: npt.ArrayLike) -> Sides:
    try:
        arrays = [np.asarray(side, dtype=float) for side in (first, second)]
        arrays = [side.reshape(len(side), -1) for side in arrays]
    except (TypeError, ValueError):
        arrays = []
    if len(arrays) < 2 or arrays[0].shape != arrays[1].shape or len(arrays[0]) < 4:
        raise ValueError(
            "An audit needs as many outcomes on either side, at least 4, and as many numbers in "
            "every one of them: give a function observe(fitted) that returns always the same ones."
        )
    both = np.concatenate(arrays)
    varies = (both != both[0]).any(axis=0)
    return Sides(arrays[0][:, varies], arrays[1][:, varies])


def _batches(seeds: list[int]) -> Iterator[list[int]]:
    ends = np.linspace(0, len(seeds), min(_BATCHES, len(seeds)) + 1).astype(int).tolist()
    return (seeds[a:b] for a, b in pairwise(ends))


def _fits(
    estimator: Any, X: Any, y: Any, seeds: list[int], unseeded: bool, observe: Any
) -> list[FloatArray]:
    """Fit once for every seed and return what is observed."""
    observe = observe or fitted_numbers
    given = estimator.get_params(deep=False)
    bare = clone(estimator)
    if isinstance(given.get("accountant"), BudgetAccountant):  # it would be charged for every run
        bare.set_params(accountant=None)
    rows = []
    for seed in seeds:
        model = clone(bare)
        if "random_state" in given:
            model.set_params(random_state=None if unseeded else seed)
        rows.append(np.ravel(np.asarray(observe(model.fit(X, y)), dtype=float)))
    return rows


Score = Callable[[FloatArray], FloatArray]

# Quantiles of the likelihood ratio that are tried as ends of an event.
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
    """All outcomes whose score is at least the threshold."""

    name: str  # What orders the outcomes.
    score: Score  # From rows of outcomes to their places in that order.
    threshold: float
    swapped: bool  # True if the event is likelier on the second side.

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
