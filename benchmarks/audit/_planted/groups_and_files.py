"""Bugs in reading labels of persons, lists of rows, and files of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.command_line import console, files
from dpbayes_sklearn.data import dask, persons, reading, table
from dpbayes_sklearn.schema import domains, schema

Replacements = Iterator[tuple[Any, str, Any]]
GROUPS = "containers of groups"
FILES, CONSOLE = "files", "command line"


@fault(
    "groups",
    GROUPS,
    "Labels on a cluster are put together in a type that suits them all",
    "dask, blocks of floats",
)
def labels_of_one_type() -> Replacements:
    def together(values: Any) -> Any:
        return table.one_column(dask.gathered(values))

    yield persons, "column_here", together


@fault(
    "groups",
    GROUPS,
    "Labels on a cluster that dask has made texts of are other persons",
    "partitions of objects",
)
def texts_of_numbers() -> Replacements:
    yield dask, "_cell", lambda cell, read: cell


@fault("groups", GROUPS, "A label that cannot be read stops the fit and shows itself", "odd labels")
def labels_that_raise() -> Replacements:
    def text(label: Any) -> str | None:
        return None if label is None or not bool(label == label) else str(label)

    yield persons, "canonical", text


@fault("groups", GROUPS, "Whether a list has rows is decided by all of its cells", "lists of rows")
def rows_by_all_cells() -> Replacements:
    def cells(values: Any, *_: Any) -> Any:
        if not isinstance(values, list):
            return real(values)
        rows = all(isinstance(row, list) for row in values)
        return np.array(values, object) if rows else np.fromiter(values, object, len(values))

    real = table.cells_of
    yield table, "cells_of", cells
    yield reading, "as_cells", cells


@fault(
    "groups",
    GROUPS,
    "Surplus records of persons count where records are elsewhere",
    "records on a cluster",
)
def surplus_on_a_cluster() -> Replacements:
    real = dask._answer

    def all_of_them(ask: Any, x: Any, y: Any, start: int, size: int, kept: Any) -> Any:
        return real(ask, x, y, start, size, None)

    yield dask, "_answer", all_of_them


@fault(
    "groups",
    GROUPS,
    "Targets cut into other blocks get the type of one of them",
    "targets in other blocks",
)
def targets_of_one_type() -> Replacements:
    yield dask, "joined", lambda parts, axis=0: np.concatenate(parts, axis=axis)


@fault(FILES, CONSOLE, "A model is written over the ledger or the data", "files that are read")
def ledger_overwritten() -> Replacements:
    yield console, "refuse_to_overwrite", lambda out, read: None


@fault(
    FILES,
    CONSOLE,
    "Whether a model can be written is seen after it was charged",
    "files that cannot be written",
)
def written_after_the_charge() -> Replacements:
    class Later:
        def __init__(self, path: Any) -> None:
            self.path = path

        def write(self, text: str) -> None:
            self.path.write_text(text)

    yield console, "reserved", lambda path, room: nullcontext(Later(path))


@fault(FILES, CONSOLE, "A schema that JSON cannot hold is charged", "schemas that no model has")
def schema_that_is_no_json() -> Replacements:
    yield files, "_writable", lambda schema, path: schema


@fault(FILES, CONSOLE, "Tables of any number of bins are made before they are refused", "many bins")
def any_number_of_bins() -> Replacements:
    yield domains, "MOST_BINS", 2**40
    yield schema, "MOST_BINS", 2**40


@fault(FILES, CONSOLE, "A model that cannot be moved to its place is lost", "cannot be moved")
def model_lost() -> Replacements:
    real = files.ReservedFile._say_where

    def removed(self: Any, place: str) -> None:
        self._side.unlink()
        real(self, place)

    yield files.ReservedFile, "_say_where", removed


@fault(FILES, CONSOLE, "An error quotes names that may be records", "lines that end otherwise")
def names_quoted() -> Replacements:
    def quoting(first_line: str, path: Any, form: Any) -> Any:
        names = next(iter(files._records(first_line, path, form)), [])
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise files.FileError(f"Names that repeat: {', '.join(repeated)}.")
        return tuple(names)

    yield files, "_names", quoting


@fault(FILES, CONSOLE, "Empty lines at the end of a file are no records", "empty lines")
def empty_lines_dropped() -> Replacements:
    production = files._records

    def records(text: str, path: Any, form: Any) -> Any:
        return production(text.rstrip("\n"), path, form)

    yield files, "_records", records


@fault(FILES, CONSOLE, "A schema template tells whether most cells are numbers", "templates")
def template_by_cells() -> Replacements:
    def looking(options: Any) -> None:
        try:
            texts = files.CsvFile.read(options.data).texts(options.target)
        except files.FileError:
            texts = []
        numbers = [files.as_number(text) is not None for text in texts]
        options.out.write_text(str(2 * sum(numbers) > len(numbers)))

    yield console, "write_schema", looking
