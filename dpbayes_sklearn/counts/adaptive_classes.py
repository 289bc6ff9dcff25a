r"""Adaptive inference: class counts, and effects of a class that many features share.

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

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.adaptive_rows import FeatureRows

__all__ = ["ClassEffects", "CountBelief", "class_effects", "prior_variance"]


_REACH = 6.0  # standard deviations on either side that nodes cover
_NODES = 33
_LEAST_VARIANCE = 1.0 / 12.0  # of a released count: that of rounding to integers


def prior_variance(released: FloatArray, n: float, variance: float) -> float:
    r"""Return the prior variance of class counts, learned from their spread.

    .. math:: s^2 = \frac{(C-1) \max(V - \tau^2, 0) + 3 s_0^2}{C+2}, \qquad
        s_0^2 = (n/C)^2 \frac{C-1}{C+1}

    V is the variance of the released counts, :math:`s_0^2` that of a flat Dirichlet.
    """
    C = len(released)
    if C == 1:  # the only state of no parents has all records
        return _LEAST_VARIANCE
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
        variance = max(variance, _LEAST_VARIANCE)
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
        return belief.update(belief.nodes(), np.zeros((len(alone), _NODES)), 1.0)

    def nodes(self) -> FloatArray:
        """Return counts at which row messages are wanted, by class: (C, nodes)."""
        reach = _REACH * np.maximum(self.deviation, 1e-6 * self.n)
        low = np.clip(self.mean - reach, 1e-6 * self.n, 0.99 * self.n)
        high = np.clip(self.mean + reach, low + 0.005 * self.n * (low <= 0), self.n)
        return np.asarray(np.linspace(low, np.maximum(high, low * (1 + 1e-9)), _NODES, axis=1))

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
    spacing = (nodes[:, -1] - nodes[:, 0]) / (_NODES - 1)
    return mean, np.sqrt(np.maximum(left, (0.3 * spacing) ** 2))


_LEAST_FEATURES = 10
_EVIDENCE = 8.0  # what the squared effects must exceed, in squared standard errors
_LARGEST = 0.5  # log odds, up to which an effect is nearly linear in the shares


@dataclass(frozen=True)
class ClassEffects:
    """Effects of all classes on the features of some rows.

    Attributes
    ----------
    effects : array of shape (C,)
        In log odds of the second value.
    errors : array of shape (C,)
        Their standard errors; 0 where there is no effect.
    """

    effects: FloatArray
    errors: FloatArray

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

    Examples
    --------
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
    kept *= max(1.0 - (float(np.abs(effects).max()) / _LARGEST) ** 4, 0.0)
    if not kept:
        return ClassEffects(none, none)
    return ClassEffects(kept * effects, 1.0 / np.sqrt(precision))
