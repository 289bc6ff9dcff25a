"""The best of all runs: the first of the highest score, and no other is kept."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from joblib import delayed

from dpbayes_sklearn import BayesianLinearRegression, PrivacyUnit, PrivateSearchCV
from dpbayes_sklearn.model_selection.runs import Run, Selection


class _Model:
    """Something that a run has made."""


def scored(score: int, candidate: int) -> Run:
    return Run(score, candidate, _Model())  # type: ignore[arg-type]


@pytest.mark.parametrize(("n_jobs", "n"), [(None, 1), (None, 30), (2, 30)])
def test_the_first_of_the_highest_score_wins(n_jobs: Any, n: int) -> None:
    scores = [(7 * i) % 10 for i in range(n)]
    calls = (delayed(scored)(score, i) for i, score in enumerate(scores))
    best = Selection(n_jobs=n_jobs)._best(calls)
    assert (best.score, best.candidate) == (max(scores), scores.index(max(scores)))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_runs() -> None:
    made: list[weakref.ref[Any]] = []

    def counted(i: int) -> Run:
        one = scored(i, i)
        made.append(weakref.ref(one.model))
        gc.collect()
        alive.append(sum(ref() is not None for ref in made))
        return one

    most = []
    for n in (20, 60):
        made.clear()
        alive: list[int] = []
        Selection()._best(delayed(counted)(i) for i in range(n))
        most.append(max(alive))
    assert most[0] == most[1] < 20


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("mechanism", ["map", "auto"])
def test_with_a_delta_modes_of_runs_are_purely_private(mechanism: str, neighbours: str) -> None:
    unit = PrivacyUnit("record", neighbours=neighbours)
    bounds = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
    model = BayesianLinearRegression(mechanism=mechanism, privacy_unit=unit, **bounds)
    wide, middle = np.zeros((100, 40)), np.zeros(100)
    best = [
        PrivateSearchCV(model, {"prior_precision": [1.0]}, epsilon=3.0, delta=delta)
        .fit(wide, middle)
        .best_estimator_.epsilon
        for delta in (0.0, 1e-4)
    ]
    assert best[1] > best[0] / 3  # and not what is left if no noise is zCDP, a thousandth
