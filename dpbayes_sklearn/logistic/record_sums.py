r"""Exact sums over labelled records: histograms, gradients and curvature.

The loss of a record is :math:`\log(1 + e^z) - yz` with :math:`z = \beta^\top x`; its gradient is
:math:`rx` with the residual :math:`r = \sigma(z) - y \in [-1, 1]`, its second derivative
:math:`\sigma(z)(1 - \sigma(z))\,xx^\top`.

Sums must not depend on the order of the records, nor on their chunks. So coefficients and residuals
are split into two whole numbers each, whose products with the weights, which are whole numbers as
well, are exact in float64. What is rounded is one residual per record: by at most
:func:`residual_error`. A pass looks up z by code, column by column, and adds up residuals by code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk
from scipy.special import expit

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.data.records import LocalRecords, Records, Shard, Table, known_targets
from dpbayes_sklearn.logistic.blocks import (
    BINS,
    PLACES,
    WEIGHT_STEPS,
    Blocks,
    ColumnWeights,
    WeightCodes,
)
from dpbayes_sklearn.schema import Categories

# A coefficient is a multiple of 2^-22 plus a smaller multiple of 2^-46.
_COARSE_STEPS, _FINE_STEPS = 2.0**22, 2.0**24
RESIDUAL_STEPS = 2.0**22
"""Residuals have steps of 2^-22, and of 2^-44 in two parts."""
LATTICE = 1 / (_COARSE_STEPS * _FINE_STEPS)
"""Coefficients at which gradients are asked for are multiples of it."""
MOST_RECORDS = 2**26
"""Sums of the residuals of up to this many records fit 64 bits."""
_KEPT_CELLS = 1 << 25  # Codes of up to this many cells, two bytes each, are kept between passes.
# A contrast has this many steps in products, so that weighted sums stay below 2^53.
_CONTRAST_STEPS = 2.0**36
ROWS_AT_A_TIME = 1 << 12
"""A chunk of weights has so few rows that products over them are exact."""


def on_lattice(coefficients: FloatArray) -> FloatArray:
    """Return coefficients rounded to the lattice."""
    return np.asarray(np.rint(coefficients / LATTICE) * LATTICE)


def residual_error(blocks: int) -> float:
    r"""Return the largest error of a residual: its rounding, that of z, and the float sigmoid.

    The first is :math:`2^{-45}`, the last :math:`2^{-50}`; coefficients that do not add to zero
    exactly, where there is no intercept, shift z by up to :math:`2^{-47}` per block.
    """
    return 2.0**-44 + blocks * 2.0**-48


def check_classes(classes: Categories, most: int) -> None:
    """Refuse one class, in the words of scikit-learn, and very many."""
    if classes.n_values < 2:
        raise ValueError("A logistic regression needs two classes. Got one class instead.")
    if classes.n_values > most:
        raise ValueError(
            f"At most {most} classes are supported. Got {classes.n_values} instead: use "
            "BayesianNaiveBayes."
        )


@dataclass(frozen=True, repr=False)
class LabelledRecords:
    """Queries about labelled records, each answered exactly.

    **Sensitive.** It refers to the records and holds no sums.
    """

    blocks: Blocks  # What the columns of the records mean.
    classes: Categories  # Of two classes the second one counts as 1.
    records: Records  # Features and labels, wherever they are.
    skips: bool = False  # Whether records without a class add nothing.
    # Whether labels are counts, as parts s of their cap: the loss is that of a class s of 1 + s.
    counted: bool = False

    @property
    def n(self) -> int:
        """The number of records, with a class or without."""
        return self.records.n

    @property
    def structure(self) -> tuple[Blocks, Categories]:
        """The public model: what merged records must have in common."""
        return self.blocks, self.classes

    def __add__(self, other: LabelledRecords) -> LabelledRecords:
        """Return the queries about the records of both, which must be different records."""
        if self.structure != other.structure:
            raise ValueError("Records of different models cannot be added.")
        return replace(self, records=self.records + other.records)

    def read(self) -> CodedRecords:
        """Return the queries that a release asks; the codes of few records are kept.

        A record without a class adds nothing: in the place of another it changes every sum as one
        that goes does, which is half of what a replaced one may change.
        """
        records, reader = self.records, Reader(self.blocks, self.classes, self.counted)
        if self.skips:
            records = records.having(partial(known_targets, self.classes))
        if not isinstance(records, LocalRecords):
            return CodedRecords(reader, records)
        if records.n_rows * len(self.blocks.sizes) > _KEPT_CELLS:
            return CodedRecords(reader, records)
        kept = LocalRecords(
            (Table(self.blocks.encode(shard.table)), self.classes.encode(shard.target))
            for shard in records.shards
        )
        kept = kept if records.weights is None else kept.weighted(records.weights)
        return CodedRecords(reader._replace(classes=None), kept)


class Reader(NamedTuple):
    """How codes and labels of a shard are read; one without classes finds them as they are."""

    blocks: Blocks
    classes: Categories | None
    counted: bool = False
    above: int | None = None  # Labels tell whether a class is above this one, if it is given.

    def weight(self, labels: AnyArray) -> Any:
        """Return what the sigmoid of a record is multiplied by in its residual."""
        return 1.0 + labels if self.counted else 1.0

    def chunks(self, shard: Shard) -> Iterator[tuple[WeightCodes, AnyArray]]:
        """Yield codes and labels, many records at a time."""
        if self.classes is None:
            for rows, codes in shard.table.chunks():
                yield codes, self._labels(shard.target[rows])
            return
        for rows, codes in self.blocks.chunks(shard.table):
            yield codes, self._labels(self.classes.encode(shard.target[rows]))

    def _labels(self, classes: AnyArray) -> AnyArray:
        return classes if self.above is None else classes > self.above

    def histograms(self, shard: Shard, columns: tuple[int, ...]) -> IntArray:
        """Count bins of numbers, missing values last, and levels of other columns."""
        counts = [np.zeros(self.blocks.cells(j).n_values, np.int64) for j in columns]
        for codes, _ in self.chunks(shard):
            for column, count in zip(columns, counts, strict=True):
                if column not in self.blocks.numbers:
                    count += np.bincount(codes[:, column], minlength=len(count))
                    continue
                by_place = np.bincount(codes[:, column], minlength=PLACES + 2)
                by_place[PLACES - 1] += by_place[PLACES]  # the upper bound is of the last bin
                count += np.append(
                    by_place[:PLACES].reshape(BINS, -1).sum(axis=1), by_place[PLACES + 1]
                )[: len(count)]
        return np.concatenate([*counts, np.zeros(0, np.int64)])


@dataclass(frozen=True, repr=False)
class CodedRecords:
    """Sensitive queries about records whose blocks can be read."""

    reader: Reader
    records: Records

    def histograms(self, columns: tuple[int, ...]) -> IntArray:
        """Count the values of some columns, one after the other."""
        counts: IntArray = self.records.total(partial(self.reader.histograms, columns=columns))
        return counts

    def mapped(self, nodes: FloatArray, level: float = 0.0) -> MappedRecords:
        """Return the queries that need a map of every number; ``level`` is added to every z."""
        return MappedRecords(self.reader, self.records, self.reader.blocks.tables(nodes), level)


@dataclass(frozen=True, repr=False)
class MappedRecords:
    """Sensitive queries about records whose weights are known."""

    reader: Reader
    records: Records
    tables: tuple[ColumnWeights, ...]
    level: float = 0.0

    def some(self, most: int) -> MappedRecords:
        """Return the same queries about a part of the records, from which a search may start."""
        n = self.records.n
        if not isinstance(self.records, LocalRecords) or n < 4 * most:
            return self
        return replace(self, records=self.records.at(np.arange(0, n, -(-n // most))))

    def gradient(self, coefficients: FloatArray) -> tuple[FloatArray, int]:
        """Return the gradient of the loss at coefficients on the lattice, and the rows."""
        ask = partial(_gradient, reader=self.reader, values=self.values(coefficients))
        by_code, rows = self.records.total(ask).parts
        return self.by_weight(np.concatenate(by_code)), rows

    def by_weight(self, by_code: FloatArray) -> FloatArray:
        """Return sums of weights times residuals, by sums of both parts of residuals by code."""
        ends = np.cumsum([1, *(len(block.left) for block in self.tables)])
        first, *others = np.split(by_code, ends[:-1])
        sums = [np.array([first.sum(axis=0) @ [1.0, 1 / RESIDUAL_STEPS]]) * WEIGHT_STEPS]
        for block, size, each in zip(self.tables, self.reader.blocks.sizes, others, strict=True):
            coarse, fine = (block.sums(part, size) for part in each.T)
            sums.append(coarse + fine / RESIDUAL_STEPS)
        return np.concatenate(sums) / (RESIDUAL_STEPS * WEIGHT_STEPS)

    def curvature(self, coefficients: FloatArray, squares: bool = False) -> FloatArray:
        """Return the sum of the second derivatives, or of squares of first ones, in floats."""
        asked = partial(_curvature, reader=self.reader, tables=self.tables, squares=squares)
        ask = partial(asked, values=self.values(coefficients))
        upper = self.records.total(ask)
        return np.asarray(upper + np.triu(upper, 1).T)

    def products(
        self,
        coefficients: FloatArray,
        basis: FloatArray,
        weights: FloatArray,
        limit: float,
        grid: int,
        squares: bool = False,
    ) -> IntArray:
        r"""Return the upper triangle of the sum of :math:`vv^\top`, in units of 1/grid².

        v is :math:`\sqrt{\sigma(z)(1-\sigma(z))}\,B^\top x`, or with ``squares`` the residual times
        :math:`B^\top x`, scaled such that :math:`\sum_i a_i^2 (B^\top x)_i^2` does not exceed the
        limit, with weights a, and rounded towards 0 to multiples of 1/grid. B is rounded to
        multiples of 2^-36.
        """
        asked = partial(_products, reader=self.reader, tables=self.tables, squares=squares)
        of_norm = partial(asked, basis=basis, weights=weights, limit=limit)
        values = self.values(on_lattice(coefficients))
        matrix = self.records.total(partial(of_norm, values=values, grid=grid))
        return np.asarray(matrix[np.triu_indices(len(matrix))])

    def values(self, coefficients: FloatArray) -> CodeValues:
        """Return what every code adds to z, as two whole numbers in one complex number."""
        split, starts = _split(coefficients), self.reader.blocks.starts
        parts = (split[a:b] for a, b in pairwise(starts))
        each = [
            block.values(part) + WEIGHT_STEPS * _split(block.known)
            for block, part in zip(self.tables, parts, strict=True)
        ]
        constant = (split[0] + _split(self.level)) * WEIGHT_STEPS
        return CodeValues(complex(constant), tuple(each))


def _split(numbers: FloatArray | float) -> Any:
    """Return numbers on the lattice as two whole numbers in one complex number."""
    coarse = np.rint(np.multiply(numbers, _COARSE_STEPS))
    return coarse + 1j * np.rint((np.multiply(numbers, _COARSE_STEPS) - coarse) * _FINE_STEPS)


class CodeValues(NamedTuple):
    """What every code adds to z, as two whole numbers in one complex number."""

    constant: complex
    by_code: tuple[npt.NDArray[np.complex128], ...]

    def sums(self, codes: WeightCodes) -> npt.NDArray[np.complex128]:
        """Return exact sums for every row."""
        z = np.full(len(codes), self.constant)
        for j, value in enumerate(self.by_code):
            z += value[codes[:, j]]
        return z

    @staticmethod
    def log_odds(z: npt.NDArray[np.complex128]) -> FloatArray:
        """Return the numbers that sums are."""
        return np.asarray((z.real + z.imag / _FINE_STEPS) / (_COARSE_STEPS * WEIGHT_STEPS))

    def probability(self, codes: WeightCodes) -> FloatArray:
        """Return the sigmoid of sums that are exact."""
        return np.asarray(expit(self.log_odds(self.sums(codes))))


class _Sums:
    """Several sums that are added up together."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(*(_added(a, b) for a, b in zip(self.parts, other.parts, strict=True)))


