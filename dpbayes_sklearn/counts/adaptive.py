r"""Tables of a network given noisy counts and a prior that is learned from them.

Rows :math:`\theta_{cj}` of one feature share a pooled row :math:`m_j`. Around it they spread with
covariance :math:`g_j S_j`, and the spreads g of all features share one mixture distribution, whose
weights are learned from the released tables (adaptive shrinkage, Stephens 2017). It is empirical
Bayes on a release: post-processing, deterministic, without any privacy cost.

**Class counts that add up to the number of records.**

Each class has a log density over its count: the prior :math:`N(n/C, s^2)`, the released count with
noise of variance :math:`\tau^2`, and messages from the rows. Conditioning on
:math:`\sum_c n_c = n` multiplies every density by the same :math:`e^{\lambda n_c}`, with
:math:`\lambda` such that the means add up to n: exact for Gaussian densities, and the leading
term of the saddlepoint expansion for others. If n is secret and was released with noise,
it is first averaged with the sum of the released class counts, by inverse variance; the variance v
that is left adds :math:`(n_c/n)^2 v` to that of every class count.

**What the two-valued features of a table have in common in a class: larger baskets, for example.**

Let :math:`x_{cj}` be the estimated share of the second value and :math:`\bar x_j` its mean over the
classes, weighted by precision. The model

.. math:: x_{cj} - \bar x_j = a_c v_j + e_{cj}, \qquad v_j = m_j(1 - m_j), \qquad
    \operatorname{Var} e_{cj} = \frac{\sigma_j^2}{2n_c^2} + \frac{v_j}{n_c} + g_j v_j

has one effect :math:`a_c` of each class, in log odds, and the features' own spreads around it. It
is estimated by weighted least squares, and shrunk by
:math:`\bigl(1 - (8(C-1)/\sum_c z_c^2)^2\bigr)_+`, with :math:`z_c` the effect over its standard
error. So an effect within two standard errors is taken for none, and so is, by another factor, one
of half a unit of log odds or more, where the model is not linear. Rows are then read without the
effect, which is added to the result: rows that noise hides shrink to what the class does in
general, not to what all classes share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import brentq

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.adaptive_cells import cell_moments, row_draws
from dpbayes_sklearn.counts.adaptive_rows import SPREADS, FeatureRows, Reading, group_rows
from dpbayes_sklearn.counts.posterior import InferredPosterior, Totals, siblings
from dpbayes_sklearn.counts.tables import ReleasedCounts, Tables
from dpbayes_sklearn.data.records import quiet_numpy

_NODE_REACH = 6.0  # Nodes cover this many standard deviations on either side.
_CLASS_NODES = 33  # The distribution of a class count is tabulated at this many nodes.
# Rounding to integers gives a released count at least this variance.
_ROUNDING_VARIANCE = 1.0 / 12.0

_LEAST_FEATURES = 10  # With fewer features their effects do not correct the class counts.
_EVIDENCE = 8.0  # Effects count if their squares exceed this many squared standard errors.
_LINEAR_EFFECT = 0.5  # Up to this many log odds an effect is nearly linear in the shares.
_MESSAGE_ROUNDS = 3  # Messages go this many times from rows to class counts.
_DAMPING = 0.7  # Class counts move by this share of the way to their new values.
# Noise has at least this variance: at a very large epsilon floats hold none.
_LEAST_VARIANCE = 1e-12


def prior_variance(released: FloatArray, n: float, variance: float) -> float:
    r"""Return the prior variance of class counts, learned from their spread.

    .. math:: s^2 = \frac{(C-1) \max(V - \tau^2, 0) + 3 s_0^2}{C+2}, \qquad
        s_0^2 = (n/C)^2 \frac{C-1}{C+1}

    V is the variance of the released counts, :math:`s_0^2` that of a flat Dirichlet.
    """
    C = len(released)
    if C == 1:  # the only state of no parents has all records
        return _ROUNDING_VARIANCE
    flat = (n / C) ** 2 * (C - 1) / (C + 1)
    seen = max(float(np.var(released, ddof=1)) - variance, 0.0)
    return ((C - 1) * min(seen, n**2) + 3.0 * flat) / (C + 2)


@dataclass(frozen=True)
class CountBelief:
    """Belief about the class counts: what was released, and current means and deviations."""

    released: FloatArray
    n: float
    variance: float
    prior: float
    mean: FloatArray
    deviation: FloatArray
    n_variance: float = 0.0

    @classmethod
    def start(
        cls, released: FloatArray, n: float, variance: float, n_variance: float = 0.0
    ) -> CountBelief:
        """Begin with the prior and the released counts alone.

        >>> belief = CountBelief.start(np.array([70.0, 50.0]), 100.0, 1.0)
        >>> belief.mean.round()
        array([60., 40.])
        """
        variance = max(variance, _ROUNDING_VARIANCE)
        if n_variance > 0.0:  # the class counts tell their sum as well
            weight = n_variance / (n_variance + len(released) * variance)
            n = max((1.0 - weight) * n + weight * float(released.sum()), 1.0)
            n_variance *= 1.0 - weight
        released = np.clip(released, -50.0 * n, 50.0 * n)
        prior = prior_variance(released, n, variance)
        precision = 1.0 / prior + 1.0 / variance
        alone = (n / len(released) / prior + released / variance) / precision
        mean = alone + (n - alone.sum()) / len(alone)
        deviation = np.full(len(alone), np.sqrt(1.0 / precision))
        mean = _inside(mean, n)
        belief = cls(released, n, variance, prior, mean, deviation, n_variance)
        return belief.update(belief.nodes(), np.zeros((len(alone), _CLASS_NODES)), 1.0)

    def nodes(self) -> FloatArray:
        """Return counts at which row messages are wanted, by class: (C, nodes)."""
        reach = _NODE_REACH * np.maximum(self.deviation, 1e-6 * self.n)
        low = np.clip(self.mean - reach, 1e-6 * self.n, 0.99 * self.n)
        high = np.clip(self.mean + reach, low + 0.005 * self.n * (low <= 0), self.n)
        return np.asarray(
            np.linspace(low, np.maximum(high, low * (1 + 1e-9)), _CLASS_NODES, axis=1)
        )

    def update(self, nodes: FloatArray, messages: FloatArray, step: float) -> CountBelief:
        """Return the belief with the rows' log messages at the nodes, after a damped step."""
        C = len(self.released)
        own = -0.5 * (nodes - self.released[:, None]) ** 2 / self.variance
        log_density = own - 0.5 * (nodes - self.n / C) ** 2 / self.prior + messages
        mean, deviation = _adding_up(nodes, log_density, self.n)
        mean = _inside((1.0 - step) * self.mean + step * mean, self.n)
        deviation = np.hypot(deviation, mean / self.n * np.sqrt(self.n_variance))
        return replace(self, mean=mean, deviation=deviation)


