r"""Permute-and-flip (McKenna and Sheldon 2020): choose a candidate by its noisy score.

Candidates come in random order, and each is taken with probability
:math:`p_r = e^{q_r - \max q}`; the first that is taken is the result. With q the scores times
:math:`\varepsilon/2\Delta` that is :math:`\varepsilon`-DP, and never worse than the exponential
mechanism in expected score. Adding public log weights to q changes nothing about that.

**The law.** Let candidates come at independent uniform times. One that comes at time u is chosen
if it is taken, and no other came before and was taken:

.. math:: P(r) = p_r \int_0^1 \prod_{s \ne r} (1 - u p_s)\, du,

a polynomial of degree R - 1, so Gauss-Legendre quadrature with R/2 nodes is exact. All of its
terms are positive: floats err by a relative :math:`2^{-40}` at most for up to 64 candidates, which
`choice_loss` counts in the privacy loss.
"""

from __future__ import annotations

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise.finite import rounding_loss

__all__ = ["choice_log_law", "choice_loss"]

MAX_CANDIDATES = 64


def choice_log_law(scores: FloatArray) -> FloatArray:
    """Return the log probabilities of the candidates (..., R), from scores in nats.

    Parameters
    ----------
    scores : array of shape (..., R)
        The q, finite numbers: a larger one is better. Up to 64 candidates.

    Examples
    --------
    >>> np.exp(choice_log_law(np.log([1.0, 0.5]))).round(3)
    array([0.75, 0.25])
    >>> np.exp(choice_log_law(np.zeros(4))).round(3)
    array([0.25, 0.25, 0.25, 0.25])
    """
    scores = np.asarray(scores, np.float64)
    R = scores.shape[-1]
    if not 1 <= R <= MAX_CANDIDATES:
        raise ValueError(f"There must be from 1 to {MAX_CANDIDATES} candidates.")
    behind = scores - scores.max(axis=-1, keepdims=True)
    nodes, weights = np.polynomial.legendre.leggauss(R // 2 + 1)
    times = 0.5 * (nodes + 1.0)
    survive = np.log1p(-times[:, None] * np.exp(behind)[..., None, :])  # (..., nodes, R)
    others = survive.sum(axis=-1, keepdims=True) - survive
    integral = (0.5 * weights[:, None] * np.exp(others)).sum(axis=-2)
    return np.asarray(behind + np.log(integral))


def choice_loss(candidates: int, magnitude: float) -> float:
    """Bound what rounding adds to the privacy loss of a draw from `choice_log_law`.

    ``magnitude`` bounds the scores, in nats. A log probability errs by half-ulps of the scores,
    and by 2**-40 for the quadrature.

    >>> choice_loss(30, 1e5) < 1e-6
    True
    """
    return rounding_loss(candidates, magnitude + 2.0**10)
