"""Records in one or many places: every shard answers a query, and the answers are added up.

A shard has a table, an array, a sparse matrix or a data frame, which is read a chunk at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from copy import copy
from functools import cache, cached_property, partial, reduce
from itertools import pairwise
from operator import add
from threading import RLock
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from scipy.sparse import issparse
from threadpoolctl import ThreadpoolController

from dpbayes_sklearn._compat import hold_while_forking
from dpbayes_sklearn._typing import AnyArray, IntArray, Positions
from dpbayes_sklearn.schema.domains import Categories, Domain
from dpbayes_sklearn.schema.values import (
    Column,
    Kind,
    Repeated,
    as_cells,
    cells_of,
    kind_of,
    kind_of_column,
    readable,
)

CHUNK_CELLS = 1 << 21
"""Cells read at a time: small enough for the cache, large enough to hide Python's overhead."""
_MOST_ROWS = 1 << 17  # This many rows are read at a time.
_COPIED_PART = 4  # Records that are copied first are this many times fewer at a time.

_CELLS_A_THREAD = 1 << 20  # Minimum cells per thread: with fewer a thread costs more than it saves.
# Up to this many columns, threads of BLAS wait for each other longer than they work.
_SMALL_MATRIX = 300


def rows_at_once(n_columns: int) -> int:
    """Return how many rows are read at a time, by the number of columns."""
    return max(1, min(_MOST_ROWS, CHUNK_CELLS // max(1, n_columns)))


def check_rows(ndim: int) -> None:
    """Refuse what has no rows and columns, in scikit-learn's words."""
    if ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
            "contains a single sample."
        )


def is_partitioned(X: object) -> bool:
    """Tell whether ``X`` is a dask array, data frame or series, without importing dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "_meta")


def is_frame(X: object) -> bool:
    """Tell whether ``X`` has named columns of its own types (pandas, polars)."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and hasattr(X, "shape")


def _by_position(X: Any) -> Any:
    """Return what is indexed by position: pandas also has labels, which may repeat."""
    return getattr(X, "iloc", X)


class Table:
    """A 2-D array, a sparse matrix of rows or a data frame, read in chunks of rows."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self.n_rows, self.n_columns = X.shape
        self.is_sparse = issparse(X)
        self.names = [str(c) for c in X.columns] if is_frame(X) else None

    def chunks(self, step: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield ``(rows, chunk)``; a chunk is an array, or a frame of the same kind."""
        step = step or rows_at_once(self.n_columns)
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            yield rows, _by_position(self._X)[rows]

    @property
    def n_stored(self) -> int:
        """Number of values that a sparse matrix stores."""
        return int(self._X.nnz)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values of an array or a sparse matrix."""
        dtype: np.dtype[Any] = np.dtype(self._X.dtype)
        return dtype

    def rows(self, rows: slice | npt.NDArray[np.intp]) -> Table:
        """Return the table of some rows, given as a slice or by their positions."""
        return Table(_by_position(self._X)[rows])

    def without_rows(self) -> Any:
        """Return what the table was made of, but no record of it."""
        return _by_position(self._X)[:0]

    def must_be_readable(self, parameter: str) -> None:
        """Refuse to read domains from values if they are elsewhere; these are here."""

    def column(self, j: int, chunk: Any = None) -> AnyArray:
        """Return column ``j`` of a chunk (of the whole table by default)."""
        column = _by_position(self._X if chunk is None else chunk)[:, j]
        if self.is_sparse:
            return np.asarray(column.toarray()).ravel()
        return cells_of(column)

    def cells(self, j: int, chunk: Any) -> Column:
        """Return column ``j`` of a chunk, to be read cell by cell: its type says nothing."""
        if self.names is None:
            return self.column(j, chunk)
        return readable(_by_position(chunk)[:, j])

    def as_numbers(self, chunk: Any) -> AnyArray | None:
        """Return a chunk as one array of numbers if all columns have the same type of numpy."""
        if self.names is None:
            return chunk if chunk.dtype.kind in "biuf" else None
        types = set(getattr(chunk, "dtypes", [None]))
        one = types.pop()
        if types or not isinstance(one, np.dtype) or one.kind not in "biuf":
            return None
        return np.asarray(chunk)

    def kind(self, j: int) -> Kind:
        """Return what the declared type of column ``j`` says about its values.

        All columns of an array share one type, so there text may stand for anything.
        """
        if self.names is not None:
            return kind_of_column(_by_position(self._X)[:0, j])
        return self._kind_of_array

    @cached_property
    def _kind_of_array(self) -> Kind:
        kind = kind_of(self._X.dtype)
        return "anything" if kind in {"text", "objects"} else kind


class Columns:
    """A frame of arrays, of columns that have few distinct cells, and of other columns."""

    def __init__(self, names: list[str], cells: list[Any]) -> None:
        self.columns, self._cells = names, cells
        self.shape = len(cells[0]), len(cells)

    def __getitem__(self, key: Any) -> Any:
        """Return some rows, or one column of them; or columns by name."""
        if isinstance(key, str):
            return self._cells[self.columns.index(key)]
        if isinstance(key, list):
            return Columns(key, [self[name] for name in key])
        rows, j = key if isinstance(key, tuple) else (key, None)
        if j is None:
            return Columns(self.columns, [_some(cells, rows) for cells in self._cells])
        return _some(self._cells[j], rows)


def _some(column: Any, rows: Any) -> Any:
    """Return some rows of a column; one of Arrow is indexed by slices alone, and takes others."""
    of_arrow = hasattr(column, "to_pylist") and not isinstance(rows, slice)
    return column.take(rows) if of_arrow else _by_position(column)[rows]


def read_once(table: Table, domains: Sequence[Domain]) -> Table:
    """Return a frame that is fast to read again: of declared categories it holds codes only.

    A code takes one byte, or two if there are more than 256. Arrays are not copied.
    """
    if table.names is None or all(domain.is_numeric for domain in domains):
        return table
    cells = [_kept(_by_position(table._X)[:, j], domain) for j, domain in enumerate(domains)]
    return Table(Columns(table.names, cells))


def _kept(column: Any, domain: Domain) -> Any:
    if isinstance(column, Repeated):
        return column
    if isinstance(domain, Categories):
        codes = domain.encode(readable(column)).astype(np.min_scalar_type(domain.n_values))
        return Repeated(codes, as_cells([*domain.values, None], 1))
    return np.asarray(column) if isinstance(getattr(column, "dtype", None), np.dtype) else column


class SealedTable(Table):
    """Names and number of columns whose values are elsewhere, or may not be read."""

    def __init__(self, n_columns: int, names: list[str] | None = None) -> None:
        super().__init__(np.empty((0, n_columns)))
        self.names = None if names is None else [*names]

    def must_be_readable(self, parameter: str) -> None:
        """Refuse to read domains from the values."""
        raise ValueError(
            f"Domains are not read from shards or from records on a cluster: set {parameter} to "
            "public values."
        )


class ElsewhereTable(SealedTable, ABC):
    """What is public about records on a cluster: number, names and types of their columns."""

    @abstractmethod
    def records(self, y: Any = None) -> Any:
        """Return the records, with targets if y is given."""

    @abstractmethod
    def by_row(self, function: Callable[[Table], AnyArray], like: AnyArray) -> Any:
        """Return a function of every row; ``like`` has the type and columns of it, and no rows."""

    def here(self) -> Table:
        """Return the table in memory."""
        raise TypeError("Records in memory are required: pass X.compute().")


class Failure(str):
    """Why a part of the records has no answer, in words that hold no value."""


OTHER_SIZE = Failure("it has another number of records than it said")
"""Sums are known to fit into 64 bits by the number of records."""


def one_column(values: Any) -> AnyArray:
    """Return y, or the one column of an estimator without y, from any container.

    A frame of one column keeps its shape (n, 1). One of more columns is to be refused for its
    shape, and only that is returned.
    """
    if not is_frame(values):
        return cells_of(values)
    table = Table(values)
    if table.n_columns != 1:
        return np.broadcast_to(0.0, values.shape)
    return table.column(0)[:, None]


def column_kind(values: Any) -> Kind:
    """Return what the declared type of one column says about its values."""
    values = getattr(values, "_meta", values)  # of a dask collection: types without values
    if is_frame(values):
        return Table(values).kind(0)
    return kind_of_column(values)


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
    """Return a number of slices of about equal length.

    >>> cuts(7, 2)
    [slice(0, 3, None), slice(3, 7, None)]
    """
    ends = np.linspace(0, n_rows, number + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def in_threads(call: Callable[[P], R], parts: Sequence[P], threads: int) -> list[R]:
    """Return what the call gives for every part, computed by so many threads.

    Every thread is silent where the caller is, and has an error state of numpy in which no
    floating-point event raises or warns.
    """
    if threads <= 1 or len(parts) <= 1:
        return [call(part) for part in parts]
    with _BLAS.single(), ThreadPoolExecutor(threads) as pool:
        # no two threads may be in one context
        runs = [partial(copy_context().run, _quietly, call, part) for part in parts]
        return list(pool.map(lambda run: run(), runs))


def _quietly(call: Callable[[P], R], part: P) -> R:
    with quiet_numpy():
        return call(part)


def answer_in_threads(answer: Callable[[Table], AnyArray], table: Table) -> AnyArray:
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


class Shard(NamedTuple):
    """Records that are read together; ``start`` is the number of records in earlier shards."""

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

    def having(self, known: Callable[[Shard], bytes], /) -> Records:
        """Return the records for which a function of shards has a byte that is not zero."""

    def __add__(self, other: Any, /) -> Any:
        """Return the records of both, one after the other."""


class CountedRecords(ABC):
    r"""Records with integer weights: each counts as often as its weight says, or once.

    Nobody who asks has to know weights. With :math:`w = \sum_b 2^b w_b` the sum over all copies is
    :math:`\sum_b 2^b \sum_i w_{ib} f(x_i)`: from the highest bit on, what was found is doubled and
    the answer about the records that have the next bit is added. Integers are those of the copies
    exactly. Time and memory grow with the bits of the largest weight, not with the total.
    """

    n: int
    weights: IntArray | None = None

    @abstractmethod
    def _rows(self, rows: Positions) -> Self:
        """Return the records with some row numbers, in increasing order, each once."""

    @abstractmethod
    def once(self, ask: Callable[[Shard], A], rows: Positions | None = None) -> A:
        """Return the sum over all records, or those with some row numbers, each counted once."""

    @property
    def n_rows(self) -> int:
        """Number of records, however often they count."""
        return self.n if self.weights is None else len(self.weights)

    def weighted(self, weights: IntArray) -> Self:
        """Return the records, each as often as its weight says; those with weight 0 do not count.

        >>> records = LocalRecords([(Table(np.zeros((3, 1))), np.array([1, 2, 4]))])
        >>> doubled = records.weighted(np.array([2, 0, 5]))
        >>> doubled.n, doubled.total(lambda shard: shard.target.sum()).item()
        (7, 22)
        """
        positive = np.flatnonzero(weights)
        return self._rows(positive)._counting(weights[positive])

    def _counting(self, weights: IntArray) -> Self:
        """Return the same records with weights that are positive."""
        if weights.max(initial=1) == 1:
            return self
        counted = copy(self)
        counted.weights, counted.n = weights, int(weights.sum())
        return counted

    def _with(self, other: CountedRecords, both: Self) -> Self:
        """Return the records of both with the weights of each."""
        if self.weights is None and other.weights is None:
            return both
        pair = (self, other)
        weights = [np.ones(r.n, np.int64) if r.weights is None else r.weights for r in pair]
        return both._counting(np.concatenate(weights))

    def at(self, positions: Positions) -> Self:
        """Return the records at some positions, in increasing order; copies have their own."""
        if self.weights is None:
            return self._rows(positions)
        ends = np.cumsum(self.weights)
        rows, times = np.unique(np.searchsorted(ends, positions, "right"), return_counts=True)
        return self._rows(rows)._counting(times)

    def having(self, known: Callable[[Shard], bytes]) -> Self:
        """Return the records for which a function of shards has a byte that is not zero."""
        rows = np.flatnonzero(np.frombuffer(self.once(known), np.bool_))
        kept = self._rows(rows)
        return kept if self.weights is None else kept._counting(self.weights[rows])

    def total(self, ask: Callable[[Shard], A], at: Positions | None = None) -> A:
        """Return the sum of ``ask`` over all shards, or over the records at some positions.

        What is asked adds up: the answer about no matter which records is the sum of their own.
        """
        if self.weights is None:
            return self.once(ask, at)
        if at is not None:
            return self.at(at).total(ask)
        highest = int(self.weights.max()).bit_length() - 1
        found = self.once(ask, np.flatnonzero(self.weights >> highest))
        for bit in reversed(range(highest)):
            found = found + found
            rows = np.flatnonzero(self.weights >> bit & 1)
            found = found + self.once(ask, rows) if len(rows) else found
        return found


class LocalRecords(CountedRecords):
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
    def target(self) -> AnyArray:
        """All targets."""
        targets = [np.asarray(shard.target) for shard in self.shards]
        return np.concatenate(targets) if targets[1:] else targets[0]

    def _rows(self, rows: Positions) -> LocalRecords:
        if len(rows) == self.n_rows:
            whole = [(shard.table, shard.target) for shard in self.shards]
            return self if self.weights is None else LocalRecords(whole, self.target_kind)
        chosen = [(s.table.rows(own), s.target[own]) for s, own in self._shared(rows)]
        return LocalRecords(chosen, self.target_kind)

    def read_once(self, domains: Sequence[Domain]) -> LocalRecords:
        """Return the same records, of declared categories only the codes."""
        shards = [(read_once(shard.table, domains), shard.target) for shard in self.shards]
        read = LocalRecords(shards, self.target_kind)
        return read if self.weights is None else read._counting(self.weights)

    def _shared(self, positions: Positions) -> Iterator[tuple[Shard, Positions]]:
        """Yield every shard with those of the positions that are its own, as it counts them."""
        ends = np.searchsorted(positions, [shard.start for shard in self.shards[1:]])
        for shard, own in zip(self.shards, np.split(positions, ends), strict=True):
            yield shard, own - shard.start

    def __add__(self, other: LocalRecords) -> LocalRecords:
        """Return the records of both, one after the other."""
        shards = [(shard.table, shard.target) for shard in self.shards + other.shards]
        return self._with(other, LocalRecords(shards))

    def once(self, ask: Callable[[Shard], A], rows: Positions | None = None) -> A:
        """Return the sum over all records, or those with some row numbers, each counted once.

        Records with row numbers are copied, a block at a time.
        """
        n = self.n_rows if rows is None else len(rows)
        threads = threads_for(n * self.table.n_columns)
        with blas_for(self.table.n_columns):
            if rows is not None:
                blocks = [block for own in self._shared(rows) for block in _blocks(*own)]
                return reduce(add, in_threads(lambda own: asked(ask, _at(*own)), blocks, threads))
            shards = [one for shard in self.shards for one in _cut(shard, threads)]
            return reduce(add, in_threads(partial(asked, ask), shards, threads))


def asked(ask: Callable[[Shard], A], shard: Shard) -> A:
    """Return the answer of one shard, in a thread or process of any error state."""
    with quiet_numpy():
        return ask(shard)


def _at(shard: Shard, own: Positions) -> Shard:
    """Return some records of a shard."""
    return Shard(shard.table.rows(own), shard.target[own], shard.start)


def with_target(shard: Shard, known: npt.NDArray[np.bool_]) -> Shard:
    """Return the records of a shard that have a target: others add nothing to what is released."""
    return shard if known.all() else _at(shard, np.flatnonzero(known))


def known_targets(domain: Domain, shard: Shard) -> bytes:
    """Return one byte for each record: whether it has a target. Bytes are joined, not added."""
    return domain.is_known(shard.target).tobytes()


def _blocks(shard: Shard, own: Positions) -> Iterator[tuple[Shard, Positions]]:
    """Yield the shard with a chunk of its positions at a time."""
    size = -(-rows_at_once(shard.table.n_columns) // _COPIED_PART)
    for first in range(0, len(own), size):
        yield shard, own[first : first + size]


def _cut(shard: Shard, number: int) -> list[Shard]:
    """Cut a shard into a number of shards of about equal size."""
    if number <= 1:
        return [shard]
    return [
        Shard(shard.table.rows(rows), shard.target[rows], shard.start + rows.start)
        for rows in cuts(shard.table.n_rows, number)
    ]
