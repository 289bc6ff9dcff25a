"""Numbers clipped in their own units, for functions that are linear inside the windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.per_column import PerColumn, long_rows
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.windows import Windows

__all__ = ["ClippedNumbers"]

_CHUNK_CELLS = 1 << 18  # stay in the cache, and are worth the turns that threads take
_FAR = 2.0**20  # half-widths from 0 at which products of unmapped numbers lose too many digits
_CLOSE = 2.0**-40  # a window that ends so near a bound ends there


@dataclass(frozen=True)
class ClippedNumbers:
    """Where each column of numbers is clipped, and what stands for a missing one.

    Attributes
    ----------
    low, high, missing : PerColumn
        In the units of the columns.
    """

    low: PerColumn
    high: PerColumn
    missing: PerColumn

    @classmethod
    def of(cls, design: Design, windows: Windows, table: Table) -> ClippedNumbers | None:
        """Return the ends of bounds and windows; None if that is not all that a table needs.

        So it is if a column has categories or a type of its own, or bounds far from 0.
        """
        centres, halves = design.scales
        numbers = bool(design.width) and bool(design.numbers.all())
        if not numbers or table.as_numbers(table.without_rows()) is None:
            return None
        if (np.abs(centres) > _FAR * halves).any():
            return None
        low, high = windows.centres - windows.halves, windows.centres + windows.halves
        low = np.where(low < _CLOSE - 1, -1.0, low)
        high = np.where(high > 1 - _CLOSE, 1.0, high)
        missing = np.clip(design.stand_ins, low, high)
        return cls(*(PerColumn(centres + halves * each) for each in (low, high, missing)))

    def chunks(self, table: Table) -> Iterator[tuple[slice, FloatArray]]:
        """Yield ``(rows, numbers)``; the array is used again for the next chunk."""
        step = max(1, _CHUNK_CELLS // table.n_columns)
        buffer = np.empty((min(step, table.n_rows), table.n_columns))
        for rows, chunk in table.chunks(step):
            out = buffer[: rows.stop - rows.start]
            numbers = table.as_numbers(chunk)
            assert numbers is not None
            for x, clipped, many in long_rows(numbers, out, self.low, self.high, self.missing):
                np.clip(x, self.low.of(many), self.high.of(many), out=clipped)
                if np.isnan(clipped.min(initial=0.0)):
                    np.copyto(clipped, self.missing.of(many), where=np.isnan(clipped))
            yield rows, out
