"""The mechanism of a private search: random candidates, run a secret number of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from joblib import Parallel, delayed

from dpbayes_sklearn._supervised import SupervisedEstimator
from dpbayes_sklearn.mechanisms import Mechanism, Release
from dpbayes_sklearn.model_selection.runs import Run, run, seed_from, sensitivity, silence
from dpbayes_sklearn.noise.bernoulli import uniform_below
from dpbayes_sklearn.noise.random_stopping import number_of_runs
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy import Budget, PrivacyGuarantee
from dpbayes_sklearn.schema.kinds import Kind

__all__ = ["Selection", "Split", "Winner"]


class Split(NamedTuple):
    """Records of the people that candidates are fitted to, and of those held out.

    **Sensitive**, but for the kind of values that the type of the target declares.
    """

    train: tuple[Any, Any]
    test: tuple[Any, Any]
    kind: Kind


class Winner(NamedTuple):
    """The best run, with its noisy score as a share of what could be earned."""

    score: float
    candidate: int
    model: SupervisedEstimator


class Selection(Mechanism):
    """Run candidates drawn at random, a geometric number of times, and keep the best run.

    Guarantee: three times the epsilon of one run, see
    :mod:`dpbayes_sklearn.noise.random_stopping`. The number of runs is secret, so a run prints
    nothing: no warning and no log line, in this process or in a worker.

    Parameters
    ----------
    runs_per_candidate : int
    seeded : bool
        Whether every run gets a seed from the source of the search.
    n_jobs : int, optional
    """

    def __init__(
        self, runs_per_candidate: int = 10, seeded: bool = False, n_jobs: int | None = None
    ) -> None:
        self.runs_per_candidate = runs_per_candidate
        self.seeded = seeded
        self.n_jobs = n_jobs

    def preflight(self, statistics: Any, prior: Any, budget: Budget) -> None:
        """Refuse nothing: the rehearsal has fitted every candidate."""

    def release(
        self,
        statistics: Any,
        prior: Sequence[SupervisedEstimator],
        budget: Budget,
        source: RandomSource,
    ) -> Release[Winner]:
        """Return the best of all runs of the candidates in ``prior`` on the people of a split."""
        train, test, _ = statistics
        n_runs = number_of_runs(self.runs_per_candidate * len(prior), source)
        picked = uniform_below(len(prior), n_runs, source).tolist()
        seeds = [seed_from(source) if self.seeded else None for _ in picked]
        with silence():
            runs: list[Run] = Parallel(n_jobs=self.n_jobs)(
                delayed(run)(j, prior[j], seed, train, test)
                for j, seed in zip(picked, seeds, strict=True)
            )
        best = max(runs, key=lambda one: one.score)
        share = best.score / (sensitivity(best.model) * len(test[1]))
        mechanism = best.model._resolve_mechanism().name()
        winner = Winner(share, best.candidate, best.model)
        return Release(winner, PrivacyGuarantee.of(budget, mechanism))
