"""Ratios of processor time to a floor, beside those that were committed last.

No test asserts a time. This prints what takes more than 1.5 times what it took, in units of a floor
that took turns with it: a pass over memory, or the product X'X. Best of several; other processes on
the machine slow both. Memory is what a fit allocates, in megabytes. Run
``python -m benchmarks.speed.ratios`` before a release, and again with ``--write`` to keep the new
ratios in ``benchmarks/results/speed.json``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from benchmarks.speed import linear_regression, naive_bayes, wide_tables
from benchmarks.speed.clock import extra_megabytes, in_turns
from benchmarks.speed.work import Work

FILE = Path(__file__).parents[1] / "results" / "speed.json"
RECORDS, FEATURES = 200_000, 100
WORSE = 1.5
LEAST_MEGABYTES = 4.0  # Less memory is not compared.


def works() -> Iterator[Work]:
    """Yield everything that is measured against a floor."""
    yield from chain(
        naive_bayes.works(RECORDS, FEATURES),
        linear_regression.works(RECORDS, FEATURES),
        linear_regression.targets(RECORDS, FEATURES),
        wide_tables.many_parameters(),
    )


def measured(work: Work, repeats: int) -> dict[str, float]:
    """Return the ratio to the floor, and the memory of a fit."""
    assert work.floor is not None
    times = in_turns({"floor": work.floor[1], "ours": work.ours}, repeats)
    found = {work.name: times["ours"].processor / times["floor"].processor}
    if "fit" in work.name:
        found[f"{work.name}, MB"] = extra_megabytes(work.ours)
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def worse(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return what got more than 1.5 times worse, with both figures."""
    least = {name: LEAST_MEGABYTES if name.endswith("MB") else 0.0 for name in now}
    return {
        name: (before[name], value)
        for name, value in now.items()
        if name in before and value > WORSE * max(before[name], least[name])
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="keep the ratios, to be committed")
    options = parser.parse_args()
    before = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    now: dict[str, float] = {}
    print(f"{RECORDS:,} × {FEATURES} where nothing else is said; {os.cpu_count()} cores\n")
    print("| work | before | now |\n|---|---|---|")
    for work in works():
        found = measured(work, options.repeats)
        for name, value in found.items():
            print(f"| {name} | {before.get(name, '')} | {value} |", flush=True)
        now |= found
    for name, (then, value) in worse(before, now).items():
        print(f"\n**{name}: {value}, and {then} when it was written.**")
    if options.write:
        FILE.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
