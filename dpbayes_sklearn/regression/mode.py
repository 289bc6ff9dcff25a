r"""The mode of a robust posterior, perturbed before it is sought: one release of d coefficients.

The records give coefficients w the loss :math:`\sum \rho(t - w^\top x)` with Huber's
:math:`\rho`, of slope at most h (:mod:`dpbayes_sklearn.regression.record_sums`). Released is the
minimum of

.. math:: J(w) = \sum_i \rho(t_i - w^\top x_i) + \tfrac12 w^\top \Lambda w - u^\top w

with noise u (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012). It pays for d
numbers, where a release of moments pays for all products of two; neither coefficients nor
predictions need a bound.

**Claim.** If u has density :math:`\propto e^{-\|u\|/b}` in the norm whose unit ball is the hull of
all :math:`\pm x`, then w is private with :math:`\varepsilon_1 = mh/b + k \ln(1 + q)`, where m
records come or go, k of them at most at a time (a replaced record goes, and another comes: m = 2,
k = 1), and :math:`q = \max_x x^\top\Lambda^{-1}x`. Without levels this is the sup norm; with
levels, and for Gaussian noise, which needs a delta, see :mod:`dpbayes_sklearn.noise.gradient`.
*Proof.* The minimum solves :math:`u = F(w) = \Lambda w - \sum_i x_i\psi(t_i - w^\top x_i)`. F is
strongly monotone and Lipschitz, so it is one to one, and w has the density
:math:`p(F(w))\,|\det DF(w)|` with :math:`DF = \Lambda + \sum_{|r_i|<h} x_ix_i^\top` almost
everywhere (with levels, w lies where :math:`\Lambda w` is in the span of all x, as u is). A record
has :math:`|\psi| \le h`, so F(w) of neighbours differ by at most mh in the norm: the first term.
Both :math:`DF` are :math:`A + \sum xx^\top` over at
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

**A belief about coefficients that is known by a few released draws, or by a released mode.**

The moments are not released, so the error of a draw is not known from the release. *Nominally*,
for columns that fill their domains evenly, a draw around a public centre c is

.. math:: \tilde w_j \approx c_j + g_j (w_j - c_j) + N(0, v_j)

with a gain g below one, because a prior holds the draw back, and a variance v. ``plug_in`` takes
the draws as they are; ``noise_aware`` does Bayes on them with a prior around c, so that a draw
which is mostly noise counts for little.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.data.records import blas_for
from dpbayes_sklearn.noise import Noise, NoiseLaw, SupNorm
from dpbayes_sklearn.noise.gradient import (
    BlockShape,
    GradientNoise,
    gaussian_noise,
    in_hull,
    least_gradient_noise,
    search_delta,
)
from dpbayes_sklearn.privacy.budget import Budget, Exact, PrivacyUnit
from dpbayes_sklearn.regression.design import Design, Window, Windows
from dpbayes_sklearn.regression.equations import EXPLAINED, Belief, FirstStage
from dpbayes_sklearn.regression.location import Located, Location, located
from dpbayes_sklearn.regression.moments import Moments, largest_grid
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.regression.record_sums import (
    COEFFICIENT_LATTICE,
    Baseline,
    LossDerivatives,
    on_lattice,
    rounding,
)
from dpbayes_sklearn.regression.step_noise import Shares, widening

LIMIT = Fraction(1, 2)
"""The h: residuals are clipped to half of the target's window."""

# Parts of the budget for the determinant and for the noise that hides where the search ends. The
# rest is for the gradient.
_VOLUME, _SEARCH = Fraction(1, 8), Fraction(1, 64)
# From this budget on the noise of the search is far below any other error.
_MOST_SEARCH = Fraction(64)
_NUMBER = Fraction(4)  # Weight of a number: its mean square in a window is about a quarter.
_FINEST = -30  # The finest lattice of what is released is two to this power.
_NARROW = 2.0**-20  # Parts of a step smaller than this are not distinguished.
_RECORDS_PER_RIDGE = 2**10  # The ridge is at least n / 1024.
# Cap on the prior precision, in units of n + noise. Beyond it the release is the prior anyway.
_MOST_PRIOR_PRECISION = 2**8
MOST_COLUMNS = 500
"""Coefficients that a mode may have at most."""

_LEAST_BELOW = 0.1  # The share of residuals below the limit is taken to be at least this.
_BEYOND_SD = 0.15  # Prior deviation of what a residual beyond the limit adds, in its spread.
_UPWARD = 1 + 2.0**-40  # This factor covers the rounding of floats.


