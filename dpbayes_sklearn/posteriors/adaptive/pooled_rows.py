r"""Pooled rows: what a feature's values look like when all classes are taken together.

Row estimates x have variance near :math:`1/\omega_c = \sigma^2/n_c^2 + \frac1K(1-\frac1K)/n_c` per
degree of freedom. Pooled rows have the prior :math:`N(h, \varrho_j)` around a row h that all
features of the same size share: for Boolean columns that is a common base rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.adaptive.standard_form import Rows

__all__ = ["PooledRows", "on_simplex", "pool", "smooth_kernel"]

_ROUNDS = 3  # of alternating h and its variance
_PSEUDO_FEATURES = 5.0
_SHARED_FREEDOM = 8.0  # degrees of freedom that the common variance is worth in a feature's own
_RANGE = 0.1  # correlation length of smooth rows, in units of a feature's range
_ROUGH = 0.05  # share of smooth rows' variance that is independent between adjacent values


@dataclass(frozen=True)
class PooledRows:
    """Pooled rows of J features, and the prior that they came from.

    Attributes
    ----------
    mean : array of shape (J, K)
        Positive rows that sum to one.
    center : array of shape (K,)
        The h.
    variance : array of shape (J,)
        The variance around it per degree of freedom.
    floor : array of shape (J,)
        What was added to every value before the rows were normalised.
    """

    mean: FloatArray
    center: FloatArray
    variance: FloatArray
    floor: FloatArray

    def positive(self, rows: FloatArray) -> FloatArray:
        """Bring rows of shape (J, K) to the simplex, off its boundary."""
        lifted = on_simplex(rows) + self.floor[:, None]
        return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))


def on_simplex(rows: FloatArray) -> FloatArray:
    """Project rows to the nearest probability vectors.

    >>> on_simplex(np.array([[0.9, 0.3, -0.2]]))
    array([[0.8, 0.2, 0. ]])
    """
    falling = -np.sort(-rows, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - 1.0) / np.arange(1, rows.shape[-1] + 1)
    last = (falling > excess).sum(axis=-1, keepdims=True) - 1
    return np.maximum(rows - np.take_along_axis(excess, np.maximum(last, 0), axis=-1), 0.0)


def smooth_kernel(size: int) -> FloatArray:
    """Return the Matern-3/2 correlation of the values of a feature with ordered values."""
    gaps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (_RANGE * size)
    return np.asarray((1.0 + gaps) * np.exp(-gaps))


def with_rough_share(smooth: FloatArray, rough: FloatArray) -> FloatArray:
    """Mix a smooth covariance, scaled to the trace of the rough one, with the latter."""
    scale = np.trace(rough, axis1=-2, axis2=-1) / np.trace(smooth, axis1=-2, axis2=-1)
    share = (1.0 - _ROUGH) * scale
    return np.asarray(share[..., None, None] * smooth + _ROUGH * rough)


def pool(rows: Rows, counts: FloatArray, n: float, alpha: float) -> PooledRows:
    """Return the pooled rows for given class counts; alpha is that of a Dirichlet over rows."""
    K, x = rows.size, rows.shares(counts)
    sampling = (1.0 - 1.0 / K) / K / counts
    precision = 1.0 / (rows.noise[:, None] / counts**2 + sampling)
    total = precision.sum(axis=1)
    pooled = (precision[..., None] * x).sum(axis=1) / total[:, None]
    center, common = _hyperprior(pooled, total, alpha)
    variance = _own_variance(((pooled - center) ** 2).sum(axis=1) / (K - 1), total, common, K)
    if rows.ordered:
        flat = np.eye(K) - 1.0 / K
        shape = with_rough_share(flat @ smooth_kernel(K) @ flat, flat)
        prior = variance[:, None, None] * shape
        gain = np.linalg.solve(prior + np.eye(K) / total[:, None, None], prior)
        mean = center + np.einsum("jwv,jw->jv", gain, pooled - center)
    else:
        gain = variance * total / (1.0 + variance * total)
        mean = center + gain[:, None] * (pooled - center)
    deviation = np.sqrt(variance / (1.0 + variance * total))
    floor = np.maximum(0.5 * alpha / max(n, 1.0), 0.25 * deviation / np.sqrt(K))
    unprojected = PooledRows(mean, center, variance, floor)
    return PooledRows(unprojected.positive(mean), center, variance, floor)


def _own_variance(
    squares: FloatArray, precision: FloatArray, common: float, size: int
) -> FloatArray:
    """Return each feature's variance around the center: rows with one likely value are far off.

    A feature's own moment counts as its degrees of freedom, as far as it is not noise.
    """
    own = np.clip(squares - 1.0 / precision, 0.0, 1.0 / (size - 1))
    freedom = (size - 1) * (common / (common + 1.0 / precision)) ** 2
    return np.asarray((freedom * own + _SHARED_FREEDOM * common) / (freedom + _SHARED_FREEDOM))


def _hyperprior(
    pooled: FloatArray, precision: FloatArray, alpha: float
) -> tuple[FloatArray, float]:
    r"""Return center and variance of pooled rows of one size.

    The variance :math:`v_0 = 1/(K(\alpha K + 1))` of a Dirichlet counts as five more features, and
    1/K with precision 2/v_0 as a prior of the center.
    """
    J, K = pooled.shape
    flat = 1.0 / (K * (alpha * K + 1.0))
    variance = flat
    for _ in range(_ROUNDS):
        weight = 1.0 / (variance + 1.0 / precision)
        total = weight.sum() + 2.0 / flat
        center = (weight @ pooled + 2.0 / flat / K) / total
        spread = ((pooled - center) ** 2).sum(axis=1) / (K - 1) - 1.0 / precision
        moment = (spread.sum() + _PSEUDO_FEATURES * flat) / (J + _PSEUDO_FEATURES)
        variance = float(np.clip(moment, 0.05 * flat, 2.0 * flat) + 1.0 / total)
    return center, variance
