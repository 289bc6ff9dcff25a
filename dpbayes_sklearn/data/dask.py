"""Records in dask collections; the only module that uses dask.

No data are read here. A query is sent to the partitions, the answers are added up on the workers as
a tree, and only the total is returned. An error in a partition is returned as a text without any
data value: an exception would show its arguments in the log of the worker.

A partition with a missing value often has objects where others have numbers, and dask makes texts
of objects. One record would recode all others of its partition. So texts are read again, each by
itself, wherever something else is declared.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np

from dpbayes_sklearn._typing import AnyArray, Positions
from dpbayes_sklearn.data.records import (
    OTHER_SIZE,
    Addable,
    CountedRecords,
    ElsewhereTable,
    Failure,
    Shard,
    Table,
    asked,
    check_rows,
    column_kind,
    is_frame,
    is_partitioned,
    one_column,
)
from dpbayes_sklearn.schema.values import Kind, cells_of, joined, kind_of

Reader = Callable[[str], Any]
"""Reads one text; it may raise whatever it likes if the text has another form."""

# How dask writes booleans that it has made texts of.
_BOOLEAN_TEXTS = {"True": True, "False": False}
_ISO_DATE = re.compile(  # Pandas also reads "now", as another date every time.
    r"-?\d+-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d(:?\d\d(:?\d\d)?)?)?", re.ASCII
)

_FAN_IN = 8  # One task adds up this many answers.


def reader_of(dtype: Any) -> Reader | None:
    """Return how a declared type reads a text, None where it does not say: there texts stay.

    >>> reader_of(np.dtype(int))("7"), reader_of(np.dtype(bool))("True"), reader_of(np.dtype("U1"))
    (7, True, None)
    """
    categories = getattr(dtype, "categories", None)
    dtype = dtype if categories is None else categories.dtype
    kind = kind_of(dtype)
    if kind in {"dates", "durations"}:
        read = _date if kind == "dates" else _duration
        return partial(read, dtype=dtype if isinstance(dtype, np.dtype) else None)
    if str(dtype).startswith("decimal"):
        return Decimal
    if kind == "numbers":
        return partial(_float, read=dtype.type if isinstance(dtype, np.dtype) else float)
    return _integer if kind in {"booleans", "integers"} else None


def as_declared(partition: Any, readers: Sequence[Reader | None]) -> Any:
    """Return a partition with texts read again where its collection declares something else."""
    if not is_frame(partition):
        read = readers[0]
        texts = _may_hold_texts(getattr(partition, "dtype", None))
        return _again(partition, read) if read and texts else partition
    for j, (read, dtype) in enumerate(zip(readers, partition.dtypes, strict=False)):
        if read and _may_hold_texts(dtype):
            again = _again(partition.iloc[:, j], read)
            partition = partition.copy(deep=False)  # what was given stays as it is
            partition.isetitem(j, again)
    return partition


def _may_hold_texts(dtype: Any) -> bool:
    return kind_of(dtype) in {"text", "objects", "anything"}


def _again(values: Any, read: Reader) -> AnyArray:
    cells = cells_of(values)
    again = (_cell(cell, read) for cell in cells.flat)
    return np.fromiter(again, dtype=object, count=cells.size).reshape(cells.shape)


def _cell(cell: Any, read: Reader) -> Any:
    """Return what a text says, None if it cannot be read; anything else as it is."""
    if not issubclass(type(cell), str):
        return cell
    try:
        return read(cell)
    except Exception:
        return None


def _integer(text: str) -> Any:
    if text in _BOOLEAN_TEXTS:
        return _BOOLEAN_TEXTS[text]
    try:
        return int(text)
    except ValueError:
        return float(text)


def _float(text: str, read: Callable[[Any], Any]) -> Any:
    return read(_BOOLEAN_TEXTS.get(text, text))


def _date(text: str, dtype: np.dtype[Any] | None) -> Any:
    if not _ISO_DATE.fullmatch(text):
        return None
    date = import_module("pandas").Timestamp(text)
    return date if dtype is None else _in_unit(date.to_datetime64(), dtype)


def _duration(text: str, dtype: np.dtype[Any] | None) -> Any:
    span = import_module("pandas").Timedelta(text)
    return span if dtype is None else _in_unit(span.to_timedelta64(), dtype)


def _in_unit(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a date or a duration in the declared unit, in its own if that cannot hold it."""
    declared = value.astype(dtype)
    return declared if declared.astype(value.dtype) == value else value


A = TypeVar("A", bound=Addable)


def _dask(module: str = "") -> Any:
    """Import dask only where there are data of dask."""
    return import_module("dask" + module)


