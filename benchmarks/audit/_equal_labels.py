"""Labels of one person in all forms that containers give them, and objects that are no labels."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from benchmarks.audit._cases import Case, cases_of
from dpbayes_sklearn.data.persons import coins_of, counted_records

__all__ = ["EQUAL", "NO_LABELS", "equal_labels"]

EAST = timezone(timedelta(hours=2))


class Addressed:
    """Has no text but that of its address."""


class Namesake:
    """Has the same text as all others."""

    def __str__(self) -> str:
        return "somebody"


EQUAL: tuple[tuple[Any, ...], ...] = (
    ("ann", np.str_("ann")),
    (b"ann", np.bytes_(b"ann")),
    (1, 1.0, True, np.True_, np.int8(1), np.float16(1), Fraction(1), Decimal("1"), Decimal("1.00")),
    (0.5, np.float32(0.5), np.longdouble(0.5), Fraction(1, 2), Decimal("0.50")),
    (np.inf, np.float32(np.inf), Decimal("Infinity")),
    (
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 2, tzinfo=EAST),
        *(np.datetime64("2020-01-01", unit) for unit in ("Y", "D", "s", "us", "ns")),
    ),
    (timedelta(days=1), np.timedelta64(1, "D"), np.timedelta64(86400, "s")),
    (UUID(int=7), UUID("00000000-0000-0000-0000-000000000007")),
    (("ann", 1), ("ann", 1.0), ("ann", True), ("ann", np.int64(1))),
)
"""Labels of one person each."""

NO_LABELS: tuple[Any, ...] = (
    *(Addressed() for _ in range(3)),
    *(Namesake() for _ in range(3)),
    *(frozenset({1}), [1], {1: 1}, 1j, np.array(1), ("ann", None), ("ann", Addressed()), (("a",),)),
    *(Decimal("1e999999"), Decimal("NaN"), Ellipsis, int),
)
"""Objects that nobody can compare, or that say nothing about a person."""


def equal_labels() -> list[Case]:
    """Return the two cases."""
    return cases_of(_equal_labels, _labels_that_are_none)


def _equal_labels() -> Iterator[str]:
    everybody = [label for person in EQUAL for label in person]
    for person in (*EQUAL, everybody):
        labels = np.fromiter(person, dtype=object, count=len(person))
        n_persons = len(EQUAL) if person is everybody else 1
        if len(counted_records(labels, 1)) != n_persons:
            yield "equal labels are not those of one person"
        if len({*coins_of(labels)}) != n_persons:
            yield "records of a person are on both sides of a search"


def _labels_that_are_none() -> Iterator[str]:
    labels = np.fromiter(NO_LABELS, dtype=object, count=len(NO_LABELS))
    if len(counted_records(labels, 1)):
        yield "an object that is no label counts as a person"
