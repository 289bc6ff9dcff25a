"""Parts of every release, added up from what was drawn, as a share of what was charged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.audit._forced_parts import parts
from benchmarks.audit._part_worlds import worlds
from benchmarks.audit._parts import reached
from benchmarks.audit._table import Row
from dpbayes_sklearn._messages import progress

__all__ = ["run"]


def run(scale: float) -> Iterator[Row]:
    """Compare all worlds, or some, with their claims; then look at those with forced answers."""
    every = max(1, round(1 / scale))
    found = defaultdict[str, list[float]](list)
    for world in progress(worlds()[::every], "worlds"):
        found[world.name.partition(",")[0]].append(reached(world))
    for kind, drawn in found.items():
        figure, what = f"{min(drawn):.3f} to {max(drawn):.6f}", f"{kind}: {len(drawn)} worlds"
        yield Row("parts", what, f"drawn / charged = {figure}", "<= 1", max(drawn) <= 1 + 1e-9)
    cases = parts()[::every]
    wrong = [finding for case in progress(cases, "cases") for finding in case.findings()]
    figure = wrong[0][:60] if wrong else "nothing found"
    yield Row("parts", f"claims of {len(cases)} cases", figure, "nothing", not wrong)
