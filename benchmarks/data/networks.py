"""Bayesian networks of the literature, read from the BIF files inside the pgmpy wheel.

``pip install --no-deps pgmpy`` (or ``make bench-data``) brings the files; pgmpy itself is not
imported.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.data.packages import package_file
from dpbayes_sklearn import Categories, Schema
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import ancestral_sample

CLASS_OF = {"asia": "lung", "alarm": "HYPOVOLEMIA", "child": "Disease", "insurance": "Accident"}
NUMBER = r"[-+.\deE]+"


@dataclass(frozen=True)
class FiledNetwork:
    """A graph with its published tables; the class is the last node."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    network: Network
    tables: tuple[npt.NDArray[np.float64], ...]

    @property
    def parents(self) -> dict[str, list[str]]:
        """Return the graph as the classifier takes it."""
        called = (*self.names[:-1], "class")
        pairs = zip(called, self.network.parents, strict=True)
        return {child: [called[u] for u in above] for child, above in pairs}

    @property
    def schema(self) -> Schema:
        """Return the domains, the class with its values in sorted order."""
        columns = zip(self.names[:-1], self.values[:-1], strict=True)
        return Schema({n: Categories(v) for n, v in columns}, Categories(self.values[-1]))

    def simulate(
        self, n: int, seed: int
    ) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
        """Draw records, as text."""
        codes = ancestral_sample(self.network, self.tables, n, np.random.default_rng(seed))
        columns = [np.array(v, object)[codes[:, j]] for j, v in enumerate(self.values)]
        return np.stack(columns[:-1], axis=1), columns[-1]


def read_network(name: str) -> FiledNetwork:
    """Return one of asia, alarm, child and insurance."""
    path = package_file("pgmpy", f"utils/example_models/{name}.bif.gz")
    return parse(gzip.decompress(path.read_bytes()).decode(), CLASS_OF[name])


def parse(text: str, class_node: str) -> FiledNetwork:
    """Read BIF text; the node called ``class_node`` becomes the class."""
    found = re.findall(r"variable (\S+) \{\s*type discrete \[ \d+ \] \{ (.*?) \};", text)
    values = {name: tuple(listed.split(", ")) for name, listed in found}
    values[class_node] = tuple(sorted(values[class_node]))  # the order of an estimator's classes_
    names = sorted(values, key=lambda name: name == class_node)
    parents: dict[str, tuple[int, ...]] = {}
    tables: dict[str, npt.NDArray[np.float64]] = {}
    listed_as = dict(found)
    for head, body in re.findall(r"probability \( (.*?) \) \{\n(.*?)\n\}", text, re.DOTALL):
        node, *above = re.split(r" \| |, ", head)
        order = listed_as[node].split(", ")
        table = np.zeros([len(values[u]) for u in (*above, node)])
        for states, numbers in re.findall(rf"(?:table|\((.*?)\)) ({NUMBER}(?:, {NUMBER})*);", body):
            chosen = states.split(", ") if states else []
            row = tuple(values[u].index(s) for u, s in zip(above, chosen, strict=True))
            for value, number in zip(order, numbers.split(", "), strict=True):
                table[(*row, values[node].index(value))] = float(number)
        columns = [names.index(u) for u in above]
        parents[node] = tuple(sorted(columns))
        tables[node] = table.transpose(*np.argsort(columns), len(columns))
    network = Network(
        tuple(len(values[name]) for name in names), tuple(parents[name] for name in names)
    )
    normalised = (tables[name] / tables[name].sum(axis=-1, keepdims=True) for name in names)
    return FiledNetwork(tuple(names), tuple(values[n] for n in names), network, tuple(normalised))
