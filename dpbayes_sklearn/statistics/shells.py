r"""Shells around a centre, each by :math:`\sqrt 2` smaller than the one outside of it."""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray

__all__ = ["RADII", "count_in_shells"]

RADII = 2.0 ** (1 - np.arange(17) / 2)
"""Outer radii of shells around the centre of a column, on the scale of its bounds."""

_MANTISSA, _BIAS = 52, 1023  # of a double
_OUTER = 1  # squares in the outer shell are beyond 2**1


def count_in_shells(values: FloatArray, centres: FloatArray) -> IntArray:
    """Count for every column how many values lie in each shell; the values are overwritten.

    Shell i holds the distances in (RADII[i+1], RADII[i]], the last one all that are nearer. Their
    squares lie in (2**(1-i), 2**(2-i)], so that the exponent of a double tells the shell.

    >>> count_in_shells(np.array([[1.5], [1.0], [0.8], [0.0]]), np.zeros(1))[:, [0, 1, 2, 16]]
    array([[1, 0, 2, 1]])
    """
    shells = len(RADII)
    values -= centres  # in place: fresh memory costs more than all the rest
    np.square(values, out=values)
    exponents = values.view(np.int64)
    exponents -= 1  # a power of two belongs to the shell below it, as an end of its interval
    exponents >>= _MANTISSA
    outer = _BIAS + _OUTER
    np.clip(exponents, outer - shells + 1, outer, out=exponents)
    cells = np.subtract(outer + shells * np.arange(len(centres)), exponents, out=exponents)
    counts = np.bincount(cells.ravel(), minlength=shells * len(centres))
    return counts.reshape(len(centres), shells)
