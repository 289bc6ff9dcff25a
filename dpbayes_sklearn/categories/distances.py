r"""Distances between Dirichlet laws, given by their concentrations in the last axis.

With :math:`B(a) = \prod_i \Gamma(a_i) / \Gamma(\sum_i a_i)` the Hellinger distance H, the total
variation V and the Kullback-Leibler divergence D satisfy

.. math:: H^2 \le V \le \sqrt2\, H, \qquad V \le \sqrt{D/2} .

V is the most that an unbounded adversary gains who must tell two laws apart, which is why a small H
is worth having. (:math:`\chi^2` has no place here: it is infinite between many posteriors of the
same number of records.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, expit, gammaln, psi

from dpbayes_sklearn._typing import FloatArray

__all__ = ["DISTANCES", "hellinger", "kullback_leibler", "log_beta", "total_variation"]

Distance: TypeAlias = Callable[[npt.ArrayLike, npt.ArrayLike], FloatArray]


def log_beta(concentration: FloatArray) -> FloatArray:
    """Log of the multivariate beta function over the last axis."""
    log_b: FloatArray = gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))
    return log_b


def hellinger(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    r"""Return the Hellinger distance.

    .. math:: H(a, b) = \sqrt{1 - \frac{B((a+b)/2)}{\sqrt{B(a)B(b)}}}

    Examples
    --------
    >>> float(hellinger([1.0, 1.0], [1.0, 1.0])), round(float(hellinger([1, 1], [2, 1])), 4)
    (0.0, 0.2391)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    log_affinity = log_beta((a + b) / 2) - (log_beta(a) + log_beta(b)) / 2
    return np.asarray(np.sqrt(-np.expm1(np.minimum(log_affinity, 0.0))))


def total_variation(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    r"""Return the total variation of two Beta laws of the same total a + b.

    Their log ratio is linear in the log odds, so the densities cross once, at

    .. math:: \log\frac{\theta}{1-\theta} = \frac{\log B(a) - \log B(b)}{a_1 - b_1},

    and the distance is the difference of the distribution functions there.

    Examples
    --------
    >>> float(total_variation([2.0, 2.0], [2.0, 2.0])), float(total_variation([1, 2], [2, 1]))
    (0.0, 0.5)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape[-1] != 2 or not np.allclose(a.sum(axis=-1), b.sum(axis=-1)):
        raise ValueError("The total variation is known for two Beta laws of the same total only.")
    apart = a[..., 0] - b[..., 0]
    log_odds = (log_beta(a) - log_beta(b)) / np.where(apart == 0, np.inf, apart)
    crossing = expit(log_odds)
    below = [betainc(law[..., 0], law[..., 1], crossing) for law in (a, b)]
    return np.asarray(np.abs(below[0] - below[1]) * (apart != 0))


def kullback_leibler(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    r"""Return the divergence of the law a from the law b: the mean log ratio under a.

    .. math:: D(a, b) = \log\frac{B(b)}{B(a)} +
        \sum_i (a_i - b_i)\big(\psi(a_i) - \psi(\textstyle\sum_j a_j)\big)

    Examples
    --------
    >>> float(kullback_leibler([2, 3], [2, 3])), round(float(kullback_leibler([2, 3], [3, 2])), 3)
    (0.0, 0.5)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    slopes = psi(a) - psi(a.sum(axis=-1, keepdims=True))
    return np.asarray(log_beta(b) - log_beta(a) + ((a - b) * slopes).sum(axis=-1))


DISTANCES: dict[str, Distance] = {
    "hellinger": hellinger,
    "total_variation": total_variation,
    "kl": kullback_leibler,
}
"""Distances between posteriors by the names that users pass."""
