"""What containers convert: one cell, label or missing value must not change how others are read.

A container that makes a list of a column stops at a cell that has no form in Python. Dask makes
texts of a partition of objects, which it is if one of its values is missing. Categories are
integers above 2^53, which a conversion to floats would mix up, and one value of one record becomes
missing: whatever else changes, changes for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any
from uuid import UUID

import numpy as np

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Case, Pair, Rng, Subject, cases_of
from benchmarks.audit.tools.fuzzing import CONTAINERS, column_in, table_in
from dpbayes_sklearn.data.dask import PartitionedRecords, PartitionedTable, column_here
from dpbayes_sklearn.data.persons import coins_of, counted_records
from dpbayes_sklearn.data.records import Table, one_column

N, ODD = 7, 3
FAR = 2**62
Column = Callable[[bool], Any]


def _ticks(odd: bool, far: int = FAR) -> Any:
    ticks = np.arange(N, dtype=np.int64) * 86_400_000
    ticks[ODD] = far if odd else ticks[ODD]
    return ticks


def _arrow(arrow: str, *arguments: Any) -> Column:
    """Return a column of a type of arrow, of which one cell may be far away."""

    def column(odd: bool) -> Any:
        pyarrow = import_module("pyarrow")
        return _in_pandas(pyarrow.array(_ticks(odd)).cast(getattr(pyarrow, arrow)(*arguments)))

    return column


def _days(odd: bool) -> Any:
    pyarrow = import_module("pyarrow")
    days = np.where(_ticks(odd) == FAR, 2**31 - 1, np.arange(N))
    return _in_pandas(pyarrow.array(days.astype(np.int32)).cast(pyarrow.date32()))


def _broken_text(odd: bool) -> Any:
    pyarrow = import_module("pyarrow")
    texts = [b"%d" % i for i in range(N)]
    texts[ODD] = b"\xff" if odd else texts[ODD]
    buffers = pyarrow.array(texts, pyarrow.binary()).buffers()
    return _in_pandas(pyarrow.StringArray.from_buffers(N, *buffers[1:]))


def _in_pandas(array: Any) -> Any:
    pandas, pyarrow = import_module("pandas"), import_module("pyarrow")
    return pandas.Series(pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([array])))


def _zone(odd: bool) -> Any:
    pandas = import_module("pandas")
    dates = pandas.DatetimeIndex(_ticks(odd, far=2**63 - 1).view("M8[ns]"))
    return pandas.Series(dates.tz_localize("UTC").tz_convert("Asia/Tokyo"))


def _polars_duration(odd: bool) -> Any:
    polars = import_module("polars")
    return polars.Series("x", _ticks(odd)).cast(polars.Duration("ms"))


COLUMNS: dict[str, Column] = {
    "arrow timestamp": _arrow("timestamp", "ms"),
    "arrow timestamp in a zone": _arrow("timestamp", "us", "Asia/Tokyo"),
    "arrow date": _days,
    "arrow duration": _arrow("duration", "s"),
    "arrow text that is no UTF-8": _broken_text,
    "pandas zone": _zone,
    "polars duration": _polars_duration,
}
"""Columns of which one cell is odd or not: Python has no date or text for it."""


def cells_of_columns() -> list[Case]:
    """Return a case for every column, and for every type that a collection of dask declares."""
    return [
        *(Case(f"cells: {name}", partial(_others, name)) for name in COLUMNS),
        *(
            Case(f"partitions: {name}, {how}", partial(_partitions, name, how == "arrays"))
            for name in DECLARED
            for how in ("frames", "arrays")
            if how == "frames" or name not in EXTENSIONS
        ),
    ]


def _others(name: str) -> Iterator[str]:
    plain, odd = (COLUMNS[name](each) for each in (False, True))
    for read in (one_column, lambda column: Table(column.to_frame()).column(0)):
        try:
            same = _listed(read(plain)) == _listed(read(odd))
        except Exception as error:
            yield f"{name}: one cell makes reading raise {type(error).__name__}"
        else:
            if not same:
                yield f"{name}: one cell changes how others are read"


def _listed(cells: Any) -> list[tuple[type, str]]:
    """Return all cells but the odd one, with their types."""
    return [(type(cell), repr(cell)) for i, cell in enumerate(cells) if i != ODD]


def _values(name: str) -> Any:
    pandas = import_module("pandas")
    dates = pandas.Series(np.arange(N) * 86400 + 5).astype("datetime64[s]")
    return {
        "booleans": lambda: pandas.Series(np.arange(N) % 2 == 1),
        "integers": lambda: pandas.Series(np.arange(N) + 2**53 + 1),
        "floats": lambda: pandas.Series(np.arange(N) / 7),
        "single floats": lambda: pandas.Series((np.arange(N) / 7).astype(np.float32)),
        "dates": lambda: dates.astype("datetime64[ns]"),
        "dates in a zone": lambda: dates.dt.tz_localize("Europe/Berlin"),
        "durations": lambda: pandas.Series(np.arange(N)).astype("timedelta64[s]"),
        "nullable integers": lambda: pandas.Series(np.arange(N) + 2**53 + 1, dtype="Int64"),
        "categories": lambda: pandas.Series(np.arange(N), dtype="category"),
    }[name]()


DECLARED = ("booleans", "integers", "floats", "single floats", "dates", "dates in a zone")
DECLARED += ("durations", "nullable integers", "categories")
"""What a collection declares that holds a partition of objects."""
EXTENSIONS = ("dates in a zone", "nullable integers", "categories")
"""Types of pandas, which dask's arrays do not declare; dask warns of it."""


