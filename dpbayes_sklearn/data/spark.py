"""Records in Spark data frames; the only module that uses pyspark.

No record comes to the driver for a fit. A query is sent to the executors by ``mapInArrow``; every
partition returns its answer as one row, and answers are added up, those of many partitions on the
executors first. Spark keeps one result of every task, however often the task was tried; an answer
that came twice, or did not come, would be an error.

Spark computes a frame anew for every query, and also what a lost executor had. The records may then
come in another order, or in other partitions. A sum over all records does not depend on that, nor
does the law of a random sample. But labels of persons and weights are read once, and then belong to
positions. So every partition must have as many records as in the first query and, where labels or
weights are given, the same ones in the same order: otherwise the query fails.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial, reduce
from hashlib import blake2b
from importlib import import_module
from itertools import accumulate, chain
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpbayes_sklearn._typing import AnyArray, Positions
from dpbayes_sklearn.data.arrow import ArrowFrame, arrow, joined_batches, safely, spooled
from dpbayes_sklearn.data.records import (
    OTHER_SIZE,
    Addable,
    CountedRecords,
    ElsewhereTable,
    Failure,
    Shard,
    Table,
    asked,
    column_kind,
)
from dpbayes_sklearn.schema.values import Kind, readable

_FAN_IN = 16  # As many answers are added up here; more of them on the executors first.
_ANSWERS = "partition long, answer binary"
_ANEW = (
    "A frame is computed for every query: one that was shuffled may have its records elsewhere "
    "then. Write it to files, or use its checkpoint()."
)

A = TypeVar("A", bound=Addable)


def is_spark(X: object) -> bool:
    """Tell whether ``X`` is a data frame of Spark, classic or Connect, without importing it."""
    return hasattr(type(X), "mapInArrow") and hasattr(type(X), "toArrow")


class _Survey(NamedTuple):
    """What is known about a partition: its size, and columns that belong to positions."""

    size: int
    digest: bytes
    fixed: bytes


class SparkSource:
    """A data frame of Spark with the columns that a fit needs, the same ones in every query.

    ``fixed`` are columns of labels or weights, which are read once.
    """

    def __init__(self, frame: Any, fixed: Sequence[str] = (), only: Collection[str] | None = None):
        names = [*frame.columns]
        if len({*names}) < len(names):
            raise ValueError("Columns of a data frame of Spark must have different names.")
        self.names, self.fixed = names, [name for name in fixed if name in names]
        if only is not None and {*only} <= {*names}:
            frame = frame.select([_quoted(name) for name in names if name in only])
        self.frame = frame

    @cached_property
    def nobody(self) -> Any:
        """The columns as a table of Arrow without rows."""
        return safely(self.frame.limit(0).toArrow)

    @cached_property
    def survey(self) -> list[_Survey]:
        """The partitions, of which one scan has found the sizes and the fixed columns."""
        return [found for (found,) in self.answers(partial(_survey, fixed=self.fixed))]

    @cached_property
    def columns_here(self) -> Any:
        """The fixed columns in memory."""
        pa, parts = arrow(), [part for part in self.survey if part.size]
        read = [pa.ipc.open_stream(part.fixed).read_all() for part in parts]
        return pa.concat_tables(read or [self.nobody.select(self.fixed)])

    @cached_property
    def here(self) -> ArrowFrame:
        """All columns, read once, in one order."""
        frame: ArrowFrame = spooled(self.frame)
        return frame

    def answers(self, task: Callable[[int, Iterator[Any]], Any], sums: bool = False) -> list[Any]:
        """Return what a task gives for every partition, in their order, or sums over many each."""

        def send(batches: Iterator[Any]) -> Iterator[Any]:
            own = import_module("pyspark").TaskContext.get().partitionId()
            tables = joined_batches(map(_as_table, batches))
            yield _row([own], task(own, tables))

        rows = self.frame.mapInArrow(send, _ANSWERS)
        if sums and len(self.survey) > _FAN_IN:
            group = max(_FAN_IN, math.isqrt(len(self.survey)))
            rows = rows.selectExpr("*", f"partition div {group} as place")
            rows = rows.groupBy("place").applyInArrow(_added, _ANSWERS)
        received = [pickle.loads(row["answer"]) for row in _collected(rows)]
        received.sort(key=lambda each: each[0])
        own = [*chain.from_iterable(partitions for partitions, _ in received)]
        known = self.__dict__.get("survey", own)
        if own != [*range(len(known))]:
            raise ValueError(f"Spark gave {len(own)} answers of {len(known)} partitions. {_ANEW}")
        for _, answer in received:
            if isinstance(answer, Failure):
                raise ValueError(f"A partition could not be read: {answer}. {_ANEW}")
        return [answer for _, answer in received]


def _collected(rows: Any) -> list[Any]:
    """Return rows of Spark, here, maybe after the charge; what it trips over may show a value."""
    try:
        return [*rows.collect()]
    except Exception as error:
        name = type(error).__name__
    # raised out here because an exception remembers, and may show, the one it is raised in
    raise ValueError(
        f"The records could not be read: {name}. Run the query of X alone to see why. Executors "
        "need Python with dpbayes_sklearn and pyarrow."
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _as_table(batch: Any) -> Any:
    return arrow().Table.from_batches([batch])


def _row(partitions: list[int], answer: Any) -> Any:
    """Return one row for Spark: partitions, in order, and the sum of their answers."""
    sent = pickle.dumps((partitions, answer))
    return arrow().RecordBatch.from_pydict({"partition": partitions[:1], "answer": [sent]})


def _added(rows: Any) -> Any:
    """Return the sum of the rows of some partitions, added up in their order, as one row."""
    answers = sorted(map(pickle.loads, rows["answer"].to_pylist()), key=lambda each: each[0])
    partitions = [*chain.from_iterable(own for own, _ in answers)]
    return _as_table(_row(partitions, total_of([answer for _, answer in answers])))


def total_of(answers: Sequence[Any]) -> Any:
    """Return the sum of answers, or the first failure; None is that of no records."""
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    answered = [answer for answer in answers if answer is not None]
    return failures[0] if failures else reduce(add, answered) if answered else None


class _Fixed:
    """The cells of the fixed columns of a partition, in their order, as a digest."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self._hash = names, blake2b(digest_size=16)

    def update(self, table: Any) -> None:
        for name in self.names:
            cells = table[name].combine_chunks().dictionary_encode()
            places = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            self._hash.update(places.tobytes())
            self._hash.update(repr(cells.dictionary.to_pylist()).encode())

    def digest(self) -> bytes:
        return self._hash.digest()


