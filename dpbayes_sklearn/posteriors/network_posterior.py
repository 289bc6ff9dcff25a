"""What every posterior over the tables of a discrete network can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.schema.encoder import Codes
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["NetworkPosterior", "log_joint"]

_BLOCK = 1024


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

    def log_predictive(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Return log p(x, c) for every row x of feature codes and every class c."""
        return log_joint(self.network, self._log_mean, codes)

    @cached_property
    def _log_mean(self) -> Tables:
        return tuple(np.log(table) for table in self.mean())


def log_joint(network: Network, log_tables: Tables, codes: Codes) -> npt.NDArray[np.float64]:
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


def _star(log_tables: Tables, codes: Codes) -> npt.NDArray[np.float64]:
    """Log p(x, c) = log p(c) + sum_j log p(x_j | c), a feature and a class at a time."""
    score = np.repeat(log_tables[-1][:, None], len(codes), axis=1)
    for column, table in zip(np.ascontiguousarray(codes.T), log_tables[:-1], strict=True):
        for of_class, values in zip(score, table, strict=True):
            of_class += values.take(column)
    return score.T


def _boolean_star(log_tables: Tables, codes: Codes) -> npt.NDArray[np.float64]:
    """Log p(x, c) = log p(c) + sum_j log p(0 | c) + sum_j x_j log(p(1 | c) / p(0 | c))."""
    features = np.stack(log_tables[:-1])
    constant = log_tables[-1] + features[:, :, 0].sum(axis=0)
    weights = features[:, :, 1] - features[:, :, 0]
    score = np.empty((len(codes), len(constant)))
    for start in range(0, len(codes), _BLOCK):  # floats of so few rows stay in the cache
        block = slice(start, start + _BLOCK)
        np.matmul(codes[block].astype(np.float64), weights, out=score[block])
    score += constant
    return score
