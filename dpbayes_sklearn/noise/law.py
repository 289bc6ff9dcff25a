"""The interface of every noise law, the sum of several noises, and adding noise to integers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, singledispatch
from numbers import Rational
from typing import Any, ClassVar, Protocol

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray
from dpbayes_sklearn.noise.integers import RandomSource

# The sharpest term is covered by this many lattice points, if it is that wide.
_SHARPEST_POINTS = 64.0
_TABULATED_NATS = 60.0  # A tabulated density ends where it has fallen by this many nats.
# The densities that are convolved end where they have fallen by this many nats.
_CONVOLVED_NATS = 90.0
MAX_TERM = 2**56
"""Largest numerator and denominator that the samplers take.

Then t*k < 2**64 for every k that `bernoulli_exp` reaches, and u + t*v < 2**63 for every
v that `geometric` returns: no product can overflow.
"""
_FINEST_GRID_OF_NOISE = 2**24  # A finer grid would leave too few of 64 bits to the counts.
_MOST_STEPS = 2**60  # No noise is farther from 0 than this many steps.


class Marginal(Protocol):
    """The distribution of the noise in a single number."""

    @property
    def variance(self) -> float:
        """Variance, or a tight bound from above; 0 without noise, infinite if nothing is known."""

    @property
    def sharpness(self) -> float:
        """Distance over which the log density changes by about one."""

    @property
    def steepest(self) -> float:
        """Supremum of the s for which :meth:`log_mgf` is finite, or large enough in practice."""

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log probability of noise ``x``, up to a constant."""

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Log of E[exp(s Z)], or a bound from above, for 0 <= s < steepest."""

    def half_width(self, terms: int, nats: float) -> float:
        """Bound that the sum of ``terms`` such noises crosses with probability below exp(-nats)."""


class Chernoff:
    """A marginal whose sums are bounded by its moment generating function."""

    def half_width(self: Any, terms: int, nats: float) -> float:
        """Bound that the sum of ``terms`` such noises crosses with probability below exp(-nats)."""
        return deviation_bound([(1.0, terms, self)], nats)


class NoiseLaw(ABC):
    """The public distribution of the noise that was added to the numbers of some arrays.

    Numbers and noise are multiples of 1/``grid``. A law holds no data and draws nothing:
    :func:`dpbayes_sklearn.noise.law` does.
    """

    grid: int = 1
    independent: ClassVar[bool]
    """Whether the noises of different numbers are independent."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each array has."""

    @cached_property
    def size(self) -> int:
        """How many numbers get noise in one release."""
        return sum(self.sizes)

    @abstractmethod
    def marginal(self, array: int = 0) -> Marginal:
        """Return the distribution of the noise in one number of an array."""

    def row_marginal(self, array: int = 0) -> Marginal:
        """Return the distribution of the noise in one number when the sum of its row is known.

        Numbers of a row are then taken for independent given the sum.
        """
        return self.marginal(array)

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of the noise in every number, array after array."""
        each = [self.marginal(array).variance for array in range(len(self.sizes))]
        return np.repeat(np.array(each), self.sizes)

    def variance(self, array: int = 0) -> float:
        """Return the variance of the noise in one number of an array."""
        return float(self.variances[self._starts[array]])

    @cached_property
    def _starts(self) -> IntArray:
        """Where each array begins among all numbers."""
        return np.cumsum((0, *self.sizes[:-1]))

    def log_weight(self, x: FloatArray, array: int = 0) -> FloatArray:
        """Return the log probability, up to a constant, of noise ``x`` in one number."""
        return self.marginal(array).log_weight(x)

    def contrast_variance(self, array: int = 0) -> float:
        """Variance of the noise along any unit contrast of a row (weights that add to zero)."""
        return self.variance(array)

    @property
    def shared_row_variance(self) -> float:
        """Variance of the noise that the row sums of all arrays have in common, if there is any."""
        return 0.0

    @property
    def standard(self) -> tuple[NoiseLaw, float]:
        """Return (law with scale 1, factor).

        This law is ``factor`` times it, up to rounding to the grid.

        Laws of one shape share it, so that one simulation serves for every epsilon.
        """
        return self, 1.0

    @abstractmethod
    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the largest error of all released numbers."""

    @abstractmethod
    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the worst log probability ratio of neighbours that differ by ``shift`` (size,)."""


@dataclass(frozen=True)
class IndependentSum(Chernoff):
    """The sum of independent noises.

    >>> from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
    >>> two = IndependentSum((LaplaceMarginal(2.0), LaplaceMarginal(2.0)))
    >>> two.variance, two.log_weight(np.array([0.0, 6.0])).round(2).tolist()
    (16.0, [0.0, -1.67])
    """

    terms: tuple[Marginal, ...]

    @property
    def variance(self) -> float:
        """Sum of the variances."""
        return float(sum(term.variance for term in self.terms))

    @property
    def sharpness(self) -> float:
        """Distance over which a density of this variance falls."""
        return float(np.sqrt(self.variance / 2.0))

    @property
    def steepest(self) -> float:
        """The smallest of the terms' own."""
        return min((term.steepest for term in self.terms), default=np.inf)

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log of the convolution, read off a table; beyond its end it goes on linearly."""
        step, table = _table(self.terms)
        distance = np.abs(x) / step
        beyond = np.maximum(distance - (len(table) - 1), 0.0)
        inside = np.interp(distance, np.arange(len(table)), table)
        return np.asarray(inside + (table[-1] - table[-2]) * beyond)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Sum of the log moment generating functions."""
        return np.asarray(sum(term.log_mgf(s) for term in self.terms))


