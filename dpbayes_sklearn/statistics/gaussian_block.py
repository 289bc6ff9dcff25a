r"""Sums that are released together with Gaussian noise, and their L2 sensitivity.

The entries are groups g with weights :math:`w_g`. A replaced record changes them by D with
:math:`\sum_g w_g \|D_g\|^2 \le c^2`, so that noise of variance :math:`c^2/2\rho w_g` in group g is
:math:`\rho`-zCDP: one whole noise law, whatever the groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.noise import DiscreteGaussian

__all__ = ["GaussianBlock"]

Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class GaussianBlock:
    """Entries of the moments in groups of equal weight, one group after the other.

    Attributes
    ----------
    rows, columns : arrays of int
        Positions in the upper triangle; 0 is the constant, the last is the target.
    sizes : tuple of int
        How many entries each group has.
    weights : tuple of Fraction
        The w of every group.
    bound : Fraction
        The c², in units of the sums.
    """

    rows: Positions
    columns: Positions
    sizes: tuple[int, ...]
    weights: tuple[Fraction, ...]
    bound: Fraction

    def __len__(self) -> int:
        return len(self.rows)

    def law(self, rho: Fraction, grid: int) -> DiscreteGaussian:
        """Return the law of rho-zCDP noise, on sums in units of 1/grid²."""
        scale = self.bound * grid**4 / (2 * rho)
        return DiscreteGaussian(tuple(scale / weight for weight in self.weights), self.sizes)
