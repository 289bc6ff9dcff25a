"""The order of records: which are asked, and what becomes of neighbours that are sorted again."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from benchmarks.audit._cases import Row
from benchmarks.audit._listed import listed_anew, sorted_tables
from benchmarks.audit._order import RUNS, places
from dpbayes_sklearn._messages import progress

__all__ = ["run"]

FITS, PAIRS = 400, 100


def run(scale: float) -> Iterator[Row]:
    """Try all cases; one row for each."""
    fits, pairs = max(RUNS, ceil(scale * FITS)), ceil(scale * PAIRS)
    for case in progress([*places(fits), *sorted_tables(), *listed_anew(pairs)], "order"):
        found = next(case.findings(), None)
        yield Row(
            "order", case.name[:58], (found or "nothing found")[:58], "nothing", found is None
        )
