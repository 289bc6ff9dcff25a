"""Counting sparse rows: what is stored is counted, zeros follow by difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.data.encoder import Encoder
from dpbayes_sklearn.data.records import Part
from dpbayes_sklearn.schema.domains import Categories
from dpbayes_sklearn.statistics.network import Network

__all__ = ["count_sparse_star"]

_STORED = 1 << 18  # values that are counted at a time


def count_sparse_star(
    network: Network, encoder: Encoder, classes: Categories, part: Part
) -> tuple[npt.NDArray[Any], ...]:
    """Return the tables of a star, in time that grows with the values that are stored."""
    n_classes, d, n_values = network.sizes[-1], network.target, max(network.sizes[:-1])
    table = part.table
    of_class = np.zeros(n_classes, np.int64)
    flat = np.zeros(n_classes * d * n_values, np.int64)
    step = max(1, table.n_rows * max(_STORED, flat.size) // max(1, table.n_stored))
    for rows, matrix in table.chunks(step):
        labels = classes.encode(part.target[rows])
        of_class += np.bincount(labels, minlength=n_classes)
        label = np.repeat(labels, np.diff(matrix.indptr))
        cells = (label * d + matrix.indices) * n_values + encoder.stored(matrix)
        flat += np.bincount(cells, minlength=flat.size)
    counts = flat.reshape(n_classes, d, n_values)
    not_stored = of_class[:, None] - counts.sum(axis=2)
    counts[:, np.arange(d), encoder.zeros(table.dtype)] += not_stored
    return (*(counts[:, j, : network.sizes[j]] for j in range(d)), of_class)
