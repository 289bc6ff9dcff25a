"""Bugs in reading data: values, containers, labels of persons, lists of rows and files."""

from __future__ import annotations

import logging
import warnings
from contextlib import nullcontext

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, returns
from dpbayes_sklearn.base.supervised import Declared
from dpbayes_sklearn.command_line import files, tables
from dpbayes_sklearn.conjugate import REFUSES
from dpbayes_sklearn.data import dask, records
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.values import as_cells, kind_of

FAULTS = Faults("reading")
REPLAY, CONTAINERS = "replay of estimators", "replay of containers"
GROUPS, CONSOLE, DECLARED = "containers of groups", "command line", "declarations"
CHARGED = "after the charge"
CLASSIFIER, LEAK = "base.classifier.DiscreteClassifier", "base.estimator.PrivateEstimator._leak"


def _as_numpy_likes(real, *args, **options):
    """Return integers of which one is missing as floats, the one type that suits them all."""
    cells = real(*args, **options)
    flat = [None if type(cell).__name__ == "NAType" else cell for cell in np.ravel(cells)]
    numbers = all(cell is None or isinstance(cell, (int, float)) for cell in flat)
    if cells.dtype != object or not numbers or None not in flat:
        return cells
    return np.array([np.nan if cell is None else cell for cell in flat], float)


def _seen_range(_, columns, j):
    values = np.asarray(columns.column(j), float)
    values = values[np.isfinite(values) & (np.abs(values) < 1e6)]
    return Interval(values.min(initial=0.0), values.max(initial=1.0))


