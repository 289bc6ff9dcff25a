"""What all layers share: cases and what they find, rows of the table, ways to watch a fit."""

from __future__ import annotations

import csv
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from joblib import parallel_config
from sklearn.base import BaseEstimator

import dpbayes_sklearn
from benchmarks.audit.tools.recording import planted
from benchmarks.audit.tools.replaying import CHOKE_POINT, DRAWS
from dpbayes_sklearn.data import records
from dpbayes_sklearn.release import boundary


class Case(NamedTuple):
    """One thing that a layer looks at, apart from all others."""

    name: str
    findings: Callable[[], Iterator[str]]


def cases_of(*functions: Callable[[], Iterator[str]]) -> list[Case]:
    """Return a case for each function, with its name."""
    return [Case(f.__name__.strip("_").replace("_", " "), f) for f in functions]


def first_finding(cases: Sequence[Case], first: str = "") -> str | None:
    """Return the first thing found wrong, or None; cases named like ``first`` come first."""
    for case in sorted(cases, key=lambda case: first not in case.name):
        for finding in case.findings():
            return finding
    return None


def beyond(what: str, found: Any, least: float = 0.0) -> Iterator[str]:
    """Say that an enumeration found more than is claimed, or less than theory can reach."""
    if not found.within:
        yield f"{what}: {found.ratio:.4g} of the claim {found.claim:g}"
    if found.ratio < least:
        yield f"{what}: {found.ratio:.4g} of the claim, where {least:g} can be reached"


class Crossing(NamedTuple):
    """What crossed the one boundary of private data: a plan, exact statistics, and noise."""

    plan: Any
    statistics: Any
    noise: Any

    @property
    def counts(self) -> Any:
        """The statistics, without the records that a temperature is learned from."""
        return getattr(self.statistics, "counts", self.statistics)


@contextmanager
def crossings(look: Callable[..., Any] = Crossing) -> Iterator[list[Any]]:
    """Note what crosses the boundary while a block runs, or what a look at it sees."""
    seen: list[Any] = []

    def noted(release: Any, *given: Any) -> Any:
        seen.append(look(*given))
        return release(*given)

    with boundary(noted):
        yield seen


class Called(NamedTuple):
    """One call of a function."""

    name: str
    args: tuple[Any, ...]
    result: Any


@contextmanager
def calls_of(owner: Any, *names: str, among: list[Called] | None = None) -> Iterator[list[Called]]:
    """Note how functions or methods are called while a block runs, and what they return."""
    seen: list[Called] = [] if among is None else among

    def noted(name: str, real: Any) -> Any:
        def called(*args: Any, **options: Any) -> Any:
            result = real(*args, **options)
            seen.append(Called(name, args, result))
            return result

        return called

    with planted(*((owner, name, noted(name, getattr(owner, name))) for name in names)):
        yield seen


def in_a_folder(findings: Callable[..., Iterator[str]]) -> Callable[..., Iterator[str]]:
    """Decorate a case that needs a folder of its own."""

    @wraps(findings)
    def found(*given: Any) -> Iterator[str]:
        with TemporaryDirectory() as folder:
            yield from findings(Path(folder), *given)

    return found


def run_at_once(workers: Sequence[Any]) -> None:
    """Start threads or processes together, and wait for them."""
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def refused(call: Callable[[], Any], *errors: type[Exception]) -> bool:
    """Tell whether a call raises one of these errors."""
    try:
        call()
    except errors:
        return True
    return False


class Row(NamedTuple):
    """One finding: what was tried, what was found, and what has to hold of it."""

    what: str
    figure: str
    claim: str
    passed: bool


HEADER = f"{'layer':<12}  {'what':<58}  {'figure':<30}  {'must be':<22}"


def line(layer: str, row: Row) -> str:
    """Return a row as a line of the printed table."""
    verdict = "ok" if row.passed else "FAILED"
    return f"{layer:<12}  {row.what:<58}  {row.figure:<30}  {row.claim:<22}  {verdict}"


def silent(what: str, findings: Iterable[str]) -> Row:
    """Return the row of what must find nothing; it shows the first finding."""
    first = next(iter(findings), None)
    return Row(what, (first or "nothing found")[:60], "nothing", first is None)


PAGE = """# What the audit found

`make audit` runs every layer ({{doc}}`layers`) and fails if a row does. This is one run, at commit
{commit}; `python -m benchmarks.audit --write` wrote this page, and all rows to `{rows}`.

{table}

{versions}
"""


def summary(table: Mapping[str, list[Row]]) -> str:
    """Return how many rows every layer has and how many failed, in Markdown."""
    lines = ["| layer | rows | failed |", "|---|---|---|"]
    counts = {
        name: (len(rows), sum(not row.passed for row in rows)) for name, rows in table.items()
    }
    lines += [f"| {name} | {rows:,} | {failed} |" for name, (rows, failed) in counts.items()]
    rows, failed = map(sum, zip(*counts.values(), strict=True))
    return "\n".join([*lines, f"| **all** | **{rows:,}** | **{failed}** |"])


def write(table: Mapping[str, list[Row]], page: Path, rows: Path, commit: str) -> None:
    """Write the page of the documentation, and all rows as CSV."""
    with rows.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["layer", *Row._fields])
        writer.writerows([name, *row] for name, own in table.items() for row in own)
    made = {"commit": commit, "rows": rows.as_posix(), "versions": versions()}
    page.write_text(PAGE.format(**made, table=summary(table)))


def versions() -> str:
    """Return what the figures were made with."""
    return (
        f"dpbayes_sklearn {dpbayes_sklearn.__version__}, Python {platform.python_version()}, "
        f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}."
    )


Rng = np.random.Generator
Pair = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Subject:
    """An estimator with declared domains, and a way to make neighbours for it."""

    name: str
    estimator: BaseEstimator
    make: Callable[[Rng], Pair]
    freezes: tuple[Any, ...] = (CHOKE_POINT, DRAWS)
    rounds: int = 1  # in which a short audit tries them, where few pairs of neighbours can tell

    def __str__(self) -> str:
        return self.name


@contextmanager
def circumstance(number: int) -> Iterator[None]:
    """Run a block in one of the states that a caller may have left numpy and joblib in."""
    state = ("ignore", "raise", "warn")[number % 3]
    with np.errstate(all=state), ExitStack() as stack:
        if number % 4 == 3:  # the work is shared by threads, each with an error state of its own
            stack.enter_context(parallel_config("threading", n_jobs=2))
            stack.enter_context(planted((records, "_CELLS_A_THREAD", 1)))
        yield
