"""A piece of work, who does it, and a row of the table for each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from threadpoolctl import threadpool_info

from benchmarks.peers.environment import diffprivlib_python
from benchmarks.speed.clock import Call, Seconds, extra_megabytes, in_turns

ROOT = Path(__file__).parents[2]
OURS = "**dpbayes_sklearn**"
HEADER = (
    "| work | done by | wall-clock, ms | × floor | processor, ms | × floor | extra MB | aim |\n"
    "|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Work:
    """What is measured: a floor, this library, and others.

    Attributes
    ----------
    name : str
    ours : callable
    aim : str
        The ratio of wall-clock times, or the time, that this library is to reach.
    floor : tuple of str and callable, optional
        Less than this cannot be done; it takes turns with ``ours``.
    others : mapping of callables
        Measured once, because they take long.
    elsewhere : callable
        Measures others in another process, on the same data.
    """

    name: str
    ours: Call
    aim: str
    floor: tuple[str, Call] | None = None
    others: Mapping[str, Call] = field(default_factory=dict)
    elsewhere: Callable[[], Mapping[str, Seconds]] = dict


def threads() -> str:
    """Return how many threads there may be."""
    pools = threadpool_info()
    blas = max((p["num_threads"] for p in pools if p["user_api"] == "blas"), default=1)
    return f"{os.cpu_count()} cores, BLAS threads: {blas}"


def rows(work: Work, repeats: int) -> Iterator[str]:
    """Yield the rows of the table for everybody who does the work."""
    calls = {OURS: work.ours}
    floor = "" if work.floor is None else f"floor: {work.floor[0]}"
    if work.floor is not None:
        calls = {floor: work.floor[1], **calls}
    times = in_turns(calls, repeats)
    times |= in_turns(work.others, 1)
    least = times.get(floor)
    for name, seconds in (times | dict(work.elsewhere())).items():
        cells = [work.name, name]
        for kind in Seconds._fields:
            took = getattr(seconds, kind)
            cells += [
                number(1e3 * took),
                "" if least is None else f"{took / getattr(least, kind):.2f}",
            ]
        megabytes = f"{extra_megabytes(work.ours):,.0f}" if name == OURS else ""
        yield "| " + " | ".join([*cells, megabytes, work.aim if name == OURS else ""]) + " |"


def number(value: float) -> str:
    """Return three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@cache
def diffprivlib(model: str, n: int, d: int) -> dict[str, Seconds]:
    """Return what its fit and predict take, and one pass there; nothing if it is not there."""
    python = diffprivlib_python()
    if python is None:
        return {}
    line = [str(python), "-m", "benchmarks.peers.speed", model, str(n), str(d)]
    done = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {name: Seconds(*found) for name, found in json.loads(done.stdout).items()}


def peer(model: str, n: int, d: int, what: str) -> dict[str, Seconds]:
    """Return one time of diffprivlib under its name."""
    found = diffprivlib(model, n, d)
    if not found:
        print(f"diffprivlib's {model} is left out", file=sys.stderr)
    return {f"diffprivlib {model}": found[what]} if found else {}
