"""Ratios to a floor of the same process: the only times that mean anything on a shared machine."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.peers.environment import diffprivlib_python

threadpool_limits(1)  # processor time counts all threads, and two are not faster here

Call = Callable[[], object]
ROOT = Path(__file__).parents[2]


class Times(NamedTuple):
    """Processor seconds of a call and of the floor, each the best of several turns."""

    call: float
    floor: float

    def __str__(self) -> str:
        return f"{1e3 * self.call:>8,.0f} ms {self.call / self.floor:>7.2f}x"


def seconds(call: Call) -> float:
    """Return the processor time of one run."""
    start = time.process_time()
    call()
    return time.process_time() - start


def beside(call: Call, floor: Call, repeats: int) -> Times:
    """Run floor and call in turns and keep the best of each."""
    turns = [(seconds(floor), seconds(call)) for _ in range(repeats)]
    floors, calls = zip(*turns, strict=True)
    return Times(min(calls), min(*floors, seconds(floor)))


def extra_megabytes(call: Call) -> float:
    """Return the peak of memory allocated during the call."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def one_pass(X: npt.NDArray[np.generic]) -> Call:
    """Return the cheapest call that reads every byte."""
    if X.dtype == np.float64:
        return lambda: X.sum()
    words = X.reshape(-1).view(np.uint64)
    return lambda: np.bitwise_or.reduce(words)


def diffprivlib(model: str, rows: int, features: int) -> tuple[float, float] | None:
    """Return the ratios of its fit and predict to one pass, if it can be installed."""
    python = diffprivlib_python()
    if python is None:
        return None
    line = [str(python), "-m", "benchmarks.peers.speed", model, str(rows), str(features)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    fit, predict = json.loads(done.stdout)
    return fit, predict


def run(
    description: str,
    shapes: Sequence[tuple[int, int]],
    table: Callable[[int, int, int], None],
) -> None:
    """Print the tables of all shapes, or of the first if ``--quick`` is asked for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small tables only")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for shape in shapes[: 1 if options.quick else None]:
        table(*shape, options.repeats)
