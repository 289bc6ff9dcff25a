r"""The mode of a regression of three classes and more, all of them in one release.

A record of class y has the loss :math:`\log\sum_c e^{z_c} - z_y`, :math:`z_c = x^\top B w_c` with
the blocks and contrasts of two classes. Only differences of classes count, so released are
:math:`W = H^\top w`, for orthonormal contrasts H of the classes: as if all :math:`w_c` added to
zero. A record adds :math:`(\pi - e_y)\otimes x` to the gradient, and to the second derivatives
:math:`S\otimes B^\top xx^\top B`, :math:`S = \operatorname{diag}\pi - \pi\pi^\top`.

**Noise.** It is a linear image :math:`U = \sum_g g\otimes n_g` of independent noises
:math:`n_g`, each that of the hull of all :math:`\pm x` (:mod:`dpbayes_sklearn.noise.gradient`), of
joint density :math:`\propto e^{-\sum_g\|n_g\|/s}`.

- *Pairs*, :math:`g = e_a - e_b`: as :math:`(\pi - e_y)\otimes x = \sum_{c \ne y}\pi_c(e_c -
  e_y)\otimes x`, a record moves the noise of a pair (c, y) by :math:`\pi_cx`, and all of them by
  :math:`\sum_{c \ne y}\pi_c \le 1`.
- *Classes*, :math:`g = e_c`: all of them by :math:`\sum_c|\pi_c - 1[c = y]| \le 2`.

*Claim.* If a record moves the :math:`n_g` by at most h in all, the first term of the proof of
:mod:`~dpbayes_sklearn.convex.perturbed` is :math:`mh/s`. *Proof.* At given parameters neighbours
need noises u and u + v, where v is the image of a shift of the :math:`n_g` whose norms add up to at
most mh. The density at u is the integral over all :math:`n_g` with this image; the shift maps them
to those of u + v, one to one and keeping volumes, and changes their density by a factor of at most
:math:`e^{mh/s}`. ∎

Along a contrast of C classes the noise has C times the variance of one class (pairs), or, as s is
twice as large, 4 times (classes). So three classes have pairs, and more have classes.

**Determinant.** S has C - 1 eigenvalues that are not 0, which add to :math:`1 - \sum_c\pi_c^2 \le
1 - 1/C`. So the rank in the proof is C - 1, and q is :math:`1 - 1/C` in the place of the
:math:`\tfrac14` of two classes.

**Exactly.** As with two classes. Every noise is known up to its cell, so what cells cost adds up
over the :math:`n_g`. Probabilities follow from differences of exact sums, and C numbers of at most
1 are added up: they err by :math:`(C + 8)2^{-52}`, less than the rounding of a residual.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expm1

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.convex.perturbed import Body, PerturbedPlan, Shape
from dpbayes_sklearn.data.records import Shard
from dpbayes_sklearn.logistic.blocks import WEIGHT_STEPS, Blocks
from dpbayes_sklearn.logistic.mode import LogisticLoss, body_of, plan_of, shape_of, usual_ridge
from dpbayes_sklearn.logistic.posterior import class_contrasts
from dpbayes_sklearn.logistic.record_sums import (
    RESIDUAL_STEPS,
    ROWS_AT_A_TIME,
    CodeValues,
    MappedRecords,
    Reader,
    on_lattice,
)
from dpbayes_sklearn.noise.gradient import BlockShape, GradientNoise, hull_noise
from dpbayes_sklearn.privacy.budget import PrivacyUnit

MOST_CLASSES = 128
"""The rounding of probabilities is counted for so many classes."""
_MOST_WITH_PAIRS = 3  # From four classes on noises of classes are smaller than those of pairs.


class Lift(NamedTuple):
    """How independent noises make that of all classes."""

    groups: IntArray  # (classes, noises): the g, one in each column.
    reach: int  # The h: what a record moves all noises by, at most.

    @classmethod
    def of(cls, n_classes: int) -> Lift:
        """Return that with the smaller noise.

        >>> Lift.of(3).groups.tolist(), Lift.of(4).reach
        ([[1, 1, 0], [-1, 0, 1], [0, -1, -1]], 2)
        """
        if n_classes > _MOST_WITH_PAIRS:
            return cls(np.eye(n_classes, dtype=np.int64), 2)
        one = np.eye(n_classes, dtype=np.int64)
        return cls(np.stack([one[a] - one[b] for a, b in combinations(range(n_classes), 2)], 1), 1)

    @property
    def contrasts(self) -> FloatArray:
        """The noises' weights in contrasts of classes, (classes - 1, noises)."""
        return np.asarray(class_contrasts(len(self.groups)).T @ self.groups)

    @property
    def variance(self) -> float:
        """Variance along every contrast, of noises of variance 1."""
        classes, sums = len(self.groups), self.groups.sum(axis=0)
        squares = (self.groups**2).sum() - (sums**2).sum() / classes
        return float(squares / (classes - 1))


