"""Log joint probabilities of records, against plain products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.predict import log_joint


def random_tables(network: Network, seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.dirichlet(np.ones(s[-1]), s[:-1]) for s in network.shapes)


def naive(network: Network, tables: Any, codes: Any) -> Any:
    """log p(x, c) by multiplying one conditional probability per node."""
    joint = np.empty((len(codes), network.sizes[-1]))
    for i, x in enumerate(codes.tolist()):
        for c in range(network.sizes[-1]):
            record = (*x, c)
            cells = [tuple(record[u] for u in f) for f in network.families]
            joint[i, c] = math.log(
                math.prod(t[cell] for t, cell in zip(tables, cells, strict=True))
            )
    return joint


NETWORKS = [
    Network.star([2, 2, 2], 2),
    Network.star([2] * 9, 4),
    Network.star([3, 2, 5], 3),
    Network.star([1, 2], 1),
    Network((2, 3, 2), ((2,), (0,), ())),
    Network((2, 2, 3), ((), (), (0, 1))),
    Network((2, 3, 2, 4), ((3,), (0, 3), (1, 0), ())),
    Network((2, 2), ((), ())),
]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_log_joint(network: Network, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    tables = random_tables(network, 2)
    codes = np.stack([rng.integers(0, k, 30) for k in network.sizes[:-1]], axis=1).astype(dtype)
    logs = tuple(np.log(t) for t in tables)
    got = log_joint(network, logs, codes)
    assert got.shape == (30, network.sizes[-1])
    np.testing.assert_allclose(got, naive(network, tables, codes), rtol=1e-10, atol=1e-12)


def test_a_joint_law_sums_to_one() -> None:
    network = Network((2, 3, 2), ((2,), (0, 2), ()))
    logs = tuple(np.log(t) for t in random_tables(network, 5))
    codes = np.array([(i, j) for i in range(2) for j in range(3)], np.uint8)
    assert np.exp(log_joint(network, logs, codes)).sum() == pytest.approx(1)