class RobustModePlan(NamedTuple):
    """Public choices of one release."""

    design: Design
    grid: int  # Steps from 0 to 1 of coordinates and target.
    limit: int  # The h, in steps of the grid.
    ridge: FloatArray  # (width + 1,): the diagonal of the regulariser.
    gradient_noise: NoiseLaw  # The noise of the gradient, in steps.
    lattice: int  # Steps of that noise from 0 to 1.
    noise: FloatArray  # (width + 1,): its variance in every entry of the gradient.
    # Norm of all that is not exact about the noise: its place in a cell, and floats.
    inexact: float
    # The norm that the gradient may have at the end of the search, its rounding included.
    error: float
    step: float  # The s: what is released is a multiple of it, or of a part of it.
    jitter: SupNorm  # The noise of what is released, in steps.

    @property
    def needs_delta(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.gradient_noise.independent

    def perturbation(self, *drawn: AnyArray) -> FloatArray:
        """Return noise of the gradient: of the constant, if there is one, and of coordinates."""
        design = self.design
        if isinstance(self.gradient_noise, SupNorm):
            return np.asarray(drawn[0], np.float64) / self.lattice
        *rows, total = in_hull(self.gradient_noise, *drawn)
        single = design.single[np.searchsorted(design.column, np.arange(len(rows)))]
        each = [row[:1] - row[1:] if one else row for row, one in zip(rows, single, strict=True)]
        return np.concatenate([total[: int(design.intercept)], *each]) / self.lattice


def plan_mode(
    design: Design,
    n: int,
    precisions: FloatArray,
    epsilon: Fraction,
    unit: PrivacyUnit,
    delta: Exact = Fraction(0),
    signal: FloatArray | None = None,
) -> RobustModePlan:
    r"""Choose noise and regulariser; ``precisions`` of the prior are added to the latter.

    With a delta the noise is Gaussian where that has less variance. ``signal`` is the expected
    :math:`cw^2` of coefficients w in directions of curvature c. Noise of variance :math:`s^2` needs
    a ridge of :math:`s^2/cw^2`: it shrinks w by what Bayes' theorem would.
    """
    size, volume = len(precisions), epsilon * _VOLUME
    search = min(epsilon * _SEARCH, _MOST_SEARCH)
    for_gradient = epsilon - volume - search
    grid = largest_grid(32 * n, 100 * size**2 / float(for_gradient / unit.max_records))
    limit = int(LIMIT * grid)
    if not limit:
        raise ValueError("epsilon is too small for exact noise; use a larger one.")
    squares = len(design.features) + design.intercept
    gradient = _gradient_noise(design, grid, for_gradient, search_delta(delta, search), unit)
    noise = _variances(design, gradient)
    largest = math.sqrt(float(noise.max()))
    least = max(least_ridge(squares, volume, unit), n / _RECORDS_PER_RIDGE, largest / 2)
    most = _MOST_PRIOR_PRECISION * (n + largest)
    needed = np.zeros(size) if signal is None else np.minimum(noise / signal, most)
    ridge = np.minimum(precisions, most) + np.maximum(needed, least)
    steepest = n * squares + float(ridge.max())  # no second derivative is larger
    inexact = _inexact(gradient)
    rounded = steepest * COEFFICIENT_LATTICE + n * rounding(grid)
    # A cell of the grid more lets the search end with far more records than a released bound says.
    error = 4 * (math.sqrt(size) * rounded + max(inexact, math.sqrt(size) / grid**2))
    step = 2.0 ** max(math.ceil(math.log2(error / float(ridge.min()))), _FINEST)
    jitter = SupNorm.of((1,) * size, 2, search)
    law, lattice = gradient.law, gradient.lattice
    return RobustModePlan(
        design, grid, limit, ridge, law, lattice, noise, inexact, error, step, jitter
    )


def _gradient_noise(
    design: Design, grid: int, epsilon: Fraction, delta: Exact, unit: PrivacyUnit
) -> GradientNoise:
    """Return the noise of the gradient; without levels the norm of the hull is the sup norm."""
    shape = block_shape(design)
    if design.levels.any():
        return least_gradient_noise(shape, epsilon, delta, unit)
    sides = (1,) * (design.width + design.intercept)
    pure = SupNorm.of(sides, unit.n_changed * int(LIMIT * grid) * grid, epsilon)
    variance = float(pure.variances[0]) / grid**4
    total = shape.total([variance / 2] * len(shape.sizes), variance)
    with suppress(ValueError):  # without a delta, or where there is no exact noise
        other = gaussian_noise(shape, epsilon, delta, unit)
        if other.total < total:
            return other
    return GradientNoise(pure, grid**2, total, math.inf)


def block_shape(design: Design) -> BlockShape:
    """Return the blocks of a record; a number or sign is its first weight minus its second."""
    first = np.searchsorted(design.column, np.arange(len(design.features)))
    sizes = np.where(design.single, 2, design.n_values)[first].astype(int).tolist()
    numbers = design.numbers[first].tolist()
    weights = (_NUMBER if one else Fraction(k) for k, one in zip(sizes, numbers, strict=True))
    constant = design.intercept or bool(design.levels.any())
    return BlockShape(tuple(sizes), tuple(weights), LIMIT, constant=constant)


def _variances(design: Design, gradient: GradientNoise) -> FloatArray:
    """Return the variance of every entry's noise, that of the constant first if there is one.

    A number has twice the variance of a contrast of its two weights.
    """
    law, unit = gradient.law, float(gradient.lattice) ** 2
    if isinstance(law, SupNorm):
        return law.variances / unit
    blocks = len(law.sizes) - 1
    constant = law.variance(blocks)
    contrasts = np.array([law.contrast_variance(j) for j in range(blocks)])[design.column]
    k = design.n_values
    each = np.where(design.single, 2 * contrasts, (1 - 1 / k) * contrasts + constant / k**2)
    return np.concatenate([np.full(int(design.intercept), constant), each]) / unit


def _inexact(gradient: GradientNoise) -> float:
    r"""Return the norm, at most, of the way from a point of the lattice to one of its cell.

    Entries are off by half a step, the last ones of blocks by half of their size, and a linear map
    of norm :math:`\sqrt{2(1 + d)}`, d the number of blocks, makes the gradient of them. The floats
    of that map add less than a third.
    """
    if isinstance(gradient.law, SupNorm):
        return math.sqrt(gradient.law.size) / gradient.lattice
    sizes = np.array(gradient.law.sizes)
    return math.sqrt(len(sizes) * float((sizes + sizes**2).sum())) / gradient.lattice


def least_ridge(squares: int, epsilon: Fraction, unit: PrivacyUnit) -> float:
    r"""Return the :math:`\lambda` with :math:`k\ln(1 + R^2/\lambda) = \varepsilon`.

    :math:`R^2` is the square of the largest norm of a record: one for every number, sign, column
    of levels and the constant.
    """
    return squares / math.expm1(min(float(epsilon) / unit.max_records, 700.0)) * _UPWARD


def perturbed_mode(
    statistics: Moments, window: Window, windows: Windows, plan: RobustModePlan, noise: Noise
) -> FloatArray:
    """Release the perturbed mode; without an intercept the constant is 0."""
    mode = noise.minimum(RobustLoss(statistics, window, windows, plan))
    return mode if statistics.design.intercept else np.append(0.0, mode)


@dataclass(frozen=True)
class RobustLoss:
    """**Sensitive:** the objective of a mode; coordinates lie in windows."""

    statistics: Moments
    window: Window
    windows: Windows
    plan: RobustModePlan

    @property
    def gradient_noise(self) -> NoiseLaw:
        """Noise of the gradient, in steps."""
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
        """Return the mode, without a constant if there is none."""
        plan, first = self.plan, 0 if self.statistics.design.intercept else 1
        perturbation = plan.perturbation(*noise)
        gram = self.statistics.gram(plan.grid, self.window, self.windows)
        exact = gram[first:-1, first:] / plan.grid**2
        with blas_for(len(perturbation)):
            start = _solved(exact[:, :-1] + np.diag(plan.ridge), exact[:, -1] + perturbation)
            return _minimum(self._derivatives, start, perturbation, plan)

    def _derivatives(self, w: FloatArray) -> LossDerivatives:
        plan, first = self.plan, 0 if self.statistics.design.intercept else 1
        at = np.append(np.zeros(first), w)
        found = self.statistics.loss_derivatives(
            plan.grid, self.window, self.windows, at, plan.limit
        )
        return LossDerivatives(
            found.negative_gradient[first:], found.curvature[first:, first:], found.rows
        )


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
    derivatives: Callable[[FloatArray], LossDerivatives],
    start: FloatArray,
    noise: FloatArray,
    plan: RobustModePlan,
) -> FloatArray:
    """Search the minimum by Newton's steps until the gradient is small enough.

    A step that leads to the far side of the valley is shortened, so that the objective falls with
    every step; it is a parabola almost everywhere, so that few are needed.
    """

    def point(w: FloatArray) -> _Point:
        w = on_lattice(w)
        found = derivatives(w)
        if not np.abs(found.negative_gradient).max() <= found.rows * plan.limit / plan.grid + 1:
            raise FloatingPointError("Records that are not finite have no mode.")
        descent = found.negative_gradient + noise - plan.ridge * w
        inexact = math.sqrt(len(w)) * found.rows * rounding(plan.grid) + plan.inexact
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


