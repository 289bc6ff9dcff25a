"""Subjects of replay that are no plain estimators: private searches and query sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import BaseEstimator, clone

from benchmarks.audit._cases import Pair, Rng, Subject
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    GammaExponential,
    NormalMean,
    PosteriorQuerySession,
    PrivateSearchCV,
)
from dpbayes_sklearn.audit.replaying import SEARCH
from dpbayes_sklearn.base.supervised import SupervisedEstimator

__all__ = ["Answers", "session_and_search_subjects"]

COUNTS: dict[str, Any] = {"bounds": (-1, 2), "classes": [0, 1, 2], "n_bins": 3}
MOMENTS: dict[str, Any] = {"bounds_X": (-2, 1), "bounds_y": (-1, 3)}


class Answers(BaseEstimator):
    """Asks a session some queries and keeps what an outsider gets to see of it."""

    def __init__(self, model: Any = None, queries: int = 2, accountant: Any = None) -> None:
        self.model = model
        self.queries = queries
        self.accountant = accountant

    def fit(self, X: Any, y: Any, groups: Any = None) -> Answers:
        model = clone(self.model)
        target = y if isinstance(model, SupervisedEstimator) else None
        given = {"groups": groups, "accountant": self.accountant}
        with PosteriorQuerySession(model, X, target, **given) as session:
            self.answers_ = [session.query(lambda drawn: drawn) for _ in range(self.queries)]
            self.guarantee_, self.spent_ = session.guarantee(), session.spent
            self.shown_ = repr(session), sorted(vars(model))
        return self


def session_and_search_subjects(numbers: Any, targets: Any) -> Iterator[Subject]:
    """Yield searches over mechanisms and a session; the arguments make neighbours for them."""
    sampler = BayesianNaiveBayes(0.5, mechanism="sampler", **COUNTS)
    yield Subject("PosteriorQuerySession", Answers(sampler), numbers)
    for model in (
        NormalMean(0.5, mechanism="sampler", bounds=(-1, 2)),
        GammaExponential(0.5, mechanism="sampler", bounds=(0, 3)),
        BayesianLinearRegression(0.5, mechanism="sampler", **MOMENTS),
    ):
        name = f"PosteriorQuerySession of {type(model).__name__}"
        yield Subject(name, Answers(model), targets)
    grid = {"mechanism": ["laplace", "map"]}
    bayes, line = BayesianNaiveBayes(**COUNTS), BayesianLinearRegression(**MOMENTS)
    for estimator, make in ((bayes, numbers), (line, targets)):
        search = PrivateSearchCV(estimator, grid, runs_per_candidate=1)
        name = f"PrivateSearchCV of {type(estimator).__name__}"
        yield Subject(name, search, _of_several(make), (SEARCH,))


def _of_several(make: Any) -> Any:
    def pair(rng: Rng) -> Pair:
        while True:  # some to fit to, and some to hold out
            X, y, X2, y2 = make(rng)
            if len(y) > 6:
                return X, y, X2, y2

    return pair
