r"""The first coordinates of a linear model: a public linear map of the constant and x.

Numbers are counted in spreads from their centres, once these were released. Signs stay -1 or 1. The
K levels of a column become :math:`K - 1` contrasts, which have unit mean squares where levels are
equally frequent: a constant of a column is part of the intercept.
"""

from __future__ import annotations

import math

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.design import Design


def n_coordinates(design: Design) -> int:
    """Return the p: the constant, numbers, signs, and contrasts of levels."""
    return len(first_map(design, np.zeros(0), np.ones(0)))


def first_map(design: Design, centres: FloatArray, spreads: FloatArray) -> FloatArray:
    """Return the map (p, width + 1) of (1, x), by where the numbers lie on their bounds.

    Without an intercept numbers are not centred, and the first column of levels has them all.

    >>> from dpbayes_sklearn.schema import Categories, Interval
    >>> design = Design((Interval(0, 10), Categories([*"xyz"])))
    >>> first_map(design, np.array([0.5]), np.array([0.25])).round(2).tolist()
    [[1.0, 0.0, 0.0, 0.0, 0.0], [-2.0, 4.0, 0.0, 0.0, 0.0], [0.0, 0.0, ...], [0.0, 0.0, ...]]
    """
    units = np.eye(design.width + 1)
    rows = [units[:1]] if design.intercept else []
    numbers = 1 + np.flatnonzero(design.numbers)
    if len(centres) == 0:
        centres, spreads = np.zeros(len(numbers)), np.ones(len(numbers))
    slopes = units[numbers] / spreads[:, None]
    slopes[:, 0] = -centres / spreads if design.intercept else 0.0
    rows += [slopes, units[1 + np.flatnonzero(design.signs)]]
    whole = not design.intercept
    for column in np.unique(design.column[design.levels]):
        places = 1 + np.flatnonzero((design.column == column) & design.levels)
        rows.append(_contrasts(len(places), whole) @ units[places])
        whole = False
    return np.concatenate(rows)


def _contrasts(levels: int, whole: bool) -> FloatArray:
    """Return orthogonal contrasts of length sqrt(K), or the levels themselves."""
    if whole:
        return math.sqrt(levels) * np.eye(levels)
    k = np.arange(1, levels)
    rows = np.tril(np.ones((levels - 1, levels)))
    rows[k - 1, k] = -k
    return np.asarray(rows * np.sqrt(levels / (k * (k + 1)))[:, None])
