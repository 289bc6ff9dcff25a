"""Run all layers of the audit, or those that are named, and print one table.

``python -m benchmarks.audit [LAYER ...] [--scale 0.1] [--jobs 2] [--write]``
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
from pathlib import Path

from joblib import Parallel, delayed

from benchmarks.audit._cases import HEADER, Row, line, write
from benchmarks.report import commit
from dpbayes_sklearn._presenting import progress

PAGE, ROWS = Path("docs/security/audit.md"), Path("benchmarks/results/audit.csv")


def layers() -> list[str]:
    """Return the names of all layers: modules of this folder that can be run."""
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(m.name for m in modules if not (m.ispkg or m.name.startswith("_")))


def tried(name: str, scale: float) -> tuple[str, list[Row], float]:
    """Return the rows of a layer, and the seconds it took."""
    start = time.perf_counter()
    rows = list(importlib.import_module(f"benchmarks.audit.{name}").run(scale))
    return name, rows, time.perf_counter() - start


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if a row failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers", nargs="*", default=[], help="layers to run; all if left out")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the cases to try")
    parser.add_argument("--jobs", type=int, default=1, help="layers to run at the same time")
    parser.add_argument("--write", action="store_true", help=f"also write {PAGE} and {ROWS}")
    options = parser.parse_args(arguments)
    names = options.layers or layers()
    # a process for each: layers replace parts of the library while they run
    done = Parallel(options.jobs, return_as="generator_unordered")(
        delayed(tried)(name, options.scale) for name in names
    )
    table: dict[str, list[Row]] = {name: [] for name in names}
    print(HEADER, flush=True)
    for name, rows, seconds in progress(done, "layers", total=len(names)):
        table[name] = rows
        print("\n".join(line(name, row) for row in rows), flush=True)
        print(f"  ({name}: {seconds:.0f} s)", file=sys.stderr, flush=True)
    if options.write:
        write(table, PAGE, ROWS, commit())
    failed = sum(not row.passed for rows in table.values() for row in rows)
    print(f"{sum(map(len, table.values()))} rows, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
