"""A layer of the audit as a list of cases: what each is about, and what it finds wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["Case", "cases_of", "first_finding"]


class Case(NamedTuple):
    """One thing that a layer looks at, apart from all others."""

    name: str
    findings: Callable[[], Iterator[str]]


def cases_of(*functions: Callable[[], Iterator[str]]) -> list[Case]:
    """Return a case for each function, with its name."""
    return [Case(f.__name__.strip("_").replace("_", " "), f) for f in functions]


def first_finding(cases: Sequence[Case], first: str = "") -> str | None:
    """Return the first thing found wrong, or None; cases named like ``first`` come first."""
    for case in sorted(cases, key=lambda case: first not in case.name):
        for finding in case.findings():
            return finding
    return None
