r"""Sampler of integer noise whose density decays with its largest entry (sup norm).

.. math:: P(Z = z) \propto e^{-\|z\|/b}, \qquad \|z\| = \max_i \lceil |z_i|/c_i \rceil

for whole numbers :math:`c_i` and rational b. Shifting z by at most :math:`c_i\Delta` in entry i
changes the norm by at most :math:`\Delta`, so :math:`b = \Delta/\varepsilon` makes a vector of m
sums, of sensitivity :math:`c_i\Delta` each, :math:`\varepsilon`-private. The noise of one entry has
variance near :math:`c_i^2 b^2 (m+1)(m+2)/3`, where independent Laplace noise has :math:`2 (b \sum_i
c_i)^2`: six times as much for many entries that can all change at once (Steinke and Ullman,
*Between Pure and Approximate Differential Privacy*, 2016).

**Sampler.** :math:`e^{-\|z\|/b} \propto \sum_{R \ge \|z\|} q^R` with :math:`q = e^{-1/b}`: a
mixture of boxes. R has weight :math:`q^R \prod_i (2c_iR + 1)`, then z is uniform over
:math:`|z_i| \le c_iR`. The sum of m + 1 geometric variables has weight proportional to
:math:`q^R \prod_{i=1}^m (R + i)`, so it is accepted with probability
:math:`\prod_i (2c_iR + 1)/(2c_i(R + i)) \le 1`: m exact coins that must all succeed. ∎
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.scales import representable_scale
from dpbayes_sklearn.laws.sup_norm import SupNorm
from dpbayes_sklearn.noise.add import draw
from dpbayes_sklearn.noise.bernoulli import Words, rounds, uniform_below
from dpbayes_sklearn.noise.discrete_laplace import one_sided_laplace
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["discrete_boxes"]

_CELLS = 1 << 18  # drawn at a time


@draw.register
def _(law: SupNorm, count: int, source: RandomSource) -> IntArray:
    return discrete_boxes(np.array(law.sides), law.steps, count, source)


def discrete_boxes(sides: IntArray, scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Draw vectors with P(z) proportional to exp(-max_i ceil(|z_i|/c_i)/scale), exactly.

    Parameters
    ----------
    sides : array of int, each at least 1
        The c_i.
    scale : Fraction
        The b. Meant for fine lattices: the number of tries grows as exp(m/2b).
    count : int
        Number of independent vectors.
    source : callable
        Random bytes, from `random_source`.

    Returns
    -------
    array of int of shape (count, m)

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> discrete_boxes(np.array([1, 1, 2]), Fraction(1000), 4, random_source(0)).shape
    (4, 3)
    """
    most, parts = max(1, _CELLS // (len(sides) + 1)), [np.empty((0, len(sides)), np.int64)]
    for first in range(0, count, most):
        radii = _radii(sides, scale, min(most, count - first), source)
        reach = np.multiply.outer(radii, sides)
        steps = (2 * reach + 1).astype(np.uint64)
        inside = uniform_below(steps.ravel(), steps.size, source).reshape(steps.shape)
        parts.append(inside.astype(np.int64) - reach)
    return np.concatenate(parts)


def _radii(sides: IntArray, scale: Fraction, count: int, source: RandomSource) -> IntArray:
    """Draw radii R with weight q^R prod_i (2 c_i R + 1): the proposals whose coins all succeed."""
    m, doubled = len(sides), 2 * np.asarray(sides).astype(np.uint64)
    found, attempt = np.empty(0, np.int64), rounds()
    while len(found) < count and next(attempt):
        rows = 2 * (count - len(found))
        sums = one_sided_laplace(representable_scale(scale), rows * (m + 1), source)
        proposed = sums.reshape(rows, m + 1).sum(axis=1)
        if (m + int(proposed.max()) + 1) * int(doubled.max(initial=1)) >= 2**63:
            raise OverflowError("The noise does not fit 64-bit integers; use a coarser grid.")
        radius = proposed.astype(np.uint64)[:, None]
        sure: Words = doubled * (radius + np.arange(1, m + 1, dtype=np.uint64))
        coins = uniform_below(sure.ravel(), sure.size, source).reshape(sure.shape)
        successes = (coins < doubled * radius + np.uint64(1)).all(axis=1)
        found = np.concatenate([found, proposed[successes]])
    return found[:count]
