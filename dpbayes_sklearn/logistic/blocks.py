r"""How the columns of a table become blocks: a few weights each, not negative, that add to one.

A record is :math:`x = (1, x_1, \dots, x_d)` with one block :math:`x_j` for each column.

- A column of K categories is a block of K levels, one of which is 1.
- A number v has a public or released map to :math:`u(v) \in [0, 1]`, and its block holds *hats*:
  linear B-splines of u at evenly spaced knots. Two neighbouring hats are not zero, and they add
  to 1. Two knots make the effect linear in u, four make it piecewise linear. If the domain marks
  missing values, they are one level more.
- With ``n_bins``, a number is a block of bins instead.

So a number costs exactly what a category costs, and all blocks have the same sum. Coefficients
:math:`\beta_j` of a block add to zero (*contrasts*): a constant of a block is part of the
intercept. The model has :math:`p = 1 + \sum_j (K_j - 1)` parameters.

A number is read as one of ``PLACES`` places between its bounds. What its block is there is a table,
whose weights are whole numbers of 1/WEIGHT_STEPS, so that sums of them are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.data.records import Table
from dpbayes_sklearn.schema import Domain, Interval
from dpbayes_sklearn.schema.values import as_numbers, cells_of

BINS = 16
"""Equal-width bins between the bounds of a number; its map is linear in each of them."""
PLACES = 2**13
"""Steps between the bounds of a number that values are rounded to."""
WEIGHT_STEPS = 2**14
"""Weights are multiples of 1/WEIGHT_STEPS."""
_MOST_LEVELS = 2**16  # The codes of a column fit 16 bits.
_DRAWN = 65  # The effect of a number is drawn at this many places.
_KNOTS = {"smooth": 4, "linear": 2}  # The curve of a number's effect has this many knots.

WeightCodes = npt.NDArray[np.uint16]
"""One number for each column: a category, or a place from the lower bound."""


def even_nodes(numbers: int) -> FloatArray:
    """Return the maps of numbers that are spread evenly between their bounds.

    >>> even_nodes(1)[0, [0, 8, 16]].tolist()
    [0.0, 0.5, 1.0]
    """
    return np.tile(np.linspace(0.0, 1.0, BINS + 1), (numbers, 1))


class ColumnWeights(NamedTuple):
    """Weights of one column by code: WEIGHT_STEPS - part at ``left``, part at the next one."""

    left: npt.NDArray[np.intp]
    part: FloatArray
    known: FloatArray | float = 0.0  # What a code adds to z beside its weights.

    def values(self, coefficients: AnyArray) -> AnyArray:
        """Return WEIGHT_STEPS times what a record with each code adds to z."""
        right = coefficients[np.minimum(self.left + 1, len(coefficients) - 1)]
        return np.asarray((WEIGHT_STEPS - self.part) * coefficients[self.left] + self.part * right)

    def sums(self, by_code: FloatArray, size: int) -> FloatArray:
        """Return the sums of weights, in units of 1/WEIGHT_STEPS, given the sums of every code."""
        beside = np.minimum(self.left + 1, size - 1)
        total = np.bincount(self.left, (WEIGHT_STEPS - self.part) * by_code, size)
        return np.asarray(total + np.bincount(beside, self.part * by_code, size))


@dataclass(frozen=True)
class Blocks:
    """The public map from columns to blocks.

    >>> from dpbayes_sklearn.schema import Categories
    >>> blocks = Blocks((Interval(0, 3), Categories([*"ab"])))
    >>> blocks.sizes, blocks.parameters
    ((4, 2), 5)
    >>> codes = blocks.encode(Table(np.array([[1.5, "b"]], dtype=object)))
    >>> (blocks.weights(codes, blocks.tables(even_nodes(1))) / WEIGHT_STEPS).tolist()
    [[1.0, 0.0, 0.5, 0.5, 0.0, 0.0, 1.0]]
    """

    domains: tuple[Domain, ...]  # One per column.
    effects: str = "smooth"  # Four knots for every number, or two.
    n_bins: int | None = None  # Bins of every number that declares none of its own; None for knots.
    intercept: bool = True  # Whether the model has a constant.

    def __post_init__(self) -> None:
        if max(self.sizes, default=1) > _MOST_LEVELS:
            raise ValueError(f"A column can have at most {_MOST_LEVELS} bins or categories.")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the declared fields only, so that cached values reveal no earlier use."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def knots(self, domain: Domain) -> int:
        """Return how many knots a column has; 0 if it is a block of levels or bins."""
        return 0 if not domain.is_numeric or self.n_bins else _KNOTS[self.effects]

    def levels(self, domain: Domain) -> Domain:
        """Return the domain of a block of levels: categories, or a number that is cut into bins."""
        if isinstance(domain, Interval) and domain.bins is None:
            return _binned(domain, self.n_bins or 0)
        return domain

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of weights of every block."""
        return tuple(
            knots + domain.marks_missing
            if (knots := self.knots(domain))
            else self.levels(domain).n_values
            for domain in self.domains
        )

    @property
    def parameters(self) -> int:
        """Number of free coefficients, the p."""
        return self.intercept + sum(size - 1 for size in self.sizes)

    @cached_property
    def starts(self) -> npt.NDArray[np.intp]:
        """Where each block begins among all weights; the constant is at 0."""
        return np.cumsum([1, *self.sizes])

    @property
    def width(self) -> int:
        """Number of weights of a record, the constant included."""
        return int(self.starts[-1])

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Columns that are numbers with knots."""
        return tuple(j for j, domain in enumerate(self.domains) if self.knots(domain))

    @property
    def looked_at(self) -> tuple[int, ...]:
        """Columns that histograms may be made of."""
        return tuple(range(len(self.domains)))

    def cells(self, column: int) -> Domain:
        """Return what a histogram of a column counts: bins of a number with knots, or levels."""
        domain = self.domains[column]
        return _binned(domain, BINS) if self.knots(domain) else self.levels(domain)

    @cached_property
    def basis(self) -> FloatArray:
        r"""Orthonormal contrasts, of shape (width, parameters): coefficients are ``basis @ w``.

        Column k of a block is :math:`(1, \dots, 1, -k, 0, \dots)/\sqrt{k(k+1)}` (Helmert).
        """
        columns = np.zeros((self.width, self.parameters))
        columns[0, : int(self.intercept)] = 1.0
        place = int(self.intercept)
        for start, size in zip(self.starts, self.sizes, strict=False):
            k = np.arange(1, size)
            block = np.triu(np.ones((size, size - 1)))
            block[k, k - 1] = -k
            columns[start : start + size, place : place + size - 1] = block / np.sqrt(k * (k + 1))
            place += size - 1
        return columns

    @cached_property
    def block_of(self) -> npt.NDArray[np.intp]:
        """The block of every parameter; -1 for the intercept."""
        of_blocks = np.repeat(np.arange(len(self.sizes)), np.array(self.sizes, int) - 1)
        return np.concatenate([np.full(int(self.intercept), -1), of_blocks]).astype(np.intp)

    def per_parameter(self, blocks: FloatArray, constant: float) -> FloatArray:
        """Return one number per parameter, given one for each block and one for the intercept."""
        return np.append(blocks, constant)[self.block_of]

    # Reading

    def chunks(self, table: Table) -> Iterator[tuple[slice, WeightCodes]]:
        """Yield ``(rows, codes)`` of a table; the codes of a column lie side by side."""
        for rows, chunk in table.chunks():
            codes = np.empty((rows.stop - rows.start, len(self.domains)), np.uint16, order="F")
            for j, domain in enumerate(self.domains):
                values = table.column(j, chunk)
                if isinstance(domain, Interval) and self.knots(domain):
                    codes[:, j] = _places(domain, values)
                else:
                    codes[:, j] = self.levels(domain).encode(values)
            yield rows, codes

    def encode(self, table: Table) -> WeightCodes:
        """Return the codes of a whole table: two bytes for each of its cells."""
        codes = np.empty((table.n_rows, len(self.domains)), np.uint16, order="F")
        for rows, chunk in self.chunks(table):
            codes[rows] = chunk
        return codes

    def tables(self, nodes: FloatArray) -> tuple[ColumnWeights, ...]:
        """Return the weights of every column by code, with these maps of the numbers."""
        maps = iter(nodes)
        return tuple(
            _hats(knots, domain, next(maps)) if (knots := self.knots(domain)) else _one_hot(size)
            for domain, size in zip(self.domains, self.sizes, strict=True)
        )

    def shown_codes(self, column: int) -> tuple[FloatArray, tuple[str, ...], npt.NDArray[np.intp]]:
        """Return places, names and codes at which the effect of a column is drawn.

        Numbers have no names, and no place for missing values.
        """
        domain = self.domains[column]
        if isinstance(domain, Interval) and self.knots(domain):
            codes = np.linspace(0, PLACES, _DRAWN).astype(np.intp)
            places = np.asarray(domain.low + codes * ((domain.high - domain.low) / PLACES))
            return places.astype(np.float64), (), codes
        codes = np.arange(self.sizes[column])
        return codes.astype(np.float64), tuple(self.levels(domain).names_of_codes()), codes

    def weights(self, codes: WeightCodes, tables: tuple[ColumnWeights, ...]) -> FloatArray:
        """Return the weights of records in units of 1/WEIGHT_STEPS: exact whole numbers."""
        out = np.zeros((len(codes), self.width + 1))  # one more, for what is right of the last
        out[:, 0] = WEIGHT_STEPS
        flat, row = out.reshape(-1), np.arange(0, out.size, self.width + 1)
        for j, (start, block) in enumerate(zip(self.starts, tables, strict=False)):
            code = codes[:, j]
            part, place = block.part[code], row + (start + block.left[code])
            flat[place] = WEIGHT_STEPS - part
            if self.knots(self.domains[j]):
                flat[place + 1] += part
        return out[:, :-1]


def _places(domain: Interval, values: AnyArray) -> AnyArray:
    """Return the position of every number between its bounds; missing values come after them."""
    numbers = as_numbers(cells_of(values))
    place = np.rint((domain.clip(numbers) - domain.low) * (PLACES / (domain.high - domain.low)))
    return np.where(np.isnan(numbers), PLACES + 1, place) if domain.marks_missing else place


def _one_hot(size: int) -> ColumnWeights:
    return ColumnWeights(np.arange(size), np.zeros(size))


def _hats(knots: int, domain: Domain, nodes: FloatArray) -> ColumnWeights:
    """Return the hat functions of every position; missing values have a level after them."""
    u = np.interp(np.arange(PLACES + 1) * (BINS / PLACES), np.arange(BINS + 1.0), nodes)
    steps = np.rint(u * ((knots - 1) * WEIGHT_STEPS))
    left = np.minimum(steps // WEIGHT_STEPS, knots - 2).astype(np.intp)
    part = steps - left * WEIGHT_STEPS
    if domain.marks_missing:
        left, part = np.append(left, knots), np.append(part, 0.0)
    return ColumnWeights(left, part)


def _binned(domain: Domain, bins: int) -> Interval:
    """Return an interval that is cut into equal-width bins."""
    assert isinstance(domain, Interval)
    return Interval(domain.low, domain.high, bins, domain.dates, None, domain.missing)
