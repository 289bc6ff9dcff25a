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

**A posterior chosen among candidates: how far it is (*Tailoring ...*, section 6).**
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, gammainc, gammaincinv, psi

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.counts.fourier import sum_count
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.noise import NoiseLaw
from dpbayes_sklearn.noise.discrete_laplace import integer_allowance
from dpbayes_sklearn.papers.candidates import ScoredCandidates
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit

__all__ = [
    "beta_divergence",
    "cell_count",
    "coefficient_count",
    "count_error_quantile",
    "count_tail",
    "divergence_deviation",
    "divergence_range",
    "expected_divergence",
    "floored_laplace",
    "fourier_cell_ratio",
    "fourier_table_quantile",
    "likelihood_range",
    "map_failure_bound",
    "map_score_gap",
    "mass_change_bound",
    "noise_scale",
    "paper_fourier_table_bound",
    "regression_sampler_epsilon",
    "rerun_epsilon",
    "score_exponent",
    "score_tail",
    "score_tail_bound",
    "smallest_normaliser",
    "stealth_probability",
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


def score_exponent(epsilon: float, sensitivity: float) -> float:
    r"""Return :math:`\lambda = \varepsilon/(2\Delta)`, the exponent of Zhang et al.'s Algorithm 3.

    :math:`\varepsilon`-private if the score is the probability of one of finitely many sets and
    :math:`\Delta` bounds its change: :func:`mass_change_bound` (:math:`\sqrt{Lr}`) under
    Assumption 1, :func:`total_variation_bound` (:math:`\sqrt{M/2}`) under Assumption 2.

    >>> round(score_exponent(1.0, mass_change_bound(0.04, distance=1.0)), 3)
    2.5
    """
    return epsilon / (2 * sensitivity)


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


def stealth_probability(coefficients: int, t: float) -> float:
    r"""Return a lower bound on the probability that Algorithm 2 leaves no cell negative.

    .. math:: P(\text{all cells} \ge 0) \ge P(\Gamma_{|N|} \le 2t|N|)

    for the whole contingency table and the increment :math:`4t|N|^2/\varepsilon`: a cell falls by
    at most the sum of \|N\| absolute noises, a Gamma variable, and the increment is 2t\|N\| noise
    scales. Zhang et al., Corollary 3, say :math:`1 - e^{-t}`, which is false for small t.

    >>> [round(stealth_probability(34, t), 3) for t in (0.2, 0.6, 1.0)]
    [0.0, 0.875, 1.0]
    """
    return float(gammainc(coefficients, 2 * t * coefficients))


def rerun_epsilon(epsilon: float, runs: int | None = None) -> float:
    r"""Return the cost of running Algorithm 2 again until no cell is negative.

    .. math:: \frac{p(y)/p(S)}{p'(y)/p'(S)} \le e^{2\varepsilon}

    for the first release in the set S of tables without a negative cell, if only it is shown. If
    the number of ``runs`` is shown, or limited, they cost :math:`\varepsilon` each. Zhang et al.,
    section 3.2, count one :math:`\varepsilon` more for "another chance".

    >>> rerun_epsilon(0.5), rerun_epsilon(0.5, runs=3)
    (1.0, 1.5)
    """
    return 2 * epsilon if runs is None else runs * epsilon


def fourier_cell_ratio(coefficients: int, nodes: int, family: int) -> float:
    r"""Return the noise of a cell by Algorithm 2 over that by Algorithm 1, as standard deviations.

    .. math:: \frac{|N|}{|I|}\, 2^{-|F_i|/2}

    for Boolean nodes, families F and the paper's noise. Zhang et al., Remark 1, compare the noise
    of a normalised *coefficient*, :math:`2|N|/(\varepsilon 2^{|I|/2})`, with that of a *count*.

    >>> fourier_cell_ratio(22, nodes=11, family=2)  # naive Bayes of 10 features: none is better
    1.0
    >>> fourier_cell_ratio(2**11, nodes=11, family=2) > 90  # a complete graph
    True
    """
    return coefficients / nodes * 2 ** (-family / 2)


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
    radius: float, weight_bound: float, noise_variance: float, temper: float = 1.0, n_draws: int = 1
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


def floored_laplace(scale: float, t: int) -> float:
    r"""Return the probability that continuous Laplace noise, rounded down, is t.

    .. math:: P(\lfloor Y\rfloor = t) = \tfrac12\big(e^{-t/b} - e^{-(t+1)/b}\big), \qquad t \ge 0,

    and the mirror image of :math:`-t-1` below zero. Section 6.1 of *Tailoring ...* has t - 1 and t
    in place of t and t + 1: noise rounded *up*.

    >>> round(floored_laplace(1.0, 0), 4), round(floored_laplace(1.0, -1), 4)
    (0.3161, 0.3161)
    """
    t = t if t >= 0 else -t - 1
    return (math.exp(-t / scale) - math.exp(-(t + 1) / scale)) / 2


def count_tail(scale: float, t: int) -> float:
    r"""Return :math:`P(|Z| \ge t) = \frac{2q^t}{1+q}` for integer noise and t of at least 1.

    In place of the tail :math:`e^{-t/b}` of continuous noise (*Tailoring ...*, section 6.1).

    >>> round(count_tail(1.0, 3), 4), round(math.exp(-3), 4)
    (0.0728, 0.0498)
    """
    return 2 * math.exp(-t / scale) / (1 + math.exp(-1 / scale))


def score_tail(distances: npt.ArrayLike, exponent: float, at_least: float) -> float:
    r"""Return the probability of a candidate whose distance is at least c.

    .. math:: P(H \ge c) = \sum_{r : H(r) \ge c} e^{-\lambda H(r)} \Big/ \sum_r e^{-\lambda H(r)}

    The first of the three bounds of *Tailoring ...*, section 6.3, with the mechanism's own
    :math:`\lambda = \varepsilon/2S(x)`, which lacks the 2 there.

    >>> round(score_tail([0.0, 0.1, 0.2], exponent=10.0, at_least=0.2), 4)
    0.09
    """
    found = np.asarray(distances, dtype=float)
    weights = np.exp(-exponent * found)
    return float(weights[found >= at_least].sum() / weights.sum())


def score_tail_bound(
    candidates: int, exponent: float, at_least: float, normaliser: float = 1.0
) -> float:
    r"""Return a bound on the probability of a candidate whose distance is at least c.

    .. math:: P(H \ge c) \le |R|\,e^{-\lambda c}/N

    The normaliser N is at least the number of best candidates (*Tailoring ...*, section 6.2), of
    which the exact posterior is one: N = 1 is the last bound of section 6.3. Its second bound has
    the normaliser of the data, its third a function of n, :func:`smallest_normaliser`.

    >>> round(score_tail_bound(3, exponent=10.0, at_least=0.2), 3)
    0.406
    >>> round(score_tail_bound(3, 10.0, at_least=0.2, normaliser=1.503), 3)
    0.27
    """
    return min(1.0, candidates * math.exp(-exponent * at_least) / normaliser)


def smallest_normaliser(law: ScoredCandidates) -> float:
    r"""Return :math:`N(n) = \min_x \sum_r e^{-\lambda(x) H(x, r)}` over all data sets of n records.

    *Tailoring ...*, section 6.3, asks for it and leaves it open; it is a finite computation.

    >>> from dpbayes_sklearn.papers.candidates import Candidates
    >>> candidates = Candidates(20, (1.0, 1.0))
    >>> law = ScoredCandidates(candidates, candidates.local_sensitivity(), exponent=0.5)
    >>> round(smallest_normaliser(law), 2)
    4.5
    """
    return float(np.exp(law.log_normalisers.min()))


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
