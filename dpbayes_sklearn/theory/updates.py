r"""Noise on posterior updates: error of counts and posteriors (Zhang et al., section 3.1).

Every count of every table gets independent noise of scale :math:`b = \Delta/\varepsilon`,
:math:`\Delta = 2|I|` for a whole record. The papers speak of continuous Laplace noise. Here it
lives on the integers, :math:`P(Z = z) \propto q^{|z|}` with :math:`q = e^{-1/b}`, so that

.. math:: P(|Z| > z) \le \frac{2}{1+q}\, e^{-z/b},

which costs every bound :math:`b \ln\frac{2}{1+q} < \tfrac12` count more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import betaln, psi

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise.discrete_laplace import integer_allowance
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit
from dpbayes_sklearn.statistics.network import Network

__all__ = [
    "beta_divergence",
    "cell_count",
    "count_error_quantile",
    "divergence_deviation",
    "divergence_range",
    "expected_divergence",
    "noise_scale",
    "update_bound",
]


def cell_count(network: Network) -> int:
    r"""Return :math:`\sum_i \prod_{u \in F_i} K_u`, the number of counts that get noise.

    For Boolean nodes this is 2m, :math:`m = \sum_i 2^{|\pi_i|}`. A table of one cell holds the
    number of records, which is public.

    >>> cell_count(Network.star([2, 2, 2], n_classes=2))
    14
    """
    return sum(math.prod(shape) for shape in network.shapes if math.prod(shape) > 1)


def noise_scale(
    network: Network, epsilon: float, unit: PrivacyUnit = RECORD, budget_split: float = 1.0
) -> float:
    r"""Return :math:`b = 2|I|/\varepsilon`; for one feature value only its own tables change.

    With a ``budget_split`` w that of the table with more noise, the class table or any other.

    >>> noise_scale(Network.star([2, 2, 2], n_classes=2), epsilon=0.5)
    16.0
    >>> noise_scale(Network.star([2, 2, 2], n_classes=2), epsilon=0.5, budget_split=0.5)
    28.0
    """
    classes = Network((network.sizes[-1],), ((),)).tables_changed(unit)
    others = network.tables_changed(unit) - classes
    return unit.moves * (others + budget_split * classes) / min(budget_split, 1.0) / epsilon


def update_bound(
    network: Network,
    epsilon: float,
    delta: float,
    unit: PrivacyUnit = RECORD,
    budget_split: float = 1.0,
) -> float:
    r"""Return a (1 - delta) bound on the largest error of a released count.

    .. math:: \|\Delta\omega - \Delta\omega'\|_\infty
        \le b \ln\frac{M}{\delta} + b \ln\frac{2}{1+q}, \qquad b = \frac{2|I|}{\varepsilon},

    M being the :func:`cell_count`; Zhang et al., Proposition 1, for nodes of any number of values
    and integer noise.

    >>> star = Network.star([2] * 10, n_classes=2)
    >>> round(update_bound(star, epsilon=1.0, delta=0.05), 1)
    148.6
    """
    scale = noise_scale(network, epsilon, unit, budget_split)
    return scale * math.log(cell_count(network) / delta) + integer_allowance(scale)


def count_error_quantile(scale: float, probability: float, cells: int = 1) -> int:
    r"""Return the exact quantile of the largest of ``cells`` absolute errors.

    The smallest integer z with :math:`\left(1 - \frac{2 q^{z+1}}{1+q}\right)^M \ge p`: what
    Proposition 1 bounds, without the union bound.

    >>> count_error_quantile(scale=22.0, probability=0.95, cells=42)
    148
    """
    tail = -math.expm1(math.log(probability) / cells)
    exact = -scale * math.log(tail * (1 + math.exp(-1 / scale)) / 2) - 1
    return max(0, math.ceil(exact - 1e-9))


def beta_divergence(a: float, b: float, c: float, d: float) -> float:
    r"""Return KL(Beta(a, b) || Beta(c, d)).

    .. math:: \ln\frac{B(c, d)}{B(a, b)} + (a-c)\psi(a) + (b-d)\psi(b) + (c-a+d-b)\psi(a+b)

    >>> round(beta_divergence(2, 3, 2, 3), 6), round(beta_divergence(2, 3, 3, 2), 3)
    (0.0, 0.5)
    """
    ratio = betaln(c, d) - betaln(a, b)
    return float(ratio + (a - c) * psi(a) + (b - d) * psi(b) + (c - a + d - b) * psi(a + b))


def divergence_range(alpha: float, beta: float, n: int) -> float:
    r"""Return the most that clipped noise can change the divergence of one posterior.

    .. math:: c_{ij} = (2n+1)\,[\ln(\alpha+n+1) + \ln(\beta+n+1)]

    Zhang et al., Lemma A.4, for prior parameters of at least 1 and updates clipped to [0, n]. A
    divergence is convex in the noisy update, so its range is its largest value at the corners.

    >>> round(divergence_range(1.0, 1.0, n=50), 1)
    798.2
    """
    return (2 * n + 1) * (math.log(alpha + n + 1) + math.log(beta + n + 1))


def divergence_deviation(ranges: Iterable[float], delta: float) -> float:
    r"""Return what the divergence exceeds its mean by with probability at most delta.

    .. math:: \sqrt{\tfrac12 \ln\tfrac1\delta \sum_{ij} c_{ij}^2}

    Zhang et al., Theorem 1, with the squares that McDiarmid's inequality needs.

    >>> round(divergence_deviation([3.0, 4.0], delta=0.1), 3)
    5.365
    """
    return math.sqrt(math.log(1 / delta) / 2 * sum(c**2 for c in ranges))


def expected_divergence(
    alpha: float, beta: float, successes: int, failures: int, n: int, scale: float
) -> float:
    r"""Return the mean divergence of Beta(alpha + successes, beta + failures) from its release.

    .. math:: \sum_{z, w} P(z \mid s)\,P(w \mid f)\,
        \mathrm{KL}\big(\mathrm{Beta}(\alpha+s, \beta+f)\,\|\,\mathrm{Beta}(\alpha+z, \beta+w)\big)

    over updates z, w from 0 to n, noise beyond the ends clipped to them: the exact value in place
    of the expectation's bound in Theorem 1, whose refined form goes to zero far too fast.

    >>> round(expected_divergence(1, 1, successes=30, failures=20, n=50, scale=4.0), 3)
    0.738
    """
    a, b = alpha + successes, beta + failures
    up, down = _clipped_law(successes, n, scale), _clipped_law(failures, n, scale)
    c, d = alpha + np.arange(n + 1.0)[:, None], beta + np.arange(n + 1.0)
    slopes = (c - a) * (psi(a + b) - psi(a)) + (d - b) * (psi(a + b) - psi(b))
    return float(up @ (betaln(c, d) - betaln(a, b) + slopes) @ down)


def _clipped_law(count: int, n: int, scale: float) -> FloatArray:
    """Law over 0..n of a count plus integer Laplace noise, clipped: the ends take the tails."""
    q = math.exp(-1 / scale)
    law: FloatArray = (1 - q) / (1 + q) * q ** np.abs(np.arange(n + 1.0) - count)
    law[0], law[-1] = q**count / (1 + q), q ** (n - count) / (1 + q)
    return law
