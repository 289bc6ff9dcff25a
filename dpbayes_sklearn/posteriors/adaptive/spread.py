r"""How far rows spread around their pooled row: a mixture learned from all features.

Evidence for a spread g with the pooled row integrated out. In coordinates of a class,
:math:`s_c = \sigma^2/n_c^2 + \lambda/n_c + g\lambda`; the pooled row has precision
:math:`W = \sum_c 1/s_c + 1/\varrho` and mean
:math:`\hat\mu = (\sum_c x_c/s_c + h/\varrho)/W`, so

.. math:: \ell = -\tfrac12 \Bigl[\sum_c \log s_c + \log W + \log \varrho
    + \sum_c (x_c - \hat\mu)^2/s_c + (\hat\mu - h)^2/\varrho\Bigr].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.adaptive.components import Components
from dpbayes_sklearn.posteriors.adaptive.pooled_rows import PooledRows
from dpbayes_sklearn.posteriors.adaptive.standard_form import Rows

__all__ = ["SPREADS", "Evidence", "evidence", "mixture", "prior_weights"]

SPREADS = np.array([0.0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6])
_NO_SPREAD = 0.1  # prior probability of g = 0
_WIDTH = 1.2  # standard deviation of log g under the prior
_SMOOTH = 0.5  # prior probability that rows of ordered values are smooth, if they spread at all
_PSEUDO_FEATURES = 5.0
_ROUNDS = 60


@dataclass(frozen=True)
class Evidence:
    """What the rows of J features say about G spreads, and pooled rows given each of them.

    Attributes
    ----------
    components : Components
    spreads : array of shape (G,)
    log_evidence : array of shape (J, G)
    observed : array of shape (J, C, L)
        Coordinates of row estimates.
    precision : array of shape (J, C, L, G)
        The 1/s.
    pooled_precision, pooled_mean : arrays of shape (J, L, G)
    """

    components: Components
    spreads: FloatArray
    log_evidence: FloatArray
    observed: FloatArray
    precision: FloatArray
    pooled_precision: FloatArray
    pooled_mean: FloatArray


def evidence(
    rows: Rows, pooled: PooledRows, components: Components, spreads: FloatArray, counts: FloatArray
) -> Evidence:
    """Return the evidence of rows for each of the spreads, at given class counts."""
    parts = components
    observed = parts.coordinates(rows.contrasts) / counts[:, None]
    center = parts.coordinates(np.broadcast_to(pooled.center - 1.0 / rows.size, pooled.mean.shape))[
        ..., None
    ]
    error = (rows.noise[:, None] / counts**2)[..., None] * parts.isotropic[:, None]
    error = error + parts.sampling[:, None] / counts[:, None]
    variance = error[..., None] + parts.spread[:, None, :, None] * spreads
    precision, prior = 1.0 / variance, (pooled.variance[:, None] * parts.isotropic)[..., None]
    total = precision.sum(axis=1) + 1.0 / prior
    mean = ((observed[..., None] * precision).sum(axis=1) + center / prior) / total
    misfit = ((observed[..., None] - mean[:, None]) ** 2 * precision).sum(axis=1)
    log = np.log(variance).sum(axis=1) + np.log(total) + np.log(prior)
    log_evidence = -0.5 * parts.weight * (log + misfit + (mean - center) ** 2 / prior).sum(axis=1)
    log_evidence += len(counts) * parts.log_volume[:, None]
    return Evidence(parts, spreads, log_evidence, observed, precision, total, mean)


def prior_weights(freedom: int, ordered: bool) -> FloatArray:
    r"""Return prior weights of the spreads; of ordered features exchangeable, then smooth ones.

    Positive spreads are log-normal around :math:`\min(5/D, 0.3)`, D being the degrees of freedom
    of all rows together: many features cannot all be very informative.

    >>> prior_weights(100, ordered=False).round(2)
    array([0.1 , 0.  , 0.  , 0.02, 0.14, 0.31, 0.28, 0.11, 0.04])
    """
    away = np.log(SPREADS[1:] / min(5.0 / freedom, 0.3)) / _WIDTH
    positive = np.exp(-0.5 * away**2)
    positive *= (1.0 - _NO_SPREAD) / positive.sum()
    if ordered:
        return np.concatenate([[_NO_SPREAD], (1.0 - _SMOOTH) * positive, _SMOOTH * positive])
    return np.concatenate([[_NO_SPREAD], positive])


def mixture(log_evidence: Sequence[FloatArray], prior: FloatArray) -> list[FloatArray]:
    """Learn the weights of the spreads by EM; return each feature's posterior over them.

    The prior counts as five more features.
    """
    every = np.concatenate(list(log_evidence))
    likelihood = np.exp(every - every.max(axis=1, keepdims=True))
    weights, pseudo = prior, _PSEUDO_FEATURES * prior
    for _ in range(_ROUNDS):
        weights = weights * ((1.0 / (likelihood @ weights)) @ likelihood) + pseudo
        weights /= weights.sum()
    posterior = weights * likelihood
    posterior /= posterior.sum(axis=1, keepdims=True)
    ends = np.cumsum([len(part) for part in log_evidence])[:-1]
    return np.split(posterior, ends)
