"""Bugs in reading cells that a container changes, or cannot convert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.data import dask, persons
from dpbayes_sklearn.schema import values
from dpbayes_sklearn.schema.values import kind_of

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


@fault(
    "cells",
    GROUPS,
    "Of texts that dask has made of a partition only those of numbers are read again",
    "partitions: dates",
)
def dates_stay_texts() -> Replacements:
    def numbers_alone(dtype: Any) -> Any:
        return real(dtype) if kind_of(dtype) in {"integers", "numbers"} else None

    real = dask.reader_of
    yield dask, "reader_of", numbers_alone


@fault(
    "cells",
    GROUPS,
    "Texts that dask has made of a column of X stay texts",
    "partitions: integers, frames",
)
def features_stay_texts() -> Replacements:
    real = dask.as_declared
    yield dask, "as_declared", lambda x, readers: x if x.ndim == 2 else real(x, readers)


@fault(
    "cells",
    GROUPS,
    "Texts that dask has made of blocks of an array stay texts",
    "partitions: integers, arrays",
)
def blocks_stay_texts() -> Replacements:
    real = dask.as_declared
    yield dask, "as_declared", lambda x, readers: real(x, readers) if hasattr(x, "iloc") else x


@fault(
    "cells",
    GROUPS,
    "Persons are told apart by the texts of their labels, which equal labels may have several of",
    "equal labels",
)
def persons_by_texts() -> Replacements:
    def text(label: Any) -> str | None:
        form = real(label)
        return None if form is None else f"{type(label).__name__}:{label!s}"

    real = persons.canonical
    yield persons, "canonical", text


@fault(
    "cells",
    GROUPS,
    "An object that is no label is a person of its own, by its address",
    "labels that are none",
)
def persons_by_addresses() -> Replacements:
    real = persons.canonical
    yield persons, "canonical", lambda label: real(label) or (label is not None and id(label))
