"""Audit a mechanism at its choke point, without an estimator around it: a million runs a side.

What is looked at is what the mechanism hands to the prior, noisy counts for example, before any
post-processing: the sharpest view that anybody can have. Tables of counts are repeated along a new
first axis, so one call of :meth:`Plan.release` draws many runs through the production code;
what cannot be repeated so is released run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.audit.tools.universes import released as plan_release
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.audit.leaks import numbers
from dpbayes_sklearn.audit.statistical import EpsilonBound, bound_from_outcomes
from dpbayes_sklearn.categories.counts import ReleasedSimplex, SimplexCounts
from dpbayes_sklearn.counts.fourier import ReleasedCharacters
from dpbayes_sklearn.counts.posterior import DrawsPosterior
from dpbayes_sklearn.counts.tables import CountTables, ReleasedCounts
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression.moments import ReleasedMoments

_BATCH_RELEASES = 5_000  # One task of a worker makes this many releases.


class _AsReleased:
    """Stands in for a prior: returns what a mechanism released without inference."""

    def __init__(self, prior: Any) -> None:
        self._prior = prior

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prior, name)

    def update(self, released: Any, *located: Any, **asked: Any) -> Any:
        """Return what was released, not a belief about it."""
        return released


def audit_release(
    mechanism: Mechanism | None,
    statistics: Any,
    neighbour: Any,
    prior: Any,
    budget: Budget,
    n_runs: int = 100_000,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: bool = True,
) -> EpsilonBound:
    """Release the statistics of two neighbouring data sets many times; bound epsilon from below.

    Parameters
    ----------
    mechanism : Mechanism
    statistics, neighbour : CountTables, SimplexCounts or Moments
        Exact statistics of two data sets that differ in one record.
    prior : DirichletPrior, SimplexPrior or GaussianPrior
    budget : Budget
        The budget of the mechanism.
    n_runs : int, default=100_000
        Releases on each side. A million shows nine tenths of the epsilon of added noise.
    delta, confidence, n_jobs, random_state, verbose
        As for :func:`~dpbayes_sklearn.audit.audit`.

    Returns
    -------
    EpsilonBound

    Examples
    --------
    >>> from dpbayes_sklearn.mechanisms import Laplace
    >>> from dpbayes_sklearn.counts.dirichlet import DirichletPrior
    >>> from dpbayes_sklearn.counts.network import Network
    >>> coin = Network((2,), ((),))
    >>> heads, tails = (CountTables(coin, (np.array(t),), 1) for t in ([1, 0], [0, 1]))
    >>> prior = DirichletPrior(coin, (np.ones(2),))
    >>> bound = audit_release(Laplace(), heads, tails, prior, Budget(1), 50_000, random_state=0)
    >>> 0.9 < bound.epsilon < 1.0
    True
    """
    task = delayed(released_numbers)
    first, second = (
        [
            (
                mechanism,
                side,
                prior,
                budget,
                min(_BATCH_RELEASES, n_runs - start),
                random_state,
                2 * k + at,
            )
            for k, start in enumerate(range(0, n_runs, _BATCH_RELEASES))
        ]
        for at, side in enumerate((statistics, neighbour))
    )
    with Parallel(n_jobs=n_jobs) as workers:
        sides = []
        for name, calls in (("first side", first), ("second side", second)):
            steps = progress(calls, name, verbose=verbose)
            rows = workers(task(*call) for call in steps)
            sides.append(np.concatenate(rows))
    return bound_from_outcomes(*sides, delta=delta, confidence=confidence)


def released_numbers(
    mechanism: Mechanism | None,
    statistics: Any,
    prior: Any,
    budget: Budget,
    runs: int,
    random_state: int | None = None,
    stream: int = 0,
) -> FloatArray:
    """Release some times; return the released numbers, one row for each run."""
    noise = Noise.of(random_state, stream)

    def release(exact: Any) -> Any:
        return plan_release(mechanism, exact, _AsReleased(prior), budget, noise)

    return _repeated(statistics, release, runs)


@singledispatch
def _repeated(statistics: Any, release: Callable[[Any], Any], runs: int) -> FloatArray:
    return np.stack([_one_row(release(statistics)) for _ in range(runs)])


@singledispatch
def _one_row(released: Any) -> FloatArray:
    return numbers(released)


@_one_row.register
def _(released: ReleasedMoments) -> FloatArray:
    return np.asarray(released.gram[np.triu_indices_from(released.gram)])


@_repeated.register
def _(statistics: CountTables, release: Callable[[Any], Any], runs: int) -> FloatArray:
    tables = tuple(np.broadcast_to(table, (runs, *table.shape)) for table in statistics.tables)
    return _rows(release(replace(statistics, tables=tables)), runs)


@_repeated.register
def _(statistics: SimplexCounts, release: Callable[[Any], Any], runs: int) -> FloatArray:
    together = _Repeated(np.broadcast_to(statistics.counts, (runs, statistics.n_categories)))
    return _rows(release(together), runs)


class _Repeated(SimplexCounts):
    """The same counts in every row."""

    @property
    def n(self) -> int:
        return int(self.counts[0].sum())

    @property
    def n_categories(self) -> int:
        return int(self.counts.shape[-1])


@singledispatch
def _rows(released: Any, runs: int) -> FloatArray:
    """Return the numbers of many releases that were made at once, one row for each."""
    raise TypeError(f"No rows are known for {type(released).__name__}.")


@_rows.register
def _(released: ReleasedCounts, runs: int) -> FloatArray:
    return _side_by_side(released.tables, runs)


@_rows.register
def _(released: ReleasedSimplex, runs: int) -> FloatArray:
    return _side_by_side([released.counts], runs)


@_rows.register
def _(released: ReleasedCharacters, runs: int) -> FloatArray:
    return _side_by_side(released.blocks.values(), runs)


@_rows.register
def _(released: DrawsPosterior, runs: int) -> FloatArray:
    return _side_by_side((np.moveaxis(draws, 0, -1) for draws in released.draws), runs)


def _side_by_side(parts: Iterable[AnyArray], runs: int) -> FloatArray:
    return np.hstack([np.reshape(part, (runs, -1)) for part in parts]).astype(float)
