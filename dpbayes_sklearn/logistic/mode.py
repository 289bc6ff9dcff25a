r"""The mode of a logistic regression: the loss of its records, and its noise and ridge.

Released is the perturbed minimum (:mod:`~dpbayes_sklearn.convex.perturbed`) of

.. math:: J(w) = \sum_i \big[\log(1 + e^{z_i}) - y_i z_i\big] + \tfrac12 w^\top\Lambda w + b^\top w,
    \qquad z_i = x_i^\top B w

over contrasts w of the blocks (:mod:`dpbayes_sklearn.logistic.blocks`). A record contributes
:math:`B^\top x\,r` with :math:`|r| \le 1` to the gradient, and second derivatives
:math:`\sigma(1-\sigma)B^\top xx^\top B` with :math:`\sigma(1-\sigma) \le \tfrac14`.

**Noise.** b is that of the hull of all :math:`\pm x` (:mod:`~dpbayes_sklearn.noise.gradient`): of
vectors whose blocks have the same sum as the entry of the constant. :math:`B^\top b` determines b:
contrasts give all of a block but its sum, which is the entry of the constant. Without an intercept
B has no column for the constant; then the noise is a projection of b, which changes by the same
factor.

**Determinant.** :math:`x^\top B\Lambda^{-1}B^\top x` is largest at corners of the blocks, so the q
of the proof is :math:`\tfrac14[\frac1{\lambda_0} + \sum_j \frac{1 - 1/K_j}{\lambda_j}]`: each of
the :math:`K_j - 1` contrasts of a block counts as a square of :math:`1/4K_j`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Self

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.convex.perturbed import (
    Body,
    PerturbedPlan,
    Search,
    Shape,
    search_share,
    volume_of,
)
from dpbayes_sklearn.logistic.blocks import Blocks
from dpbayes_sklearn.logistic.record_sums import LATTICE, MappedRecords, on_lattice, residual_error
from dpbayes_sklearn.noise.gradient import (
    BlockShape,
    GradientNoise,
    least_gradient_noise,
    search_delta,
)
from dpbayes_sklearn.privacy.budget import Exact, PrivacyUnit

_VOLUME = Fraction(1, 4)  # The determinants cost at most this share of epsilon.
_EXPECTED = Fraction(17, 20)  # The noise usually has this share of epsilon, which sets the ridge.
# The ridge, in standard deviations of the noise, is 20 / sqrt(n epsilon / p) between these ends.
_RIDGE, _LEAST_RIDGE, _MOST_RIDGE = 20.0, 0.5, 60.0
# The ridge is at least n over this, so that coefficients stay below 2^11.
_RECORDS_PER_RIDGE = 2.0**20


def records_per_parameter(
    blocks: Blocks, n: int, epsilon: float, unit: PrivacyUnit, n_classes: int = 2
) -> float:
    r"""Return :math:`\rho = n\varepsilon/p`, the public number that the rules look at.

    Several classes have p parameters each.
    """
    return n * float(unit.equivalent(epsilon)) / max(n_parameters(blocks, n_classes), 1)


def n_parameters(blocks: Blocks, n_classes: int) -> int:
    """Return the p of two classes, and of C classes C p."""
    return blocks.parameters * (n_classes if n_classes > 2 else 1)


def plan_mode(
    blocks: Blocks,
    n: int,
    epsilon: Fraction,
    unit: PrivacyUnit,
    rho: float,
    prior: float | None,
    delta: Exact = Fraction(0),
    heaviest: float = 1.0,
    rank: int = 1,
    centre: FloatArray | None = None,
) -> PerturbedPlan:
    """Choose ridge and noise; ``prior`` is the prior precision, None for the public rule.

    With a delta the noise is Gaussian where that has less variance. ``heaviest`` is the largest
    weight that the sigmoid of a record has in its residual, which is at most 1 all the same.
    ``rank`` is that of a record's second derivatives: it is a mean of so many. The ridge pulls
    parameters to a public ``centre``, by default 0.
    """
    left = search_delta(delta, search_share(epsilon))

    def ridge_of(noise: GradientNoise) -> FloatArray:
        return (
            usual_ridge(blocks, rho, noise) if prior is None else np.full(blocks.parameters, prior)
        )

    shape, noise_of = shape_of(blocks, n, heaviest), partial(_noise, blocks, delta=left, unit=unit)
    if rank > 1:  # sums of a mean err by fewer roundings than a residual has
        shape = shape._replace(rank=rank, rounding=2 * shape.rounding)
    return plan_of(shape, epsilon, unit, noise_of, ridge_of, partial(body_of, blocks), centre)


def plan_of(
    shape: Shape,
    epsilon: Fraction,
    unit: PrivacyUnit,
    noise_of: Callable[[Fraction], GradientNoise],
    ridge_of: Callable[[GradientNoise], FloatArray],
    body: Callable[[GradientNoise], Body],
    centre: FloatArray | None = None,
) -> PerturbedPlan:
    """Split epsilon into what the wanted ridge needs for the determinants, and the noise."""
    left = epsilon - search_share(epsilon)
    ridge = np.maximum(ridge_of(noise_of(left * _EXPECTED)), shape.n / _RECORDS_PER_RIDGE)
    volume = min(volume_of(shape, ridge, unit), left * _VOLUME)
    return PerturbedPlan.of(
        shape, epsilon, volume, unit, lambda share: body(noise_of(share)), lambda _: ridge, centre
    )


def _noise(blocks: Blocks, epsilon: Fraction, delta: Exact, unit: PrivacyUnit) -> GradientNoise:
    """Return the noise of the gradient; the rarer a level, the more its noise matters."""
    shape = BlockShape(blocks.sizes, tuple(map(Fraction, blocks.sizes)), signed=True)
    return least_gradient_noise(shape, epsilon, delta, unit)


def usual_ridge(blocks: Blocks, rho: float, noise: GradientNoise) -> FloatArray:
    """Return the ridge of every parameter; the constant has that of a usual block."""
    factor = min(max(_RIDGE / math.sqrt(rho), _LEAST_RIDGE), _MOST_RIDGE) / noise.lattice
    each = np.array([factor * math.sqrt(noise.law.variance(j)) for j in range(len(blocks.sizes))])
    return blocks.per_parameter(each, float(np.median(each)))


def body_of(blocks: Blocks, noise: GradientNoise) -> Body:
    """Return the noise of the gradient by contrasts.

    A point of the noise's lattice is in the middle of its cell: free entries are off by half a step
    each, the last one of a block by half of its size.
    """
    law, lattice, farthest = noise.law, noise.lattice, noise.farthest
    d, sizes = len(blocks.sizes), np.array(blocks.sizes)
    each = np.array([law.contrast_variance(j) for j in range(d)])
    variance = blocks.per_parameter(each, law.variance(d)) / lattice**2
    cell = math.sqrt(1 + float((sizes + sizes**2).sum())) / (2 * lattice)
    inexact, gradient = cell + _rounding(blocks, farthest), partial(_tilt, blocks, lattice)
    return Body(law, lattice, gradient, variance, inexact, farthest * math.sqrt(1 + d))


def _tilt(blocks: Blocks, lattice: int, *drawn: AnyArray) -> FloatArray:
    """Return noise of the blocks and, last, of the constant as that of parameters."""
    *rows, total = drawn
    return np.asarray(-np.concatenate([total, *rows]) @ blocks.basis / lattice)


def shape_of(blocks: Blocks, n: int, heaviest: float = 1.0) -> Shape:
    """Return the public bounds of the loss of n records."""
    slope = math.sqrt(1 + len(blocks.sizes))
    rounding = heaviest * residual_error(len(blocks.sizes)) * slope + _rounding(blocks, 1.0)
    squares = heaviest * blocks.per_parameter(1 / (4 * np.array(blocks.sizes)), 0.25)
    return Shape(n, squares, False, LATTICE, rounding, slope)


def _rounding(blocks: Blocks, largest: float) -> float:
    r"""Return how far floats may be off in the gradient, and in the parameters times the ridge.

    Let u = 2^-53, K the largest block, and R the sum of n and of the noise's largest norm. A
    product with a contrast adds K numbers whose absolute values add to R at most: it errs by
    :math:`(K + 5)uR`, its division and the sums' included, and p of them by :math:`\sqrt p` as
    much. Parameters that are computed from coefficients err by :math:`(K + 5)u|w_j|` each, so
    :math:`\Lambda w` by :math:`\sqrt K(K + 5)u|\Lambda w|`, and near the minimum
    :math:`|\Lambda w| \le \sqrt{1 + d}\,R`; this counts for the gradient, for the place of w, and
    as much again for adding up.
    """
    size, squares = max(blocks.sizes, default=1), 1 + len(blocks.sizes)
    parts = math.sqrt(blocks.parameters) + 4 * math.sqrt(size * squares)
    return 2.0**-53 * 1.01 * (size + 5) * parts * largest


def exact_mode(loss: LogisticLoss, ridge: FloatArray, heaviest: float = 1.0) -> FloatArray:
    """Return the mode without noise, where no privacy is asked for."""
    shape = loss.shape(heaviest)
    slack = shape.slack(0.0, 0.0, float(np.linalg.norm(ridge * loss.centre)))
    search = Search(loss, ridge, loss.centre, np.zeros(len(ridge)), slack)
    return search.minimum(shape.reachable(ridge, slack))


@dataclass(frozen=True)
class LogisticLoss:
    """**Sensitive:** the logistic loss of all records, as a function of contrasts."""

    records: MappedRecords
    blocks: Blocks

    @property
    def n(self) -> int:
        """Number of records."""
        return self.records.records.n

    @property
    def n_parameters(self) -> int:
        """The p."""
        return self.blocks.parameters

    @property
    def centre(self) -> FloatArray:
        """What the ridge pulls parameters to."""
        return np.zeros(self.n_parameters)

    def shape(self, heaviest: float = 1.0) -> Shape:
        """Return what is public about it."""
        return shape_of(self.blocks, self.n, heaviest)

    def at(self, w: FloatArray) -> FloatArray:
        """Return the parameters of the nearest coefficients on the lattice."""
        return self._near(on_lattice(self.blocks.basis @ w))

    def _near(self, coefficients: FloatArray) -> FloatArray:
        """Return the parameters of rounded coefficients, whose means are in the constant."""
        blocks = self.blocks
        near: FloatArray = coefficients @ blocks.basis
        if blocks.intercept:
            means = np.add.reduceat(coefficients, blocks.starts[:-1]) / blocks.sizes
            near[0] += float(means.sum())
        return near

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient at parameters of coefficients on the lattice."""
        sums, _ = self.records.gradient(on_lattice(self.blocks.basis @ w))
        return np.asarray(sums @ self.blocks.basis)

    def curvature(self, w: FloatArray) -> FloatArray:
        """Return the second derivatives."""
        basis = self.blocks.basis
        return np.asarray(basis.T @ self.records.curvature(on_lattice(basis @ w)) @ basis)

    def some(self, most: int) -> Self:
        """Return the loss of some of very many records."""
        some = self.records.some(most)
        return self if some is self.records else replace(self, records=some)
