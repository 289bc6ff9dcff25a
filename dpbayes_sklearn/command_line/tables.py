"""Tables of the command line, read a batch of records at a time, whatever their size.

**A CSV file, parsed according to declared domains so that no value can cause an error.**

A file is read by RFC 4180: a quoted cell may contain separators, doubled quotes and line breaks. A
quote that is not closed would join records, so such a file is refused; in a file that a program has
written properly, no cell affects how another record is parsed. An empty line is a record without
values, wherever it is. A number is anything that Python's ``float`` accepts, a date is written
YYYY-MM-DD with or without a time unless a format is given, and a category must equal a declared
value as text or as a number. Anything else is missing, and so are the cells that a short line
lacks; surplus cells are ignored.

**What is asked several times is kept on the disk.**

A fit reads records more often than once. So the columns that it needs are parsed once, and written
to a temporary file without a name, which is mapped into memory: 8 bytes for a number or a date, 1
to 4 for a category. Of texts without a domain (whose record it is, what is to be learned) the
distinct ones are in memory.
"""

from __future__ import annotations

import csv
import mmap
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.command_line.files import FileError, place_of
from dpbayes_sklearn.data.records import Columns
from dpbayes_sklearn.preprocessing.template import kinds_of_columns
from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.schema.values import (
    Column,
    Kind,
    Repeated,
    as_cells,
    as_numbers,
    number_of,
    own_list,
)

_CELLS_A_BATCH = 1 << 18  # About this many cells are read at a time.
_MISSING_CELL = ""  # What a line that is too short has in a column.
REPLACED = "\ufffd"
"""What bytes that are not of the encoding of a file become."""


class Form(NamedTuple):
    """How a CSV file is written; dates by ``datetime.strptime``, or of ISO 8601."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8-sig"
    date_format: str | None = None

    @property
    def called(self) -> str:
        """Name of the encoding."""
        return self.encoding.upper().removesuffix("-SIG")


PLAIN = Form()


Batch = dict[str, Sequence[Any]]
"""The cells of some columns and some records, as they are written."""


@dataclass(frozen=True)
class CsvFile:
    """A table in a text: names in its first line, and a line for each record.

    It is read once, so it may also be a pipe.
    """

    path: Path
    names: tuple[str, ...]
    form: Form
    lines: Iterator[str]

    @classmethod
    def open(cls, path: Path, form: Form = PLAIN) -> CsvFile:
        """Read the names in the first line; refuse a file that ends there."""
        lines = _lines(path, form)
        names = _names(next(lines, ""), path, form)
        second = next(lines, "")
        _refuse_nothing(second, path)
        return cls(path, names, form, chain([second], lines))

    def batches(self, names: Iterable[str]) -> Iterator[Batch]:
        """Return the cells of some columns, of some records at a time."""
        return self._batches({name: place_of(name, self.names) for name in names})

    def _batches(self, places: Mapping[str, int]) -> Iterator[Batch]:
        width = len(self.names)
        lacking = [_MISSING_CELL] * width
        records = _records(self.lines, self.path, self.form, 2)
        while lines := [*islice(records, max(1, _CELLS_A_BATCH // width))]:
            if {*map(len, lines)} != {width}:
                lines = [[*line, *lacking][:width] for line in lines]
            columns = [*zip(*lines, strict=True)]
            yield {name: columns[j] for name, j in places.items()}


@dataclass(frozen=True)
class ParquetFile:
    """A table with types of its own, read by pyarrow."""

    path: Path
    names: tuple[str, ...]
    form: ClassVar[Form] = PLAIN

    @classmethod
    def open(cls, path: Path) -> ParquetFile:
        """Read the names of the columns; refuse a file without records."""
        records = _records_of(path)
        _refuse_nothing(records.count_rows(), path)
        return cls(path, tuple(records.schema.names))

    def batches(self, names: Iterable[str]) -> Iterator[Batch]:
        """Return the cells of some columns; None for one that Python cannot hold."""
        columns = [*dict.fromkeys(names)]
        for name in columns:
            place_of(name, self.names)
        return self._batches(columns)

    def _batches(self, columns: list[str]) -> Iterator[Batch]:
        size = max(1, _CELLS_A_BATCH // max(1, len(columns)))
        ahead = {"batch_readahead": 0, "fragment_readahead": 0}
        for batch in _records_of(self.path).to_batches(columns=columns, batch_size=size, **ahead):
            if batch.num_rows:
                yield {name: own_list(batch.column(name)) for name in columns}


DataFile = CsvFile | ParquetFile


def read_data(path: Path, form: Form) -> DataFile:
    """Open a table: Parquet by its ending, otherwise CSV."""
    return ParquetFile.open(path) if path.suffix == ".parquet" else CsvFile.open(path, form)


def _refuse_nothing(found: object, path: Path) -> None:
    if not found:
        raise FileError(f"{path.name} has no records.")


UNBOUNDED_NUMBERS, UNBOUNDED_DATES = Interval(0, 1), Interval(0, 1, dates=True)
"""Domains by which columns are parsed whose bounds are not known."""


def column_kinds(path: Path, form: Form = PLAIN) -> dict[str, Kind]:
    """Return the columns of a file, and what their types say, without looking at any record."""
    if path.suffix == ".parquet":
        return kinds_of_columns(_records_of(path).schema.empty_table())
    return dict.fromkeys(_names(next(_lines(path, form), ""), path, form), "anything")


def _records_of(path: Path) -> Any:
    """Return a file of Parquet, or a folder of such files."""
    return _arrow("dataset").dataset(path, format="parquet", partitioning="hive")


def _arrow(part: str) -> Any:
    try:
        return import_module(f"pyarrow.{part}")
    except ImportError:
        raise FileError("Parquet files need pyarrow: pip install pyarrow.") from None


def _lines(path: Path, form: Form) -> Iterator[str]:
    csv.field_size_limit(sys.maxsize)
    try:
        file = path.open(newline="\n", encoding=form.encoding, errors="replace")
    except LookupError:
        raise FileError(f"There is no encoding {form.encoding!r}.") from None
    with file:
        yield from file


def _names(first_line: str, path: Path, form: Form) -> tuple[str, ...]:
    """Return the names in the first line, which an error must not show: it may be a record."""
    first_line = first_line.rstrip("\r\n")
    if "\r" in first_line:
        raise FileError(f"The lines of {path.name} must end with LF or CR LF, not with CR alone.")
    if REPLACED in first_line:
        raise FileError(
            f"The first line of {path.name} is not {form.called}: name the encoding of the file, "
            "as in --encoding latin-1."
        )
    names = next(iter(_records([first_line], path, form, 1)), [])
    times = Counter(names)
    places = [str(j + 1) for j, name in enumerate(names) if times[name] > 1]
    if not names or places:
        raise FileError(
            f"The first line of {path.name} must contain column names, all different."
            + (f" The columns {', '.join(places)} have names that repeat." if places else "")
        )
    return tuple(names)


def _records(lines: Iterable[str], path: Path, form: Form, line: int) -> Iterator[list[str]]:
    """Yield the cells of every record; ``line`` is the line number of the first one."""
    above = line
    reader = csv.reader(map(_plain, lines), delimiter=form.sep, strict=True)
    try:
        for record in reader:
            yield record
            line = above + reader.line_num  # of the next record
        return
    except csv.Error:
        broken = "is not closed, or followed by more than a separator"
    raise FileError(
        f"{path.name} is not written as RFC 4180 says: a quoted cell of the record in line {line} "
        f"{broken}. It would join records, so nobody could tell whose they are."
    )


def _plain(line: str) -> str:
    """Return a line that ends with LF; any other CR is a space."""
    return line.replace("\r\n", "\n").replace("\r", " ") if "\r" in line else line


def as_number(text: str) -> float | None:
    """Return the number that a text is, None if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return None


