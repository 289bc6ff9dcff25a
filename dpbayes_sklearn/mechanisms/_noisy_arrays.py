"""Discrete Laplace noise on several arrays of integers at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.noise.discrete_laplace import MAX_TERM, discrete_laplace, representable_scale
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.budget import Budget

__all__ = ["noise_scale", "with_noise"]


def noise_scale(sensitivity: int, budget: Budget) -> Fraction:
    """Return b = sensitivity / epsilon, or the next scale above that can be drawn exactly."""
    scale = Fraction(sensitivity) / Fraction(budget.epsilon)
    if scale > MAX_TERM:
        raise ValueError(
            f"epsilon={float(budget.epsilon):g} is too small: the noise would not fit into 64 bits."
        )
    return representable_scale(scale)


def with_noise(
    arrays: Sequence[IntArray], scale: Fraction, source: RandomSource
) -> tuple[IntArray, ...]:
    """Add independent noise to every cell, all of it drawn at once because that is faster."""
    ends = np.cumsum([array.size for array in arrays])
    noise = discrete_laplace(scale, int(ends[-1]) if len(ends) else 0, source)
    parts = np.split(noise, ends[:-1])
    return tuple(a + part.reshape(a.shape) for a, part in zip(arrays, parts, strict=False))
