r"""Tables of a network given noisy counts and a prior that is learned from them.

**Inference of naive Bayes tables from noisy ones, with a prior learned from them.**

Rows :math:`\theta_{cj}` of one feature share a pooled row :math:`m_j`. Around it they spread with
covariance :math:`g_j S_j`, and the spreads g of all features share one mixture distribution, whose
weights are learned from the released tables (adaptive shrinkage, Stephens 2017). It is empirical
Bayes on a release: post-processing, deterministic, without any privacy cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.adaptive_cells import cell_moments, mutual_information, row_draws
from dpbayes_sklearn.counts.adaptive_classes import ClassEffects, CountBelief, class_effects
from dpbayes_sklearn.counts.adaptive_rows import (
    SPREADS,
    FeatureRows,
    PooledRows,
    RowEvidence,
    counts_from_rows,
    evidence,
    exchangeable,
    group_rows,
    merge_counts,
    mixture,
    pool,
    prior_weights,
    row_messages,
    smooth,
)
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.posterior import NetworkPosterior, Totals, siblings
from dpbayes_sklearn.counts.tables import ReleasedCounts, Tables
from dpbayes_sklearn.data.records import quiet_numpy

__all__ = [
    "AdaptivePosterior",
    "AdaptiveTables",
    "adaptive_means",
    "counts_from_rows",
    "merge_counts",
    "mutual_information",
]


_ROUNDS = 3  # of messages from rows to class counts
_STEP = 0.7  # share of the way to new class counts that is gone


@dataclass(frozen=True)
class AdaptiveTables:
    """Posterior moments of naive Bayes tables.

    Attributes
    ----------
    class_probabilities : array of shape (C,)
    class_counts, class_deviations : arrays of shape (C,)
        Posterior means and standard deviations of the numbers of records.
    means, variances : tuples of arrays of shape (C, K_j)
        Of each cell's probability given the class.
    """

    class_probabilities: FloatArray
    class_counts: FloatArray
    class_deviations: FloatArray
    means: tuple[FloatArray, ...]
    variances: tuple[FloatArray, ...]


def adaptive_means(
    tables: Sequence[FloatArray],
    class_counts: FloatArray | None,
    n: int,
    *,
    contrast_variance: Sequence[float],
    class_variance: float,
    ordered: Sequence[bool],
    alpha: float = 1.0,
    n_variance: float = 0.0,
) -> AdaptiveTables:
    """Infer naive Bayes tables from noisy ones with a prior learned from all of them.

    Parameters
    ----------
    tables : sequence of arrays of shape (C, K_j)
        Released counts by feature: class, value.
    class_counts : array of shape (C,) or None
        Released class counts; None takes them from row sums, for independent noise.
    n : int
        Number of records: public, or released with noise.
    contrast_variance : sequence of float
        By feature, the variance of the noise per degree of freedom within a row.
    class_variance : float
        Variance of the noise of ``class_counts``.
    ordered : sequence of bool
        By feature, whether its values are adjacent intervals of a number.
    alpha : float, default=1.0
        Concentration of the Dirichlet prior that pooled rows and class probabilities start from.
    n_variance : float, default=0.0
        Variance of the noise in ``n``.

    Examples
    --------
    >>> tables = [np.array([[90.0, 12.0], [41.0, 60.0]])]
    >>> found = adaptive_means(
    ...     tables, np.array([102.0, 101.0]), 200, contrast_variance=[4.0], class_variance=4.0,
    ...     ordered=[False],
    ... )
    >>> found.class_probabilities.round(2), found.means[0].round(2)
    (array([0.5, 0.5]), array([[0.88, 0.12],
           [0.41, 0.59]]))
    """
    if class_counts is None:
        class_counts, class_variance = counts_from_rows(tables, contrast_variance)
    records = float(max(n, 1))
    counts = np.asarray(class_counts, np.float64)
    belief = CountBelief.start(counts, records, class_variance, n_variance)
    groups = group_rows(tables, contrast_variance, ordered)
    freedom = sum(table.shape[1] - 1 for table in tables)
    for _ in range(_ROUNDS):
        reading = _Reading(groups, belief, freedom, alpha)
        nodes = belief.nodes()
        belief = belief.update(nodes, reading.messages(nodes), _STEP)
    reading = _Reading(groups, belief, freedom, alpha)
    effects = reading.class_effects()
    if any(effect.effects.any() for effect in effects):
        reading = _Reading(reading.without(effects), belief, freedom, alpha)
    C = len(belief.mean)
    means = [np.ones((C, 1)) for _ in tables]
    variances = [np.zeros((C, 1)) for _ in tables]
    for effect, (rows, *moments) in zip(effects, reading.cells(), strict=True):
        mean, variance = effect.put_back(*moments)
        # a row estimate is 1/K + contrasts/n_c: an error of n_c shifts all its cells
        relative = (belief.deviation / belief.mean)[:, None] * (mean - 1.0 / rows.size)
        for i, j in enumerate(rows.features):
            means[j], variances[j] = mean[i], variance[i] + relative[i] ** 2
    probabilities = belief.mean + 0.5 * alpha
    return AdaptiveTables(
        np.asarray(probabilities / probabilities.sum()),
        belief.mean,
        belief.deviation,
        tuple(means),
        tuple(variances),
    )


class _Reading:
    """The rows of all features, read at given class counts."""

    def __init__(
        self, groups: list[FeatureRows], belief: CountBelief, freedom: int, alpha: float
    ) -> None:
        self._groups, self._counts = groups, belief.mean
        self._pooled: list[PooledRows] = []
        self._found: list[list[RowEvidence]] = []
        for rows in groups:
            pooled = pool(rows, belief.mean, belief.n, alpha)
            self._pooled.append(pooled)
            self._found.append(self._evidence(rows, pooled, belief.n / len(belief.mean)))
        self._posterior: dict[int, list[FloatArray]] = {}
        for kinds in (1, 2):  # exchangeable rows only; or smooth ones as well
            some = [i for i, found in enumerate(self._found) if len(found) == kinds]
            if not some:
                continue
            logs = [np.concatenate([e.log_evidence for e in self._found[i]], 1) for i in some]
            weights = mixture(logs, prior_weights(freedom, kinds == 2))
            for i, weight in zip(some, weights, strict=True):
                self._posterior[i] = np.split(weight, [len(SPREADS)], axis=1)[:kinds]

    def _evidence(self, rows: FeatureRows, pooled: PooledRows, count: float) -> list[RowEvidence]:
        parts = exchangeable(pooled.mean)
        found = [evidence(rows, pooled, parts, SPREADS, self._counts)]
        wavy = smooth(pooled.mean, rows.noise, count) if rows.ordered else None
        if wavy is not None:
            found.append(evidence(rows, pooled, wavy, SPREADS[1:], self._counts))
        return found

    def messages(self, nodes: FloatArray) -> FloatArray:
        """Return the log messages of all rows about class counts."""
        total = np.zeros_like(nodes)
        for i, rows in enumerate(self._groups):
            for found, weights in zip(self._found[i], self._posterior[i], strict=True):
                total += row_messages(rows, found, weights, nodes)
        return total

    def class_effects(self) -> list[ClassEffects]:
        """Return what the features of each group have in common in a class."""
        spreads = [posterior[0] @ SPREADS for _, posterior in sorted(self._posterior.items())]
        every = zip(self._groups, self._pooled, spreads, strict=True)
        return [class_effects(rows, m.mean, g, self._counts) for rows, m, g in every]

    def without(self, effects: list[ClassEffects]) -> list[FeatureRows]:
        """Return the rows without these effects."""
        every = zip(effects, self._groups, self._pooled, strict=True)
        return [effect.taken_out(rows, m.mean, self._counts) for effect, rows, m in every]

    def cells(self) -> list[tuple[FeatureRows, FloatArray, FloatArray]]:
        """Return posterior means and variances of cells by group of features."""
        return [
            (
                rows,
                *cell_moments(
                    rows, self._pooled[i], self._found[i], self._posterior[i], self._counts
                ),
            )
            for i, rows in enumerate(self._groups)
        ]


_LEAST_VARIANCE = 1e-12  # of noise: at a very large epsilon floats hold none


@dataclass(frozen=True)
class AdaptivePosterior(NetworkPosterior):
    """Empirical Bayes on released counts: rows shrink to what the rows of a feature share.

    Nodes with the same parents are read together by
    :func:`~dpbayes_sklearn.counts.adaptive.adaptive_means`: for naive Bayes all features at
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
