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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema import Categories, Interval
from dpbayes_sklearn.schema.domains import Domain

__all__ = ["CsvFile", "FileError", "as_number"]

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
        csv.field_size_limit(sys.maxsize)
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            names, *lines = map(_cells, file.read().removesuffix("\n").split("\n"))
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if not names or repeated:
            raise FileError(
                f"The first line of {path.name} must contain column names, all different."
                + (f" Repeated: {', '.join(map(repr, repeated))}." if repeated else "")
            )
        if not lines:
            raise FileError(f"{path.name} has no records.")
        return cls(tuple(names), lines)

    def texts(self, name: str) -> list[str]:
        """Return the cells of a column as they are written."""
        if name not in self.names:
            raise FileError(f"There is no column {name!r} in the first line of the file.")
        j = self.names.index(name)
        return [line[j] if j < len(line) else _MISSING for line in self.lines]

    def column(self, name: str, domain: Domain) -> Column:
        """Return the values of a column, parsed according to its domain."""
        values = np.empty(len(self.lines), object)
        values[:] = [*map(_reader(domain), self.texts(name))]
        return values


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
        float(value): value
        for value in domain.values
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }

    def read(text: str) -> Any:
        if text in written:
            return written[text]
        number = as_number(text) if numbers else None
        return None if number is None else numbers.get(number)

    return read
