"""How the columns of a table become the coordinates of a linear model, and their clipping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.data.encoder import PerColumn, long_rows
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval
from dpbayes_sklearn.schema.values import Column, as_numbers


@dataclass(frozen=True)
class Windows:
    """Ranges of the coordinates: x becomes (x - centre)/half, clipped to [-1, 1]."""

    # centres, halves: (width,): on the scale of the bounds; 0 and 1 leave a coordinate as it is.
    centres: FloatArray
    halves: FloatArray

    @classmethod
    def whole(cls, width: int) -> Windows:
        """Leave every coordinate as its bounds have it."""
        return cls(np.zeros(width), np.ones(width))

    def clip(self, x: FloatArray, grid: int = 1) -> FloatArray:
        """Clip coordinates, in steps of a grid, in place; they stay on the scale of the bounds."""
        if (self.centres != 0).any() or (self.halves != 1).any():
            low, high = (grid * (self.centres + side * self.halves) for side in (-1, 1))
            np.clip(x, *((low, high) if grid == 1 else (np.rint(low), np.rint(high))), out=x)
        return x

    def to_bounds(self) -> FloatArray:
        r"""Return the linear map of (constant, coefficients) to coordinates on their bounds.

        :math:`w_0 + \sum w_j (x_j - c_j)/h_j`: slopes are over h, the constant less their sum.
        """
        back = np.diag(np.concatenate([[1.0], 1 / self.halves]))
        back[0, 1:] = -self.centres / self.halves
        return back


_CHUNK_CELLS = 1 << 18  # A chunk of this many cells stays in the cache and keeps a thread busy.
# A frame takes long to hand out a column, however short, so this many rows are read at once.
_BLOCK_ROWS = 1 << 15
_PRODUCT_ROWS = 512  # Products of a wide table are taken over this many rows at a time.


MISSING = Categories([False, True])
"""Whether a value is missing."""


class Scale(NamedTuple):
    """The linear map of an interval to [-1, 1]: (value - centre) / half."""

    centre: float
    half: float

    @classmethod
    def of(cls, interval: Interval, intercept: bool) -> Scale:
        """Map the middle to 0, or 0 to 0 where there is no intercept to absorb a shift."""
        if intercept:
            return cls(interval.middle, (interval.high - interval.low) / 2)
        return cls(0.0, max(abs(interval.low), abs(interval.high)))


class Feature(NamedTuple):
    """Something about a column of the table; :data:`MISSING` is whether its value is missing."""

    column: int
    domain: Domain


@dataclass(frozen=True)
class Design:
    """The public map from columns to coordinates that all lie in [-1, 1].

    - An :class:`Interval` is one *number*: its bounds are mapped to -1 and 1. If it marks missing
      values, whether a value is missing is a feature of two categories beside it.
    - :class:`Categories` of two values are one *sign*, -1 or 1, if there is an intercept. It
      carries what two indicators would, and its square is always 1.
    - Other :class:`Categories` are one *level* (0 or 1) per value, exactly one of which is 1.

    >>> design = Design((Interval(0, 10), Categories([*"ab"]), Categories([*"xyz"])))
    >>> table = Table(np.array([[10, "a", "z"], [5, "b", "x"]], dtype=object))
    >>> [chunk.tolist() for _, chunk in design.chunks(table)]
    [[[1.0, -1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0, 0.0]]]
    """

    domains: tuple[Domain, ...]  # One per column.
    intercept: bool = True  # Whether the model has a constant.

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the declared fields only, so that cached values reveal no earlier use."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Return what the columns are made into: one feature each, two if one marks missing."""
        found: list[Feature] = []
        for j, domain in enumerate(self.domains):
            found.append(Feature(j, domain))
            if domain.marks_missing:
                found.append(Feature(j, MISSING))
        return tuple(found)

    def _is_sign(self, domain: Domain) -> bool:
        return not domain.is_numeric and domain.n_values == 2 and self.intercept

    @cached_property
    def column(self) -> npt.NDArray[np.intp]:
        """Return the feature that each coordinate comes from."""
        widths = [1 if d.is_numeric or self._is_sign(d) else d.n_values for _, d in self.features]
        return np.repeat(np.arange(len(widths)), widths)

    @cached_property
    def width(self) -> int:
        """Number of coordinates, the constant not counted."""
        return len(self.column)

    @cached_property
    def numbers(self) -> npt.NDArray[np.bool_]:
        """Tell which coordinates are numbers."""
        is_interval = np.array([d.is_numeric for _, d in self.features], dtype=bool)
        return is_interval[self.column]

    @cached_property
    def signs(self) -> npt.NDArray[np.bool_]:
        """Tell which coordinates are signs."""
        return np.array([self._is_sign(d) for _, d in self.features], dtype=bool)[self.column]

    @property
    def single(self) -> npt.NDArray[np.bool_]:
        """Tell which coordinates are numbers or signs: the only one of their feature."""
        return self.numbers | self.signs

    @cached_property
    def levels(self) -> npt.NDArray[np.bool_]:
        """Tell which coordinates are levels of categories."""
        return ~self.single

    @cached_property
    def n_values(self) -> FloatArray:
        """Return the number of levels of each coordinate's column."""
        counts = np.bincount(self.column, minlength=len(self.features))
        return counts[self.column].astype(np.float64)

    @cached_property
    def scales(self) -> tuple[FloatArray, FloatArray]:
        """Return centre and half-width of every feature; 0 and 1 for categories."""
        pairs = [
            Scale.of(d, self.intercept) if isinstance(d, Interval) else Scale(0.0, 1.0)
            for _, d in self.features
        ]
        centres, halves = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return centres, halves

    def chunks(
        self,
        table: Table,
        grid: int | None = None,
        windows: Windows | None = None,
        levels: bool = True,
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield ``(rows, coordinates)``; the array may be written to, and is used again.

        Numbers are clipped, and a missing one is what stands in for it. With ``windows`` they are
        clipped and mapped further, and signs are mapped too. With a ``grid`` the coordinates are
        multiplied by it and rounded to integers. Without ``levels`` there are only numbers and
        signs.
        """
        maps = self._maps if windows is None else self._narrowed(windows)
        width = max(1, self.width, table.n_columns)
        step = max(1, _CHUNK_CELLS // width, min(_PRODUCT_ROWS, width))
        buffer = np.empty((min(step, table.n_rows), self.width))
        for block, chunk in table.chunks(step * max(1, _BLOCK_ROWS // step)):
            n = block.stop - block.start
            whole: Any = table.as_numbers(chunk) if self.numbers.all() and self.width else None
            if whole is None:
                cells = [table.cells(column, chunk) for column in range(len(self.domains))]
                single = self._mapped(n, cells, grid, maps)
                places = self._level_places(cells) if levels and self.levels.any() else None
            for start in range(0, n, step):
                some = slice(start, min(start + step, n))
                out = buffer[: some.stop - start]
                if whole is not None:
                    for x, mapped, rows in long_rows(whole[some], out, *maps):
                        _map_numbers(x, [each.of(rows) for each in maps], mapped, grid or 1)
                    if grid:
                        np.rint(out, out=out)
                elif places is None:
                    out = single[some]
                else:
                    out[:] = 0
                    out[:, self.single] = single[some]
                    out[np.arange(len(out))[:, None], places[some]] = grid or 1
                yield slice(block.start + start, block.start + some.stop), out

    def _mapped(self, n: int, cells: Sequence[Column], grid: int | None, maps: _Maps) -> FloatArray:
        """Return numbers and signs of n records."""
        number = [j for j, (_, domain) in enumerate(self.features) if domain.is_numeric]
        sign = [j for j, (_, domain) in enumerate(self.features) if self._is_sign(domain)]
        single = np.empty((n, len(number) + len(sign)))
        numbers = _side_by_side([as_numbers(cells[self.features[j].column]) for j in number])
        mapped = np.empty(numbers.shape)
        _map_numbers(numbers, [each.each[number] for each in maps], mapped, grid or 1)
        factor, shift, _ = (each.each[sign] for each in maps)
        codes = _side_by_side([self._codes(cells, j) for j in sign])
        is_number = self.numbers[self.single]
        single[:, is_number] = mapped
        single[:, ~is_number] = (grid or 1) * (factor * (2 * codes - 1) - shift)
        return np.rint(single, out=single) if grid else single

    def _level_places(self, cells: Sequence[Column]) -> AnyArray:
        """Return which coordinate of every column of levels is 1."""
        _, first = np.unique(self.column, return_index=True)
        levels = [j for j, start in enumerate(first) if self.levels[start]]
        return _side_by_side([self._codes(cells, j) + first[j] for j in levels])

    def _codes(self, cells: Sequence[Column], j: int) -> AnyArray:
        column, domain = self.features[j]
        if domain is MISSING:
            return domain.encode(np.isnan(as_numbers(cells[column])))
        return domain.encode(cells[column])

    @cached_property
    def _maps(self) -> _Maps:
        """The map of every feature: factor, shift, and where missing numbers go."""
        centres, halves = self.scales
        return _Maps(*map(PerColumn, (1 / halves, centres / halves, self.stand_ins)))

    @cached_property
    def stand_ins(self) -> FloatArray:
        """Return the value of a missing number, on the scale of the bounds; 0 for categories."""
        centres, halves = self.scales
        numbers = [d.stand_in if isinstance(d, Interval) else 0.0 for _, d in self.features]
        return (np.array(numbers, dtype=np.float64) - centres) / halves

    def _narrowed(self, windows: Windows) -> _Maps:
        """Return the map of every feature to its window."""
        (centres, halves), (c, h) = self.scales, np.zeros((2, len(self.features)))
        h[:] = 1.0
        single = self.single
        c[self.column[single]] = windows.centres[single]
        h[self.column[single]] = windows.halves[single]
        each = (1 / (halves * h), (centres / halves + c) / h, (self.stand_ins - c) / h)
        return _Maps(*map(PerColumn, each))

    def in_units_of_columns(self, coefficients: FloatArray) -> tuple[FloatArray, float]:
        """Return slopes per unit of each column, or per category, and the constant.

        A sign has the slopes -w and w of its two categories.
        """
        centres, halves = (values[self.column] for values in self.scales)
        slopes = coefficients[1:] / halves
        constant = float(coefficients[0] - slopes @ centres)
        by_column = [[-w, w] if sign else [w] for w, sign in zip(slopes, self.signs, strict=True)]
        return np.concatenate([*by_column, []]), constant


class _Maps(NamedTuple):
    """x becomes factor x - shift; a missing one becomes ``missing``."""

    factor: PerColumn
    shift: PerColumn
    missing: PerColumn


def _side_by_side(columns: Sequence[AnyArray]) -> AnyArray:
    return np.column_stack(columns) if columns else np.empty((1, 0))


def _map_numbers(chunk: Any, maps: Sequence[Any], out: FloatArray, grid: int) -> None:
    """Write numbers mapped to [-grid, grid]; infinities go to the ends, NaN to its stand-in."""
    factor, shift, missing = maps
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(chunk, grid * factor, out=out)
        if np.ndim(shift) or shift:
            out -= grid * shift
        # looking at the cache is cheaper than clipping; the first look finds a NaN, too
        low = out.min(initial=0.0)
        if np.isnan(low):
            np.copyto(out, grid * missing, where=np.isnan(out))
        if not low >= -grid or out.max(initial=0.0) > grid:
            np.clip(out, -grid, grid, out=out)
