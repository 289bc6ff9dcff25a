"""Private preparation for persons, and for records that are added or removed, in short."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.audit._cases import Case
from benchmarks.audit._units import ADDED, THERE, UNITS, replay_pair
from dpbayes_sklearn import BudgetAccountant, Categories, Interval, Schema
from dpbayes_sklearn.audit import enumerate_loss
from dpbayes_sklearn.audit._universes import ColumnUniverse
from dpbayes_sklearn.audit.deltas import enumerate_texts
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.columns.quantiles import BinEdges, OuterQuantiles, QuantileQuestions
from dpbayes_sklearn.counts.dependence import ColumnChoice, TreeChoice
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["replays_of_preparation", "worlds_of_preparation"]

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
        *(Case(f"{w[0]}, {w[3].label}, {w[1]}", partial(_enumerated, *w)) for w in worlds),
        *(Case(f"texts, {unit.label}", partial(_texts, unit)) for unit in UNITS),
    ]


def _enumerated(
    what: str, structure: Any, n: int, unit: PrivacyUnit, least: float
) -> Iterator[str]:
    found = enumerate_loss(None, structure, n, epsilon=6.0, unit=unit, transcripts=1)
    if not found.within:
        yield f"{what}, {unit.label}: loss {found.loss:g} of {found.claim:g}"
    if found.ratio < least:
        yield f"{what}, {unit.label}: loss {found.loss:g}, where more can be reached"


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
        Case(f"{model}, {unit.label}", partial(_replay, model, unit))
        for model, unit in product(_models(), UNITS)
    ]


def _replay(model: Any, unit: PrivacyUnit) -> Iterator[str]:
    ledger = BudgetAccountant(delta=1)
    estimator = clone(model).set_params(accountant=ledger, privacy_unit=unit)
    own = (0 if isinstance(model, PrivateTree) else 1), isinstance(model, FrameDomains)
    for one, other in _pairs(unit, *own):
        yield from replay_pair(estimator, f"{model}, {unit.label}", one, other)


def _models() -> list[Any]:
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


def _pairs(unit: PrivacyUnit, label: int, texts: bool) -> Iterator[tuple[Any, Any]]:
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
