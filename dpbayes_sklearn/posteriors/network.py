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
from dpbayes_sklearn.posteriors.evidence import evidence_of
from dpbayes_sklearn.posteriors.scores import Scores, scores_of, weighted
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.temperature import Evidence, Tempering

__all__ = ["NetworkPosterior", "ancestral_sample"]


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
        return (self._scores if weights is None else self.scores(weights))(codes)

    def scores(self, weights: FloatArray | None = None) -> Scores:
        """Return the function from codes to log p(x, c)."""
        return scores_of(self.network, weighted(self._log_mean, weights))

    @cached_property
    def _scores(self) -> Scores:
        return self.scores()

    def evidence(self, emphases: tuple[float, ...]) -> Evidence:
        """Return the function from codes to log p(c) and, by emphasis, what the features say."""
        weights = {e: Tempering(1.0, e).weights(self.information) for e in emphases}
        return evidence_of(self.network, self._log_mean, weights)

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
