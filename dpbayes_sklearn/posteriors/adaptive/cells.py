r"""Posterior means and variances of cell probabilities.

Given a spread g, a cell has the prior Beta(κm, κ(1−m)) with :math:`\kappa = 1/g - 1`, or of the
smooth covariance the Beta with its mean and variance. The whole row's evidence about it is
summed up in one Gaussian: of mean y and variance :math:`v + \theta(1-\theta)/n_c`.

*Exchangeable rows*: y is the row estimate, :math:`v = \sigma^2(1-1/K)/n_c^2`.

*Smooth rows*: the Gaussian posterior of all cells together, with its own prior taken out again:
:math:`1/v = 1/V_{post} - 1/V_{prior}`. It carries what adjacent cells say.

Means are averaged over the posterior of spreads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.adaptive.beta_cells import beta_moments
from dpbayes_sklearn.posteriors.adaptive.pooled_rows import PooledRows
from dpbayes_sklearn.posteriors.adaptive.spread import Evidence
from dpbayes_sklearn.posteriors.adaptive.standard_form import Rows

__all__ = ["cell_moments"]

_NEGLIGIBLE = 0.01  # posterior probability below which a spread is left out
_LARGEST = 400_000  # numbers in one block of cells

Moments = tuple[FloatArray, FloatArray]
Positions = npt.NDArray[np.intp]


def cell_moments(
    rows: Rows,
    pooled: PooledRows,
    found: list[Evidence],
    posterior: list[FloatArray],
    counts: FloatArray,
) -> Moments:
    """Return posterior means and variances of all cells, (J, C, K)."""
    first, second = np.zeros_like(rows.contrasts), np.zeros_like(rows.contrasts)
    kept = np.zeros(len(rows.noise))
    for some, weights in zip(found, posterior, strict=True):
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        coordinates = np.einsum("jlg,jg->jl", some.pooled_mean, share)
        center = pooled.positive(1.0 / rows.size + some.components.contrasts(coordinates))
        for g, spread in enumerate(some.spreads):
            for use in _blocks(weights[:, g] > _NEGLIGIBLE, first[0].size):
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
    step = max(_LARGEST // (32 * numbers), 1)
    for start in range(0, len(every), step):
        yield every[start : start + step]


def _given_spread(
    rows: Rows,
    center: FloatArray,
    found: Evidence,
    g: int,
    spread: float,
    counts: FloatArray,
    use: Positions,
) -> Moments:
    shape = (len(use), *rows.contrasts.shape[1:])
    prior = np.broadcast_to(center[use][:, None], shape)
    pooled_error = (1.0 / found.pooled_precision[use, :, g]).mean(axis=1)[:, None, None]
    pooled_error = np.minimum(pooled_error * (1.0 - 1.0 / rows.size), prior * (1.0 - prior))
    if spread == 0.0:  # all classes share the pooled row
        return prior, pooled_error
    covariance = found.components.covariance
    if covariance is None:
        y = rows.contrasts[use] / counts[:, None] + 1.0 / rows.size
        noise = rows.noise[use, None] * (1.0 - 1.0 / rows.size) / counts**2
        concentration = np.full(shape, 1.0 / spread - 1.0)
        v = np.broadcast_to(noise[..., None], shape)
    else:
        y, v, concentration = _smoothed(rows, prior, spread * covariance[use], counts, use)
    mean, variance, slope = beta_moments(prior, concentration, y, v, counts[:, None])
    variance = variance + np.minimum(slope, 1.0) ** 2 * pooled_error  # of the pooled row's error
    total = mean.sum(axis=2, keepdims=True)
    return mean / total, variance / total**2


def _smoothed(
    rows: Rows, prior: FloatArray, covariance: FloatArray, counts: FloatArray, use: Positions
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
