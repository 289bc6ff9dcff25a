"""The rehearsal of a search: what cannot be fitted is refused before anything is charged.

Guarantee
---------
*Claim*: a rehearsal, its errors and warnings included, depends on public facts alone. *Proof*: it
has nothing of the records but their stand-ins, which do
(:mod:`dpbayes_sklearn.model_selection.stand_ins`). ∎

So nothing that a step of a pipeline releases about the records exists before the search is charged,
and no error of a later step can show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from dpbayes_sklearn._estimator import PrivateEstimator
from dpbayes_sklearn._log import silence
from dpbayes_sklearn._supervised import SupervisedEstimator
from dpbayes_sklearn.data.reading import check_kind
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.data.table import is_frame
from dpbayes_sklearn.exceptions import warn_caller
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.model_selection.pipelines import PrivatePipeline
from dpbayes_sklearn.model_selection.stand_ins import StandIns, stand_ins
from dpbayes_sklearn.schema.kinds import Kind

__all__ = ["rehearsed"]


def rehearsed(
    models: list[SupervisedEstimator], X: Any, y: Any, groups: Any, kind: Kind
) -> tuple[str, ...]:
    """Fit every candidate to stand-ins; return the conditions of their guarantees.

    What cannot be fitted is refused here, and undeclared domains are warned of once: a warning in
    each run would reveal the number of runs. A guess stands for a secret number of records.
    """
    with silence() as warned:
        people = stand_ins(X, y, groups, kind, models[0]._unit)
        fitted = [_fitted(model, people) for model in models]
    for model in fitted:  # y was read already, so that its declared type is gone
        check_kind(model.schema_.target, kind, "The target y")
    for category, text in dict.fromkeys(warned):
        warn_caller(text, category)
    return tuple(dict.fromkeys(c for model in fitted for c in model.guarantee_.conditions))


def _fitted(model: SupervisedEstimator, people: StandIns) -> Any:
    """Fit a candidate; if columns are chosen, see what later steps say to each choice first."""
    candidate = _guessing(model)
    steps = candidate.shared() if isinstance(candidate, PrivatePipeline) else []
    if any(isinstance(step, PrivateSelectKBest) for step in steps):
        with quiet_numpy():
            _try_in_turn(steps, people)
    return candidate.fit(*people)


def _guessing(model: Any) -> Any:
    candidate = clone(model)
    candidate._n_is_guessed = True
    return candidate


def _try_in_turn(steps: list[PrivateEstimator], people: StandIns) -> None:
    """Fit all steps but the last, which reads what it is given."""
    step, *later = steps
    trial = _guessing(step)
    if not later:
        trial._read(people.X, people.y, groups=people.groups)
        return
    trial.fit(*people)
    for form in _forms(trial, people.X):
        _try_in_turn(later, people._replace(X=form.transform(people.X)))


def _forms(step: Any, X: Any) -> Iterator[Any]:
    """Yield a fitted step in the forms that matter to later ones.

    Columns of a frame have names and types, so it matters which are chosen: every column is chosen
    in one form, and left out in another.
    """
    if not (isinstance(step, PrivateSelectKBest) and is_frame(X)):
        yield step
        return
    d, k = len(step._support), int(step._support.sum())
    for start in range(0, d, min(k, d - k) or d):
        form = copy(step)
        form._support = np.roll(np.arange(d) < k, start)
        yield form
