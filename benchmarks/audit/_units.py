"""Weights, persons, and records that are added or removed: neighbours of every unit, in short."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.audit._cases import Case, cases_of, crossings
from benchmarks.audit._models import ADDED, PERSON, RECORD, UNITS, line, naive_bayes
from benchmarks.audit.tools.replaying import DRAWS, replay
from dpbayes_sklearn import BetaBinomial, BudgetAccountant, DirichletMultinomial, PrivateSearchCV
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.counts import predict
from dpbayes_sklearn.data.persons import counted_records
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.model_selection.runs import points
from dpbayes_sklearn.preprocessing import scalers
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.declared import Bins


def weighted_worlds() -> list[Case]:
    """Enumerate tables and records with weights."""
    tables = [Case(f"weighted tables, {u.label}", partial(_weighted, u)) for u in (RECORD, ADDED)]
    tables += [Case("tables with missing targets", partial(_weighted, RECORD, missing=True))]
    return [*tables, Case("weighted records of a regression", _weighted_regression)]


def _weighted(unit: PrivacyUnit, missing: bool = False) -> Iterator[str]:
    worst = worst_weighted_loss(unit, missing)
    if not 0.96 <= worst <= 1:
        yield f"records that count or not, {unit.label}: loss {float(worst):g} of 1"


def worst_weighted_loss(unit: PrivacyUnit, missing: bool = False) -> Fraction:
    """Return the worst loss over all neighbouring tables of two records with any weights.

    The fit is the production one: reading, clipping and rounding of weights, its plans and its
    exact numbers. Epsilon is 1, and a record counts twice at most; if ``missing``, once or, without
    a target, not at all.
    """
    options = {"temperature": 1.0, "random_state": 0, "privacy_unit": unit}
    options |= {} if missing else {"max_weight": 2}
    model = naive_bayes(mechanism=Laplace(noise="independent"), **options)
    weights = (1,) if missing else (1, 2)
    kinds = [(*cell, weight) for cell in product((0, 1), (0, 1)) for weight in weights]
    kinds += [] if missing else [(0, 0, weight) for weight in (0, -1, math.nan, 7)]
    kinds += [(1, label, 2) for label in (math.nan, 9)]  # records without a target are left out
    tables = [*product(kinds, kinds), *((kind,) for kind in kinds if unit.size_is_secret)]
    released = {table: _released(model, table) for table in tables}
    worst = Fraction(0)
    for one, two, other in product(kinds, kinds, kinds):
        here = released[one, two]
        there = released[(one,) if unit.size_is_secret else (one, other)]
        if len(here) != 2 - missing or [law for law, _ in here] != [law for law, _ in there]:
            return Fraction(10**9)  # the total is not released, or the noise depends on a record
        pairs = zip(here, there, strict=True)
        worst = max(worst, sum((law.privacy_loss(a - b) for (law, a), (_, b) in pairs), Fraction()))
    return worst


def _released(model: Any, table: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Return the law of the noise and the exact numbers of every step of a fit."""
    x, y, w = (np.array(column, float) for column in zip(*table, strict=True))
    with crossings(_law_and_numbers) as steps:
        clone(model).fit(
            x[:, None], y, **({} if model.max_weight is None else {"sample_weight": w})
        )
    return steps


def _law_and_numbers(plan: Any, statistics: Any, noise: Any) -> tuple[Any, Any]:
    numbers = getattr(statistics, "tables", None)
    if numbers is None:
        return plan.law, np.array([statistics.n], np.int64)
    return plan.tables.law, np.concatenate([*map(np.ravel, numbers)]).astype(np.int64)


def _weighted_regression() -> Iterator[str]:
    """See that a record, whatever its weight, is as many copies as noise is calibrated to."""
    rng = np.random.default_rng(0)
    X, y, odd = rng.random((30, 1)), rng.random(30), (0.0, 2.6, -1.0, 50.0, math.nan, math.inf)
    for weight, unit in product(odd, (RECORD, ADDED)):
        model = line(max_weight=3, privacy_unit=unit, random_state=0)
        given = [
            model._read(X, y, sample_weight=np.r_[first, np.full(29, 1.4)]).statistics.records
            for first in (weight, 0.0)
        ]
        copies = [{*zip(r.table.column(0).tolist(), r.target.tolist(), strict=True)} for r in given]
        more = given[0].n - given[1].n
        if len(copies[0] - copies[1]) > 1 or not 0 <= more <= model._unit.n_changed == 3:
            yield f"a weight of {weight} adds {more} records"
        if Fraction(model._budget().epsilon) * (1 if unit.size_is_secret else 2) != 1:
            yield f"{unit.label}: a record that is replaced is thought to be one that comes"


