"""A lower bound on epsilon, by how well runs on two neighbouring data sets can be distinguished.

The bound is from below and holds with the stated confidence, whatever the mechanism: a claim below
it is refuted. It proves nothing about pairs of data sets and events that were not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from dpbayes_sklearn._messages import progress
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.audit.events import Sides, epsilon_below, learn_event
from dpbayes_sklearn.audit.leaks import fitted_numbers
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.budget import at_most

__all__ = ["EpsilonBound", "audit", "bound_from_outcomes"]

_BATCHES = 200


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
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
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
