"""Private searches over pipelines: what steps share, protect, charge, keep and print."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from io import StringIO
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.audit._cases import Case, cases_of
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, PrivateSearchCV, from_json
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.model_selection.pipelines import People, PipelinePlan
from dpbayes_sklearn.model_selection.runs import HeldOutSplit
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.release import boundary

__all__ = ["steps_of_pipelines"]

N = 40
X = np.column_stack([np.arange(N), np.arange(N) % 3])
Y = np.arange(N) % 2
GRID = {"model__alpha": [0.5, 1.0]}


def steps_of_pipelines() -> list[Case]:
    """Search over pipelines, and look at their steps."""
    return [
        *cases_of(_shares, _what_is_refused, _ledgers, _winner),
        *cases_of(_what_is_printed, _cache, _persons),
    ]


def _model(epsilon: float = 0.5, **options: Any) -> BayesianNaiveBayes:
    declared: dict[str, Any] = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    return BayesianNaiveBayes(epsilon, inference="plug_in", **declared, **options)


def _pipe(bins: Any = None, model: Any = None, **options: Any) -> Pipeline:
    bins = bins or PrivateKBinsDiscretizer(2, epsilon=0.5)
    return Pipeline([("bins", bins), ("model", model or _model())], **options)


def _shares() -> Iterator[str]:
    """See that the steps of a pipeline share the epsilon of a run."""
    spent: list[Any] = []

    def step(release: Any, plan: Any, statistics: Any, noise: Any) -> Any:
        if isinstance(statistics, People):
            spent.append(Fraction(0))
        elif not isinstance(statistics, HeldOutSplit) and spent:  # and after the rehearsal
            spent[-1] += plan.cost.epsilon
        return release(plan, statistics, noise)

    with boundary(step):
        PrivateSearchCV(_pipe(), GRID, epsilon=0.9, runs_per_candidate=1).fit(X, Y)
    if any(total > Fraction(3, 10) for total in spent):
        yield "the steps of a pipeline have more than a third of epsilon"


def _what_is_refused() -> Iterator[str]:
    """See that steps are private, of finite epsilon and for the same unit, before the charge."""
    feature = _model(privacy_unit="feature")
    exact = PrivateKBinsDiscretizer(2, epsilon=math.inf)
    bad: dict[str, tuple[Any, Any]] = {
        "that is not private": (_pipe(StandardScaler()), GRID),
        "of infinite epsilon": (_pipe(exact), GRID),
        "for another unit, by the grid": (_pipe(), {"model__privacy_unit": ["feature"]}),
        "for another unit, by a candidate": (_pipe(), {"model": [feature]}),
    }
    for what, (pipe, grid) in bad.items():
        ledger = BudgetAccountant()
        try:
            PrivateSearchCV(pipe, grid, runs_per_candidate=1, accountant=ledger).fit(X, Y)
        except ValueError:
            if len(ledger):
                yield f"a step {what} is refused after the charge"
        else:
            yield f"a step {what} is taken"


def _ledgers() -> Iterator[str]:
    """See that the ledger of the first step is charged, and that two are refused."""
    one, other = BudgetAccountant(), BudgetAccountant()
    first = PrivateKBinsDiscretizer(2, epsilon=0.5, accountant=one)
    PrivateSearchCV(_pipe(first), GRID, runs_per_candidate=1).fit(X, Y)
    if [entry.epsilon for entry in one] != [1.0]:
        yield "the ledger of the first step is not charged"
    try:
        PrivateSearchCV(_pipe(first, _model(accountant=other)), GRID).fit(X, Y)
    except ValueError:
        return
    yield "one of two ledgers is charged"


def _winner() -> Iterator[str]:
    """See that a winner that is stored and read again promises what the search did."""
    search = PrivateSearchCV(_pipe(), GRID, runs_per_candidate=1).fit(X, Y)
    for _, step in search.best_estimator_.steps:
        if step.guarantee_ != search.guarantee_:
            yield "a step of the winner promises more than the search"
    try:
        again = from_json(search.best_estimator_[-1].to_json())
    except ValueError:
        yield "the parts of a stored winner promise different things"
    else:
        if again.guarantee_ != search.guarantee_:
            yield "a stored winner promises more than the search"


def _what_is_printed() -> Iterator[str]:
    """Search with a pipeline and with workers that are asked to report what they do."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out), joblib.parallel_config(verbose=60):
        PrivateSearchCV(_pipe(verbose=True), GRID, runs_per_candidate=1).fit(X, Y)
    if out.getvalue():
        yield "a search prints what tells the number of runs"


def _cache() -> Iterator[str]:
    """See that a pipeline with a cache draws the noise of every fit, and stores nothing."""
    fits: list[int] = []
    drawn: list[int] = []
    whole, answers = PipelinePlan.release, PrivateKBinsDiscretizer._set

    def fit(self: Any, *args: Any) -> Any:
        fits.append(1)
        return whole(self, *args)

    def bins(self: Any, *args: Any) -> Any:
        drawn.append(1)
        return answers(self, *args)

    with (
        TemporaryDirectory() as folder,
        planted((PipelinePlan, "release", fit)),
        planted((PrivateKBinsDiscretizer, "_set", bins)),
        planted((Noise, "runs", lambda self, stopping: 4)),
    ):
        PrivateSearchCV(_pipe(memory=folder), GRID, runs_per_candidate=1).fit(X, Y)
    if len(drawn) < len(fits):
        yield "runs share the noise of a step"


def _persons() -> Iterator[str]:
    """See that every step knows whose records they are."""
    whom: dict[str, Any] = {
        "privacy_unit": PrivacyUnit("person", max_records=2, neighbours="add_remove")
    }
    bins, model = (step.set_params(**whom) for step in (_bins(), _model()))
    who = np.arange(N) // 3
    search = PrivateSearchCV(_pipe(bins, model), GRID, epsilon=3.0, runs_per_candidate=1)
    try:  # a step that is not told refuses
        search.fit(X, Y, groups=who)
    except RuntimeError:
        yield "a step of a pipeline is not told whose records it is fitted to"


def _bins() -> PrivateKBinsDiscretizer:
    return PrivateKBinsDiscretizer(2, strategy="uniform", epsilon=0.5)  # which looks at n