class PartitionedTable(ElsewhereTable):
    """What is public about a dask collection: number, names and types of its columns."""

    def __init__(self, X: Any) -> None:
        frame = hasattr(X, "columns")
        check_rows(X.ndim)
        self.collection = X
        Table.__init__(self, X._meta if frame else np.empty((0, X.shape[1]), X.dtype))

    def partitions(self) -> list[Any]:
        """Return one delayed object for every partition."""
        return _partitions(self.collection)

    def sizes(self) -> list[float]:
        """Return the numbers of rows of the partitions, NaN if they are not known yet."""
        return _sizes(self.collection)

    def records(self, y: Any = None) -> PartitionedRecords:
        """Return the records, with targets if y is given."""
        return (
            PartitionedRecords.unlabelled(self) if y is None else PartitionedRecords.read(self, y)
        )

    def by_row(self, function: Callable[[Table], AnyArray], like: AnyArray) -> AnyArray:
        """Return the lazy dask array of a function of every row."""
        delayed, array = _dask().delayed, _dask(".array")
        once = delayed(function, traverse=False)
        answers = [
            array.from_delayed(delayed(_apply)(once, partition), (size, *like.shape[1:]), meta=like)
            for partition, size in zip(self.partitions(), self.sizes(), strict=True)
        ]
        together: AnyArray = array.concatenate(answers, allow_unknown_chunksizes=True)
        return together


def _partitions(collection: Any) -> list[Any]:
    """Return the partitions, of X and of y in the same order and number.

    A full optimisation of frames may put several files together, and not the same ones for all
    columns; one of arrays would compute what X and y share twice. Blocks are not put together by
    dask, which gives them the type of one of them.
    """
    if hasattr(collection, "simplify"):
        collection = collection.simplify()  # reads no more columns than it needs
    blocks = np.asarray(collection.to_delayed(optimize_graph=False), object)
    delayed, meta = _dask().delayed, collection._meta
    readers = [*map(reader_of, meta.dtypes if is_frame(meta) else [meta.dtype])]
    read = partial(as_declared, readers=readers)
    if blocks.ndim == 1 or blocks.shape[1] == 1:
        return [delayed(read)(block) for block in blocks.ravel()]
    return [delayed(read)(delayed(_side_by_side)([*row])) for row in blocks]


def _side_by_side(blocks: Sequence[Any]) -> AnyArray:
    return joined([*map(cells_of, blocks)], axis=1)


def _sizes(collection: Any) -> list[float]:
    chunks = getattr(collection, "chunks", None)
    return list(chunks[0]) if chunks else [math.nan] * collection.npartitions


def _cut(blocks: Sequence[Any], sizes: Sequence[float], wanted: Sequence[float]) -> list[Any]:
    """Return blocks of one column cut into others of the wanted sizes."""
    delayed = _dask().delayed
    ends, stops = [[0, *accumulate(map(int, each))] for each in (sizes, wanted)]
    cut = []
    for start, stop in pairwise(stops):
        places = range(bisect_right(ends, start) - 1, bisect_left(ends, stop))
        within = [(blocks[i], max(start - ends[i], 0), stop - ends[i]) for i in places]
        pieces = [delayed(_slice)(*place) for place in within or [(blocks[0], 0, 0)]]
        cut.append(delayed(joined)(pieces))
    return cut


def _slice(block: Any, start: int, stop: int) -> AnyArray:
    return _flat(block)[start:stop]


def _flat(block: Any) -> AnyArray:
    """Return one column of a partition; of a frame of more of them only the shape."""
    column = one_column(block)
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column


