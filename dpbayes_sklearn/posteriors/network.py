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
from dpbayes_sklearn.data.sparse_codes import SparseCodes
from dpbayes_sklearn.posteriors.adaptive.information import mutual_information
from dpbayes_sklearn.posteriors.sparse_star import sparse_star
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.temperature import Tempering

__all__ = ["NetworkPosterior", "ancestral_sample", "log_joint"]

_BLOCK = 1024
_ROWS = 4096
_FEW_CELLS = 512  # tables of so many cells stay in the cache


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

    def log_predictive(
        self, codes: Codes | SparseCodes, weights: FloatArray | None = None
    ) -> FloatArray:
        """Return log p(x, c) for every row x of feature codes and every class c.

        With ``weights``, the log probabilities of every feature are multiplied by its weight.
        """
        return log_joint(self.network, weighted(self._log_mean, weights), codes)

    def evidence(
        self, codes: Codes | SparseCodes, emphases: tuple[float, ...]
    ) -> tuple[FloatArray, dict[float, FloatArray]]:
        """Return log p(c) and, by emphasis, the weighted log probabilities of the features.

        Every row's are the same, bit by bit, wherever the row stands and whatever else there is.
        """
        *features, classes = self._log_mean
        nothing = np.zeros_like(classes)
        prior = _by_cells(self.network, (*map(np.zeros_like, features), classes), codes)
        found = {}
        for emphasis in emphases:
            weights = Tempering(1.0, emphasis).weights(self.information)
            found[emphasis] = _by_cells(
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


def log_joint(network: Network, log_tables: Tables, codes: Codes | SparseCodes) -> FloatArray:
    """Return the sum over nodes of log p(node | parents) for every class; shape (rows, classes)."""
    if isinstance(codes, SparseCodes) or not network.is_star or set(network.sizes[:-1]) != {2}:
        return _by_cells(network, log_tables, codes)
    return _boolean_star(log_tables, codes)


def _by_cells(network: Network, log_tables: Tables, codes: Codes | SparseCodes) -> FloatArray:
    """Return the same by cells of tables, added in one order.

    A product of matrices rounds rows differently by their position.
    """
    if isinstance(codes, SparseCodes):
        found = sparse_star(log_tables, codes) if network.is_star else None
        return _by_cells(network, log_tables, codes.dense()) if found is None else found
    if network.is_star:
        return _star(log_tables, codes)
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
    """Log p(x, c) = log p(c) + sum_j log p(x_j | c), several neighbouring features at a time."""
    *features, classes = log_tables
    n_values = max(table.shape[1] for table in features)
    together = max(1, int(np.log(_FEW_CELLS) / np.log(max(n_values, 2)) + 1e-9))
    tables = _group_tables(features, n_values, together)
    score = np.empty((len(codes), len(classes)))
    score[:] = classes
    term = np.empty((min(_ROWS, len(codes)), len(classes)))
    for start in range(0, len(codes), _ROWS):
        block, total = codes[start : start + _ROWS], score[start : start + _ROWS]
        for cells, table in zip(_cells(block, n_values, together), tables, strict=True):
            total += table.take(cells, axis=0, out=term[: len(total)], mode="clip")
    return score


def _group_tables(features: list[FloatArray], n_values: int, together: int) -> list[FloatArray]:
    """Return log p(x_i, x_j, ... | c) for each group of features, by cell and class.

    The cell is (x_i * n_values + x_j) * n_values + ...; features that a last group lacks are 0.
    """
    n_classes, groups = len(features[0]), -(-len(features) // together)
    padded = np.zeros((groups * together, n_values, n_classes))
    for padding, table in zip(padded, features, strict=False):
        padding[: table.shape[1]] = table.T
    each = padded.reshape(groups, together, n_values, n_classes)
    tables = each[:, 0]
    for i in range(1, together):
        sums = tables[:, :, None] + each[:, i, None]
        tables = sums.reshape(groups, -1, n_classes)
    return list(tables)


def _cells(codes: Codes, n_values: int, together: int) -> npt.NDArray[np.intp]:
    """Return the cells of all groups of columns, a row for each group."""
    n, d = codes.shape
    cells = np.zeros((n, -(-d // together)), np.uint16)
    for i in range(together):
        column = codes[:, i::together].astype(np.uint16, copy=False)
        if i:
            cells *= n_values
        cells[:, : column.shape[1]] += column
    return cells.T.astype(np.intp)


def _boolean_star(log_tables: Tables, codes: Codes) -> FloatArray:
    """Log p(x, c) = log p(c) + sum_j log p(0 | c) + sum_j x_j log(p(1 | c) / p(0 | c)).

    A product of matrices adds in an order that depends on the position of a row, so it is of
    numbers whose sums are exact in any order: the same record has the same result everywhere.
    """
    features = np.array(log_tables[:-1])
    constant = log_tables[-1] + features[:, :, 0].sum(axis=0)
    weights = _exact_in_sums((features[:, :, 1] - features[:, :, 0]).T)
    score = np.empty((len(constant), len(codes)))
    floats = np.empty((min(_BLOCK, len(codes)), codes.shape[1]))
    for start in range(0, len(codes), _BLOCK):  # floats of so few rows stay in the cache
        block = codes[start : start + _BLOCK]
        x = floats[: len(block)]
        np.copyto(x, block)
        for row, weight in zip(score, weights, strict=True):  # faster than one product of matrices
            np.dot(x, weight, out=row[start : start + _BLOCK])
    score += constant[:, None]
    return score.T


def _exact_in_sums(rows: FloatArray) -> FloatArray:
    """Return rows rounded to multiples of a power of two, so that no sum of a row's rounds.

    With a total of at most T in a row, multiples of s = T / 2**51 add up to less than 2**53 s.

    >>> thirds = _exact_in_sums(np.full((1, 3), 1 / 3))[0]
    >>> bool(abs(thirds[0] - 1 / 3) < 2.0**-50), bool(thirds.sum() == 3 * thirds[0])
    (True, True)
    """
    total = float(np.abs(rows).sum(axis=1).max(initial=0.0))
    if not 2.0**-900 < total < np.inf:  # so small that it changes no sum
        return rows.copy()
    step = 2.0 ** (np.frexp(total)[1] - 51)
    return np.asarray(np.rint(rows / step) * step)


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
