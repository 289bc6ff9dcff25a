"""The mechanism of a private search: random candidates, run a secret number of times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from joblib import Parallel, delayed

from dpbayes_sklearn._log import silence
from dpbayes_sklearn._supervised import SupervisedEstimator
from dpbayes_sklearn.mechanisms import Mechanism, Release
from dpbayes_sklearn.model_selection.runs import (
    Prepared,
    Run,
    run,
    seed_from,
    sensitivity,
)
from dpbayes_sklearn.noise.integers import uniform_below
from dpbayes_sklearn.noise.random_stopping import Stopping, number_of_runs
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee
from dpbayes_sklearn.schema.kinds import Kind

__all__ = ["Selection", "Split", "Winner"]


MOST_RUNS = 10**6
"""Largest mean of the number of runs."""


class Split(NamedTuple):
    """Records of the people that candidates are fitted to (X, y, groups), and of those held out.

    **Sensitive**, but for the kind of values that the type of the target declares, and for the
    zCDP of a run if the search has a delta. ``n_test`` tells from a released model how many records
    are held out, if that is secret.
    """

    train: tuple[Any, Any, Any]
    test: tuple[Any, Any]
    kind: Kind
    prepared: tuple[Prepared, ...] = ()
    rho: Fraction | None = None
    n_test: Callable[[Any], float] | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.train[1]) + len(self.test[1])


class Winner(NamedTuple):
    """The best run, with its noisy score as a share of what could be earned."""

    score: float
    candidate: int
    model: SupervisedEstimator


class Selection(Mechanism):
    """Run candidates drawn at random, a random number of times, and keep the best run.

    Guarantee: three times (logarithmic stopping: twice) the epsilon of one run, see
    :mod:`dpbayes_sklearn.noise.random_stopping`; with a delta by the zCDP of a run, see
    :mod:`dpbayes_sklearn.privacy.selection`. The number of runs is secret, so a run prints
    nothing: no warning, log line or progress, in this process or in a worker.

    Parameters
    ----------
    runs_per_candidate : int
    stopping : {"geometric", "logarithmic"}
    seeded : bool
        Whether every run gets a seed from the source of the search.
    n_jobs : int, optional
    """

    def __init__(
        self,
        runs_per_candidate: int = 10,
        stopping: str = "geometric",
        seeded: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.runs_per_candidate = runs_per_candidate
        self.stopping = stopping
        self.seeded = seeded
        self.n_jobs = n_jobs

    @property
    def spends_delta(self) -> bool:
        """True: candidates may add Gaussian noise."""
        return True

    def law_of_runs(self, n_candidates: int) -> Stopping:
        """Return the law of the number of runs."""
        return Stopping.of_mean(self.stopping, self.runs_per_candidate * n_candidates)

    def preflight(self, statistics: Any, prior: Any, budget: Budget) -> None:
        """Refuse more runs than can be made; the rehearsal has fitted every candidate."""
        mean = self.runs_per_candidate * len(prior)
        if mean > MOST_RUNS:
            raise ValueError(
                f"A search of {mean} runs on average is too long: set a smaller runs_per_candidate."
            )

    def release(
        self,
        statistics: Any,
        prior: Sequence[SupervisedEstimator],
        budget: Budget,
        source: RandomSource,
    ) -> Release[Winner]:
        """Return the best of all runs of the candidates in ``prior`` on the people of a split."""
        test, ready, rho = statistics.test, statistics.prepared, statistics.rho
        n_runs = number_of_runs(self.law_of_runs(len(prior)), source)
        picked = uniform_below(len(prior), n_runs, source).tolist()
        seeds = [seed_from(source) if self.seeded else None for _ in picked]
        with silence():
            runs: list[Run] = Parallel(n_jobs=self.n_jobs, verbose=0)(
                delayed(run)(j, ready[j], seed, test, rho)
                for j, seed in zip(picked, seeds, strict=True)
            )
        best = max(runs, key=lambda one: one.score)
        held_out = len(test[1]) if statistics.n_test is None else statistics.n_test(best.model)
        whole = sensitivity(best.model) // best.model._unit.max_records
        share = best.score / (whole * max(held_out, 1))
        promise = best.model.guarantee_
        winner = Winner(share, best.candidate, best.model)
        return Release(winner, PrivacyGuarantee.of(budget, promise.mechanism, promise.conditions))
