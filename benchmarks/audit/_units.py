"""Persons, and records that are added or removed: worlds and neighbours of every unit, in short.

Of estimators, of weights, and of private preparation.
"""

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

from benchmarks.audit._cases import Case, beyond, cases_of
from benchmarks.audit._worlds import MATRIX
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.audit import enumerate_delta, enumerate_loss
from dpbayes_sklearn.audit._universes import ColumnUniverse, MomentUniverse
from dpbayes_sklearn.audit.deltas import enumerate_texts
from dpbayes_sklearn.audit.replaying import DRAWS, replay
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.categories import plans
from dpbayes_sklearn.columns.quantiles import BinEdges, OuterQuantiles, QuantileQuestions
from dpbayes_sklearn.counts import predict
from dpbayes_sklearn.counts.dependence import ColumnChoice, TreeChoice
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.data.persons import counted_records
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import MAP, Fourier, Laplace, Sampler
from dpbayes_sklearn.model_selection.runs import points
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.release import boundary
from dpbayes_sklearn.schema.declared import Bins

ADDED, PERSON = PrivacyUnit("record", neighbours="add_remove"), PrivacyUnit("person", max_records=2)
THERE = PrivacyUnit("person", max_records=2, neighbours="add_remove")
UNITS = (ADDED, PERSON, THERE)
STAR, ONE_CLASS = Network.star([2, 2], 2), Network.star([2], 1)
NUMBER = MomentUniverse(Design((Interval(-1, 1),)), levels=2)
SLOPE = MomentUniverse(Design((Interval(-1, 1),), intercept=False), levels=3)


def unit_worlds() -> list[Case]:
    """Enumerate small worlds: a loss of epsilon exactly where theory says so, and never more."""
    tight: tuple[Any, ...] = (
        *((Laplace(noise=noise), STAR) for noise in ("independent", "joint")),
        *((Fourier(noise=noise), STAR) for noise in ("independent", "joint")),
        *((name, 3) for name in ("geometric", "laplace", "laplace_improved")),
    )
    worlds = [(*world, 2, unit, True) for world, unit in product(tight, UNITS)]
    worlds += [(Laplace(noise="independent"), ONE_CLASS, 2, ADDED, True)]
    worlds += [(name, 2, 20, PERSON, False) for name in ("exponential", "hellinger")]
    drawn = (Sampler(n_points=33), MAP(n_points=33))
    worlds += [(m, Network.star([2], 2), 3, unit, False) for m, unit in product(drawn, UNITS)]
    names = ("laplace", "fourier", "sampler")
    worlds += [(name, NUMBER, 2, unit, False) for name, unit in product(names, UNITS)]
    worlds += [("laplace", MATRIX, 1, ADDED, False)]
    gaussian = product((STAR, SLOPE), UNITS)
    return [
        *(Case(_world(*world), partial(_enumerated, *world)) for world in worlds),
        *(Case(_world("gaussian", s, 2, u), partial(_gaussian, s, u)) for s, u in gaussian),
        *(Case(f"weighted tables, {u.label}", partial(_weighted, u)) for u in (RECORD, ADDED)),
        Case("weighted records of a regression", _weighted_regression),
    ]


def _weighted(unit: PrivacyUnit) -> Iterator[str]:
    worst = worst_weighted_loss(unit)
    if not 0.96 <= worst <= 1:
        yield f"weighted tables, {unit.label}: loss {float(worst):g} of 1"


def worst_weighted_loss(unit: PrivacyUnit) -> Fraction:
    """Return the worst loss over all neighbouring tables of two records with any weights.

    The fit is the production one: reading, clipping and rounding of weights, its plans and its
    exact numbers. Epsilon is 1, and a record counts twice at most.
    """
    model = BayesianNaiveBayes(
        bounds=(0, 1), n_bins=2, classes=[0, 1], temperature=1.0, max_weight=2, random_state=0,
        mechanism=Laplace(noise="independent"), privacy_unit=unit,
    )  # fmt: skip
    kinds = [(*cell, weight) for cell in product((0, 1), (0, 1)) for weight in (1, 2)]
    kinds += [(0, 0, weight) for weight in (0, -1, math.nan, 7)]
    kinds += [(1, label, 2) for label in (math.nan, 9)]  # records without a target are left out
    tables = [*product(kinds, kinds), *((kind,) for kind in kinds if unit.size_is_secret)]
    released = {table: _released(model, table) for table in tables}
    worst = Fraction(0)
    for one, two, other in product(kinds, kinds, kinds):
        here = released[one, two]
        there = released[(one,) if unit.size_is_secret else (one, other)]
        if len(here) != 2 or [law for law, _ in here] != [law for law, _ in there]:
            return Fraction(10**9)  # the total is not released, or the noise depends on a record
        pairs = zip(here, there, strict=True)
        worst = max(worst, sum((law.privacy_loss(a - b) for (law, a), (_, b) in pairs), Fraction()))
    return worst


