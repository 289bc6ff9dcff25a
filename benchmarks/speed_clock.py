"""Ratios to a floor of the same process: the only times that mean anything on a shared machine."""

from __future__ import annotations

import json
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

threadpool_limits(1)  # processor time counts all threads, and two are not faster here

Call = Callable[[], object]
ROOT = Path(__file__).parent.parent
PEER = ROOT / ".venv-diffprivlib" / "bin" / "python"


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
    """Return the ratios of its fit and predict to one pass, if its environment is there."""
    if not PEER.exists():
        return None
    line = [str(PEER), str(ROOT / "benchmarks" / "peer_speed.py"), model, str(rows), str(features)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    fit, predict = json.loads(done.stdout)
    return fit, predict
