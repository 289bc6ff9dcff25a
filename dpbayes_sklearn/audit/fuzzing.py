"""Fit estimators to unusual values and parameters, and record their errors and warnings."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn.audit.catalogue import Case
from dpbayes_sklearn.audit.containers import framed
from dpbayes_sklearn.audit.odd_values import NUMBERS, OBJECTS, everything_said, spiked
from dpbayes_sklearn.privacy import BudgetAccountant

__all__ = ["BAD_PARAMETERS", "Ear", "Outcome", "bad_shapes", "fit_with", "odd_records"]

BAD_PARAMETERS: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 0.0, -0.5, math.nan, math.inf, -math.inf, 1e-320, 1e308, 1j),
    *("x", "", "0.5", b"x", object(), int, len, ...),
    *(10**400, -(10**400), 2**70, Fraction(-1, 2), Fraction(0), Decimal("1"), np.float32("nan")),
    *([], [math.nan], [[1]], (), (1,), (1, 2, 3), (2, 1), (math.nan, 1), (0, 10**400), ("a", "b")),
    *({}, {"x": [1]}, {1: ["class", 7]}, {0: [0]}, [(0,)], [(0, 1), (1, 0)]),
    *(np.array([]), np.array([np.nan]), np.array(["a"])),
)
"""Values that hardly any parameter takes; which ones it does take is for the estimator to say."""


class Outcome(NamedTuple):
    """What a fit did.

    Attributes
    ----------
    fitted : estimator or None
        None if the fit was refused.
    error : Exception or None
    warned : list of str
    logged : list of str
    spent : int
        Entries in the ledger.
    """

    fitted: Any
    error: Exception | None
    warned: list[str]
    logged: list[str]
    spent: int

    @property
    def said(self) -> str:
        """All texts of the error, its causes, the warnings and the log."""
        error = "" if self.error is None else everything_said(self.error)
        return "\n".join([error, *self.warned, *self.logged])


class Ear(logging.Handler):
    """Remembers what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of a record."""
        self.heard.append(record.getMessage())


def fit_with(estimator: Any, X: Any, y: Any, **parameters: Any) -> Outcome:
    """Fit a copy that charges a ledger of its own; errors and warnings are caught, not raised."""
    ledger = BudgetAccountant(delta=1)
    model = deepcopy(estimator).set_params(accountant=ledger).set_params(**parameters)
    error, ear, logger = None, Ear(), logging.getLogger()
    logger.addHandler(ear)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
    except Exception as raised:
        error = raised
    finally:
        logger.removeHandler(ear)
    fitted = None if error is not None else model
    return Outcome(fitted, error, [str(w.message) for w in caught], ear.heard, len(ledger))


def odd_records(
    case: Case, count: int, rng: np.random.Generator, container: str | None = None
) -> tuple[Any, Any]:
    """Return the records of a case with ``count`` odd values in them, in a container.

    One of `FRAMES`, where it is named; otherwise a list or an array.
    """
    odd = NUMBERS if container is not None or rng.random() < 0.3 else OBJECTS
    if container is not None and rng.random() < 0.3:
        odd, container = OBJECTS, "pandas"
    if case.y is None:
        container = "pandas" if container == "dask" else container
        return _contained(spiked(case.X, odd, count, rng), rng, container), None
    in_y = count // 4
    X, y = spiked(case.X, odd, count - in_y, rng), spiked(case.y, odd, in_y, rng)
    return _contained(X, rng, container), _contained(y, rng, container)


def _contained(values: Any, rng: np.random.Generator, container: str | None) -> Any:
    if container is not None:
        return framed(container, values)
    kind = rng.integers(4)
    if kind == 0:
        return values.tolist()
    if kind == 1:
        return np.asfortranarray(values)
    if kind == 2 and values.ndim == 2:
        return [tuple(row) for row in values]
    return values


def bad_shapes(case: Case) -> Iterator[tuple[Any, Any]]:
    """Yield records whose shapes no estimator takes, whatever is in them."""
    X, y = case.X, case.y
    columns = X.reshape(len(X), -1)
    yield from ((X[:0], y if y is None else y[:0]), (X[None, None], y), (np.float64(1.0), y))
    yield from ((columns[:, :0], y), (None, y), (columns[:, :, None, None], y))
    if y is not None:
        yield from ((X, y[:-1]), (X[:-1], y), (X, None), (X, np.column_stack([y, y])), (X, y[:0]))
