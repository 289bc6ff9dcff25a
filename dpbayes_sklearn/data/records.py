"""Records in one or in many places, asked one question at a time and the answers added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs

from dpbayes_sklearn.data.table import Table

__all__ = ["Answer", "LocalRecords", "Part", "Records"]

_CELLS_A_THREAD = 1 << 22  # fewer than so many cells are read before a thread has started


class Answer(Protocol):
    """Something that can be added up: an array of sums, tables of counts."""

    def __add__(self, other: Any, /) -> Any: ...


A = TypeVar("A", bound=Answer)


class Part(NamedTuple):
    """Records that are read together.

    Attributes
    ----------
    table : Table
        Their features.
    target : array of shape (n,)
        Their targets.
    start : int
        The number of records in the parts before.
    """

    table: Table
    target: npt.NDArray[Any]
    start: int = 0


class Records(Protocol):
    """All records of a fit, wherever they are: sensitive."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def table(self) -> Table:
        """What is public about the features: their number, names and types."""

    def total(self, ask: Callable[[Part], A]) -> A:
        """Return the sum of what ``ask`` says of every part."""

    def __add__(self, other: Any, /) -> Any:
        """Return the records of both, one after the other."""


class LocalRecords:
    """Records in the memory of this process, or in files that are mapped to it.

    Threads share the work if joblib is told to use some:
    ``with joblib.parallel_config("threading", n_jobs=2)``.
    """

    def __init__(self, parts: Iterable[tuple[Table, npt.NDArray[Any]]]) -> None:
        self.parts: list[Part] = []
        self.n = 0
        for table, target in parts:
            self.parts.append(Part(table, target, self.n))
            self.n += table.n_rows

    @property
    def table(self) -> Table:
        """The features of the first part, which are of the same types as all others."""
        return self.parts[0].table

    @property
    def target(self) -> npt.NDArray[Any]:
        """All targets."""
        targets = [part.target for part in self.parts]
        return np.concatenate(targets) if targets[1:] else targets[0]

    def __add__(self, other: LocalRecords) -> LocalRecords:
        """Return the records of both, one after the other."""
        return LocalRecords([(part.table, part.target) for part in self.parts + other.parts])

    def total(self, ask: Callable[[Part], A]) -> A:
        """Return the sum of what ``ask`` says of every part."""
        threads = min(effective_n_jobs(None), self.n * self.table.n_columns // _CELLS_A_THREAD)
        parts = [piece for part in self.parts for piece in _pieces(part, threads)]
        if len(parts) == 1:
            return ask(parts[0])
        answers: Iterable[A] = map(ask, parts)
        if threads > 1:
            answers = Parallel(require="sharedmem")(delayed(ask)(part) for part in parts)
        return reduce(add, answers)


def _pieces(part: Part, number: int) -> list[Part]:
    """Cut a part into pieces of about the same number of rows."""
    if number <= 1:
        return [part]
    ends = np.linspace(0, part.table.n_rows, number + 1).astype(int).tolist()
    return [
        Part(part.table.rows(slice(a, b)), part.target[a:b], part.start + a)
        for a, b in pairwise(ends)
    ]
