r"""Lipschitz constants of likelihoods, and their concentration under the prior.

*Assumption 1*: :math:`|\ln p_\theta(x) - \ln p_\theta(y)| \le L \rho(x, y)` for all
parameters. *Assumption 2*: the set :math:`\Theta_L` of parameters for which that holds has prior
mass at least :math:`1 - e^{-cL}` for all :math:`L \ge L_0`. Large c and small L mean privacy.
(Dimitrakakis et al., sections 2 and 5; Zhang et al., section 4.1.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import betainc, betaln

from dpbayes_sklearn.statistics.network import Network

__all__ = [
    "bernoulli_concentration",
    "bernoulli_lipschitz",
    "composed_concentration",
    "composed_lipschitz",
    "exponential_concentration",
    "families_per_node",
    "laplace_concentration",
    "lifted_concentration",
    "lifted_lipschitz",
    "normal_concentration",
    "table_lipschitz",
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
