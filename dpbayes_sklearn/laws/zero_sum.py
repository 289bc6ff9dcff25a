r"""Discrete Laplace noise given that it adds to zero, so that a public total stays as it is.

.. math:: P(Z = z) \propto e^{-\|z\|_1 / b}, \qquad z \in \mathbb{Z}^k, \; \sum_i z_i = 0

Replacing a record changes counts by :math:`e_i - e_j`, of L1 norm 2: a loss of :math:`2/b`. For two
cells it is (d, -d) with the two-sided geometric law :math:`P(d) \propto e^{-2|d|/b}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws.base import Marginal, NoiseLaw
from dpbayes_sklearn.laws.discrete_laplace import (
    LaplaceMarginal,
    discrete_laplace_variance,
    integer_allowance,
)
from dpbayes_sklearn.laws.marginals import NO_NOISE

__all__ = ["ZeroSum"]

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
