r"""The mode of a logistic regression, perturbed before it is sought: one release of p coefficients.

Released is the minimum of

.. math:: J(w) = \sum_i \big[\log(1 + e^{z_i}) - y_i z_i\big] + \tfrac12 w^\top\Lambda w + b^\top w,
    \qquad z_i = x_i^\top B w

over contrasts w of the blocks (:mod:`dpbayes_sklearn.logistic.blocks`). The noise b belongs to the
K-norm whose unit ball is the convex hull of all :math:`\pm x`: vectors whose blocks have the same
sum as the entry of the constant, and L1 norm at most 1
(:class:`~dpbayes_sklearn.noise.ClassRows` with one class). It has dimension p.

**Claim.** If b has density :math:`\propto e^{-\|b\|/s}`, then w is private with
:math:`\varepsilon_1 = m/s + k\ln(1 + c)`, where m records come or go, k of them at most at a
time (a replaced record goes, and another comes: m = 2, k = 1), and

.. math:: c = \tfrac14 \max_x x^\top B\Lambda^{-1}B^\top x
    = \tfrac14\Big[\frac1{\lambda_0} + \sum_j \frac{1 - 1/K_j}{\lambda_j}\Big].

*Proof.* That of :mod:`~dpbayes_sklearn.convex.perturbed`: a record contributes :math:`r\,x` with
:math:`|r| \le 1`, a point of the unit ball, and second derivatives :math:`\sigma(1-\sigma)B^\top
xx^\top B` with :math:`\sigma(1-\sigma) \le \tfrac14`, whose maximum over x is at corners of the
blocks. :math:`B^\top b` determines b: contrasts give all of a block but its sum, which is the entry
of the constant. Without an intercept B has no column for the constant; then the noise is a
projection of b, which changes by the same factor. ∎

**Exactly.** As there. A point of a cell of the noise's lattice of 1/L is at most :math:`\delta =
(\max_j K_j - \tfrac12)/L` from its lattice point in the norm, so :math:`s = (m +
2\delta)/\varepsilon` takes the place of :math:`m/\varepsilon`; :math:`\eta` is
:func:`_rounding` and the place in the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.convex.perturbed import Search
from dpbayes_sklearn.logistic.blocks import Blocks
from dpbayes_sklearn.logistic.record_sums import (
    LATTICE,
    MappedRecords,
    on_lattice,
    residual_error,
)
from dpbayes_sklearn.noise import Noise, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.gradient import (
    BlockShape,
    GradientNoise,
    least_gradient_noise,
    search_delta,
)
from dpbayes_sklearn.privacy.budget import Exact, PrivacyUnit

_VOLUME = Fraction(1, 4)  # The determinants cost at most this share of epsilon.
_SEARCH = Fraction(1, 64)  # The noise that hides where the search ends gets this share.
_MOST_SEARCH = Fraction(64)  # From this budget on the jitter is far below any other error.
_EXPECTED = Fraction(17, 20)  # The noise usually has this share of epsilon, which sets the ridge.
# The ridge, in standard deviations of the noise, is 20 / sqrt(n epsilon / p) between these ends.
_RIDGE, _LEAST_RIDGE, _MOST_RIDGE = 20.0, 0.5, 60.0
_FINEST_NOISE = 40  # The noise's lattice has two to this power steps from 0 to 1.
_FINEST = -30  # The finest lattice of what is released is two to this power.
# The ridge is at least n over this, so that coefficients stay below 2^11.
_RECORDS_PER_RIDGE = 2.0**20
_UPWARD = 1 + 2.0**-40  # This factor covers the rounding of floats.


def records_per_parameter(blocks: Blocks, n: int, epsilon: float, unit: PrivacyUnit) -> float:
    r"""Return :math:`\rho = n\varepsilon/p`, the public number that the rules look at."""
    return n * float(unit.equivalent(epsilon)) / max(blocks.parameters, 1)


class LogisticModePlan(NamedTuple):
    """Public choices of one release."""

    blocks: Blocks
    ridge: FloatArray  # (parameters,): the diagonal of the regulariser.
    gradient_noise: NoiseLaw  # The noise b, in units of 1/lattice.
    lattice: int  # The L.
    farthest: float  # A norm that the noise does not reach.
    # The norm that the gradient may have at the end of the search, its rounding included.
    error: float
    step: float  # What is released is a multiple of it, or of a part of it.
    jitter: SupNorm  # The noise of what is released, in steps.

    @property
    def noise(self) -> FloatArray:
        """Variance of the noise of every parameter's gradient; different ones are uncorrelated."""
        law, blocks = self.gradient_noise, len(self.blocks.sizes)
        each = np.array([law.contrast_variance(j) for j in range(blocks)])
        return self.blocks.per_parameter(each, law.variance(blocks)) / self.lattice**2

    @property
    def needs_delta(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.gradient_noise.independent


def plan_mode(
    blocks: Blocks,
    n: int,
    epsilon: Fraction,
    unit: PrivacyUnit,
    rho: float,
    prior: float | None,
    delta: Exact = Fraction(0),
) -> LogisticModePlan:
    """Choose ridge and noise; ``prior`` is the prior precision, None for the public rule.

    With a delta the noise is Gaussian where that has less variance.
    """
    search = min(epsilon * _SEARCH, _MOST_SEARCH)
    noise_of = partial(_gradient_noise, blocks, delta=search_delta(delta, search), unit=unit)
    ridge, volume = _ridge(blocks, n, epsilon - search, unit, rho, prior, noise_of)
    law, lattice, _, farthest = noise_of(epsilon - search - volume)
    error = _reachable(blocks, n, ridge, _slack(blocks, n, lattice, farthest))
    step = 2.0 ** max(math.ceil(math.log2(error / float(ridge.min()))), _FINEST)
    jitter = SupNorm.of((1,) * blocks.parameters, 2, search)
    return LogisticModePlan(blocks, ridge, law, lattice, farthest, error, step, jitter)


def _gradient_noise(
    blocks: Blocks, epsilon: Fraction, delta: Exact, unit: PrivacyUnit
) -> GradientNoise:
    """Return the noise of the gradient; the rarer a level, the more its noise matters."""
    shape = BlockShape(blocks.sizes, tuple(map(Fraction, blocks.sizes)), signed=True)
    return least_gradient_noise(shape, epsilon, delta, unit)


def _ridge(
    blocks: Blocks,
    n: int,
    epsilon: Fraction,
    unit: PrivacyUnit,
    rho: float,
    prior: float | None,
    noise_of: Callable[[Fraction], GradientNoise],
) -> tuple[FloatArray, Fraction]:
    """Return the ridge of every parameter, and what the determinants cost with it."""
    if prior is None:
        law, lattice, *_ = noise_of(epsilon * _EXPECTED)
        noise = np.array([math.sqrt(law.variance(j)) for j in range(len(blocks.sizes))]) / lattice
        each = noise * min(max(_RIDGE / math.sqrt(rho), _LEAST_RIDGE), _MOST_RIDGE)
    else:
        each = np.full(len(blocks.sizes), prior)
    each = np.maximum(each, n / _RECORDS_PER_RIDGE)
    constant = float(np.median(each))
    most = math.expm1(min(float(epsilon * _VOLUME) / unit.max_records, 700.0))
    factor = max(1.0, determinant_bound(blocks, each, constant) / most * _UPWARD)
    c = determinant_bound(blocks, factor * each, factor * constant)
    volume = Fraction(unit.max_records * math.log1p(c) * _UPWARD)
    return factor * blocks.per_parameter(each, constant), min(volume, epsilon * _VOLUME)


def determinant_bound(blocks: Blocks, ridges: FloatArray, constant: float) -> float:
    r"""Return :math:`c = \tfrac14[1/\lambda_0 + \sum_j (1 - 1/K_j)/\lambda_j]`."""
    contrasts = 1 - 1 / np.array(blocks.sizes)
    return float((contrasts / ridges).sum() + blocks.intercept / constant) / 4 * _UPWARD


def _reachable(blocks: Blocks, n: int, ridge: FloatArray, slack: float) -> float:
    """Return a norm of the gradient, rounding included, that a search can go below."""
    squares, size = 1 + len(blocks.sizes), math.sqrt(blocks.parameters)
    steepest = n * squares / 4 + float(ridge.max())  # no second derivative is larger
    return 4 * (size * steepest * LATTICE + slack)


def _slack(blocks: Blocks, n: int, lattice: int, farthest: float) -> float:
    r"""Return :math:`\eta`, all that is not exact about the gradient of so many records."""
    return _inexact(blocks, n) + _cell(blocks, lattice) + _rounding(blocks, n + farthest)


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
    size, squares = max(blocks.sizes), 1 + len(blocks.sizes)
    parts = math.sqrt(blocks.parameters) + 4 * math.sqrt(size * squares)
    return 2.0**-53 * 1.01 * (size + 5) * parts * largest


def _cell(blocks: Blocks, lattice: int) -> float:
    """Return the norm, at most, of the way from a point of the lattice to one of its cell.

    Free entries are off by half a step each, the last one of a block by half of its size.
    """
    sizes = np.array(blocks.sizes)
    return math.sqrt(1 + float((sizes + sizes**2).sum())) / (2 * lattice)


def perturbed_mode(records: MappedRecords, plan: LogisticModePlan, noise: Noise) -> FloatArray:
    """Release the perturbed mode."""
    return noise.minimum(LogisticLoss(records, plan))


@dataclass(frozen=True)
class LogisticLoss:
    """**Sensitive:** the objective of a mode."""

    records: MappedRecords
    plan: LogisticModePlan

    @property
    def gradient_noise(self) -> NoiseLaw:
        """Noise of the gradient, in units of 1/lattice."""
        return self.plan.gradient_noise

    @property
    def jitter(self) -> SupNorm:
        """Noise of what is released, in steps."""
        return self.plan.jitter

    @property
    def step(self) -> float:
        """Lattice of what is released."""
        return self.plan.step

    def minimum(self, *noise: IntArray) -> FloatArray:
        """Return the mode, tilted by the noise of every block and of the constant."""
        plan, farthest = self.plan, self.plan.farthest
        if max(float(np.abs(each).sum()) for each in noise) > farthest * plan.lattice:
            raise RuntimeError("The source of random bytes cannot be used for noise.")
        loss = SumOfLosses(self.records, plan.blocks)
        slack = _slack(plan.blocks, loss.n, plan.lattice, farthest)
        centre, tilt = np.zeros(plan.blocks.parameters), -tilt_of(plan, *noise)
        return Search(loss, plan.ridge, centre, tilt, slack).minimum(plan.error)


def tilt_of(plan: LogisticModePlan, *noise: IntArray) -> FloatArray:
    """Return the noise of blocks and, last, of the constant as one of the parameters."""
    *rows, total = noise
    return np.asarray(np.concatenate([total, *rows]) @ plan.blocks.basis / plan.lattice)


def exact_mode(records: MappedRecords, blocks: Blocks, ridge: FloatArray) -> FloatArray:
    """Return the mode without noise, where no privacy is asked for."""
    loss, nothing = SumOfLosses(records, blocks), np.zeros(blocks.parameters)
    slack = _slack(blocks, loss.n, 2**_FINEST_NOISE, 0.0)
    search = Search(loss, ridge, nothing, nothing, slack)
    return search.minimum(_reachable(blocks, loss.n, ridge, slack))


@dataclass(frozen=True)
class SumOfLosses:
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

    def at(self, w: FloatArray) -> FloatArray:
        """Return the parameters of the nearest coefficients on the lattice."""
        return _parameters(self.blocks, on_lattice(self.blocks.basis @ w))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient at parameters of coefficients on the lattice."""
        sums, _ = self.records.gradient(on_lattice(self.blocks.basis @ w))
        return np.asarray(sums @ self.blocks.basis)

    def curvature(self, w: FloatArray) -> FloatArray:
        """Return the second derivatives."""
        basis = self.blocks.basis
        return np.asarray(basis.T @ self.records.curvature(on_lattice(basis @ w)) @ basis)

    def some(self, most: int) -> SumOfLosses:
        """Return the loss of some of very many records."""
        some = self.records.some(most)
        return self if some is self.records else replace(self, records=some)


def _inexact(blocks: Blocks, rows: int) -> float:
    """Return the largest error of a sum of gradients of so many records."""
    return rows * residual_error(len(blocks.sizes)) * math.sqrt(1 + len(blocks.sizes))


def _parameters(blocks: Blocks, coefficients: FloatArray) -> FloatArray:
    """Return the parameters of coefficients that were rounded: their means are in the constant."""
    w: FloatArray = coefficients @ blocks.basis
    if blocks.intercept:
        means = np.add.reduceat(coefficients, blocks.starts[:-1]) / blocks.sizes
        w[0] += float(means.sum())
    return w