def replays_of_units() -> list[Case]:
    """Replay a record, and a person, that is there or not, or is another one."""
    models = [
        naive_bayes(n_bins="auto"),
        naive_bayes(n_bins="auto", mechanism="sampler", temperature=1.0),
        line(),
        BetaBinomial(),
        DirichletMultinomial(categories=2),
    ]
    positions = (_evidence_by_position, _predictions_by_position)
    return [*_replays(models, _pairs), *cases_of(_split_persons, _similar_labels, *positions)]


def _replays(models: list[Any], pairs: Any) -> list[Case]:
    """Return a case for every model and unit, of the neighbours that a function makes."""
    return [
        Case(f"{model}, {unit.label}", partial(_replayed, model, unit, pairs))
        for model, unit in product(models, UNITS)
    ]


def _replayed(model: Any, unit: PrivacyUnit, pairs: Any) -> Iterator[str]:
    ledger = BudgetAccountant(delta=1)  # each is about one unit
    estimator = clone(model).set_params(accountant=ledger, privacy_unit=unit)
    for (X, y, groups), (X2, y2, groups2) in pairs(model, unit):
        found = replay(estimator, X, y, X2, y2, groups=groups, groups2=groups2, freeze=DRAWS)
        yield from (f"{model}, {unit.label}: {what}" for what in found.divergences)
        if found.status != "fitted":
            yield f"{model}, {unit.label}: {found.status}"


def _pairs(model: Any, unit: PrivacyUnit) -> Iterator[tuple[Any, Any]]:
    """Yield neighbours: without a person of five, one without a label, the first, a target."""
    n = _where_bins_change()
    rng = np.random.default_rng(n)
    who = np.repeat(np.arange(n), rng.integers(1, 5, n))[:n].astype(float)
    who[-5:] = np.nan
    who[10:15] = who[10]
    X, y = rng.random((n, 3)), rng.integers(0, 2, n)
    one_column = not hasattr(model, "bounds") and not hasattr(model, "bounds_X")
    gone = [who == who[10], np.isnan(who)] if unit.name == "person" else [np.arange(n) == 0]
    for own in gone:
        X2, y2, who2 = X.copy(), y.copy(), who
        X2[own], y2[own] = 1.0, 1
        if unit.size_is_secret:
            X2, y2, who2 = X[~own], y[~own], who[~own]
        data = (X, y, who), (X2, y2, who2)
        whose = unit.name == "person"
        yield tuple(
            ((y_, None) if one_column else (X_, y_)) + ((w if whose else None),)
            for X_, y_, w in data
        )
    if not one_column:  # somebody whose target is missing, and somebody who has one
        y2 = y.astype(float)
        y2[gone[0]] = np.nan
        groups = (who if unit.name == "person" else None,)
        yield (X, y.astype(float), *groups), (X, y2, *groups)


def _where_bins_change() -> int:
    """Return a number of records from which one less would make other bins."""
    n = 700
    while _number_of_bins(n - 1) == _number_of_bins(n):
        n += 1
    return n


def _number_of_bins(n: int) -> Any:
    return Bins("auto", n, 3, 1.0, False, 2).cut(Interval(0.0, 1.0), 0, "numbers")


def _split_persons() -> Iterator[str]:
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(100), 2)
    model = naive_bayes(n_bins="auto", privacy_unit=PERSON)
    search = PrivateSearchCV(model, {"alpha": [1.0]}, random_state=0)
    records = search._records(rng.random((200, 2)), rng.integers(0, 2, 200), reset=True)
    split, _ = search._protected(records, who)
    train = split.train[2].tolist()
    if any(train.count(person) != 2 for person in train):
        yield "a person is fitted to and held out"


