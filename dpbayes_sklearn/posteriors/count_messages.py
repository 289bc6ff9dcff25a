"""Sums of independent counts: their law, the law of each part, and draws, by convolution.

Counts live on a lattice of integers, each with a weight function that is known in a window. The
weight function of a sum is the convolution of the parts', so a balanced binary tree of
convolutions gives the law of the total (upward), what the rest says about every part (downward)
and joint draws (downward). Every number is a sum of products of non-negative numbers: nothing
cancels. :data:`LINEAR` works on weights scaled to a maximum of one, :data:`LOG` on their
logarithms, for windows whose weights a double cannot span.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["LINEAR", "LOG", "Algebra", "Segment", "SumTree", "Window"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Window = Callable[[int, int], tuple[int, int]]
"""Which totals of the parts ``first, ..., last - 1`` can occur: lowest and highest."""

_LOWEST = float(np.finfo(float).min)


@dataclass(frozen=True)
class Segment:
    """A weight function on the integers ``start, start + 1, ...``; zero elsewhere."""

    start: int
    values: FloatArray

    @property
    def stop(self) -> int:
        """First integer after the window."""
        return self.start + len(self.values)


@dataclass(frozen=True)
class Algebra:
    """How weights are stored and therefore added and multiplied.

    ``product`` returns weights themselves, up to a factor, whatever the storage.
    """

    zero: float
    convolve: Callable[[FloatArray, FloatArray], FloatArray]
    correlate: Callable[[FloatArray, FloatArray], FloatArray]
    scaled: Callable[[FloatArray], FloatArray]
    of_log: Callable[[FloatArray], FloatArray]
    to_log: Callable[[FloatArray], FloatArray]
    product: Callable[[FloatArray, FloatArray], FloatArray]

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


def _scaled(values: FloatArray) -> FloatArray:
    peak = float(values.max())
    return values / peak if peak > 0 else values


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _log_sum(values: FloatArray) -> FloatArray:
    """Log of the sum of exponentials along the last axis; minus infinity when there is none."""
    peak: FloatArray = np.maximum(values.max(axis=-1), _LOWEST)
    return peak + _log(np.exp(values - peak[..., None]).sum(axis=-1))


def _log_correlate(a: FloatArray, b: FloatArray) -> FloatArray:
    return _log_sum(np.lib.stride_tricks.sliding_window_view(a, len(b)) + b)


def _log_convolve(a: FloatArray, b: FloatArray) -> FloatArray:
    return _log_correlate(np.pad(a, len(b) - 1, constant_values=-np.inf), b[::-1])


LINEAR = Algebra(
    zero=0.0,
    convolve=lambda a, b: np.convolve(a, b),
    correlate=lambda a, b: np.correlate(a, b, "valid"),
    scaled=_scaled,
    of_log=lambda a: np.exp(a - max(a.max(), _LOWEST)),
    to_log=_log,
    product=lambda a, b: a * _scaled(b),
)
LOG = Algebra(
    zero=-np.inf,
    convolve=_log_convolve,
    correlate=_log_correlate,
    scaled=lambda a: a - max(a.max(), _LOWEST),
    of_log=lambda a: a,
    to_log=lambda a: a,
    product=lambda a, b: LINEAR.of_log(a + b),
)


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
    window : callable
        Bounds on partial sums, so that windows grow no faster than the truth.
    algebra : Algebra
        :data:`LINEAR` or :data:`LOG`.

    Examples
    --------
    >>> die = Segment(1, np.ones(6))
    >>> two = SumTree([die, die], lambda first, last: (2 * (last - first) // 2, 12), LINEAR)
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
