"""The interface of every noise law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray

__all__ = ["Marginal", "NoiseLaw"]


class Marginal(Protocol):
    """The distribution of the noise in a single number."""

    @property
    def variance(self) -> float:
        """Variance, or a tight bound from above; 0 without noise, infinite if nothing is known."""

    @property
    def sharpness(self) -> float:
        """Distance over which the log density changes by about one."""

    @property
    def steepest(self) -> float:
        """Supremum of the s for which :meth:`log_mgf` is finite, or large enough in practice."""

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log probability of noise ``x``, up to a constant."""

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Log of E[exp(s Z)], or a bound from above, for 0 <= s < steepest."""

    def half_width(self, terms: int, nats: float) -> float:
        """Bound that the sum of ``terms`` such noises crosses with probability below exp(-nats)."""


class NoiseLaw(ABC):
    """The public distribution of the noise that was added to the numbers of some arrays.

    Numbers and noise are multiples of 1/``grid``. A law holds no data and draws nothing:
    :func:`dpbayes_sklearn.noise.add` does.
    """

    grid: int = 1
    independent: ClassVar[bool]
    """Whether the noises of different numbers are independent."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each array has."""

    @cached_property
    def size(self) -> int:
        """How many numbers get noise in one release."""
        return sum(self.sizes)

    @abstractmethod
    def marginal(self, array: int = 0) -> Marginal:
        """Return the distribution of the noise in one number of an array."""

    def row_marginal(self, array: int = 0) -> Marginal:
        """Return the distribution of the noise in one number when the sum of its row is known.

        Numbers of a row are then taken for independent given the sum.
        """
        return self.marginal(array)

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of the noise in every number, array after array."""
        each = [self.marginal(array).variance for array in range(len(self.sizes))]
        return np.repeat(np.array(each), self.sizes)

    def variance(self, array: int = 0) -> float:
        """Return the variance of the noise in one number of an array."""
        return float(self.variances[self._starts[array]])

    @cached_property
    def _starts(self) -> IntArray:
        """Where each array begins among all numbers."""
        return np.cumsum((0, *self.sizes[:-1]))

    def log_weight(self, x: FloatArray, array: int = 0) -> FloatArray:
        """Return the log probability, up to a constant, of noise ``x`` in one number."""
        return self.marginal(array).log_weight(x)

    def contrast_variance(self, array: int = 0) -> float:
        """Variance of the noise along any unit contrast of a row (weights that add to zero)."""
        return self.variance(array)

    @property
    def shared_row_variance(self) -> float:
        """Variance of the noise that the row sums of all arrays have in common, if there is any."""
        return 0.0

    @property
    def standard(self) -> tuple[NoiseLaw, float]:
        """A law of which this one is a multiple, but for the lattice, and the factor.

        Laws of one shape share it, so that one simulation serves for every epsilon.
        """
        return self, 1.0

    @abstractmethod
    def error_bound(self, delta: float) -> float:
        """(1 - delta) bound on the largest error of all released numbers."""

    @abstractmethod
    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the worst log probability ratio if neighbours differ by ``shift``.

        Parameters
        ----------
        shift : array of int of shape (size,)
            Difference of the exact numbers, array after array.
        """