def _reader(domain: Domain, form: Form) -> Callable[[str], Any]:
    if not isinstance(domain, Interval):
        return _category_reader(domain)
    if domain.dates:
        return partial(_date, form.date_format)
    return lambda text: as_number(text.replace(form.decimal, "."))


def _date(form: str | None, text: str) -> datetime | None:
    try:
        text = text.strip()
        return datetime.fromisoformat(text) if form is None else datetime.strptime(text, form)
    except ValueError:
        return None


def _category_reader(domain: Categories) -> Callable[[str], Any]:
    written = {str(value): value for value in domain.values}
    numbers = {
        number_of(value): value
        for value in domain.values
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }

    def read(text: str) -> Any:
        if text in written:
            return written[text]
        number = as_number(text) if numbers else None
        return None if number is None else numbers.get(number)

    return read


class _Kept(NamedTuple):
    """How a column is kept: a type of numpy, what makes it of cells, and what it is read as."""

    dtype: np.dtype[Any]
    encode: Callable[[Sequence[Any]], AnyArray]
    column: Callable[[AnyArray], Column] = lambda kept: kept


def _kept(domain: Domain | None, form: Form) -> _Kept:
    if domain is None:
        number: dict[Any, int] = {None: 0}
        return _Kept(
            np.dtype(np.int64),
            partial(_numbered, number),
            lambda kept: Repeated(kept, as_cells([*number, None], 1)),
        )
    if isinstance(domain, Categories):
        cells = as_cells([*domain.values, None], 1)
        return _Kept(
            np.min_scalar_type(domain.n_values),
            partial(_places, domain, form),
            lambda kept: Repeated(kept, cells),
        )
    if domain.dates:
        return _Kept(
            np.dtype("datetime64[us]"),
            lambda cells: _instants(as_numbers(read_cells(cells, domain, form))),
        )
    return _Kept(np.dtype(np.float64), partial(_numbers, domain, form))


