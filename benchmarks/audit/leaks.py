"""Canaries and exact statistics: none may turn up in what is raised, warned, kept or shown.

Every estimator and mechanism is fitted to records with odd values that carry a mark, with all
domains declared (which must work) and with none (which may be refused). Messages, causes, contexts
and warnings are searched for the mark; fitted objects are walked for it and for their own exact
statistics, with their pickle, repr, HTML and JSON.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import clone

from benchmarks.audit._cases import Row, crossings, in_a_folder
from benchmarks.audit._models import UNITS, line, naive_bayes
from benchmarks.audit.tools.fuzzing import MARK, Example, every_case, fit_with, odd_records
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn import BayesianNetworkClassifier, BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.audit.leaks import leaks
from dpbayes_sklearn.columns.quantiles import SortedColumns
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.data.persons import counted_records
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import scalers
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains
from dpbayes_sklearn.regression.moments import plain_gram

UNDECLARED = ("bounds", "bounds_X", "bounds_y", "classes", "categories")
SECRETS = {"mark": MARK, "number": float(MARK), "other number": -float(MARK) - 0.5}


def undeclared(case: Example) -> Any:
    known = case.estimator.get_params(deep=False)
    unknown = {name: None for name in UNDECLARED if name in known}
    return deepcopy(case.estimator).set_params(**unknown)


def exact(case: Example) -> dict[str, Any]:
    """Return the records themselves, in long rows that nothing holds by chance."""
    columns = case.X.reshape(len(case.X), -1).T
    records = {f"column {j}": column for j, column in enumerate(columns)}
    return records if case.y is None else {**records, "target": case.y}


def run(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    said = kept = fits = refusals = 0
    for _ in range(max(1, int(10 * scale))):
        for case in every_case(n=30):
            for estimator in (case.estimator, undeclared(case)):
                outcome = fit_with(estimator, *odd_records(case, 8, rng))
                fits += 1
                refusals += outcome.error is not None
                said += MARK in outcome.said
                declared = estimator is case.estimator and not isinstance(estimator, BetaBinomial)
                if outcome.fitted is not None and declared:
                    kept += len(leaks(outcome.fitted, SECRETS))
    what = f"canaries in what {fits:,} fits ({refusals:,} refused) said"
    yield Row(what, f"{said} hits", "0", said == 0)
    yield Row(
        "canaries in fitted objects, pickle, repr, HTML, JSON", f"{kept} hits", "0", kept == 0
    )
    found = 0
    cases = [*every_case(n=60, epsilon=0.05)]
    for case in cases:
        found += len(leaks(deepcopy(case.estimator).fit(case.X, case.y), exact(case)))
    what = f"records in {len(cases)} fitted objects, pickle, repr, HTML, JSON"
    yield Row(what, f"{found} hits", "0", found == 0)


N = 1237
TWO: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
MODELS = (
    naive_bayes(n_bins="auto"),
    naive_bayes(mechanism="sampler", temperature=1.0),
    BayesianNetworkClassifier(parents={"x1": ["x0", "class"]}, **TWO),
    line(),
    BetaBinomial(),
    DirichletMultinomial(categories=2),
    scalers.PrivateMinMaxScaler(),
    scalers.PrivateStandardScaler(),
    scalers.PrivateKBinsDiscretizer(4),
    PrivateSelectKBest(1, **TWO),
    PrivateSelectKBest("auto", **TWO),
)


def leaks_of_units() -> Iterator[str]:
    """Fit every model for every unit, and look for what must not be there."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(10**6, 10**6 + N), rng.integers(1, 5, N))[:N]
    X, y = rng.random((N, 3)), rng.integers(0, 2, N)
    counted = len(counted_records(who, 2))
    for model, unit in product(MODELS, UNITS):
        persons = {"groups": who} if unit.name == "person" else {}
        fitted = clone(model).set_params(epsilon=0.1, random_state=0, privacy_unit=unit)
        one_column = isinstance(model, (BetaBinomial, DirichletMultinomial))
        with crossings() as seen:
            fitted.fit(*((y,) if one_column else (X, y)), **persons)
        secrets: dict[str, Any] = {"a column": X[:, 0], "the target": y, "persons": who}
        found = leaks(fitted, secrets | {"a person": int(who[-1])} | _exact(seen[-1].counts))
        if unit.size_is_secret:  # its digits may be among those of other numbers
            kept = leaks(fitted, {"all records": N, "records that count": counted})
            found += [place for place in kept if ": object" in place]
        yield from (f"{model}, {unit.label}: {place}" for place in found)


def _exact(statistics: Any) -> dict[str, Any]:
    """Return the exact numbers that a release was made from."""
    found: dict[str, Any] = {}
    for name in ("counts", "scores"):
        if hasattr(statistics, name):
            found[name] = np.asarray(getattr(statistics, name))
    for j, table in enumerate(getattr(statistics, "tables", ())):
        found[f"table {j}"] = table
    if isinstance(statistics, SortedColumns):
        found["a sorted column"] = statistics.column(1)
    if isinstance(statistics, LinearRecords):
        found["sums"] = plain_gram(statistics)[0, 1:]
    return found


def leak_walk() -> Iterator[str]:
    """Walk fitted objects in search of exact statistics."""
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 2)), rng.integers(0, 2, 400)
    secrets = {"a column": X[:, 0], "the labels": y, "class counts": np.bincount(y)}
    with crossings() as seen:
        for mechanism in ("laplace", "fourier", "sampler", "map", "gaussian"):
            for inference in ("plug_in", "noise_aware"):
                options = {"mechanism": mechanism, "inference": inference}
                model = naive_bayes(0.1, delta=1e-3, **options).fit(X, y)
                tables = {f"table {j}": t for j, t in enumerate(seen[-1].counts.tables)}
                yield from leaks(model, {**secrets, **tables})
        for mechanism in ("auto", "laplace", "fourier", "sampler", "map"):
            fitted = line(mechanism=mechanism).fit(X, y)
            sums = {"sums of columns and target": plain_gram(seen[-1].statistics)[0, 1:]}
            yield from leaks(fitted, {"a column": X[:, 0], "the labels": y, **sums})
        for mechanism in ("geometric", "exponential", "laplace_improved"):
            codes = rng.integers(0, 3, 60)
            multi = DirichletMultinomial(0.1, mechanism=mechanism, categories=3).fit(codes)
            yield from leaks(multi, {"counts": seen[-1].statistics.counts, "records": codes})
        for transformer in (MODELS[6], MODELS[8]):
            transformer = clone(transformer).set_params(epsilon=0.1).fit(X)
            ordered = {"a sorted column": seen[-1].statistics.column(1), "a column": X[:, 0]}
            yield from leaks(transformer, ordered)
        words = pd.DataFrame({"a": X[:, 0], "b": rng.choice(["x", "y", "secret word"], 400)})
        learner = FrameDomains(1.0, delta=1e-3).fit(words)
        (texts,) = seen[-1].statistics.texts.columns
        secret = {"counts of texts": np.array([*texts.values()]), "a column": X[:, 0]}
        yield from leaks(learner, secret)
    yield from _files_of_streams(X, y)


@in_a_folder
def _files_of_streams(folder: Path, X: Any, y: Any) -> Iterator[str]:
    """See that records of a stream are in no file that others could open, then or later."""
    table = pl.LazyFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    with (
        planted((tempfile, "tempdir", str(folder))),
        crossings(lambda *_: [*folder.iterdir()]) as seen,
    ):
        naive_bayes(random_state=0).fit(table, target="y")
    if any(seen) or [*folder.iterdir()]:
        yield "records of a stream are in a file that has a name"
