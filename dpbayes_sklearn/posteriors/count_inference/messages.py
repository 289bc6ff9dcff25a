"""Sums of independent counts: their law, the law of each part, and draws, by convolution.

A balanced binary tree of convolutions gives the law of the total (upward), what the rest says
about every part (downward) and joint draws (downward).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.posteriors.count_inference.weights import Algebra, Segment

__all__ = ["SumTree", "Window"]

Window = Callable[[int, int], tuple[int, int]]
"""Which totals of the parts ``first, ..., last - 1`` can occur: lowest and highest."""


@dataclass(frozen=True)
class _Node:
    segment: Segment
    children: tuple[_Node, _Node] | None = None


class SumTree:
    """Independent counts that are added up.

    Parameters
    ----------
    parts : sequence of Segment
        Weight function of each count, in the numbers of ``algebra``.
    window : Window
        Bounds on partial sums, so that windows grow no faster than the truth.
    algebra : Algebra
        How the weights are stored.

    Examples
    --------
    >>> from dpbayes_sklearn.posteriors.count_inference.weights import LINEAR
    >>> die = Segment(1, np.ones(6))
    >>> two = SumTree([die, die], lambda first, last: (last - first, 6 * (last - first)), LINEAR)
    >>> two.total.start + int(np.argmax(two.total.values))
    7
    """

    def __init__(self, parts: Sequence[Segment], window: Window, algebra: Algebra) -> None:
        self.algebra = algebra
        self.parts = tuple(parts)
        self._root = self._grow(parts, window, 0, len(parts))

    @property
    def total(self) -> Segment:
        """Weights of the total."""
        return self._root.segment

    def _grow(self, parts: Sequence[Segment], window: Window, first: int, last: int) -> _Node:
        if last - first == 1:
            return _Node(parts[first])
        middle = (first + last) // 2
        left = self._grow(parts, window, first, middle)
        right = self._grow(parts, window, middle, last)
        a, b = left.segment, right.segment
        lowest, highest = window(first, last)
        lowest, highest = max(lowest, a.start + b.start), min(highest, a.stop + b.stop - 2)
        if lowest > highest:  # no total can occur: keep one point, of no weight
            empty = np.full(1, self.algebra.zero)
            return _Node(Segment(lowest, empty), (left, right))
        return _Node(self.algebra.sum(a, b, lowest, highest), (left, right))

    def parts_given(self, total: Segment) -> list[Segment]:
        """Weight of each part's value that comes from everything but the part itself.

        With weights ``total`` on the total, a part's law is its own weights times these.
        """
        out: list[Segment] = []
        self._descend(self._root, total, out)
        return out

    def _descend(self, node: _Node, total: Segment, out: list[Segment]) -> None:
        if node.children is None:
            values = self.algebra.window(total, node.segment.start, node.segment.stop - 1)
            out.append(Segment(node.segment.start, values))
            return
        total = Segment(total.start, self.algebra.scaled(total.values))
        left, right = node.children
        for child, sibling in ((left, right), (right, left)):
            given = self.algebra.difference(total, sibling.segment, child.segment)
            self._descend(child, given, out)

    def sample(self, totals: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw all parts given their total, one row for each of ``totals``."""
        out = np.empty((len(totals), len(self.parts)), dtype=np.int64)
        self._split(self._root, totals, rng, out)
        return out

    def _split(
        self, node: _Node, totals: IntArray, rng: np.random.Generator, out: IntArray
    ) -> None:
        if node.children is None:
            out[:, 0] = totals
            return
        left, right = (child.segment for child in node.children)
        values, which = np.unique(totals, return_inverse=True)
        candidates = np.arange(left.start, left.stop)
        weights = np.stack(
            [self._joint(left, right, int(value)) for value in values],
        )
        cumulative = np.cumsum(weights, axis=1)[which]
        threshold = rng.random(len(totals)) * cumulative[:, -1]
        index = np.minimum((cumulative <= threshold[:, None]).sum(axis=1), len(candidates) - 1)
        part = candidates[index]
        middle = out.shape[1] // 2
        self._split(node.children[0], part, rng, out[:, :middle])
        self._split(node.children[1], totals - part, rng, out[:, middle:])

    def _joint(self, left: Segment, right: Segment, total: int) -> FloatArray:
        """Probability weights of the left part's values when both add to ``total``."""
        mirrored = self.algebra.window(right, total - left.stop + 1, total - left.start)[::-1]
        return self.algebra.product(left.values, mirrored)