class Units(NamedTuple):
    """Where target and columns lie, and how the target varies in its window: all released."""

    window: Window
    windows: Windows
    variance: float  # Of the target, in its window.
    # (width + 1,): mean squares of (constant, coordinates): located ones, or those of even columns.
    squares: FloatArray
    level: float = 0.0  # Variance of the released centre of the window, in its units.
    share_known: float = 1.0  # Of the records, with a target.

    @classmethod
    def of(cls, design: Design, places: Located, windows: Windows) -> Units:
        """Return the units of columns in these windows."""
        at, squares = places.target, even_squares(design)
        spread = float(np.exp(at.log_spread[0] + at.log_spread_sd[0] / 2))
        if places.numbers is not None:
            squares[1:][design.numbers] = places.numbers.squares
        variance = min((spread / places.window.half) ** 2, 1.0)
        level = float(at.error[0] / places.window.half) ** 2
        return cls(places.window, windows, variance, squares, level, places.share_known)


class DrawLaw(NamedTuple):
    """The nominal law of a draw of (constant, coefficients), by public facts."""

    centre: FloatArray  # (width + 1,): where draws are centred.
    # gain, noise: (width + 1,): the share of a distance from the centre that a draw shows, and its
    # variance.
    gain: FloatArray
    noise: FloatArray
    expected: FloatArray  # (width + 1,): variance of the coefficients around the centre.
    # (width + 1,): which coefficients count as they are drawn, since they depend on each other.
    joint: npt.NDArray[np.bool_] | bool = False

    def belief(self, draws: FloatArray, inference: str) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the coefficients, given draws."""
        mean, noise = draws.mean(axis=0), self.noise / len(draws)
        if inference != "noise_aware":
            return mean, self.noise + noise
        variance = 1 / (self.gain**2 / noise + 1 / self.expected)
        kept = np.where(self.joint, 1.0, variance * self.gain / noise)
        return self.centre + kept * (mean - self.centre), variance


@dataclass(frozen=True)
class CoefficientDraws(GaussianPosterior):
    """A belief whose draws are public, on the scale of the bounds."""

    draws: FloatArray

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` of the draws, with replacement."""
        return self.draws[rng.integers(len(self.draws), size=n)]


