r"""The normal equations with the errors of everything in them.

With the errors :math:`e` of the mean products, of the means and of the target's mean, the residual
of :math:`g = Cw` is, to first order,

.. math:: e_{jt} - \sum_k e_{jk} w_k - e_j \alpha_j - m_j\Big(e_t - \sum_k e_k w_k\Big), \qquad
          \alpha_j = \bar t - m^\top w + \beta_j w_j

(:math:`\beta_j` is the change of the square of j with j itself: 1 for a level, 0 for a number). So,
averaged over the belief about w with :math:`B = ww^\top + S`, its covariance V has

.. math:: \tfrac{\sigma^2}{n} C + \operatorname{diag}(v_g) + v_{jk}B_{jk} +
    [j = k]\sum_{l \ne j} v_{jl}B_{ll} + [j = k] v_j\alpha_j^2 +
    m_jm_k\Big(v_t + \sum_l v_l B_{ll}\Big) - q_jm_k - m_jq_k, \quad q = v_m w \alpha .

The belief :math:`S = (CV^{-1}C + \Lambda)^{-1}`, :math:`w = SCV^{-1}g` and the weights are computed
in turn until they agree to a small part of a standard deviation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.regression.centred import Centred

__all__ = ["Solution", "divided", "eigenvalues_at_least", "solve"]

_MOST_ROUNDS = 40
_AGREE = 1e-4  # standard deviations
_DEGREES = 4.0  # of freedom of the prior where it has heavy tails


class Solution(NamedTuple):
    """Mean and covariance of the coefficients, and the unexplained variance.

    ``evidence`` is the log density of g under a normal prior of all precisions, up to a constant.
    """

    w: FloatArray
    spread: FloatArray
    rest: float
    evidence: float


def solve(
    known: Centred,
    c: FloatArray,
    error: FloatArray,
    precisions: FloatArray,
    noise: float | None,
    heavy: FloatArray | None = None,
) -> Solution:
    """Return the belief about the coefficients, for covariances c with errors ``error``.

    Parameters
    ----------
    known : Centred
    c, error : arrays of shape (width, width)
    precisions : array of shape (width,)
        Of the prior.
    noise : float or None
        Variance of the target around the regression; learned if None.
    heavy : array of shape (width,), optional
        Precisions of a second prior, Student's with four degrees of freedom, found by EM.
    """
    g, total, diagonal = known.cross, known.total, np.diag_indices_from(c)
    prior = first = precisions if heavy is None else precisions + heavy
    w, spread = np.zeros(len(g)), np.diag(1 / first)
    rest = total if noise is None else noise
    least = max(0.3 * float(np.sqrt(known.total_error)), 0.02 * total)
    last, part = np.inf, 1.0
    for _ in range(_MOST_ROUNDS):
        v = _variance_of_residual(known, c, error, w, spread, rest)
        inverse_c, _ = divided(v, c)
        inner = c @ inverse_c
        inner[diagonal] += prior
        spread, _ = divided(inner, np.eye(len(g)))
        new = spread @ (inverse_c.T @ g)
        if heavy is not None:
            student = (_DEGREES + 1) / (_DEGREES / heavy + new**2 + np.diag(spread))
            prior = precisions + student
        if noise is None:
            left = total - new @ c @ new - 0.5 * float(np.sum(c * spread))
            rest = float(np.clip(left, min(least, total), total))
        step = np.max(np.abs(new - w) / np.sqrt(np.diag(spread)), initial=0.0)
        if step > 0.7 * last:  # the weights depend on w themselves, so steps may go to and fro
            part = max(part / 2, 0.25)
        w, last = w + part * (new - w), step
        if step <= _AGREE:
            break
    expected, root = divided(v + (c / first) @ c, g[:, None])
    evidence = -0.5 * float(g @ expected[:, 0]) - float(np.log(np.diag(root)).sum())
    return Solution(w, spread, rest, evidence)


def divided(matrix: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return matrix⁻¹ right and the Cholesky factor; the diagonal is raised if it has to be."""
    diagonal = np.diag_indices_from(matrix)
    own, positive = matrix[diagonal], matrix.copy()
    size = float(np.abs(own).max(initial=0.0)) + 1e-300
    for raised in (1e-12, 1e-9, 1e-6, 1e-3, 1.0):
        positive[diagonal] = own + raised * size
        root, solution, failed = dposv(positive, right)
        if not failed:
            break
    return np.asarray(solution), np.asarray(root)


def _variance_of_residual(
    known: Centred, c: FloatArray, error: FloatArray, w: FloatArray, spread: FloatArray, rest: float
) -> FloatArray:
    """Return V."""
    m, mean_error, diagonal = known.mean, known.mean_error, np.diag_indices_from(c)
    second = np.outer(w, w) + spread
    squares = np.diag(second)
    alpha = known.target - m @ w + known.square_slope * w
    v = error * second + rest / known.n * c
    v[diagonal] += error @ squares - np.diag(error) * squares
    v[diagonal] += known.cross_error + mean_error * alpha**2
    q = mean_error * w * alpha
    v += np.outer(m, m) * (known.target_error + mean_error @ squares)
    v -= np.outer(q, m) + np.outer(m, q)
    return v


def eigenvalues_at_least(floor: float, matrix: FloatArray) -> FloatArray:
    """Return the matrix with its small eigenvalues raised."""
    values, axes = np.linalg.eigh(matrix)
    raised: FloatArray = (axes * np.maximum(values, floor)) @ axes.T
    return raised
