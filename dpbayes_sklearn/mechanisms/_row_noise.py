"""One noise for all tables of naive Bayes: how it is added."""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn.laws.class_rows import RowNoise
from dpbayes_sklearn.noise.class_rows import many_rows
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.statistics.counts import CountTables, Tables

__all__ = ["with_row_noise"]


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
    return tuple(np.asarray(table / law.grid) for table in steps)  # a power of two
