"""Random networks, random records of them, and their counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables

Records = npt.NDArray[np.int64]
"""One row per record: the features, then the class."""


def random_network(seed: int, max_size: int = 4, nodes: int | None = None) -> Network:
    """Return a random acyclic graph whose class may have parents like any other node."""
    rng = np.random.default_rng(seed)
    nodes = nodes or int(rng.integers(2, 6))
    order = rng.permutation(nodes)
    parents: list[tuple[int, ...]] = [()] * nodes
    for i, node in enumerate(order):
        count = int(rng.integers(0, min(i, 3) + 1))
        parents[node] = tuple(int(u) for u in rng.choice(order[:i], count, replace=False))
    return Network(tuple(int(k) for k in rng.integers(1, max_size + 1, nodes)), tuple(parents))


def random_records(network: Network, n: int, seed: int) -> Records:
    """Return records whose values are independent and uniform."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, k, n) for k in network.sizes], axis=1)


def count(network: Network, records: Records, chunk: int | None = None) -> CountTables:
    """Return the counts of records, read in chunks."""
    codes = records[:, :-1].astype(np.uint8 if max(network.sizes) <= 256 else np.uint16)
    step = chunk or max(1, len(records))
    parts = [
        (codes[i : i + step], records[i : i + step, -1].astype(np.intp))
        for i in range(0, len(records), step)
    ]
    return CountTables.count(network, parts)
