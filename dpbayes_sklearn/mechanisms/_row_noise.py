"""One noise for all tables of naive Bayes: which law it has, and how it is added."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpbayes_sklearn.noise.rows import many_rows
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.counts import CountTables, Tables
from dpbayes_sklearn.statistics.row_noise import RowNoise, rows_vary_less

__all__ = ["row_noise_law", "with_row_noise"]


def row_noise_law(noise: str, statistics: CountTables, budget: Budget) -> RowNoise | None:
    """Return the law of joint noise, or None for independent noise, from public facts only."""
    network, epsilon = statistics.network, Fraction(budget.epsilon)
    if noise == "independent" or (noise == "auto" and not network.is_star):
        return None
    movement, sizes = statistics.row_movement(budget.unit), network.sizes[:-1]
    together = statistics.sensitivity(budget.unit)
    if movement == 0 or (
        noise == "auto" and not rows_vary_less(sizes, movement, together, epsilon)
    ):
        return None
    law = RowNoise.of(sizes, movement, epsilon)
    if statistics.n * law.grid >= 2**60:
        raise ValueError("There are too many records for joint noise; use noise='independent'.")
    return law


def with_row_noise(statistics: CountTables, law: RowNoise, source: RandomSource) -> Tables:
    """Add one noise to every class's rows, exactly: on integers, then in steps of 1/grid.

    Tables may have further axes in front, the same for all: a noise of its own for each.
    """
    steps = [law.grid * table for table in statistics.tables]
    noises = many_rows(law.sizes, law.steps, steps[-1].size, source)
    states = np.ndindex(steps[-1].shape)  # the class, after the axes in front
    for state, (total, rows) in zip(states, noises, strict=True):
        for table, row in zip(steps, [*rows, total], strict=True):
            table[state] += row
    return tuple(np.asarray(table / law.grid) for table in steps)  # a power of two: not rounded
