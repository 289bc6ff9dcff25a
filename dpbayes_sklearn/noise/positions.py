"""Uniformly random sets of positions, drawn exactly: which records of many a step looks at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.noise.bernoulli import rounds, uniform_below
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["random_positions"]

Positions = npt.NDArray[np.intp]


def random_positions(n: int, size: int, source: RandomSource) -> Positions:
    """Return ``size`` different positions out of 0, ..., n-1 in order, all sets alike.

    Uniform positions are drawn one after the other, repeated ones left out, until there are
    enough: no position is special, so all sets of so many are as probable. As many are drawn at
    once as are missing, hence never one too many. Of more than a half, the others are drawn.

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> len(random_positions(1000, 300, random_source()))
    300
    >>> random_positions(4, 4, random_source()).tolist()
    [0, 1, 2, 3]
    """
    if size > n // 2:
        return np.delete(np.arange(n), _few(n, n - size, source))
    return _few(n, size, source)


def _few(n: int, size: int, source: RandomSource) -> Positions:
    chosen, again = np.empty(0, np.intp), rounds()
    while (missing := size - len(chosen)) and next(again):
        drawn = uniform_below(n, missing, source).astype(np.intp)
        drawn.sort()
        chosen = np.append(chosen, drawn)
        chosen.sort(kind="stable")  # quick for what is in order but for one place
        chosen = _without_repeats(chosen)
    return chosen


def _without_repeats(ordered: Positions) -> Positions:
    """Return ordered positions once each: several times faster than ``np.unique``."""
    first: npt.NDArray[np.bool_] = np.append(True, ordered[1:] != ordered[:-1])
    return np.asarray(ordered[first])