@lru_cache(maxsize=32)
def _table(terms: tuple[Marginal, ...]) -> tuple[float, FloatArray]:
    """Step of, and log density at, the points 0, step, 2 step, ... of a sum of noises."""
    step = max(1.0, max(term.sharpness for term in terms) / _SHARPEST_POINTS)
    density = np.ones(1)
    for term, number in Counter(terms).items():
        density = _convolved(density, _power(_on_lattice(term, step), number))
    half = density[len(density) // 2 :]
    inside = max(2, int((half > half[0] * np.exp(-_TABULATED_NATS)).sum()))
    return step, np.log(np.maximum(half[:inside], 1e-300) / half[0])


def _on_lattice(term: Marginal, step: float) -> FloatArray:
    """Probabilities of the points ..., -step, 0, step, ... as far as they matter."""
    last = int(np.ceil(deviation_bound([(1.0, 1, term)], _CONVOLVED_NATS) / step))
    log_weight = term.log_weight(step * np.arange(-last, last + 1.0))
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def _power(density: FloatArray, number: int) -> FloatArray:
    """Density of the sum of ``number`` noises of the same density, by repeated squaring."""
    if number == 1:
        return density
    half = _power(density, number // 2)
    even = _convolved(half, half)
    return _convolved(even, density) if number % 2 else even


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Density of a sum of two, without tails that are too thin to matter in further sums."""
    density = np.convolve(one, other)
    tail = int(np.argmax(density > density.max() * np.exp(-_CONVOLVED_NATS)))
    tail = max(0, min(tail, len(density) // 2 - 1))
    return density[tail : len(density) - tail]


class _NoNoise:
    """No noise: the number is exact."""

    variance = sharpness = 0.0
    steepest = np.inf

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Everything but zero is impossible."""
        return np.where(x == 0.0, 0.0, -np.inf)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Log E[exp(0)]."""
        return np.zeros_like(s)

    def half_width(self, terms: int, nats: float) -> float:
        """No noise, no width."""
        return 0.0


class _Unknown:
    """Noise of infinite variance: the number carries no information."""

    variance = sharpness = np.inf
    steepest = 0.0

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Everything is equally likely."""
        return np.zeros_like(x)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Infinite for every s above zero."""
        return np.where(s > 0.0, np.inf, 0.0)

    def half_width(self, terms: int, nats: float) -> float:
        """No bound."""
        return np.inf


NO_NOISE: Marginal = _NoNoise()  # The marginal of a number that is exact.
UNKNOWN: Marginal = _Unknown()  # The marginal of a number that carries no information.


def sum_of(terms: Sequence[Marginal]) -> Marginal:
    """Return the distribution of the sum of independent noises; a single one as it is."""
    noisy = tuple(term for term in terms if term.variance > 0.0)
    if not noisy:
        return NO_NOISE
    if any(np.isinf(term.variance) for term in noisy):
        return UNKNOWN
    return noisy[0] if len(noisy) == 1 else IndependentSum(noisy)


def deviation_bound(terms: Sequence[tuple[float, int, Marginal]], nats: float) -> float:
    r"""Bound that a weighted sum of independent noises crosses with probability below exp(-nats).

    Chernoff: :math:`P(X > x) \le e^{-sx} \prod_i E[e^{s w_i Z_i}]^{m_i}` for the best s; a term is
    a weight, the number of noises that have it, and their distribution.
    """
    noisy = [(w, m, law) for w, m, law in terms if w > 0.0 and m and law.variance > 0.0]
    if not noisy:
        return 0.0
    if np.isinf(nats) or any(np.isinf(law.variance) for _, _, law in noisy):
        return np.inf
    s = np.linspace(0.02, 0.98, 49) * min(law.steepest / w for w, _, law in noisy)
    cost = sum(m * law.log_mgf(w * s) for w, m, law in noisy)
    return float(((nats + cost) / s).min())


def least_noise(noise: str, laws: Mapping[str, Callable[[], NoiseLaw]]) -> NoiseLaw:
    """Return the law of this name; of ``"auto"``, the one whose numbers vary least on average.

    Laws depend on public quantities only, and so does the choice. A law that does not exist for
    them (a ValueError) is not considered, unless it was requested by name.

    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.noise.discrete_laplace import DiscreteLaplace
    >>> laws = {b: lambda b=b: DiscreteLaplace.of(Fraction(b), [3]) for b in ("2", "5")}
    >>> least_noise("auto", laws).scales, least_noise("5", laws).scales
    ((Fraction(2, 1),), (Fraction(5, 1),))
    """
    if noise != "auto":
        return laws[noise]()
    possible = []
    for law in laws.values():
        with suppress(ValueError):
            possible.append(law())
    if not possible:
        return next(iter(laws.values()))()  # raises its own error
    return min(possible, key=lambda law: float(law.variances.mean()))


def representable_scale(scale: Fraction | int) -> Fraction:
    """Return the scale that is used: the given one or one just above.

    A scale with a numerator or denominator above 2**56 is rounded **up** (more noise,
    never less) by a relative 2**-55 at most; only scales below 2**-56, whose noise is 0
    except with probability exp(-2**56), are rounded by more.

    >>> representable_scale(Fraction(100, 3))
    Fraction(100, 3)
    >>> rounded = representable_scale(Fraction(10**30, 3**60))
    >>> 0 < rounded / Fraction(10**30, 3**60) - 1 < Fraction(1, 2**55)
    True
    """
    if not isinstance(scale, Rational):
        raise TypeError(f"scale must be a Fraction or an int. Got {type(scale).__name__} instead.")
    scale = Fraction(int(scale.numerator), int(scale.denominator))
    if not 0 <= scale <= MAX_TERM:
        raise ValueError("scale must be between 0 and 2**56.")
    if scale == 0 or max(scale.numerator, scale.denominator) <= MAX_TERM:
        return scale
    if scale >= 1:  # the largest power of two as denominator, the numerator rounded up
        denominator = 1 << (int(MAX_TERM / scale).bit_length() - 1)
        return Fraction(math.ceil(scale * denominator), denominator)
    # the largest power of two as numerator, the denominator rounded down
    numerator = 1 << max(int(MAX_TERM * scale).bit_length() - 1, 0)
    return Fraction(numerator, min(int(numerator / scale), MAX_TERM))


def laplace_scale(sensitivity: Fraction | int, epsilon: Fraction) -> Fraction:
    """Return b = sensitivity / epsilon, or the next scale above that can be drawn exactly."""
    scale = Fraction(sensitivity) / epsilon
    if scale > MAX_TERM:
        raise ValueError(
            f"epsilon={float(epsilon):g} is too small: the noise would not fit into 64 bits; "
            "use a larger epsilon."
        )
    return representable_scale(scale)


def lattice_scale(
    size: int, sensitivity: int, epsilon: Fraction, widest: int = 1
) -> tuple[Fraction, int]:
    """Return the scale of noise whose norm has this sensitivity, and a lattice 1/grid for it.

    With scale b in steps of the lattice, size/2b <= 1/2: samplers accept most proposals. A number
    has ``widest`` times as much noise as its norm at most.
    """
    least = size * epsilon / sensitivity
    grid = 1 << max(0, (-(-least.numerator // least.denominator) - 1).bit_length())
    steps = sensitivity * grid / epsilon
    if grid > _FINEST_GRID_OF_NOISE:
        raise ValueError(
            f"epsilon={float(epsilon):g} is too large for joint noise on {size} sums; "
            "use noise='independent'."
        )
    if steps > MAX_TERM or 64 * (size + 1) * steps * widest > _MOST_STEPS:
        raise ValueError(
            f"epsilon={float(epsilon):g} is too small: the noise would not fit into 64 bits; "
            "use a larger epsilon."
        )
    return representable_scale(steps) / grid, grid


def check_grid(grid: int) -> None:
    """Refuse a lattice on which floats would not be exact."""
    if not 1 <= grid <= _FINEST_GRID_OF_NOISE or grid & (grid - 1):
        raise ValueError(f"grid must be a power of two from 1 to {_FINEST_GRID_OF_NOISE}.")


@singledispatch
def draw(law: NoiseLaw, count: int, source: RandomSource) -> IntArray:
    """Draw the noise of ``count`` releases in steps of the law's grid, exactly: (count, law.size).

    A sampler registers itself with ``@draw.register``.
    """
    raise TypeError(f"No sampler is registered for {type(law).__name__}.")


def add(arrays: Sequence[IntArray], law: NoiseLaw, source: RandomSource) -> tuple[AnyArray, ...]:
    """Return the arrays plus noise: integers, or exact floats if the law has a finer grid.

    Arrays may have further axes in front, the same for all: a noise of its own for each. An array
    of the law may be given in several parts, one after the other.

    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.noise import DiscreteLaplace
    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> law = DiscreteLaplace.of(Fraction(2), sizes=[4, 2])
    >>> tables = [np.zeros((2, 2), np.int64), np.zeros(2, np.int64)]
    >>> [noisy.shape for noisy in add(tables, law, random_source(0))]
    [(2, 2), (2,)]
    """
    count = sum(array.size for array in arrays) // max(law.size, 1)
    ends = np.cumsum([0, *(array.size // max(count, 1) for array in arrays)])
    if ends[-1] != law.size or not set(np.cumsum(law.sizes)) <= set(ends):
        raise ValueError("The sizes of the arrays do not match the noise law.")
    noise = draw(law, count, source)
    steps = [
        law.grid * array + noise[:, first:last].reshape(array.shape)
        for array, first, last in zip(arrays, ends[:-1], ends[1:], strict=True)
    ]
    if law.grid == 1:
        return tuple(steps)
    return tuple(np.asarray(step / law.grid) for step in steps)  # a power of two: exact
