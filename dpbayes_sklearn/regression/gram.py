r"""The whole matrix of second moments, with matrix or Gaussian noise.

**The whole matrix of second moments, with noise that suits it as a matrix.**

Weigh the coordinates, :math:`z_i \to a_i z_i`. A replaced record changes :math:`\sum zz^\top` by
:math:`zz^\top - z'z'^\top`, whose nuclear norm is at most :math:`\|z\|^2 + \|z'\|^2 \le 2c`, where

.. math:: c = a_0^2 + \sum_{\text{numbers, signs}} a_j^2 +
    \sum_{\text{columns of levels}} a_j^2 + a_t^2,

since numbers, signs and the target lie in [-1, 1] and one level of a column is 1. So
:class:`~dpbayes_sklearn.noise.matrix.MatrixNoise` of scale :math:`2c/\varepsilon` is
:math:`\varepsilon`-private, however many entries there are. A record that comes or goes changes it
by c, k records of one person by k times as much.

Numbers and target seldom are at the ends of their windows all at once, so their part of c is
bounded by what few records exceed (:mod:`~dpbayes_sklearn.regression.record_sums`). Their weights
make up for windows of different reach: in units of its standard deviation every number counts the
same, and its weighted square is u on average and varies by :math:`\sqrt 2 u`, if it is normal.

A sign s that is centred at its mean m belongs to that part too. Its square
:math:`(s - m)^2 = 1 - 2ms + m^2` is :math:`1 - m^2` on average, not 1, and varies by
:math:`2m\sqrt{1 - m^2}`. In its window it is divided by :math:`1 + |m|`, and weighted by as much.

Where target and columns lie was released before, so weights and bound are public.

**The second moments with Gaussian noise: how much a record changes them in a weighted L2 norm.**

Coordinates are weighted as for matrix noise, above:
:math:`P = \|z\|^2 = \sum a_i^2z_i^2`. Noise of variance :math:`\propto 1/w_{ij}` needs a bound on
:math:`\sum_{i \le j} w_{ij} D_{ij}^2`, D the change of the sums. Take
:math:`w_{ij} = a_i^2a_j^2` and on the diagonal :math:`\tfrac12a_i^4`, for a number or the target
:math:`\tfrac12a_i^4 + e a_i^2` with some :math:`e \ge 0`, so that squares of numbers, of which
there are few, have less noise. In the inner product
:math:`\langle A, B\rangle = \sum_{i \le j} w_{ij} A_{ij}B_{ij}` two records have

.. math:: \langle zz^\top, z'z'^\top\rangle = \tfrac12\langle z, z'\rangle^2
    + e\sum a_i^2 x_i^2 x_i'^2 \ge 0,

the last sum over numbers and target, which lie in [-1, 1]. (Entries that are not released are
included here.) So a record that is replaced changes the sums, squared, by no more than the two do
alone, and k records by :math:`k^2` times as much as one. Two bounds follow.

**Records that are scaled**: numbers, centred signs and target have :math:`\sum a_i^2x_i^2 \le \ell`
(:mod:`~dpbayes_sklearn.regression.record_sums`), and :math:`P \le c`. As :math:`x_i^4 \le x_i^2`, a
record alone adds :math:`\tfrac12P^2 + e\sum a_i^2x_i^4 \le \tfrac12c^2 + e\ell`, so a replaced one
changes the sums by :math:`c^2 + 2e\ell`.

**Records that are not scaled**: :math:`e = \tfrac12c` costs nothing, if c is the sum of all squared
weights. With :math:`Q = \|z'\|^2` a replaced record changes the sums by
:math:`\tfrac12(P^2 + Q^2) - \langle z, z'\rangle^2 + \tfrac12c\sum a_i^2(x_i^2 - x_i'^2)^2`. Since
:math:`(x_i^2 - x_i'^2)^2 \le (1 - x_i^2) + (1 - x_i'^2)` the last term is at most
:math:`\tfrac12c(c - P) + \tfrac12c(c - Q)`, and :math:`P^2 + c(c - P) \le c^2`: together
:math:`c^2`. A record that comes or goes adds :math:`\tfrac12c^2 + \tfrac12c\ell`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.noise import MatrixNoise, NoiseLaw
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.regression.design import Design, Reach
from dpbayes_sklearn.regression.moments import Block, GaussianBlock, whole_block
from dpbayes_sklearn.regression.record_sums import RowNorm

# Squared weights. Larger weight = less noise in this coordinate's products, more in all others.
# A sign varies more than a number in its window, and a sum matters less than a product.
_NUMBER_WEIGHT, _SIGN_WEIGHT, _LEVEL_WEIGHT, _CONSTANT_WEIGHT = 1.0, 0.25, 0.5, 0.3
# The weight of the target is this factor times the root of the sum over all columns, as every
# product with it is needed; it is less if those are known from a first stage already.
_TARGET_WEIGHT, _KNOWN_TARGET_WEIGHT = 1.5, 0.5
_USUAL_WINDOW = 2.5  # The window of a number of usual weight reaches this many standard deviations.

_WEIGHT_STEPS = 32  # Weights are multiples of 1/32.
_USUAL_SQUARE = 0.2  # A weighted square usually has this mean u.
_MOST_STRETCH = 4.0  # A weight is stretched for a wide or narrow window by at most this factor.


@dataclass(frozen=True)
class GramMatrix:
    """All entries of the moments at once."""

    # rows, columns: Positions in the upper triangle; 0 is the constant, the last is the target.
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    weights: tuple[Fraction, ...]  # The a_i of the coordinates that are there.
    fixed: Fraction  # The part of the bound that constant, signs and levels have in every record.
    # Which records are scaled so that numbers, centred signs and target do not exceed their part of
    # the bound.
    norm: RowNorm
    # Part of the target's window beyond which a record of otherwise usual size is scaled.
    target_end: float
    n_changed: int = RECORD.n_changed  # How many records come or go between neighbours.

    @property
    def limit(self) -> Fraction:
        """The part of the bound that numbers, centred signs and target have."""
        return Fraction(self.norm.limit, _WEIGHT_STEPS**2)

    @property
    def bound(self) -> Fraction:
        """The c: no record has a larger weighted square."""
        return self.fixed + self.limit

    @classmethod
    def of(
        cls, design: Design, reach: Reach | None = None, deviations: float | None = None
    ) -> GramMatrix:
        """Return the matrix of a design, with public weights.

        Parameters
        ----------
        design : Design
        reach : Reach, optional
            How far the windows of the coordinates and the target reach.
        deviations : float, optional
            Standard deviations by which the weighted square of a record may exceed its mean; left
            out, records are not scaled.

        >>> from dpbayes_sklearn.schema import Interval
        >>> matrix = GramMatrix.of(Design((Interval(0, 1),) * 3))
        >>> len(matrix), [str(a) for a in matrix.weights], round(float(matrix.bound), 2)
        (15, ['9/16', '1', '1', '1', '13/8'], 5.96)
        >>> round(float(GramMatrix.of(Design((Interval(0, 1),) * 3), deviations=1.0).bound), 2)
        2.32
        """
        kinds = np.where(
            design.numbers, _NUMBER_WEIGHT, np.where(design.signs, _SIGN_WEIGHT, _LEVEL_WEIGHT)
        )
        _, first = np.unique(design.column, return_index=True)
        needed = _KNOWN_TARGET_WEIGHT if reach is not None and reach.known else _TARGET_WEIGHT
        target = needed * math.sqrt(max(kinds[first].sum(), _NUMBER_WEIGHT))
        squares = np.append(kinds, target)
        numbers, signs = np.append(design.numbers, True), np.append(design.signs, False)
        usual = np.where(numbers, _USUAL_SQUARE * squares, 0.0)
        varying = 2 * usual**2
        if reach is not None:
            stretch = np.clip(reach.deviations / _USUAL_WINDOW, 1 / _MOST_STRETCH, _MOST_STRETCH)
            squares = squares * np.where(numbers, stretch**2, 1.0)
        centred = None if reach is None else reach.signs
        if centred is not None:
            m = np.abs(centred)
            usual[signs] = _SIGN_WEIGHT * (1 - m**2)
            varying[signs] = _SIGN_WEIGHT**2 * 4 * m**2 * (1 - m**2)
            squares[signs] *= (1 + m) ** 2
        scaled = numbers if centred is None else numbers | signs
        most = math.inf
        if deviations is not None:
            most = usual.sum() + deviations * math.sqrt(varying.sum())
        steps = np.rint(_WEIGHT_STEPS * np.sqrt(np.append(_CONSTANT_WEIGHT, squares))).astype(int)
        present = np.arange(0 if design.intercept else 1, design.width + 2)
        # of all levels of a column one counts: their weights are the same
        single = first[~scaled[first]] + 1
        fixed = sum(int(steps[i]) ** 2 for i in [*present[present == 0], *single])
        whole = steps[1:] ** 2 * scaled
        limit = min(most, squares[scaled].sum())
        end = math.sqrt(max(limit - usual[:-1].sum(), 0.0) / squares[-1])
        rows, columns = np.triu_indices(len(present))
        return cls(
            present[rows],
            present[columns],
            tuple(Fraction(int(steps[i]), _WEIGHT_STEPS) for i in present),
            Fraction(fixed, _WEIGHT_STEPS**2),
            RowNorm(tuple(whole.tolist()), int(min(most * _WEIGHT_STEPS**2, whole.sum()))),
            min(end, 1.0),
        )

    def protecting(self, unit: PrivacyUnit) -> GramMatrix:
        """Return the same matrix with the sensitivity for a unit of privacy."""
        return replace(self, n_changed=unit.n_changed)

    @property
    def sensitivity(self) -> Fraction:
        """The sensitivity in the nuclear norm."""
        return self.n_changed * self.bound

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, epsilon: Fraction, grid: int) -> NoiseLaw:
        """Return the law of the noise, on sums in units of 1/grid²."""
        return MatrixNoise(laplace_scale(self.sensitivity * grid**2, epsilon), self.weights)


def gram_block(
    design: Design,
    unit: PrivacyUnit = RECORD,
    reach: Reach | None = None,
    deviations: float | None = None,
) -> GramMatrix | Block:
    """Return what has less noise: the products as a matrix or as numbers."""
    # which one it is does not depend on epsilon
    blocks: tuple[GramMatrix | Block, ...] = (
        GramMatrix.of(design, reach, deviations).protecting(unit),
        whole_block(design).protecting(unit),
    )
    return min(blocks, key=lambda block: noise_of_products(design, block, Fraction(1), reach))


def noise_of_products(
    design: Design,
    block: GramMatrix | GaussianBlock | Block,
    share: Fraction,
    reach: Reach | None = None,
) -> float:
    """Return the mean variance of all entries for a share, each counted by its weights."""
    matrix, squares = GramMatrix.of(design, reach), np.zeros(design.width + 2)
    squares[np.unique(matrix.rows)] = [float(weight) ** 2 for weight in matrix.weights]
    grid = 2**10  # fine enough
    weights = squares[block.rows] * squares[block.columns]
    return float((block.law(share, grid).variances * weights).mean()) / grid**4


NARROWEST = 8
"""No standard deviation is below 1/8 of that of a sum of sensitivity 1."""

_WIDEST = 50  # No standard deviation exceeds this many times the number of coordinates.
_FOR_SQUARES = Fraction(1, 10)  # The e of scaled records is this part of the bound.


@dataclass(frozen=True)
class GaussianGram(GaussianBlock):
    """All entries of the moments that are not public."""

    bound_of_one_record: Fraction  # The bound of a record that comes or goes.
    norm: RowNorm  # Which records are scaled before they are summed.
    # Part of the target's window beyond which a record of otherwise usual size is scaled.
    target_end: float

    @property
    def deviation(self) -> float:
        """The largest standard deviation of an entry, for a rho of 1/2."""
        return math.sqrt(self.bound / min(self.weights))

    def protecting(self, unit: PrivacyUnit) -> GaussianGram:
        """Return the same sums for all records of a unit, which change them as many times."""
        change = self.bound_of_one_record if unit.size_is_secret else self.bound
        return replace(self, bound=unit.max_records**2 * change)


def gaussian_gram(
    design: Design, reach: Reach | None = None, deviations: float | None = None
) -> GaussianGram:
    """Return all entries that are not public, to be released with Gaussian noise.

    Public, or known by the sums, are the squares of constant and signs and the products of two
    levels of a column.
    Records are scaled if that leads to less noise. Parameters are those of
    :meth:`~dpbayes_sklearn.regression.gram.GramMatrix.of`.
    """
    blocks = [_whole(design), _scaled(design, reach, deviations)]
    drawable = [block for block in blocks if block.deviation <= _WIDEST * (design.width + 2)]
    return min(drawable, key=lambda block: noise_of_products(design, block, Fraction(1), reach))


def _whole(design: Design) -> GaussianGram:
    matrix = GramMatrix.of(design)
    c, limit = matrix.bound, matrix.limit
    return _block(design, matrix, c / 2, c**2, c * (c + limit) / 2)


def _scaled(design: Design, reach: Reach | None, deviations: float | None) -> GaussianGram:
    matrix = GramMatrix.of(design, reach, deviations)
    c, limit = matrix.bound, matrix.limit
    e = _FOR_SQUARES * c**2 / (2 * limit)
    bound = c**2 + 2 * e * limit
    return _block(design, matrix, e, bound, bound / 2)


def _block(
    design: Design, matrix: GramMatrix, e: Fraction, bound: Fraction, alone: Fraction
) -> GaussianGram:
    """Return the entries with their weights, for the e that the bounds were computed with."""
    last, i, j = design.width + 1, matrix.rows, matrix.columns
    column = np.concatenate([[-1], design.column, [-2]])
    numbers = np.concatenate([[False], design.numbers, [True]])
    levels = np.concatenate([[False], design.levels, [False]])
    steps = np.zeros(last + 1, np.int64)
    steps[np.unique(i)] = [int(weight * _WEIGHT_STEPS) for weight in matrix.weights]
    square = steps**2
    # entries of equal weight by a code: twice their weight in steps, or below 0 for a number
    code = square[i] * square[j] * np.where(i == j, 1, 2)
    code = np.where((i == j) & numbers[i], -square[i], code)
    kept = np.where(i == j, numbers[i] | levels[i], column[i] != column[j])
    i, j, code = i[kept], j[kept], code[kept]

    def weight_of(code: int) -> Fraction:
        if code > 0:
            return Fraction(code, 2 * _WEIGHT_STEPS**4)
        a = Fraction(-code, _WEIGHT_STEPS**2)
        return a * (a / 2 + e)

    codes, first, which = np.unique(code, return_index=True, return_inverse=True)
    found = {c: weight_of(c) for c in codes[np.argsort(first)].tolist()}
    groups = {weight: k for k, weight in enumerate(dict.fromkeys(found.values()))}
    group = np.array([groups[found[c]] for c in codes.tolist()])[which]
    order = np.argsort(group, kind="stable")
    rows, columns, sizes = i[order], j[order], tuple(np.bincount(group).tolist())
    most = min(bound, alone) * NARROWEST**2  # less weight is more noise
    weights = tuple(min(weight, most) for weight in groups)
    return GaussianGram(rows, columns, sizes, weights, bound, alone, matrix.norm, matrix.target_end)
