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
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.data.threads import in_threads, threads_for

__all__ = ["beta_moments"]

_SPACED = np.linspace(0.0, 1.0, 21)
_LOCAL = np.linspace(-3.85, 3.85, 12)  # standard deviations
_LEAST, _MOST = 1e-7, 1.0 - 1e-4  # outer nodes
_CELLS = 512  # at a time: their numbers at all nodes stay in the cache
_WORK = 1 << 11  # cells of records that are read in the time that one cell takes here


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
    cells = [each.ravel() for each in np.broadcast_arrays(m, concentration, y, v, n)]
    found = np.empty((3, m.size))

    def fill(some: slice) -> None:
        with quiet_numpy():
            found[:, some] = _moments(*(each[some] for each in cells))

    blocks = [slice(start, start + _CELLS) for start in range(0, m.size, _CELLS)]
    in_threads(fill, blocks, threads_for(m.size * _WORK))
    mean, variance, slope = found.reshape(3, *m.shape)
    return np.where(flip, 1.0 - mean, mean), variance, slope


def _moments(
    m: FloatArray, concentration: FloatArray, y: FloatArray, v: FloatArray, n: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same for a vector of cells with m up to 1/2; nodes are along the first axis."""
    theta = _nodes(m, concentration, y, v, n)
    rest = 1.0 - theta
    log_theta, log_rest = np.log(theta), np.log(rest)
    a, b = concentration * m, concentration * (1.0 - m)
    rest *= theta
    variance = (rest + 0.25 / n) / n + v
    log = a * log_theta + b * log_rest - 0.5 * (y - theta) ** 2 / variance
    weight = np.exp(log - log.max(axis=0)) / np.sqrt(variance)
    logit = log_theta - log_rest
    gaps = 0.5 * np.diff(logit, axis=0)
    weight[1:-1] *= gaps[1:] + gaps[:-1]
    for node, side, rate in ((0, -1.0, a), (-1, 1.0, b)):  # beyond, an exponential of this rate
        weight[node] *= gaps[node] + 1.0 / rate
        logit[node] += side / (rate * (1.0 + rate * gaps[node]))
    weight /= weight.sum(axis=0)
    mean = np.einsum("ki,ki->i", weight, theta)
    weight *= theta - mean
    spread = np.einsum("ki,ki->i", weight, theta)
    return mean, spread, concentration * np.einsum("ki,ki->i", weight, logit)


def _nodes(
    m: FloatArray, concentration: FloatArray, y: FloatArray, v: FloatArray, n: FloatArray
) -> FloatArray:
    """Return increasing nodes in (0, 1), along the first axis."""
    likely = np.clip(y, 0.0, 1.0)
    error = v + (likely * (1.0 - likely) + 0.25 / n) / n
    prior = m * (1.0 - m) / (1.0 + concentration)
    center = (likely * prior + m * error) / (prior + error)
    deviation = np.sqrt(prior * error / (prior + error))
    high = np.maximum(center + 8.0 * deviation, likely + 6.0 * np.sqrt(error))
    high = np.clip(high, 2.0 * _LEAST, _MOST)
    low_odds, high_odds = _LEAST / (1.0 - _LEAST), high / (1.0 - high)
    odds = low_odds * np.exp(_SPACED[:, None] * np.log(high_odds / low_odds))
    local = np.concatenate(
        [center + deviation * _LOCAL[:, None], likely + np.sqrt(error) * _LOCAL[:, None]]
    )
    nodes = np.concatenate([odds / (1.0 + odds), np.clip(local, _LEAST, high)])
    # numbers side by side are sorted several times faster
    return np.ascontiguousarray(np.sort(nodes.T.copy(), axis=1).T)
