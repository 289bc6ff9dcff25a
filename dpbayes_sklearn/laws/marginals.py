"""Noise in a single number that is the sum of several: one noise for each batch of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.laws.base import Marginal

__all__ = ["NO_NOISE", "UNKNOWN", "IndependentSum", "deviation_bound", "sum_of"]

_POINTS = 64.0  # lattice points within the sharpness of the sharpest term, if there are so many
_NATS = 60.0  # by which a tabulated density has fallen at its end
_FAR = 90.0  # and by which those that it is made of have


@dataclass(frozen=True)
class IndependentSum:
    """The sum of independent noises.

    Examples
    --------
    >>> from dpbayes_sklearn.laws.discrete_laplace import LaplaceMarginal
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
        log_weight: FloatArray = inside + (table[-1] - table[-2]) * beyond
        return log_weight

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Sum of the log moment generating functions."""
        return np.asarray(sum(term.log_mgf(s) for term in self.terms))

    def half_width(self, terms: int, nats: float) -> float:
        """Chernoff bound of the sum of ``terms`` such sums."""
        return deviation_bound([(1.0, terms, self)], nats)


@lru_cache(maxsize=32)
def _table(terms: tuple[Marginal, ...]) -> tuple[float, FloatArray]:
    """Step of, and log density at, the points 0, step, 2 step, ... of a sum of noises."""
    step = max(1.0, max(term.sharpness for term in terms) / _POINTS)
    density = np.ones(1)
    for term, number in Counter(terms).items():
        density = _convolved(density, _power(_on_lattice(term, step), number))
    half = density[len(density) // 2 :]
    inside = max(2, int((half > half[0] * np.exp(-_NATS)).sum()))
    return step, np.log(np.maximum(half[:inside], 1e-300) / half[0])


def _on_lattice(term: Marginal, step: float) -> FloatArray:
    """Probabilities of the points ..., -step, 0, step, ... as far as they matter."""
    last = int(np.ceil(deviation_bound([(1.0, 1, term)], _FAR) / step))
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
    tail = int(np.argmax(density > density.max() * np.exp(-_FAR)))
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


NO_NOISE: Marginal = _NoNoise()
UNKNOWN: Marginal = _Unknown()


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

    Chernoff: :math:`P(X > x) \le e^{-sx} \prod_i E[e^{s w_i Z_i}]^{m_i}` for the best s.

    Parameters
    ----------
    terms : sequence of (weight, number, marginal)
        ``number`` independent noises, each with this weight.
    """
    noisy = [(w, m, law) for w, m, law in terms if w > 0.0 and m and law.variance > 0.0]
    if not noisy:
        return 0.0
    if np.isinf(nats) or any(np.isinf(law.variance) for _, _, law in noisy):
        return np.inf
    s = np.linspace(0.02, 0.98, 49) * min(law.steepest / w for w, _, law in noisy)
    cost = sum(m * law.log_mgf(w * s) for w, m, law in noisy)
    return float(((nats + cost) / s).min())
