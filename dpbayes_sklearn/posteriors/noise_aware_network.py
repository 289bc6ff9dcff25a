"""The posterior of a Dirichlet prior given counts with noise of a known law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.count_inference.inference import StarInference, infer_star
from dpbayes_sklearn.posteriors.families import Totals, siblings
from dpbayes_sklearn.posteriors.network import NetworkPosterior
from dpbayes_sklearn.statistics.counts import ReleasedCounts, Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["NoiseAwarePosterior"]


@dataclass(frozen=True)
class NoiseAwarePosterior(NetworkPosterior):
    """Bayes on released counts and the public law of their noise.

    Nodes with the same parents are read together, through the row totals that their tables
    share. Those totals are also seen in the table of another family that holds the parents, if
    there is one. For a star (naive Bayes) with independent noise this is the exact posterior. In
    other graphs every group of nodes is exact for what it reads, but its evidence about shared
    totals is not propagated to other groups; see :attr:`exact`.
    """

    network: Network
    alphas: tuple[FloatArray, ...]
    released: ReleasedCounts
    means: Tables = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", self._expected_tables())

    @property
    def exact(self) -> bool:
        """True if this is the exact posterior given all released tables."""
        return self.network.is_star and self.released.independent

    def _infer(self, nodes: Sequence[int], totals: Totals) -> StarInference:
        alpha = np.ones(len(totals.counts)) if totals.root is None else self.alphas[totals.root]
        return infer_star(
            totals.counts,
            [self.released.tables[u].reshape(len(totals.counts), -1) for u in nodes],
            self.released.n,
            class_noise=totals.noise,
            table_noises=[self.released.row_noise(u) for u in nodes],
            class_alpha=alpha,
            table_alphas=[self.alphas[u] for u in nodes],
            fresh=self._fresh,
            size_noise=self.released.size_noise,
        )

    @property
    def _fresh(self) -> float:
        """Share of the tables' evidence about the class counts that is independent.

        Joint noise has the same sum in every table, so the precision-weighted average of all
        tables' row sums has the variance of that sum, plus that of independent noises of other
        batches. Without this factor all tables would be treated as independent.
        """
        laws, cells = self.released.laws, np.array([*self.network.sizes[:-1], 1.0])
        shared = sum(law.shared_row_variance for law in laws)
        if not shared:
            return 1.0
        nodes = range(len(cells))
        noises = [self.released.row_noise(u).variance for u in nodes]
        own = [sum(law.variance(u) for law in laws if law.independent) for u in nodes]
        precision = 1.0 / (cells * noises)
        supposed, weight = 1.0 / precision.sum(), precision / precision.sum()
        return float(min(1.0, supposed / (shared + weight**2 @ (cells * own))))

    def _expected_tables(self) -> Tables:
        means: dict[int, FloatArray] = {}
        for nodes, totals in siblings(self.released):
            star = self._infer(nodes, totals)
            means |= dict(zip(nodes, star.table_means, strict=True))
            if totals.root is not None:
                means[totals.root] = star.class_mean
        return tuple(means[u].reshape(s) for u, s in enumerate(self.network.shapes))

    def mean(self) -> Tables:
        """Return the expected tables given the released counts."""
        return self.means

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws: exact counts given released ones, then tables given counts."""
        draws: dict[int, FloatArray] = {}
        for nodes, totals in siblings(self.released):
            classes, tables = self._infer(nodes, totals).sample(rng, n)
            draws |= dict(zip(nodes, tables, strict=True))
            if totals.root is not None:
                draws[totals.root] = classes
        return tuple(draws[u].reshape(n, *s) for u, s in enumerate(self.network.shapes))

    def merge(self, other: NoiseAwarePosterior) -> NoiseAwarePosterior:
        """Return the belief after both batches, whose released counts and noises add up."""
        return replace(self, released=self.released.merge(other.released))
