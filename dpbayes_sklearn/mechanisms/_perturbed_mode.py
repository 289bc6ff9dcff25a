r"""The mode of a robust posterior, perturbed before it is sought: one release of d coefficients.

The records give coefficients w the loss :math:`\sum \rho(t - w^\top x)` with Huber's
:math:`\rho`, of slope at most h (:mod:`dpbayes_sklearn.statistics.pulls`). Released is the minimum
of

.. math:: J(w) = \sum_i \rho(t_i - w^\top x_i) + \tfrac12 w^\top \Lambda w - u^\top w

with noise u in the sup norm (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta
2012). It pays for d numbers, where a release of moments pays for all products of two; neither
coefficients nor predictions need a bound.

**Claim.** If u has density :math:`\propto e^{-\|u\|_\infty/b}`, then w is private with
:math:`\varepsilon_1 = mh/b + k \ln(1 + q)`, where m records come or go, k of them at most at a
time (a replaced record goes, and another comes: m = 2, k = 1), and :math:`q = \max_x
x^\top\Lambda^{-1}x`.
*Proof.* The minimum solves :math:`u = F(w) = \Lambda w - \sum_i x_i\psi(t_i - w^\top x_i)`. F is
strongly monotone and Lipschitz, so it is one to one, and w has the density
:math:`p(F(w))\,|\det DF(w)|` with :math:`DF = \Lambda + \sum_{|r_i|<h} x_ix_i^\top` almost
everywhere. A record has :math:`|x_j| \le 1` and :math:`|\psi| \le h`, so neighbours differ in no
entry of F(w) by more than mh: the first term. Both :math:`DF` are :math:`A + \sum xx^\top` over at
most k records, with the same :math:`A \succeq \Lambda`, so each determinant lies between that of A
and :math:`(1+q)^k` times it: the second. ∎

**Exactly.** On a computer u is drawn from a lattice, and the minimum is found only nearly. Both
are repaired by noise on what is released, at the price of :math:`\varepsilon_2`.

1. Integers z with :math:`P(z) \propto e^{-\lceil\|z\|\rceil/b}`, spread evenly over the cells of
   their lattice, are a u with a density. A shift by mh, a whole number M of steps, changes the norm
   of the cell by at most M, so the claim holds for this u as it stands.
2. The minimum :math:`w^*` for this u, which nobody computes, is private. With the integers
   themselves and a w whose gradient is g, :math:`\|w - w^*\| \le (\|g\| + \sqrt d\,\eta)/\lambda`,
   where :math:`\eta` bounds the half of a cell and :math:`\lambda` is the smallest entry of
   :math:`\Lambda`. The search goes on until this is at most one step s of a public lattice;
   gradients are exact sums of integers, up to a rounding that is counted. It ends, because
   :math:`w^*` lies where gradients can be asked for: :math:`\psi(r)(t - r) \le \tfrac14` makes
   :math:`\|w^*\| \le \sqrt{n/4\lambda} + \|u\|/\lambda`, which a ridge of n/1024 and half of the
   noise's deviation keeps below about :math:`16 + 2\sqrt d`. Up to 500 coefficients that is half of
   the range of the lattice, and the noise exceeds it with negligible probability.
3. So w and :math:`w^*`, rounded to that lattice, differ by one step at most. Noise in the sup norm
   of scale :math:`2/\varepsilon_2` steps changes probabilities by :math:`e^{\varepsilon_2/2}`
   between the two, on either data set: together :math:`\varepsilon_1 + \varepsilon_2`. ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.threads import blas_for
from dpbayes_sklearn.noise import SupNorm, add
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.moments import Moments, Window, Windows, largest_grid
from dpbayes_sklearn.statistics.pulls import LATTICE, Pulls, on_lattice, rounding

__all__ = ["LIMIT", "ModePlan", "perturbed_mode", "plan_mode"]

LIMIT = Fraction(1, 2)
"""The h: residuals pull with at most half of the target's window."""

_VOLUME, _SEARCH = Fraction(1, 8), Fraction(1, 64)  # of the budget; the rest is for the pulls
_MOST_SEARCH = Fraction(64)  # from there on its noise is far below any other error
_FINEST = -30  # power of two: the finest lattice of what is released
_NARROW = 2.0**-20  # parts of a step that are not told apart
_RECORDS = 2**10  # have a ridge of 1 at least
_SHARPEST = 2**8  # times what records and noise can pull: a sharper prior leaves nothing, either
_UPWARD = 1 + 2.0**-40  # pays for the rounding of floats


class ModePlan(NamedTuple):
    """Public choices of one release.

    Attributes
    ----------
    grid : int
        Steps from 0 to 1 of coordinates and target.
    limit : int
        The h, in steps of the grid.
    ridge : array of shape (width + 1,)
        The diagonal of the regulariser.
    pull : SupNorm
        The noise of the pulls, in units of 1/grid².
    error : float
        The norm that the gradient may have at the end of the search, its rounding included.
    step : float
        The s: what is released is a multiple of it, or of a part of it.
    jitter : SupNorm
        The noise of what is released, in steps.
    """

    grid: int
    limit: int
    ridge: FloatArray
    pull: SupNorm
    error: float
    step: float
    jitter: SupNorm

    @property
    def noise(self) -> float:
        """Return the variance of the noise of a pull."""
        return float(self.pull.variances[0]) / self.grid**4


