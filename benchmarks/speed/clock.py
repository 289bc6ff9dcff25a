"""Wall-clock and processor time of calls that take turns in one process.

On a shared machine only ratios to a floor that was measured in the same turns mean anything.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Call = Callable[[], object]


class Seconds(NamedTuple):
    """What a call took: by the clock on the wall, and of all processors together."""

    wall: float
    processor: float


def measure(call: Call) -> Seconds:
    """Return what one run takes."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return Seconds(time.perf_counter() - wall, time.process_time() - processor)


def in_turns(calls: Mapping[str, Call], repeats: int) -> dict[str, Seconds]:
    """Run all calls in turns and return the best of each."""
    turns = [{name: measure(call) for name, call in calls.items()} for _ in range(repeats)]
    return {name: best([turn[name] for turn in turns]) for name in calls}


def best(times: list[Seconds]) -> Seconds:
    """Return the least wall-clock and the least processor time."""
    return Seconds(*map(min, zip(*times, strict=True)))


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
