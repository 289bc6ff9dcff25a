"""Tables of a network given noisy counts and a prior that is learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.posteriors.adaptive import (
    AdaptiveTables,
    adaptive_means,
    counts_from_rows,
    merge_counts,
)
from dpbayes_sklearn.posteriors.adaptive.row_draws import row_draws
from dpbayes_sklearn.posteriors.families import Totals, siblings
from dpbayes_sklearn.posteriors.network import NetworkPosterior
from dpbayes_sklearn.statistics.counts import ReleasedCounts, Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["AdaptivePosterior"]

_LEAST_VARIANCE = 1e-12  # of noise: at a very large epsilon floats hold none


@dataclass(frozen=True)
class AdaptivePosterior(NetworkPosterior):
    """Empirical Bayes on released counts: rows shrink to what the rows of a feature share.

    Nodes with the same parents are read together by
    :func:`~dpbayes_sklearn.posteriors.adaptive.adaptive_means`: for naive Bayes all features at
    once, with the classes as states of their parent. It is not the exact posterior of any fixed
    prior, so :attr:`exact` is False.

    Attributes
    ----------
    alphas : tuple of arrays
        Pseudo-counts; that of a node's first value is the concentration of its hyperprior.
    ordered : tuple of bool
        For every node, whether its values are adjacent intervals of a number.
    means, variances : tuples of arrays
        Posterior means and variances of all cells.
    """

    network: Network
    alphas: tuple[FloatArray, ...]
    released: ReleasedCounts
    ordered: tuple[bool, ...]
    means: Tables = field(init=False, compare=False, repr=False)
    variances: Tables = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        means: dict[int, FloatArray] = {}
        variances: dict[int, FloatArray] = {}
        for nodes, totals in siblings(self.released):
            with quiet_numpy():  # also of merged batches, and of a model that is loaded
                found = self._infer(nodes, totals)
            means |= dict(zip(nodes, found.means, strict=True))
            variances |= dict(zip(nodes, found.variances, strict=True))
            if totals.root is not None:
                means[totals.root] = found.class_probabilities
                variances[totals.root] = (found.class_deviations / max(self.released.n, 1)) ** 2
        for name, tables in (("means", means), ("variances", variances)):
            shaped = [tables[u].reshape(s) for u, s in enumerate(self.network.shapes)]
            object.__setattr__(self, name, tuple(shaped))

    @property
    def exact(self) -> bool:
        """False: the prior is learned from the release."""
        return False

    def _infer(self, nodes: Sequence[int], totals: Totals) -> AdaptiveTables:
        states, laws = len(totals.counts), self.released.laws
        tables = [self.released.tables[u].reshape(states, -1).astype(float) for u in nodes]
        noise = [max(sum(law.contrast_variance(u) for law in laws), _LEAST_VARIANCE) for u in nodes]
        counts, variance = totals.counts.astype(float), totals.noise.variance
        repeated = any(law.shared_row_variance for law in laws)  # row sums equal the class counts
        if not repeated and variance > 0.0:
            rows = counts_from_rows(tables, noise)
            seen = (counts, variance)
            counts, variance = rows if np.isinf(variance) else merge_counts(rows, seen)
        return adaptive_means(
            tables,
            counts,
            self.released.n,
            contrast_variance=noise,
            class_variance=variance,
            ordered=[self.ordered[u] for u in nodes],
            alpha=float(self.alphas[nodes[0]][0]),
            n_variance=self.released.size_noise.variance,
        )

    def mean(self) -> Tables:
        """Return the expected tables."""
        return self.means

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return draws of independent rows with the posterior's means and variances of cells."""
        pairs = zip(self.means, self.variances, strict=True)
        return tuple(row_draws(mean, variance, rng, n) for mean, variance in pairs)

    def merge(self, other: AdaptivePosterior) -> AdaptivePosterior:
        """Return the belief after both batches, whose released counts and noises add up."""
        return replace(self, released=self.released.merge(other.released))