def _added(one: Any, other: Any) -> Any:
    return (
        [a + b for a, b in zip(one, other, strict=True)] if isinstance(one, list) else one + other
    )


def _gradient(shard: Shard, reader: Reader, values: CodeValues) -> _Sums:
    """Add up residuals by code in two parts, for the constant and for every column."""
    sums = [np.zeros((1, 2)), *(np.zeros((len(each), 2)) for each in values.by_code)]
    rows = 0
    for codes, labels in reader.chunks(shard):
        steps = (reader.weight(labels) * values.probability(codes) - labels) * RESIDUAL_STEPS
        coarse = np.rint(steps)
        for part, residual in enumerate((coarse, np.rint((steps - coarse) * RESIDUAL_STEPS))):
            sums[0][0, part] += residual.sum()
            for j, total in enumerate(sums[1:]):
                total[:, part] += np.bincount(codes[:, j], residual, len(total))
        rows += len(codes)
    return _Sums(sums, rows)


def _curvature(
    shard: Shard,
    reader: Reader,
    tables: tuple[ColumnWeights, ...],
    values: CodeValues,
    squares: bool,
) -> FloatArray:
    width = reader.blocks.width
    matrix = np.zeros((width, width), order="F")
    for x, bent in _scaled(shard, reader, tables, values, squares):
        x *= np.sqrt(bent)[:, None] / WEIGHT_STEPS
        matrix = dsyrk(1.0, x.T, beta=1.0, c=matrix, overwrite_c=True)
    return matrix


