"""Run all layers of the audit, or those that are named, and print one table.

``python -m benchmarks.audit [LAYER ...] [--scale 0.1] [--write docs/security/audit_table.md]``
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
from pathlib import Path

from benchmarks.audit._table import HEADER, Row, line, markdown

__all__ = ["main"]


def layers() -> list[str]:
    """Return the names of all layers: modules of this folder that can be run."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return [name for name in names if not name.startswith("_")]


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return how many rows failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers", nargs="*", default=[], help="layers to run; all if left out")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the cases to try")
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    print(line(HEADER, ""), flush=True)
    for name in options.layers or layers():
        start = time.perf_counter()
        for row in importlib.import_module(f"benchmarks.audit.{name}").run(options.scale):
            rows.append(row)
            print(line(row), flush=True)
        print(f"  ({name}: {time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)
    if options.write:
        options.write.write_text(markdown(rows))
    failed = sum(not row.passed for row in rows)
    print(f"{len(rows)} rows, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
