r"""Lipschitz constants of likelihoods, and what they say about draws from the posterior.

**Lipschitz constants of likelihoods, and their concentration under the prior.**

*Assumption 1*: :math:`|\ln p_\theta(x) - \ln p_\theta(y)| \le L \rho(x, y)` for all
parameters. *Assumption 2*: the set :math:`\Theta_L` of parameters for which that holds has prior
mass at least :math:`1 - e^{-cL}` for all :math:`L \ge L_0`. Large c and small L mean privacy.
(Dimitrakakis et al., sections 2 and 5; Zhang et al., section 4.1.)

**Draws from the posterior: its sensitivity, the privacy cost and the information in draws.**

Dimitrakakis et al., Theorems 1 to 3; Zhang et al., Theorem 4 and appendix C.2. Constants L, c and
metrics ρ are those above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betainc, betaln, lambertw

from dpbayes_sklearn.counts.dirichlet import averaging_error
from dpbayes_sklearn.counts.network import Network

__all__ = [
    "KAPPA",
    "OMEGA",
    "averaging_error",
    "bernoulli_concentration",
    "bernoulli_lipschitz",
    "composed_concentration",
    "composed_lipschitz",
    "distinguishable_distance",
    "divergence_bound",
    "empirical_error",
    "exponential_concentration",
    "exponential_family_epsilon",
    "families_per_node",
    "laplace_concentration",
    "lifted_concentration",
    "lifted_lipschitz",
    "metric_epsilon",
    "normal_concentration",
    "partition_limit",
    "sampler_epsilon",
    "sharp_divergence_bound",
    "smoothness_constant",
    "stochastic_distinguishable_distance",
    "stochastic_divergence_bound",
    "table_lipschitz",
    "total_variation_bound",
    "truncation_for",
]


def exponential_concentration(rate: float) -> float:
    r"""Return c for Exp(θ) data and the prior θ ~ Exp(rate).

    :math:`|\ln p_\theta(x) - \ln p_\theta(y)| = \theta|x-y|`, so :math:`\Theta_L = \{\theta \le
    L\}` and :math:`c = \lambda` with equality (Dimitrakakis et al., Lemma 3).

    >>> exponential_concentration(2.0)
    2.0
    """
    return rate


def laplace_concentration(rate: float) -> float:
    r"""Return c for Laplace data of density :math:`\frac\theta2 e^{-\theta|x-\mu|}`, θ ~ Exp(rate).

    :math:`\theta\,\big||x-\mu|-|y-\mu|\big| \le \theta|x-y|`, so again :math:`c = \lambda`
    (Dimitrakakis et al., Lemma 4).

    >>> laplace_concentration(2.0)
    2.0
    """
    return rate


def normal_concentration(rate: float, mean: float = 0.0) -> float:
    r"""Return c for N(mean, 1/τ) data when the precision τ ~ Exp(rate).

    With :math:`\rho(x, y) = |x^2-y^2| + 2|x-y|` the log ratio is
    :math:`\frac\tau2|x^2 - y^2 - 2\mu(x-y)| \le \frac\tau2 \max(1, |\mu|)\,\rho`, hence
    :math:`c = 2\lambda/\max(1, |\mu|)`. Dimitrakakis et al., Lemma 6, put the prior on the
    *variance*, for which no c exists.

    >>> normal_concentration(2.0), normal_concentration(2.0, mean=8.0)
    (4.0, 0.5)
    """
    return 2 * rate / max(1.0, abs(mean))


def bernoulli_lipschitz(theta: float) -> float:
    r"""Return :math:`|\ln\frac{\theta}{1-\theta}|`, the constant of a coin; unbounded over θ.

    >>> bernoulli_lipschitz(0.5), round(bernoulli_lipschitz(0.1), 3)
    (0.0, 2.197)
    """
    return abs(math.log(theta) - math.log1p(-theta))


def bernoulli_concentration(alpha: float, start: float = 0.0) -> float:
    r"""Return the largest c for coin flips with the prior Beta(alpha, alpha), from L₀ = start on.

    .. math:: c = -\frac1{L_0} \ln 2 I_{1/(1+e^{L_0})}(\alpha, \alpha), \qquad
        c = \frac{2^{1-2\alpha}}{B(\alpha, \alpha)}\ \text{at}\ L_0 = 0.

    The log odds of a Beta variable have a log-concave law, so :math:`-\ln(1-\xi(\Theta_L))/L` grows
    with L and the smallest L decides. Dimitrakakis et al., Lemma 5, say only :math:`O(\alpha)`; it
    is :math:`\sqrt{\alpha/\pi}` from zero on and tends to α for large L₀.

    >>> bernoulli_concentration(1.0)
    0.5
    >>> [round(bernoulli_concentration(16.0, start), 2) for start in (0.0, 1.0, 10.0)]
    [2.24, 5.13, 13.98]
    """
    if start == 0:
        return math.exp((1 - 2 * alpha) * math.log(2) - float(betaln(alpha, alpha)))
    outside = 2 * betainc(alpha, alpha, 1 / (1 + math.exp(start)))
    return -math.log(outside) / start


def table_lipschitz(omega: float, size: int = 2) -> float:
    r"""Return :math:`L = \ln\frac{1 - (K-1)\omega}{\omega}` if no entry of a table is below omega.

    Sharper than :math:`\ln(1/\omega)` (Dimitrakakis et al., Lemma 7): K probabilities that are at
    least ω are at most :math:`1-(K-1)\omega`.

    >>> round(table_lipschitz(0.1), 3), round(table_lipschitz(0.5), 3)
    (2.197, 0.0)
    """
    return math.log((1 - (size - 1) * omega) / omega)


def lifted_lipschitz(lipschitz: float, differing: int) -> float:
    r"""Return :math:`L \cdot k` for data sets that differ in k records.

    With the *largest* distance of two records as metric:
    :math:`|\ln\prod_i p(x_i) - \ln\prod_i p(y_i)| \le k L \max_i \rho(x_i, y_i)`. With the *sum*
    of distances L itself will do; Dimitrakakis et al., Lemma 1, multiply by k all the same.

    >>> lifted_lipschitz(0.5, differing=3)
    1.5
    """
    return lipschitz * differing


def lifted_concentration(concentration: float, differing: int) -> float:
    r"""Return :math:`c / k` for data sets that differ in k records, as :func:`lifted_lipschitz`.

    >>> lifted_concentration(6.0, differing=3)
    2.0
    """
    return concentration / differing


def families_per_node(network: Network) -> int:
    r"""Return the most families that one node is in: 1 + its number of children, at the largest.

    >>> families_per_node(Network.star([2, 2, 2], n_classes=2))
    4
    """
    return max(sum(u in family for family in network.families) for u in range(len(network.sizes)))


def composed_lipschitz(network: Network, lipschitz: Sequence[float]) -> float:
    r"""Return the constant of a whole network, given that of every node's conditional.

    .. math:: L = \max_u \sum_{i : u \in F_i} L_i

    in the metric :math:`\rho(x, y) = \sum_u \rho_u(x_u, y_u)`: a changed node changes the term of
    every family it is in. Zhang et al., Lemma 2, give :math:`\max_i L_i`, which holds only
    if there are no edges.

    >>> composed_lipschitz(Network.star([2, 2, 2], n_classes=2), [1.0, 1.0, 1.0, 1.0])
    4.0
    """
    return max(
        sum(c for c, family in zip(lipschitz, network.families, strict=True) if u in family)
        for u in range(len(network.sizes))
    )


def composed_concentration(
    network: Network, concentrations: Sequence[float], start: float
) -> float:
    r"""Return c of a whole network, given that of every node's conditional from L₀ = start on.

    .. math:: c' = \frac1k\Big(\min_i c_i - \frac{\ln|I|}{L_0}\Big)

    from :math:`k L_0` on, k being :func:`families_per_node`, for the reason given at
    :func:`composed_lipschitz`. Without edges this is Zhang et al., Lemma 3 (of the body; the
    appendix's constant is wrong).

    >>> round(composed_concentration(Network((2, 2, 2), ((), (), ())), [1.0] * 3, start=2.0), 3)
    0.451
    """
    combined = min(concentrations) - math.log(len(network.sizes)) / start
    if combined <= 0:
        raise ValueError("The network has more nodes than exp(start * min(concentrations)).")
    return combined / families_per_node(network)


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


def sharp_divergence_bound(lipschitz: float, distance: float) -> float:
    r"""Return :math:`\min(2L\rho, \tfrac12(L\rho)^2)`, the smaller bound on the KL divergence.

    The log-likelihood ratio lies in an interval of width :math:`w = 2L\rho`, so along the path from
    one posterior to the other its variance is at most :math:`w^2/4`, and the divergence at most
    :math:`w^2/8` (Hoeffding's lemma). Sharper than :func:`divergence_bound` for :math:`L\rho < 4`.

    >>> sharp_divergence_bound(0.5, distance=1.0)
    0.125
    """
    moved = lipschitz * distance
    return min(2 * moved, moved**2 / 2)


def exponential_family_epsilon(
    parameter_range: float, statistic_range: float, temper: float = 1.0, n_draws: int = 1
) -> float:
    r"""Return :math:`\varepsilon = N \tau\, |\eta_{max} - \eta_{min}|\, |T_{max} - T_{min}|`.

    The cost of N draws from a posterior of :math:`p_\eta(x) = h(x) e^{\eta T(x) - A(\eta)}` whose
    parameter and statistic have public bounds: the log ratio of two posteriors is linear in η with
    slope :math:`\tau(T(x) - T(y))`, and changes its sign. Records at distance
    :math:`\rho = |T(x) - T(y)|` are protected with that ρ in place of the range of T. Exponential
    and Laplace data (T = x, T = \|x - μ\|, η the rate) and normal data (T = x, η = mean/variance)
    are Dimitrakakis et al., Lemmas 3, 4 and 6, without a prior's tail that has to be small.

    >>> exponential_family_epsilon(parameter_range=2.0, statistic_range=10.0, temper=0.05)
    1.0
    """
    return n_draws * temper * parameter_range * statistic_range


def metric_epsilon(epsilon: float, distance: float, diameter: float) -> float:
    r"""Return :math:`\varepsilon\rho/\rho_0`, the protection of records at distance ρ.

    Dimitrakakis et al., Definition 2: a release that is :math:`\varepsilon`-private for any two
    records, and whose loss grows linearly in a metric of diameter :math:`\rho_0`, protects the
    difference of two records at distance ρ so much better.

    >>> metric_epsilon(1.0, distance=5.0, diameter=50.0)
    0.1
    """
    return epsilon * min(distance, diameter) / diameter


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
    r"""Return the distance below which frequencies of n draws do not tell two data sets apart.

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


def partition_limit(delta: float) -> int:
    r"""Return the most sets of a partition in Dimitrakakis et al., Lemma 2.

    .. math:: m \le \log_2\sqrt{1/\delta}

    >>> partition_limit(0.05), partition_limit(1e-6)
    (2, 9)
    """
    return math.floor(math.log2(1 / delta) / 2)


def empirical_error(n_draws: int, delta: float) -> float:
    r"""Return the L1 error of the frequencies of n draws (Dimitrakakis et al., Lemma 2).

    .. math:: \|\hat P_n - P\|_1 \le \sqrt{\tfrac3n \ln\tfrac1\delta}

    with probability at least 1 - δ, on a partition of at most :func:`partition_limit` sets
    (Weissman et al. 2003: :math:`P(\|\cdot\|_1 \ge \epsilon) \le (2^m - 2)e^{-n\epsilon^2/2}`).

    >>> round(empirical_error(1000, delta=0.05), 3)
    0.095
    """
    return math.sqrt(3 * math.log(1 / delta) / n_draws)


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
