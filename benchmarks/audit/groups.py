"""Labels of persons in every container, many times: whose records count does not depend on others.

Each time one label goes missing, and the records that count of all other persons must stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.audit._groups import GROUPS, container_of_groups, groups_of_persons
from benchmarks.audit._table import Row

ROUNDS = 200


def run(scale: float) -> Iterator[Row]:
    """Try every container with many orders of labels, then everything else once."""
    rounds = max(1, round(ROUNDS * scale))
    for name in GROUPS:
        wrong = len([*container_of_groups(name, rounds, seed=1)])
        what = f"groups, {name}: {rounds} neighbours"
        yield Row("groups", what, f"{wrong} findings", "0", not wrong)
    for case in groups_of_persons():
        if not case.name.startswith("groups: "):
            wrong = len([*case.findings()])
            yield Row("groups", case.name, f"{wrong} findings", "0", not wrong)
