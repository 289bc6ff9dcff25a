r"""Draws of rows whose cells have given means and variances.

Independent Gamma numbers of means :math:`m_k` and variances :math:`a_k`, divided by their sum. To
first order a cell then has variance :math:`a_k (1 - 2 m_k) + m_k^2 \sum_i a_i`, which is brought to
the wanted one. With :math:`a_k \propto m_k` it is the Dirichlet.
"""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray

__all__ = ["row_draws"]

_ROUNDS = 30
_LEAST = 1e-12  # variance of a cell, and the smallest number that is drawn


def row_draws(
    mean: FloatArray, variance: FloatArray, rng: np.random.Generator, n: int
) -> FloatArray:
    """Return n draws (n, ..., K) of rows with cells of these means and variances (..., K).

    >>> draws = row_draws(np.array([0.2, 0.8]), np.full(2, 0.01), np.random.default_rng(0), 4000)
    >>> draws.mean(axis=0).round(2), draws.std(axis=0).round(2)
    (array([0.2, 0.8]), array([0.1, 0.1]))
    """
    variance = np.clip(variance, _LEAST, 0.99 * mean * (1.0 - mean) + _LEAST)
    own = variance.copy()
    for _ in range(_ROUNDS):
        got = own * (1.0 - 2.0 * mean) + mean**2 * own.sum(axis=-1, keepdims=True)
        own = own * variance / np.maximum(got, _LEAST)
    mean = np.maximum(mean, _LEAST)
    drawn = rng.gamma(mean**2 / own, own / mean, size=(n, *mean.shape))
    drawn = np.maximum(drawn, _LEAST * mean)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))
