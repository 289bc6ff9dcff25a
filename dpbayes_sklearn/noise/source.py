"""Where random bytes come from: the operating system, or a seed for tests and papers."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["RandomSource", "random_source"]

RandomSource = Callable[[int], bytes]
"""A callable that returns the asked number of uniformly random bytes."""


def random_source(
    random_state: int | np.random.RandomState | None = None, stream: int = 0
) -> RandomSource:
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
    if stream and not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState([random_state, stream])
    source: RandomSource = check_random_state(random_state).bytes
    return source
