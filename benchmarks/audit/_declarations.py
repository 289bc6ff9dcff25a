"""What is not declared: refused, warned of by name, and a condition of the promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes
from dpbayes_sklearn.audit.fuzzing import Outcome, fit_with
from dpbayes_sklearn.counts.temperature import LabelledCounts
from dpbayes_sklearn.release import boundary

__all__ = ["declarations", "statistics_of"]

N = 300
NAMES = [f"patient {i}" for i in range(N)]
CODES = np.arange(N) % 2


def statistics_of(model: Any, X: Any, y: Any) -> Any:
    """Return the exact statistics that a fit hands to its mechanism."""
    seen: list[Any] = []

    def watched(release: Any, plan: Any, statistics: Any, noise: Any) -> Any:
        counted = isinstance(statistics, LabelledCounts)
        seen.append(statistics.counts if counted else statistics)
        return release(plan, statistics, noise)

    with boundary(watched):
        model.fit(X, y)
    return seen[0]


def declarations() -> Iterator[str]:
    """Leave out what should be declared, and declare what cannot be."""
    bayes = BayesianNaiveBayes(classes=[0, 1], n_bins=2)
    frame = pd.DataFrame({"age": CODES.astype(float), "weight": CODES + 0.5, "name": NAMES})
    yield from _must_be_refused("text that is not declared", fit_with(bayes, frame, CODES))
    numbers = fit_with(bayes, frame[["age", "weight"]], CODES)
    if not all(any(name in text for text in numbers.warned) for name in ("age", "weight")):
        yield "a warning does not name the columns that were read from the data"
    if numbers.fitted is None or not numbers.fitted.guarantee_.conditions:
        yield "what was read from the data is no condition of the guarantee"
    unlabelled = BayesianNaiveBayes(bounds=(0, 1), n_bins=2)
    X = CODES[:, None]
    yield from _must_be_refused("names as labels", fit_with(unlabelled, X, NAMES))
    line = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1))
    texts = pd.Series(NAMES, dtype="string")
    yield from _must_be_refused("text as a target", fit_with(line, X, texts))
    yield from _cells_that_are_stored_twice()


def _must_be_refused(what: str, outcome: Outcome) -> Iterator[str]:
    if outcome.error is None:
        yield f"{what}: taken, and {outcome.spent} charges"
    elif outcome.spent:
        yield f"{what}: refused after it was charged"


def _cells_that_are_stored_twice() -> Iterator[str]:
    """Count a sparse matrix that stores a cell twice: their sum is one value of one record."""
    data = np.array([1.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])
    twice, once = csr_array(data, shape=(2, 2)), csr_array(np.array([[2.0, 0.0], [0.0, 1.0]]))
    model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2)
    tables = [statistics_of(model, X, np.array([0, 1])).tables for X in (twice, once)]
    if any(not np.array_equal(a, b) for a, b in zip(*tables, strict=True)):
        yield "a cell that is stored twice counts twice"
