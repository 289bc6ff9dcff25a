r"""Noise for vectors whose change has a bounded length: density :math:`\propto e^{-\|u\|_2/s}`.

.. math:: Z_j = \lfloor s\,u_j + \tfrac12 \rfloor, \qquad u_j = \sum_{k=1}^{p+1} a_k g_{kj},
    \quad j = 1, \dots, p

with independent standard normals a and g: an off-diagonal row of a Wishart matrix.

**Density.** Given a, the vector u is normal with covariance :math:`\tau I`,
:math:`\tau = \|a\|^2 \sim \chi^2_{p+1}`. So its characteristic function is
:math:`E e^{-\tau\|t\|^2/2} = (1 + \|t\|^2)^{-(p+1)/2}`, which is that of the density
:math:`\propto e^{-\|u\|_2}` in p dimensions (the Poisson kernel, with the roles of function and
transform exchanged). ∎

**Loss.** By the triangle inequality a shift v changes the density of su by a factor of at most
:math:`e^{\|v\|_2/s}`. The sums are integers, so adding rounded noise to them is rounding, a
post-processing. ∎

One entry is a difference of two Gamma variables of order (p + 1)/2 and scale s, of variance
:math:`(p + 1)s^2`; different entries are uncorrelated. The sampler is that of
:mod:`~dpbayes_sklearn.noise.matrix`: normals of which as many bits are drawn as the rounded number
takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.noise.integers import RandomSource, rounds
from dpbayes_sklearn.noise.law import NoiseLaw, draw
from dpbayes_sklearn.noise.matrix import GammaDifference, Integers, exact_normals, rounded_ends


@dataclass(frozen=True)
class BallNoise(NoiseLaw):
    """Joint noise of the entries of one vector.

    >>> law = BallNoise(Fraction(5), 3)
    >>> law.variances.tolist(), law.privacy_loss(np.array([3, 0, 4]))
    ([100.0, 100.0, 100.0], 1.0)
    """

    scale: Fraction  # The s, in units of the numbers.
    dimension: int  # The p.

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.dimension < 1 or self.scale <= 0:
            raise ValueError("Ball noise needs a dimension and a scale.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """All entries are one array."""
        return (self.dimension,)

    def marginal(self, array: int = 0) -> GammaDifference:
        """Return the distribution of one entry."""
        return GammaDifference((self.dimension + 1) / 2, float(self.scale))

    def error_bound(self, delta: float) -> float:
        """Return a Chernoff bound for each entry, at the same share of ``delta``."""
        nats = float(np.log(self.size / delta))
        return 0.5 + self.marginal().half_width(1, nats)

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the length of the shift over the scale."""
        return float(np.linalg.norm(np.asarray(shift, np.float64))) / float(self.scale)


@draw.register
def _(law: BallNoise, count: int, source: RandomSource) -> IntArray:
    return ball_vectors(law.scale, law.dimension, count, source)


def ball_vectors(scale: Fraction, dimension: int, count: int, source: RandomSource) -> IntArray:
    """Draw rounded vectors, of shape (count, dimension).

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> ball_vectors(Fraction(1000), 3, 4, random_source(0)).shape
    (4, 3)
    """
    drawn = [_one_vector(scale, dimension, source) for _ in range(count)]
    return np.array(drawn, np.int64).reshape(count, dimension)


def _one_vector(scale: Fraction, p: int, source: RandomSource) -> Integers:
    normals = exact_normals((p + 1) * (p + 1), source)
    factors = np.array([[scale.numerator], [scale.denominator]], object)
    attempt = rounds()
    while next(attempt):
        g = normals.cells.reshape(p + 1, p + 1)
        own, others = g[:, :1], g[:, 1:]
        middle = (own * others).sum(axis=0)
        sizes = (np.abs(own) + np.abs(others)).sum(axis=0)
        low, high = rounded_ends(middle, sizes, factors, p, normals.bits)
        if (low == high).all():
            break
        normals = normals.refined(source)
    if max(abs(int(low.max())), abs(int(low.min()))) >= 2**62:
        raise OverflowError("The noise does not fit 64-bit integers; use a coarser grid.")
    return low
