r"""Naive Bayes on sparse rows, in a time that grows with the number of stored values.

.. math:: \log p(x, c) = \log p(c) + \sum_j \log p(0_j \mid c) +
          \sum_{j\text{ stored}} \log\frac{p(x_j \mid c)}{p(0_j \mid c)}
"""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.sparse_codes import SparseCodes
from dpbayes_sklearn.statistics.counts import Tables

__all__ = ["sparse_star"]


def sparse_star(log_tables: Tables, rows: SparseCodes) -> FloatArray | None:
    """Return log p(x, c) for every row and class; None if some probability is zero.

    The terms of a row are added in the order of its columns, wherever the row stands.
    """
    by_cell, n_values = _by_cell(log_tables), max(table.shape[1] for table in log_tables[:-1])
    of_zero = by_cell[np.arange(len(by_cell)), rows.zeros]
    if not np.isfinite(by_cell).all():
        return None
    gains = (by_cell - of_zero[:, None]).reshape(-1, by_cell.shape[2])
    score = np.empty((len(rows), by_cell.shape[2]))
    score[:] = log_tables[-1] + of_zero.sum(axis=0)
    filled = np.flatnonzero(np.diff(rows.starts))
    if len(filled):
        terms = gains.take(rows.columns.astype(np.intp) * n_values + rows.codes, axis=0)
        score[filled] += np.add.reduceat(terms, rows.starts[:-1][filled], axis=0)
    return score


def _by_cell(log_tables: Tables) -> FloatArray:
    """Return log p(x_j | c) as an array of shape (features, values, classes), padded with 0."""
    *features, classes = log_tables
    values = [table.shape[1] for table in features]
    padded = np.zeros((len(features), max(values), len(classes)))
    if len(set(values)) == 1:
        padded[:] = np.array(features).transpose(0, 2, 1)
        return padded
    for padding, table in zip(padded, features, strict=True):
        padding[: table.shape[1]] = table.T
    return padded
