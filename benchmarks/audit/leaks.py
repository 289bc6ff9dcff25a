"""Canaries in the data: none may turn up in what is raised, warned, kept or shown.

Every estimator and mechanism is fitted to records with odd values that carry a mark, with all
domains declared (which must work) and with none (which may be refused). Messages, causes, contexts
and warnings are searched for the mark; fitted objects are walked for it and for their own exact
statistics, with their pickle, repr, HTML and JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from benchmarks.audit._cases import Row
from dpbayes_sklearn import BetaBinomial
from dpbayes_sklearn.audit.catalogue import Case, every_case
from dpbayes_sklearn.audit.fuzzing import MARK, fit_with, odd_records
from dpbayes_sklearn.audit.leaks import leaks

UNDECLARED: dict[str, Any] = {
    "bounds": None,
    "bounds_X": None,
    "bounds_y": None,
    "classes": None,
    "categories": None,
}
SECRETS = {"mark": MARK, "number": float(MARK), "other number": -float(MARK) - 0.5}


def undeclared(case: Case) -> Any:
    known = case.estimator.get_params(deep=False)
    return deepcopy(case.estimator).set_params(
        **{k: v for k, v in UNDECLARED.items() if k in known}
    )


def exact(case: Case) -> dict[str, Any]:
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
    yield Row("leaks", what, f"{said} hits", "0", said == 0)
    yield Row(
        "leaks",
        "canaries in fitted objects, pickle, repr, HTML, JSON",
        f"{kept} hits",
        "0",
        kept == 0,
    )
    found = 0
    cases = [*every_case(n=60, epsilon=0.05)]
    for case in cases:
        found += len(leaks(deepcopy(case.estimator).fit(case.X, case.y), exact(case)))
    what = f"records in {len(cases)} fitted objects, pickle, repr, HTML, JSON"
    yield Row("leaks", what, f"{found} hits", "0", found == 0)