def plan_classes(
    blocks: Blocks,
    n_classes: int,
    n: int,
    epsilon: Fraction,
    unit: PrivacyUnit,
    rho: float,
    prior: float | None,
) -> PerturbedPlan:
    """Choose ridge and noise for several classes, by the rules of two; the noise is pure."""
    lift = Lift.of(n_classes)

    def noise_of(share: Fraction) -> GradientNoise:
        weights = tuple(map(Fraction, blocks.sizes))
        noises = lift.groups.shape[1]
        return hull_noise(
            BlockShape(blocks.sizes, weights, Fraction(lift.reach)), share, unit, noises
        )

    def ridge_of(noise: GradientNoise) -> FloatArray:
        if prior is not None:
            return np.full((n_classes - 1) * blocks.parameters, prior)
        cell = math.sqrt(lift.variance * (1 - 1 / n_classes))
        return np.tile(cell * usual_ridge(blocks, rho, noise), n_classes - 1)

    shape = shape_of_classes(blocks, n, n_classes)
    return plan_of(shape, epsilon, unit, noise_of, ridge_of, partial(_body, blocks, lift))


def _body(blocks: Blocks, lift: Lift, noise: GradientNoise) -> Body:
    """Return the noise of the gradient by contrasts of classes and of blocks."""
    one, contrasts = body_of(blocks, noise), lift.contrasts
    classes, noises = contrasts.shape
    grown = float(np.linalg.norm(contrasts, 2)) * math.sqrt(noises)
    return Body(
        one.law,
        lift.reach * one.steps,
        partial(_tilt, blocks, contrasts, noise.lattice),
        np.tile(lift.variance * one.variance, classes),
        grown * (classes + 1) * one.inexact,
        grown * one.farthest,
    )


def _tilt(blocks: Blocks, contrasts: FloatArray, lattice: int, *drawn: AnyArray) -> FloatArray:
    """Return noises of the blocks and, last, of the constant as those of parameters."""
    noises = contrasts.shape[1]
    *rows, total = (each.reshape(noises, -1) for each in drawn)
    by_contrast = contrasts @ np.concatenate([total, *rows], axis=1)
    return np.asarray(-(by_contrast @ blocks.basis).ravel() / lattice)


def shape_of_classes(blocks: Blocks, n: int, n_classes: int) -> Shape:
    r"""Return the public bounds of the loss of n records.

    Errors of all classes add up, and sums over classes err by C more roundings: C times those of
    one class, C times. The gradient of a record has a length of at most :math:`\sqrt2|x|`.
    """
    one, others = shape_of(blocks, n), n_classes - 1
    squares = np.tile(4 * one.squares * (1 - 1 / n_classes) / others, others)
    rounding, slope = n_classes**2 * one.rounding, math.sqrt(2) * one.slope
    return one._replace(squares=squares, rounding=rounding, slope=slope, rank=others)


