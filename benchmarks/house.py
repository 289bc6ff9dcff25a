"""How the package is built: files, lines, importers, and what one fit goes through.

``python -m benchmarks.house`` prints them. A trace counts the calls of
functions of this package during the second of two equal calls: how many files
and functions there are, how often execution goes from one file to another, and how deep it gets.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import dpbayes_sklearn
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, PrivateSearchCV

PACKAGE = Path(dpbayes_sklearn.__file__).parent
TRACED = (str(PACKAGE),)
N = 600


class Trace(NamedTuple):
    """What one call goes through."""

    files: int
    functions: int
    switches: int
    depth: int


def traced(call: Callable[[], Any]) -> Trace:
    """Return the trace of the second of two calls."""
    call()
    stack: list[str] = []
    functions: set[tuple[str, str, int]] = set()
    switches = deepest = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal switches, deepest
        code = frame.f_code
        if not any(place in code.co_filename for place in TRACED):
            return
        if event == "call":
            functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))
            switches += bool(stack) and stack[-1] != code.co_filename
            stack.append(code.co_filename)
            deepest = max(deepest, len(stack))
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    own = {one for one in functions if one[0].startswith(str(PACKAGE))}
    return Trace(len({name for name, *_ in own}), len(own), switches, deepest)


def fits() -> dict[str, Callable[[], Any]]:
    """Return the fits that are traced: 600 records, declared domains."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (N, 3)), rng.integers(0, 2, N)
    declared: dict[str, Any] = {"bounds": (0, 2), "classes": [0, 1]}
    bayes = BayesianNaiveBayes(**declared)
    linear = BayesianLinearRegression(bounds_X=(0, 2), bounds_y=(0, 1))
    search = PrivateSearchCV(
        BayesianNaiveBayes(**declared), {"alpha": [0.5, 1.0]}, runs_per_candidate=2, random_state=0
    )
    return {
        "BayesianNaiveBayes.fit": lambda: bayes.fit(X, y),
        "BayesianLinearRegression.fit": lambda: linear.fit(X, y),
        "PrivateSearchCV.fit, two candidates": lambda: search.fit(X, y),
    }


def modules() -> dict[str, Path]:
    """Return all modules of the package by name."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def importers() -> Counter[str]:
    """Return how many other modules import each module; a package may stand for its modules."""
    known, found = modules(), Counter[str]()
    for name, path in known.items():
        imported = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
        found.update(one for one in imported if one in known and one != name)
    return found


def main() -> None:
    """Print the table."""
    known, counted = modules(), importers()
    lines = sum(len(path.read_text().splitlines()) for path in known.values())
    single = sum(counted[name] == 1 for name in known)
    print(f"{len(known)} files, {lines:,} lines, {single / len(known):.0%} with one importer")
    print("\n| call | files | functions | file switches | depth |\n|---|---|---|---|---|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in fits().items():
            print(f"| `{name}` | " + " | ".join(map(str, traced(call))) + " |")


if __name__ == "__main__":
    main()
