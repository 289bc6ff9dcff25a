r"""A bound on the norm of a record, beside the bounds of its entries.

The squares of many numbers are hardly ever large in the same record: their sum is close to its
mean. So a bound on the sum that few records exceed is far below the sum of the bounds. A record
that exceeds it is scaled: its numbers and its target are multiplied by the same factor, which
leaves a linear relation between them as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray

__all__ = ["RowNorm"]

_DOUBLE = 2**53  # integers up to here are exact in float64
_MARGIN = 2.0**-30  # pays for the rounding of floats, however many columns there are


@dataclass(frozen=True)
class RowNorm:
    r"""The bound :math:`\sum_j k_j x_j^2 + k_t t^2 \le c` on numbers and target of every record.

    Attributes
    ----------
    squares : tuple of int
        The :math:`k_j` of the coordinates and, last, of the target; 0 for signs and levels.
    limit : int
        The c.
    """

    squares: tuple[int, ...]
    limit: int

    @cached_property
    def _weights(self) -> FloatArray:
        return np.array(self.squares, np.float64)

    @cached_property
    def _scaled(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.squares[:-1])

    def clip(self, x: FloatArray, t: FloatArray, grid: int) -> None:
        """Scale the records beyond the bound, in place; all entries are integers up to ``grid``.

        Scaled entries are rounded towards 0, so that they stay integers within the bound.
        """
        kept, weights = self._scaled, self._weights
        if self.limit >= weights.sum():
            return
        numbers = x if len(kept) == x.shape[1] else x[:, kept]
        most = self.limit * float(grid) ** 2 * (1 - _MARGIN)
        # the sum of squares is read off faster than the weighted one, which is never larger
        largest = weights[kept].max(initial=0.0) * np.einsum("ij,ij->i", numbers, numbers)
        maybe = np.flatnonzero(largest + weights[-1] * np.square(t) > most)
        norm = self._norms(numbers[maybe], t[maybe], grid)
        far = maybe[norm > most]
        if len(far):
            factor = np.sqrt(most / norm[norm > most])
            x[np.ix_(far, kept)] = np.trunc(x[np.ix_(far, kept)] * factor[:, None])
            t[far] = np.trunc(t[far] * factor)

    def _norms(self, numbers: FloatArray, t: FloatArray, grid: int) -> FloatArray | IntArray:
        """Return the weighted sums of squares, exactly: BLAS may round a row by its neighbours."""
        exact = np.float64 if self._weights.sum() * float(grid) ** 2 <= _DOUBLE else np.int64
        weights = self._weights.astype(exact)
        squares, own = (np.square(each).astype(exact, copy=False) for each in (numbers, t))
        norms: FloatArray | IntArray = squares @ weights[self._scaled] + weights[-1] * own
        return norms
