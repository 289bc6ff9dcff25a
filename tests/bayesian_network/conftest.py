"""Four networks of the literature: their graphs and numbers of values, with tables of our own.

A line of ``<name>.txt`` is a node, its number of values and its parents. Asia: Lauritzen and
Spiegelhalter (1988); alarm: Beinlich et al. (1989); child: Spiegelhalter and Cowell (1992);
insurance: Binder et al. (1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dpbayes_sklearn import Categories, Interval, Schema
from dpbayes_sklearn.counts.network import Network

# a node in the middle, a root, another in the middle, and a leaf
CLASS_OF = {"asia": "lung", "alarm": "LVFAILURE", "child": "Disease", "insurance": "PropCost"}


@dataclass(frozen=True)
class KnownNetwork:
    """A graph with tables: ``tables[i][parents' values..., value]``, the class last."""

    names: tuple[str, ...]
    network: Network
    tables: tuple[np.ndarray, ...]

    @classmethod
    def read(cls, name: str, seed: int = 0) -> KnownNetwork:
        lines = Path(__file__).with_name(f"{name}.txt").read_text().splitlines()
        nodes = {node: (int(size), parents) for node, size, *parents in map(str.split, lines)}
        names = sorted(nodes, key=lambda node: node == CLASS_OF[name])  # stable: the class last
        network = Network(
            tuple(nodes[node][0] for node in names),
            tuple(tuple(sorted(names.index(p) for p in nodes[node][1])) for node in names),
        )
        rng = np.random.default_rng(seed)
        rows = [rng.dirichlet(np.ones(shape[-1]), shape[:-1]) for shape in network.shapes]
        return cls((*names[:-1], "class"), network, tuple(rows))

    @property
    def parents(self) -> dict[str, list[str]]:
        """The graph as the classifier takes it."""
        pairs = zip(self.names, self.network.parents, strict=True)
        return {child: [self.names[u] for u in above] for child, above in pairs}

    @property
    def schema(self) -> Schema:
        *features, n_classes = self.network.sizes
        domains = [Interval(0, k - 1, bins=k) for k in features]
        return Schema(dict(zip(self.names, domains, strict=False)), Categories([*range(n_classes)]))

    def simulate(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return records: of all values the one with the largest log p + Gumbel noise."""
        rng = np.random.default_rng(seed)
        records = np.zeros((n, len(self.names)), int)
        for node in self.network.order:
            above = tuple(records[:, u] for u in self.network.parents[node])
            log_p = np.log(self.tables[node])[above]
            records[:, node] = (log_p + rng.gumbel(size=(n, self.network.sizes[node]))).argmax(1)
        return records[:, :-1], records[:, -1]


@pytest.fixture(scope="session", params=[*CLASS_OF])
def known(request: pytest.FixtureRequest) -> KnownNetwork:
    return KnownNetwork.read(request.param)


@pytest.fixture(scope="session")
def records(known: KnownNetwork) -> tuple[np.ndarray, np.ndarray]:
    return known.simulate(100_000, seed=1)


@pytest.fixture(scope="session")
def alarm() -> KnownNetwork:
    return KnownNetwork.read("alarm")
