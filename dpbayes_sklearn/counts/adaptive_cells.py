r"""Adaptive inference: posterior means, variances and draws of cell probabilities.

**A Beta prior with a Gaussian likelihood whose sampling variance depends on the probability.**

.. math:: p(\theta) \propto \theta^{\kappa m - 1} (1-\theta)^{\kappa(1-m) - 1}
    N\bigl(y;\; \theta,\; v + \theta(1-\theta)/n_c + 1/(4 n_c^2)\bigr)

Moments by the trapezoidal rule in the log-odds of :math:`\theta`, where the poles of rare values
are gone. Nodes are of two kinds: equally spaced, and around the most likely values with and
without the prior. Beyond the outer nodes the likelihood is taken to be constant. A value with
m > 1/2 is read as the complement of the others.

**Posterior means and variances of cell probabilities.**

Given a spread g, a cell has the prior Beta(κm, κ(1−m)) with :math:`\kappa = 1/g - 1`, or of the
smooth covariance the Beta with its mean and variance. The whole row's evidence about it is
summed up in one Gaussian: of mean y and variance :math:`v + \theta(1-\theta)/n_c`.

*Exchangeable rows*: y is the row estimate, :math:`v = \sigma^2(1-1/K)/n_c^2`.

*Smooth rows*: the Gaussian posterior of all cells together, with its own prior taken out again:
:math:`1/v = 1/V_{post} - 1/V_{prior}`. It carries what adjacent cells say.

Means are averaged over the posterior of spreads.

**Draws of rows whose cells have given means and variances.**

Independent positive numbers of means :math:`m_k` and variances :math:`a_k`, divided by their sum.
To first order a cell then has variance :math:`a_k (1 - 2 m_k) + m_k^2 \sum_i a_i`, which is brought
to the wanted one.

*Two values*: Gamma numbers, so that a row is close to a Beta.

*More values*: normal numbers cut off at zero, the shape of a cell's posterior under noise that
is wider than the cell; Gamma numbers where the deviation is above the mean, which no normal cut
off at zero has. Cells are read one at a time, which makes their variances too small from four
values on; the factor :math:`1 + 0.4(K-3)/K` was measured (rows drawn from Dirichlet(1)).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri

from dpbayes_sklearn._typing import FloatArray, Positions
from dpbayes_sklearn.counts.adaptive_rows import FeatureRows, PooledRows, RowEvidence
from dpbayes_sklearn.data.records import in_threads, threads_for

_SPACED = np.linspace(0.0, 1.0, 21)  # Places of the nodes that are evenly spaced in log odds.
_LOCAL = np.linspace(-3.85, 3.85, 12)  # Nodes around the mode, in standard deviations.
_LEAST_NODE, _LARGEST_NODE = 1e-7, 1.0 - 1e-4  # The outermost nodes of a probability.
# This many cells are integrated at a time, so that their nodes stay in the cache.
_CELLS_AT_A_TIME = 512
_READING_WORK = 1 << 11  # One cell takes as long as reading this many cells of records.

_NEGLIGIBLE_SPREAD = 0.01  # Spreads with a smaller posterior probability are left out.
_BLOCK_NUMBERS = 400_000  # One block of cells has at most this many numbers.
_DRAWING_ROUNDS = 30  # A sampler of cells and their sum takes this many turns.
_LEAST_DRAWN = 1e-12  # Variances of cells, and drawn numbers, are at least this.
# Up to this ratio of deviation to mean cells are drawn from a cut-off normal.
_MOST_RELATIVE_SD = 0.97


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
        found[:, some] = _moments(*(each[some] for each in cells))

    blocks = [
        slice(start, start + _CELLS_AT_A_TIME) for start in range(0, m.size, _CELLS_AT_A_TIME)
    ]
    if len(blocks) > 1:
        in_threads(fill, blocks, threads_for(m.size * _READING_WORK))
    else:
        fill(slice(None))
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
    high = np.clip(high, 2.0 * _LEAST_NODE, _LARGEST_NODE)
    low_odds, high_odds = _LEAST_NODE / (1.0 - _LEAST_NODE), high / (1.0 - high)
    odds = low_odds * np.exp(_SPACED[:, None] * np.log(high_odds / low_odds))
    local = np.concatenate(
        [center + deviation * _LOCAL[:, None], likely + np.sqrt(error) * _LOCAL[:, None]]
    )
    nodes = np.concatenate([odds / (1.0 + odds), np.clip(local, _LEAST_NODE, high)])
    # numbers side by side are sorted several times faster
    return np.ascontiguousarray(np.sort(nodes.T.copy(), axis=1).T)


CellMoments = tuple[FloatArray, FloatArray]


def cell_moments(
    rows: FeatureRows,
    pooled: PooledRows,
    found: list[RowEvidence],
    posterior: list[FloatArray],
    counts: FloatArray,
) -> CellMoments:
    """Return posterior means and variances of all cells, (J, C, K)."""
    first, second = np.zeros_like(rows.contrasts), np.zeros_like(rows.contrasts)
    kept = np.zeros(len(rows.noise))
    for some, weights in zip(found, posterior, strict=True):
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        coordinates = np.einsum("jlg,jg->jl", some.pooled_mean, share)
        center = pooled.positive(1.0 / rows.size + some.components.contrasts(coordinates))
        for g, spread in enumerate(some.spreads):
            for use in _blocks(weights[:, g] > _NEGLIGIBLE_SPREAD, first[0].size):
                weight = weights[use, g]
                mean, variance = _given_spread(rows, center, some, g, spread, counts, use)
                first[use] += weight[:, None, None] * mean
                second[use] += weight[:, None, None] * (variance + mean**2)
                kept[use] += weight
    first, second = first / kept[:, None, None], second / kept[:, None, None]
    total = first.sum(axis=2, keepdims=True)
    variance = np.maximum(second - first**2, 0.0) / total**2
    return first / total, variance


def _blocks(wanted: npt.NDArray[np.bool_], numbers: int) -> Iterator[Positions]:
    """Yield the positions of wanted features, few enough at a time."""
    every = np.flatnonzero(wanted)
    step = max(_BLOCK_NUMBERS // (32 * numbers), 1)
    for start in range(0, len(every), step):
        yield every[start : start + step]


def _given_spread(
    rows: FeatureRows,
    center: FloatArray,
    found: RowEvidence,
    g: int,
    spread: float,
    counts: FloatArray,
    use: Positions,
) -> CellMoments:
    size, shape = rows.size, (len(use), *rows.contrasts.shape[1:])
    prior = np.broadcast_to(center[use][:, None], shape)
    pooled_error = (1.0 / found.pooled_precision[use, :, g]).mean(axis=1)[:, None, None]
    pooled_error = np.minimum(pooled_error * (1.0 - 1.0 / size), prior * (1.0 - prior))
    if spread == 0.0:  # all classes share the pooled row
        return prior, pooled_error
    covariance = found.components.covariance
    if covariance is None:
        y = rows.contrasts[use] / counts[:, None] + 1.0 / size
        noise = rows.noise[use, None] * (1.0 - 1.0 / size) / counts**2
        concentration = np.full(shape, 1.0 / spread - 1.0)
        v = np.broadcast_to(noise[..., None], shape)
    else:
        y, v, concentration = _smoothed(rows, prior, spread * covariance[use], counts, use)
    mean, variance, slope = beta_moments(prior, concentration, y, v, counts[:, None])
    variance = variance + np.minimum(slope, 1.0) ** 2 * pooled_error  # of the pooled row's error
    total = mean.sum(axis=2, keepdims=True)
    return mean / total, variance / total**2


def _smoothed(
    rows: FeatureRows, prior: FloatArray, covariance: FloatArray, counts: FloatArray, use: Positions
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Gaussian summary of a row's evidence about each cell, and Beta concentrations."""
    K = rows.size
    error = (rows.noise[use, None] / counts**2)[..., None] + prior / counts[:, None]
    whole = covariance[:, None] + error[..., None] * np.eye(K)
    gain = np.linalg.solve(whole, np.broadcast_to(covariance[:, None], whole.shape))
    off = rows.contrasts[use] / counts[:, None] + 1.0 / K - prior
    before = np.einsum("jkk->jk", covariance)[:, None]
    learned = np.einsum("jvw,jcwv->jcv", covariance, gain)
    # 1/V_post - 1/V_prior = learned / (V_prior V_post), so no difference of large numbers
    after = np.maximum(before - learned, 1e-9 * before)
    learned = np.maximum(learned, 1e-12 * before)
    y = prior + np.einsum("jcwv,jcw->jcv", gain, off) * before / learned
    v = np.maximum(before * after / learned - prior * (1.0 - prior) / counts[:, None], 0.0)
    concentration = np.clip(prior * (1.0 - prior) / before - 1.0, 0.3, 1e6)
    return y, v, concentration


