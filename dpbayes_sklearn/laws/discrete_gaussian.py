r"""Independent discrete Gaussian noise: zero-concentrated, not pure, differential privacy.

.. math:: P(Z = z) \propto e^{-z^2/2\sigma^2}, \qquad z \in \mathbb{Z}

in every number, :math:`\sigma^2` the parameter of its array. Neighbours that differ by v have no
bounded privacy loss; their Rényi divergence of order :math:`\alpha` is at most :math:`\alpha\rho`
with :math:`\rho = \sum_i v_i^2/2\sigma_i^2` (Canonne, Kamath and Steinke 2020, Theorem 4).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws.base import Marginal, NoiseLaw
from dpbayes_sklearn.laws.marginals import NO_NOISE, deviation_bound

__all__ = ["DiscreteGaussian", "GaussianMarginal"]

_STEEPEST = 40.0  # standard deviations: farther out no window reaches


@dataclass(frozen=True)
class GaussianMarginal:
    """Gaussian noise in one number, with density proportional to exp(-x² / 2 variance).

    Examples
    --------
    >>> GaussianMarginal(4.0).log_weight(np.array([0.0, -2.0, 4.0])).tolist()
    [-0.0, -0.5, -2.0]
    """

    variance: float

    @property
    def sharpness(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    @property
    def steepest(self) -> float:
        """Every s is possible; this is more than any window needs."""
        return _STEEPEST / math.sqrt(self.variance)

    def log_weight(self, x: FloatArray) -> FloatArray:
        """-x²/2σ²."""
        return -np.square(x) / (2.0 * self.variance)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Bound s²σ²/2: discrete Gaussian noise is sub-Gaussian."""
        return np.asarray(0.5 * self.variance * np.square(s))

    def half_width(self, terms: int, nats: float) -> float:
        """Chernoff bound of the sum of ``terms`` of them."""
        return deviation_bound([(1.0, terms, self)], nats)


@dataclass(frozen=True)
class DiscreteGaussian(NoiseLaw):
    """Independent discrete Gaussian noise in every number.

    Attributes
    ----------
    parameters : tuple of Fraction
        The σ² of each array; 0 for an array that is public as it is.
    numbers : tuple of int
        How many numbers each array has.

    Examples
    --------
    >>> law = DiscreteGaussian((Fraction(100),), (42,))
    >>> law.rho(np.array([1, -1] * 11 + [0] * 20)), round(law.error_bound(0.05), 1)
    (Fraction(11, 100), 38.5)
    """

    parameters: tuple[Fraction, ...]
    numbers: tuple[int, ...]

    independent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.parameters) != len(self.numbers) or any(s < 0 for s in self.parameters):
            raise ValueError("Independent noise needs one parameter, not below zero, per array.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each array has."""
        return self.numbers

    def marginal(self, array: int = 0) -> Marginal:
        """Return the Gaussian law of one number."""
        parameter = float(self.parameters[array])
        return GaussianMarginal(parameter) if parameter else NO_NOISE

    def error_bound(self, delta: float) -> float:
        r"""Return the z with :math:`\sum_i 2 m_i e^{-z^2/2\sigma_i^2} = \delta`."""
        numbers: Counter[float] = Counter()
        for parameter, size in zip(self.parameters, self.numbers, strict=True):
            numbers[float(parameter)] += size if parameter else 0
        noisy = {s: m for s, m in numbers.items() if m}
        if not noisy:
            return 0.0

        def excess(z: float) -> float:
            return sum(2 * m * math.exp(-(z**2) / (2 * s)) for s, m in noisy.items()) - delta

        farthest = math.sqrt(2 * max(noisy) * math.log(2 * sum(noisy.values()) / delta))
        return float(brentq(excess, 0.0, farthest + 1.0))

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return infinity for every shift: far out the ratio of probabilities has no bound."""
        return math.inf if np.any(shift) else Fraction(0)

    def rho(self, shift: IntArray) -> Fraction | float:
        """Return the zero-concentrated privacy loss of a shift, sum v²/2σ²."""
        rho, first = Fraction(0), 0
        for parameter, size in zip(self.parameters, self.numbers, strict=True):
            squares = int(np.square(shift[first : first + size]).sum())
            if squares and not parameter:
                return math.inf
            rho += Fraction(squares) / (2 * parameter) if squares else 0
            first += size
        return rho