def _partitions(name: str, arrays: bool) -> Iterator[str]:
    plain, odd = (read_by_dask(name, missing, arrays) for missing in (False, True))
    for role in plain:
        pairs = [*zip(plain[role], odd[role], strict=True)]
        if any(bool(a != b) for a, b in pairs[:-1]):
            yield f"{name}: a missing value changes others of its partition, as {role}"


def read_by_dask(name: str, missing: bool, arrays: bool) -> dict[str, list[Any]]:
    """Return what is read as X, y and groups from two partitions; the last value may be missing."""
    pandas, frames = import_module("pandas"), import_module("dask.dataframe")
    values = _values(name)
    cells = values.astype(object)
    cells.iloc[-1] = None
    parts = [pandas.DataFrame({"x": column}) for column in (values, cells if missing else values)]
    frame = frames.from_map(lambda i: parts[i], [0, 1], meta=parts[0].iloc[:0])
    X, y = (frame[["x"]].values, frame["x"].values) if arrays else (frame[["x"]], frame["x"])
    records = PartitionedRecords.read(PartitionedTable(X), y)
    x, target = zip(*records.total(_pairs), strict=True)
    return {"X": [*x], "y": [*target], "groups": [*column_here(y)]}


def _pairs(shard: Any) -> list[Any]:
    return [*zip(shard.table.column(0), shard.target, strict=True)]


IDS = [2**53 + 1, 2**53 + 3]
LABELS = dp.Categories(IDS)
RECORDS = 12


def _ids(rng: Rng, n: int = RECORDS) -> list[Any]:
    return [IDS[i] for i in rng.permutation([*range(2), *rng.integers(0, 2, n - 2)])]


def _missing(values: list[Any], rng: Rng) -> list[Any]:
    """Return the values, one of them missing or, now and then, another one."""
    changed = list(values)
    changed[rng.integers(len(values))] = None if rng.integers(4) else IDS[rng.integers(2)]
    return changed


def _labels(container: str, rng: Rng) -> Pair:
    y = _ids(rng)
    X = table_in(container, [(i % 2, 0) for i in range(RECORDS)])
    return X, column_in(container, y), X, column_in(container, _missing(y, rng))


def _features(container: str, rng: Rng) -> Pair:
    a, y = _ids(rng), column_in(container, _ids(rng))
    tables = [table_in(container, [(x, 0) for x in column]) for column in (a, _missing(a, rng))]
    return tables[0], y, tables[1], y


def _targets(container: str, rng: Rng) -> Pair:
    y = [int(v) for v in rng.integers(0, 4, RECORDS)]
    X = table_in(container, [(i % 2, i % 3) for i in range(RECORDS)])
    changed = list(y)
    changed[rng.integers(RECORDS)] = None
    return X, column_in(container, y), X, column_in(container, changed)


