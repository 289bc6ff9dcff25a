"""Exact draws of a point from segments of a public lattice, each point weighted by its segment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from dpbayes_sklearn.noise.bernoulli import any_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["segment_draw"]


def segment_draw(
    masses: Sequence[int], weights: Sequence[int], source: RandomSource
) -> tuple[int, int]:
    """Draw a segment i and an offset below its mass: P(i, offset) = weights[i] / total, exactly.

    All arithmetic is in Python integers, so masses of 2**62 and weights of 2**100 lose nothing.

    Parameters
    ----------
    masses, weights : sequence of int
        The public mass of each segment, and the positive weight of each unit of it.
    source : RandomSource

    Examples
    --------
    >>> segment_draw([2, 3], [10, 1], lambda n: bytes(n))
    (0, 0)
    >>> segment_draw([2, 3], [10, 1], lambda n: bytes([22 << 3]))
    (1, 2)
    """
    ends = [*accumulate(map(mul, masses, weights))]
    drawn = any_below(ends[-1], source)
    segment = bisect_right(ends, drawn)
    start = ends[segment - 1] if segment else 0
    return segment, (drawn - start) // weights[segment]
