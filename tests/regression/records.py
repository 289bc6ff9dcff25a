"""Every record of small worlds of numbers, signs and levels."""

from itertools import product

import numpy as np

from dpbayes_sklearn.convex.design import Design, Reach
from dpbayes_sklearn.schema import Categories, Interval

NUMBER, SIGN, LEVELS = Interval(-1, 1), Categories([*"ab"]), Categories([*"xyz"])
DESIGNS = [
    Design(kinds, intercept)
    for intercept in (True, False)
    for kinds in ((NUMBER,), (NUMBER, SIGN), (NUMBER, LEVELS), (LEVELS, LEVELS), (SIGN, LEVELS))
]


def reach_of(design, deviations, centre=None):
    """Windows that all reach as far, and signs that are centred at the same mean."""
    if deviations is None:
        return None
    means = None if centre is None else np.full(int(design.signs.sum()), centre)
    return Reach(np.full(design.width + 1, deviations), means)


def coordinates(design, centre=None):
    """Every record of a small world, as z = (1, x, t)."""
    c = centre or 0.0
    columns = []
    for domain in design.domains:
        if isinstance(domain, Interval):
            columns.append([[v] for v in (-1.0, 0.0, 0.5, 1.0)])
        elif domain.n_values == 2 and design.intercept:
            columns.append([[(s - c) / (1 + abs(c))] for s in (-1.0, 1.0)])
        else:
            columns.append(np.eye(domain.n_values).tolist())
    for parts in product(*columns, [[-1.0], [0.0], [1.0]]):
        yield np.array([1.0, *(value for part in parts for value in part)])


def scaled(matrix, design, grid, centre=None):
    """Every record of the small world, scaled to the bound of its norm, in steps of the grid."""
    for z in coordinates(design, centre):
        x, t = np.rint(z[None, 1:-1] * grid), np.rint(z[-1:] * grid)
        matrix.norm.clip(x, t, grid)
        yield np.concatenate([[grid], x[0], t]).astype(np.int64)