def posterior_of_draws(
    draws: FloatArray, law: DrawLaw, units: Units, prior: GaussianPrior, n: int
) -> CoefficientDraws:
    """Return the belief that draws leave, in units of the windows, on the scale of the bounds."""
    mean, variance = law.belief(draws, prior.inference)
    if not prior.design.intercept:
        mean[0], variance[0] = 0.0, 0.0
    moved = draws @ units.windows.to_bounds().T * units.window.half
    moved[:, 0] += units.window.centre
    belief = Belief(mean, np.diag(variance), units.variance)
    scaled = GaussianPosterior.of(belief, units.window, units.windows, prior.design)
    scaled = replace(scaled, slopes=replace(scaled.slopes, n=n))
    return CoefficientDraws(**vars(scaled), draws=moved)


def usual_variances(design: Design, units: Units) -> FloatArray:
    """Variances of (constant, coefficients) that explain a public share of the target's.

    The constant also mends the released centre.
    """
    columns = len(design.features) + design.intercept
    usual = EXPLAINED * units.variance / (columns * units.squares)
    usual[0] += units.level
    return np.asarray(usual)


def even_squares(design: Design) -> FloatArray:
    """Mean squares of (constant, coordinates) of columns that fill their domains evenly."""
    squares = np.where(design.numbers, 1 / 3, np.where(design.signs, 1.0, 1 / design.n_values))
    return np.concatenate([[1.0], squares])


class ReleasedMode(NamedTuple):
    """A released mode, how it was released, and what is nominally known about its error."""

    coefficients: FloatArray
    plan: RobustModePlan
    law: DrawLaw


