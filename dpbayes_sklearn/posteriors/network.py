"""The interface of posteriors over the tables of a discrete network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.encoder import Codes
from dpbayes_sklearn.posteriors.adaptive.information import mutual_information
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.temperature import Tempering

__all__ = ["NetworkPosterior", "ancestral_sample", "log_joint"]

_BLOCK = 1024
_ROWS = 4096
_FEW_CELLS = 1024  # tables of so many cells stay in the cache


class NetworkPosterior(ABC):
    """A released belief about the conditional tables of a network.

    ``tables[i][parents' values..., value]`` is the probability of the node's value given its
    parents'. Nothing here is derived from exact data.
    """

    network: Network

    @abstractmethod
    def mean(self) -> Tables:
        """Return the expected tables."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return ``n`` joint draws of the tables, along a new first axis."""

    @abstractmethod
    def merge(self, other: Any) -> NetworkPosterior:
        """Return the posterior after another batch of other people."""

    @property
    def untempered(self) -> NetworkPosterior:
        """The belief that takes the features' evidence in full."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Keep what was released and inferred; logarithms are taken again at need."""
        return {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]

    def log_predictive(self, codes: Codes, weights: FloatArray | None = None) -> FloatArray:
        """Return log p(x, c) for every row x of feature codes and every class c.

        With ``weights``, the log probabilities of every feature are multiplied by its weight.
        """
        return log_joint(self.network, weighted(self._log_mean, weights), codes)

    def evidence(
        self, codes: Codes, emphases: tuple[float, ...]
    ) -> tuple[FloatArray, dict[float, FloatArray]]:
        """Return log p(c) and, by emphasis, the weighted log probabilities of the features."""
        *features, classes = self._log_mean
        nothing = np.zeros_like(classes)
        prior = log_joint(self.network, (*map(np.zeros_like, features), classes), codes)
        found = {}
        for emphasis in emphases:
            weights = Tempering(1.0, emphasis).weights(self.information)
            found[emphasis] = log_joint(
                self.network, weighted((*features, nothing), weights), codes
            )
        return prior, found

    @cached_property
    def information(self) -> FloatArray:
        """Mutual information of every feature and the class; the same for all but naive Bayes."""
        *features, classes = self.mean()
        if not self.network.is_star:
            return np.ones(len(features))
        return np.array([mutual_information(classes, table) for table in features])

    @cached_property
    def _log_mean(self) -> Tables:
        return tuple(np.log(table) for table in self.mean())


def weighted(log_tables: Tables, weights: FloatArray | None) -> Tables:
    """Return the log tables times the weights of their features; the class has none."""
    if weights is None:
        return log_tables
    *features, classes = log_tables
    return (*(w * table for w, table in zip(weights, features, strict=True)), classes)


def log_joint(network: Network, log_tables: Tables, codes: Codes) -> FloatArray:
    """Return the sum over nodes of log p(node | parents) for every class; shape (rows, classes)."""
    if network.is_star:
        boolean = set(network.sizes[:-1]) == {2}
        return _boolean_star(log_tables, codes) if boolean else _star(log_tables, codes)
    total = np.zeros((len(codes), network.sizes[-1]))
    for family, log_table in zip(network.families, log_tables, strict=True):
        others = [u for u in family if u != network.target]
        if len(others) == len(family):  # the same for every class
            by_class = log_table[..., None]
        else:
            by_class = np.moveaxis(log_table, family.index(network.target), -1)
        total += by_class[tuple(codes[:, u] for u in others)]
    return total


def _star(log_tables: Tables, codes: Codes) -> FloatArray:
    """Log p(x, c) = log p(c) + sum_j log p(x_j | c), two neighbouring features at a time."""
    *features, classes = log_tables
    n_values = max(table.shape[1] for table in features)
    if codes.dtype == np.uint8 and n_values**2 <= _FEW_CELLS:
        pairs = list(zip(features[::2], features[1::2], strict=False))
        tables = [_pair_table(*pair, n_values) for pair in pairs] + features[2 * len(pairs) :]
    else:
        pairs, tables = [], features
    tables = [np.ascontiguousarray(table.T) for table in tables]
    score = np.empty((len(codes), len(classes)))
    score[:] = classes
    term = np.empty((_ROWS, len(classes)))
    for start in range(0, len(codes), _ROWS):
        block, total = codes[start : start + _ROWS], score[start : start + _ROWS]
        for cells, table in zip(_cells(block, len(pairs), n_values), tables, strict=True):
            total += table.take(cells, axis=0, out=term[: len(total)], mode="clip")
    return score


def _pair_table(first: FloatArray, second: FloatArray, n_values: int) -> FloatArray:
    """Return log p(x_i, x_j | c) for the cell x_i * n_values + x_j."""
    table = np.zeros((len(first), n_values, n_values))
    table[:, : first.shape[1], : second.shape[1]] = first[:, :, None] + second[:, None, :]
    return table.reshape(len(first), -1)


def _cells(codes: Codes, n_pairs: int, n_values: int) -> npt.NDArray[np.intp]:
    """Return the cells of the pairs of columns, and the last column if it has no partner.

    Two bytes are read as one word, whose lower byte is the first column, so that both columns
    are computed with at once.
    """
    if not n_pairs:
        return codes.T.astype(np.intp)
    words = np.ascontiguousarray(codes[:, : 2 * n_pairs]).view("<u2")
    cells = ((words & 255) * n_values + (words >> 8)).T.astype(np.intp)
    return np.concatenate([cells, codes[:, 2 * n_pairs :].T])


def _boolean_star(log_tables: Tables, codes: Codes) -> FloatArray:
    """Log p(x, c) = log p(c) + sum_j log p(0 | c) + sum_j x_j log(p(1 | c) / p(0 | c))."""
    features = np.array(log_tables[:-1])
    constant = log_tables[-1] + features[:, :, 0].sum(axis=0)
    weights = features[:, :, 1] - features[:, :, 0]
    score = np.empty((len(codes), len(constant)))
    floats = np.empty((_BLOCK, codes.shape[1]))
    for start in range(0, len(codes), _BLOCK):  # floats of so few rows stay in the cache
        block = codes[start : start + _BLOCK]
        x = floats[: len(block)]
        np.copyto(x, block)
        np.matmul(x, weights, out=score[start : start + _BLOCK])
    score += constant
    return score


def ancestral_sample(
    network: Network, tables: Tables, n: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw ``n`` records from the network, every node after its parents; one column per node."""
    records = np.zeros((n, len(network.sizes)), np.intp)
    for node in network.order:
        rows = tables[node][tuple(records[:, u] for u in network.parents[node])]
        cumulative = np.cumsum(np.broadcast_to(rows, (n, network.sizes[node])), axis=1)
        at = rng.random((n, 1)) * cumulative[:, -1:]
        records[:, node] = (cumulative[:, :-1] <= at).sum(axis=1)
    return records
