"""One table of speed: floors, other libraries and this one, in wall-clock and processor time.

Nothing is pinned: BLAS has its default threads, as a user has it. Floors and this library take
turns, the best of several is shown; others, and all on wide tables, run once. Extra memory is the
peak of what was allocated while a call ran. Run ``python -m benchmarks.speed.table`` (about ten
minutes), with ``--quick`` for a tenth of the records.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from benchmarks.speed import linear_regression, naive_bayes, whole_fits, wide_tables
from benchmarks.speed.work import HEADER, Work, rows, threads

PARTS: dict[str, Callable[[int, int], Iterator[Work]]] = {
    "naive_bayes": naive_bayes.works,
    "linear_regression": linear_regression.works,
    "targets": linear_regression.targets,
    "whole_fits": lambda records, features: whole_fits.works(),
    "wide_tables": wide_tables.works,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    options = parser.parse_args()
    records = 100_000 if options.quick else 1_000_000
    print(f"{records:,} × 100 records where nothing else is said; {threads()}\n\n{HEADER}")
    for part in options.only:
        for work in PARTS[part](records, 100):
            for row in rows(work, 1 if part == "wide_tables" else options.repeats):
                print(row, flush=True)


if __name__ == "__main__":
    main()
