"""Exact statistics of shards, to be merged before the one release that is published."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NoReturn, Protocol

import numpy as np

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables, Tables
from dpbayes_sklearn.schema import Schema

__all__ = ["ExactStatistics", "merge"]


_COUNT = np.dtype("<i8")  # as counts are sent
_NO_SHARDS = "merge takes a list of what exact_statistics(X, y) of an estimator returns."


class Mergeable(Protocol):
    """**Sensitive**: statistics of some records that are added to those of others."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def structure(self) -> object:
        """The public structure that both sides of a sum must have."""

    def __add__(self, other: Any, /) -> Any:
        """Return the statistics of the records of both."""


class ExactStatistics:
    """**Sensitive**: exact statistics of one shard of the records, without noise.

    Treat it like the records. It comes from ``estimator.exact_statistics(X, y)``, is added up by
    :func:`merge`, and ends in ``estimator.fit_statistics(merged)``, which adds the noise once. A
    fitted estimator never holds it, and it refuses to be pickled.

    For classifiers it is tables of counts, which :meth:`to_bytes` sends elsewhere. A regression
    asks several questions of its records, so there it refers to the records themselves.

    Attributes
    ----------
    schema : Schema
        The public domains.
    n : int
        Number of records: public, but with weights, whose total is secret.
    max_weight : int or None
        How often a record may count, if weights say it.
    """

    def __init__(
        self,
        schema: Schema,
        names: Sequence[str] | None,
        sums: Mergeable,
        shards: Iterable[str] = (),
        max_weight: int | None = None,
    ) -> None:
        self.schema = schema
        self._names = None if names is None else tuple(names)
        self._sums = sums
        self.max_weight = max_weight
        self._shards = frozenset(shards) or frozenset({uuid.uuid4().hex})  # what was added up

    @property
    def n(self) -> int:
        """Number of records: public."""
        return self._sums.n

    def _public(self) -> tuple[Any, ...]:
        """Return the public structure that merged statistics must match."""
        columns = tuple(self.schema.columns.items())
        return columns, self.schema.target, self._names, self.max_weight

    def _structure(self) -> object:
        """Return the public structure of the model."""
        return self._sums.structure

    def __repr__(self) -> str:
        what = "counts" if isinstance(self._sums, CountTables) else "moments"
        return f"<ExactStatistics: {what} of n={self.n} records, SENSITIVE>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "Exact statistics are sensitive and are not pickled. Send counts as to_bytes() over a "
            "channel that keeps them secret."
        )

    def to_bytes(self) -> bytes:
        """Return exact counts as bytes, **as sensitive as the records**; no pickle is involved.

        The categories of the schema must be JSON values.
        """
        if not isinstance(self._sums, CountTables):
            raise TypeError(
                "The statistics of a regression refer to its records and cannot be sent; fit dask "
                "collections, which are read where they are."
            )
        header = {
            "schema": self.schema.to_json(),
            "names": self._names,
            "parents": self._sums.network.parents,
            "n": self.n,
            "shards": sorted(self._shards),
            "max_weight": self.max_weight,
        }
        counts = b"".join(table.astype(_COUNT).tobytes() for table in self._sums.tables)
        return json.dumps(header).encode() + b"\n" + counts

    @classmethod
    def from_bytes(cls, content: bytes) -> ExactStatistics:
        """Return what :meth:`to_bytes` wrote.

        Anything else is refused; sizes are compared before anything is allocated.
        """
        try:
            head, _, counts = bytes(content).partition(b"\n")
            header = json.loads(head)
            schema, names, n = Schema.from_json(header["schema"]), header["names"], header["n"]
            sizes = (*(d.n_values for d in schema.columns.values()), schema.classes.n_values)
            network = Network(sizes, tuple(map(tuple, header["parents"])))
            tables = _read(network.shapes, counts)
            shards, most = frozenset(map(str.lower, header["shards"])), header["max_weight"]
            fits = _are_counts(tables, n) and (most is None or type(most) is int)
            fits = fits and (names is None or [*map(str, names)] == [*schema.columns])
        except Exception:
            fits = False
        if not fits:
            raise ValueError("These bytes were not written by ExactStatistics.to_bytes().")
        return cls(schema, names, CountTables(network, tables, n), shards, most)


def _read(shapes: Sequence[tuple[int, ...]], content: bytes) -> Tables:
    """Return tables of these shapes, which the content must have exactly."""
    lengths = [prod(shape) for shape in shapes]
    if sum(lengths) * _COUNT.itemsize != len(content):
        raise ValueError("The numbers of cells differ.")
    cells = np.frombuffer(content, _COUNT).astype(np.int64)
    parts = np.split(cells, np.cumsum(lengths[:-1]))
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


def _are_counts(tables: Tables, n: object) -> bool:
    """Say whether tables may be counts of n records, some of them without a class."""
    if type(n) is not int or n * max(table.size for table in tables) >= 2**63:
        return False  # sums might overflow
    totals = {int(table.sum()) for table in tables}
    within = all(table.min() >= 0 and table.max() <= n for table in tables)
    return within and len(totals) == 1 and max(totals) <= n


def merge(shards: Iterable[ExactStatistics]) -> ExactStatistics:
    """Add up the exact statistics of shards: those of all their records together.

    **The result is as sensitive as the records.**

    Parameters
    ----------
    shards : iterable of ExactStatistics
        From estimators with the same parameters. No person may be in two of them.

    Returns
    -------
    ExactStatistics

    Examples
    --------
    Two hospitals count, one release is made of both:

    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> from dpbayes_sklearn.shards import merge
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(0, 2, (1000, 3)), rng.integers(0, 2, 1000)
    >>> model = BayesianNaiveBayes(
    ...     bounds=(0, 1), n_bins=2, classes=[0, 1], temperature=1, random_state=0
    ... )
    >>> halves = (X[:300], y[:300]), (X[300:], y[300:])
    >>> shards = [model.exact_statistics(*half) for half in halves]
    >>> merge(shards)
    <ExactStatistics: counts of n=1000 records, SENSITIVE>
    >>> merged = model.fit_statistics(merge(shards)).predict(X)
    >>> bool((merged == model.fit(X, y).predict(X)).all())
    True
    """
    given = list(shards)
    if not given or not all(isinstance(shard, ExactStatistics) for shard in given):
        raise TypeError(_NO_SHARDS)
    together = frozenset[str]().union(*(shard._shards for shard in given))
    if len(together) < sum(len(shard._shards) for shard in given):
        raise ValueError("A shard was given twice, so its records would be counted twice.")
    first = given[0]
    for shard in given[1:]:
        if shard._public() != first._public():
            raise ValueError(
                "Shards can only be merged if their columns, domains, bins, classes and max_weight "
                "are the same, in the same order: declare one Schema for all."
            )
    sums = first._sums
    for shard in given[1:]:
        sums = sums + shard._sums
    return ExactStatistics(first.schema, first._names, sums, together, first.max_weight)