def _inside(mean: FloatArray, n: float) -> FloatArray:
    """Keep counts positive and make them add up to n."""
    positive = np.maximum(mean, min(0.5, n / (4.0 * len(mean))))
    return np.asarray(positive * (n / positive.sum()))


def _adding_up(
    nodes: FloatArray, log_density: FloatArray, n: float
) -> tuple[FloatArray, FloatArray]:
    """Return means and deviations of the counts, given that they add up to n."""
    scale = np.maximum(nodes[:, -1] - nodes[:, 0], 1e-300).max()

    def moments(tilt: float) -> tuple[FloatArray, FloatArray]:
        log_weight = log_density + tilt / scale * nodes
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = (weight * nodes).sum(axis=1)
        return mean, (weight * (nodes - mean[:, None]) ** 2).sum(axis=1)

    def excess(tilt: float) -> float:
        return float(moments(tilt)[0].sum() - n)

    most = 1e6
    below, above = excess(-most), excess(most)
    tilt = -most if below >= 0 else most if above <= 0 else brentq(excess, -most, most, xtol=1e-9)
    mean, variance = moments(tilt)
    # conditioning on the sum takes a share v_c / sum(v) off each variance
    left = variance * (1.0 - variance / max(float(variance.sum()), 1e-300))
    spacing = (nodes[:, -1] - nodes[:, 0]) / (_CLASS_NODES - 1)
    return mean, np.sqrt(np.maximum(left, (0.3 * spacing) ** 2))


