"""Neighbouring data sets that were made to make trouble, for every estimator and mechanism.

Private searches and query sessions are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from benchmarks.audit._cases import Pair, Rng, Subject
from benchmarks.audit._converted import container_subjects
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    Categories,
    DirichletMultinomial,
    GammaExponential,
    Interval,
    NormalMean,
    PosteriorQuerySession,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.audit.catalogue import names_of
from dpbayes_sklearn.audit.replaying import SEARCH
from dpbayes_sklearn.base.supervised import SupervisedEstimator
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import resolve_mechanism
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains

CLASSIFIER: dict[str, Any] = {"bounds": (-1, 2), "classes": [0, 1, 2], "n_bins": 3}
LINE: dict[str, Any] = {"bounds_X": (-2, 1), "bounds_y": (-1, 3)}


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
    sampler = BayesianNaiveBayes(0.5, mechanism="sampler", **CLASSIFIER)
    yield Subject("PosteriorQuerySession", Answers(sampler), numbers)
    for model in (
        NormalMean(0.5, mechanism="sampler", bounds=(-1, 2)),
        GammaExponential(0.5, mechanism="sampler", bounds=(0, 3)),
        BayesianLinearRegression(0.5, mechanism="sampler", **LINE),
    ):
        name = f"PosteriorQuerySession of {type(model).__name__}"
        yield Subject(name, Answers(model), targets)
    grid = {"mechanism": ["laplace", "map"]}
    bayes, line = BayesianNaiveBayes(**CLASSIFIER), BayesianLinearRegression(**LINE)
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


NUMBERS = (0.0, 1.0, 0.5, 0.25, -3.0, 7.5, 1e308, -1e308, 5e-324, -0.0, np.nan, np.inf, -np.inf)
TEXTS = (
    "red",
    "green",
    "blue",
    "ultraviolet",
    "",
    None,
    np.nan,
    3,
    1e308,
    10**400,
    "Red",
    ("red",),
)
LABELS = (0, 1, 2, 9, -1)
SIZES = (1, 2, 3, 7, 40)
COUNTS, SIMPLEX, MOMENTS = (
    sorted(names_of(model))
    for model in (BayesianNaiveBayes, BetaBinomial, BayesianLinearRegression)
)


def _cell(rng: Rng, column: int) -> Any:
    return (TEXTS if column == 1 else NUMBERS)[rng.integers(len(TEXTS if column == 1 else NUMBERS))]


def _neighbours(rng: Rng, columns: list[int], labels: tuple[Any, ...], unit: str) -> Pair:
    """Return two data sets; in the second, one record was replaced, or one value of it.

    Every third time only the label changes, and every third time the record was the last of its
    class. Every other time it is the only one that is out of the ordinary.
    """
    n, kind = SIZES[rng.integers(len(SIZES))], rng.integers(3)
    at = int(rng.integers(n))
    if rng.integers(2):  # all others are as they should be
        X = [["green" if c else 0.25 for c in columns] for _ in range(n)]
        y = [labels[1]] * n
    else:
        X = [[_cell(rng, c) for c in columns] for _ in range(n)]
        y = [labels[i] for i in rng.integers(len(labels), size=n)]
    if kind == 0:  # the last of its class
        y = [labels[0]] * n
        y[at] = labels[1]
    X2, y2 = [list(row) for row in X], list(y)
    if unit == "feature":
        j = int(rng.integers(len(columns)))
        X2[at][j] = _cell(rng, columns[j])
        return X, y, X2, y
    if kind != 1:
        X2[at] = [_cell(rng, c) for c in columns]
    y2[at] = labels[rng.integers(len(labels))]
    return X, y, X2, y2


def _numbers(unit: str, labels: tuple[Any, ...] = LABELS) -> Callable[[Rng], Pair]:
    def make(rng: Rng) -> Pair:
        X, y, X2, y2 = _neighbours(rng, [0, 0, 0], labels, unit)
        return np.array(X, float), np.array(y), np.array(X2, float), np.array(y2)

    return make


def _sparse(unit: str) -> Callable[[Rng], Pair]:
    def make(rng: Rng) -> Pair:
        X, y, X2, y2 = _numbers(unit)(rng)
        return csr_array(X), y, csr_array(X2), y2

    return make


def _mixed(unit: str, labels: tuple[Any, ...] = LABELS) -> Callable[[Rng], Pair]:
    def make(rng: Rng) -> Pair:
        X, y, X2, y2 = _neighbours(rng, [0, 1, 0], labels, unit)
        frames = [pd.DataFrame(rows, columns=list("abc"), dtype=object) for rows in (X, X2)]
        return frames[0], np.array(y, object), frames[1], np.array(y2, object)

    return make


def _typed(rng: Rng) -> Pair:
    """Return frames whose types say which column holds numbers."""
    X, y, X2, y2 = _neighbours(rng, [0, 1, 0], LABELS, "record")
    frames = [
        pd.DataFrame(rows, columns=list("abc"), dtype=object).astype({"a": float, "c": float})
        for rows in (X, X2)
    ]
    return frames[0], np.array(y), frames[1], np.array(y2)


def _column(values: tuple[Any, ...]) -> Callable[[Rng], Pair]:
    def make(rng: Rng) -> Pair:
        x = [values[i] for i in rng.integers(len(values), size=SIZES[rng.integers(4)])]
        x2 = list(x)
        x2[rng.integers(len(x))] = values[rng.integers(len(values))]
        sides = [np.empty(len(x), object) for _ in range(2)]
        sides[0][:], sides[1][:] = x, x2
        return sides[0], None, sides[1], None

    return make


SCHEMA = {"a": Interval(-1, 2), "b": Categories(["red", "green", "blue"]), "c": Interval(0, 1)}
TARGETS = (*NUMBERS, 3, -1)


def _delta(mechanism: str) -> dict[str, float]:
    """Return a delta below one over any number of records, for mechanisms that spend one."""
    return {"delta": 1e-3} if resolve_mechanism(mechanism).spends_delta else {}


def subjects() -> Iterator[Subject]:
    """Yield every estimator with every mechanism that it has, in both units where it has two."""
    for mechanism, unit in product(COUNTS, ("record", "feature")):
        common: dict[str, Any] = {"mechanism": mechanism, "privacy_unit": unit, "n_bins": 3}
        common |= _delta(mechanism)
        what = f"{mechanism}, {unit}"
        plain = {**common, "bounds": (-1, [0.5, 2, 1]), "classes": [0, 1, 2]}
        typed = {**common, "schema": Schema(SCHEMA, target=Categories([0, 1, 2]))}
        for inference in ("plug_in", "noise_aware"):
            yield Subject(
                f"BayesianNaiveBayes, {what}, {inference}",
                BayesianNaiveBayes(0.7, inference=inference, **plain),
                _numbers(unit),
            )
        yield Subject(
            f"BayesianNaiveBayes, {what}, schema", BayesianNaiveBayes(**typed), _mixed(unit)
        )
        sparse = BayesianNaiveBayes(**{**plain, "bounds": (0, [0.5, 2, 1])})
        if get_tags(sparse).input_tags.sparse:
            yield Subject(f"BayesianNaiveBayes, {what}, sparse", sparse, _sparse(unit))
        for parents in ({0: ["class"], 1: [0]}, {"class": [0, 1], 2: ["class"]}):
            yield Subject(
                f"BayesianNetworkClassifier, {what}, {parents}",
                BayesianNetworkClassifier(parents=parents, inference="plug_in", **plain),
                _numbers(unit),
            )
    for mechanism, intercept in product(MOMENTS, (True, False)):
        options: dict[str, Any] = {"mechanism": mechanism, "fit_intercept": intercept}
        options |= _delta(mechanism)
        yield Subject(
            f"BayesianLinearRegression, {mechanism}, intercept={intercept}",
            BayesianLinearRegression(bounds_X=(-2, 1), bounds_y=(-1, 3), **options),
            _numbers("record", TARGETS),
        )
        yield Subject(
            f"BayesianLinearRegression, {mechanism}, intercept={intercept}, located",
            BayesianLinearRegression(1000.0, bounds_X=(-2, 1), bounds_y=(-1, 3), **options),
            _numbers("record", TARGETS),
        )
        yield Subject(
            f"BayesianLinearRegression, {mechanism}, intercept={intercept}, schema",
            BayesianLinearRegression(
                schema=Schema(SCHEMA, target=Interval(0, 1)), noise_variance=0.1, **options
            ),
            _mixed("record", TARGETS),
        )
    for effects, intercept in product(("smooth", "linear"), (True, False)):
        shown = {"effects": effects, "fit_intercept": intercept, "intervals": effects == "linear"}
        name = f"BayesianLogisticRegression, {effects}, intercept={intercept}"
        plain = {**shown, "bounds": (-1, [0.5, 2, 1]), "classes": [0, 1]}
        typed = {**shown, "schema": Schema(SCHEMA, target=Categories([0, 1]))}
        yield Subject(name, BayesianLogisticRegression(**plain), _numbers("record"))
        yield Subject(f"{name}, schema", BayesianLogisticRegression(**typed), _mixed("record"))
    for model, target in (
        (BayesianNaiveBayes, Categories([0, 1, 2])),
        (BayesianLinearRegression, Interval(0, 1)),
        (BayesianLogisticRegression, Categories([0, 1])),
    ):
        yield Subject(
            f"{model.__name__}, targets may be missing",
            model(schema=Schema(SCHEMA, target, missing_target=True)),
            _mixed("record", (np.nan, *TARGETS)),
        )
    for mechanism in SIMPLEX:
        yield Subject(
            f"BetaBinomial, {mechanism}",
            BetaBinomial(mechanism=mechanism, **_delta(mechanism)),
            _column((0, 1, True)),
        )
        yield Subject(
            f"DirichletMultinomial, {mechanism}",
            DirichletMultinomial(
                mechanism=mechanism,
                categories=Categories(["red", "green", "blue"], unseen="blue"),
                inference="plug_in",
                **_delta(mechanism),
            ),
            _column(TEXTS),
        )
    # five integers, where numbers of any kind get four bins
    automatic = {"bounds": (0, 4), "classes": [0, 1, 2], "n_bins": "auto"}
    yield Subject(
        "BayesianNaiveBayes, laplace, n_bins=auto",
        BayesianNaiveBayes(inference="plug_in", **automatic),
        _numbers("record"),
        rounds=6,
    )
    for transformer in (
        PrivateMinMaxScaler(0.7),
        PrivateMinMaxScaler(0.7, bounds=(-1, 3)),
        PrivateStandardScaler(0.7),
        PrivateKBinsDiscretizer(4, epsilon=0.7),
        PrivateKBinsDiscretizer(3, strategy="uniform", epsilon=0.7),
    ):
        yield Subject(f"{transformer}, quantiles", transformer, _numbers("record"), rounds=6)
    for bins in (None, 3):
        learner = FrameDomains(2000.0, delta=0.001, bins=bins)  # a ledger has 1 for 128 fits
        yield Subject(f"Schema.learn, bins={bins}", learner, _typed, rounds=6)
    for options in (
        {"bounds": (-1, [0.5, 2, 1]), "classes": [0, 1, 2]},
        {"bounds": (-1, 2), "bounds_y": (0, 2)},
    ):
        select = PrivateSelectKBest(2, epsilon=0.7, n_bins=3, **options)
        yield Subject(f"PrivateSelectKBest, {[*options]}", select, _numbers("record"))
    yield from container_subjects()
    yield from session_and_search_subjects(_numbers("record"), _numbers("record", TARGETS))
