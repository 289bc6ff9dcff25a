"""What the features of a record say about its class, apart from what was believed before."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.encoder import Codes
from dpbayes_sklearn.data.sparse_codes import SparseCodes
from dpbayes_sklearn.posteriors.scores import Scores, scores_of, weighted
from dpbayes_sklearn.posteriors.star_scores import StarScores
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.temperature import Evidence

__all__ = ["evidence_of"]


def evidence_of(
    network: Network, log_tables: Tables, weights: Mapping[float, FloatArray]
) -> Evidence:
    """Return the function from codes to log p(c) and the features' weighted log probabilities.

    Every row's are the same, bit by bit, wherever the row stands and whatever else there is.

    Parameters
    ----------
    weights : mapping of arrays of shape (n_features,)
        For each emphasis.
    """
    *features, classes = log_tables
    plain = (*features, np.zeros_like(classes))
    each = [weighted(plain, w) for w in weights.values()]
    if network.is_star:  # all emphases at once, as if each had classes of its own
        stacked = tuple(np.concatenate(tables) for tables in zip(*each, strict=True))
        return partial(_of_star, classes, tuple(weights), StarScores(stacked))
    prior = scores_of(network, (*map(np.zeros_like, features), classes))
    found = (scores_of(network, tables) for tables in each)
    return partial(_of_network, prior, dict(zip(weights, found, strict=True)))


def _of_star(
    classes: FloatArray, emphases: tuple[float, ...], scores: Scores, codes: Codes | SparseCodes
) -> tuple[FloatArray, dict[float, FloatArray]]:
    found = np.split(scores(codes), len(emphases), axis=1)
    return classes, dict(zip(emphases, found, strict=True))


def _of_network(
    prior: Scores, found: dict[float, Scores], codes: Codes | SparseCodes
) -> tuple[FloatArray, dict[float, FloatArray]]:
    return prior(codes), {emphasis: scores(codes) for emphasis, scores in found.items()}