def _similar_labels() -> Iterator[str]:
    """Which records of a person count does not depend on somebody with a similar label."""
    for name in ("ann", "bob", "eve"):
        both = np.array([name + "\0", *[name] * 4], dtype=object)
        if len(counted_records(both, 1)) != 2:
            yield f"the label {name!r} is taken for a similar one"


def _evidence_by_position() -> Iterator[str]:
    """See that the loss of a record is the same, bit by bit, whatever other records there are."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (203, 13)), rng.integers(0, 2, 203)
    model = naive_bayes(temperature=1).fit(X, y)
    codes = X.astype(np.uint8)

    def evidence(rows: Any) -> Any:
        return model.posterior_.evidence((0.0,))(rows)[1][0.0]

    alone = np.concatenate([evidence(codes[i : i + 1]) for i in range(len(codes))])
    if not np.array_equal(evidence(codes), alone):
        yield "the loss of a record depends on its position"


def _predictions_by_position() -> Iterator[str]:
    """See that what a search scores is the same, bit by bit, wherever a record stands."""
    rng = np.random.default_rng(3)
    terms, _ = predict.exact_in_sums(rng.normal(size=(40, 2)), np.arange(40), np.zeros(2))
    x = rng.integers(0, 2, (50, 40)) == 1
    if any(float(row[of].sum()) != math.fsum(row[of][::-1]) for row in terms.T for of in x):
        yield "sums of evidence depend on the order of adding"
    Z = rng.random((400, 13))
    model = line(bounds_y=(0, 13)).fit(Z, Z.sum(axis=1))
    alone = [points(model, Z[i : i + 1], Z[i : i + 1].sum(axis=1)) for i in range(len(Z))]
    means = [model._predict_by_row(Z[i : i + 1]) for i in range(len(Z))]
    if not np.array_equal(model._predict_by_row(Z), np.concatenate(means)):
        yield "the prediction that a search scores depends on the position of a record"
    if not np.array_equal(points(model, Z, Z.sum(axis=1)), np.concatenate(alone)):
        yield "the points of a record depend on its position"


COLUMNS = ("a", "b", "c")


def replays_of_preparation() -> list[Case]:
    """Replay the same for transformers, a choice of columns and a learned schema."""
    schema = Schema({name: Interval(0, 1, bins=2) for name in COLUMNS}, Categories([0, 1]))
    models = [
        scalers.PrivateMinMaxScaler(),
        scalers.PrivateStandardScaler(),
        scalers.PrivateKBinsDiscretizer(4),
        scalers.PrivateKBinsDiscretizer(4, strategy="uniform"),
        PrivateSelectKBest(1, schema=schema),
        PrivateSelectKBest("auto", schema=schema),
        PrivateTree(schema=schema),
        FrameDomains(2000.0, bins=None, delta=1e-3),
        FrameDomains(2000.0, bins=4, delta=1e-3),
    ]
    return _replays(models, _frames)


def _frames(model: Any, unit: PrivacyUnit) -> Iterator[tuple[Any, Any]]:
    """Yield neighbours: with somebody like nobody else, and with nobody else at all."""
    # columns depend on each other within a class only if all have the same label
    label, texts = 0 if isinstance(model, PrivateTree) else 1, isinstance(model, FrameDomains)
    for n in (60, unit.max_records):
        who = np.arange(n, dtype=float)
        own = np.zeros(n, bool)
        own[:5] = True if unit.name == "person" else [True, *[False] * 4][: min(n, 5)]
        who[own] = 0.0  # of a person with five records only two count
        X, y = np.zeros((n, 3)), np.zeros(n, int)
        X[own], y[own] = 1.0, label  # a dependence that nobody else shows
        frame = pd.DataFrame(X, columns=[*COLUMNS])
        if texts:
            frame["word"] = np.where(own, "rare", "common")
        other = frame.copy(), y.copy(), who
        other[0].loc[own], other[1][own] = frame.iloc[-1].to_numpy(), 0
        if unit.size_is_secret:
            other = frame[~own], y[~own], who[~own]
        whose = unit.name == "person"
        yield tuple((X_, y_, w if whose else None) for X_, y_, w in ((frame, y, who), other))
