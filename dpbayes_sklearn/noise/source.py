"""Where random bytes come from: the operating system, or a seed for tests and papers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["RandomSource", "Seed", "random_source"]

_AHEAD = 2048  # A seeded generator draws this many bytes at a time.

RandomSource = Callable[[int], bytes]
"""A callable that returns the asked number of uniformly random bytes."""


Seed: TypeAlias = int | np.random.RandomState | None
"""What the parameter ``random_state`` of an estimator may be."""


def random_source(random_state: Seed = None, stream: int = 0) -> RandomSource:
    """Return the source of noise for one release.

    Parameters
    ----------
    random_state : int, RandomState or None
        ``None`` reads the operating system's secure generator, which no call of
        ``numpy.random.seed`` and no fork can repeat. A seed makes the noise
        reproducible and therefore removable: never use one for a real release.
    stream : int, default=0
        Releases that are made with one seed and published together need a stream each: noise
        that repeats cancels.

    Examples
    --------
    >>> random_source(0)(4) == random_source(0)(4)
    True
    >>> len(random_source()(16))
    16
    """
    if random_state is None:
        return os.urandom
    if isinstance(random_state, np.random.RandomState):
        source: RandomSource = random_state.bytes
        return source
    if stream:
        return _Ahead(np.random.RandomState([random_state, stream]))
    return _Ahead(check_random_state(random_state))


class _Ahead:
    """Bytes of a seeded generator, drawn many at a time, because a call for a few bytes is slow.

    They equal those of single calls of ``RandomState.bytes``, which uses up whole words of four
    bytes, and one word even for a request of no bytes.
    """

    def __init__(self, generator: np.random.RandomState) -> None:
        self._generator, self._drawn, self._next = generator, b"", 0

    def __call__(self, length: int) -> bytes:
        """Return the next bytes."""
        start, size = self._next, max(4, -(-length // 4) * 4)
        if start + size > len(self._drawn):
            self._drawn = self._drawn[start:] + self._generator.bytes(max(size, _AHEAD))
            start = 0
        self._next = start + size
        return self._drawn[start : start + length]