def _survey(partition: int, tables: Iterator[Any], fixed: Sequence[str]) -> tuple[_Survey]:
    """Return the size of a partition, and its fixed columns."""
    pa, digest, size, kept = arrow(), _Fixed(fixed), 0, []
    for table in tables:
        digest.update(table)
        size += table.num_rows
        kept.append(table.select(fixed))
    sink = pa.BufferOutputStream()
    together = pa.concat_tables(kept) if fixed and kept else pa.table({})
    with pa.ipc.new_stream(sink, together.schema) as writer:
        writer.write_table(together)
    return (_Survey(size, digest.digest(), sink.getvalue().to_pybytes()),)


class SparkFrame:
    """Some columns of a data frame of Spark."""

    def __init__(self, source: SparkSource, columns: Sequence[str] | None = None) -> None:
        self.source = source
        self.columns = [*(source.names if columns is None else columns)]
        self.shape = (math.nan, len(self.columns))  # nothing is read to find out

    def __getitem__(self, key: Any) -> Any:
        """Return some columns, or one: labels and weights in memory, as they are used here."""
        if isinstance(key, str) and key in self.source.fixed:
            return self.source.columns_here.column(key)
        return SparkFrame(self.source, [key] if isinstance(key, str) else key)

    def here(self) -> Any:
        """Return the columns as a frame in memory."""
        return self.source.here[self.columns]


class SparkTable(ElsewhereTable):
    """What is public about a data frame of Spark: number, names and types of its columns."""

    def __init__(self, frame: SparkFrame) -> None:
        self.frame = frame
        Table.__init__(self, ArrowFrame(frame.source.nobody.select(frame.columns)))

    def records(self, y: Any = None) -> SparkRecords:
        """Return the records, with targets if y, a column of the same data frame, is given."""
        if y is not None and getattr(y, "source", None) is not self.frame.source:
            raise TypeError(
                "X is a data frame of Spark, so y must be a column of it: pass its name, as in "
                "fit(X, target='...')."
            )
        target = None if y is None else y.columns[0]
        kind = (
            "anything" if y is None else column_kind(ArrowFrame(self.frame.source.nobody)[target])
        )
        return SparkRecords(self, [_Part.whole(self.frame, target)], kind)

    def by_row(self, function: Callable[[Table], AnyArray], like: AnyArray) -> AnyArray:
        """Return the array of a function of every row, computed on the executors."""
        task = partial(_by_row, function=function, columns=self.frame.columns)
        return np.concatenate([like, *self.frame.source.answers(task)])

    def here(self) -> Table:
        """Return the table in memory."""
        return Table(self.frame.here())


def _by_row(
    partition: int,
    tables: Iterator[Any],
    function: Callable[[Table], AnyArray],
    columns: Sequence[str],
) -> Any:
    found = [function(Table(ArrowFrame(table.select(columns)))) for table in tables]
    return np.concatenate(found) if found else None


