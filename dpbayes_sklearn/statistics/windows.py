"""Where columns and target are clipped, and the units in which their moments are taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray

__all__ = ["WHOLE", "Reach", "Window", "Windows"]


class Window(NamedTuple):
    """A range of the target, on its own scale, that is mapped to [-1, 1] around ``centre``."""

    low: float = -1.0
    high: float = 1.0
    centre: float = 0.0

    @classmethod
    def around(cls, centre: float, half: float) -> Window:
        """Return the part of the bounds that is not farther from the centre than ``half``."""
        return cls(max(-1.0, centre - half), min(1.0, centre + half), centre)

    @property
    def half(self) -> float:
        """Return the distance from the centre to the farther end."""
        return max(self.high - self.centre, self.centre - self.low)

    def map(self, y: FloatArray) -> FloatArray:
        """Return clipped targets as numbers in [-1, 1]."""
        mapped = (np.clip(y, self.low, self.high) - self.centre) / self.half
        return np.clip(mapped, -1.0, 1.0)


WHOLE = Window()
"""The target as its bounds have it."""


class Reach(NamedTuple):
    """How far windows reach beyond where the data usually are: public once they were located.

    Attributes
    ----------
    deviations : array of shape (width + 1,)
        Standard deviations that the windows of the numbers and, last, of the target reach.
    signs : array or None
        The means that the signs are centred at, if they are.
    """

    deviations: FloatArray
    signs: FloatArray | None = None


@dataclass(frozen=True)
class Windows:
    """The same for the coordinates: x becomes (x - centre)/half, clipped to [-1, 1].

    A sign becomes (x - c)/(1 + abs(c)), with two values of different size: a value that is rare
    is large, the usual one is small.

    Attributes
    ----------
    centres, halves : arrays of shape (width,)
        On the scale of the bounds; 0 and 1 leave a coordinate as it is.
    """

    centres: FloatArray
    halves: FloatArray

    @classmethod
    def whole(cls, width: int) -> Windows:
        """Leave every coordinate as its bounds have it."""
        return cls(np.zeros(width), np.ones(width))

    def clip(self, x: FloatArray, grid: int = 1) -> FloatArray:
        """Clip coordinates, in steps of a grid, in place; they stay on the scale of the bounds."""
        if (self.centres != 0).any() or (self.halves != 1).any():
            low, high = (grid * (self.centres + side * self.halves) for side in (-1, 1))
            np.clip(x, *((low, high) if grid == 1 else (np.rint(low), np.rint(high))), out=x)
        return x

    @property
    def square_slopes(self) -> FloatArray:
        """Return the change of a sign's square with the sign: -2c/h."""
        return -2 * self.centres / self.halves

    def squares_of_signs(self, sums: FloatArray, n: float) -> FloatArray:
        r"""Return the sums of the squares of n signs with these sums.

        With :math:`s = \pm1`, :math:`x = (s - c)/h` has :math:`x^2 = (1 - c^2)/h^2 - 2cx/h`.
        """
        return (1 - self.centres**2) / self.halves**2 * n + self.square_slopes * sums

    def to_bounds(self) -> FloatArray:
        r"""Return the linear map of (constant, coefficients) to coordinates on their bounds.

        :math:`w_0 + \sum w_j (x_j - c_j)/h_j`: slopes are over h, the constant less their sum.
        """
        back = np.diag(np.concatenate([[1.0], 1 / self.halves]))
        back[0, 1:] = -self.centres / self.halves
        return back
