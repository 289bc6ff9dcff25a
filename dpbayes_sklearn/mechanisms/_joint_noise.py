"""One noise for all character sums: which law it has, and how it is added."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws.sup_norm import JointNoise, joint_varies_less
from dpbayes_sklearn.mechanisms._noisy_arrays import noise_scale
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.noise.sup_norm import discrete_boxes
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.fourier import CharacterSums

__all__ = ["noise_law", "with_joint_noise"]


def noise_law(noise: str, sums: CharacterSums, budget: Budget) -> Fraction | JointNoise:
    """Return the scale of independent noise or the law of joint noise, from public facts only."""
    epsilon, size = Fraction(budget.epsilon), sums.size
    largest, together = sums.largest_movement(budget.unit), sums.sensitivity(budget.unit)
    if largest == 0 or noise == "independent":  # what nobody can move needs no noise
        return noise_scale(together, budget)
    if noise == "auto" and not joint_varies_less(size, largest, together, epsilon):
        return noise_scale(together, budget)
    law = JointNoise.of(size, largest, epsilon)
    if sums.n * law.grid >= 2**60:
        raise ValueError("There are too many records for joint noise; use noise='independent'.")
    return law


def with_joint_noise(
    blocks: Mapping[Any, IntArray], law: JointNoise, source: RandomSource
) -> dict[Any, FloatArray]:
    """Add one noise to all sums, exactly: on integers, then in steps of 1/grid.

    Blocks may have further axes in front, the same for all: a noise of its own for each.
    """
    support, some = next(iter(blocks.items()))
    front = some.shape[: some.ndim - len(support)]
    sides = np.ones(law.size, np.int64)
    noise = discrete_boxes(sides, law.steps, int(np.prod(front)), source)
    noise = noise.reshape(*front, law.size)
    noisy, first = {}, 0
    for support, block in blocks.items():
        shape = block.shape[len(front) :]
        last = first + int(np.prod(shape))
        steps = law.grid * block + noise[..., first:last].reshape(block.shape)
        noisy[support], first = steps / law.grid, last  # a power of two: nothing is rounded
    return noisy