def plan_mode(
    design: Design, n: int, precisions: FloatArray, epsilon: Fraction, unit: PrivacyUnit
) -> ModePlan:
    """Choose noise and regulariser; ``precisions`` of the prior are added to the latter."""
    size, volume = len(precisions), epsilon * _VOLUME
    search = min(epsilon * _SEARCH, _MOST_SEARCH)
    pulled = epsilon - volume - search
    grid = largest_grid(32 * n, 100 * size**2 / float(pulled / unit.max_records))
    limit = int(LIMIT * grid)
    if not limit:
        raise ValueError("epsilon is too small for exact noise; use a larger one.")
    squares = len(design.features) + design.intercept
    pull = SupNorm.of((1,) * size, unit.moves * limit * grid, pulled)
    noise = math.sqrt(float(pull.variances[0])) / grid**2
    least = max(least_ridge(squares, volume, unit), n / _RECORDS, noise / 2)
    ridge = np.minimum(precisions, _SHARPEST * (n + noise)) + least
    steepest = n * squares + float(ridge.max())  # no second derivative is larger
    error = 4 * math.sqrt(size) * (steepest * LATTICE + n * rounding(grid) + grid**-2)
    step = 2.0 ** max(math.ceil(math.log2(error / float(ridge.min()))), _FINEST)
    return ModePlan(
        grid,
        limit,
        ridge,
        pull,
        error,
        step,
        SupNorm.of((1,) * size, 2, search),
    )


def least_ridge(squares: int, epsilon: Fraction, unit: PrivacyUnit) -> float:
    r"""Return the :math:`\lambda` with :math:`k\ln(1 + R^2/\lambda) = \varepsilon`.

    :math:`R^2` is the square of the largest norm of a record: one for every number, sign, column
    of levels and the constant.
    """
    return squares / math.expm1(min(float(epsilon) / unit.max_records, 700.0)) * _UPWARD


def perturbed_mode(
    statistics: Moments, window: Window, windows: Windows, plan: ModePlan, source: RandomSource
) -> FloatArray:
    """Release the perturbed mode; without an intercept the constant is 0."""
    first = 0 if statistics.design.intercept else 1
    nothing = np.zeros(len(plan.ridge), np.int64)
    noise = np.asarray(add([nothing], plan.pull, source)[0], np.float64) / plan.grid**2
    exact = statistics.gram(plan.grid, window, windows)[first:-1, first:] / plan.grid**2
    released = np.zeros(first + len(nothing))

    def pulls(w: FloatArray) -> Pulls:
        released[first:] = w
        found = statistics.pulls(plan.grid, window, windows, released, plan.limit)
        return Pulls(found.pull[first:], found.curvature[first:, first:], found.rows)

    with blas_for(len(nothing)):
        start = _solved(exact[:, :-1] + np.diag(plan.ridge), exact[:, -1] + noise)
        mode = _minimum(pulls, start, noise, plan)
    steps = np.rint(mode / plan.step).astype(np.int64)
    released[first:] = add([steps], plan.jitter, source)[0] * plan.step
    return released


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve positive definite equations; scipy's solve could warn of what the records are."""
    return np.asarray(cho_solve(cho_factor(matrix, check_finite=False), right, check_finite=False))


class _Point(NamedTuple):
    """Coefficients, the negative gradient there, the second derivatives, and a bound on the error.

    The last is the norm of the gradient with all that is not exact about it.
    """

    w: FloatArray
    descent: FloatArray
    curvature: FloatArray
    error: float


def _minimum(
    pulls: Callable[[FloatArray], Pulls], start: FloatArray, noise: FloatArray, plan: ModePlan
) -> FloatArray:
    """Search the minimum by Newton's steps until the gradient is small enough.

    A step that leads to the far side of the valley is shortened, so that the objective falls with
    every step; it is a parabola almost everywhere, so that few are needed.
    """

    def point(w: FloatArray) -> _Point:
        w = on_lattice(w)
        found = pulls(w)
        if not np.abs(found.pull).max() <= found.rows * plan.limit / plan.grid + 1:
            raise FloatingPointError("Records that are not finite have no mode.")
        descent = found.pull + noise - plan.ridge * w
        inexact = math.sqrt(len(w)) * (found.rows * rounding(plan.grid) + plan.grid**-2)
        curvature = found.curvature + np.diag(plan.ridge)
        return _Point(w, descent, curvature, float(np.linalg.norm(descent)) + inexact)

    here = point(start)
    while here.error > plan.error:
        step = _solved(here.curvature, here.descent)
        near, far, part = 0.0, 1.0, 1.0
        there = point(here.w + step)
        while there.error > plan.error and far - near > _NARROW:
            left, before = float(there.descent @ step), float(here.descent @ step)
            if left >= 0 and (part == 1.0 or left <= before / 2):
                break
            near, far = (part, far) if left > 0 else (near, part)
            part = (near + far) / 2
            there = point(here.w + part * step)
        here = there
    return here.w
