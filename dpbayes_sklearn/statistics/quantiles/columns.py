"""The columns of records in order, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.records import Records, Shard
from dpbayes_sklearn.schema.numbers import as_numbers
from dpbayes_sklearn.statistics.quantiles.lattice import shortened
from dpbayes_sklearn.statistics.size import ReleasedSize

__all__ = ["SortedColumns"]


@dataclass(frozen=True, repr=False)
class _Ordered:
    """Numbers in order, which are merged with others."""

    numbers: FloatArray

    @classmethod
    def of_shard(cls, j: int, shard: Shard) -> _Ordered:
        numbers = as_numbers(shard.table.column(j))
        return cls(np.sort(shortened(numbers[~np.isnan(numbers)])))

    def __add__(self, other: _Ordered) -> _Ordered:
        both = np.concatenate([self.numbers, other.numbers])
        return _Ordered(np.sort(both, kind="stable"))  # which merges runs that are in order


@dataclass(frozen=True, repr=False)
class SortedColumns:
    """Sensitive: the numbers of every column, sorted when they are asked for.

    Of records on a cluster one column at a time is brought here.
    """

    records: Records
    places: tuple[int, ...] | None = None
    """Positions of the columns that are meant; all if left out."""
    released_n: int | None = None
    """The released number of records, if the exact one is secret."""

    kind: ClassVar[str] = "quantiles"

    @property
    def n(self) -> int:
        """Number of records, missing values included."""
        return self.records.n if self.released_n is None else self.released_n

    def sized(self, size: ReleasedSize) -> SortedColumns:
        """Return the same columns, with a released number of records for the exact one."""
        return replace(self, released_n=size.n)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.records.table.n_columns) if self.places is None else len(self.places)

    def column(self, j: int) -> FloatArray:
        """Return the numbers of a column in order, cut to 33 bits, without missing values."""
        place = j if self.places is None else self.places[j]
        return self.records.total(partial(_Ordered.of_shard, place)).numbers

    def without_noise(self) -> SortedColumns:
        """Return the columns themselves, where no privacy is asked for."""
        return self
