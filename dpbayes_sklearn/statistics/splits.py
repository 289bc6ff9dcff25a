"""Balanced binary trees of splits: the shape that many-valued variables share everywhere.

The Fourier mechanism's characters and the samplers' Beta splits both walk these trees.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray

__all__ = [
    "Split",
    "depths",
    "haar",
    "inverse_haar",
    "leaf_levels",
    "leaf_probabilities",
    "signs",
    "split_tree",
    "sums_left_and_right",
]


class Split(NamedTuple):
    """A cut of the values ``start..stop-1`` into ``start..middle-1`` and ``middle..stop-1``."""

    start: int
    middle: int
    stop: int


@lru_cache(maxsize=256)
def split_tree(size: int) -> tuple[Split, ...]:
    """Return the size - 1 splits of a variable, every split before those below it.

    >>> split_tree(3)
    (Split(start=0, middle=2, stop=3), Split(start=0, middle=1, stop=2))
    """
    splits: list[Split] = []
    waiting = [(0, size)]
    while waiting:
        start, stop = waiting.pop()
        if stop - start > 1:
            middle = (start + stop + 1) // 2
            splits.append(Split(start, middle, stop))
            waiting += [(middle, stop), (start, middle)]
    return tuple(splits)


@lru_cache(maxsize=256)
def signs(size: int) -> IntArray:
    """Return h_s(v): +1 left of split s, -1 right of it, 0 elsewhere; shape (size, size - 1)."""
    table = np.zeros((size, size - 1), np.int64)
    for s, split in enumerate(split_tree(size)):
        table[split.start : split.middle, s] = 1
        table[split.middle : split.stop, s] = -1
    table.setflags(write=False)
    return table


def depths(size: int) -> IntArray:
    """Return the number of splits above every value: at most the ceiling of log2(size)."""
    above: IntArray = np.abs(signs(size)).sum(axis=1)
    return above


@lru_cache(maxsize=256)
def haar(size: int) -> IntArray:
    """Return the characters of one variable, h_0 = 1 first; shape (size, size)."""
    table = np.concatenate([np.ones((size, 1), np.int64), signs(size)], axis=1)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=256)
def inverse_haar(size: int) -> FloatArray:
    """Return M with counts = M @ coefficients.

    A node that holds N records and has coefficient c sends (N + c)/2 to the left and (N - c)/2
    to the right, so all entries are 0 or a signed power of two, and floats are exact.
    """
    on_path = np.abs(signs(size))
    passed = np.cumsum(on_path, axis=1) - on_path  # splits of v's path above split s
    levels = depths(size)[:, None] - np.concatenate([np.zeros((size, 1), int), passed], axis=1)
    table: FloatArray = haar(size) * 0.5**levels
    table.setflags(write=False)
    return table


def leaf_levels(shape: tuple[int, ...]) -> IntArray:
    """Return h, the sum of the depths of a cell's values: it receives 2^-h of the total."""
    levels: IntArray = reduce(np.add.outer, [depths(k) for k in shape])
    return levels


def sums_left_and_right(table: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return what a table holds left and right of every split of its last axis."""
    h = signs(table.shape[-1])
    return table @ (h > 0), table @ (h < 0)


def leaf_probabilities(left: FloatArray) -> FloatArray:
    """Return the probability of every value: the product of the turns on the way to it.

    ``left[..., s]`` is the probability of turning left at split s.
    """
    h = signs(left.shape[-1] + 1)
    turns = np.where(h > 0, left[..., None, :], np.where(h < 0, 1 - left[..., None, :], 1.0))
    probabilities: FloatArray = turns.prod(axis=-1)
    return probabilities
