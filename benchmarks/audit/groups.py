"""Labels of persons in every container: whose records count does not depend on others' labels.

Labels are integers above 2^53, which a conversion to floats would mix up; one of them becomes
missing, or something that no program expects. As many records of all other persons must count as
before, of each person at most as many as are protected, wherever labels and records are. Lists of
rows are tried here as well, because a list has no type that says what a row of it is.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from benchmarks.audit._cases import Case, Row, cases_of, silent
from benchmarks.audit._converted import cells_of_columns, equal_labels
from benchmarks.audit.tools.fuzzing import CONTAINERS, MARK, OBJECTS, column_in, everything_said
from dpbayes_sklearn import BayesianNaiveBayes
from dpbayes_sklearn.data import reading
from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable
from dpbayes_sklearn.data.persons import records_that_count
from dpbayes_sklearn.data.records import LocalRecords, Records, Table
from dpbayes_sklearn.privacy.budget import PrivacyUnit

ROUNDS = 200


def run(scale: float) -> Iterator[Row]:
    """Try every container with many orders of labels, then everything else once."""
    rounds = max(1, round(ROUNDS * scale))
    for name in GROUPS:
        found = container_of_groups(name, rounds, seed=1)
        yield silent(f"groups, {name}: {rounds} neighbours", found)
    for case in groups_of_persons():
        if not case.name.startswith("groups: "):
            yield silent(case.name, case.findings())


PERSONS, EACH, MOST = 8, 3, 2
N = PERSONS * EACH
UNIT = PrivacyUnit("person", max_records=MOST, neighbours="add_remove")
Labels = list[Any]
Kept = npt.NDArray[np.intp]


def _refuses(*arguments: Any) -> Any:
    raise RuntimeError(MARK)


def _odd(name: str, *bases: type, **parts: Any) -> Any:
    """Return a class whose objects raise, with a mark, whatever these parts are asked."""
    return type(name, bases, parts)


ITSELF = {"__eq__": lambda self, other: self, "__hash__": None}
ODD_LABELS: tuple[Any, ...] = (
    *OBJECTS,
    _odd("Unequal", __eq__=_refuses, __hash__=None)(),
    _odd("Textless", __str__=_refuses, __repr__=_refuses)(),
    _odd("Untrue", __bool__=_refuses, **ITSELF)(),
    _odd("Classless", __class__=property(_refuses))(),
    _odd("Formatless", str, __format__=_refuses)(MARK),
    int(MARK) * 10**5000,
)
"""Labels that no program expects; some raise whatever they are asked, and say why."""


def _blocks(make: Callable[[Labels], Any]) -> Callable[[Labels], Any]:
    """Return the labels as a dask array of two blocks, each made by itself."""

    def array(labels: Labels) -> Any:
        dask, arrays = import_module("dask"), import_module("dask.array")
        halves = labels[: N // 2], labels[N // 2 :]
        parts = [dask.delayed(make, traverse=False)(half) for half in halves]
        return arrays.concatenate([arrays.from_delayed(p, (N // 2,), dtype=int) for p in parts])

    return array


def _series(make: Callable[[Labels], Any]) -> Callable[[Labels], Any]:
    """Return the labels as a dask series of two partitions, each made by itself."""

    def series(labels: Labels) -> Any:
        pandas, frames = import_module("pandas"), import_module("dask.dataframe")
        halves = labels[: N // 2], labels[N // 2 :]
        meta = pandas.Series([], dtype="int64")
        return frames.from_map(lambda half: pandas.Series(make(half)), halves, meta=meta)

    return series


def _typed(labels: Labels) -> Any:
    """Return integers; objects if one of them is missing."""
    return np.array(labels, object if None in labels else np.int64)


def _all_or_nothing(labels: Labels) -> Any:
    """Return integers; if one of them is missing, only missing values, as floats."""
    return np.full(len(labels), np.nan) if None in labels else np.array(labels, np.int64)


def _arrow(labels: Labels) -> Any:
    return CONTAINERS["pandas arrow"](labels).array


GROUPS: dict[str, Callable[[Labels], Any]] = {
    **{name: partial(column_in, name) for name in CONTAINERS},
    "list of rows": lambda labels: [[label] for label in labels],
    "list of some rows": lambda labels: [None if label is None else [label] for label in labels],
    "dask, arrow": _series(_arrow),
    "dask, blocks of arrow": _blocks(_arrow),
    "dask, blocks of pandas": _blocks(lambda labels: CONTAINERS["pandas nullable"](labels).array),
    "dask, partitions of objects and integers": _series(_typed),
    "dask, blocks of objects and integers": _blocks(_typed),
    "dask, partitions of floats and integers": _series(_all_or_nothing),
    "dask, blocks of floats and integers": _blocks(_all_or_nothing),
}


def groups_of_persons() -> list[Case]:
    """Return every container of labels, odd labels, records elsewhere, lists of rows, and cells."""
    return [
        *(Case(f"groups: {name}", partial(container_of_groups, name)) for name in GROUPS),
        *cases_of(_odd_labels, _records_on_a_cluster, _targets_in_other_blocks),
        *cases_of(_lists_of_rows, _long_rows),
        *cells_of_columns(),
        *equal_labels(),
    ]


def container_of_groups(name: str, rounds: int = 2, seed: int = 0) -> Iterator[str]:
    """Take a label away, some times, and see whose records count then."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        floats = name.endswith("floats and integers")
        labels = _labels(rng, apart=floats)
        changed = list(labels)
        changed[rng.integers(N)] = None
        groups = [GROUPS[name](each) for each in (labels, changed)]
        halves = labels[: N // 2], labels[N // 2 :]
        lost = halves[None in changed[N // 2 :]] if floats else ()
        found = _found(_local(), labels, changed, groups, lost)
        yield from (f"{name}: {what}" for what in found)


def _labels(rng: np.random.Generator, *, apart: bool = False) -> Labels:
    """Return labels; if ``apart``, no person has some in either half."""
    parts = np.repeat(np.arange(PERSONS), EACH).reshape(2 if apart else 1, -1)
    return [2**53 + 1 + int(i) for i in rng.permuted(parts, axis=1).ravel()]


def _found(
    records: Records,
    labels: Labels,
    changed: Labels,
    groups: Sequence[Any],
    lost: Sequence[int] = (),
) -> Iterator[str]:
    """Yield what is wrong with the records that count of two neighbours.

    Persons whose labels their container has ``lost`` are not compared.
    """
    kept = [_kept(records, each) for each in groups]
    for which, each in zip(kept, (labels, changed), strict=True):
        people = [each[i] for i in np.flatnonzero(which) if type(each[i]) is int]
        if max(map(people.count, people), default=0) > MOST or which.max() > 1:
            yield "more records of a person count than are protected"
    (place,) = [i for i in range(N) if labels[i] is not changed[i]]
    everybody = np.array(labels, object)
    counts = [Counter(np.repeat(everybody, which).tolist()) for which in kept]  # which, by chance
    others = {*labels} - {labels[place], *lost}
    if moved := sum(abs(counts[0][person] - counts[1][person]) for person in others):
        yield f"one label moved {moved} records of others"


def _kept(records: Any, groups: Any) -> Kept:
    """Return how often each record counts; the target of a record is its position."""
    counted, _ = records_that_count(records, groups, UNIT)
    total: Kept = counted.total(_positions)
    return total


def _positions(shard: Any) -> Kept:
    return np.bincount(shard.target.astype(int), minlength=N)


def _local() -> LocalRecords:
    return LocalRecords([(Table(np.zeros((N, 1))), np.arange(N))])


def _elsewhere() -> PartitionedRecords:
    arrays = import_module("dask.array")
    X, y = (arrays.from_array(a, chunks=7) for a in (np.zeros((N, 1)), np.arange(N)))
    return PartitionedRecords.read(PartitionedTable(X), y)


def _records_on_a_cluster() -> Iterator[str]:
    rng = np.random.default_rng(0)
    labels = _labels(rng)
    changed = [None, *labels[1:]]
    yield from _found(_elsewhere(), labels, changed, (labels, changed))


def _odd_labels() -> Iterator[str]:
    labels = _labels(np.random.default_rng(0))
    for odd in ODD_LABELS:
        changed = list(labels)
        changed[5] = odd
        cells = np.fromiter(changed, dtype=object, count=N)
        for groups in (changed, cells):
            yield from _said(partial(_found, _local(), labels, changed, (labels, groups)), odd)


def _said(findings: Callable[[], Iterator[str]], odd: object) -> Iterator[str]:
    """Yield findings; that something is raised or warned of is one."""
    name = type(odd).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield from (f"{name}: {what}" for what in findings())
        except Exception as error:
            shown = ", with its text" if MARK in everything_said(error) else ""
            yield f"{name} makes reading raise {type(error).__name__}{shown}"


def _targets_in_other_blocks() -> Iterator[str]:
    """Read targets of which one block is missing, in blocks of three, beside X in sevens."""
    dask, arrays = import_module("dask"), import_module("dask.array")
    large = 2**53 + 1
    blocks = [np.full(3, np.nan), *(np.full(3, large + i, np.int64) for i in range(1, N // 3))]
    y = arrays.concatenate(
        [arrays.from_delayed(dask.delayed(block), (3,), dtype=int) for block in blocks]
    )
    X = arrays.from_array(np.zeros((N, 1)), chunks=7)
    records = PartitionedRecords.read(PartitionedTable(X), y)
    read = records.total(_large_targets)
    if sorted(read) != sorted([large + i for i in range(1, N // 3)] * 3):
        yield "a block of targets has the type of another"


def _large_targets(shard: Any) -> list[int]:
    return [int(value) for value in shard.target if value == value]


def _lists_of_rows() -> Iterator[str]:
    for odd in (*ODD_LABELS, [], [1, 2], [None], (1,)):
        yield from _said(partial(_rows_beside, odd), odd)


def _rows_beside(odd: Any) -> Iterator[str]:
    rows = [[0], [1], odd, [0]]
    model = BaseEstimator()
    target = reading.read_target(model, rows, 4)
    if [target[i] for i in (0, 1, 3)] != [0, 1, 0]:
        yield "one row of y decides how others are read"
    wide = [[0, 1], [1, 0], odd, [1, 1]]
    table = reading.read_table(model, wide, reset=True, declared=True)
    columns = [[table.column(j)[i] for i in (0, 1, 3)] for j in range(2)]
    if columns != [[0, 1, 1], [1, 0, 1]]:
        yield "one row of X decides how others are read"
    declared = BayesianNaiveBayes(bounds=([0, 0], [1, 1]), classes=[0, 1])
    for few in ([[0, 1], odd], [[0, 1], [1], odd], [odd]):
        if declared._read(few, [0] * len(few)).statistics.n != len(few):
            yield "rows decide how many columns there are, though that is declared"


class _Long:
    """A row that says how long it is, and tells if somebody walks along it."""

    walked = False

    def __len__(self) -> int:
        return 10**4

    def __iter__(self) -> Iterator[int]:
        self.walked = True
        return iter(())


def _long_rows() -> Iterator[str]:
    row = _Long()
    reading.read_table(BaseEstimator(), [[0, 1], [1, 0], row], reset=True, declared=True)
    if row.walked:
        yield "a row of any length is unpacked"
