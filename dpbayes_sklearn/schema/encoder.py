"""Values to codes, a chunk of rows at a time: the pass over the data that must be fast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema.domains import Domain, Interval, as_numbers
from dpbayes_sklearn.schema.table import Table

__all__ = ["Codes", "Encoder"]

Codes = npt.NDArray[np.unsignedinteger[Any]]
"""Codes of a chunk of rows: bytes, or 16 bits where a column has more than 256 values."""


_MOST_VALUES = 2**16  # what the codes can hold
_MOST_EXACT = 2**53  # up to here every integer is a float


class Encoder:
    """Encode whole tables by the domains of their columns, as each domain's ``encode`` does.

    Columns that are all intervals are encoded together: integer types by clipping, floats by one
    comparison (two bins) or one scaling (more).
    """

    def __init__(self, domains: Sequence[Domain]) -> None:
        self.domains = tuple(domains)
        self.sizes = tuple(d.n_values for d in self.domains)
        if max(self.sizes, default=1) > _MOST_VALUES:
            raise ValueError(f"A column can have at most {_MOST_VALUES} bins or categories.")
        few = max(self.sizes, default=1) <= 256
        self.dtype: type[np.unsignedinteger[Any]] = np.uint8 if few else np.uint16
        intervals = [d for d in self.domains if isinstance(d, Interval)]
        self._numeric = len(intervals) == len(self.domains)
        if self._numeric:
            self._low = np.array([d.low for d in intervals])
            self._high = np.array([d.high for d in intervals])
            self._bins = np.array(self.sizes, dtype=np.float64)
            self._middle = np.array([d.middle for d in intervals])
            self._two = set(self.sizes) == {2}
            if self._two:
                edge_of = {d: d.second_bin for d in set(intervals)}
                edges = np.array([edge_of[d] for d in intervals])
                self._middle_is_upper = bool((self._middle >= edges).all())
                # one number is compared faster than one for each column
                self._edge = edges[0] if (edges == edges[0]).all() else edges
            self._whole = all(
                d.n_integers == d.bins and max(abs(d.low), abs(d.high)) <= _MOST_EXACT
                for d in intervals
            )

    def chunks(self, table: Table) -> Iterator[tuple[slice, Codes]]:
        """Yield ``(rows, codes)`` over the table; codes has one column per domain."""
        for rows, chunk in table.chunks():
            kind = getattr(getattr(chunk, "dtype", None), "kind", "O")
            if not (self._numeric and kind in "biuf"):
                yield rows, self._by_column(table, chunk)
            elif self._whole and kind in "biu":
                yield rows, self._integers(chunk)
            else:
                yield rows, self._floats(as_numbers(chunk))

    def encode(self, table: Table) -> Codes:
        """Return the codes of the whole table."""
        codes = np.empty((table.n_rows, len(self.domains)), self.dtype)
        for rows, part in self.chunks(table):
            codes[rows] = part
        return codes

    def _by_column(self, table: Table, chunk: Any) -> Codes:
        columns = [d.encode(table.column(j, chunk)) for j, d in enumerate(self.domains)]
        return np.stack(columns, axis=1).astype(self.dtype)

    def _integers(self, chunk: npt.NDArray[Any]) -> Codes:
        """One bin per integer: the code is the clipped value minus the low end."""
        if chunk.dtype == bool:
            chunk = chunk.view(np.uint8)
        info = np.iinfo(chunk.dtype)
        # bounds that the type cannot hold are made good below
        low = np.clip(self._low, info.min, info.max).astype(chunk.dtype)
        high = np.clip(self._high, info.min, info.max).astype(chunk.dtype)
        # two passes are faster than np.clip, and no pass is faster than one
        above = chunk if (low == info.min).all() else np.maximum(chunk, low)
        codes: npt.NDArray[Any] = np.minimum(above, high)
        if self._low.any():
            codes = np.clip(codes.astype(np.int64) - self._low, 0, self._bins - 1)
        return codes.astype(self.dtype, copy=False)

    def _floats(self, chunk: npt.NDArray[np.float64]) -> Codes:
        if self._two:
            return self._upper(chunk)
        position = np.clip(self._filled(chunk), self._low, self._high)
        position -= self._low
        position *= self._bins / (self._high - self._low)
        np.minimum(position, self._bins - 1, out=position)
        return position.astype(self.dtype)

    def _upper(self, chunk: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
        """Two bins: not below the edge. That is true of a missing value, as of the middle."""
        if not self._middle_is_upper:
            chunk = self._filled(chunk)
        upper: npt.NDArray[np.bool_] = chunk < self._edge
        np.logical_not(upper, out=upper)
        return upper.view(np.uint8)

    def _filled(self, chunk: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the chunk with the middle where a value is missing."""
        with np.errstate(invalid="ignore", over="ignore"):
            missing = np.isnan(chunk.sum())  # also true for inf - inf; the mask below is exact
        return np.where(np.isnan(chunk), self._middle, chunk) if missing else chunk
