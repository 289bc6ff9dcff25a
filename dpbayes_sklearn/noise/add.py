"""Add the noise of a law to integers: one sampler for each law, found by the law's type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.base import NoiseLaw
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["add", "draw"]


@singledispatch
def draw(law: NoiseLaw, count: int, source: RandomSource) -> IntArray:
    """Draw the noise of ``count`` releases in steps of the law's grid, exactly.

    A sampler registers itself with ``@draw.register``.

    Returns
    -------
    array of int of shape (count, law.size)
        The numbers of all arrays, one array after the other.
    """
    raise TypeError(f"No sampler is registered for {type(law).__name__}.")


def add(
    arrays: Sequence[IntArray], law: NoiseLaw, source: RandomSource
) -> tuple[npt.NDArray[Any], ...]:
    """Return the arrays plus noise: integers, or exact floats if the law has a finer grid.

    Arrays may have further axes in front, the same for all: a noise of its own for each. An array
    of the law may be given in several parts, one after the other.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.laws import DiscreteLaplace
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> law = DiscreteLaplace.of(Fraction(2), sizes=[4, 2])
    >>> tables = [np.zeros((2, 2), np.int64), np.zeros(2, np.int64)]
    >>> [noisy.shape for noisy in add(tables, law, random_source(0))]
    [(2, 2), (2,)]
    """
    count = sum(array.size for array in arrays) // max(law.size, 1)
    ends = np.cumsum([0, *(array.size // max(count, 1) for array in arrays)])
    if ends[-1] != law.size or not set(np.cumsum(law.sizes)) <= set(ends):
        raise ValueError("The sizes of the arrays do not match the noise law.")
    noise = draw(law, count, source)
    steps = [
        law.grid * array + noise[:, first:last].reshape(array.shape)
        for array, first, last in zip(arrays, ends[:-1], ends[1:], strict=True)
    ]
    if law.grid == 1:
        return tuple(steps)
    return tuple(np.asarray(step / law.grid) for step in steps)  # a power of two: exact
