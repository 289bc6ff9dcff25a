"""Records of linear models: given ones, and all of small worlds of numbers, signs and levels."""

from itertools import product

import numpy as np

from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.schema import Categories, Interval

NUMBER, SIGN, LEVELS = Interval(-1, 1), Categories([*"ab"]), Categories([*"xyz"])
DESIGNS = [
    Design(kinds, intercept)
    for intercept in (True, False)
    for kinds in ((NUMBER,), (NUMBER, SIGN), (NUMBER, LEVELS), (LEVELS, LEVELS), (SIGN, LEVELS))
]


UNIT = Scale(0.0, 1.0)


def linear_records(X, y, design, scale=UNIT):
    """What a release of a linear model asks."""
    return LinearRecords(design, scale, LocalRecords([(Table(X), np.asarray(y, np.float64))]))


def one_record(record, design):
    """The same of a data set of one record (x, y)."""
    return linear_records(np.array([record[:-1]], dtype=object), [record[-1]], design)


def whole_steps(design, grid):
    """Every record of a small world as z = (1, x, t), in whole steps of a grid."""
    columns = []
    for domain in design.domains:
        if isinstance(domain, Interval):
            columns.append([[v] for v in (-1.0, 0.0, 0.5, 1.0)])
        elif domain.n_values == 2 and design.intercept:
            columns.append([[-1.0], [1.0]])
        else:
            columns.append(np.eye(domain.n_values).tolist())
    for parts in product([[1.0]], *columns, [[-1.0], [0.0], [1.0]]):
        yield np.rint(grid * np.concatenate(parts)).astype(np.int64)
