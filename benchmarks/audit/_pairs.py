"""Neighbouring data sets that make trouble, for estimators, searches and query sessions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Pair, Rng, Subject
from benchmarks.audit._converted import container_subjects
from benchmarks.audit.tools.fuzzing import names_of
from benchmarks.audit.tools.replaying import SEARCH
from dpbayes_sklearn.base.supervised import SupervisedEstimator
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import resolve_mechanism
from dpbayes_sklearn.preprocessing import scalers
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
        with dp.PosteriorQuerySession(model, X, target, **given) as session:
            self.answers_ = [session.query(lambda drawn: drawn) for _ in range(self.queries)]
            self.guarantee_, self.spent_ = session.guarantee(), session.spent
            self.shown_ = repr(session), sorted(vars(model))
        return self


def session_and_search_subjects(numbers: Any, targets: Any) -> Iterator[Subject]:
    """Yield searches over mechanisms and a session; the arguments make neighbours for them."""
    sampler = dp.BayesianNaiveBayes(0.5, mechanism="sampler", **CLASSIFIER)
    yield Subject("PosteriorQuerySession", Answers(sampler), numbers)
    for model in (
        dp.NormalMean(0.5, mechanism="sampler", bounds=(-1, 2)),
        dp.GammaExponential(0.5, mechanism="sampler", bounds=(0, 3)),
        dp.BayesianLinearRegression(0.5, mechanism="sampler", **LINE),
    ):
        name = f"PosteriorQuerySession of {type(model).__name__}"
        yield Subject(name, Answers(model), targets)
    grid = {"mechanism": ["laplace", "map"]}
    bayes, line = dp.BayesianNaiveBayes(**CLASSIFIER), dp.BayesianLinearRegression(**LINE)
    for estimator, make in ((bayes, numbers), (line, targets)):
        search = dp.PrivateSearchCV(estimator, grid, runs_per_candidate=1)
        name = f"PrivateSearchCV of {type(estimator).__name__}"
        yield Subject(name, search, partial(_of_several, make), (SEARCH,))


def _of_several(make: Any, rng: Rng) -> Pair:
    while True:  # some to fit to, and some to hold out
        X, y, X2, y2 = make(rng)
        if len(y) > 6:
            return X, y, X2, y2


NUMBERS = (0.0, 1.0, 0.5, 0.25, -3.0, 7.5, 1e308, -1e308, 5e-324, -0.0, np.nan, np.inf, -np.inf)
COLOURS = ("red", "green", "blue")
TEXTS = (*COLOURS, "ultraviolet", "", None, np.nan, 3, 1e308, 10**400, "Red", ("red",))
LABELS = (0, 1, 2, 9, -1)
SIZES = (1, 2, 3, 7, 40)
COUNTS, SIMPLEX, MOMENTS = (
    sorted(names_of(model))
    for model in (dp.BayesianNaiveBayes, dp.BetaBinomial, dp.BayesianLinearRegression)
)


def _cell(rng: Rng, column: int) -> Any:
    values = TEXTS if column == 1 else NUMBERS
    return values[rng.integers(len(values))]


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


def _numbers(unit: str, labels: tuple[Any, ...], rng: Rng) -> Pair:
    X, y, X2, y2 = _neighbours(rng, [0, 0, 0], labels, unit)
    return np.array(X, float), np.array(y), np.array(X2, float), np.array(y2)


def _of_columns(columns: int, rng: Rng) -> Pair:
    """Return the first columns of numbers, with labels that may be missing."""
    X, y, X2, y2 = _numbers("record", (np.nan, *TARGETS), rng)
    return X[:, :columns], y, X2[:, :columns], y2


def _sparse(unit: str, rng: Rng) -> Pair:
    X, y, X2, y2 = _numbers(unit, LABELS, rng)
    return csr_array(X), y, csr_array(X2), y2


def _mixed(unit: str, labels: tuple[Any, ...], rng: Rng) -> Pair:
    X, y, X2, y2 = _neighbours(rng, [0, 1, 0], labels, unit)
    frames = [pd.DataFrame(rows, columns=list("abc"), dtype=object) for rows in (X, X2)]
    frames = [
        frame.astype({"a": float, "c": float}) for frame in frames
    ]  # as declared, else refused
    kind = object if labels is LABELS else float
    return frames[0], np.array(y, kind), frames[1], np.array(y2, kind)


def _typed(rng: Rng) -> Pair:
    """Return labels of integers beside the same frames."""
    X, y, X2, y2 = _mixed("record", LABELS, rng)
    return X, y.astype(int), X2, y2.astype(int)


def _column(values: tuple[Any, ...], rng: Rng) -> Pair:
    x = [values[i] for i in rng.integers(len(values), size=SIZES[rng.integers(4)])]
    x2 = list(x)
    x2[rng.integers(len(x))] = values[rng.integers(len(values))]
    sides = [np.empty(len(x), object) for _ in range(2)]
    sides[0][:], sides[1][:] = x, x2
    return sides[0], None, sides[1], None


SCHEMA = {"a": dp.Interval(-1, 2), "b": dp.Categories(COLOURS), "c": dp.Interval(0, 1)}
TARGETS = (*NUMBERS, 3, -1)


BY_RECORD, BY_TARGET = partial(_numbers, "record", LABELS), partial(_numbers, "record", TARGETS)


def _with(mechanism: str, **options: Any) -> dict[str, Any]:
    """Return options with a delta below one over any number of records, if one is spent."""
    spends = resolve_mechanism(mechanism).spends_delta
    return {"mechanism": mechanism, **options, **({"delta": 1e-3} if spends else {})}


def _named(estimator: Any, what: str, make: Any, rounds: int = 1) -> Subject:
    return Subject(f"{type(estimator).__name__}, {what}", estimator, make, rounds=rounds)


def _of_counts(mechanism: str, unit: str) -> Iterator[Subject]:
    common, numbers = _with(mechanism, privacy_unit=unit, n_bins=3), partial(_numbers, unit, LABELS)
    what = f"{mechanism}, {unit}"
    plain = {**common, "bounds": (-1, [0.5, 2, 1]), "classes": [0, 1, 2]}
    for inference in ("plug_in", "noise_aware"):
        model = dp.BayesianNaiveBayes(0.7, inference=inference, **plain)
        yield _named(model, f"{what}, {inference}", numbers)
    typed = dp.BayesianNaiveBayes(
        schema=dp.Schema(SCHEMA, target=dp.Categories([0, 1, 2])), **common
    )
    yield _named(typed, f"{what}, schema", partial(_mixed, unit, LABELS))
    sparse = dp.BayesianNaiveBayes(**{**plain, "bounds": (0, [0.5, 2, 1])})
    if get_tags(sparse).input_tags.sparse:
        yield _named(sparse, f"{what}, sparse", partial(_sparse, unit))
    for parents in ({0: ["class"], 1: [0]}, {"class": [0, 1], 2: ["class"]}):
        network = dp.BayesianNetworkClassifier(parents=parents, inference="plug_in", **plain)
        yield _named(network, f"{what}, {parents}", numbers)


def _of_moments(mechanism: str, intercept: bool) -> Iterator[Subject]:
    options, what = _with(mechanism, fit_intercept=intercept), f"{mechanism}, intercept={intercept}"
    yield _named(dp.BayesianLinearRegression(**LINE, **options), what, BY_TARGET)
    located = dp.BayesianLinearRegression(1000.0, **LINE, **options)
    yield _named(located, f"{what}, located", BY_TARGET)
    schema = dp.Schema(SCHEMA, target=dp.Interval(0, 1))
    typed = dp.BayesianLinearRegression(schema=schema, noise_variance=0.1, **options)
    yield _named(typed, f"{what}, schema", partial(_mixed, "record", TARGETS))


def _of_labels(effects: str, intercept: bool) -> Iterator[Subject]:
    shown = {"effects": effects, "fit_intercept": intercept, "intervals": effects == "linear"}
    plain = dp.BayesianLogisticRegression(bounds=(-1, [0.5, 2, 1]), classes=[0, 1], **shown)
    typed = dp.BayesianLogisticRegression(schema=dp.Schema(SCHEMA, dp.Categories([0, 1])), **shown)
    yield _named(plain, f"{effects}, intercept={intercept}", BY_RECORD)
    mixed = partial(_mixed, "record", LABELS)
    yield _named(typed, f"{effects}, intercept={intercept}, schema", mixed)


def _of_rates_and_classes() -> Iterator[Subject]:
    """Yield counts, with an exposure and without, several classes, and the front door."""
    mixed, three = partial(_mixed, "record", LABELS), dp.Categories([0, 1, 2])
    for intervals in (True, False):
        rates = dp.BayesianCountRegression(cap=3, bounds=(-1, 2), intervals=intervals)
        yield _named(rates, f"intervals={intervals}", BY_TARGET)
    years = dp.Schema({**SCHEMA, "c": dp.Interval(0.25, 1)}, dp.Interval(0, 4))
    exposed = dp.BayesianCountRegression(100.0, schema=years, exposure="c")
    yield _named(exposed, "exposure", partial(_mixed, "record", TARGETS))
    several = dp.BayesianLogisticRegression(classes=[0, 1, 2], bounds=(-1, 2), effects="linear")
    yield _named(several, "three classes", BY_RECORD)
    for epsilon in (0.1, 1000.0):  # naive Bayes, and logistic regression
        front = dp.BayesianClassifier(epsilon, schema=dp.Schema(SCHEMA, three))
        yield _named(front, f"epsilon={epsilon:g}", mixed)


def _of_preparation() -> Iterator[Subject]:
    for transformer in (
        scalers.PrivateMinMaxScaler(0.7),
        scalers.PrivateMinMaxScaler(0.7, bounds=(-1, 3)),
        scalers.PrivateStandardScaler(0.7),
        scalers.PrivateKBinsDiscretizer(4, epsilon=0.7),
        scalers.PrivateKBinsDiscretizer(3, strategy="uniform", epsilon=0.7),
    ):
        yield Subject(f"{transformer}, quantiles", transformer, BY_RECORD, rounds=6)
    for bins in (None, 3):
        learner = FrameDomains(2000.0, delta=0.001, bins=bins)  # a ledger has 1 for 128 fits
        yield Subject(f"Schema.learn, bins={bins}", learner, _typed, rounds=6)
    classes = {"bounds": (-1, [0.5, 2, 1]), "classes": [0, 1, 2]}
    for options in (classes, {"bounds": (-1, 2), "bounds_y": (0, 2)}):
        select = PrivateSelectKBest(2, epsilon=0.7, n_bins=3, **options)
        yield Subject(f"PrivateSelectKBest, {[*options]}", select, BY_RECORD)


def subjects() -> Iterator[Subject]:
    """Yield every estimator with every mechanism that it has, in both units where it has two."""
    for mechanism, unit in product(COUNTS, ("record", "feature")):
        yield from _of_counts(mechanism, unit)
    for mechanism, intercept in product(MOMENTS, (True, False)):
        yield from _of_moments(mechanism, intercept)
    for effects, intercept in product(("smooth", "linear"), (True, False)):
        yield from _of_labels(effects, intercept)
    yield _named(dp.PrivateMoments(bounds=(-1, 2)), "numbers", BY_RECORD)
    mixed = partial(_mixed, "record", LABELS)
    yield _named(dp.PrivateMoments(100.0, schema=dp.Schema(SCHEMA)), "schema", mixed)
    colours = dp.Categories(COLOURS, unseen="blue")
    for mechanism in SIMPLEX:
        coin = dp.BetaBinomial(**_with(mechanism))
        yield _named(coin, mechanism, partial(_column, (0, 1, True)))
        share = dp.DirichletMultinomial(categories=colours, inference="plug_in", **_with(mechanism))
        yield _named(share, mechanism, partial(_column, TEXTS))
    by_group = dp.Schema({"a": dp.Interval(-1, 2, bins=3), "b": dp.Categories([0, 1])})
    for columns, declared in ((1, {"bounds": (-1, 2), "n_bins": 3}), (2, {"schema": by_group})):
        pairs = partial(_of_columns, columns)
        yield _named(dp.LifeTable(0.7, **declared), f"{columns} columns", pairs, rounds=6)
    # five integers, where numbers of any kind get four bins
    five = dp.BayesianNaiveBayes(
        bounds=(0, 4), classes=[0, 1, 2], n_bins="auto", inference="plug_in"
    )
    yield _named(five, "laplace, n_bins=auto", BY_RECORD, rounds=6)
    for model, target in (
        (dp.BayesianNaiveBayes, dp.Categories([0, 1, 2])),
        (dp.BayesianLinearRegression, dp.Interval(0, 1)),
        (dp.BayesianLogisticRegression, dp.Categories([0, 1])),
        (dp.BayesianCountRegression, dp.Interval(0, 3)),
    ):
        missing = model(schema=dp.Schema(SCHEMA, target))
        mixed = partial(_mixed, "record", (np.nan, *TARGETS))
        yield _named(missing, "targets may be missing", mixed, rounds=6)
    yield from _of_rates_and_classes()
    yield from _of_preparation()
    yield from container_subjects()
    yield from session_and_search_subjects(BY_RECORD, BY_TARGET)
