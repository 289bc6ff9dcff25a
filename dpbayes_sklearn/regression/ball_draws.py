r"""Draws of coefficients from a Gaussian restricted to a ball: the paper's truncated prior.

**Draws from a Gaussian restricted to a ball, by rejection: no Markov chain, no cap, no bias.**

.. math:: p(w) \propto e^{-\frac12 w^\top A w + b^\top w}, \qquad \|w\| \le B

**Sampler.** In the eigenbasis of A the entries interact through the ball alone. Integrate one of
them out: given the others, :math:`w_k` is a Gaussian restricted to :math:`|w_k| \le \sqrt u`,
:math:`u = B^2 - \sum_{i \ne k} w_i^2`, and the others have the density

.. math:: \prod_{i \ne k} e^{-\frac12 a_i w_i^2 + b_i w_i} \; Z(u), \qquad
          Z(u) = \int_{-\sqrt u}^{\sqrt u} e^{-\frac12 a_k x^2 + b_k x} dx .

:math:`\log Z` is concave: the set :math:`x^2 \le u` is convex and the integrand log-concave, so
its integral over x is log-concave in u (Prékopa). So it lies below its tangent at any
:math:`u_0`, of slope :math:`\lambda`, and :math:`Z(u) \le Z(u_0) e^{\lambda(u - u_0)}`. Hence:
propose independent :math:`w_i \sim N(b_i/(a_i+2\lambda), 1/(a_i+2\lambda))`, accept with
probability :math:`Z(u)/Z(u_0) \cdot e^{-\lambda(u-u_0)}` (0 if :math:`u \le 0`), then draw
:math:`w_k`. The tangent is taken where the expected u equals :math:`u_0`. ∎

If the mean is far outside, the draws lie in a very thin layer below the surface. Proposing all
entries as Gaussians would almost never hit it; here :math:`w_k` finds it by itself.

**What is assumed.** Normals come from 53-bit uniforms through the inverse distribution function
and the arithmetic is that of doubles: the law is exact for real numbers only. The result is
rounded to a public lattice, so that its low bits carry nothing, but the probabilities of
lattice points are those of the real law up to rounding errors. Guarantees that rest on it say so.

**Draws of regression coefficients in a ball, for the sampler.**

The ball has a public centre c, the perturbed mode that half of the budget is spent on
(:mod:`~dpbayes_sklearn.regression.mode`), and a radius B, what is nominally known of
the error of c. With the residual :math:`r = t - c^\top x`, clipped to h, and :math:`v = w - c` the
score of a record is

.. math:: \kappa\left(r\,v^\top x - \tfrac12 (v^\top x)^2\right), \qquad \|v\| \le B

which is that of the Gaussian likelihood but for what does not depend on v. Records have a norm of
at most R (one for every number, sign, column of levels and the constant), so
:math:`|v^\top x| \le BR`, and over the ball the score of a record has a range of at most
:math:`\kappa\,a(h, BR)`,

.. math:: a(h, b) = 2hb \text{ if } b \le h, \text{ else } \tfrac12(h + b)^2 .

A record that comes or goes changes the exponent of every w by its score, and the normalisation by
a number within its range: so a draw loses :math:`\kappa\,a`, twice that if a record is replaced,
and k times as much for k records of a person.

With ``coef_bound`` there is no mode: c is 0, h is 1 (the target itself), and B is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, frexp, isqrt, ldexp, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtri, ndtri_exp

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise.integers import rounds
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.budget import Budget, Exact
from dpbayes_sklearn.privacy.composition import zcdp_rho
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.mode import (
    LIMIT,
    CoefficientDraws,
    DrawLaw,
    Units,
    check_mode,
    even_squares,
    posterior_of_draws,
    read_units,
    released_mode,
    shares_of,
    usual_variances,
)
from dpbayes_sklearn.regression.moments import Moments, largest_grid
from dpbayes_sklearn.regression.posterior import GaussianPrior
from dpbayes_sklearn.regression.record_sums import on_lattice
from dpbayes_sklearn.regression.release import scaled_by_residuals
from dpbayes_sklearn.regression.step_noise import grid_for

__all__ = [
    "DRAW_LATTICE",
    "REAL_ARITHMETIC",
    "DrawPlan",
    "ball_gaussian",
    "check_draws",
    "draws_cost",
    "in_a_ball",
    "loss_of_a_draw",
    "release_draws",
    "score_range",
]


DRAW_LATTICE = 2.0**-20
"""Released entries are whole multiples of this fraction of the radius."""

_BATCH = 1024
_LEAST_EIGENVALUE = 1e-12  # Smaller eigenvalues, in units of 1/B², change the density by no more.


def ball_gaussian(
    precision: FloatArray, linear: FloatArray, radius: float, n_draws: int, source: RandomSource
) -> FloatArray:
    """Draw vectors with density proportional to exp(-w'Aw/2 + b'w) in a ball.

    Parameters
    ----------
    precision : array of shape (d, d)
        A, symmetric and positive semi-definite.
    linear : array of shape (d,)
        The b; the Gaussian's mean is A⁻¹b where that exists.
    radius : float
        The B.
    n_draws : int
        Number of independent draws.
    source : callable
        Random bytes, from `random_source`.

    Returns
    -------
    array of shape (n_draws, d)
        Draws rounded to multiples of ``LATTICE * radius``.

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> draws = ball_gaussian(np.eye(3), np.array([50.0, 0, 0]), 2.0, 5, random_source(0))
    >>> bool((np.linalg.norm(draws, axis=1) <= 2.00001).all())
    True
    """
    scaled, axes = np.linalg.eigh(precision * radius**2)  # from here the ball has radius 1
    scaled = np.maximum(scaled, _LEAST_EIGENVALUE)
    drawn, _ = _unit_ball(scaled, axes.T @ linear * radius, n_draws, source)
    steps: FloatArray = np.rint(drawn @ axes.T / DRAW_LATTICE)
    return steps * (DRAW_LATTICE * radius)


class _Entry(NamedTuple):
    """The entry that is integrated out: a Gaussian of precision ``a`` and mean ``mu >= 0``."""

    a: float
    mu: float

    def log_rest(self, c: FloatArray | float) -> FloatArray:
        """Log of Z(c²) less max(0, mu - c)² a/2, its largest exponent; stable everywhere."""
        c = np.asarray(c, np.float64)
        s = np.sqrt(self.a)
        gap = np.maximum(self.mu - c, 0.0) * s  # from the end of the interval to the mean
        outside = np.sqrt(np.pi / 2) * (
            erfcx(gap / np.sqrt(2))
            - np.exp(-2 * c * s * (gap + c * s)) * erfcx((gap + 2 * c * s) / np.sqrt(2))
        )
        high, low = (c - self.mu) * s, (-c - self.mu) * s
        inside = (
            np.sqrt(2 * np.pi) * -np.expm1(log_ndtr(low) - log_ndtr(high)) * np.exp(log_ndtr(high))
        )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(self.mu > c, outside, inside) / s))

    def slope(self, c: float) -> float:
        """Return d log Z/du at u = c²: (e(c) + e(-c)) / 2c Z."""
        exponent = 0.5 * self.a * max(self.mu - c, 0.0) ** 2
        ends = [-0.5 * self.a * (x - self.mu) ** 2 + exponent for x in (c, -c)]
        return float(np.exp(ends - self.log_rest(c)).sum() / (2 * c))

    def log_ratio(self, c: FloatArray, c0: float) -> FloatArray:
        """Log of Z(c²)/Z(c0²), the difference of large exponents taken as a product."""
        near, far = np.minimum(c, self.mu), min(c0, self.mu)
        exponent = 0.5 * self.a * (near - far) * (2 * self.mu - near - far)
        return np.asarray(exponent + self.log_rest(c) - self.log_rest(c0))

    def draw(self, c: float, u: float) -> float:
        """Return the u-quantile of the entry restricted to [-c, c]."""
        s = np.sqrt(self.a)
        low, high = log_ndtr((-c - self.mu) * s), log_ndtr((c - self.mu) * s)
        log_p = high + np.log(u + (1 - u) * np.exp(low - high))
        return float(np.clip(self.mu + ndtri_exp(log_p) / s, -c, c))


def _unit_ball(
    a: FloatArray, b: FloatArray, n_draws: int, source: RandomSource
) -> tuple[FloatArray, float]:
    """Draw in the eigenbasis and the ball of radius 1; return the draws and the acceptance."""
    k = int(np.argmax(np.abs(b) / (a + np.linalg.norm(b))))
    sign = -1.0 if b[k] < 0 else 1.0
    entry, rest = _Entry(float(a[k]), abs(float(b[k] / a[k]))), np.arange(len(a)) != k
    u0, tilt = _tangent(entry, a[rest], b[rest])
    spread = 1 / np.sqrt(a[rest] + 2 * tilt)
    centre = b[rest] * spread**2
    draws, found, taken, tried = np.empty((n_draws, len(a))), 0, 0, 0
    patience = rounds()  # renewed by every acceptance, so that any number of draws can be made
    while found < n_draws and next(patience):
        others = centre + spread * _normals((_BATCH, len(a) - 1), source)
        u = 1 - (others**2).sum(axis=1)
        c, c0 = np.sqrt(np.maximum(u, np.finfo(float).tiny)), np.sqrt(u0)
        log_accept = entry.log_ratio(c, c0) - tilt * (u - u0)
        accepted = np.flatnonzero((u > 0) & (np.log(_uniforms(_BATCH, source)) <= log_accept))
        for i in accepted[: n_draws - found]:
            draws[found, rest] = others[i]
            draws[found, k] = sign * entry.draw(float(c[i]), float(_uniforms(1, source)[0]))
            found += 1
        taken, tried = taken + len(accepted), tried + _BATCH
        patience = rounds() if len(accepted) else patience
    return draws, taken / max(tried, 1)


def _tangent(entry: _Entry, a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """Return (u0, slope) with u0 = 1 - E[sum of w_i²] under the proposal; the root is unique."""

    def excess(log_u: float) -> float:
        p = a + 2 * entry.slope(float(np.exp(log_u / 2)))
        return float(np.exp(log_u) + ((b / p) ** 2 + 1 / p).sum() - 1)

    lowest = -700.0
    log_u = brentq(excess, lowest, 0.0, xtol=1e-10) if excess(0.0) > 0 > excess(lowest) else 0.0
    return float(np.exp(log_u)), entry.slope(float(np.exp(log_u / 2)))


def _uniforms(size: int, source: RandomSource) -> FloatArray:
    """Midpoints of 2**53 equal parts of (0, 1)."""
    words = np.frombuffer(source(8 * size), dtype=np.uint64) >> np.uint64(11)
    return (words.astype(np.float64) + 0.5) * 2.0**-53


def _normals(shape: tuple[int, int], source: RandomSource) -> FloatArray:
    normals: FloatArray = ndtri(_uniforms(shape[0] * shape[1], source)).reshape(shape)
    return normals


REAL_ARITHMETIC = (
    "the Gaussian draws behave as draws of real numbers (they are made in 64-bit floats and "
    "rounded to a public lattice)"
)
_BOUND = 0.375  # norm of coefficients that explain a target in the units of the windows
_MOST_COLUMNS = 500  # coordinates of a mode, which the search then finds
_MODE = Fraction(1, 2)  # of the budget, for where draws are centred
_SPARE = 1 - 2.0**-30  # pays for the rounding of floats
_MOST_EVIDENCE = 10**13  # records times epsilon, from which floats cannot hold the density


class Place(NamedTuple):
    """The ball in which coefficients are drawn.

    Attributes
    ----------
    centre : array of shape (width + 1,)
    radius : float
    limit : Fraction
        What residuals at the centre are clipped to.
    expected : array of shape (width + 1,)
        Variance of the coefficients around the centre.
    """

    centre: FloatArray
    radius: float
    limit: Fraction
    expected: FloatArray


class DrawPlan(NamedTuple):
    """How to draw: the kappa of one draw, the power of the prior, and the number of draws."""

    weight: float
    sharpness: float
    n_draws: int


def release_draws(
    statistics: Moments,
    prior: GaussianPrior,
    budget: Budget,
    source: RandomSource,
    plan: Callable[[float, float], DrawPlan],
    n_draws: int = 1,
) -> CoefficientDraws:
    """Read the units, draw as ``plan(affordable kappa, target's variance)`` says, calibrate."""
    prior = in_a_ball(prior, budget.unit)
    shares = shares_of(statistics, prior, budget)
    units = read_units(statistics, prior, shares, source)
    share = _mode_share(prior, shares.model)
    place = _place(statistics, prior, units, share, source)
    loss = float(loss_of_a_draw(shares.model - share, budget.delta, n_draws))
    worst = score_range(float(place.limit), place.radius * _norm(prior.design))
    drawn = draw_coefficients(
        statistics,
        prior,
        units,
        place,
        plan(loss / (budget.unit.n_changed * worst), units.variance),
        source,
    )
    return scaled_by_residuals(drawn, statistics, shares, source)


def in_a_ball(prior: GaussianPrior, unit: PrivacyUnit) -> GaussianPrior:
    """Return the prior with a bound of the coefficients where no mode can be sought.

    The search for a mode ends for certain only if n bounds the number of records and coefficients
    are few: a released n may be far too small, and thousands of coefficients leave its range.
    """
    if prior.coef_bound is None and (unit.size_is_secret or prior.design.width > _MOST_COLUMNS):
        return replace(prior, coef_bound=_BOUND)
    return prior


def _mode_share(prior: GaussianPrior, epsilon: Fraction) -> Fraction:
    return epsilon * _MODE if prior.coef_bound is None else Fraction(0)


def _place(
    statistics: Moments, prior: GaussianPrior, units: Units, share: Fraction, source: RandomSource
) -> Place:
    """Return the declared ball, or one around a released mode, as wide as its nominal error."""
    design = prior.design
    if prior.coef_bound is not None:
        usual = usual_variances(design, units.variance)
        return Place(np.zeros(design.width + 1), prior.coef_bound, Fraction(1), usual)
    mode = released_mode(statistics, prior, units, share, source)
    centre, error = mode.law.belief(mode.coefficients[None], prior.inference)
    if not design.intercept:
        centre[0] = error[0] = 0.0
    spread = units.variance / (statistics.n * even_squares(design))
    radius = _few_bits(sqrt(float((error + spread).sum())))
    return Place(on_lattice(centre), radius, LIMIT, error)


def _few_bits(radius: float) -> float:
    """Round up to eight bits, so that multiples of a power of two of it are exact.

    >>> _few_bits(0.3)
    0.30078125
    """
    part, power = frexp(radius)
    return ldexp(ceil(256 * part), power - 8)


def score_range(limit: float, reach: float) -> float:
    r"""Return the range of :math:`ru - u^2/2` over :math:`|r| \le` limit, :math:`|u| \le` reach.

    >>> score_range(1.0, 0.5), score_range(1.0, 1.0), score_range(1.0, 3.0)
    (1.0, 2.0, 8.0)
    """
    return 2 * limit * reach if reach <= limit else (limit + reach) ** 2 / 2


def _norm(design: Design) -> float:
    """Return R, the largest norm of a record."""
    return sqrt(len(design.features) + design.intercept)


def loss_of_a_draw(epsilon: Fraction, delta: Exact, n_draws: int) -> Fraction:
    r"""Return the range of the log ratio that each of N draws may have.

    :math:`\varepsilon/N`, or with a delta :math:`\sqrt{8\rho/N}` if that is more: a draw whose log
    ratio has a range of w is :math:`w^2/8`-zCDP (``_split_release.release_rho``).

    >>> float(loss_of_a_draw(Fraction(1), Fraction(1, 10**6), 50))
    0.062...
    """
    squared = 8 * Fraction(zcdp_rho(epsilon, delta)) / n_draws
    root = Fraction(isqrt(int(squared * 10**40)), 10**20)
    return max(epsilon / n_draws, root)


def draws_cost(
    statistics: Moments, prior: GaussianPrior, budget: Budget, n_draws: int
) -> tuple[Fraction, bool]:
    """Return the zCDP of all steps, and whether the draws need the budget's delta."""
    prior = in_a_ball(prior, budget.unit)
    shares = shares_of(statistics, prior, budget)
    mode = _mode_share(prior, shares.model)
    loss = loss_of_a_draw(shares.model - mode, budget.delta, n_draws)
    others = (shares.target, shares.columns, shares.residuals, mode)
    rho = n_draws * loss**2 / 8 + sum(share**2 / 2 for share in others)
    return rho, n_draws * loss > shares.model - mode


def check_draws(statistics: Moments, prior: GaussianPrior, budget: Budget) -> None:
    """Refuse, from public facts, budgets at which floats could not hold the density."""
    if statistics.n * budget.epsilon > _MOST_EVIDENCE:
        raise ValueError(
            f"epsilon={float(budget.epsilon):g} is too large for draws of coefficients from "
            f"{statistics.n} records; use float('inf') for exact Bayes without privacy."
        )
    epsilon = Fraction(budget.epsilon) / budget.unit.max_records
    grid_for(statistics.design, statistics.n, epsilon)
    prior = in_a_ball(prior, budget.unit)
    share = _mode_share(prior, shares_of(statistics, prior, budget).model)
    if share:
        check_mode(statistics, share, budget)


def draw_coefficients(
    statistics: Moments,
    prior: GaussianPrior,
    units: Units,
    place: Place,
    plan: DrawPlan,
    source: RandomSource,
) -> CoefficientDraws:
    """Draw from prior^sharpness * exp(kappa * score) in the ball."""
    grid = largest_grid(32 * statistics.n, 1.0)
    gram = statistics.gram(grid, units.window, units.windows)[:-1, :-1] / grid**2
    limit = int(place.limit * grid)
    pull = statistics.pulls(grid, units.window, units.windows, place.centre, limit).pull
    weight = plan.weight * _SPARE
    first = 0 if prior.design.intercept else 1
    precisions = plan.sharpness * prior.precisions(units.window, units.windows)
    linear = weight * pull - precisions * place.centre
    precisions[1:] += prior.design.width / place.radius**2  # the ball, as a prior
    precision = np.diag(precisions) + weight * gram
    draws = np.repeat(place.centre[None], plan.n_draws, axis=0)
    draws[:, first:] += ball_gaussian(
        precision[first:, first:], linear[first:], place.radius, plan.n_draws, source
    )
    seen = weight * statistics.n * even_squares(prior.design)
    widest = place.radius**2 / (len(seen) + 2)  # the variance of a uniform draw from the ball
    spread = np.minimum(1 / (precisions + seen), widest)
    law = DrawLaw(place.centre, seen / (precisions + seen), spread, place.expected)
    return posterior_of_draws(draws, law, units, prior)