def _numbered(number: dict[Any, int], cells: Sequence[Any]) -> AnyArray:
    """Return the number of every text, a new one for a new text; lists are missing."""
    known = (cell if isinstance(cell, Hashable) else None for cell in cells)
    found = (number.setdefault(cell, len(number)) for cell in known)
    return np.fromiter(found, np.int64, len(cells))


def _places(domain: Categories, form: Form, cells: Sequence[Any]) -> AnyArray:
    """Return the places of cells in the values of a domain, one past the last if in none."""
    distinct = [*dict.fromkeys(cells)] if all(type(cell) is str for cell in cells) else cells
    values = read_cells(distinct, domain, form)
    places = np.where(domain.holds(values), domain.encode(values), domain.n_values)
    if distinct is cells:
        return places
    place = dict(zip(distinct, places.tolist(), strict=True))
    return np.fromiter(map(place.__getitem__, cells), np.int64, len(cells))


def _numbers(domain: Interval, form: Form, cells: Sequence[Any]) -> FloatArray:
    with suppress(TypeError, ValueError, OverflowError):  # what is no number is read cell by cell
        if form.decimal == ".":
            return np.fromiter(map(float, cells), np.float64, len(cells))
    return as_numbers(read_cells(cells, domain, form))


def read_cells(cells: Sequence[Any], domain: Domain, form: Form, odd: Any = None) -> AnyArray:
    """Return cells, texts parsed by a domain; ``odd`` where one holds what is not understood."""
    read = _reader(domain, form)
    values = (read(cell) if isinstance(cell, str) else cell for cell in cells)
    found = np.fromiter(values, object, len(cells))
    if odd is not None:
        for i, cell in enumerate(cells):
            if found[i] is None and cell not in (None, "") and not str(cell).isspace():
                found[i] = odd
    return found


def parsed(batch: Batch, domains: Mapping[str, Domain], form: Form) -> Columns:
    """Return columns of a batch, parsed by their domains."""
    kept = {name: _kept(domain, form) for name, domain in domains.items()}
    cells = [each.column(each.encode(batch[name])) for name, each in kept.items()]
    return Columns([*domains], cells)


def stored(file: DataFile, asked: Sequence[tuple[str, Domain | None]]) -> list[Column]:
    """Return columns, parsed by a domain or texts as they are, in a file mapped into memory."""
    kept = [_kept(domain, file.form) for _, domain in asked]
    row = np.dtype([(str(j), each.dtype) for j, each in enumerate(kept)], align=True)
    found = file.batches([name for name, _ in asked])
    try:
        with TemporaryFile() as disk:
            for batch in found:
                rows = np.empty(len(batch[asked[0][0]]), row)
                for j, ((name, _), each) in enumerate(zip(asked, kept, strict=True)):
                    rows[str(j)] = each.encode(batch[name])
                disk.write(rows.tobytes())
            disk.flush()
            mapped = mmap.mmap(disk.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise FileError(
            f"The columns of {file.path.name} cannot be kept in {gettempdir()}: {error.strerror}. "
            "Set TMPDIR to a folder with more room. Nothing was spent."
        ) from None
    rows = np.frombuffer(mapped, row)
    return [each.column(rows[str(j)]) for j, each in enumerate(kept)]


def typed_frame(
    file: DataFile,
    declared: Mapping[str, Domain],
    kinds: Mapping[str, Sequence[str]],
    persons: str | None = None,
) -> tuple[Columns, Column | None]:
    """Return some columns as a frame, of types that are public, and whose record each is.

    The user has said the types. A cell that is no number or date is missing, so that no cell
    decides the type of a column.
    """
    of_kind = {"numbers": UNBOUNDED_NUMBERS, "dates": UNBOUNDED_DATES, "texts": None}
    asked: list[tuple[str, Domain | None]] = [*declared.items()]
    asked += [(name, of_kind[kind]) for kind, names in kinds.items() for name in names]
    named = [name for name, _ in asked]
    if repeated := [name for name, times in Counter(named).items() if times > 1]:
        raise FileError(f"The column {repeated[0]!r} is named twice.")
    if persons is None:
        return Columns(named, stored(file, asked)), None
    *columns, groups = stored(file, [*asked, (persons, None)])
    return Columns(named, columns), groups


def _instants(seconds: FloatArray) -> AnyArray:
    """Return times in microseconds, whatever they are; those out of its range are missing.

    >>> _instants(np.array([0.5, 1e300, np.nan])).astype(str).tolist()
    ['1970-01-01T00:00:00.500000', 'NaT', 'NaT']
    """
    steps = np.rint(seconds * 1e6)
    known = np.abs(steps) < 2**62
    whole = np.where(known, steps, 0.0).astype(np.int64).astype("datetime64[us]")
    return np.where(known, whole, np.datetime64("NaT", "us"))
