"""Weight functions of integers and how two of them are added or subtracted.

The weight function of a sum of independent counts is the convolution of theirs. Every number is
a sum of products of non-negative numbers: nothing cancels. :data:`LINEAR` works on weights scaled
to a maximum of one, :data:`LOG` on logarithms, for windows whose weights a double cannot span.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray

__all__ = ["LINEAR", "LOG", "Algebra", "Segment"]


_LOWEST = float(np.finfo(np.float64).min)
_AT_ONCE = 2**22  # sums of logarithms that are held in memory together


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
        """Return products of weights as they are, up to a factor, whatever the storage."""

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
        weights: FloatArray = np.exp(log_weights - max(log_weights.max(), _LOWEST))
        return weights

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
        parts = range(0, len(windows), max(1, _AT_ONCE // len(b)))
        rows = parts.step
        return np.concatenate([self._log_sums(windows[i : i + rows] + b) for i in parts])

    def _log_sums(self, terms: FloatArray) -> FloatArray:
        peak = np.maximum(terms.max(axis=1), _LOWEST)
        with np.errstate(divide="ignore"):
            total: FloatArray = peak + np.log(np.exp(terms - peak[:, None]).sum(axis=1))
        return total

    def scaled(self, a: FloatArray) -> FloatArray:
        scaled: FloatArray = a - max(a.max(), _LOWEST)
        return scaled

    def of_log(self, log_weights: FloatArray) -> FloatArray:
        return log_weights

    def to_log(self, a: FloatArray) -> FloatArray:
        return a

    def product(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return LINEAR.of_log(a + b)


LINEAR: Algebra = _Linear()
LOG: Algebra = _Log()