@dataclass(frozen=True)
class SoftmaxLoss(LogisticLoss):
    """**Sensitive:** the loss of all records, as a function of contrasts of classes and blocks."""

    n_classes: int

    @property
    def n_parameters(self) -> int:
        """Contrasts of classes times contrasts of blocks."""
        return (self.n_classes - 1) * self.blocks.parameters

    def shape(self, heaviest: float = 1.0) -> Shape:
        """Return what is public about it."""
        return shape_of_classes(self.blocks, self.n, self.n_classes)

    @property
    def _contrasts(self) -> FloatArray:
        return class_contrasts(self.n_classes)

    def _coefficients(self, w: FloatArray) -> FloatArray:
        """Return the nearest coefficients of every class on the lattice."""
        by_class = self._contrasts @ w.reshape(self.n_classes - 1, -1)
        return on_lattice(by_class @ self.blocks.basis.T)

    def at(self, w: FloatArray) -> FloatArray:
        """Return the parameters of the nearest coefficients on the lattice."""
        near = [self._near(each) for each in self._coefficients(w)]
        return np.asarray((self._contrasts.T @ near).ravel())

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient at parameters of coefficients on the lattice."""
        values = tuple(map(self.records.values, self._coefficients(w)))
        ask = partial(_gradient, reader=self.records.reader, values=values)
        coarse, fine = self.records.records.total(ask)
        sums = [self.records.by_weight(parts) for parts in np.stack([coarse, fine], axis=-1)]
        return np.asarray((self._contrasts.T @ sums @ self.blocks.basis).ravel())

    def curvature(self, w: FloatArray) -> FloatArray:
        """Return the second derivatives."""
        values = tuple(map(self.records.values, self._coefficients(w)))
        ask = partial(_curvature, records=self.records, blocks=self.blocks, values=values)
        by_class, p = self.records.records.total(ask), self.blocks.parameters
        contrasts = self._contrasts
        turned = np.einsum("ak,abij,bl->kilj", contrasts, by_class, contrasts, optimize=True)
        return np.asarray(turned.reshape((self.n_classes - 1) * p, -1))


def _shares(values: tuple[CodeValues, ...], codes: AnyArray) -> FloatArray:
    """Return the probability of every class, (classes, rows)."""
    sums = np.stack([own.sums(codes) for own in values])
    sums -= np.take_along_axis(sums, sums.real.argmax(axis=0)[None], axis=0)  # whole numbers
    shares = np.stack([1 + expm1(CodeValues.log_odds(own)) for own in sums])
    total = np.zeros(shares.shape[1])
    for own in shares:
        total += own
    return np.asarray(shares / total)


def _gradient(shard: Shard, reader: Reader, values: tuple[CodeValues, ...]) -> FloatArray:
    """Add up residuals of every class by code in two parts, (2, classes, codes of all columns)."""
    ends = np.cumsum([1, *map(len, values[0].by_code)])
    sums = np.zeros((2, len(values), ends[-1]))
    for codes, labels in reader.chunks(shard):
        steps = _shares(values, codes)
        steps[labels, np.arange(len(codes))] -= 1
        steps *= RESIDUAL_STEPS
        coarse = np.rint(steps)
        for part, residuals in enumerate((coarse, np.rint((steps - coarse) * RESIDUAL_STEPS))):
            for own, residual in zip(sums[part], residuals, strict=True):
                own[0] += residual.sum()
                for j, (first, end) in enumerate(pairwise(ends)):
                    own[first:end] += np.bincount(codes[:, j], residual, end - first)
    return sums


def _curvature(
    shard: Shard, records: MappedRecords, blocks: Blocks, values: tuple[CodeValues, ...]
) -> FloatArray:
    """Add up second derivatives by pairs of classes, (classes, classes, p, p)."""
    classes, p = len(values), blocks.parameters
    matrix = np.zeros((classes, classes, p, p))
    for v, shares in _rows(shard, records, blocks, values):
        for a, b in combinations(range(classes), 2):
            matrix[a, b] -= (v * (shares[a] * shares[b])[:, None]).T @ v
        for a in range(classes):
            matrix[a, a] += (v * (shares[a] * (1 - shares[a]))[:, None]).T @ v
    for a, b in combinations(range(classes), 2):
        matrix[b, a] = matrix[a, b]
    return matrix


def _rows(
    shard: Shard, records: MappedRecords, blocks: Blocks, values: tuple[CodeValues, ...]
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield contrasts of records and their probabilities, a few thousand records at a time."""
    for codes, _ in records.reader.chunks(shard):
        for first in range(0, len(codes), ROWS_AT_A_TIME):
            some = codes[first : first + ROWS_AT_A_TIME]
            x = blocks.weights(some, records.tables) / WEIGHT_STEPS
            yield x @ blocks.basis, _shares(values, some)
