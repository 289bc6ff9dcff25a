"""Rehearsals of private searches: before the charge, and in errors after it, nothing of a record.

Two data sets of the same public facts, all of whose values differ, must lead to the same releases,
errors, warnings and log lines up to the charge, if the source of noise repeats itself.
"""

from __future__ import annotations

import logging
import os
import pickle
import random
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from benchmarks.audit._cases import Case, cases_of
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    PrivateSearchCV,
    Schema,
)
from dpbayes_sklearn.audit.fuzzing import Ear
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer, PrivateMinMaxScaler
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import boundary

N = 60
SECRET = 4711
BITS: dict[str, Any] = dict.fromkeys("abcd", Interval(0, 1, bins=2))
TARGET = Categories([0, 1])
UNITS: dict[str, dict[str, Any]] = {
    "records": {},
    "a secret number of records": {"privacy_unit": PrivacyUnit("record", neighbours="add_remove")},
    "persons": {"privacy_unit": PrivacyUnit("person", max_records=2)},
}


def rehearsals() -> list[Case]:
    """Search, and look at what happens before the charge."""
    cases = [
        Case(f"before the charge: {name}, {unit}", partial(_before_the_charge, name, unit))
        for name in _searched({})
        for unit in UNITS
    ]
    return [*cases_of(_errors_of_later_steps, _errors_of_runs, _lists_of_rows), *cases]


def _bayes(**options: Any) -> BayesianNaiveBayes:
    declared: dict[str, Any] = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2, "temperature": 1}
    return BayesianNaiveBayes(0.5, inference="plug_in", **{**declared, **options})


def _select(k: int, **whom: Any) -> PrivateSelectKBest:
    return PrivateSelectKBest(k, epsilon=0.5, schema=Schema(BITS, target=TARGET), **whom)


def _searched(whom: dict[str, Any]) -> dict[str, Any]:
    """Return what is searched over."""
    line = {"bounds_X": (0, 1), "bounds_y": (0, 1), "inference": "plug_in", **whom}
    return {
        "a classifier": _bayes(**whom),
        "a regression": BayesianLinearRegression(**line),
        "a selection": make_pipeline(_select(2, **whom), _bayes(**whom)),
        "bins": make_pipeline(PrivateKBinsDiscretizer(2, epsilon=0.5, **whom), _bayes(**whom)),
    }


def _telling(column: str, y: Any) -> pd.DataFrame:
    """Return records of which one column is the class, so that it is selected."""
    rng = np.random.default_rng(ord(column))
    return pd.DataFrame({c: y if c == column else rng.integers(0, 2, len(y)) for c in "abcd"})


class _Charged(Exception):
    """The search would be charged now."""


class _Stop(BudgetAccountant):
    """A ledger at which a search ends."""

    def spend(self, *_: Any, **__: Any) -> Any:
        raise _Charged


def _before_the_charge(name: str, unit: str) -> Iterator[str]:
    """Compare all that two data sets lead to before the charge."""
    whom = UNITS[unit]
    secret = PrivacyUnit.of(whom.get("privacy_unit", "record")).size_is_secret
    n = N - 7 if secret else N  # of the second
    first = _up_to_the_charge(_searched(whom)[name], "a", np.arange(N) % 2)
    second = _up_to_the_charge(_searched(whom)[name], "c", np.arange(n) < n // 2)
    if first[0] != second[0]:
        yield f"{name}, {unit}: what is released before the charge depends on the records"
    if first[1:] != second[1:]:
        yield f"{name}, {unit}: what is said before the charge depends on the records"


def _up_to_the_charge(estimator: Any, column: str, y: Any) -> tuple[Any, ...]:
    """Return what is released, said and raised before the charge."""
    released: list[bytes] = []
    ear, logger = Ear(), logging.getLogger("dpbayes_sklearn")

    def noted(release: Any, *given: Any) -> Any:
        released.append(pickle.dumps(given[:2]))
        return release(*given)

    y = y.astype(int)
    groups = np.arange(len(y)) // 2 if _unit_of(estimator) == "person" else None
    search = PrivateSearchCV(estimator, {}, epsilon=3.0, accountant=_Stop(), random_state=0)
    said = ""
    logger.addHandler(ear)
    with (
        warnings.catch_warnings(record=True) as caught,
        boundary(noted),
        planted((os, "urandom", random.Random(0).randbytes)),
    ):
        warnings.simplefilter("always")
        try:
            search.fit(_telling(column, y), y, groups)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    logger.removeHandler(ear)
    return released, said, [str(warning.message) for warning in caught], ear.heard


def _unit_of(estimator: Any) -> str:
    """Return the name of what a model, or the last step of a pipeline, protects."""
    steps = getattr(estimator, "steps", [("", estimator)])
    return PrivacyUnit.of(steps[-1][1].privacy_unit).name


def _errors_of_later_steps() -> Iterator[str]:
    """See that a step that cannot take a selection is refused unpaid, whatever is selected."""
    y = np.arange(N) % 2
    for columns in ("abcd", "ab", "d"):
        said = set()
        for column in "abcd" * 2:
            ledger = BudgetAccountant()
            schema = Schema({c: BITS[c] for c in columns}, target=TARGET)
            later = _bayes(schema=schema, bounds=None, classes=None)
            search = PrivateSearchCV(
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
    "nobody": ("a secret number of records", [], 1),
    "few": ("a secret number of records", ROWS, 40),
    "an odd row alone": ("a secret number of records", [None], 10),
    "a short row": ("records", [*ROWS, [1]], 15),
    "no row": ("records", [*ROWS, None], 15),
    "odd rows only": ("records", [[1], [2], None], 2),
}


def _lists_of_rows() -> Iterator[str]:
    """See that a search takes every list, whoever is held out, if the columns are declared."""
    for name, (unit, rows, trials) in LISTS.items():
        for _ in range(trials):
            search = PrivateSearchCV(
                _bayes(bounds=EACH, **UNITS[unit]), {}, runs_per_candidate=1, test_size=0.3
            )
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
    y, ledger = np.arange(N) % 2, BudgetAccountant()
    X = _telling("a", y).assign(d=SECRET)
    try:
        PrivateSearchCV(make_pipeline(_Fussy(0.5), _bayes()), {}, accountant=ledger).fit(X, y)
    except Exception as error:
        chain = [error, error.__cause__, error.__context__]
        if any(f"{SECRET}" in str(part) for part in chain):
            yield "the error of a run shows a value"
        if not len(ledger):
            yield "a search that was not charged tells something about values"
