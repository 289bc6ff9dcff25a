r"""Posteriors over the tables of a discrete network.

**A posterior whose predictions raise the features' probabilities to powers.**

.. math:: p(c \mid x) \propto p(c) \exp\Big(\sum_j w_j \ln p(x_j \mid c)\Big)

Features are not independent given the class, so naive Bayes counts some evidence several times. The
weights :math:`w_j` follow from a temperature and from each feature's mutual information with the
class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.counts.adaptive_cells import mutual_information
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.predict import Scores, evidence_of, scores_of, weighted
from dpbayes_sklearn.counts.tables import ReleasedCounts, Tables
from dpbayes_sklearn.counts.temperature import Evidence, Tempering
from dpbayes_sklearn.data.encoder import Codes, SparseCodes
from dpbayes_sklearn.noise import Marginal
from dpbayes_sklearn.noise.law import UNKNOWN, sum_of


class NetworkPosterior(ToArviz, ABC):
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
        """Pickle what was released and inferred; logarithms are recomputed when needed."""
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

    def log_tables(self, weights: FloatArray | None = None) -> Tables | None:
        """Return what the scores of predictions add up; None if they are averages over draws."""
        return weighted(self._log_mean, weights)

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


@dataclass(frozen=True)
class InferredPosterior(NetworkPosterior):
    """A belief that is inferred once, from what was released and the public law of its noise."""

    network: Network
    alphas: tuple[FloatArray, ...]  # Pseudo-counts of the values of every node.
    released: Any
    means: Tables = field(init=False, compare=False, repr=False)

    def mean(self) -> Tables:
        """Return the expected tables given what was released."""
        return self.means

    def merge(self, other: Self) -> Self:
        """Return the belief after both batches, whose released numbers and noises add up."""
        return replace(self, released=self.released.merge(other.released))


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


@dataclass(frozen=True)
class DrawsPosterior(NetworkPosterior):
    """Equally good guesses of all tables, weighed by the size of the batch they came from."""

    network: Network
    draws: Tables  # Tables with the draws along the first axis.
    weights: FloatArray  # (n_draws,): number of records behind each draw.

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

    def log_tables(self, weights: FloatArray | None = None) -> Tables | None:
        """Return the tables of a single draw; None if predictions are averages over several."""
        one = len(self.weights) == 1
        return weighted(tuple(np.log(t[0]) for t in self.draws), weights) if one else None

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


@dataclass(frozen=True)
class TemperedPosterior(NetworkPosterior):
    """A posterior of tables, with the weights of the features in predictions."""

    posterior: NetworkPosterior  # The belief about the tables, which a temperature does not change.
    tempering: Tempering
    n: int  # Number of records of the batch that the temperature was chosen for.
    # (n_features,): the weight of every feature's log probabilities.
    weights: FloatArray = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        weights = self.tempering.weights(self.posterior.information)
        object.__setattr__(self, "weights", weights)

    @property
    def network(self) -> Network:  # type: ignore[override]
        """The graph."""
        return self.posterior.network

    @property
    def untempered(self) -> NetworkPosterior:
        """The belief that takes the features' evidence in full."""
        return self.posterior

    @property
    def released(self) -> Any:
        """What was released about the tables; None for draws."""
        return getattr(self.posterior, "released", None)

    @property
    def exact(self) -> bool:
        """True if the belief about the tables is the exact posterior."""
        return bool(getattr(self.posterior, "exact", False))

    def mean(self) -> Tables:
        """Return the expected tables."""
        return self.posterior.mean()

    @property
    def information(self) -> FloatArray:
        """Mutual information of every feature and the class."""
        return self.posterior.information

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return joint draws of the tables."""
        return self.posterior.sample(rng, n)

    def log_tables(self, weights: FloatArray | None = None) -> Tables | None:
        """Return the weighted tables that the scores of predictions add up."""
        return self.posterior.log_tables(self.weights if weights is None else weights)

    def scores(self, weights: FloatArray | None = None) -> Scores:
        """Return the function from codes to log p(c) plus the features' weighted log tables."""
        return self.posterior.scores(self.weights if weights is None else weights)

    def merge(self, other: TemperedPosterior) -> TemperedPosterior:
        """Return the belief after both batches, with the temperature of the larger one."""
        larger = max(other, self, key=lambda one: one.n)
        merged = self.posterior.merge(other.posterior)
        return TemperedPosterior(merged, larger.tempering, larger.n)


class Totals(NamedTuple):
    """What is known about the number of records in every state of some parents."""

    counts: AnyArray  # (states,): released, or summed from released counts.
    noise: Marginal  # The distribution of their noise.
    root: int | None = None  # The node that the counts are the whole table of.


class Siblings(NamedTuple):
    """Nodes with the same parents, and the totals of their rows."""

    nodes: list[int]
    totals: Totals


def siblings(released: ReleasedCounts) -> list[Siblings]:
    """Group nodes by their parents.

    A root node is returned as the totals of the group whose parent it is.
    """
    members: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for node, parents in enumerate(released.network.parents):
        members[parents].append(node)
    groups = [Siblings(nodes, _totals(released, p, nodes)) for p, nodes in members.items()]
    shared = {group.totals.root for group in groups}
    alone = [Siblings([u for u in g.nodes if u not in shared], g.totals) for g in groups]
    return [group for group in alone if group.nodes]


def _totals(released: ReleasedCounts, parents: tuple[int, ...], nodes: list[int]) -> Totals:
    """Return the parents' counts from the table that needs the fewest noisy cells for them."""
    network = released.network
    if not parents:
        return Totals(np.array([released.n]), released.size_noise)
    best: tuple[int, int] | None = None
    for node, family in enumerate(network.families):
        if node not in nodes and set(parents) <= set(family):
            cells = prod(network.sizes[u] for u in family if u not in parents)
            best = min(best or (cells, node), (cells, node))
    if best is None:
        return Totals(np.zeros(prod(network.sizes[u] for u in parents), np.int64), UNKNOWN)
    cells, node = best
    family = network.families[node]
    others = tuple(axis for axis, u in enumerate(family) if u not in parents)
    summed = released.tables[node].sum(axis=others)
    kept = [u for u in family if u in parents]
    counts = np.transpose(summed, [kept.index(u) for u in parents]).ravel()
    noise = sum_of([released.noise(node)] * cells)
    return Totals(counts, noise, root=node if parents == (node,) and len(family) == 1 else None)
