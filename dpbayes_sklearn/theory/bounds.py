r"""The papers' bounds on the error of a release.

**The exponential mechanism: error of its release (Zhang et al., section 4.2).**

It draws θ with probability proportional to :math:`e^{\lambda u(\theta)}` times a base measure;
:math:`\lambda = \varepsilon/(2\Delta)` makes it ε-private for a score that neighbouring data
change by at most Δ.

**Noise in the Fourier domain: error of tables (Zhang et al., section 3.2).**

A table is rebuilt from the character sums whose nodes lie in its family. One sum that is off by z
puts the whole table off by exactly \|z\| in L1, whatever the numbers of values: half of it left and
half of it right of a split. Raising the constant sum by s adds s in L1.

**Gaussian linear regression: what one record can change (Zhang et al., appendix D).**

Targets lie in [-1, 1], features in a ball of radius R, weights in a ball of radius B, and the noise
has variance σ².

**Noise on posterior updates: error of counts and posteriors (Zhang et al., section 3.1).**

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
from scipy.special import betaln, gammaincinv, psi

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.fourier import sum_count
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.noise.discrete_laplace import integer_allowance
from dpbayes_sklearn.privacy.unit import RECORD, PrivacyUnit

__all__ = [
    "beta_divergence",
    "cell_count",
    "coefficient_count",
    "count_error_quantile",
    "divergence_deviation",
    "divergence_range",
    "expected_divergence",
    "fourier_table_quantile",
    "likelihood_range",
    "map_failure_bound",
    "map_score_gap",
    "mass_change_bound",
    "noise_scale",
    "paper_fourier_table_bound",
    "regression_sampler_epsilon",
    "table_bound",
    "update_bound",
]


def map_failure_bound(exponent: float, t: float, good_mass: float) -> float:
    r"""Return a bound on the probability of a score more than 2t below the best.

    .. math:: P(S_{2t}^c) \le e^{-\lambda t} / \mu(S_t), \qquad
        S_t = \{\theta : u(\theta) > u^* - t\}

    Zhang et al., Lemma 4, with the exponent λ that the mechanism really uses; the paper writes ε
    in its place.

    >>> round(map_failure_bound(exponent=10.0, t=0.5, good_mass=0.2), 4)
    0.0337
    """
    return min(1.0, math.exp(-exponent * t) / good_mass)


def map_score_gap(exponent: float, best_mass: float, delta: float) -> float:
    r"""Return g with :math:`P(u(\theta) \le u^* - g) \le \delta`.

    .. math:: g = \frac1\lambda \ln\frac1{\mu(\theta^*)\,\delta}

    where the finitely many best points have base mass :math:`\mu(\theta^*)`, or more.

    >>> round(map_score_gap(exponent=10.0, best_mass=1 / 257, delta=0.05), 3)
    0.854
    """
    return math.log(1 / (best_mass * delta)) / exponent


def mass_change_bound(lipschitz: float, distance: float) -> float:
    r"""Return :math:`\min(1, \sqrt{L r})`, which bounds the change of a *set*'s probability.

    From :math:`\mathrm{KL} \le 2Lr` by Pinsker's inequality. Zhang et al., Algorithm 3, use it for
    *densities*, which it does not bound.

    >>> mass_change_bound(0.04, distance=1.0)
    0.2
    """
    return min(1.0, math.sqrt(lipschitz * distance))


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


def likelihood_range(radius: float, weight_bound: float, noise_variance: float) -> float:
    r"""Return :math:`\Delta = \frac{(1 + BR)^2}{2\sigma^2}`.

    The log-likelihood of a record, up to its constant, is
    :math:`-\frac{(y - w^\top x)^2}{2\sigma^2} \in [-\Delta, 0]`, so replacing a record changes that
    of the data by at most Δ. The paper's L(w) lacks a factor of 2 in its gradient and carries the
    number of records, of which neighbours change only one.

    >>> likelihood_range(radius=1.0, weight_bound=1.0, noise_variance=0.5)
    4.0
    """
    return (1 + weight_bound * radius) ** 2 / (2 * noise_variance)


def regression_sampler_epsilon(
    radius: float,
    weight_bound: float,
    noise_variance: float,
    temper: float = 1.0,
    n_draws: int = 1,
) -> float:
    r"""Return :math:`\varepsilon = 2 N \tau \Delta`, the cost of N draws at temperature τ.

    >>> regression_sampler_epsilon(1.0, 1.0, noise_variance=0.5, temper=0.125)
    1.0
    """
    return 2 * n_draws * temper * likelihood_range(radius, weight_bound, noise_variance)


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
    return unit.n_changed * (others + budget_split * classes) / min(budget_split, 1.0) / epsilon


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