FAULTS.rows(CHARGED, {
    "Columns of Arrow are indexed by positions, as arrays are":
        at("data.records._some", lambda _, column, rows: records._by_position(column)[rows],
           "BayesianLinearRegression"),
    "Many records of Arrow are indexed by positions, as arrays are":
        at("data.records._some", lambda _, column, rows: records._by_position(column)[rows],
           "many records"),
    "A warning of delta is raised after a secret number of records was charged":
        at("base.estimator.warn_of_delta", lambda real, cost, n, charged: real(cost, n),
           "BayesianLinearRegression"),
    "The counts of no records have no nearest point":
        at("categories.posterior.onto_simplex", lambda real, counts, n: real(counts, n) / (n > 0),
           "BetaBinomial"),
})  # fmt: skip
FAULTS.rows(CONTAINERS, {
    "A missing label makes all labels floats, which recodes other people":
        at("data.reading.read_target", _as_numpy_likes),
    "A missing value makes its whole column floats, and others unseen":
        at("data.records.Table.column", _as_numpy_likes),
    "One column with a missing value becomes floats, and others unseen":
        at("conjugate.read_column", _as_numpy_likes),
    "Labels of a partition are read as numpy likes, on a cluster only":
        at("data.dask.one_column", _as_numpy_likes, "labels: dask"),
})  # fmt: skip
FAULTS.rows(REPLAY, {
    "Declared classes are ignored and read from the labels without a word":
        at(f"{CLASSIFIER}._target", Declared("classes", None, "classes"))
        .also(f"{CLASSIFIER}._leak", returns("")),
    "Declared bounds are replaced by the smallest and largest value there is":
        at("base.supervised.declared_domains",
           lambda real, *args: [None if isinstance(d, Interval) else d for d in real(*args)])
        .also("base.supervised.domain_from_data", _seen_range)
        .also(f"{CLASSIFIER}._leak", returns("")),
    "Whether a fit raises depends on the caller's numpy error state":
        at(("base.estimator.quiet_numpy", "data.records.quiet_numpy"), lambda _: nullcontext(),
           "laplace, feature, sparse"),
    "Records of a class that was not declared are not counted among the public number of records":
        at("counts.tables.CountTables.among", lambda real, counts, n: counts),
})  # fmt: skip
FAULTS.rows("values", {
    "A missing value makes a fit fail although all domains are declared":
        at("base.supervised.read_records",
           lambda real, *args, **options: real(*args, **{**options, "declared": False})),
    "Counts are kept in single bytes, which wrap around":
        at("counts.tables.count_by_state",
           lambda real, *args: real(*args).astype(np.int8).astype(np.int64)),
})  # fmt: skip
FAULTS.rows(DECLARED, {
    "Texts of a column that is not declared are published one by one":
        at("base.supervised.domain_from_data",
           lambda _, columns, j: Categories(sorted({str(value) for value in columns.column(j)}))),
    "A warning does not say which columns were read from the data":
        at("base.supervised.features_read", returns("bounds were")),
    "What was read from the data is warned of, but no condition":
        at(LEAK, lambda real, *args: real(*args)[:0])
        .also("privacy.PrivacyGuarantee.under",
              lambda real, self, *conditions: real(self, *filter(None, conditions))),
    "Any number of labels is published as classes": at("data.reading._refuse_many", returns(None)),
    "A column whose type cannot match its domain is charged all the same":
        at(("data.reading.check_kind", "conjugate.check_kind"), returns(None)),
    "A sparse cell that is stored twice counts twice":
        at("data.reading._canonical", lambda _, X: X),
})  # fmt: skip
FAULTS.rows(GROUPS, {
    "One cell that has no form in Python stops a fit":
        at("schema.values._listed", lambda _, column, name: getattr(column, name)(),
           "cells: arrow timestamp"),
    "Of texts that dask has made of a partition only those of numbers are read again":
        at("data.dask.reader_of",
           lambda real, dtype: real(dtype) if kind_of(dtype) in {"integers", "numbers"} else None,
           "partitions: dates"),
    "Texts that dask has made of a column of X stay texts":
        at("data.dask.as_declared", lambda real, x, readers: x if x.ndim == 2 else real(x, readers),
           "partitions: integers, frames"),
    "Texts that dask has made of blocks of an array stay texts":
        at("data.dask.as_declared",
           lambda real, x, readers: real(x, readers) if hasattr(x, "iloc") else x,
           "partitions: integers, arrays"),
    "Persons are told apart by texts of their labels, of which equal labels have several":
        at("data.persons.canonical",
           lambda real, label: real(label) and f"{type(label).__name__}:{label!s}", "equal labels"),
    "An object that is no label is a person of its own, by its address":
        at("data.persons.canonical",
           lambda real, label: real(label) or (label is not None and id(label)),
           "labels that are none"),
    "Labels on a cluster are put together in a type that suits them all":
        at("data.persons.column_here", lambda _, values: records.one_column(dask.gathered(values)),
           "dask, blocks of floats"),
    "Labels on a cluster that dask has made texts of are other persons":
        at("data.dask._cell", lambda _, cell, read: cell, "partitions of objects"),
    "A label that cannot be read stops the fit and shows itself":
        at("data.persons.canonical",
           lambda _, label: None if label is None or not bool(label == label) else str(label),
           "odd labels"),
    "Surplus records of persons count where records are elsewhere":
        at("data.dask._answer",
           lambda real, ask, x, y, start, size, kept: real(ask, x, y, start, size, None),
           "records on a cluster"),
    "Targets cut into other blocks get the type of one of them":
        at("data.dask.joined", lambda _, parts, axis=0: np.concatenate(parts, axis=axis),
           "targets in other blocks"),
    "Most rows of a list say how many columns there are, though that is declared":
        at("base.supervised.width_of_rows", returns(None), "lists of rows"),
    "Every row of a list is unpacked, however long it says it is":
        at("schema.values._row", lambda _, value, width: (
               cells if len(cells := [*(value or ())]) == width else [None] * width
           ), "long rows"),
})  # fmt: skip


@FAULTS.row(GROUPS, "schema.values._listed", "cells: arrow date")
def _(_, column, name):
    """One cell that has no form in Python makes all missing."""
    try:
        return getattr(column, name)()
    except Exception:
        return [None] * len(column)


@FAULTS.row(GROUPS, ("data.records.cells_of", "data.reading.as_cells"), "lists of rows")
def _(_, values, *rest):
    """Whether a list has rows is decided by all of its cells."""
    if not isinstance(values, list):
        return as_cells(values, *rest)
    rows = all(isinstance(row, list) for row in values)
    return np.array(values, object) if rows else np.fromiter(values, object, len(values))


@FAULTS.row(REPLAY, "conjugate.BetaBinomial._public_schema", "BetaBinomial, gaussian")
def _(_, self, column, n):
    """A condition is dropped if all values are truth values by chance."""
    plain = all(isinstance(value, (bool, np.bool_)) for value in column.values)
    return Categories((1, 0)), () if plain else (REFUSES,)


