"""Files of the command line: CSV tables, schemas as users write them, and outputs.

**A CSV file, parsed according to declared domains so that no value can cause an error.**

A file is read by RFC 4180: a quoted cell may contain separators, doubled quotes and line breaks. A
quote that is not closed would join records, so such a file is refused; in a file that a program has
written properly, no cell affects how another record is parsed. An empty line is a record without
values, wherever it is. A number is anything that Python's ``float`` accepts, a date is written
YYYY-MM-DD with or without a time unless a format is given, and a category must equal a declared
value as text or as a number. Anything else is missing, and so are the cells that a short line
lacks; surplus cells are ignored.

**A schema as users write it: a JSON file with the columns and the target by name.**

``{"columns": {"age": {"low": 17, "high": 90}, "job": {"values": ["clerk", "nurse"]}},
"target": {"values": ["no", "yes"]}}``. Dates are written "2020-01-31". What
:meth:`Schema.to_json` writes has this form, too.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import gettempdir
from typing import Any, BinaryIO, NamedTuple, NoReturn, TextIO
from uuid import uuid4

import numpy as np

from dpbayes_sklearn._compat import did_you_mean
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.preprocessing.template import kinds_of_columns
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.schema.values import Kind, as_numbers, number_of, own_list

TextColumn = AnyArray
_MISSING_CELL = ""  # What a line that is too short has in a column.
REPLACED = "\ufffd"
"""What bytes that are not of the encoding of a file become."""


class FileError(ValueError):
    """Raised if a file cannot be used; the message names files and columns, never values."""


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


@dataclass(frozen=True)
class CsvFile:
    """The text of a table: names in its first line, and a line for each record."""

    names: tuple[str, ...]
    lines: list[list[str]]
    form: Form

    @classmethod
    def read(cls, path: Path, form: Form = PLAIN) -> CsvFile:
        """Read a file; bytes that are not of its encoding are replaced."""
        with _opened(path, form) as file:
            text = file.read().replace("\r\n", "\n").removesuffix("\n")
        first, end, rest = text.partition("\n")
        names = _names(first, path, form)
        lines = _records(rest + end, path, form, 2)
        if not lines:
            raise FileError(f"{path.name} has no records.")
        return cls(names, lines, form)

    def texts(self, name: str) -> list[str]:
        """Return the cells of a column as they are written."""
        j = place_of(name, self.names)
        return [line[j] if j < len(line) else _MISSING_CELL for line in self.lines]

    def column(self, name: str, domain: Domain) -> TextColumn:
        """Return the values of a column, parsed according to its domain; None if there is none."""
        return _objects(map(_reader(domain, self.form), self.texts(name)), len(self.lines))

    @property
    def other_lines(self) -> int:
        """Number of lines with bytes that are not of the encoding: for the data owner alone."""
        return sum(any(REPLACED in cell for cell in line) for line in self.lines)


@dataclass(frozen=True)
class ParquetFile:
    """A table with types of its own, read by pyarrow."""

    names: tuple[str, ...]
    table: Any

    @classmethod
    def read(cls, path: Path) -> ParquetFile:
        """Read a file."""
        table = _parquet().read_table(path)
        if not table.num_rows:
            raise FileError(f"{path.name} has no records.")
        return cls(tuple(table.column_names), table)

    def texts(self, name: str) -> list[Any]:
        """Return the cells of a column, None for one that Python cannot hold."""
        place_of(name, self.names)
        cells: list[Any] = own_list(self.table[name])
        return cells

    def column(self, name: str, domain: Domain) -> TextColumn:
        """Return the values of a column; texts are parsed according to its domain."""
        read = _reader(domain, PLAIN)
        cells = (read(cell) if isinstance(cell, str) else cell for cell in self.texts(name))
        return _objects(cells, self.table.num_rows)


DataFile = CsvFile | ParquetFile


def mark_odd(cells: TextColumn, written: Sequence[Any]) -> None:
    """Let cells that hold something, but nothing that was understood, not be missing."""
    for i, text in enumerate(written):
        if cells[i] is None and text not in (None, "") and not str(text).isspace():
            cells[i] = ...


UNBOUNDED_NUMBERS, UNBOUNDED_DATES = Interval(0, 1), Interval(0, 1, dates=True)
"""Domains by which columns are parsed whose bounds are not known."""


def read_data(path: Path, form: Form) -> DataFile:
    """Read a table: Parquet by its ending, otherwise CSV."""
    return ParquetFile.read(path) if path.suffix == ".parquet" else CsvFile.read(path, form)


def _objects(cells: Iterable[Any], n: int) -> TextColumn:
    return np.fromiter(cells, dtype=object, count=n)


def place_of(name: str, names: Sequence[str]) -> int:
    """Return which column has a name."""
    if name not in names:
        one = " It holds one name: --sep or --encoding may be others."
        hint = one if len(names) == 1 else did_you_mean(name, names)
        raise FileError(f"There is no column {name!r} in the first line of the file.{hint}")
    return names.index(name)


def column_kinds(path: Path, form: Form = PLAIN) -> dict[str, Kind]:
    """Return the columns of a file, and what their types say, without looking at any record."""
    if path.suffix == ".parquet":
        return kinds_of_columns(_parquet().read_schema(path).empty_table())
    with _opened(path, form) as file:
        names = _names(file.readline().rstrip("\r\n"), path, form)
    return dict.fromkeys(names, "anything")


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise FileError("Parquet files need pyarrow: pip install pyarrow.") from None


def _opened(path: Path, form: Form) -> TextIO:
    csv.field_size_limit(sys.maxsize)
    try:
        return path.open(newline="\n", encoding=form.encoding, errors="replace")
    except LookupError:
        raise FileError(f"There is no encoding {form.encoding!r}.") from None


def _names(first_line: str, path: Path, form: Form) -> tuple[str, ...]:
    """Return the names in the first line, which an error must not show: it may be a record."""
    if "\r" in first_line.removesuffix("\r"):
        raise FileError(f"The lines of {path.name} must end with LF or CR LF, not with CR alone.")
    if REPLACED in first_line:
        raise FileError(
            f"The first line of {path.name} is not {form.called}: name the encoding of the file, "
            "as in --encoding latin-1."
        )
    names = next(iter(_records(first_line, path, form, 1)), [])
    times = Counter(names)
    places = [str(j + 1) for j, name in enumerate(names) if times[name] > 1]
    if not names or places:
        raise FileError(
            f"The first line of {path.name} must contain column names, all different."
            + (f" The columns {', '.join(places)} have names that repeat." if places else "")
        )
    return tuple(names)


def _records(text: str, path: Path, form: Form, line: int) -> list[list[str]]:
    """Return the cells of every record, the first of which is in a line of this number."""
    above = line
    lines = io.StringIO(text.replace("\r", " "), newline="\n")
    reader = csv.reader(lines, delimiter=form.sep, strict=True)
    records: list[list[str]] = []
    try:
        for record in reader:
            records.append(record)
            line = above + reader.line_num  # of the next record
        return records
    except csv.Error:
        broken = "is not closed, or followed by more than a separator"
    raise FileError(
        f"{path.name} is not written as RFC 4180 says: a quoted cell of the record in line {line} "
        f"{broken}. It would join records, so nobody could tell whose they are."
    )


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


def typed_frame(file: DataFile, declared: Sequence[str], kinds: Mapping[str, Sequence[str]]) -> Any:
    """Return some columns as a data frame, of types that are public: as the user has said.

    A cell that is no number or date is missing, so that no cell decides the type of a column.
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise FileError("Learning a schema needs pandas: pip install pandas.") from None
    named = [*declared, *chain.from_iterable(kinds.values())]
    if repeated := [name for name, times in Counter(named).items() if times > 1]:
        raise FileError(f"The column {repeated[0]!r} is named twice.")
    numbers = {name: as_numbers(file.column(name, UNBOUNDED_NUMBERS)) for name in kinds["numbers"]}
    dates = {
        name: _instants(as_numbers(file.column(name, UNBOUNDED_DATES))) for name in kinds["dates"]
    }
    texts = {name: file.texts(name) for name in (*kinds["texts"], *declared)}
    objects = {name: _objects(cells, len(cells)) for name, cells in texts.items()}
    columns = {**numbers, **dates, **objects}
    return DataFrame({name: columns[name] for name in named})


