"""Scores of a discrete network: log p(x, c) of every record x and class c."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.encoder import Codes
from dpbayes_sklearn.data.sparse_codes import SparseCodes
from dpbayes_sklearn.posteriors.star_scores import StarScores
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["Scores", "log_joint", "scores_of", "weighted"]

Scores = Callable[[Codes | SparseCodes], FloatArray]
"""A function from codes of records to log p(x, c), one row for each record."""


def log_joint(network: Network, log_tables: Tables, codes: Codes | SparseCodes) -> FloatArray:
    """Return the sum over nodes of log p(node | parents) for every class; shape (rows, classes)."""
    return scores_of(network, log_tables)(codes)


def scores_of(network: Network, log_tables: Tables) -> Scores:
    """Return the function from codes to log p(x, c).

    Every row's are the same, bit by bit, wherever the row stands and whatever else there is.
    """
    return StarScores(log_tables) if network.is_star else partial(_by_node, network, log_tables)


def weighted(log_tables: Tables, weights: FloatArray | None) -> Tables:
    """Return the log tables times the weights of their features; the class has none."""
    if weights is None:
        return log_tables
    *features, classes = log_tables
    return (*(w * table for w, table in zip(weights, features, strict=True)), classes)


def _by_node(network: Network, log_tables: Tables, codes: Codes | SparseCodes) -> FloatArray:
    """Return the same, added node by node: a product of matrices rounds rows by their position."""
    if isinstance(codes, SparseCodes):
        codes = codes.dense()
    total = np.zeros((len(codes), network.sizes[-1]))
    for family, log_table in zip(network.families, log_tables, strict=True):
        others = [u for u in family if u != network.target]
        if len(others) == len(family):  # the same for every class
            by_class = log_table[..., None]
        else:
            by_class = np.moveaxis(log_table, family.index(network.target), -1)
        total += by_class[tuple(codes[:, u] for u in others)]
    return total
