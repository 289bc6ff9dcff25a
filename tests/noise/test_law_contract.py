"""Every law on the integers keeps the contract; a new one to copy is at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, NoiseLaw, SupNorm, ZeroSum
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal, discrete_laplace
from dpbayes_sklearn.noise.integers import RandomSource
from dpbayes_sklearn.noise.law import draw
from tests.contracts import LawContract


class TestDiscreteLaplace(LawContract):
    law = DiscreteLaplace((Fraction(3, 2), Fraction(1)), (1, 1))
    reach = 25
    refused = (partial(DiscreteLaplace, (Fraction(-1),), (1,)), partial(DiscreteLaplace, (), (1,)))

    def log_density(self, z):
        return -np.abs(z) @ (1 / np.array([1.5, 1.0]))

    def scaled(self, factor):
        return DiscreteLaplace(tuple(b * factor for b in self.law.scales), (1, 1))


class TestZeroSum(LawContract):
    law = ZeroSum(Fraction(2), cells=3)
    reach = 24
    slack = 2.5  # its bound is that of independent noise
    refused = (partial(ZeroSum, Fraction(2), 0), partial(ZeroSum, Fraction(-1), 3))

    def log_density(self, z):
        return np.where(z.sum(axis=1) == 0, -np.abs(z).sum(axis=1) / 2, -np.inf)

    def scaled(self, factor):
        return ZeroSum(2 * factor, 3)


class TestSupNorm(LawContract):
    law = SupNorm(Fraction(2), (1, 2))
    reach = 60
    rounding, slack = 0.03, 1.04  # its formula is that of a fine lattice
    refused = (partial(SupNorm, Fraction(0), (1,)), partial(SupNorm, Fraction(2), (1,), 3))

    def log_density(self, z):
        return -np.ceil(np.abs(z) / np.array([1, 2])).max(axis=1) / 2

    def scaled(self, factor):
        return SupNorm(2 * factor, (1, 2))


class TestDiscreteGaussian(LawContract):
    law = DiscreteGaussian((Fraction(4), Fraction(2)), (1, 1))
    reach = 20
    pure = False
    refused = (partial(DiscreteGaussian, (Fraction(-1),), (1,)),)

    def log_density(self, z):
        return -(z.astype(float) ** 2) @ (1 / np.array([8.0, 4.0]))

    def scaled(self, factor):
        return DiscreteGaussian(tuple(v * factor**2 for v in self.law.parameters), (1, 1))


# A law to copy: its value, its sampler, and ten lines of tests.


@dataclass(frozen=True)
class Even(NoiseLaw):
    """Independent noise on the even integers, P(z) proportional to exp(-abs(z)/scale)."""

    scale: Fraction
    cells: int

    independent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.cells < 1:
            raise ValueError("Even noise needs a positive scale, and numbers to be added to.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """All numbers are one array."""
        return (self.cells,)

    def marginal(self, array: int = 0) -> LaplaceMarginal:
        """Return the law of one number: twice discrete Laplace noise of half the scale."""
        return LaplaceMarginal(float(self.scale))

    @property
    def variances(self) -> FloatArray:
        """Four times the variance of the halves."""
        return 4 * DiscreteLaplace.of(self.scale / 2, [self.cells]).variances

    def error_bound(self, delta: float) -> float:
        """Return twice the bound of the halves."""
        return 2 * DiscreteLaplace.of(self.scale / 2, [self.cells]).error_bound(delta)

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the L1 norm over the scale; infinite for an odd shift, which noise cannot hide."""
        return math.inf if (shift % 2).any() else Fraction(int(np.abs(shift).sum())) / self.scale


@draw.register
def _(law: Even, count: int, source: RandomSource) -> IntArray:
    return 2 * discrete_laplace(law.scale / 2, (count, law.cells), source)


class TestEven(LawContract):
    law = Even(Fraction(3), 2)
    reach = 50
    refused = (partial(Even, Fraction(0), 1), partial(Even, Fraction(1), 0))

    def log_density(self, z):
        return np.where((z % 2 == 0).all(axis=1), -np.abs(z).sum(axis=1) / 3, -np.inf)

    def scaled(self, factor):
        return Even(3 * factor, 2)