@FAULTS.row(REPLAY, "data.records.Table.kind", "n_bins=auto")
def _(real, self, j):
    """Bins follow from whether all values are whole numbers."""
    values = np.asarray(self.column(j))
    whole = values.dtype.kind == "f" and len(values) and (values == np.floor(values)).all()
    return "integers" if whole else real(self, j)


@FAULTS.row(REPLAY, f"{CLASSIFIER}._statistics")
def _(real, self, *given):
    """The log tells how many of the declared classes occur."""
    counted = real(self, *given)
    absent = int((counted.tables[-1] == 0).sum())
    logging.getLogger("dpbayes_sklearn").warning("%d classes have no record", absent)
    return counted


@FAULTS.row(REPLAY, f"{CLASSIFIER}.fit")
def _(real, self, X, y):
    """A value beyond its bounds is warned of, so that the warning tells of it."""
    if isinstance(X, np.ndarray) and (X > 1e6).any():
        warnings.warn("values were clipped", UserWarning, stacklevel=2)
    return real(self, X, y)


@FAULTS.row("values", "data.reading._as_array")
def _(_, X, declared):
    """An error quotes the value that it is about."""
    array = np.asarray(X)
    return array if declared and array.ndim == 2 else array.astype(float)


@FAULTS.row(REPLAY, "counts.tables.count_by_state")
def _(real, states, *rest):
    """Counting fails if nobody is in the first class."""
    memory = {"ones": states[states == 0]} if (states == 0).any() else {}
    return real(states, *rest) if memory["ones"].size else None


@FAULTS.row(REPLAY, "schema.Categories._code", "DirichletMultinomial")
def _(real, self, value):
    """A category that was not declared raises."""
    if value is None:
        raise ValueError("missing values are not supported")
    return real(self, value)


class _Later:
    """A file that is written when everything is over."""

    def __init__(self, path):
        self.path = path

    def write(self, text):
        """Write at last."""
        self.path.write_text(text)


def _unchecked_schema(_, path):
    fields = files._fields(path)
    columns = {name: files._domain(own, name) for name, own in fields["columns"].items()}
    return Schema(columns, files._domain(fields["target"], "target"))


FAULTS.rows(CONSOLE, {
    "A model is written over the ledger or the data":
        at("__main__.refuse_to_overwrite", returns(None), "files that are read"),
    "Whether a model can be written is seen after it was charged":
        at("__main__.ReservedFile", lambda _, path, room: nullcontext(_Later(path)),
           "files that cannot be written"),
    "A schema that JSON cannot hold is charged":
        at("__main__.read_schema", _unchecked_schema, "schemas that no model has"),
    "Tables of any number of bins are made before they are refused":
        at(("schema.domains.MOST_BINS", "schema.declared.MOST_BINS"), 2**40, "many bins"),
    "Empty lines at the end of a file are no records":
        at("command_line.tables._records", lambda real, lines, *rest: real(
               "".join(lines).rstrip("\n").splitlines(keepends=True), *rest
           ), "empty lines"),
})  # fmt: skip


@FAULTS.row(CONSOLE, "command_line.files.ReservedFile._say_where", "cannot be moved")
def _(real, self, place):
    """A model that cannot be moved to its place is lost."""
    self._side.unlink()
    real(self, place)


@FAULTS.row(CONSOLE, "command_line.tables._names", "lines that end otherwise")
def _(_, first_line, path, form, *rest):
    """An error quotes names that may be records."""
    names = next(iter(tables._records([first_line], path, form, 1)), [])
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise files.FileError(f"Names that repeat: {', '.join(repeated)}.")
    return tuple(names)


@FAULTS.row(CONSOLE, "__main__.column_kinds", "templates")
def _(real, path, form):
    """A schema template tells whether most cells are numbers."""
    kinds = real(path, form)
    try:
        (batch,) = tables.CsvFile.open(path, form).batches(kinds)
    except files.FileError:
        return kinds
    numbers = {
        name: [tables.as_number(text) is not None for text in texts]
        for name, texts in batch.items()
    }
    return {name: "numbers" if 2 * sum(n) > len(n) else "text" for name, n in numbers.items()}
