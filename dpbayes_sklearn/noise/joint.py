r"""Joint noise of several numbers: in the sup norm, or given that it adds to zero.

**The sup norm** (:class:`SupNorm`): the density decays with the largest entry.

.. math:: P(z) \propto e^{-\|z\|/b}, \qquad \|z\| = \max_i |z_i|/c_i,
    \qquad z_i \in \{0, \pm 1/g, \pm 2/g, \dots\}

**Loss.** One record changes number i by at most :math:`c_i\Delta`, and so the norm by at most
:math:`\Delta`: :math:`b = \Delta/\varepsilon` is enough for any number m of numbers. The noise is
uniform in a box of half sides :math:`c_iR`, where R has the Gamma distribution of order m + 1 and
scale b: number i has variance :math:`c_i^2 b^2 (m+1)(m+2)/3` and density

.. math:: p(x) \propto \int_{|x|/c_i}^\infty r^{m-1} e^{-r/b} dr \propto Q(m, |x|/c_ib)

with the regularised upper incomplete Gamma function Q. Independent Laplace noise has variance
:math:`2 (b \sum_i c_i)^2`: six times as much for many entries that can all change at once (Steinke
and Ullman, *Between Pure and Approximate Differential Privacy*, 2016). On the lattice 1/g the norm
is rounded up to a multiple of 1/g; g is a power of two, so that floats are exact, and so large that
the sampler accepts most of its proposals.

**Sampler**, in steps of the grid, with whole numbers :math:`c_i` and
:math:`\|z\| = \max_i \lceil |z_i|/c_i \rceil`. :math:`e^{-\|z\|/b} \propto \sum_{R \ge \|z\|} q^R`
with :math:`q = e^{-1/b}`: a mixture of boxes. R has weight :math:`q^R \prod_i (2c_iR + 1)`, then z
is uniform over :math:`|z_i| \le c_iR`. The sum of m + 1 geometric variables has weight proportional
to :math:`q^R \prod_{i=1}^m (R + i)`, so it is accepted with probability
:math:`\prod_i (2c_iR + 1)/(2c_i(R + i)) \le 1`: m exact coins that must all succeed. ∎

**Sum zero** (:class:`ZeroSum`): discrete Laplace noise that leaves a public total as it is.

.. math:: P(Z = z) \propto e^{-\|z\|_1 / b}, \qquad z \in \mathbb{Z}^k, \; \sum_i z_i = 0

For two cells it is (d, -d) with the two-sided geometric law :math:`P(d) \propto e^{-2|d|/b}`.

**Loss.** Replacing a record changes counts by :math:`e_i - e_j`, of L1 norm 2, so by the triangle
inequality the law of the noisy counts changes by a factor of at most :math:`e^{2/b}`.

**Sampler.** Draw k - 1 cells independently, let the last one make the sum zero, and accept with
probability :math:`e^{-|z_k|/b}`. About 0.56/sqrt(k) of the proposals are accepted, for any b.
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
from dpbayes_sklearn.noise.discrete_laplace import (
    LaplaceMarginal,
    discrete_laplace,
    discrete_laplace_variance,
    integer_allowance,
    one_sided_laplace,
)
from dpbayes_sklearn.noise.integers import (
    RandomSource,
    Words,
    bernoulli_exp,
    fill,
    geometric,
    rounds,
    uniform_below,
)
from dpbayes_sklearn.noise.law import (
    NO_NOISE,
    Marginal,
    NoiseLaw,
    check_grid,
    draw,
    lattice_scale,
    representable_scale,
)

_SAFE = 1e-250  # Above this value the logarithm of Q is accurate.
_LEVELS = 40  # The continued fraction, used far out only, has this many levels.
# The flat part of a density ends within this many standard deviations of the radius.
_FLAT_END = 4.5

_DRAWN_CELLS = 1 << 18  # This many cells are drawn at a time.
MAX_SCALE = 2**40
"""Keeps a sum of 2**15 cells far below 2**63."""
MAX_CELLS = 2**15  # A row has at most this many cells.


@dataclass(frozen=True)
class SupNorm(NoiseLaw):
    """Joint noise of all numbers, P(z) proportional to exp(-max_i abs(z_i)/c_i / scale).

    >>> law = SupNorm.of((1,) * 9, sensitivity=2, epsilon=Fraction(1))
    >>> law.scale, law.grid, round(law.variance(), 1)
    (Fraction(2, 1), 8, 146.7)
    >>> law.privacy_loss(np.array([2, -2, 0, 0, 0, 0, 0, 1, 2]))
    Fraction(1, 1)
    """

    scale: Fraction  # The b, in units of the numbers.
    sides: tuple[int, ...]  # The c_i, one for each number.
    grid: int = 1  # The g: a power of two. Numbers and noises are multiples of 1/g.

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.sides or min(self.sides) < 1 or self.scale <= 0:
            raise ValueError("Joint noise needs a sum to be added to, and a positive scale.")
        check_grid(self.grid)

    @classmethod
    def of(cls, sides: tuple[int, ...], sensitivity: int, epsilon: Fraction) -> SupNorm:
        """Return the law for numbers that change by at most ``sides`` times ``sensitivity``."""
        scale, grid = lattice_scale(len(sides), sensitivity, epsilon, max(sides, default=1))
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
        edge = _FLAT_END * self.scale * math.sqrt(self.order)
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
    return np.asarray(order * np.log(x) - x - gammaln(order) - np.log(fraction))


@draw.register
def _(law: SupNorm, count: int, source: RandomSource) -> IntArray:
    return discrete_boxes(np.array(law.sides), law.steps, count, source)


def discrete_boxes(sides: IntArray, scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Draw vectors (count, m) with P(z) proportional to exp(-max_i ceil(|z_i|/c_i)/scale), exactly.

    Meant for fine lattices: the number of tries grows as exp(m / 2 scale).

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> discrete_boxes(np.array([1, 1, 2]), Fraction(1000), 4, random_source(0)).shape
    (4, 3)
    """
    most, parts = max(1, _DRAWN_CELLS // (len(sides) + 1)), [np.empty((0, len(sides)), np.int64)]
    for first in range(0, count, most):
        radii = _radii(sides, scale, min(most, count - first), source)
        reach = np.multiply.outer(radii, sides)
        steps = (2 * reach + 1).astype(np.uint64)
        inside = uniform_below(steps.ravel(), steps.size, source).reshape(steps.shape)
        parts.append(inside.astype(np.int64) - reach)
    return np.concatenate(parts)


def _radii(sides: IntArray, scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Draw radii R with weight q^R prod_i (2 c_i R + 1): the proposals whose coins all succeed."""
    m, doubled = len(sides), 2 * np.asarray(sides).astype(np.uint64)
    found, attempt = np.empty(0, np.int64), rounds()
    while len(found) < count and next(attempt):
        rows = 2 * (count - len(found))
        sums = one_sided_laplace(representable_scale(scale), rows * (m + 1), source)
        proposed = sums.reshape(rows, m + 1).sum(axis=1)
        if (m + int(proposed.max()) + 1) * int(doubled.max(initial=1)) >= 2**63:
            raise OverflowError("The noise does not fit 64-bit integers; use a coarser grid.")
        radius = proposed.astype(np.uint64)[:, None]
        sure: Words = doubled * (radius + np.arange(1, m + 1, dtype=np.uint64))
        coins = uniform_below(sure.ravel(), sure.size, source).reshape(sure.shape)
        successes = (coins < doubled * radius + np.uint64(1)).all(axis=1)
        found = np.concatenate([found, proposed[successes]])
    return found[:count]


@dataclass(frozen=True)
class ZeroSum(NoiseLaw):
    """Discrete Laplace noise of one scale in every number, given that it adds to zero.

    >>> ZeroSum(Fraction(2), cells=3).privacy_loss(np.array([1, -1, 0]))
    Fraction(1, 1)
    """

    scale: Fraction
    cells: int

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MAX_CELLS:
            raise ValueError("cells must be an int in the range [1, 2**15].")
        if not 0 <= self.scale <= MAX_SCALE:
            raise ValueError("scale must be between 0 and 2**40.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """All numbers are one array."""
        return (self.cells,)

    def marginal(self, array: int = 0) -> Marginal:
        """Return the factor of one number, exp(-abs(z)/b): Laplace but for the sum."""
        return LaplaceMarginal(float(self.scale)) if self.scale else NO_NOISE

    @property
    def _alone(self) -> float:
        """Scale of independent noise that is at least as wide; as wide, for two numbers.

        A number z has weight exp(-abs(z)/b) times the probability that all others add to -z,
        which falls with abs(z): so z is stochastically smaller than independent noise.
        """
        return float(self.scale) / 2 if self.cells == 2 else float(self.scale)

    @property
    def variances(self) -> FloatArray:
        """Bound on the variance of every number."""
        return np.full(self.cells, discrete_laplace_variance(self._alone) * (self.cells > 1))

    def error_bound(self, delta: float) -> float:
        """Return the bound of independent noise that is at least as wide."""
        if self.cells == 1:
            return 0.0
        free = 1 if self.cells == 2 else self.cells
        return self._alone * math.log(free / delta) + integer_allowance(self._alone)

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the L1 norm over the scale; infinite if the shift does not add to zero."""
        moved = int(np.abs(shift).sum())
        if not moved:
            return Fraction(0)
        return math.inf if int(shift.sum()) or not self.scale else Fraction(moved) / self.scale


@draw.register
def _(law: ZeroSum, count: int, source: RandomSource) -> IntArray:
    return zero_sum_laplace(law.scale, law.cells, count, source)


def zero_sum_laplace(
    scale: Fraction | int, cells: int, size: int, source: RandomSource
) -> IntArray:
    """Draw integer vectors of sum zero with P(z) proportional to exp(-sum(abs(z))/scale), exactly.

    The scale is from 0, which gives zeros, to 2**40; a vector has 1 to 2**15 cells.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> noise = zero_sum_laplace(Fraction(2), 5, 3, random_source(0))
    >>> noise.shape, noise.sum(axis=1).tolist()
    ((3, 5), [0, 0, 0])
    """
    scale = representable_scale(scale)
    ZeroSum(scale, cells)  # refuses what cannot be drawn
    noise = np.zeros((size, cells), dtype=np.int64)
    if scale == 0 or cells == 1:
        return noise
    accepted = 0.5 / math.sqrt(cells)
    return fill(noise, accepted, lambda count: _proposals(scale, cells, count, source))


def _proposals(scale: Fraction, cells: int, count: int, source: RandomSource) -> IntArray:
    """Give the accepted of some proposals."""
    free = discrete_laplace(scale, (count, cells - 1), source)
    last = -free.sum(axis=1)
    kept = _coins(np.abs(last), scale, source)
    return np.column_stack([free, last])[kept]


def _coins(size: IntArray, scale: Fraction, source: RandomSource) -> npt.NDArray[np.bool_]:
    """Coins with P(True) = exp(-size/scale): the integer part by counting, then the rest."""
    t, s = scale.numerator, scale.denominator
    product = size.astype(object) * s  # Python's integers: no overflow, nothing rounded
    whole, rest = (product // t).astype(np.float64), (product % t).astype(np.uint64)
    enough: npt.NDArray[np.bool_] = geometric(size.size, source) >= whole
    return enough & bernoulli_exp(rest, t, source)
