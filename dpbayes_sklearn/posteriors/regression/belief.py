"""What inference returns."""

from __future__ import annotations

from typing import NamedTuple

from dpbayes_sklearn._typing import FloatArray

__all__ = ["EXPLAINED", "Belief"]

EXPLAINED = 0.2
"""Public guess: the share of the target's variance that the features explain."""


class Belief(NamedTuple):
    """Mean and covariance of (constant, coefficients), and the variance around the regression."""

    mean: FloatArray
    covariance: FloatArray
    noise: float