def _products(
    shard: Shard,
    reader: Reader,
    tables: tuple[ColumnWeights, ...],
    values: CodeValues,
    basis: FloatArray,
    weights: FloatArray,
    limit: float,
    grid: int,
    squares: bool,
) -> IntArray:
    total = np.zeros((basis.shape[1],) * 2, np.int64)
    for x, bent in _scaled(shard, reader, tables, values, squares):
        v, norms = _contrasts(x, basis, weights)
        v *= (grid * np.sqrt(bent * np.minimum(1.0, limit / norms)))[:, None]
        total += dsyrk(1.0, np.trunc(v).T).astype(np.int64)
    return total


def _contrasts(
    x: FloatArray, basis: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return contrasts of rows of weights, and the weighted squares of their norms.

    BLAS rounds a row by how many others there are. So products are of whole numbers, which are
    exact in any order, and squares are added up column by column.
    """
    v = x @ np.rint(basis * _CONTRAST_STEPS) / (_CONTRAST_STEPS * WEIGHT_STEPS)
    norms = np.zeros(len(v))
    for column, weight in zip(v.T, weights, strict=True):
        norms += np.square(weight * column)
    return v, norms


def _scaled(
    shard: Shard,
    reader: Reader,
    tables: tuple[ColumnWeights, ...],
    values: CodeValues,
    squares: bool,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield weights, and second derivatives in z or squares of first ones, of some records."""
    for codes, labels in reader.chunks(shard):
        for first in range(0, len(codes), ROWS_AT_A_TIME):
            rows = slice(first, first + ROWS_AT_A_TIME)
            q, weight = values.probability(codes[rows]), reader.weight(labels[rows])
            bent = (weight * q - labels[rows]) ** 2 if squares else weight * q * (1 - q)
            yield reader.blocks.weights(codes[rows], tables), np.minimum(bent, 1.0)
