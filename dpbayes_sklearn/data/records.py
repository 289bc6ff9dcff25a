"""Records in one or many places: every shard answers a query, and the answers are added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, partial, reduce
from itertools import pairwise
from operator import add
from threading import RLock
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from dpbayes_sklearn._compat import hold_while_forking
from dpbayes_sklearn.data.table import Table, read_once, rows_at_once
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.schema.values import Column, Kind

_CELLS_A_THREAD = 1 << 20  # Minimum cells per thread: with fewer a thread costs more than it saves.

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
# Up to this many columns, threads of BLAS wait for each other longer than they work.
_SMALL_MATRIX = 300


def blas_for(columns: int) -> AbstractContextManager[None]:
    """Return a context for work on square matrices: one thread of BLAS if they are small."""
    return _BLAS.single() if columns <= _SMALL_MATRIX else nullcontext()


def quiet_numpy() -> np.errstate:
    """Return a context in which no floating-point event raises or warns.

    The caller's ``np.seterr`` must not decide: whether a sum underflows depends on the data. The
    state belongs to a thread, so every worker sets its own.
    """
    return np.errstate(all="ignore")


class Addable(Protocol):
    """Something that can be added up: an array of sums, tables of counts."""

    def __add__(self, other: Any, /) -> Any: ...


A = TypeVar("A", bound=Addable)
Positions = npt.NDArray[np.intp]


class Shard(NamedTuple):
    """Records in one place, which answer a question together.

    Attributes
    ----------
    table : Table
        Their features.
    target : array of shape (n,), or Repeated
        Their targets.
    start : int
        The number of records in the shards before.
    """

    table: Table
    target: Any
    start: int = 0


class Records(Protocol):
    """All records of a fit, wherever they are: sensitive."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def table(self) -> Table:
        """What is public about the features: their number, names and types."""

    @property
    def target_kind(self) -> Kind:
        """What the declared type of the target says about its values: public."""

    def total(self, ask: Callable[[Shard], A], at: Positions | None = None) -> A:
        """Return the sum of ``ask`` over all shards, or over the records at some positions.

        Positions are in increasing order.
        """

    def at(self, positions: Positions, /) -> Records:
        """Return the records at some positions, in increasing order."""

    def __add__(self, other: Any, /) -> Any:
        """Return the records of both, one after the other."""


class LocalRecords:
    """Records in the memory of this process, or in files that are mapped to it.

    Threads share the work; see :func:`~dpbayes_sklearn.data.records.threads_for`.
    """

    def __init__(
        self, shards: Iterable[tuple[Table, Column]], target_kind: Kind = "anything"
    ) -> None:
        self.target_kind: Kind = target_kind
        self.shards: list[Shard] = []
        self.n = 0
        for table, target in shards:
            self.shards.append(Shard(table, target, self.n))
            self.n += table.n_rows

    @classmethod
    def unlabelled(cls, table: Table) -> LocalRecords:
        """Return records that have no target."""
        return cls([(table, np.broadcast_to(0.0, table.n_rows))])

    @property
    def table(self) -> Table:
        """The features of the first shard, which are of the same types as all others."""
        return self.shards[0].table

    @property
    def target(self) -> npt.NDArray[Any]:
        """All targets."""
        targets = [np.asarray(shard.target) for shard in self.shards]
        return np.concatenate(targets) if targets[1:] else targets[0]

    def at(self, positions: Positions) -> LocalRecords:
        """Return the records at some positions, in increasing order or repeated."""
        if len(positions) == self.n and (np.diff(positions) == 1).all():
            return self
        chosen = [(s.table.rows(own), s.target[own]) for s, own in self._shared(positions)]
        return LocalRecords(chosen, self.target_kind)

    def read_once(self, domains: Sequence[Domain]) -> LocalRecords:
        """Return the same records, of declared categories only the codes."""
        shards = [(read_once(shard.table, domains), shard.target) for shard in self.shards]
        return LocalRecords(shards, self.target_kind)

    def _shared(self, positions: Positions) -> Iterator[tuple[Shard, Positions]]:
        """Yield every shard with those of the positions that are its own, as it counts them."""
        ends = np.searchsorted(positions, [shard.start for shard in self.shards[1:]])
        for shard, own in zip(self.shards, np.split(positions, ends), strict=True):
            yield shard, own - shard.start

    def __add__(self, other: LocalRecords) -> LocalRecords:
        """Return the records of both, one after the other."""
        return LocalRecords([(shard.table, shard.target) for shard in self.shards + other.shards])

    def total(self, ask: Callable[[Shard], A], at: Positions | None = None) -> A:
        """Return the sum of ``ask`` over all shards, or over the records at some positions.

        Records at positions are copied, a block at a time.
        """
        n = self.n if at is None else len(at)
        threads = threads_for(n * self.table.n_columns)
        with blas_for(self.table.n_columns):
            if at is not None:
                blocks = [block for own in self._shared(at) for block in _blocks(*own)]
                return reduce(add, in_threads(partial(_asked_at, ask), blocks, threads))
            shards = [one for shard in self.shards for one in _cut(shard, threads)]
            return reduce(add, in_threads(partial(asked, ask), shards, threads))


def asked(ask: Callable[[Shard], A], shard: Shard) -> A:
    """Return the answer of one shard, in a thread or process of any error state."""
    with quiet_numpy():
        return ask(shard)


def _asked_at(ask: Callable[[Shard], A], block: tuple[Shard, Positions]) -> A:
    """Return the answer of some records of a shard."""
    shard, own = block
    return asked(ask, Shard(shard.table.rows(own), shard.target[own], shard.start))


def _blocks(shard: Shard, own: Positions) -> Iterator[tuple[Shard, Positions]]:
    """Yield a shard with some of the positions in it at a time, as many as are read at once."""
    size = rows_at_once(shard.table.n_columns)
    for first in range(0, len(own), size):
        yield shard, own[first : first + size]


def _cut(shard: Shard, number: int) -> list[Shard]:
    """Cut a shard into a number of shards of about as many rows each."""
    if number <= 1:
        return [shard]
    return [
        Shard(shard.table.rows(rows), shard.target[rows], shard.start + rows.start)
        for rows in cuts(shard.table.n_rows, number)
    ]
