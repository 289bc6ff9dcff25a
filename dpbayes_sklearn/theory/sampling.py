r"""Draws from the posterior: its sensitivity, the privacy cost and the information in draws.

Dimitrakakis et al., Theorems 1 to 3; Zhang et al., Theorem 4 and appendix C.2. Constants L, c and
metrics ρ are those of :mod:`dpbayes_sklearn.theory.lipschitz`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import lambertw

from dpbayes_sklearn.theory.lipschitz import table_lipschitz

__all__ = [
    "KAPPA",
    "OMEGA",
    "averaging_error",
    "distinguishable_distance",
    "divergence_bound",
    "sampler_epsilon",
    "smoothness_constant",
    "stochastic_distinguishable_distance",
    "stochastic_divergence_bound",
    "total_variation_bound",
    "truncation_for",
]

OMEGA = -0.5 - float(lambertw(-0.5 * math.exp(-0.5), -1).real)
"""The positive root 1.25643 of exp(ω) = 2ω + 1."""

KAPPA = 2 * OMEGA / math.expm1(-OMEGA) ** 2
"""2ω / (1 - exp(-ω))² = 4.91081, the smallest value of 2a / (1 - exp(-a))² over a > 0."""


def divergence_bound(lipschitz: float, distance: float) -> float:
    r"""Return :math:`2L\rho`, which bounds the KL divergence of two posteriors and its log ratio.

    Dimitrakakis et al., Theorems 1 (i) and 2 (i): one draw is :math:`(2L, 0)`-private under ρ.

    >>> divergence_bound(0.5, distance=1.0)
    1.0
    """
    return 2 * lipschitz * distance


def stochastic_divergence_bound(concentration: float, distance: float) -> float:
    r"""Return :math:`\kappa\rho/c`, the claim of Dimitrakakis et al., Theorem 1 (ii).

    **Not valid in general.** The proof averages log ratios over the prior where the divergence
    averages over the posterior. :func:`total_variation_bound` with :func:`smoothness_constant` is
    what holds.

    >>> round(stochastic_divergence_bound(10.0, distance=1.0), 3)
    0.491
    """
    return KAPPA * distance / concentration


def smoothness_constant(
    concentration: float, start: float, slack: float, likelihood_ratio: float
) -> float:
    r"""Return M of Zhang et al., Theorem 4.

    .. math:: M = \Big(\frac\kappa c + L_0\Big(\frac1{1-e^{-\omega}} + 1\Big) + \ln C +
        \ln\Big(\frac{e^{-L_0 \delta c}}{e^{-\omega(1-\delta)} - e^{-\omega}} +
        e^{L_0(1-\delta)c}\Big)\Big)\,C

    for data at distances of at most :math:`(1-\delta)c`, δ being ``slack`` and C the
    ``likelihood_ratio``: the largest ratio of the maximum to the marginal likelihood.

    >>> round(smoothness_constant(300.0, start=0.01, slack=0.99, likelihood_ratio=1.005), 3)
    0.144
    """
    c, ratio = concentration, likelihood_ratio
    tail = -start * slack * c - math.log(math.exp(-OMEGA * (1 - slack)) - math.exp(-OMEGA))
    head = start * (1 - slack) * c
    spread = start * (1 / -math.expm1(-OMEGA) + 1)
    return (KAPPA / c + spread + math.log(ratio) + float(np.logaddexp(tail, head))) * ratio


def total_variation_bound(smoothness: float, distance: float) -> float:
    r"""Return :math:`\sqrt{\tfrac M2 \max(\rho, 1)}`, at most 1.

    Bounds :math:`|\xi(B|x) - \xi(B|y)|` over all sets B; Zhang et al., Theorem 4. It says something
    only if M is below 2.

    >>> round(total_variation_bound(0.144, distance=1.0), 3)
    0.268
    """
    return min(1.0, math.sqrt(smoothness / 2 * max(distance, 1.0)))


def distinguishable_distance(lipschitz: float, n_draws: int, delta: float) -> float:
    r"""Return the distance below which n draws do not distinguish two data sets.

    .. math:: \rho = \frac{3}{4 L n} \ln\frac1\delta

    Dimitrakakis et al., Theorem 3: an adversary who compares empirical frequencies, on a partition
    of at most :math:`\log_2\sqrt{1/\delta}` sets, errs by less than
    :math:`\sqrt{3\ln(1/\delta)/n}` with probability 1 - δ, and data sets that are closer than ρ
    have posteriors within that. (The theorem says that data sets farther apart *can* be
    distinguished; that need not be so.)

    >>> distinguishable_distance(0.5, n_draws=0, delta=0.05)
    inf
    >>> round(distinguishable_distance(0.05, n_draws=100, delta=0.05), 3)
    0.449
    """
    return 3 * math.log(1 / delta) / (4 * lipschitz * n_draws) if n_draws else math.inf


def stochastic_distinguishable_distance(concentration: float, n_draws: int, delta: float) -> float:
    r"""Return :math:`\rho = \frac{3c}{2\kappa n} \ln\frac1\delta`, the same under Assumption 2.

    Rests on :func:`stochastic_divergence_bound` and shares its fault.

    >>> round(stochastic_distinguishable_distance(10.0, n_draws=100, delta=0.05), 3)
    0.092
    """
    return 3 * concentration * math.log(1 / delta) / (2 * KAPPA * n_draws) if n_draws else math.inf


def sampler_epsilon(omega: float, levels: int = 1, temper: float = 1.0, n_draws: int = 1) -> float:
    r"""Return :math:`\varepsilon = 2 N \tau D L`, :math:`L = \ln\frac{1-\omega}{\omega}`.

    The cost of N joint draws from posteriors that are truncated to :math:`[\omega, 1-\omega]` and
    tempered by τ, if a neighbouring change touches D levels of splits twice: for a record the sum
    of all nodes' depths (their number, if Boolean), for one feature value its own depth.

    >>> round(sampler_epsilon(omega=0.2, levels=17), 1)
    47.1
    """
    return 2 * n_draws * temper * levels * table_lipschitz(omega)


def truncation_for(epsilon: float) -> float:
    r"""Return :math:`\omega = 1/(1+e^{\varepsilon/2})`: one draw, one Boolean feature as the unit.

    Always below 1/2, where the :math:`e^{-\varepsilon/2}` of Zhang et al., appendix C.2, is not.

    >>> round(truncation_for(1.0), 3), round(sampler_epsilon(truncation_for(1.0)), 6)
    (0.378, 1.0)
    """
    return 1 / (1 + math.exp(epsilon / 2))


def averaging_error(n_draws: int, delta: float) -> float:
    r"""Return :math:`\sqrt{\ln(2/\delta)/2N}`.

    The average answer of N draws to a query with values in [0, 1] is so close to the posterior mean
    of the query, with probability at least 1 - δ (Hoeffding).

    >>> round(averaging_error(1000, delta=0.05), 3)
    0.043
    """
    return math.sqrt(math.log(2 / delta) / (2 * n_draws))
