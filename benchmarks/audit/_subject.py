"""What is replayed: an estimator, neighbours for it, and what to freeze."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.base import BaseEstimator

from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.audit.replaying import CHOKE_POINT, DRAWS
from dpbayes_sklearn.data import records

__all__ = ["Pair", "Rng", "Subject", "circumstance"]

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
