"""What the columns of a data frame hold: numbers in order, and counts of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpbayes_sklearn.columns.quantiles import SortedColumns
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.noise.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["Found", "FrameContents", "TextCounts"]


Found = tuple[tuple[str, ...], ...]
"""Some texts of every column, in alphabetical order."""


@dataclass(frozen=True, repr=False)
class TextCounts:
    """Sensitive: how many records have each text, by column; what is no text is not counted.

    **Sensitivity.** A record has one text in every column. If r records are replaced, the counts of
    a column change by 2r in L1: some fall by r in all, others rise by r in all; if r come or go,
    by r. The probability that noise does not hide a change grows faster than the change, so the
    worst case is one count that falls by r and one that rises by r, or only one of them.
    """

    columns: tuple[Counter[str], ...]
    n: int

    kind: ClassVar[str] = "texts"

    @classmethod
    def of_shard(cls, places: Sequence[int], shard: Shard) -> TextCounts:
        """Count the texts of some columns of a shard."""
        columns = (_counted(shard.table.column(j)) for j in places)
        return cls(tuple(columns), shard.table.n_rows)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def __add__(self, other: TextCounts) -> TextCounts:
        """Return the counts of the records of both."""
        pairs = zip(self.columns, other.columns, strict=True)
        return TextCounts(tuple(a + b for a, b in pairs), self.n + other.n)

    def law(self, unit: PrivacyUnit, epsilon: Fraction, delta: Fraction) -> TruncatedLaplace:
        """Return the noise of every count that makes all columns (epsilon, delta)-private."""
        sides = unit.n_changed // unit.max_records
        scale = laplace_scale(unit.n_changed * self.n_columns, epsilon)
        per_count = delta / (sides * self.n_columns)
        return TruncatedLaplace.calibrated(scale, per_count, unit.max_records)


def _counted(cells: Any) -> Counter[str]:
    return Counter(str.__str__(cell) for cell in cells if isinstance(cell, str))


@dataclass(frozen=True, repr=False)
class FrameContents:
    """Sensitive: the columns of numbers and the columns of texts of the same records."""

    numbers: SortedColumns
    texts: TextCounts

    kind: ClassVar[str] = "contents"

    @property
    def n(self) -> int:
        """Number of records."""
        return self.numbers.n
