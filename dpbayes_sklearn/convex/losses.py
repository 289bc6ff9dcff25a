r"""Huber's loss of a linear model: its slope is bounded, so its minimum can be released.

With the residual :math:`r = t - w^\top v` and a limit h it is :math:`r^2/2` up to h and grows
linearly from there. The gradient of a record is :math:`-v\,\psi(r)` with :math:`\psi(r) =
\max(-h, \min(r, h))`, its second derivative :math:`vv^\top` where :math:`|r| < h` and 0 beyond.

A record is read in one of two ways, both public.

- *Turned*: coordinates :math:`z` of :mod:`~dpbayes_sklearn.convex.record_sums`, shortened with
  their target to a length of at most T, so that a linear relation stays linear. Its own limit is
  :math:`hR/\|v\|`, so that no gradient is longer than :math:`hR`.
- *In windows*: the constant, numbers and signs in [-1, 1], and levels. The limit is h for all.

Sums must not depend on the order of the records. So parameters and clipped residuals are split into
two whole numbers each, whose products with the whole numbers v are exact floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg.blas import dsyrk

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.convex.design import Design, Scale, Windows
from dpbayes_sklearn.convex.perturbed import Body, Shape
from dpbayes_sklearn.convex.record_sums import (
    GRID,
    STEPS,
    Coordinates,
    Target,
    lengths,
    read,
    shrinking,
)
from dpbayes_sklearn.convex.records import LinearRecords, scaled_target
from dpbayes_sklearn.data.records import LocalRecords, Shard
from dpbayes_sklearn.schema.values import as_numbers

# A parameter is a whole number of parts of 1, and a whole number of parts of those.
_PARTS = 2.0**20
LATTICE = 1 / _PARTS**2
"""Parameters at which gradients are asked for are multiples of it."""
FARTHEST = 2.0**17
"""The length of parameters, at most: products with records are exact."""
RECORDS_PER_RIDGE = 2.0**10
"""The ridge is at least n over this: with less, a search goes to and fro between the kinks."""
# A clipped residual is a whole number of parts of the largest limit, and of their parts.
_COARSE, _FINE = 2.0**16, 2.0**17
_LARGEST_LIMIT = 4.0  # A short record has at most this many times the limit of one of length R.

Model = tuple[Design, Scale]
"""What columns and target mean: public."""
Chunk = tuple[FloatArray, FloatArray, FloatArray]
"""Records v (q, rows) in whole steps, their targets, and their limits."""


class Rows(Protocol):
    """How records are read, all of it public."""

    @property
    def unit(self) -> float:
        """The step of v."""

    @property
    def largest_limit(self) -> float:
        """No record has a larger limit."""

    def shape(self, n: int) -> Shape:
        """Return the public bounds of the loss of n records."""

    def chunks(self, shard: Shard, design: Design, scale: Scale) -> Iterator[Chunk]:
        """Yield records."""


class Turned(NamedTuple):
    """Records in turned coordinates, shortened to a length."""

    coordinates: Coordinates
    target: Target
    length: float  # The T.
    limit: float  # The h.
    radius: float  # The R: no gradient is longer than h R.

    @property
    def unit(self) -> float:
        """The step of v."""
        return self.length / STEPS

    @property
    def largest_limit(self) -> float:
        """The limit of short records."""
        return _LARGEST_LIMIT * self.limit

    def shape(self, n: int) -> Shape:
        """Return the shape of a loss whose records have at most this length."""
        p = len(self.coordinates.steps)
        squares = np.full(p, self.length**2)
        rounding = _rounding(self.largest_limit) * self.length
        return Shape(n, squares, True, LATTICE, rounding, self.limit * self.radius)

    def chunks(self, shard: Shard, design: Design, scale: Scale) -> Iterator[Chunk]:
        """Yield records that are shortened with their targets."""
        for z, y in read(shard, design, scale, self.coordinates):
            factor = shrinking(lengths(z), self.length)
            v = np.trunc(np.multiply(z, factor / self.unit, out=z), out=z)
            gradient = self.limit * self.radius / (self.unit * np.maximum(lengths(v), 1.0))
            limits = np.minimum(gradient * (1 - 2.0**-30), self.largest_limit)
            yield v, self.target.map(y) * factor, limits


class InWindows(NamedTuple):
    """Records in windows: the constant, numbers and signs in [-1, 1], and levels."""

    windows: Windows
    target: Target
    limit: float  # The h.
    squares: FloatArray  # (q,): 1 for each column and the constant, spread over its levels.

    @property
    def unit(self) -> float:
        """The step of v."""
        return 1 / GRID

    @property
    def largest_limit(self) -> float:
        """The limit of all records."""
        return self.limit

    def shape(self, n: int) -> Shape:
        """Return the shape of a loss whose records have one entry of 1 in every column."""
        length = math.sqrt(float(self.squares.sum()))
        rounding = _rounding(self.limit) * length
        return Shape(n, self.squares, False, LATTICE, rounding, self.limit * length)

    def chunks(self, shard: Shard, design: Design, scale: Scale) -> Iterator[Chunk]:
        """Yield records that are clipped to their windows."""
        y, first = as_numbers(shard.target), 0 if design.intercept else 1
        for rows, x in design.chunks(shard.table, GRID, self.windows):
            v = np.empty((design.width + 1 - first, len(x)))
            v[: 1 - first] = GRID
            v[1 - first :] = x.T
            t = self.target.map(scaled_target(y[rows], scale))
            yield v, t, np.full(len(t), self.limit)


def _rounding(limit: float) -> float:
    """Return the error of a clipped residual: its own rounding, and that of a float."""
    whole = 2.0 ** math.ceil(math.log2(limit))
    return whole / (_COARSE * _FINE) + 2.0**-40


def least_ridge(shape: Shape, farthest: float, body: Body) -> float:
    """Return a ridge with which the mode is within reach, where no target is farther out."""
    reach = FARTHEST / math.sqrt(len(shape.squares)) / 4
    far = shape.n * farthest**2 / (2 * reach) ** 2
    return max(far, body.farthest / reach, shape.n / RECORDS_PER_RIDGE)


def on_lattice(w: FloatArray) -> FloatArray:
    """Return the nearest parameters on the lattice, within the reach of exact products."""
    most = FARTHEST / math.sqrt(len(w))
    return np.asarray(np.rint(np.clip(w, -most, most) / LATTICE) * LATTICE)


@dataclass(frozen=True, repr=False)
class HuberLoss:
    """**Sensitive:** the loss of all records."""

    records: LinearRecords
    rows: Rows
    n_parameters: int

    @property
    def n(self) -> int:
        """Number of records that it is asked of, with a target or without."""
        return self.records.n

    def at(self, w: FloatArray) -> FloatArray:
        """Return the nearest parameters on the lattice."""
        return on_lattice(w)

    def some(self, most: int) -> HuberLoss:
        """Return the loss of some of very many records."""
        records = self.records.records
        if not isinstance(records, LocalRecords) or self.n < 4 * most:
            return self
        return replace(self, records=self.records.every(-(-self.n // most)))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient at parameters on the lattice."""
        ask = partial(_gradient, rows=self.rows, w=w, model=self.records.structure)
        coarse, fine = self.records.total(ask)
        whole = 2.0 ** math.ceil(math.log2(self.rows.largest_limit))
        gradient = -(coarse + fine / _FINE) * (whole / _COARSE * self.rows.unit)
        return np.asarray(gradient, np.float64)

    def curvature(self, w: FloatArray) -> FloatArray:
        """Return the second derivatives."""
        ask = partial(_curvature, rows=self.rows, w=w, model=self.records.structure)
        upper = self.records.total(ask)
        return np.asarray(upper + np.triu(upper, 1).T)

    def products(self) -> FloatArray:
        """Return the sum of vv', exactly."""
        ask = partial(_products, rows=self.rows, model=self.records.structure)
        return np.asarray(self.records.total(ask) * self.rows.unit**2, np.float64)

    def count_residuals(self, w: FloatArray, edges: FloatArray) -> IntArray:
        """Count positive residuals by size, and negative ones."""
        ask = partial(_sizes, rows=self.rows, w=w, model=self.records.structure, edges=edges)
        return np.asarray(self.records.total(ask))

    def sum_residuals(self, w: FloatArray, limit: float) -> IntArray:
        """Return the sum of residuals, each cut at a limit, in steps of limit/STEPS."""
        ask = partial(_sum, rows=self.rows, w=w, model=self.records.structure, limit=limit)
        return np.array([self.records.total(ask)])


