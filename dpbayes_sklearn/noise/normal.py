r"""Standard normal numbers without rounding: each is known to lie in a cell of a fine lattice.

A real number cannot be stored, but its first bits can, and more of them can be drawn later. Here
:math:`g \in [G, G+1)\,2^{-m}` with an integer G, uniform in that cell given all that is known.

**Sampler.** :math:`|g| = k + x` with k geometric of rate :math:`e^{-1}` and x uniform in [0, 1) has
density proportional to :math:`e^{-k}`. It is accepted with probability
:math:`e^{-(|g|^2 + 1 - 2k)/2} \le 1`, which leaves :math:`e^{-|g|^2/2}`. A proposal is accepted or
rejected only if all of its cell is: the comparison with a random number is made in floats where
their errors cannot matter, and otherwise with as many more bits of both numbers as it takes (a
floating-point filter). So an accepted number is uniform in its cell, and the law is exact. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.noise.bernoulli import any_below, geometric, rounds
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["BITS", "Normals", "exact_normals"]

BITS = 60
"""Bits behind the point that are drawn at first."""

_SURE = 1e-12  # floats of exponents below 1e3 give probabilities with far smaller errors
_ACCEPTED = 0.48  # share of proposals

Integers = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Normals:
    """Numbers of which number i lies in ``[cells[i], cells[i] + 1) / 2**bits``."""

    cells: Integers
    bits: int

    def refined(self, source: RandomSource) -> Normals:
        """Return the same numbers, known to 64 bits more."""
        more = np.frombuffer(source(8 * self.cells.size), np.uint64).astype(object)
        return Normals((self.cells << 64) + more.reshape(self.cells.shape), self.bits + 64)


def exact_normals(count: int, source: RandomSource, sure: float = _SURE) -> Normals:
    """Draw ``count`` independent standard normal numbers.

    Parameters
    ----------
    count : int
    source : callable
        Random bytes, from `random_source`.
    sure : float
        Distance from its threshold at which a comparison is made without floats.

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> drawn = exact_normals(3, random_source(0))
    >>> drawn.bits, (drawn.cells / 2.0**drawn.bits).astype(float).round(2).tolist()
    (60, [-0.79, 0.57, -0.07])
    """
    parts: list[tuple[Integers, IntArray]] = []
    found, attempt = 0, rounds()
    while found < count and next(attempt):
        parts.append(_accepted(int((count - found) / _ACCEPTED) + 8, source, sure))
        found += len(parts[-1][0])
    cells, extra = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    most = int(extra.max(initial=0))
    for i in np.flatnonzero(extra < most).tolist():  # almost never
        lack = most - int(extra[i])
        cells[i] = (cells[i] << lack) + any_below(1 << lack, source)
    negative = np.unpackbits(np.frombuffer(source(-(-count // 8)), np.uint8))[:count].astype(bool)
    return Normals(np.where(negative, -cells - 1, cells), BITS + most)


def _accepted(size: int, source: RandomSource, sure: float) -> tuple[Integers, IntArray]:
    """Return the accepted of so many proposals: cells, and how many bits beyond BITS they have."""
    whole = geometric(size, source)
    part, coin = (np.frombuffer(source(8 * size), np.uint64) for _ in range(2))
    part = part >> np.uint64(64 - BITS)
    y = whole + part * 2.0**-BITS
    gap = coin * 2.0**-64 - np.exp(-(y * y + 1 - 2 * whole) / 2)
    cells = (whole.astype(object) << BITS) + part.astype(object)
    extra, accepted = np.zeros(size, np.int64), gap <= -sure
    for i in np.flatnonzero(~accepted & (gap < sure)).tolist():
        compared = _compared(cells[i], int(whole[i]), int(coin[i]), source)
        if compared is not None:
            cells[i], extra[i] = compared
            accepted[i] = True
    return cells[accepted], extra[accepted]


def _compared(cell: int, whole: int, coin: int, source: RandomSource) -> tuple[int, int] | None:
    """Decide a proposal with more bits; return its cell and their number, None if rejected."""
    extra, attempt = 0, rounds()
    while next(attempt):
        with localcontext() as context:
            context.prec = 3 * (BITS + extra) + 40
            least, most = (_probability(cell + end, BITS + extra, whole) for end in (1, 0))
            unit = Decimal(2) ** (64 + extra)
            if (coin + 1) / unit <= least:
                return cell, extra
            if coin / unit >= most:
                return None
        cell = (cell << BITS) + any_below(1 << BITS, source)
        coin = (coin << BITS) + any_below(1 << BITS, source)
        extra += BITS
    return None


def _probability(cell: int, bits: int, whole: int) -> Decimal:
    """Return the probability at one end of a cell; ``Decimal.exp`` is correctly rounded."""
    y = Decimal(cell) / Decimal(2) ** bits
    return (-(y * y + 1 - 2 * whole) / 2).exp()
