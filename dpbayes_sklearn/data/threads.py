"""Rows shared by threads: no more than the user allows, and with one thread of BLAS in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from dpbayes_sklearn._fork import hold_while_forking
from dpbayes_sklearn.data.table import Table

__all__ = ["answer_in_threads", "blas_for", "cuts", "in_threads", "threads_for"]

_CELLS_A_THREAD = 1 << 20  # with fewer cells a thread costs more than it saves

P = TypeVar("P")
R = TypeVar("R")


def threads_for(cells: int) -> int:
    """Return how many threads may share the work on so many cells.

    With ``joblib.parallel_config(n_jobs=2)`` two, and in a worker of joblib one. If joblib is not
    told, as many as BLAS and OpenMP may have, which the number of cores, ``OMP_NUM_THREADS`` and
    ``threadpoolctl`` limit.
    """
    most = cells // _CELLS_A_THREAD
    return 1 if most <= 1 else min(most, _allowed())


def _allowed() -> int:
    backend, jobs = get_active_backend()
    if jobs is not None or backend.nesting_level:
        return int(effective_n_jobs(None))
    pools = (pool["num_threads"] for pool in _pools().info())
    return int(min(cpu_count(), *pools))


@cache
def _pools() -> ThreadpoolController:
    """Return the libraries with threads of their own; finding them takes milliseconds."""
    return ThreadpoolController()


def cuts(n_rows: int, number: int) -> list[slice]:
    """Return a number of slices of about as many rows each.

    >>> cuts(7, 2)
    [slice(0, 3, None), slice(3, 7, None)]
    """
    ends = np.linspace(0, n_rows, number + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def in_threads(call: Callable[[P], R], parts: Sequence[P], threads: int) -> list[R]:
    """Return what the call gives for every part, computed by so many threads.

    Every part is computed in a copy of the caller's context, so that where the caller is silent,
    its threads are.
    """
    if threads <= 1 or len(parts) <= 1:
        return [call(part) for part in parts]
    with _BLAS.single(), ThreadPoolExecutor(threads) as pool:
        contexts = [copy_context() for _ in parts]  # no two threads may be in one
        return list(pool.map(lambda context, part: context.run(call, part), contexts, parts))


def answer_in_threads(answer: Callable[[Table], npt.NDArray[Any]], table: Table) -> Any:
    """Return the answer for every row, where the answer for a row needs no other row."""
    threads = threads_for(table.n_rows * table.n_columns)
    if threads == 1:
        return answer(table)
    parts = [table.rows(rows) for rows in cuts(table.n_rows, threads)]
    return np.concatenate(in_threads(answer, parts, threads))


class _Blas:
    """BLAS with one thread for as long as anybody needs it so.

    The number is one for the whole process, so the last to leave restores what the first found.
    """

    def __init__(self) -> None:
        self.lock, self._users, self._limit = RLock(), 0, None

    @contextmanager
    def single(self) -> Iterator[None]:
        """Hold BLAS at one thread."""
        with self.lock:
            if not self._users:
                self._limit = _pools().limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self.lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()  # type: ignore[attr-defined]


_BLAS = _Blas()
hold_while_forking(_BLAS.lock)
_SMALL_MATRIX = 300  # columns up to which threads of BLAS wait for each other longer than they work


def blas_for(columns: int) -> AbstractContextManager[None]:
    """Return a context for work on square matrices: one thread of BLAS if they are small."""
    return _BLAS.single() if columns <= _SMALL_MATRIX else nullcontext()