@dataclass(frozen=True)
class ClassEffects:
    """Effects of all classes on the features of some rows."""

    effects: FloatArray  # (C,): in log odds of the second value.
    errors: FloatArray  # (C,): their standard errors; 0 where there is no effect.

    def taken_out(self, rows: FeatureRows, pooled: FloatArray, counts: FloatArray) -> FeatureRows:
        """Return the rows without the effects, for pooled rows (J, K)."""
        if not self.effects.any():
            return rows
        shift = counts * self.effects * pooled.prod(axis=1)[:, None]
        return replace(rows, contrasts=rows.contrasts - np.stack([-shift, shift], axis=-1))

    def put_back(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances (J, C, K) with the effects."""
        if not self.effects.any():
            return mean, variance
        odds = mean[..., 1] / mean[..., 0] * np.exp(self.effects)
        share = odds / (1.0 + odds)
        error = (share * (1.0 - share) * self.errors)[..., None] ** 2
        return np.stack([1.0 - share, share], axis=-1), variance + error


def class_effects(
    rows: FeatureRows, pooled: FloatArray, spread: FloatArray, counts: FloatArray
) -> ClassEffects:
    """Estimate the effects from rows, pooled rows (J, K), spreads (J,) and class counts (C,).

    All of twenty items are more frequent in the second of two classes of a thousand records:

    >>> share = np.outer(np.linspace(0.1, 0.4, 20), [1.0, 1.5])
    >>> contrasts = 1000 * (np.stack([1 - share, share], -1) - 0.5)
    >>> rows = FeatureRows(tuple(range(20)), contrasts, np.full(20, 100.0), ordered=False)
    >>> pooled = np.stack([1 - share.mean(1), share.mean(1)], -1)
    >>> class_effects(rows, pooled, np.full(20, 0.01), np.array([1000.0, 1000.0])).effects.round(2)
    array([-0.3,  0.3])
    """
    none = np.zeros(len(counts))
    if rows.size != 2 or len(rows.features) < _LEAST_FEATURES:
        return ClassEffects(none, none)
    v = pooled.prod(axis=1)[:, None]
    x = rows.shares(counts)[..., 1]
    variance = rows.noise[:, None] / (2.0 * counts**2) + v / counts + spread[:, None] * v
    centre = (x / variance).sum(axis=1) / (1.0 / variance).sum(axis=1)
    precision = (v**2 / variance).sum(axis=0)
    effects = (v * (x - centre[:, None]) / variance).sum(axis=0) / precision
    evidence = float((effects**2 * precision).sum())
    kept = max(1.0 - (_EVIDENCE * (len(counts) - 1) / max(evidence, 1e-12)) ** 2, 0.0)
    kept *= max(1.0 - (float(np.abs(effects).max()) / _LINEAR_EFFECT) ** 4, 0.0)
    if not kept:
        return ClassEffects(none, none)
    return ClassEffects(kept * effects, 1.0 / np.sqrt(precision))


def counts_from_rows(
    tables: Sequence[FloatArray], contrast_variance: Sequence[float]
) -> tuple[FloatArray, float]:
    r"""Estimate class counts from row sums when the noise of cells is independent.

    A row sum of K cells has variance :math:`K \sigma^2`; weights are inverse variances.

    >>> counts_from_rows([np.array([[3.0, 1.0], [2.0, 4.0]])], [1.0])
    (array([4., 6.]), 2.0)
    """
    precision = np.array(
        [1.0 / (t.shape[1] * v) for t, v in zip(tables, contrast_variance, strict=True)]
    )
    sums = np.stack([table.sum(axis=1) for table in tables])
    total = float(precision.sum())
    return np.asarray(precision @ sums / total), 1.0 / total


def merge_counts(
    first: tuple[FloatArray, float], second: tuple[FloatArray, float]
) -> tuple[FloatArray, float]:
    """Average two independent noisy estimates of the same counts by their inverse variances.

    >>> merge_counts((np.array([4.0]), 1.0), (np.array([7.0]), 2.0))
    (array([5.]), 0.6666666666666666)
    """
    (a, v), (b, w) = first, second
    return np.asarray((a * w + b * v) / (v + w)), v * w / (v + w)


@dataclass(frozen=True)
class AdaptiveTables:
    """Posterior moments of naive Bayes tables."""

    class_probabilities: FloatArray  # (C,).
    # class_counts, class_deviations: (C,): posterior means and standard deviations of the numbers
    # of records.
    class_counts: FloatArray
    class_deviations: FloatArray
    # means, variances, each (C, K_j): of each cell's probability given the class.
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
    """Infer naive Bayes tables from noisy ones (C, K_j) with a prior learned from all of them.

    ``class_counts`` were released with noise of ``class_variance``, or are None, to be taken from
    row sums. ``contrast_variance`` is that of the noise per degree of freedom within a row,
    ``ordered`` tells whether values are adjacent intervals of a number, and ``alpha`` is the
    concentration of the Dirichlet prior that pooled rows and class probabilities start from.

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
    for _ in range(_MESSAGE_ROUNDS):
        reading = Reading(groups, belief.mean, belief.n, freedom, alpha)
        nodes = belief.nodes()
        belief = belief.update(nodes, reading.messages(nodes), _DAMPING)
    reading = Reading(groups, belief.mean, belief.n, freedom, alpha)
    effects = _effects(reading)
    if any(effect.effects.any() for effect in effects):
        every = zip(effects, groups, reading.pooled, strict=True)
        groups = [effect.taken_out(rows, m.mean, belief.mean) for effect, rows, m in every]
        reading = Reading(groups, belief.mean, belief.n, freedom, alpha)
    C = len(belief.mean)
    means = [np.ones((C, 1)) for _ in tables]
    variances = [np.zeros((C, 1)) for _ in tables]
    for g, (rows, effect) in enumerate(zip(groups, effects, strict=True)):
        parts = reading.pooled[g], reading.found[g], reading.posterior[g]
        mean, variance = effect.put_back(*cell_moments(rows, *parts, belief.mean))
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


def _effects(reading: Reading) -> list[ClassEffects]:
    """Return what the features of each group have in common in a class."""
    spreads = [posterior[0] @ SPREADS for _, posterior in sorted(reading.posterior.items())]
    every = zip(reading.groups, reading.pooled, spreads, strict=True)
    return [class_effects(rows, m.mean, g, reading.counts) for rows, m, g in every]


@dataclass(frozen=True)
class AdaptivePosterior(InferredPosterior):
    """Empirical Bayes on released counts: rows shrink to what the rows of a feature share.

    Nodes with the same parents are read together by
    :func:`~dpbayes_sklearn.counts.adaptive.adaptive_means`: for naive Bayes all features at
    once, with the classes as states of their parent. It is not the exact posterior of any fixed
    prior, so :attr:`exact` is False.
    """

    # Of the pseudo-counts that of a node's first value is the concentration of its hyperprior.
    released: ReleasedCounts
    # For every node, whether its values are adjacent intervals of a number.
    ordered: tuple[bool, ...]
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

    def sample(self, rng: np.random.Generator, n: int) -> Tables:
        """Return draws of independent rows with the posterior's means and variances of cells."""
        pairs = zip(self.means, self.variances, strict=True)
        return tuple(row_draws(mean, variance, rng, n) for mean, variance in pairs)
