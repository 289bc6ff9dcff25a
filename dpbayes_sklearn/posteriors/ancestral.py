"""Synthetic records: every node drawn after its parents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["ancestral_sample"]


def ancestral_sample(
    network: Network, tables: Tables, n: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw ``n`` records from the network with these conditional tables; one column per node."""
    records = np.zeros((n, len(network.sizes)), np.intp)
    for node in network.order:
        rows = tables[node][tuple(records[:, u] for u in network.parents[node])]
        cumulative = np.cumsum(np.broadcast_to(rows, (n, network.sizes[node])), axis=1)
        at = rng.random((n, 1)) * cumulative[:, -1:]
        records[:, node] = (cumulative[:, :-1] <= at).sum(axis=1)
    return records
