"""Persons, and records that are added or removed: worlds and neighbours of every unit, in short."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.audit._cases import Case, cases_of
from benchmarks.audit._worlds import MATRIX
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BetaBinomial,
    BudgetAccountant,
    DirichletMultinomial,
    PrivateSearchCV,
)
from dpbayes_sklearn.audit import enumerate_delta, enumerate_loss
from dpbayes_sklearn.audit._universes import MomentUniverse
from dpbayes_sklearn.audit.replaying import DRAWS, replay
from dpbayes_sklearn.categories import plans
from dpbayes_sklearn.counts import predict
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.data.persons import counted_records
from dpbayes_sklearn.mechanisms import MAP, Fourier, Laplace, Sampler
from dpbayes_sklearn.model_selection.runs import points
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.release import boundary
from dpbayes_sklearn.schema import Interval
from dpbayes_sklearn.schema.declared import Bins

__all__ = ["replay_pair", "replays_of_units", "unit_worlds", "worst_weighted_loss"]

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
    if not found.within:
        yield f"{mechanism}, {unit.label}: loss {found.loss:g} of {found.claim:g}"
    if exact and found.ratio < 0.99:
        yield f"{mechanism}, {unit.label}: loss {found.loss:g}, where 1 can be reached"


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
