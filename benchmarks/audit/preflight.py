"""Plans of releases from public facts alone: what is charged is also released.

Estimators, mechanisms, units, schemas, epsilons from 1e-6 to 1e4, deltas and up to 10**9 records
are drawn at random. A plan may be refused with a reason, before anything is charged; one that is
charged must not fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.audit._plans import KINDS, failures, random_plans
from benchmarks.audit._table import Row

PLANS = 200
FEW, MANY = 30, 2000  # columns, or values of one
FEWER = {"regression": 200, "networks": FEW, "trees": FEW}  # whose work grows faster
WIDE = 10


def run(scale: float) -> Iterator[Row]:
    """Try plans of every kind, most of them of few columns."""
    for kind in KINDS:
        yield tried(kind, max(1, round(PLANS * scale)), FEW)
        if (most := FEWER.get(kind, MANY)) > FEW:
            yield tried(kind, max(1, round(WIDE * scale)), most)


def tried(kind: str, number: int, most: int) -> Row:
    """Return how many random plans fail after they were charged."""
    found = [*failures(random_plans(kind, number, most, seed=1))]
    what = f"{number} plans of {kind}, up to {most} columns or values: failed"
    return Row("preflight", what, found[0][:60] if found else "0", "0", not found)