def _residuals(
    shard: Shard, rows: Rows, w: FloatArray, model: Model
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield records, residuals and limits."""
    whole = np.rint(w * _PARTS)
    parts = np.stack([whole, np.rint((w * _PARTS - whole) * _PARTS)])
    for v, t, limits in rows.chunks(shard, *model):
        coarse, fine = parts @ v
        fitted = (coarse + fine / _PARTS) * (rows.unit / _PARTS)
        yield v, t - fitted, limits


def _gradient(shard: Shard, rows: Rows, w: FloatArray, model: Model) -> AnyArray:
    total = np.zeros((2, len(w)), np.int64)
    step = 2.0 ** math.ceil(math.log2(rows.largest_limit)) / _COARSE
    for v, r, limits in _residuals(shard, rows, w, model):
        psi = np.clip(r, -limits, limits) / step
        coarse = np.rint(psi)
        fine = np.rint((psi - coarse) * _FINE)
        total += (np.stack([coarse, fine]) @ v.T).astype(np.int64)
    return total.astype(object)  # weights may lead beyond 64 bits


def _curvature(shard: Shard, rows: Rows, w: FloatArray, model: Model) -> FloatArray:
    total = np.zeros((len(w), len(w)))
    for v, r, limits in _residuals(shard, rows, w, model):
        v *= (np.abs(r) < limits) * rows.unit
        total += dsyrk(1.0, v.T, trans=1)
    return total


def _sizes(shard: Shard, rows: Rows, w: FloatArray, model: Model, edges: FloatArray) -> IntArray:
    total = np.zeros((2, len(edges) + 1), np.int64)
    for _, r, _ in _residuals(shard, rows, w, model):
        place = np.searchsorted(edges, np.abs(r), side="right")
        for row, which in enumerate((r >= 0, r < 0)):
            total[row] += np.bincount(place[which], minlength=total.shape[1])
    return total


def _sum(shard: Shard, rows: Rows, w: FloatArray, model: Model, limit: float) -> int:
    total = 0
    for _, r, _ in _residuals(shard, rows, w, model):
        total += int(np.trunc(np.clip(r, -limit, limit) * (STEPS / limit)).sum())
    return total


def _products(shard: Shard, rows: Rows, model: Model) -> AnyArray:
    total: Any = 0
    for v, _, _ in rows.chunks(shard, *model):
        upper = dsyrk(1.0, v.T, trans=1)
        total = total + (np.triu(upper) + np.triu(upper, 1).T).astype(np.int64)
    return np.asarray(total).astype(object)  # weights may lead beyond 64 bits