class PartitionedRecords(CountedRecords):
    """X and y as dask collections with the same partitions.

    ``x`` and ``y`` are delayed partitions of so many rows (``sizes``); ``kept`` are the positions
    of those that count in each, all if left out.
    """

    def __init__(
        self,
        table: PartitionedTable,
        x: list[Any],
        y: list[Any],
        sizes: Sequence[float],
        target_kind: Kind = "anything",
        kept: Sequence[Positions | None] | None = None,
    ) -> None:
        self.table = table
        self.target_kind: Kind = target_kind
        self._x, self._y, self._sizes = x, y, [int(size) for size in sizes]
        self._kept: list[Positions | None] = [*kept] if kept is not None else [None] * len(x)
        pairs = zip(self._kept, self._sizes, strict=True)
        counted = [size if rows is None else len(rows) for rows, size in pairs]
        *self._starts, self.n = accumulate(counted, initial=0)
        table.n_rows = self.n

    @classmethod
    def read(cls, table: PartitionedTable, y: Any) -> PartitionedRecords:
        """Return the records of X and y, which is cut like X if that can be done."""
        if not is_partitioned(y):
            raise TypeError("X is a dask collection, so y must be a dask collection, too.")
        if len(y.shape) > 2 or y.shape[1:] not in {(), (1,)}:
            raise ValueError("y should be a 1d array, got more than one column instead.")
        sizes, of_y = table.sizes(), _sizes(y)
        if sizes != of_y and not any(map(math.isnan, sizes + of_y)):
            if sum(sizes) != sum(of_y):
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{[int(sum(sizes)), int(sum(of_y))]}."
                )
            targets = _cut(_partitions(y), of_y, sizes)
        else:
            targets = _partitions(y)
        partitions = table.partitions()
        if len(partitions) != len(targets):
            raise ValueError(
                f"X has {len(partitions)} partitions and y has {len(targets)}: use the same "
                "partitions for both."
            )
        delayed, kind = _dask().delayed, column_kind(y)
        if any(map(math.isnan, sizes)):
            sizes = _computed([delayed(len)(partition) for partition in targets])
        return cls(table, partitions, targets, sizes, kind)

    @classmethod
    def unlabelled(cls, table: PartitionedTable) -> PartitionedRecords:
        """Return records that have no target."""
        delayed, partitions, sizes = _dask().delayed, table.partitions(), table.sizes()
        if any(map(math.isnan, sizes)):
            sizes = _computed([delayed(len)(partition) for partition in partitions])
        targets = [delayed(_no_target)(partition) for partition in partitions]
        return cls(table, partitions, targets, sizes)

    def __add__(self, other: PartitionedRecords) -> PartitionedRecords:
        """Return the records of both, one after the other."""
        x, y, sizes = self._x + other._x, self._y + other._y, self._sizes + other._sizes
        both = PartitionedRecords(self.table, x, y, sizes, kept=self._kept + other._kept)
        return self._with(other, both)

    def _rows(self, rows: Positions) -> PartitionedRecords:
        """Return the records with some row numbers; they stay where they are."""
        own_rows = np.split(rows, np.searchsorted(rows, self._starts[1:]))
        places = zip(own_rows, self._starts, self._kept, strict=True)
        kept = [own - start if old is None else old[own - start] for own, start, old in places]
        return PartitionedRecords(self.table, self._x, self._y, self._sizes, self.target_kind, kept)

    @property
    def target(self) -> AnyArray:
        """No target, because it is elsewhere."""
        return np.empty(0)

    def once(self, ask: Callable[[Shard], A], rows: Positions | None = None) -> A:
        """Return the sum over all records, or those with some row numbers, each counted once.

        It is added up on the workers.
        """
        if rows is not None:
            return self._rows(rows).once(ask)
        delayed = _dask().delayed
        once = delayed(ask, traverse=False)  # one copy for all tasks
        places = zip(self._x, self._y, self._starts, self._sizes, self._kept, strict=True)
        answers = [delayed(_answer)(once, *place) for place in places]
        while len(answers) > 1:
            groups = [answers[i : i + _FAN_IN] for i in range(0, len(answers), _FAN_IN)]
            answers = [delayed(_sum)(group) for group in groups]
        total: A | Failure = _computed(answers)[0]
        if isinstance(total, Failure):
            raise ValueError(f"A partition could not be read: {total}.")
        return total


def _computed(tasks: list[Any]) -> list[Any]:
    """Return the results of tasks, which read the data; what they trip over may show a value."""
    try:
        return list(_dask().compute(*tasks))
    except Exception as error:
        name = type(error).__name__
    # raised out here because an exception remembers, and may show, the one it is raised in
    raise ValueError(f"The data could not be read: {name}. Compute X and y alone to see why.")


def _no_target(x: Any) -> AnyArray:
    return np.broadcast_to(0.0, len(x))


def _answer(
    ask: Callable[[Shard], A], x: Any, y: Any, start: int, size: int, kept: Positions | None
) -> A | Failure:
    try:
        target = one_column(y).reshape(-1)
        if len(x) != len(target):
            return Failure("X and y have different numbers of records")
        if len(x) != size:
            return OTHER_SIZE
        if kept is None:
            return asked(ask, Shard(Table(x), target, start))
        return asked(ask, Shard(Table(x).rows(kept), target[kept], start))
    except Exception as error:
        return Failure(f"{type(error).__name__} on a worker")


def _sum(answers: Sequence[Any]) -> Any:
    total = answers[0]
    for answer in answers[1:]:
        if isinstance(total, Failure):
            break
        total = answer if isinstance(answer, Failure) else total + answer
    return total


def _apply(function: Callable[[Table], AnyArray], partition: Any) -> AnyArray:
    return function(Table(partition))


def column_here(values: Any) -> AnyArray:
    """Return one column in memory; of a dask collection every partition is read by itself."""
    if not is_partitioned(values):
        return one_column(values)
    read = _dask().delayed(_flat)
    return joined(_computed([read(partition) for partition in _partitions(values)]))


def gathered(values: Any) -> Any:
    """Return the values of a dask collection, in memory; anything else as it is."""
    return _computed([values])[0] if is_partitioned(values) else values
