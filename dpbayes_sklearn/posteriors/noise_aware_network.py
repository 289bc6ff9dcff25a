"""What a Dirichlet prior becomes when counts are seen through noise of a known law."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.laws.class_rows import RowNoise
from dpbayes_sklearn.posteriors.count_inference.cell_weights import NoiseLaw
from dpbayes_sklearn.posteriors.count_inference.inference import StarInference, infer_star
from dpbayes_sklearn.posteriors.network import NetworkPosterior
from dpbayes_sklearn.statistics.counts import ReleasedCounts, Tables
from dpbayes_sklearn.statistics.network import Network

__all__ = ["NoiseAwarePosterior"]


class _Totals(NamedTuple):
    """What is known about the number of records in every state of some parents."""

    counts: IntArray
    scales: tuple[float, ...]
    root: int | None = None


@dataclass(frozen=True)
class NoiseAwarePosterior(NetworkPosterior):
    """Bayes on released counts and the public law of their noise.

    Nodes with the same parents are read together, through the row totals that their tables
    share. Those totals are also seen in the table of another family that holds the parents, if
    there is one. For a star (naive Bayes) this is the exact posterior. In other graphs every
    group of nodes is exact for what it reads, but what it learns about shared totals is not
    handed on to other groups: :attr:`exact` tells.
    """

    network: Network
    alphas: tuple[FloatArray, ...]
    released: ReleasedCounts

    @property
    def exact(self) -> bool:
        """True if this is the exact posterior given all released tables."""
        return self.network.is_star and self.released.independent

    def __getstate__(self) -> dict[str, Any]:
        """Keep what was released; everything else follows from it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _groups(self) -> list[tuple[list[int], _Totals]]:
        """Nodes with the same parents, and what another table says about their row totals."""
        members: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for node, parents in enumerate(self.network.parents):
            members[parents].append(node)
        groups = [(nodes, self._totals(parents, nodes)) for parents, nodes in members.items()]
        shared = {totals.root for _, totals in groups}
        alone = [([u for u in nodes if u not in shared], totals) for nodes, totals in groups]
        return [(nodes, totals) for nodes, totals in alone if nodes]

    def _totals(self, parents: tuple[int, ...], nodes: Sequence[int]) -> _Totals:
        """Return the parents' counts from the table that needs the fewest noisy cells for them."""
        if not parents:
            return _Totals(np.array([self.released.n]), ())
        best: tuple[int, int] | None = None
        for node, family in enumerate(self.network.families):
            if node not in nodes and set(parents) <= set(family):
                cells = prod(self.network.sizes[u] for u in family if u not in parents)
                best = min(best or (cells, node), (cells, node))
        if best is None:
            states = prod(self.network.sizes[u] for u in parents)
            return _Totals(np.zeros(states, np.int64), (np.inf,))
        cells, node = best
        family = self.network.families[node]
        others = tuple(axis for axis, u in enumerate(family) if u not in parents)
        summed = self.released.tables[node].sum(axis=others)
        kept = [u for u in family if u in parents]
        counts = np.transpose(summed, [kept.index(u) for u in parents]).ravel()
        scales = self.released.laplace_scales(node) * cells
        return _Totals(
            counts, scales, root=node if parents == (node,) and len(family) == 1 else None
        )

    def _infer(self, nodes: Sequence[int], totals: _Totals) -> StarInference:
        alpha = np.ones(len(totals.counts)) if totals.root is None else self.alphas[totals.root]
        return infer_star(
            totals.counts,
            [self.released.tables[u].reshape(len(totals.counts), -1) for u in nodes],
            self.released.n,
            class_scales=totals.scales,
            table_scales=[self.released.laplace_scales(u) for u in nodes],
            class_alpha=alpha,
            table_alphas=[self.alphas[u] for u in nodes],
            fresh=self._fresh,
        )

    @cached_property
    def _fresh(self) -> float:
        """Share of what all tables say about the class counts that is not a mere repetition.

        Joint noise has the same sum in every table, so the precision-weighted average of all
        tables' row sums has the variance of that sum, and that of independent noises of other
        batches on top. Without looking, the reading would take all tables for independent.
        """
        released, cells = self.released, np.array([*self.network.sizes[:-1], 1.0])
        shared = sum(law.total_variance for law in released.scales[-1] if isinstance(law, RowNoise))
        if not shared:
            return 1.0
        noises = [NoiseLaw(released.laplace_scales(u)).variance for u in range(len(cells))]
        own = [NoiseLaw(_independent(laws)).variance for laws in released.scales]
        precision = 1.0 / (cells * noises)
        supposed, weight = 1.0 / precision.sum(), precision / precision.sum()
        return float(min(1.0, supposed / (shared + weight**2 @ (cells * own))))

    @cached_property
    def _mean(self) -> Tables:
        means: dict[int, FloatArray] = {}
        for nodes, totals in self._groups:
            star = self._infer(nodes, totals)
            means |= dict(zip(nodes, star.table_means, strict=True))
            if totals.root is not None:
                means[totals.root] = star.class_mean
        return tuple(means[u].reshape(s) for u, s in enumerate(self.network.shapes))

    def mean(self) -> Tables:
        """Return the expected tables given the released counts."""
        return self._mean

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws: exact counts given released ones, then tables given counts."""
        draws: dict[int, FloatArray] = {}
        for nodes, totals in self._groups:
            classes, tables = self._infer(nodes, totals).sample(rng, n)
            draws |= dict(zip(nodes, tables, strict=True))
            if totals.root is not None:
                draws[totals.root] = classes
        return tuple(draws[u].reshape(n, *s) for u, s in enumerate(self.network.shapes))

    def merge(self, other: NoiseAwarePosterior) -> NoiseAwarePosterior:
        """Return the belief after both batches, whose released counts and noises add up."""
        return replace(self, released=self.released.merge(other.released))


def _independent(laws: Sequence[Fraction | RowNoise]) -> list[float]:
    """Return the scales of independent noises."""
    return [float(law) for law in laws if not isinstance(law, RowNoise)]