def _instants(seconds: FloatArray) -> TextColumn:
    """Return times in microseconds, whatever they are: pandas would choose a unit by all of them.

    >>> _instants(np.array([0.5, 1e300, np.nan])).astype(str).tolist()
    ['1970-01-01T00:00:00.500000', 'NaT', 'NaT']
    """
    steps = np.rint(seconds * 1e6)
    known = np.abs(steps) < 2**62
    whole = np.where(known, steps, 0.0).astype(np.int64).astype("datetime64[us]")
    return np.where(known, whole, np.datetime64("NaT", "us"))


def with_all_columns(schema: Schema, names: Sequence[str], others: Sequence[str | None]) -> Schema:
    """Return a schema whose column ``*`` stands for all columns that are not listed."""
    if "*" not in schema.columns:
        return schema
    rest = [name for name in names if name not in schema.columns and name not in others]
    listed = {name: domain for name, domain in schema.columns.items() if name != "*"}
    columns = {**listed, **dict.fromkeys(rest, schema.columns["*"])}
    return replace(schema, columns=columns)


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


# The fields of an interval, and those of categories, in a file.
_FIELDS = ({"low", "high", "bins", "dates", "edges", "missing"}, {"values", "unseen", "dtype"})
_OPTIONAL = {"guarantee"}  # Fields of a schema that a file may leave out.


