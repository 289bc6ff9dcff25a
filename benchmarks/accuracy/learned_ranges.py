"""How often the ranges that `Schema.learn` publishes are sane, on the table of *Getting started*.

The code of sections 2 and 8 of ``docs/getting_started.md`` is run as it stands there, with new
people and new noise each time. A range is sane if at least half of the records lie in it and it is
at most ten times as wide as the column; a run is sane if all its learned ranges are.

Run ``python -m benchmarks.accuracy.learned_ranges [--runs 200]``. With ``--few`` it prints how
often ranges of single columns are sane, by the number of records times epsilon.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn import Interval, Schema
from dpbayes_sklearn.preprocessing import learned_schema

Rng, N = np.random.Generator, 1000
COLUMNS: dict[str, Callable[[Rng], Any]] = {
    "normal (50, 10)": lambda rng: rng.normal(50, 10, N),
    "normal (0, 1)": lambda rng: rng.normal(0, 1, N),
    "log-normal (7.5, 0.6)": lambda rng: rng.lognormal(7.5, 0.6, N),
    "log-normal (5, 1.5)": lambda rng: rng.lognormal(5, 1.5, N),
    "integers 18 to 94": lambda rng: rng.integers(18, 95, N),
    "Poisson (1.4)": lambda rng: rng.poisson(1.4, N),
    "half of the records 0": lambda rng: (rng.random(N) < 0.5) * rng.lognormal(3, 1, N),
}
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


def sane_share(make: Callable[[Rng], Any], n_epsilon: float, bins: int | None, runs: int) -> float:
    """Return how often the range of a column is sane, whether learning would be refused or not."""
    sane = 0
    for seed in range(runs):
        frame = pd.DataFrame({"x": make(np.random.default_rng(seed))})
        with planted((learned_schema, "too_few", lambda *given: "")):
            schema = Schema.learn(frame, n_epsilon / N, bins=bins, verbose=False)
        sane += is_sane(schema.columns["x"], frame["x"])
    return sane / runs


def few(runs: int) -> None:
    """Print shares of sane ranges: of bins, and of ranges alone."""
    sizes = (50, 75, 100, 150, 200, 300)
    print(f"| column | {' | '.join(map(str, sizes))} |\n{'|---' * (len(sizes) + 1)}|")
    for name, make in COLUMNS.items():
        pairs = [[sane_share(make, size, bins, runs) for bins in (8, None)] for size in sizes]
        print(f"| {name} | {' | '.join(f'{a:.2f} / {b:.2f}' for a, b in pairs)} |", flush=True)


def main() -> None:
    """Print the share of sane runs, and of each column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--few", action="store_true", help="single columns, few records")
    options = parser.parse_args()
    if options.few:
        return few(options.runs)
    people, learning = code(2), code(8)
    found = [sane_ranges(people, learning) for _ in range(options.runs)]
    print(f"all ranges sane: {np.mean([all(run.values()) for run in found]):.1%} of {len(found)}")
    for name in found[0]:
        print(f"{name}: {np.mean([run[name] for run in found]):.1%}")


if __name__ == "__main__":
    main()
