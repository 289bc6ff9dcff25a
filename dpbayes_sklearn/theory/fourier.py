r"""Noise in the Fourier domain: error of tables (Zhang et al., section 3.2).

A table is rebuilt from the character sums whose nodes lie in its family. One sum that is off by z
puts the whole table off by exactly \|z\| in L1, whatever the numbers of values: half of it left and
half of it right of a split. Raising the constant sum by s adds s in L1.
"""

from __future__ import annotations

import math

from scipy.special import gammaincinv

from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.noise.discrete_laplace import integer_allowance
from dpbayes_sklearn.statistics.fourier import sum_count
from dpbayes_sklearn.statistics.network import Network

__all__ = [
    "coefficient_count",
    "fourier_table_quantile",
    "paper_fourier_table_bound",
    "table_bound",
]


def coefficient_count(network: Network) -> int:
    r"""Return :math:`|N|`, the number of characters in the families, the constant one included.

    >>> coefficient_count(Network.star([2] * 10, n_classes=2))  # 2d + 2
    22
    """
    return 1 + sum_count(network)


def table_bound(
    network: Network, node: int, law: NoiseLaw, delta: float, increment: float = 0.0
) -> float:
    r"""Return the L1 error of a table that is exceeded with probability at most delta.

    .. math:: \|T_i - \hat T_i\|_1 \le \Big(\prod_{u \in F_i} K_u - 1\Big)\, r + s

    for all nodes at once, r bounding the error of any sum: ``law.error_bound(delta)``. For
    independent noise of scale :math:`b = \Delta_F/\varepsilon` this is Zhang et al., Theorem 3, for
    nodes of any number of values, integer noise and no noise on the constant sum.

    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.noise import DiscreteLaplace, SupNorm
    >>> star = Network.star([2] * 10, n_classes=2)  # 21 sums, L1 sensitivity 4d = 40
    >>> round(table_bound(star, 0, DiscreteLaplace.of(Fraction(40), [21]), delta=0.05))
    726
    >>> joint = SupNorm.of((1,) * 21, sensitivity=2, epsilon=Fraction(1))
    >>> round(table_bound(star, 0, joint, delta=0.05))
    175
    """
    return (math.prod(network.shapes[node]) - 1) * law.error_bound(delta) + increment


def fourier_table_quantile(
    network: Network, node: int, scale: float, delta: float, increment: float = 0.0
) -> float:
    r"""Return a sharper bound for one table: a quantile of the sum of its absolute noises.

    .. math:: \|T_i - \hat T_i\|_1 \le b\,\Gamma^{-1}_A(1 - \delta) + A\, b\ln\frac{2}{1+q} + s,
        \qquad A = \prod_{u \in F_i} K_u - 1,

    because \|Z\| is at most an exponential variable plus :math:`b\ln\frac{2}{1+q}` in law, and A of
    those add up to a Gamma variable.

    >>> star = Network.star([2] * 10, n_classes=2)
    >>> round(fourier_table_quantile(star, node=0, scale=40.0, delta=0.05))
    253
    """
    noisy = math.prod(network.shapes[node]) - 1
    if noisy == 0:
        return increment
    total = scale * float(gammaincinv(noisy, 1 - delta))
    return total + noisy * integer_allowance(scale) + increment


def paper_fourier_table_bound(
    coefficients: int, parents: int, epsilon: float, delta: float, t: float
) -> float:
    r"""Return Zhang et al.'s Theorem 3 as printed: Boolean nodes, the paper's noise and increment.

    .. math:: \frac{4|N|}{\varepsilon}\Big(2^{|\pi_i|} \ln\frac{|N|}{\delta} + t|N|\Big)

    >>> round(paper_fourier_table_bound(22, parents=1, epsilon=1.0, delta=0.05, t=2.3))
    5524
    """
    per_table = 2.0**parents * math.log(coefficients / delta) + t * coefficients
    return 4 * coefficients / epsilon * per_table
