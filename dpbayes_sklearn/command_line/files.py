"""Files of the command line: schemas as users write them, and outputs.

A schema is a JSON file with the columns and the target by name:
``{"columns": {"age": {"low": 17, "high": 90}, "job": {"values": ["clerk", "nurse"]}},
"target": {"values": ["no", "yes"]}}``. Dates are written "2020-01-31". What
:meth:`Schema.to_json` writes has this form, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from tempfile import gettempdir
from typing import Any, BinaryIO, NoReturn
from uuid import uuid4

from dpbayes_sklearn._compat import did_you_mean
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.schema.values import Kind

_MISSING_CELL = ""  # What a line that is too short has in a column.
REPLACED = "\ufffd"
"""What bytes that are not of the encoding of a file become."""

# The fields of an interval, and those of categories, in a file.
_FIELDS = ({"low", "high", "bins", "dates", "edges", "missing"}, {"values", "unseen", "dtype"})
_OPTIONAL = {"guarantee"}  # Fields of a schema that a file may leave out.
_BY_KIND: dict[Kind, dict[str, Any]] = {
    "numbers": {"low": None, "high": None},
    "dates": {"low": None, "high": None},
    "booleans": {"values": [False, True]},
    "text": {"values": []},
}
# Ends of the names of a ledger and of the files that SQLite puts beside it.
_OF_SQLITE = ("", "-journal", "-wal", "-shm")
_WRITTEN_BYTES = 2**20  # This many bytes are written at a time.


class FileError(ValueError):
    """Raised if a file cannot be used; the message names files and columns, never values."""


def place_of(name: str, names: Sequence[str]) -> int:
    """Return which column has a name."""
    if name not in names:
        one = " It holds one name: --sep or --encoding may be others."
        hint = one if len(names) == 1 else did_you_mean(name, names)
        raise FileError(f"There is no column {name!r} in the first line of the file.{hint}")
    return names.index(name)


def with_all_columns(schema: Schema, names: Sequence[str], others: Sequence[str | None]) -> Schema:
    """Return a schema whose column ``*`` stands for all columns that are not listed."""
    if "*" not in schema.columns:
        return schema
    rest = [name for name in names if name not in schema.columns and name not in others]
    listed = {name: domain for name, domain in schema.columns.items() if name != "*"}
    columns = {**listed, **dict.fromkeys(rest, schema.columns["*"])}
    return replace(schema, columns=columns)


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


def refuse_to_overwrite(out: Path | None, read: Mapping[str, Path | None]) -> None:
    """Refuse to overwrite a file that the command reads, under any of its names."""
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
