"""What the columns of a data frame hold: numbers in order, and counts of texts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

from dpbayes_sklearn.statistics.quantiles.columns import SortedColumns
from dpbayes_sklearn.statistics.quantiles.plans import Answers, Plans
from dpbayes_sklearn.statistics.size import ReleasedSize
from dpbayes_sklearn.statistics.texts import CommonTexts, Found, TextCounts

__all__ = ["Contents", "Questions"]


@dataclass(frozen=True, repr=False)
class Contents:
    """Sensitive: the columns of numbers and the columns of texts of the same records."""

    numbers: SortedColumns
    texts: TextCounts

    kind: ClassVar[str] = "contents"

    @property
    def n(self) -> int:
        """Number of records."""
        return self.numbers.n

    def sized(self, size: ReleasedSize) -> Contents:
        """Return the same contents, with a released number of records for the exact one."""
        return replace(self, numbers=self.numbers.sized(size))

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """Shares of the budget of numbers and of texts: every column has as much as any other."""
        widths = self.numbers.n_columns, self.texts.n_columns
        return Fraction(widths[0], sum(widths)), Fraction(widths[1], sum(widths))

    def without_noise(self) -> Contents:
        """Return the contents themselves, where no privacy is asked for."""
        return self


@dataclass(frozen=True)
class Questions:
    """Quantiles of every column of numbers, and which texts are common."""

    numbers: Plans
    texts: CommonTexts = field(default_factory=CommonTexts)

    def update(self, contents: Contents) -> tuple[Answers, Found]:
        """Return exact answers, where no privacy is asked for."""
        return self.numbers.update(contents.numbers), self.texts.update(contents.texts)