class _Part(NamedTuple):
    """Records of one data frame; ``kept`` are the positions that count in each partition."""

    source: SparkSource
    columns: list[str]
    target: str | None
    kept: Sequence[Positions | None]

    @classmethod
    def whole(cls, frame: SparkFrame, target: str | None) -> _Part:
        return cls(frame.source, frame.columns, target, [None] * len(frame.source.survey))

    @property
    def sizes(self) -> list[int]:
        """How many records count in every partition."""
        surveyed = zip(self.kept, self.source.survey, strict=True)
        return [one.size if kept is None else len(kept) for kept, one in surveyed]

    def rows(self, rows: Positions) -> _Part:
        """Return the records with some row numbers."""
        *starts, _ = accumulate(self.sizes, initial=0)
        own = np.split(rows, np.searchsorted(rows, starts[1:]))
        places = zip(own, starts, self.kept, strict=True)
        kept = [own - start if old is None else old[own - start] for own, start, old in places]
        return self._replace(kept=kept)

    def total(self, ask: Callable[[Shard], A], start: int) -> A | None:
        """Return the sum over the records that count, None if there are none."""
        starts, survey = accumulate(self.sizes, initial=start), self.source.survey
        pairs = zip(starts, survey, self.kept, strict=False)
        places = [
            (first, one.size, one.digest, _packed(kept, one.size)) for first, one, kept in pairs
        ]
        query = _Query(ask, self.columns, self.target, self.source.fixed, places)
        total: A | None = total_of(self.source.answers(query.answer, sums=True))
        return total


def _packed(kept: Positions | None, size: int) -> Any:
    """Return positions in few bytes: as they are if few, otherwise a bit for every record."""
    if kept is None or len(kept) < size // 64:
        return kept
    bits = np.zeros(size, np.bool_)
    bits[kept] = True
    return np.packbits(bits).tobytes()


def _unpacked(sent: Any) -> Positions | None:
    if not isinstance(sent, bytes):
        positions: Positions | None = sent
        return positions
    return np.flatnonzero(np.unpackbits(np.frombuffer(sent, np.uint8)))


class _Query(NamedTuple):
    """What is asked of every partition; ``places`` say what is known about each."""

    ask: Callable[[Shard], Any]
    columns: list[str]
    target: str | None
    fixed: Sequence[str]
    places: list[tuple[int, int, bytes, Any]]

    def answer(self, partition: int, tables: Iterator[Any]) -> Any:
        """Return the answer of a partition, None without records, or why there is none."""
        if partition >= len(self.places):
            return OTHER_SIZE
        start, size, expected, sent = self.places[partition]
        kept, fixed, seen, counted = _unpacked(sent), _Fixed(self.fixed), 0, start
        total: Any = None
        for table in tables:
            fixed.update(table)
            n = table.num_rows
            rows = None if kept is None else kept[slice(*np.searchsorted(kept, [seen, seen + n]))]
            shard = _shard(table, self.columns, self.target, counted)
            if rows is not None:
                shard = Shard(shard.table.rows(rows - seen), shard.target[rows - seen], counted)
            seen, counted = seen + n, counted + shard.table.n_rows
            try:
                answer = asked(self.ask, shard)
            except Exception as error:  # would show its arguments in the log of the executor
                return Failure(f"{type(error).__name__} on an executor")
            total = answer if total is None else total + answer
        if seen != size:
            return OTHER_SIZE
        return total if fixed.digest() == expected else _OTHER_ORDER


_OTHER_ORDER = Failure("labels or weights are not those that were read before")


def _shard(table: Any, columns: list[str], target: str | None, start: int) -> Shard:
    """Return some records of Arrow as they are asked."""
    y = np.broadcast_to(0.0, table.num_rows) if target is None else readable(table.column(target))
    return Shard(Table(ArrowFrame(table.select(columns))), y, start)


class SparkRecords(CountedRecords):
    """Records in data frames of Spark, in the order of their partitions."""

    def __init__(
        self, table: SparkTable, parts: Sequence[_Part], target_kind: Kind = "anything"
    ) -> None:
        self.table, self.parts = table, [*parts]
        self.target_kind: Kind = target_kind
        *self._starts, self.n = accumulate((sum(part.sizes) for part in parts), initial=0)
        table.n_rows = self.n

    @property
    def target(self) -> AnyArray:
        """No target, because it is elsewhere."""
        return np.empty(0)

    def __add__(self, other: SparkRecords) -> SparkRecords:
        """Return the records of both, one after the other."""
        return self._with(other, SparkRecords(self.table, self.parts + other.parts))

    def _rows(self, rows: Positions) -> SparkRecords:
        """Return the records with some row numbers; they stay where they are."""
        own = np.split(rows, np.searchsorted(rows, self._starts[1:]))
        pairs = zip(self.parts, own, self._starts, strict=True)
        parts = [part.rows(each - start) for part, each, start in pairs]
        return SparkRecords(self.table, parts, self.target_kind)

    def once(self, ask: Callable[[Shard], A], rows: Positions | None = None) -> A:
        """Return the sum over all records, or those with some row numbers, each counted once."""
        if rows is not None:
            return self._rows(rows).once(ask)
        pairs = zip(self.parts, self._starts, strict=True)
        total: A | None = total_of([part.total(ask, start) for part, start in pairs])
        if total is not None:
            return total
        part = self.parts[0]
        return asked(ask, _shard(part.source.nobody, part.columns, part.target, 0))
