r"""How precise each of several tables should be when they share one budget of Gaussian noise.

Table j of :math:`m_j` cells gets noise of variance :math:`\sigma^2/w_j`. A record changes as many
cells of every table, so :math:`\sigma^2` must grow with :math:`\sum_j w_j`, and the sum of the
variances of all cells, :math:`\sum_i w_i \cdot \sum_j m_j/w_j`, is least for
:math:`w_j \propto \sqrt{m_j}` (Cauchy and Schwarz).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["table_weights"]

_STEPS = 2  # in the weight of the smallest table


def table_weights(sizes: Sequence[int]) -> tuple[int, ...]:
    r"""Return small integers near :math:`\sqrt{m_j}` times a constant, without a common divisor.

    >>> table_weights([4, 4, 16, 2]), table_weights([6, 6])
    ((3, 3, 6, 2), (1, 1))
    """
    least = min(sizes, default=1)
    weights = [_rounded_root(_STEPS**2 * size, least) for size in sizes]
    divisor = math.gcd(*weights)
    return tuple(weight // divisor for weight in weights)


def _rounded_root(numerator: int, denominator: int) -> int:
    """Return the integer nearest to the root of a fraction, exactly."""
    return (math.isqrt(4 * numerator // denominator) + 1) // 2