def _one_column(container: str, rng: Rng) -> Pair:
    x = _ids(rng)
    return column_in(container, x), None, column_in(container, _missing(x, rng)), None


def _booleans(container: str, rng: Rng) -> Pair:
    """Return columns of true, false and, in the second, a one: its type may say less, not more."""
    x: list[Any] = [bool(i % 2) for i in range(RECORDS)]
    changed = list(x)
    changed[0] = 1
    sides = [np.array(v, object) if container == "array of objects" else v for v in (x, changed)]
    return sides[0], None, sides[1], None


def container_subjects() -> Iterator[Subject]:
    """Yield every container in every role."""
    schema = dp.Schema({"a": LABELS, "b": dp.Interval(0, 3, bins=2)}, target=LABELS)
    line = {"bounds_X": (0, 2), "bounds_y": (0, 3), "noise_variance": 0.1}
    roles: list[tuple[str, Any, Callable[..., Pair]]] = [
        ("labels", dp.BayesianNaiveBayes(bounds=(0, 3), n_bins=2, classes=IDS), _labels),
        ("columns", dp.BayesianNaiveBayes(schema=schema), _features),
        ("a target", dp.BayesianLinearRegression(**line), _targets),
        ("one column", dp.DirichletMultinomial(categories=LABELS), _one_column),
    ]
    for container in CONTAINERS:
        for role, estimator, make in roles:
            if container == "dask" and role == "one column":
                continue  # estimators of one column read what is here
            name = f"{type(estimator).__name__}, {role}: {container}"
            yield Subject(name, estimator, partial(make, container))
    for container in ("list", "array of objects"):
        name = f"BetaBinomial, truth values: {container}"
        yield Subject(name, dp.BetaBinomial(), partial(_booleans, container))


EAST = timezone(timedelta(hours=2))


class Addressed:
    """Has no text but that of its address."""


class Namesake:
    """Has the same text as all others."""

    def __str__(self) -> str:
        return "somebody"


EQUAL: tuple[tuple[Any, ...], ...] = (
    ("ann", np.str_("ann")),
    (b"ann", np.bytes_(b"ann")),
    (1, 1.0, True, np.True_, np.int8(1), np.float16(1), Fraction(1), Decimal("1"), Decimal("1.00")),
    (0.5, np.float32(0.5), np.longdouble(0.5), Fraction(1, 2), Decimal("0.50")),
    (np.inf, np.float32(np.inf), Decimal("Infinity")),
    (
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 2, tzinfo=EAST),
        *(np.datetime64("2020-01-01", unit) for unit in ("Y", "D", "s", "us", "ns")),
    ),
    (timedelta(days=1), np.timedelta64(1, "D"), np.timedelta64(86400, "s")),
    (UUID(int=7), UUID("00000000-0000-0000-0000-000000000007")),
    (("ann", 1), ("ann", 1.0), ("ann", True), ("ann", np.int64(1))),
)
"""Labels of one person each."""

NO_LABELS: tuple[Any, ...] = (
    *(Addressed() for _ in range(3)),
    *(Namesake() for _ in range(3)),
    *(frozenset({1}), [1], {1: 1}, 1j, np.array(1), ("ann", None), ("ann", Addressed()), (("a",),)),
    *(Decimal("1e999999"), Decimal("NaN"), Ellipsis, int),
)
"""Objects that nobody can compare, or that say nothing about a person."""


def equal_labels() -> list[Case]:
    """Return the two cases."""
    return cases_of(_equal_labels, _labels_that_are_none)


def _equal_labels() -> Iterator[str]:
    everybody = [label for person in EQUAL for label in person]
    for person in (*EQUAL, everybody):
        labels = np.fromiter(person, dtype=object, count=len(person))
        n_persons = len(EQUAL) if person is everybody else 1
        if len(counted_records(labels, 1)) != n_persons:
            yield "equal labels are not those of one person"
        if len({*coins_of(labels)}) != n_persons:
            yield "records of a person are on both sides of a search"


def _labels_that_are_none() -> Iterator[str]:
    labels = np.fromiter(NO_LABELS, dtype=object, count=len(NO_LABELS))
    if len(counted_records(labels, 1)):
        yield "an object that is no label counts as a person"
