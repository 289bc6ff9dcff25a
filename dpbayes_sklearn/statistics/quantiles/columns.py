"""The columns of a table in order, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.schema.numbers import as_numbers
from dpbayes_sklearn.statistics.quantiles.lattice import shortened

__all__ = ["SortedColumns"]


@dataclass(frozen=True, repr=False)
class SortedColumns:
    """Sensitive: the numbers of every column, sorted when they are asked for."""

    table: Table

    kind: ClassVar[str] = "quantiles"

    @property
    def n(self) -> int:
        """Number of records, missing values included."""
        return int(self.table.n_rows)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.table.n_columns)

    def column(self, j: int) -> FloatArray:
        """Return the numbers of a column in order, cut to 33 bits, without missing values."""
        numbers = as_numbers(self.table.column(j))
        return np.sort(shortened(numbers[~np.isnan(numbers)]))

    def without_noise(self) -> SortedColumns:
        """Return the columns themselves, where no privacy is asked for."""
        return self
