r"""Draws from a Gaussian restricted to a ball, by rejection: no Markov chain, no cap, no bias.

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtri, ndtri_exp

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise.integers import rounds
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["DRAW_LATTICE", "ball_gaussian"]

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