def read_schema(path: Path) -> Schema:
    """Read a schema with a target; an error names all parts that must still be filled in."""
    fields = _fields(path)
    given = [*fields["columns"].items(), ("target", fields["target"])]
    gaps: dict[str, list[str]] = {}
    for name, own in given:
        if open_ := _gap(own):
            gaps.setdefault(open_, []).append(repr(name))
    if gaps:
        parts = (f"{open_} of {', '.join(names)}" for open_, names in gaps.items())
        raise FileError(f"Fill in {'; '.join(parts)}: from a codebook and not from the data.")
    *columns, (_, target) = [(name, _domain(own, name)) for name, own in given]
    try:  # not so with Infinity as a category
        schema = Schema(dict(columns), target, fields.get("guarantee"))
        Schema.from_json(schema.to_json())
    except ValueError as error:
        raise FileError(f"{path.name} cannot be part of a model: {error}") from None
    return schema


def read_columns(path: Path, target: str) -> dict[str, Domain]:
    """Return the domains that a schema declares; others are still to be learned."""
    fields = _fields(path)
    given = {**fields["columns"], target: fields["target"]}
    filled = {name: own for name, own in given.items() if own and any(own.values())}
    return {name: _domain(own, name) for name, own in filled.items()}


def _fields(path: Path) -> dict[str, Any]:
    """Return the fields of a schema, as they are written."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise FileError(f"{path.name} is not JSON.") from None
    if not isinstance(fields, dict) or set(fields) - _OPTIONAL != {"columns", "target"}:
        raise FileError(f"{path.name} must be an object with the fields columns and target.")
    if not isinstance(fields["columns"], dict) or not fields["columns"]:
        raise FileError(
            f"The columns in {path.name} must be an object with one field for each column name."
        )
    return fields


_BY_KIND: dict[Kind, dict[str, Any]] = {
    "numbers": {"low": None, "high": None},
    "dates": {"low": None, "high": None},
    "booleans": {"values": [False, True]},
    "text": {"values": []},
}


def skeleton(kinds: Mapping[str, Kind], target: str) -> str:
    """Return a schema template, made of the names of the columns and of declared types alone.

    Without a type, as in CSV, a column has the fields of an interval and of categories. Which of
    them are meant is for the user to say: cells that look like numbers would tell something about
    records.
    """
    place_of(target, [*kinds])
    either: dict[str, Any] = {"low": None, "high": None, "values": []}
    domains = {name: _BY_KIND.get(kind, either) for name, kind in kinds.items()}
    own = domains.pop(target)
    return json.dumps({"columns": domains, "target": own}, indent=2, ensure_ascii=False) + "\n"


def _gap(given: Any) -> str:
    """Return what of a domain is still to be filled in, as words; empty if nothing is."""
    filled = _filled(given) if isinstance(given, dict) else {"odd": given}
    if ("low" in filled and "high" in filled) or filled.keys() - {"low", "high"}:
        return ""
    if "values" not in given or filled:
        return "low and high"
    return "low and high, or the values," if "low" in given else "the values"


def _filled(given: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in given.items() if value not in (None, [])}


def _domain(given: Any, name: str) -> Domain:
    """Return a domain of the fields that are filled in."""
    known = isinstance(given, dict) and set(given) <= set.union(*_FIELDS)
    if not known or not isinstance(given.get("values", []), list):
        raise FileError(
            f"The domain of {name!r} must have the fields low and high, or the field values."
        )
    filled = _filled(given)
    if not any(set(filled) <= fields for fields in _FIELDS):
        raise FileError(f"Fill in low and high of {name!r}, or its values, but not both.")
    ends: dict[str, Any] = {}
    if "values" not in filled:
        if not {"low", "high"} <= set(filled):
            raise FileError(f"Fill in low and high of {name!r}, or its values.")
        ends = {key: _end(filled[key], name) for key in ("low", "high")}
        if (missing := filled.get("missing")) not in (None, "middle", "indicator"):
            ends["missing"] = _end(missing, name)
    try:
        return Interval(**{**filled, **ends}) if ends else Categories(**filled)
    except (TypeError, ValueError) as error:
        raise FileError(f"The domain of {name!r} is none. {error}") from None


def _end(value: Any, name: str) -> float | date:
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]  # Interval checks it
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise FileError(
            f"low, high and missing of {name!r} must be numbers, or dates like 2020-01-31."
        ) from None


# Ends of the names of a ledger and of the files that SQLite puts beside it.
_OF_SQLITE = ("", "-journal", "-wal", "-shm")
_WRITTEN_BYTES = 2**20  # This many bytes are written at a time.


def refuse_to_overwrite(out: Path | None, read: Mapping[str, Path | None]) -> None:
    """Refuse a file to write that is one of those that the command reads, by whatever name."""
    for what, path in read.items():
        endings = _OF_SQLITE if what == "ledger" else ("",)
        names = [path.with_name(path.name + ending) for ending in endings] if path else []
        if out is not None and any(_same(out, name) for name in names):
            raise FileError(f"--out {out} is the file of the {what}: name another file.")


def _same(one: Path, other: Path) -> bool:
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)  # a hard link


class ReservedFile:
    """Room on the disk that is held for a file while its content is made.

    The content goes to a file beside the one that is wanted, and takes its place at the end. If
    there is no content, because an error was raised, that file is removed.
    """

    def __init__(self, path: Path, room: int) -> None:
        self._path, self._final, self._room = path, _checked(path), room
        self._side = self._final.with_name(f".{uuid4().hex[:16]}.part")
        self._done = False

    def __enter__(self) -> ReservedFile:
        """Fill the file with zeros, so that the disk has room for what will come."""
        try:
            with self._side.open("xb") as file:
                for start in range(0, self._room, _WRITTEN_BYTES):
                    file.write(bytes(min(_WRITTEN_BYTES, self._room - start)))
                _to_disk(file)
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError):
                raise FileError(f"{self._path} cannot be written: {error.strerror}.") from None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if not self._done:
            self._side.unlink(missing_ok=True)

    def write(self, text: str) -> None:
        """Put the text into the file; if that fails, somewhere else, as it was paid for."""
        self._done = True
        try:
            with self._side.open("r+b") as file:
                file.write(text.encode("utf-8"))
                file.truncate()
                _to_disk(file)
        except OSError:
            self._rescue(text)
        try:
            self._side.replace(self._final)
        except OSError:
            self._say_where(f"in {self._side}")

    def _rescue(self, text: str) -> NoReturn:
        """Write the text to the folder of temporary files or, if that fails too, print it."""
        with suppress(OSError):
            self._side.unlink()
        other = Path(gettempdir(), f"{uuid4().hex[:16]}-{self._final.name}")
        with suppress(OSError):
            other.write_text(text, encoding="utf-8")
            self._say_where(f"in {other}")
        print(text)
        self._say_where("what was printed")

    def _say_where(self, place: str) -> NoReturn:
        raise FileError(f"{self._path} could not be written. The released model is {place}.")


def _checked(path: Path) -> Path:
    """Return the file that a path leads to, or refuse it."""
    if path.is_symlink() and not path.exists():
        raise FileError(f"{path} is a link to a file that does not exist.")
    if not path.parent.is_dir():
        raise FileError(f"The folder of {path} must exist.")
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise FileError(f"{path} must be a file that can be written.")
    return path.resolve()


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
