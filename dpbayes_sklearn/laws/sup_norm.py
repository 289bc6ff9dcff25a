r"""Noise that decays with its largest entry: the K-norm mechanism of the sup norm.

.. math:: P(z) \propto e^{-\|z\|/b}, \qquad \|z\| = \max_i |z_i|/c_i,
    \qquad z_i \in \{0, \pm 1/g, \pm 2/g, \dots\}

One record changes number i by at most :math:`c_i\Delta`, so :math:`b = \Delta/\varepsilon` is
enough for any number m of numbers. The noise is uniform in a box of half sides :math:`c_iR`, where
R has the Gamma distribution of order m + 1 and scale b: number i has variance
:math:`c_i^2 b^2 (m+1)(m+2)/3` and density

.. math:: p(x) \propto \int_{|x|/c_i}^\infty r^{m-1} e^{-r/b} dr \propto Q(m, |x|/c_ib)

with the regularised upper incomplete Gamma function Q. On the lattice 1/g the norm is rounded up
to a multiple of 1/g; g is a power of two, so that floats are exact, and so large that the sampler
accepts most of its proposals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc, gammainccinv, gammaln

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws.base import NoiseLaw
from dpbayes_sklearn.laws.scales import check_grid, lattice_scale

__all__ = ["SupNorm", "SupNormMarginal", "log_upper_gamma"]

_SAFE = 1e-250  # above, the logarithm of Q itself is accurate
_LEVELS = 40  # of the continued fraction, which is only used far out
_EDGE = 4.5  # standard deviations of the radius over which a plateau ends


@dataclass(frozen=True)
class SupNorm(NoiseLaw):
    """Joint noise of all numbers, P(z) proportional to exp(-max_i abs(z_i)/c_i / scale).

    Attributes
    ----------
    scale : Fraction
        The b, in units of the numbers.
    sides : tuple of int
        The c_i, one for each number.
    grid : int
        The g: a power of two. Numbers and noises are multiples of 1/g.

    Examples
    --------
    >>> law = SupNorm.of((1,) * 9, sensitivity=2, epsilon=Fraction(1))
    >>> law.scale, law.grid, round(law.variance(), 1)
    (Fraction(2, 1), 8, 146.7)
    >>> law.privacy_loss(np.array([2, -2, 0, 0, 0, 0, 0, 1, 2]))
    Fraction(1, 1)
    """

    scale: Fraction
    sides: tuple[int, ...]
    grid: int = 1

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.sides or min(self.sides) < 1 or self.scale <= 0:
            raise ValueError("Joint noise needs a sum to be added to, and a positive scale.")
        check_grid(self.grid)

    @classmethod
    def of(cls, sides: tuple[int, ...], sensitivity: int, epsilon: Fraction) -> SupNorm:
        """Return the law for numbers that change by at most ``sides`` times ``sensitivity``."""
        scale, grid = lattice_scale(len(sides), sensitivity, epsilon)
        return cls(scale, sides, grid)

    @property
    def sizes(self) -> tuple[int, ...]:
        """All numbers are one array."""
        return (len(self.sides),)

    @property
    def steps(self) -> Fraction:
        """Scale in steps of the grid."""
        return self.scale * self.grid

    @property
    def acceptance(self) -> float:
        """Share of accepted radii, bounded from below: about exp(-m/2b), near 1 on a fine grid."""
        return math.exp(-len(self.sides) / (2 * float(self.steps)))

    def marginal(self, array: int = 0) -> SupNormMarginal:
        """Return the distribution of the noise in the first number."""
        return SupNormMarginal(len(self.sides), self.sides[0] * float(self.scale))

    @cached_property
    def variances(self) -> FloatArray:
        """Variance c² b² (m+1)(m+2)/3 of every number; the lattice adds less than c b m."""
        m = len(self.sides)
        sides = np.array(self.sides, np.float64)
        return np.asarray(sides**2 * float(self.scale) ** 2 * (m + 1) * (m + 2) / 3)

    def error_bound(self, delta: float) -> float:
        r"""Return :math:`\max_i c_i (b\,\Gamma^{-1}_m(1 - \delta e^{-1/gb}) + \frac{1}{2g})`.

        The norm of the continuous noise has the Gamma distribution of order m and scale b. Spread
        evenly over a cube of side 1/g, a point of the lattice shifts by at most 1/2g, so its weight
        changes by at most :math:`e^{1/2gb}`, and so does the sum of all weights.
        """
        within = delta * math.exp(-1 / self.steps)
        radius = float(self.scale) * float(gammainccinv(len(self.sides), within))
        return max(self.sides) * (radius + 0.5 / self.grid)

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the norm of the shift over the scale; norms are rounded up to the lattice."""
        steps = -(-np.abs(shift) * self.grid // np.array(self.sides))
        return int(steps.max(initial=0)) / self.steps


@dataclass(frozen=True)
class SupNormMarginal:
    """Noise of one of m numbers: a plateau with soft edges, Q(m, abs(x)/scale).

    Examples
    --------
    >>> law = SupNormMarginal(order=33, scale=2.0)
    >>> law.log_weight(np.array([0.0, 60.0, -200.0])).round(2).tolist()
    [0.0, -0.38, -33.81]
    """

    order: int
    scale: float

    @property
    def variance(self) -> float:
        """Variance b² (m+1)(m+2)/3."""
        return self.scale**2 * (self.order + 1) * (self.order + 2) / 3

    @property
    def sharpness(self) -> float:
        """Width of the plateau, or that of its edges if it is less."""
        edge = _EDGE * self.scale * math.sqrt(self.order)
        return min(math.sqrt(self.variance / 2.0), edge)

    @property
    def steepest(self) -> float:
        """The s at which E[exp(s Z)] becomes infinite, 1/b."""
        return 1.0 / self.scale

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log of Q(m, abs(x)/b)."""
        return log_upper_gamma(self.order, np.abs(x) / self.scale)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Bound E[exp(s Z)] by E[exp(s R)] = (1 - s b)^-(m+1), R the radius."""
        return -(self.order + 1) * np.log1p(-s * self.scale)

    def half_width(self, terms: int, nats: float) -> float:
        """Bound on the sum of ``terms`` of them, dependent or not: all stay within their radius."""
        if np.isinf(nats):
            return np.inf
        return terms * self.scale * float(gammainccinv(self.order + 1.0, np.exp(-nats) / terms))


def log_upper_gamma(order: float, x: npt.ArrayLike) -> FloatArray:
    r"""Log of Q(order, x), also where Q is too small for a float.

    There :math:`\Gamma(m, x) = x^m e^{-x} / (x + 1 - m - \frac{1 - m}{x + 3 - m - \dots})`.

    >>> log_upper_gamma(1.0, [0.5, 5000.0]).tolist()
    [-0.5, -5000.0]
    """
    x = np.asarray(x, dtype=float)
    direct = np.asarray(gammaincc(order, x))
    log_q = np.array(np.log(np.maximum(direct, _SAFE)))
    far = direct < _SAFE
    if far.any():
        log_q[far] = _far_out(order, x[far])
    return log_q


def _far_out(order: float, x: FloatArray) -> FloatArray:
    fraction = x + 2.0 * _LEVELS + 1.0 - order
    for k in range(_LEVELS, 0, -1):
        fraction = x + 2.0 * k - 1.0 - order - k * (k - order) / fraction
    log_q: FloatArray = order * np.log(x) - x - gammaln(order) - np.log(fraction)
    return log_q
