r"""Discrete Laplace noise given that it adds to zero, so that a public total stays as it is.

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
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise.discrete_laplace import (
    LaplaceMarginal,
    discrete_laplace,
    discrete_laplace_variance,
    integer_allowance,
)
from dpbayes_sklearn.noise.integers import bernoulli_exp, fill, geometric
from dpbayes_sklearn.noise.law import NO_NOISE, Marginal, NoiseLaw, draw, representable_scale
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["ZeroSum", "zero_sum_laplace"]


MAX_SCALE = 2**40
"""Keeps a sum of 2**15 cells far below 2**63."""
MAX_CELLS = 2**15


@dataclass(frozen=True)
class ZeroSum(NoiseLaw):
    """Discrete Laplace noise of one scale in every number, given that it adds to zero.

    Examples
    --------
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

    Parameters
    ----------
    scale : Fraction or int
        From 0, which gives zeros, to 2**40.
    cells : int
        Length k of a vector, from 1 to 2**15.
    size : int
        Number of vectors.
    source : callable
        Random bytes, from `random_source`.

    Returns
    -------
    ndarray of int64 of shape (size, cells)

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
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
