"""Values to codes, a chunk of rows at a time: the pass over the data that must be fast.

Buffers are used again for every chunk: the system's work on fresh memory costs several times what
is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval
from dpbayes_sklearn.schema.values import Column, Repeated

_NUMBERS_IN_A_CALL = 4096  # Numpy should compute at least this many numbers in one call.

_MOST_VALUES = 2**16  # Codes of 16 bits can hold this many values.
_MOST_EXACT = 2**53  # Up to here every integer is a float.
_STORED_AT_A_TIME = 1 << 21  # This many stored values of a sparse matrix are encoded at a time.
_CELLS_AT_A_TIME = 1 << 27  # At most this many cells, stored or not, are encoded at a time.
_CACHE_CELLS = 1 << 17  # A megabyte of doubles stays in the cache from one operation to the next.
# Operands of any numeric type are computed with as doubles.
_IN_DOUBLES: Any = {"dtype": np.float64, "casting": "same_kind"}


class PerColumn:
    """One number for each column; if they are all the same, one for all.

    Floats are computed faster with one number than with an array; for integers, numpy's minimum
    and maximum are several times faster with an array.

    >>> PerColumn(np.array([1.0, 2.0])).of(rows=2)
    array([1., 2., 1., 2.])
    >>> PerColumn(np.array([3.0, 3.0])).of(rows=2)
    np.float64(3.0)
    """

    def __init__(self, each: AnyArray) -> None:
        self.each = each

    @cached_property
    def _same(self) -> bool:
        return self.each.dtype.kind == "f" and bool((self.each == self.each[0]).all())

    @cached_property
    def repeat(self) -> int:
        """Rows of the table that make one long row."""
        return 1 if self._same else max(1, _NUMBERS_IN_A_CALL // len(self.each))

    @cached_property
    def _tiled(self) -> AnyArray:
        return np.tile(self.each, self.repeat)

    def of(self, rows: int) -> Any:
        """Return the numbers of every column, repeated for each of some rows."""
        return self.each[0] if self._same else self._tiled[: rows * len(self.each)]

    def cast(self, dtype: np.dtype[Any], low: int, high: int) -> PerColumn:
        """Return the numbers brought between two others, in another type."""
        return PerColumn(np.clip(self.each, low, high).astype(dtype))


def long_rows(
    values: AnyArray, out: AnyArray, *numbers: PerColumn, cells: int | None = None
) -> Iterator[tuple[AnyArray, AnyArray, int]]:
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


@dataclass(frozen=True)
class SparseCodes:
    """The codes of some rows of a sparse matrix: of stored values, and of zeros by column.

    ``starts`` has the place of each row's first value, and one past the last.
    """

    starts: AnyArray
    columns: AnyArray
    codes: AnyArray
    zeros: AnyArray

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.starts) - 1

    def dense(self) -> AnyArray:
        """Return all codes, one row of them for each record."""
        codes = np.empty((len(self), len(self.zeros)), self.zeros.dtype)
        codes[:] = self.zeros
        codes[np.repeat(np.arange(len(self)), np.diff(self.starts)), self.columns] = self.codes
        return codes


Codes = npt.NDArray[np.unsignedinteger[Any]]
"""Codes of a chunk of rows: bytes, or 16 bits where a column has more than 256 values."""


class _Alike(NamedTuple):
    domains: tuple[Domain, ...]
    place: npt.NDArray[np.intp]


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
        numbers = [d for d in self.domains if isinstance(d, Interval)]
        # whose bin is a position on the line: no edges, and no bin for missing values
        intervals = [d for d in numbers if d.edges is None and not d.marks_missing]
        self._numeric = len(intervals) == len(self.domains)
        if self._numeric:
            low, high = np.array([(d.low, d.high) for d in intervals]).reshape(-1, 2).T
            bins = np.array(self.sizes, dtype=np.float64)
            stand_in = np.array([d.stand_in for d in intervals])
            self._high = high
            self._low, self._top = PerColumn(low), PerColumn(bins - 1)
            self._from_zero = not low.any()
            self._scale = PerColumn(bins / (high - low))
            self._missing = PerColumn((stand_in - low) * self._scale.each)
            self._whole = all(
                d.n_integers == d.bins and max(abs(d.low), abs(d.high)) <= _MOST_EXACT
                for d in intervals
            )
            self._compares = False
            if set(self.sizes) == {2}:
                edge_of = {d: d.second_bin for d in set(intervals)}
                self._edge = PerColumn(np.array([edge_of[d] for d in intervals]))
                # not below the edge: true of a missing value, so it must be of its stand-in
                self._compares = bool((stand_in >= self._edge.each).all())

    def chunks(self, table: Table) -> Iterator[tuple[slice, Codes]]:
        """Yield ``(rows, codes)`` over the table; codes has one column per domain.

        The array is the table's own, or is used again for the next chunk: not to be written to.
        """
        buffer: Codes | None = None
        for rows, chunk in table.chunks():
            if self._are_codes(chunk):
                yield rows, chunk
                continue
            if buffer is None:
                buffer = np.empty((rows.stop, len(self.domains)), self.dtype)
            codes = buffer[: rows.stop - rows.start]
            self._fill(table, chunk, codes)
            yield rows, codes

    def _are_codes(self, chunk: Any) -> bool:
        """Tell whether the values are their own codes: looking is faster than copying."""
        return (
            self._numeric
            and self._whole
            and self._from_zero
            and isinstance(chunk, np.ndarray)
            and chunk.dtype == self.dtype
            and chunk.flags.c_contiguous
            and bool(chunk.max(initial=0) <= self._fewest)
        )

    @cached_property
    def _fewest(self) -> int:
        """The last code of the column that has the fewest."""
        return min(self.sizes, default=1) - 1

    def encode(self, table: Table) -> Codes:
        """Return the codes of the whole table."""
        codes = np.empty((table.n_rows, len(self.domains)), self.dtype)
        for rows, chunk in self.chunks(table):
            codes[rows] = chunk
        return codes

    def _fill(self, table: Table, chunk: Any, codes: Codes) -> None:
        if table.is_sparse:
            codes[:] = self._sparse(chunk, self.zeros(chunk.dtype)).dense()
        elif self._numeric and (numbers := table.as_numbers(chunk)) is not None:
            self._encode_numbers(numbers, codes)
        else:
            for j, alone in enumerate(self._by_column):
                alone._encode_column(table.cells(j, chunk), codes[:, j : j + 1])

    @cached_property
    def _by_column(self) -> tuple[Encoder, ...]:
        one_each = [Encoder([domain]) for domain in self._alike.domains]
        return tuple(one_each[i] for i in self._alike.place)

    def _encode_column(self, values: Column, codes: Codes) -> None:
        if isinstance(values, Repeated):
            code_of = self.domains[0].encode(values.cells).astype(codes.dtype)
            known = values.places if _are_codes(values.places, code_of) else code_of[values.places]
            codes[:, 0] = known
        elif self._numeric and values.dtype.kind in "biuf":
            self._encode_numbers(values[:, None], codes)
        else:
            codes[:, 0] = self.domains[0].encode(values)

    # Sparse matrices: what is not stored is zero.

    def compact_chunks(self, table: Table) -> Iterator[tuple[slice, Codes | SparseCodes]]:
        """Yield ``(rows, codes)`` over the table; of sparse rows only what they store."""
        if not table.is_sparse:
            yield from self.chunks(table)
            return
        zeros = self.zeros(table.dtype)
        stored = max(
            1,
            table.n_stored,
            table.n_rows * table.n_columns * _STORED_AT_A_TIME // _CELLS_AT_A_TIME,
        )
        for rows, chunk in table.chunks(max(1, table.n_rows * _STORED_AT_A_TIME // stored)):
            yield rows, self._sparse(chunk, zeros)

    def _sparse(self, matrix: Any, zeros: Codes) -> SparseCodes:
        return SparseCodes(matrix.indptr, matrix.indices, self.stored(matrix), zeros)

    def zeros(self, dtype: Any) -> Codes:
        """Return the code of zero in every column."""
        zero, alike = np.zeros(1, dtype), self._alike
        codes = np.array([domain.encode(zero)[0] for domain in alike.domains], self.dtype)
        return codes[alike.place]

    @cached_property
    def _alike(self) -> _Alike:
        """The different domains, and which of them each column has."""
        place = {domain: i for i, domain in enumerate(dict.fromkeys(self.domains))}
        return _Alike(tuple(place), np.array([place[domain] for domain in self.domains], np.intp))

    def stored(self, matrix: Any) -> Codes:
        """Return the codes of the values that a matrix of sparse rows stores, in their order."""
        codes = np.empty((len(matrix.data), 1), self.dtype)
        if len(self._alike.domains) == 1:
            self._by_column[0]._encode_column(matrix.data, codes)
            return codes[:, 0]
        order = np.argsort(matrix.indices, kind="stable")
        columns, starts = np.unique(matrix.indices[order], return_index=True)
        for j, (start, stop) in zip(columns, pairwise([*starts, len(order)]), strict=True):
            places = order[start:stop]
            of_column = np.empty((len(places), 1), self.dtype)
            self._by_column[j]._encode_column(matrix.data[places], of_column)
            codes[places] = of_column
        return codes[:, 0]

    # Numbers: all columns together.

    def _encode_numbers(self, values: AnyArray, codes: Codes) -> None:
        if self._whole and values.dtype.kind in "biu":
            self._integers(values, codes)
        elif self._compares and values.dtype.itemsize <= 8 and codes.itemsize == 1:
            self._upper(values, codes)  # not if another column of the table needs 16 bits
        else:
            self._floats(values, codes)

    def _integers(self, values: AnyArray, codes: Codes) -> None:
        """One bin per integer: the code is the clipped value minus the low end."""
        if values.dtype == bool:
            values = values.view(np.uint8)
        if self._from_zero and values.dtype == codes.dtype:
            last = self._last(codes.dtype)
            for x, out, repeat in long_rows(values, codes, last):
                np.minimum(x, last.of(repeat), out=out)
            return
        info = np.iinfo(values.dtype)
        # bounds that the type cannot hold are made good below
        low = self._low.cast(values.dtype, info.min, info.max)
        high = PerColumn(self._high).cast(values.dtype, info.min, info.max)
        for x, out, repeat in long_rows(values, codes, high, cells=_CACHE_CELLS):
            clipped = np.maximum(x, low.of(repeat))
            np.minimum(clipped, high.of(repeat), out=clipped)
            if not self._from_zero:
                clipped = clipped.astype(np.int64) - self._low.of(repeat)
                np.clip(clipped, 0, self._top.of(repeat), out=clipped)
            np.copyto(out, clipped, casting="unsafe")

    def _upper(self, values: AnyArray, codes: Codes) -> None:
        """Two bins: the code is whether a value is not below the edge."""
        for x, out, repeat in long_rows(values, codes, self._edge):
            upper = out.view(np.bool_)
            with np.errstate(invalid="ignore"):
                np.less(x, self._edge.of(repeat), out=upper)
            np.logical_not(upper, out=upper)

    def _floats(self, values: AnyArray, codes: Codes) -> None:
        """Many bins: the code is the position, in bins from the low end, without its fraction."""
        space, last = np.empty(0), self._last(codes.dtype)
        too_large = np.float64(np.iinfo(codes.dtype).max + 1.0).view(np.uint64)
        used = self._low, self._scale, self._top, last
        for x, out, repeat in long_rows(values, codes, *used, cells=_CACHE_CELLS):
            space = space if space.size >= x.size else np.empty(x.size)
            flat = space[: x.size]
            position = flat.reshape(x.shape)
            # infinities, also of a difference too large, go to the ends
            with np.errstate(over="ignore", invalid="ignore"):
                if not self._from_zero:
                    x = np.subtract(x, self._low.of(repeat), out=position, **_IN_DOUBLES)
                np.multiply(x, self._scale.of(repeat), out=position, **_IN_DOUBLES)
            # the bits of a double, read as an integer, tell what is negative or missing, too
            if flat.view(np.uint64).max() >= too_large:
                np.copyto(position, self._missing.of(repeat), where=np.isnan(position))
                np.clip(position, 0, self._top.of(repeat), out=position)
            np.copyto(out, position, casting="unsafe")
            np.minimum(out, last.of(repeat), out=out)

    def _last(self, dtype: np.dtype[Any]) -> PerColumn:
        """Return the last code of every column in the type of the codes."""
        return self._last_codes if dtype == self.dtype else PerColumn(self._top.each.astype(dtype))

    @cached_property
    def _last_codes(self) -> PerColumn:
        return PerColumn(self._top.each.astype(self.dtype))


def _are_codes(places: AnyArray, code_of: AnyArray) -> bool:
    """Tell whether places in a dictionary are the codes of its cells; -1 is no code."""
    return places.dtype.kind == "u" and bool((code_of[:-1] == np.arange(len(code_of) - 1)).all())


def known_codes(categories: Categories, values: AnyArray, rule: str) -> npt.NDArray[np.intp]:
    """Return the code of every value; refuse, with a fixed text, any that is no category.

    >>> known_codes(Categories(["no", "yes"]), np.array(["yes", "no"]), "Say yes or no").tolist()
    [1, 0]
    """
    if None in categories.values:
        raise ValueError("None cannot be a category; give missing values a name.")
    if not categories.holds(values).all():
        raise ValueError(f"{rule}; the input holds other values. Nothing was spent.")
    return categories.encode(values)
