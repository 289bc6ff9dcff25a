"""How often the ranges that `Schema.learn` publishes are sane, on the table of *Getting started*.

The code of sections 2 and 8 of ``docs/getting_started.md`` is run as it stands there, with new
people and new noise each time. A range is sane if at least half of the records lie in it and it is
at most ten times as wide as the column; a run is sane if all its learned ranges are.

Run ``python -m benchmarks.accuracy.learned_ranges [--runs 200]``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dpbayes_sklearn import Interval

PAGE = Path(__file__).parents[2] / "docs" / "getting_started.md"


def code(section: int) -> str:
    """Return the Python code of a section of the page."""
    text = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[section]
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def is_sane(domain: Interval, column: Any) -> bool:
    """Tell whether a learned range is of any use for a column."""
    inside = np.mean((column >= domain.low) & (column <= domain.high))
    width = column.max() - column.min()
    return bool(inside >= 0.5 and domain.high - domain.low <= 10 * width)


def sane_ranges(people: str, learning: str) -> dict[str, bool]:
    """Run the page once in an empty folder; tell of every learned range whether it is sane."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        before, names = Path.cwd(), dict[str, Any]()
        os.chdir(folder)
        try:
            exec(people, names)
            exec(learning, names)
        finally:
            os.chdir(before)
    return {
        name: is_sane(domain, names["features"][name])
        for name, domain in names["schema"].columns.items()
        if isinstance(domain, Interval)
    }


def main() -> None:
    """Print the share of sane runs, and of each column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    people, learning = code(2), code(8)
    found = [sane_ranges(people, learning) for _ in range(options.runs)]
    print(f"all ranges sane: {np.mean([all(run.values()) for run in found]):.1%} of {len(found)}")
    for name in found[0]:
        print(f"{name}: {np.mean([run[name] for run in found]):.1%}")


if __name__ == "__main__":
    main()
