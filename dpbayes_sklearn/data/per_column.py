"""Arithmetic with one number for each column, several rows of a table at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PerColumn", "long_rows"]

_LONG = 4096  # numbers that numpy should compute in one go

Array = npt.NDArray[Any]


class PerColumn:
    """One number for each column; if they are all the same, one for all.

    Floats are computed faster with one number than with an array; for integers, numpy's minimum
    and maximum are several times faster with an array.

    Examples
    --------
    >>> PerColumn(np.array([1.0, 2.0])).of(rows=2)
    array([1., 2., 1., 2.])
    >>> PerColumn(np.array([3.0, 3.0])).of(rows=2)
    np.float64(3.0)
    """

    def __init__(self, each: Array) -> None:
        self.each = each

    @cached_property
    def _same(self) -> bool:
        return self.each.dtype.kind == "f" and bool((self.each == self.each[0]).all())

    @cached_property
    def repeat(self) -> int:
        """Rows of the table that make one long row."""
        return 1 if self._same else max(1, _LONG // len(self.each))

    @cached_property
    def _tiled(self) -> Array:
        return np.tile(self.each, self.repeat)

    def of(self, rows: int) -> Any:
        """Return the numbers for a long row of so many rows."""
        return self.each[0] if self._same else self._tiled[: rows * len(self.each)]

    def cast(self, dtype: np.dtype[Any], low: int, high: int) -> PerColumn:
        """Return the numbers brought between two others, in another type."""
        return PerColumn(np.clip(self.each, low, high).astype(dtype))


def long_rows(
    values: Array, out: Array, *numbers: PerColumn, cells: int | None = None
) -> Iterator[tuple[Array, Array, int]]:
    """Yield both arrays in chunks of about so many cells, several rows side by side in a long one.

    The number of rows side by side comes third.

    >>> values = np.arange(6).reshape(3, 2)
    >>> numbers = PerColumn(np.array([10, 20]))
    >>> [(x.shape, rows) for x, _, rows in long_rows(values, values.copy(), numbers)]
    [((1, 6), 3)]
    """
    n, d = values.shape
    contiguous = values.flags.c_contiguous and out.flags.c_contiguous
    together = max(each.repeat for each in numbers) if contiguous else 1
    chunks = 1 if cells is None else max(1, -(-n * d // cells))
    step = max(1, -(-n // (chunks * together))) * together  # all of about the same size
    for start in range(0, n, step):
        x, y = values[start : start + step], out[start : start + step]
        repeat = min(together, len(x))
        whole = len(x) // repeat * repeat
        yield x[:whole].reshape(-1, d * repeat), y[:whole].reshape(-1, d * repeat), repeat
        if whole < len(x):
            yield x[whole:], y[whole:], 1
