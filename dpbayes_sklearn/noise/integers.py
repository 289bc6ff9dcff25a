"""Exact dice with any number of sides: Python integers, for bounds beyond a machine word."""

from __future__ import annotations

from dpbayes_sklearn.noise.bernoulli import rounds
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["any_below", "random_subset"]


def any_below(bound: int, source: RandomSource) -> int:
    """Return a uniform integer from 0 to bound - 1; what is too large is drawn again.

    >>> any_below(2**80, lambda n: bytes(n - 1) + bytes([7]))
    7
    """
    bits = (bound - 1).bit_length()
    size = -(-bits // 8)
    attempt = rounds()
    while next(attempt):
        drawn = int.from_bytes(source(size), "big") >> (8 * size - bits)
        if drawn < bound:
            break
    return drawn


def random_subset(n: int, k: int, source: RandomSource) -> list[int]:
    """Return k different numbers out of 1, ..., n in order, all choices alike (Floyd's method).

    >>> random_subset(5, 5, lambda n: bytes(n))
    [1, 2, 3, 4, 5]
    """
    chosen: set[int] = set()
    for last in range(n - k + 1, n + 1):
        pick = 1 + any_below(last, source)
        chosen.add(last if pick in chosen else pick)
    return sorted(chosen)
