"""A posterior known by a few released draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.encoder import Codes
from dpbayes_sklearn.data.sparse_codes import SparseCodes
from dpbayes_sklearn.posteriors.network import NetworkPosterior
from dpbayes_sklearn.posteriors.scores import Scores, scores_of, weighted
from dpbayes_sklearn.statistics.counts import Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["DrawsPosterior"]


@dataclass(frozen=True)
class DrawsPosterior(NetworkPosterior):
    """Equally good guesses of all tables, weighed by the size of the batch they came from.

    Attributes
    ----------
    draws : tuple of arrays
        Tables with the draws along the first axis.
    weights : array of shape (n_draws,)
        Number of records behind each draw.
    """

    network: Network
    draws: Tables
    weights: FloatArray

    def mean(self) -> Tables:
        """Return the weighted average of the draws."""
        return tuple(np.average(t, axis=0, weights=self.weights) for t in self.draws)

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return ``n`` of the draws, with replacement."""
        chosen = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        return tuple(t[chosen] for t in self.draws)

    def merge(self, other: DrawsPosterior) -> DrawsPosterior:
        """Return the draws of both batches."""
        draws = tuple(np.concatenate(pair) for pair in zip(self.draws, other.draws, strict=True))
        return DrawsPosterior(self.network, draws, np.append(self.weights, other.weights))

    def scores(self, weights: FloatArray | None = None) -> Scores:
        """Return the function from codes to the log of the average of p(x, c | draw) over draws."""
        shares = self.weights / self.weights.sum()
        logs = [tuple(np.log(t[draw]) for t in self.draws) for draw in range(len(shares))]
        each = [scores_of(self.network, weighted(tables, weights)) for tables in logs]
        if len(each) == 1:
            return each[0]

        def average(codes: Codes | SparseCodes) -> FloatArray:
            per_draw = np.stack([scores(codes) for scores in each])
            return np.asarray(logsumexp(per_draw, axis=0, b=shares[:, None, None]))

        return average