def _released(model: Any, table: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Return the law of the noise and the exact numbers of every step of a fit."""
    steps = []

    def seen(release: Any, plan: Any, statistics: Any, noise: Any) -> Any:
        numbers = getattr(statistics, "tables", None)
        exact = [statistics.n] if numbers is None else np.concatenate([*map(np.ravel, numbers)])
        law = plan.law if numbers is None else plan.tables.law
        steps.append((law, np.array(exact, np.int64)))
        return release(plan, statistics, noise)

    x, y, w = (np.array(column, float) for column in zip(*table, strict=True))
    with boundary(seen):
        clone(model).fit(x[:, None], y, sample_weight=w)
    return steps


def _weighted_regression() -> Iterator[str]:
    """See that a record, whatever its weight, is as many copies as noise is calibrated to."""
    rng = np.random.default_rng(0)
    X, y, odd = rng.random((30, 1)), rng.random(30), (0.0, 2.6, -1.0, 50.0, math.nan, math.inf)
    for weight, unit in product(odd, (RECORD, ADDED)):
        model = BayesianLinearRegression(
            bounds_X=(0, 1), bounds_y=(0, 1), max_weight=3, privacy_unit=unit, random_state=0
        )
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


def _world(mechanism: Any, structure: Any, n: int, unit: PrivacyUnit, *rest: Any) -> str:
    return f"{mechanism}, {unit.label}, {structure}"


def _enumerated(
    mechanism: Any, structure: Any, n: int, unit: PrivacyUnit, exact: bool
) -> Iterator[str]:
    """Compare the loss of a world, with a flag for one that uses up the claim, with it."""
    plans._cached_law.cache_clear()
    found = enumerate_loss(mechanism, structure, n, unit=unit, transcripts=1)
    yield from beyond(f"{mechanism}, {unit.label}", found, 0.99 * exact)


def _gaussian(structure: Any, unit: PrivacyUnit) -> Iterator[str]:
    options: Any = {"epsilon": 1.0, "delta": 1e-3, "unit": unit, "transcripts": 1}
    spent = enumerate_delta("gaussian", structure, 2, **options)
    if not spent.within:
        yield f"gaussian, {unit.label}: delta {spent.delta:g}"


def replays_of_units() -> list[Case]:
    """Replay a record, and a person, that is there or not, or is another one."""
    replays = [
        Case(f"{model}, {unit.label}", partial(_replay, model, unit))
        for model, unit in product(_models(), UNITS)
    ]
    positions = (_evidence_by_position, _predictions_by_position)
    return replays + cases_of(_split_persons, _similar_labels, *positions)


def _replay(model: Any, unit: PrivacyUnit) -> Iterator[str]:
    ledger = BudgetAccountant(delta=1)  # each is about one unit
    estimator = clone(model).set_params(accountant=ledger, privacy_unit=unit)
    for one, other in _pairs(model, unit):
        yield from replay_pair(estimator, f"{model}, {unit.label}", one, other)


def replay_pair(estimator: Any, name: str, one: Any, other: Any) -> Iterator[str]:
    """Replay one pair of neighbours, given as X, y and groups."""
    names = ("X", "y", "groups", "X2", "y2", "groups2")
    data = dict(zip(names, (*one, *other), strict=True))
    found = replay(estimator, **data, freeze=DRAWS)
    yield from (f"{name}: {what}" for what in found.divergences)
    if found.status != "fitted":
        yield f"{name}: {found.status}"


def _models() -> list[Any]:
    discrete: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1]}
    linear: dict[str, Any] = {"bounds_X": (0, 1), "bounds_y": (0, 1)}
    return [
        BayesianNaiveBayes(**discrete),
        BayesianNaiveBayes(mechanism="sampler", temperature=1.0, **discrete),
        BayesianLinearRegression(**linear),
        BetaBinomial(),
        DirichletMultinomial(categories=2),
    ]


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
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], privacy_unit=PERSON)
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
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2, temperature=1).fit(X, y)
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
    line = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 13)).fit(Z, Z.sum(axis=1))
    alone = [points(line, Z[i : i + 1], Z[i : i + 1].sum(axis=1)) for i in range(len(Z))]
    means = [line._predict_by_row(Z[i : i + 1]) for i in range(len(Z))]
    if not np.array_equal(line._predict_by_row(Z), np.concatenate(means)):
        yield "the prediction that a search scores depends on the position of a record"
    if not np.array_equal(points(line, Z, Z.sum(axis=1)), np.concatenate(alone)):
        yield "the points of a record depend on its position"


COIN = Categories([0, 1])
COLUMNS = ("a", "b", "c")


def worlds_of_preparation() -> list[Case]:
    """Enumerate small worlds: no loss above the claim, and near it where theory says so."""
    few = (0.0, 3.0, np.nan)  # so that there can be many records
    median = QuantileQuestions((BinEdges(2),))
    worlds: list[Any] = [
        ("quantiles", ColumnUniverse(median, few), 6 * unit.max_records, unit, 0.9)
        for unit in (ADDED, THERE)
    ]
    for unit in UNITS:
        sides = OuterQuantiles(Fraction(1, 4), Fraction(3, 4), 400, 6.0, None, unit)
        worlds += [
            ("quantiles", ColumnUniverse(QuantileQuestions((sides,)), few), 5, unit, 0.0),
            ("permute_and_flip", ColumnChoice(Network.star([2, 2], 2), 1), 3, unit, 0.0),
            ("permute_and_flip", TreeChoice(Network.star([2, 2, 2], 1)), 2, unit, 0.0),
        ]
    return [
        *(Case(f"{w[0]}, {w[3].label}, {w[1]}", partial(_columns_enumerated, *w)) for w in worlds),
        *(Case(f"texts, {unit.label}", partial(_texts, unit)) for unit in UNITS),
    ]


def _columns_enumerated(
    what: str, structure: Any, n: int, unit: PrivacyUnit, least: float
) -> Iterator[str]:
    found = enumerate_loss(None, structure, n, epsilon=6.0, unit=unit, transcripts=1)
    yield from beyond(f"{what}, {unit.label}", found, least)


def _texts(unit: PrivacyUnit) -> Iterator[str]:
    """Look at the whole law of two texts, with a delta that its noise uses up."""
    k, reach = unit.max_records, unit.max_records + 1
    law = TruncatedLaplace(Fraction(unit.n_changed, 4), reach)
    delta = float(law.beyond(k)) * unit.n_changed / k * (1 + 1e-9)
    found = enumerate_texts(("a", "b"), 2 * reach + 2, epsilon=4.0, delta=delta, unit=unit)
    if not 0.5 * found.claim < found.delta <= found.claim:
        yield f"texts, {unit.label}: delta {found.delta:g} of {found.claim:g}"


def replays_of_preparation() -> list[Case]:
    """Replay a record, and a person, that is there or not, or is another one."""
    return [
        Case(f"{model}, {unit.label}", partial(_replay_preparation, model, unit))
        for model, unit in product(_transformers(), UNITS)
    ]


def _replay_preparation(model: Any, unit: PrivacyUnit) -> Iterator[str]:
    ledger = BudgetAccountant(delta=1)
    estimator = clone(model).set_params(accountant=ledger, privacy_unit=unit)
    own = (0 if isinstance(model, PrivateTree) else 1), isinstance(model, FrameDomains)
    for one, other in _frames(unit, *own):
        yield from replay_pair(estimator, f"{model}, {unit.label}", one, other)


def _transformers() -> list[Any]:
    schema = Schema({name: Interval(0, 1, bins=2) for name in COLUMNS}, COIN)
    return [
        PrivateMinMaxScaler(),
        PrivateStandardScaler(),
        PrivateKBinsDiscretizer(4),
        PrivateKBinsDiscretizer(4, strategy="uniform"),
        PrivateSelectKBest(1, schema=schema),
        PrivateSelectKBest("auto", schema=schema),
        PrivateTree(schema=schema),
        FrameDomains(2000.0, bins=None, delta=1e-3),
        FrameDomains(2000.0, bins=4, delta=1e-3),
    ]


def _frames(unit: PrivacyUnit, label: int, texts: bool) -> Iterator[tuple[Any, Any]]:
    """Yield neighbours: with somebody like nobody else, and with nobody else at all.

    Columns depend on each other within a class only if all have the same ``label``.
    """
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