def shares_of(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Shares:
    """Share the budget; residuals have a part of it unless their variance is declared."""
    numbers = int(statistics.design.numbers.sum())
    learn = prior.noise_variance is None
    return Shares.of(budget, statistics.n, numbers, mean=False, residuals=learn)


def read_units(statistics: Moments, prior: GaussianPrior, shares: Shares, noise: Noise) -> Units:
    """Release where target and columns lie; a declared variance stands for the released one."""
    places = located(statistics, shares, noise, widening(statistics.n * float(shares.per_record)))
    units = Units.of(statistics.design, places, places.windows(statistics.design))
    if prior.noise_variance is None:
        return units
    return units._replace(variance=prior.noise_variance / units.window.half**2)


def has_mode(design: Design) -> bool:
    """Tell whether the search for a mode is sure to end: thousands of coefficients leave its range.

    It needs a bound of the number of records, too: a secret one exceeds the bound that was released
    with a chance of 1e-20 (:attr:`~dpbayes_sklearn.release.Facts.n_bound`).
    """
    return design.width <= MOST_COLUMNS


def check_mode(statistics: Moments, epsilon: Fraction, budget: Budget) -> RobustModePlan:
    """Refuse, from public facts, budgets for which there is no exact noise."""
    nothing = np.zeros(statistics.design.width + statistics.design.intercept)
    unit, delta = budget.unit, budget.delta
    return plan_mode(statistics.design, statistics.n_bound, nothing, epsilon, unit, delta)


def released_mode(
    statistics: Moments,
    prior: GaussianPrior,
    units: Units,
    epsilon: Fraction,
    noise: Noise,
    delta: Exact = Fraction(0),
) -> ReleasedMode:
    """Release the perturbed mode of the posterior in the windows.

    The ridge of numbers and signs is taken back as far as their usual size needs none. That of
    levels is not: one by one it would move the mean of all predictions, which all columns of levels
    have in common with the constant.
    """
    design, first = statistics.design, 0 if statistics.design.intercept else 1
    declared = prior.precisions(units.window, units.windows)
    usual = 1 / (1 / usual_variances(design, units) + declared)
    seen = statistics.n_known * units.squares
    precisions, signal = units.variance * declared[first:], (seen * usual)[first:]
    n, unit = statistics.n_bound, statistics.unit
    plan = plan_mode(design, n, precisions, epsilon, unit, delta, signal)
    mode = perturbed_mode(statistics, units.window, units.windows, plan, noise)
    none = np.zeros(first)
    noises, even = np.append(none, plan.noise), seen + np.append(none, plan.ridge)
    joint = np.append(True, design.levels)
    law = DrawLaw(np.zeros(len(seen)), seen / even, noises / even**2, usual, joint)
    return ReleasedMode(mode, plan, law)


class PerturbedStage(NamedTuple):
    """A released mode, whose residuals are asked for next."""

    mode: ReleasedMode
    units: Units  # Those of the mode: signs are neither centred nor scaled.
    baseline: Baseline  # The mode in windows in which signs are.
    n: int
    # Variance, in the target's window, of what the mode misses of rests outside of their windows.
    clipped: float

    def told(self, residuals: Location, within: Window) -> FirstStage:
        """Return what the mode tells about the moments of its residuals.

        A residual beyond the limit counts as the limit. If a share q of them are, the products
        are those of residuals times 1 - q, and half of q standard deviations may be missing.
        """
        plan, window = self.mode.plan, self.baseline.window
        twice = self.baseline.half / window.half  # the unit of residuals, in that of the mode
        limit = plan.limit / plan.grid
        beyond = float(residuals.beyond(limit / (twice * residuals.half[0]))[0])
        unit = max(1 - beyond, _LEAST_BELOW) * within.half * twice
        missing = _BEYOND_SD * beyond * twice * float(np.exp(residuals.log_spread[0]))
        ridge = np.append(np.zeros(len(self.mode.coefficients) - len(plan.ridge)), plan.ridge)
        return FirstStage(
            self.baseline.on_bounds,
            self.units.variance * window.half**2,
            ridge * self.mode.coefficients / (self.n * unit),
            (missing**2 + self.clipped) / unit**2,
            plan.noise / (self.n * unit) ** 2,
        )


def first_stage(
    statistics: Moments, prior: GaussianPrior, epsilon: Fraction, places: Located, noise: Noise
) -> PerturbedStage:
    """Release the perturbed mode in the windows of target and numbers."""
    design, windows = statistics.design, places.windows(statistics.design)
    signs = windows.of_signs(design)
    centres, halves = windows.centres - signs.centres, windows.halves / signs.halves
    plain = replace(windows, centres=centres, halves=halves)
    units = Units.of(design, places, plain)
    mode = released_mode(statistics, prior, units, epsilon, noise)
    moved = np.linalg.solve(windows.to_bounds(), plain.to_bounds()) @ mode.coefficients
    baseline = Baseline.of(moved, places.window, windows)
    clipped = float(np.square(mode.coefficients[1:] * places.rests_outside(design)).sum())
    return PerturbedStage(mode, units, baseline, statistics.n_known, clipped)
