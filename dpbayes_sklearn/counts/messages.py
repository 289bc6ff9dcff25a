"""Sums of independent counts: their law, the law of each part, and draws, by convolution.

**Weight functions of integers and how two of them are added or subtracted.**

The weight function of a sum of independent counts is the convolution of theirs. Every number is
a sum of products of non-negative numbers: nothing cancels. :data:`LINEAR` works on weights scaled
to a maximum of one, :data:`LOG` on logarithms, for windows whose weights a double cannot span.

A balanced binary tree of convolutions gives the law of the total (upward), what the rest says
about every part (downward) and joint draws (downward).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray

# Stands for minus infinity where one would be subtracted from another.
_LOWEST = float(np.finfo(np.float64).min)
_MOST_SUMS = 2**22  # At most this many sums of logarithms are held in memory.


@dataclass(frozen=True)
class Segment:
    """A weight function on the integers ``start, start + 1, ...``; zero elsewhere."""

    start: int
    values: FloatArray

    @property
    def stop(self) -> int:
        """First integer after the window."""
        return self.start + len(self.values)


class Algebra(ABC):
    """How weights are stored and therefore added and multiplied."""

    zero: ClassVar[float]

    @abstractmethod
    def convolve(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return sum_i a(i) b(s - i) for every s."""

    @abstractmethod
    def correlate(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return sum_j a(i + j) b(j) for every i at which ``b`` lies inside ``a``."""

    @abstractmethod
    def scaled(self, a: FloatArray) -> FloatArray:
        """Return the weights divided by the largest of them."""

    @abstractmethod
    def of_log(self, log_weights: FloatArray) -> FloatArray:
        """Return stored weights, up to a factor."""

    @abstractmethod
    def to_log(self, a: FloatArray) -> FloatArray:
        """Return log weights."""

    @abstractmethod
    def product(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return products of weights up to a factor, for dense and for compressed storage."""

    def window(self, a: Segment, lowest: int, highest: int) -> FloatArray:
        """Return the weights of ``a`` on ``lowest, ..., highest``."""
        if a.start <= lowest and highest < a.stop:
            return a.values[lowest - a.start : highest + 1 - a.start]
        out = np.full(highest + 1 - lowest, self.zero)
        first, last = max(lowest, a.start), min(highest + 1, a.stop)
        if first < last:
            out[first - lowest : last - lowest] = a.values[first - a.start : last - a.start]
        return out

    def sum(self, a: Segment, b: Segment, lowest: int, highest: int) -> Segment:
        """Return the weights of a sum on ``lowest, ..., highest``: sum_i a(i) b(s - i)."""
        if len(a.values) > len(b.values):
            a, b = b, a
        if highest + 1 - lowest < len(b.values):  # few totals asked for: compute no others
            near = self.window(b, lowest - a.stop + 1, highest - a.start)
            return Segment(lowest, self.scaled(self.correlate(near, a.values[::-1])))
        full = Segment(a.start + b.start, self.convolve(a.values, b.values))
        return Segment(lowest, self.scaled(self.window(full, lowest, highest)))

    def difference(self, total: Segment, other: Segment, part: Segment) -> Segment:
        """Return what weights of the total say about a part: sum_s total(s) other(s - i)."""
        lowest, highest = part.start, part.stop - 1
        if len(total.values) < len(part.values):
            full = self.convolve(total.values, other.values[::-1])
            every = Segment(total.start - other.stop + 1, full)
            return Segment(lowest, self.window(every, lowest, highest))
        near = self.window(total, lowest + other.start, highest + other.stop - 1)
        return Segment(lowest, self.correlate(near, other.values))


class _Linear(Algebra):
    zero = 0.0

    def convolve(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.convolve(a, b)

    def correlate(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.correlate(a, b, "valid")

    def scaled(self, a: FloatArray) -> FloatArray:
        peak = a.max()
        return a / peak if peak > 0.0 else a

    def of_log(self, log_weights: FloatArray) -> FloatArray:
        return np.asarray(np.exp(log_weights - max(log_weights.max(), _LOWEST)))

    def to_log(self, a: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(a)

    def product(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return a * self.scaled(b)


class _Log(Algebra):
    zero = -np.inf

    def convolve(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return self.correlate(np.pad(a, len(b) - 1, constant_values=-np.inf), b[::-1])

    def correlate(self, a: FloatArray, b: FloatArray) -> FloatArray:
        windows = np.lib.stride_tricks.sliding_window_view(a, len(b))
        parts = range(0, len(windows), max(1, _MOST_SUMS // len(b)))
        rows = parts.step
        return np.concatenate([self._log_sums(windows[i : i + rows] + b) for i in parts])

    def _log_sums(self, terms: FloatArray) -> FloatArray:
        peak = np.maximum(terms.max(axis=1), _LOWEST)
        with np.errstate(divide="ignore"):
            total: FloatArray = peak + np.log(np.exp(terms - peak[:, None]).sum(axis=1))
        return total

    def scaled(self, a: FloatArray) -> FloatArray:
        return np.asarray(a - max(a.max(), _LOWEST))

    def of_log(self, log_weights: FloatArray) -> FloatArray:
        return log_weights

    def to_log(self, a: FloatArray) -> FloatArray:
        return a

    def product(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return LINEAR.of_log(a + b)


LINEAR: Algebra = _Linear()  # Sums of products, for weights that neither overflow nor vanish.
LOG: Algebra = _Log()  # The same with logarithms, where they might.


TotalsWindow = Callable[[int, int], tuple[int, int]]
"""Which totals of the parts ``first, ..., last - 1`` can occur: lowest and highest."""


@dataclass(frozen=True)
class _Subtree:
    segment: Segment
    children: tuple[_Subtree, _Subtree] | None = None


class SumTree:
    """Independent counts that are added up; ``parts`` are their weights in some algebra.

    ``window(first, last)`` bounds partial sums, so that windows grow no faster than the truth.

    >>> from dpbayes_sklearn.counts.messages import LINEAR
    >>> die = Segment(1, np.ones(6))
    >>> two = SumTree([die, die], lambda first, last: (last - first, 6 * (last - first)), LINEAR)
    >>> two.total.start + int(np.argmax(two.total.values))
    7
    """

    def __init__(self, parts: Sequence[Segment], window: TotalsWindow, algebra: Algebra) -> None:
        self.algebra = algebra
        self.parts = tuple(parts)
        self._root = self._grow(parts, window, 0, len(parts))

    @property
    def total(self) -> Segment:
        """Weights of the total."""
        return self._root.segment

    def _grow(
        self, parts: Sequence[Segment], window: TotalsWindow, first: int, last: int
    ) -> _Subtree:
        if last - first == 1:
            return _Subtree(parts[first])
        middle = (first + last) // 2
        left = self._grow(parts, window, first, middle)
        right = self._grow(parts, window, middle, last)
        a, b = left.segment, right.segment
        lowest, highest = window(first, last)
        lowest, highest = max(lowest, a.start + b.start), min(highest, a.stop + b.stop - 2)
        if lowest > highest:  # no total can occur: keep one point, of no weight
            empty = np.full(1, self.algebra.zero)
            return _Subtree(Segment(lowest, empty), (left, right))
        return _Subtree(self.algebra.sum(a, b, lowest, highest), (left, right))

    def parts_given(self, total: Segment) -> list[Segment]:
        """Weight of each part's value that comes from everything but the part itself.

        With weights ``total`` on the total, a part's law is its own weights times these.
        """
        out: list[Segment] = []
        self._descend(self._root, total, out)
        return out

    def _descend(self, node: _Subtree, total: Segment, out: list[Segment]) -> None:
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
        self, node: _Subtree, totals: IntArray, rng: np.random.Generator, out: IntArray
    ) -> None:
        if node.children is None:
            out[:, 0] = totals
            return
        left, right = (child.segment for child in node.children)
        values, which = np.unique(totals, return_inverse=True)
        candidates = np.arange(left.start, left.stop)
        weights = np.stack([self._joint(left, right, int(value)) for value in values])
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