# Ratios of mean to deviation of a normal before it is cut off at 0.
_STARTS = np.linspace(-12.0, 40.0, 2001)


def row_draws(
    mean: FloatArray, variance: FloatArray, rng: np.random.Generator, n: int
) -> FloatArray:
    """Return n draws (n, ..., K) of rows with cells of these means and variances (..., K).

    >>> draws = row_draws(np.array([0.2, 0.8]), np.full(2, 0.01), np.random.default_rng(0), 4000)
    >>> draws.mean(axis=0).round(2), draws.std(axis=0).round(2)
    (array([0.2, 0.8]), array([0.1, 0.1]))
    """
    size = mean.shape[-1]
    variance = variance * (1.0 + 0.4 * max(size - 3, 0) / size)
    variance = np.clip(variance, _LEAST_DRAWN, 0.99 * mean * (1.0 - mean) + _LEAST_DRAWN)
    own = variance.copy()
    for _ in range(_DRAWING_ROUNDS):
        got = own * (1.0 - 2.0 * mean) + mean**2 * own.sum(axis=-1, keepdims=True)
        own = own * variance / np.maximum(got, _LEAST_DRAWN)
    mean = np.maximum(mean, _LEAST_DRAWN)
    shape = (n, *mean.shape)
    drawn = rng.gamma(mean**2 / own, own / mean, size=shape)
    if size > 2:
        relative = np.sqrt(own) / mean
        normal = mean * _positive_normal(np.minimum(relative, _MOST_RELATIVE_SD), rng.random(shape))
        drawn = np.where(relative < _MOST_RELATIVE_SD, normal, drawn)
    drawn = np.maximum(drawn, _LEAST_DRAWN * mean)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def _positive_normal(relative: FloatArray, uniform: FloatArray) -> FloatArray:
    """Return normal numbers cut off at zero, of mean one and this deviation, by their quantiles."""
    mean = _STARTS + _hazard(_STARTS)
    deviation = np.sqrt(1.0 - _hazard(_STARTS) * mean)
    start = np.interp(-relative, -deviation / mean, _STARTS)
    number = start - ndtri(ndtr(start) * uniform)
    return np.asarray(number / (start + _hazard(start)))


def _hazard(x: FloatArray) -> FloatArray:
    """Return the normal density over its distribution function."""
    return np.asarray(np.exp(-0.5 * x**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(x)))


def mutual_information(class_probabilities: FloatArray, rows: FloatArray) -> float:
    r"""Return :math:`\sum_c \pi_c \sum_k \theta_{ck} \log(\theta_{ck}/\bar\theta_k)` in nats.

    >>> round(mutual_information(np.array([0.5, 0.5]), np.eye(2)), 4)  # log 2
    0.6931
    """
    pooled = np.broadcast_to(class_probabilities @ rows, rows.shape)
    seen = rows > 0
    log = np.zeros_like(rows)
    np.log(rows / np.where(pooled > 0, pooled, 1.0), out=log, where=seen)
    return max(float(class_probabilities @ (rows * log).sum(axis=1)), 0.0)
