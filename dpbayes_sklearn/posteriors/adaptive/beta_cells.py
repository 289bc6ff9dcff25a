r"""A Beta prior with a Gaussian likelihood whose sampling variance depends on the probability.

.. math:: p(\theta) \propto \theta^{\kappa m - 1} (1-\theta)^{\kappa(1-m) - 1}
    N\bigl(y;\; \theta,\; v + \theta(1-\theta)/n_c + 1/(4 n_c^2)\bigr)

Moments by the trapezoidal rule in the log-odds of :math:`\theta`, where the poles of rare values
are gone. Nodes are of two kinds: equally spaced, and around the most likely values with and
without the prior. Beyond the outer nodes the likelihood is taken to be constant. A value with
m > 1/2 is read as the complement of the others.
"""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray

__all__ = ["beta_moments"]

_SPACED = np.linspace(0.0, 1.0, 21)
_LOCAL = np.linspace(-3.85, 3.85, 12)  # standard deviations
_LEAST, _MOST = 1e-7, 1.0 - 1e-4  # outer nodes


def beta_moments(
    m: FloatArray, concentration: FloatArray, y: FloatArray, v: FloatArray, n: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return posterior means and variances of cell probabilities, and how means follow m.

    All arrays have one shape. The slope of the mean in m is
    :math:`\kappa \operatorname{Cov}(\theta, \operatorname{logit} \theta)`, as
    :math:`\kappa m` multiplies :math:`\log\theta` and :math:`\kappa(1-m)`
    :math:`\log(1-\theta)`.

    >>> one = np.ones(1)
    >>> mean, variance, slope = beta_moments(0.5 * one, 2 * one, 0.3 * one, 0 * one, 1000 * one)
    >>> mean.round(3), (1000 * variance).round(2), slope.round(3)
    (array([0.3]), array([0.21]), array([0.002]))
    """
    flip = m > 0.5
    m, y = np.where(flip, 1.0 - m, m), np.where(flip, 1.0 - y, y)
    n = np.broadcast_to(n, m.shape)
    theta = _nodes(m, concentration, y, v, n)
    log_theta, log_rest = np.log(theta), np.log1p(-theta)
    a, b = concentration * m, concentration * (1.0 - m)
    variance = v[..., None] + (theta * (1.0 - theta) + 0.25 / n[..., None]) / n[..., None]
    log = a[..., None] * log_theta + b[..., None] * log_rest
    log -= 0.5 * (np.log(variance) + (y[..., None] - theta) ** 2 / variance)
    weight = np.exp(log - log.max(axis=-1, keepdims=True))
    logit = log_theta - log_rest
    gaps = 0.5 * np.diff(logit, axis=-1)
    weight[..., 1:-1] *= gaps[..., 1:] + gaps[..., :-1]
    for node, side, rate in ((0, -1.0, a), (-1, 1.0, b)):  # beyond, an exponential of this rate
        weight[..., node] *= gaps[..., node] + 1.0 / rate
        logit[..., node] += side / (rate * (1.0 + rate * gaps[..., node]))
    weight /= weight.sum(axis=-1, keepdims=True)
    mean = np.einsum("...k,...k", weight, theta)
    weight *= theta - mean[..., None]
    spread = np.einsum("...k,...k", weight, theta)
    slope = concentration * np.einsum("...k,...k", weight, logit)
    return np.where(flip, 1.0 - mean, mean), spread, slope


def _nodes(
    m: FloatArray, concentration: FloatArray, y: FloatArray, v: FloatArray, n: FloatArray
) -> FloatArray:
    """Return increasing nodes in (0, 1)."""
    likely = np.clip(y, 0.0, 1.0)
    error = v + (likely * (1.0 - likely) + 0.25 / n) / n
    prior = m * (1.0 - m) / (1.0 + concentration)
    center = (likely * prior + m * error) / (prior + error)
    deviation = np.sqrt(prior * error / (prior + error))
    high = np.maximum(center + 8.0 * deviation, likely + 6.0 * np.sqrt(error))
    high = np.clip(high, 2.0 * _LEAST, _MOST)[..., None]
    low_odds, high_odds = _LEAST / (1.0 - _LEAST), high / (1.0 - high)
    odds = low_odds * np.exp(_SPACED * np.log(high_odds / low_odds))
    local = np.concatenate(
        [
            center[..., None] + deviation[..., None] * _LOCAL,
            likely[..., None] + np.sqrt(error)[..., None] * _LOCAL,
        ],
        axis=-1,
    )
    nodes = [odds / (1.0 + odds), np.clip(local, _LEAST, high)]
    return np.sort(np.concatenate(nodes, axis=-1), axis=-1)
