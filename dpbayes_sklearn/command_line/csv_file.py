"""A CSV file, parsed according to declared domains so that no value can cause an error.

A record is one line, and no line affects how another is parsed: quoted cells do not contain line
breaks, and an empty line is a record without values. A number is anything that Python's ``float``
accepts, a date is written YYYY-MM-DD with or without a time, and a category must equal a declared
value as text or as a number. Anything else is missing, and so are the cells that a short line
lacks; surplus cells are ignored.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.schema.domains import Domain
from dpbayes_sklearn.schema.numbers import number_of

__all__ = ["CsvFile", "FileError", "as_number", "column_names", "place_of"]

Column = npt.NDArray[Any]
_MISSING = ""


class FileError(ValueError):
    """Raised if a file cannot be used; the message names files and columns, never values."""


@dataclass(frozen=True)
class CsvFile:
    """The text of a table.

    Attributes
    ----------
    names : tuple of str
        The first line.
    lines : list of lists of str
        All others, one for each record.
    """

    names: tuple[str, ...]
    lines: list[list[str]]

    @classmethod
    def read(cls, path: Path) -> CsvFile:
        """Read a file; bytes that are not UTF-8 are replaced."""
        with _opened(path) as file:
            first, *lines = file.read().removesuffix("\n").split("\n")
        names = _names(first, path)
        if not lines:
            raise FileError(f"{path.name} has no records.")
        return cls(names, [*map(_cells, lines)])

    def texts(self, name: str) -> list[str]:
        """Return the cells of a column as they are written."""
        j = place_of(name, self.names)
        return [line[j] if j < len(line) else _MISSING for line in self.lines]

    def column(self, name: str, domain: Domain) -> Column:
        """Return the values of a column, parsed according to its domain."""
        values = np.empty(len(self.lines), object)
        values[:] = [*map(_reader(domain), self.texts(name))]
        return values


def place_of(name: str, names: Sequence[str]) -> int:
    """Return which column has a name."""
    if name not in names:
        raise FileError(f"There is no column {name!r} in the first line of the file.")
    return names.index(name)


def column_names(path: Path) -> tuple[str, ...]:
    """Return the first line of a file, without looking at any record."""
    with _opened(path) as file:
        return _names(file.readline().removesuffix("\n"), path)


def _opened(path: Path) -> TextIO:
    csv.field_size_limit(sys.maxsize)
    return path.open(newline="\n", encoding="utf-8-sig", errors="replace")


def _names(first_line: str, path: Path) -> tuple[str, ...]:
    """Return the names in the first line, which an error must not show: it may be a record."""
    if "\r" in first_line.removesuffix("\r"):
        raise FileError(f"The lines of {path.name} must end with LF or CR LF, not with CR alone.")
    names = _cells(first_line)
    times = Counter(names)
    places = [str(j + 1) for j, name in enumerate(names) if times[name] > 1]
    if not names or places:
        raise FileError(
            f"The first line of {path.name} must contain column names, all different."
            + (f" The columns {', '.join(places)} have names that repeat." if places else "")
        )
    return tuple(names)


def _cells(line: str) -> list[str]:
    """Return the cells of one line; a quote that is not closed ends with the line."""
    return next(csv.reader([line.removesuffix("\r").replace("\r", " ")]), [])


def as_number(text: str) -> float | None:
    """Return the number that a text is, None if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return None


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def _reader(domain: Domain) -> Callable[[str], Any]:
    if isinstance(domain, Interval):
        return _date if domain.dates else as_number
    return _category_reader(domain)


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
