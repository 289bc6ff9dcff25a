r"""Draws of rows whose cells have given means and variances.

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

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpbayes_sklearn._typing import FloatArray

__all__ = ["row_draws"]

_ROUNDS = 30
_LEAST = 1e-12  # variance of a cell, and the smallest number that is drawn
_STEEPEST = 0.97  # deviation over mean up to which a normal is cut off
_STARTS = np.linspace(-12.0, 40.0, 2001)  # mean over deviation of a normal before it is cut off


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
    variance = np.clip(variance, _LEAST, 0.99 * mean * (1.0 - mean) + _LEAST)
    own = variance.copy()
    for _ in range(_ROUNDS):
        got = own * (1.0 - 2.0 * mean) + mean**2 * own.sum(axis=-1, keepdims=True)
        own = own * variance / np.maximum(got, _LEAST)
    mean = np.maximum(mean, _LEAST)
    shape = (n, *mean.shape)
    drawn = rng.gamma(mean**2 / own, own / mean, size=shape)
    if size > 2:
        relative = np.sqrt(own) / mean
        normal = mean * _positive_normal(np.minimum(relative, _STEEPEST), rng.random(shape))
        drawn = np.where(relative < _STEEPEST, normal, drawn)
    drawn = np.maximum(drawn, _LEAST * mean)
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
