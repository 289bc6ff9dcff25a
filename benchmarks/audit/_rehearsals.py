"""Rehearsals of private searches: before the charge, and in errors after it, nothing of a record.

Two data sets of the same public facts, all of whose values differ, must lead to the same releases,
errors, warnings and log lines up to the charge, if the source of noise repeats itself.
"""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Case, cases_of, crossings
from benchmarks.audit._models import ADDED, PERSON, RECORD, line, naive_bayes
from benchmarks.audit.tools.fuzzing import heard
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateMinMaxScaler
from dpbayes_sklearn.privacy.budget import PrivacyUnit

N = 60
SECRET = 4711
BITS: dict[str, Any] = dict.fromkeys("abcd", dp.Interval(0, 1, bins=2))
TARGET = dp.Categories([0, 1])
WHOM = {"records": RECORD, "a secret number of records": ADDED, "persons": PERSON}


def rehearsals() -> list[Case]:
    """Search, and look at what happens before the charge."""
    cases = [
        Case(f"before the charge: {name}, {unit}", partial(_before_the_charge, name, unit))
        for name in _searched(RECORD)
        for unit in WHOM
    ]
    return [*cases_of(_errors_of_later_steps, _errors_of_runs, _lists_of_rows), *cases]


def _bayes(**options: Any) -> dp.BayesianNaiveBayes:
    return naive_bayes(0.5, inference="plug_in", **{"temperature": 1, **options})


def _select(k: int, **whom: Any) -> PrivateSelectKBest:
    return PrivateSelectKBest(k, epsilon=0.5, schema=dp.Schema(BITS, target=TARGET), **whom)


def _searched(unit: PrivacyUnit) -> dict[str, Any]:
    """Return what is searched over."""
    whom: dict[str, Any] = {"privacy_unit": unit}
    return {
        "a classifier": _bayes(**whom),
        "a regression": line(inference="plug_in", **whom),
        "a selection": make_pipeline(_select(2, **whom), _bayes(**whom)),
        "bins": make_pipeline(PrivateKBinsDiscretizer(2, epsilon=0.5, **whom), _bayes(**whom)),
    }


def _telling(column: str, y: Any) -> pd.DataFrame:
    """Return records of which one column is the class, so that it is selected."""
    rng = np.random.default_rng(ord(column))
    return pd.DataFrame({c: y if c == column else rng.integers(0, 2, len(y)) for c in "abcd"})


class _Charged(Exception):
    """The search would be charged now."""


class _Stop(dp.BudgetAccountant):
    """A ledger at which a search ends."""

    def spend(self, *_: Any, **__: Any) -> Any:
        raise _Charged


def _before_the_charge(name: str, unit: str) -> Iterator[str]:
    """Compare all that two data sets lead to before the charge."""
    whom = WHOM[unit]
    n = N - 7 if whom.size_is_secret else N  # of the second
    first = _up_to_the_charge(name, whom, "a", np.arange(N) % 2)
    second = _up_to_the_charge(name, whom, "c", np.arange(n) < n // 2)
    if first[0] != second[0]:
        yield f"{name}, {unit}: what is released before the charge depends on the records"
    if first[1:] != second[1:]:
        yield f"{name}, {unit}: what is said before the charge depends on the records"


def _up_to_the_charge(name: str, unit: PrivacyUnit, column: str, y: Any) -> tuple[Any, ...]:
    """Return what is released, said and raised before the charge."""
    y, error = y.astype(int), ""
    groups = np.arange(len(y)) // 2 if unit.name == "person" else None
    model = _searched(unit)[name]
    search = dp.PrivateSearchCV(model, {}, epsilon=3.0, accountant=_Stop(), random_state=0)
    repeated = planted((os, "urandom", random.Random(0).randbytes))
    with heard() as (caught, logged), crossings(_pickled) as released, repeated:
        try:
            search.fit(_telling(column, y), y, groups)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    return released, error, [str(warning.message) for warning in caught], logged


def _pickled(plan: Any, statistics: Any, noise: Any) -> bytes:
    return pickle.dumps((plan, statistics))


def _errors_of_later_steps() -> Iterator[str]:
    """See that a step that cannot take a selection is refused unpaid, whatever is selected."""
    y = np.arange(N) % 2
    for columns in ("abcd", "ab", "d"):
        said = set()
        for column in "abcd" * 2:
            ledger = dp.BudgetAccountant()
            schema = dp.Schema({c: BITS[c] for c in columns}, target=TARGET)
            later = _bayes(schema=schema, bounds=None, classes=None)
            search = dp.PrivateSearchCV(
                make_pipeline(_select(2), later), {}, epsilon=60.0, accountant=ledger
            )
            try:
                search.fit(_telling(column, y), y)
            except (ValueError, RuntimeError) as error:
                said.add((str(error), len(ledger)))
            else:
                said.add(("fitted", len(ledger)))
        if len(said) > 1:
            yield f"the error of a step that needs {columns} tells what was selected"
        if any(charged for what, charged in said if what != "fitted"):
            yield f"a step that needs {columns} is refused after the charge"


ROWS = [[0, 1, 1, 0], [1, 0, 1, 1]]
EACH = ([0] * 4, [1] * 4)
LISTS: dict[str, tuple[Any, ...]] = {  # unit, rows, trials
    "nobody": (ADDED, [], 1),
    "few": (ADDED, ROWS, 40),
    "an odd row alone": (ADDED, [None], 10),
    "a short row": (RECORD, [*ROWS, [1]], 15),
    "no row": (RECORD, [*ROWS, None], 15),
    "odd rows only": (RECORD, [[1], [2], None], 2),
}


def _lists_of_rows() -> Iterator[str]:
    """See that a search takes every list, whoever is held out, if the columns are declared."""
    for name, (unit, rows, trials) in LISTS.items():
        for _ in range(trials):
            model = _bayes(bounds=EACH, privacy_unit=unit)
            search = dp.PrivateSearchCV(model, {}, runs_per_candidate=1, test_size=0.3)
            try:
                search.fit(rows, [0] * len(rows))
            except Exception as error:
                yield f"{name}: a list stops a search: {type(error).__name__}"
                break


class _Fussy(PrivateMinMaxScaler):
    """A step made by a user, whose error shows a value."""

    def transform(self, X: Any) -> Any:
        """Refuse large values."""
        largest = np.asarray(X).max()
        if largest > 1:
            raise ValueError(f"{largest} is too large")
        return super().transform(X)


def _errors_of_runs() -> Iterator[str]:
    """See that an error that depends on values comes after the charge, and shows none of them."""
    y, ledger = np.arange(N) % 2, dp.BudgetAccountant()
    X = _telling("a", y).assign(d=SECRET)
    try:
        dp.PrivateSearchCV(make_pipeline(_Fussy(0.5), _bayes()), {}, accountant=ledger).fit(X, y)
    except Exception as error:
        chain = [error, error.__cause__, error.__context__]
        if any(f"{SECRET}" in str(part) for part in chain):
            yield "the error of a run shows a value"
        if not len(ledger):
            yield "a search that was not charged tells something about values"
