"""Bugs in the reading of lists of rows, which have neither a type nor a shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.base import supervised
from dpbayes_sklearn.model_selection import rehearsal, search
from dpbayes_sklearn.schema import values
from dpbayes_sklearn.schema.values import as_cells

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "rows of lists",
    "rehearsals",
    "A search splits a list as it is, and every part says how many columns there are",
    "lists of rows",
)
def parts_of_lists() -> Replacements:
    real = rehearsal._one_row

    def one_row(X: Any) -> Any:
        if not isinstance(X, list):
            return real(X)
        return np.zeros((1, *as_cells(X, 2).shape[1:]), object).tolist()

    yield rehearsal, "_one_row", one_row
    yield search, "in_memory", lambda X, *_: X


@fault(
    "rows of lists",
    "containers of groups",
    "Most rows of a list say how many columns there are, though that is declared",
    "lists of rows",
)
def width_by_majority() -> Replacements:
    yield supervised, "width_of_rows", lambda *_: None


@fault(
    "rows of lists",
    "containers of groups",
    "Every row of a list is unpacked, however long it says it is",
    "long rows",
)
def unpacked_rows() -> Replacements:
    def row(value: Any, width: int) -> Any:
        cells = [] if value is None else [*value]
        return cells if len(cells) == width else [None] * width

    yield values, "_row", row
