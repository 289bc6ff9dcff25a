"""Bugs in reading cells that a container changes, or cannot convert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.schema import values

Replacements = Iterator[tuple[Any, str, Any]]
GROUPS = "containers of groups"


@fault("cells", GROUPS, "One cell that has no form in Python stops a fit", "cells: arrow timestamp")
def columns_converted_as_a_whole() -> Replacements:
    yield values, "_listed", lambda column, name: getattr(column, name)()


@fault(
    "cells", GROUPS, "One cell that has no form in Python makes all missing", "cells: arrow date"
)
def columns_given_up() -> Replacements:
    def all_or_nothing(column: Any, name: str) -> Any:
        try:
            return getattr(column, name)()
        except Exception:
            return [None] * len(column)

    yield values, "_listed", all_or_nothing
