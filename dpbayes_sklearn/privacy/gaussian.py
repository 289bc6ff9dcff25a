r"""How much discrete Gaussian noise one release, or several in a row, need.

**How much discrete Gaussian noise one release of integer counts needs.**

Cell i of a vector of counts has a weight :math:`w_i`, a positive integer, and is released with
noise :math:`Z_i`, independent discrete Gaussian of parameter :math:`\sigma^2/w_i`. Neighbours'
counts differ by an integer vector v; only its nonzero entries matter, and only their absolute
values (the noise is symmetric). With :math:`\langle z, v\rangle = \sum_i w_i z_i v_i`,
:math:`s = \|v\|^2 = \langle v, v\rangle` and :math:`T = \langle Z, v\rangle`, the privacy loss is
:math:`L = (s - 2T)/2\sigma^2`, so

.. math:: \delta(\varepsilon) = \sum_t P(T = t)\,(1 - e^{\varepsilon - L(t)})_+ .

**Claim.** Let g be the greatest common divisor of all :math:`w_i v_i`. Then T is a multiple of g
and

.. math:: P(T = t) \le P(T = 0)\, e^{-t^2/2\sigma^2 s}.

**Proof.** The z with :math:`\langle z, v\rangle = t` are a translate of the lattice
:math:`\Lambda = v^\perp \cap \mathbb Z^m`. Split :math:`z = (t/s)v + r` with r orthogonal to v:
:math:`\|z\|^2 = t^2/s + \|r\|^2`. So P(T = t) is :math:`e^{-t^2/2\sigma^2 s}` times the Gaussian
weight of a translate of :math:`\Lambda` over a constant. By Poisson summation that weight is
:math:`c \sum_{u \in \Lambda^*} e^{-2\pi^2\sigma^2\|u\|^2} \cos(2\pi\langle u, r\rangle)`, which is
largest without translation. ∎

**P(T = 0), bounded from above in two ways.**

* *Any shifts.* With N points, :math:`\frac1N \sum_{j<N} \prod_i \varphi_i(w_i v_i 2\pi j/gN)
  = P(T/g \equiv 0 \bmod N) \ge P(T = 0)`, where the characteristic function is a quotient of
  positive sums, :math:`\varphi(\theta) = \sum_n e^{-\tau^2(\theta - 2\pi n)^2/2}
  / \sum_n e^{-2\pi^2\tau^2n^2}` with :math:`\tau^2 = \sigma^2/w_i`.
* *Wide noise*, where :math:`b_i = w_iv_i/g` is 1 in some cells. By Poisson summation, with
  :math:`\det \Lambda = \sqrt s/g` times that of :math:`\mathbb Z^m`,
  :math:`P(T = 0) \le \frac{g}{\sqrt{2\pi\sigma^2 s}} \sum_{u \in \Lambda^*}
  e^{-2\pi^2\sigma^2\|u\|^2}`. Each u is the projection of some integer n, and
  :math:`\sigma^2\|u\|^2 = \sum_i \tau_i^2 (n_i - \lambda b_i)^2` for some :math:`\lambda`; adding a
  multiple of b to n makes :math:`|\lambda| \le \frac12`. Where :math:`b_i = 1` then
  :math:`|n_i - \lambda|` is at least :math:`|\lambda|` and at least :math:`|n_i|/2`, so

  .. math:: \tau_i^2 (n_i - \lambda)^2 \ge \tfrac12\tau_i^2\lambda^2 + \tfrac18\tau_i^2n_i^2 .

  Elsewhere :math:`(n_i - \lambda b_i)^2 \ge n_i^2/(1+\kappa) - \lambda^2b_i^2/\kappa` for any
  :math:`\kappa > 0`. With :math:`\kappa = 2\sum_{b_i>1} \tau_i^2b_i^2 / \sum_{b_i=1} \tau_i^2` the
  terms in :math:`\lambda` cancel, and the sum is at most a product over the cells of
  :math:`\sum_n e^{-\pi^2\tau_i^2n^2/4}` and of :math:`\sum_n e^{-2\pi^2\tau_i^2n^2/(1+\kappa)}`. If
  all :math:`b_i = 1` the first is :math:`\sum_n e^{-\pi^2\tau_i^2n^2/2}`.

If no :math:`w_iv_i` divides all others, one more cell is counted for which it does (see *fewer
shifts* below).

**The sum.** :math:`h(u) = e^{-u^2/2\sigma^2 s} (1 - e^{-(u - u_0)/\sigma^2})` with u = -t and
:math:`u_0 = \sigma^2\varepsilon - s/2` is summed over the multiples of g above :math:`u_0`. It is
log-concave, so where there are very many terms :math:`\sum h \le \frac1g\int h + \max h`, and
the integral over :math:`\sqrt{2\pi\sigma^2 s}` is the continuous Gaussian's
:math:`\Phi(a) - e^\varepsilon\Phi(b)`, a and b being :math:`\pm\sqrt s/2\sigma -
\varepsilon\sigma/\sqrt s`.

**Fewer and smaller shifts** leak less: leaving out cells is post-processing, and a smaller shift of
log-concave noise is harder to test, cell by cell and so for their product. Only the largest
patterns a neighbour can make have to be given.

**A pure release besides**, of loss at most :math:`\varepsilon_t`, may look at what was released.
Every such release is post-processing of what it looks at and of a randomised response, which has
loss :math:`\pm\varepsilon_t` with probabilities :math:`p = e^{\varepsilon_t}/(1+e^{\varepsilon_t})`
and :math:`1-p` (Kairouz, Oh and Viswanath 2015). So both together have

.. math:: p\,\delta(\varepsilon - \varepsilon_t) + (1-p)\,\delta(\varepsilon + \varepsilon_t) .

**Rounding.** All sums have positive terms, so floats err by a relative 1e-11 (at most 2**22
terms, exponents that matter below 1000, functions good to a few units in the last place); the
result is multiplied by 1 + 1e-9. Terms that underflow lose at most 2**22 times 5e-324, which is
nothing beside a :math:`\delta` of 1e-300; below that, the conversion of zCDP, which is exact,
decides alone.

**How much Gaussian noise several releases need that are made one after the other.**

Step k adds discrete Gaussian noise to integers that neighbours change by :math:`v`, with
:math:`\sum_i v_i^2/\sigma_i^2 \le \mu_k^2`. Later steps may depend on what earlier ones released.

**zCDP.** :math:`\rho = \tfrac12\sum_k \mu_k^2`, for noise of any size.

**Exact composition.** *Continuous* Gaussian steps are together no easier to tell apart than two
normals of variance 1 at distance :math:`\mu = (\sum_k\mu_k^2)^{1/2}` (Dong, Roth and Su 2022,
Corollary 2), however the steps depend on one another, so they have

.. math:: \delta(\varepsilon) = \Phi\left(\frac\mu2 - \frac\varepsilon\mu\right)
          - e^\varepsilon\,\Phi\left(-\frac\mu2 - \frac\varepsilon\mu\right),

and rounding them to integers is post-processing. *Discrete* noise of large :math:`\sigma` is almost
that. For an integer :math:`|z| \le K\sigma` the probability of rounded noise is
:math:`\int_{-1/2}^{1/2}\cosh(zu/\sigma^2)\,e^{-u^2/2\sigma^2}du` times the weight
:math:`e^{-z^2/2\sigma^2}/\sqrt{2\pi\sigma^2}`, and the integral lies between
:math:`e^{-1/8\sigma^2}` and :math:`e^{z^2/8\sigma^4}`. The discrete probability is the weight
over :math:`\sum_n e^{-2\pi^2\sigma^2n^2}`, by Poisson summation. So the two differ by a factor of
at most :math:`e^{\pm (K+1)^2/8\sigma^2}` (the 1 pays for the sum), and those of all numbers of all
steps by :math:`e^{\pm\eta}`, :math:`\eta = \sum (K+1)^2/8\sigma^2`. Discrete noise
exceeds :math:`44\sigma` with probability below :math:`2e^{-968}`, and a shift is at most
:math:`\mu\sigma \le 16\sigma`, so K = 60 is enough. The discrete steps have

.. math:: \delta(\varepsilon) \le e^\eta\,\delta_\mu(\varepsilon - 2\eta) + 10^{-300}.

**Rounding.** The two terms of :math:`\delta_\mu` are good to a relative 1e-12, which is added to
the first; the result is multiplied by 1 + 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.privacy.budget import LEAST_DELTA, Budget, Exact
from dpbayes_sklearn.privacy.composition import short, zcdp_rho

Shifts = Mapping[tuple[int, int], int]
"""Number of cells by the (positive) amount of their change and by their weight: {(1, 1): 2} for one
record replaced."""

# Below this variance the characteristic function would need more terms.
LEAST_VARIANCE = Fraction(1, 4)
_BOUND_MARGIN = 1 + 1e-9  # This factor is far above the error of floats in the bound.
_MOST_TERMS = 2**13  # At most this many terms are summed one by one.
_MOST_FREQUENCIES = 2**22  # The characteristic function is computed at no more points than this.
_SHARP_EXCESS = 1e-6  # The bound for wide noise is used up to this relative excess.
_LARGE_NORM = 200  # Beyond this squared norm one more cell adds next to nothing.
# Terms of a variance have this many bits: then those of the sampler fit 32-bit words.
_VARIANCE_BITS = 22

_THEOREM_REACH = 61  # The K + 1 of the theorem.
_LARGEST_MU = 16  # A release with a larger ratio of change to noise is not calibrated this way.
# Share of epsilon for the difference between discrete and continuous noise.
_DISCRETE_SHARE = Fraction(1, 2**14)
# The factor and the term that cover the error of floats in the bound for several steps.
_STEPS_MARGIN, _STEPS_TAIL = 1 + 1e-9, 1e-300


def squared_norm(shifts: Shifts) -> int:
    """Return the square of the weighted L2 sensitivity.

    >>> squared_norm({(1, 1): 20, (2, 3): 1})
    32
    """
    return sum(count * weight * size**2 for (size, weight), count in shifts.items())


def _divisor(shifts: Shifts) -> int:
    """Return the greatest common divisor of all weighted changes."""
    return math.gcd(*(size * weight for size, weight in shifts))


def gaussian_rho(variance: Fraction, *patterns: Shifts) -> Fraction:
    """Return the zCDP of the release, max ||v||² / (2 sigma²); the variance is that of weight 1."""
    return max(map(squared_norm, patterns)) / (2 * Fraction(variance))


def gaussian_delta(
    variance: Fraction, epsilon: Exact, shifts: Shifts, pure: Exact = Fraction(0)
) -> float:
    """Bound the delta of one release at ``epsilon`` from above.

    The variance is that of cells of weight 1, at least 1/4 of every weight. ``shifts`` are the
    amounts by which cells change between neighbours and their weights, with the numbers of cells.
    ``pure`` is the epsilon of a purely private release that is made besides, included in
    ``epsilon``.

    >>> gaussian_delta(Fraction(36), Fraction(1), {(1, 1): 2})
    8.94...e-07
    """
    if variance < _least(shifts):
        raise ValueError("variance must be at least 1/4.")
    bound = _BOUND_MARGIN * _excess(variance, shifts) * _with_pure(variance, epsilon, shifts, pure)
    return min(bound, 1.0)


def gaussian_variance(
    epsilon: Exact,
    delta: Exact,
    *patterns: Shifts,
    pure: Exact = Fraction(0),
    zcdp_only: bool = False,
) -> Fraction:
    """Return a variance parameter of weight 1 with which one release is (epsilon, delta)-DP.

    The smaller of two that are both certified: by the privacy loss (`gaussian_delta` of every
    pattern of shifts that a neighbour can make) and by zCDP (`zcdp_rho`). It is rounded up to a
    fraction with 22 bits. ``pure`` is as in `gaussian_delta`; ``zcdp_only`` certifies by zCDP
    alone, which needs no more than the largest norm of any pattern.

    >>> math.sqrt(gaussian_variance(Fraction(1), Fraction(1, 10**6), {(1, 1): 2}) / 2)
    4.22...
    """
    if not (0 < delta < 1 and pure < epsilon < math.inf):
        raise ValueError("epsilon must be positive and finite, delta between 0 and 1.")
    changes = tuple(tuple(shifts.items()) for shifts in patterns)
    return _least_variance(epsilon, delta, changes, pure, zcdp_only)


def calibrated_variance(budget: Budget) -> Callable[[Shifts], Fraction]:
    """Return the function that finds the least variance of weight 1 for some shifts."""
    pure = budget.pure_epsilon
    together = Fraction(budget.epsilon) + Fraction(pure)
    # several records make many patterns of shifts: only their largest norm is looked at
    several = budget.unit.max_records > 1
    return partial(gaussian_variance, together, budget.delta, pure=pure, zcdp_only=several)


@lru_cache(maxsize=256)  # the fits of a search, or of a cross-validation, ask for the same
def _least_variance(
    epsilon: Exact,
    delta: Exact,
    changes: tuple[tuple[tuple[tuple[int, int], int], ...], ...],
    pure: Exact,
    zcdp_only: bool,
) -> Fraction:
    patterns: list[Shifts] = [dict(items) for items in changes]
    rho = zcdp_rho(Fraction(epsilon) - Fraction(pure), delta)
    if not rho:
        raise ValueError("epsilon and delta are too small for any noise that can be drawn.")
    largest = _rounded_up(max(map(squared_norm, patterns)) / (2 * Fraction(rho)))
    low = max(map(_least, patterns))
    high = largest = max(largest, low)
    if zcdp_only or delta < LEAST_DELTA:
        return largest
    patterns = [_completed(shifts) for shifts in patterns]
    while high > low * Fraction(10_001, 10_000):
        middle = (low + high) / 2
        enough = all(_with_pure(middle, epsilon, shifts, pure) <= delta for shifts in patterns)
        low, high = (low, middle) if enough else (middle, high)
    variance = _rounded_up(high)
    while variance < largest:
        if all(gaussian_delta(variance, epsilon, shifts, pure) <= delta for shifts in patterns):
            return variance
        variance = _rounded_up(variance * Fraction(1001, 1000))
    return largest


def _least(shifts: Shifts) -> Fraction:
    """Return the least variance of weight 1: no cell has one below a quarter."""
    return LEAST_VARIANCE * max(weight for _, weight in shifts)


def _completed(shifts: Shifts) -> Shifts:
    """Return large shifts with one more cell where no weighted change divides all others.

    >>> _completed({(1, 2): 20, (1, 3): 100})
    {(1, 2): 20, (1, 3): 100, (1, 1): 1}
    """
    divisor = _divisor(shifts)
    if squared_norm(shifts) < _LARGE_NORM or any(size * w == divisor for size, w in shifts):
        return shifts
    return {**shifts, (1, divisor): 1}


def _with_pure(variance: Fraction, epsilon: Exact, shifts: Shifts, pure: Exact) -> float:
    """Return `_lattice_delta` composed with randomised response of loss ``pure``."""
    if not pure:
        return _lattice_delta(variance, epsilon, shifts)
    epsilon, pure = Fraction(epsilon), Fraction(pure)
    likely = 1 / (1 + math.exp(-pure))
    rare = math.exp(-pure) * likely
    above, below = (_lattice_delta(variance, epsilon + s * pure, shifts) for s in (1, -1))
    return likely * below + rare * above


def _lattice_delta(variance: Fraction, epsilon: Exact, shifts: Shifts) -> float:
    """Return the delta of a T with P(T = t) = g/sqrt(2 pi sigma² s) exp(-t²/(2 sigma² s))."""
    divisor, norm = _divisor(shifts), squared_norm(shifts)
    spread = float(variance * norm)
    u0 = variance * Fraction(epsilon) - Fraction(norm, 2)
    nearest = max(float(u0), 0.0)
    first = math.floor(u0 / divisor) + 1
    last = max(first, math.ceil(math.sqrt(nearest**2 + 80 * spread) / divisor))
    density = divisor / math.sqrt(2 * math.pi * spread)
    if last - first > _MOST_TERMS:
        highest = math.exp(-(nearest**2) / (2 * spread))
        if nearest:
            highest *= min(1.0, norm / (math.e * nearest))
        return continuous_delta(math.sqrt(norm / variance), float(epsilon)) + density * highest
    above = np.arange(last - first + 1) * float(divisor)
    u = float(first * divisor) + above
    gain = -np.expm1(-(float(first * divisor - u0) + above) / float(variance))
    beyond = math.exp(-(u[-1] ** 2) / (2 * spread)) / -math.expm1(-u[-1] * divisor / spread)
    return density * (float((np.exp(-(u**2) / (2 * spread)) * gain).sum()) + beyond)


def continuous_delta(ratio: float, epsilon: float) -> float:
    """Bound Phi(a) - exp(epsilon) Phi(b) from above; ``ratio`` is sensitivity / sigma."""
    a, b = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
    return float(ndtr(a) * (1 + 1e-12) - np.exp(epsilon + log_ndtr(b)))


def _excess(variance: Fraction, shifts: Shifts) -> float:
    """Bound P(T = 0) in units of g/sqrt(2 pi sigma² s) from above; near 1."""
    divisor = _divisor(shifts)
    deviation = math.sqrt(variance * squared_norm(shifts)) / divisor
    points = math.ceil(9 * deviation) + 1
    wide = _wide_excess(float(variance), shifts)
    if wide <= _SHARP_EXCESS or points > _MOST_FREQUENCIES:
        return math.exp(min(wide, 700.0))
    product = np.ones(points)
    for (size, weight), count in shifts.items():
        turns = size * weight // divisor * np.arange(points) % points
        # exact: angles are small where it counts
        angles = 2 * math.pi / points * np.where(2 * turns > points, turns - points, turns)
        product *= _characteristic(angles, float(variance / weight)) ** count
    return float(product.mean()) * math.sqrt(2 * math.pi) * deviation


def _wide_excess(variance: float, shifts: Shifts) -> float:
    """Bound the logarithm of `_excess` for wide noise; infinite where there is no bound."""
    divisor = _divisor(shifts)
    cells = [(size * w // divisor, variance / w, count) for (size, w), count in shifts.items()]
    held = sum(count * own for b, own, count in cells if b == 1)
    others = sum(count * own * b**2 for b, own, count in cells if b > 1)
    if not held:
        return math.inf
    first = math.pi**2 / (4 if others else 2)
    rest = 2 * math.pi**2 / (1 + 2 * others / held)
    rates = [((first if b == 1 else rest) * own, count) for b, own, count in cells]
    if min(rate for rate, _ in rates) < 1.5:  # below, two terms of the sum are not enough
        return math.inf
    return sum(count * 2.1 * math.exp(-rate) for rate, count in rates)


def _characteristic(angle: FloatArray, variance: float) -> FloatArray:
    """Return the characteristic function at angles of at most pi: a quotient of positive sums."""
    beyond = 1 if variance >= 1 else 8  # what is left out is below a relative exp(-39)
    centres = 2 * math.pi * np.arange(-beyond, beyond + 1)
    total = sum(np.exp(-variance * (angle - centre) ** 2 / 2) for centre in centres)
    return np.asarray(total / np.exp(-variance * centres**2 / 2).sum())


def _rounded_up(variance: Fraction) -> Fraction:
    """Round up to a fraction whose numerator and denominator have 22 bits, if it is below 2**22.

    >>> _rounded_up(Fraction(100, 3))
    Fraction(1092267, 32768)
    """
    denominator = 1 << max(0, _VARIANCE_BITS - max(math.ceil(variance).bit_length(), 0))
    return Fraction(math.ceil(variance * denominator), denominator)


def grid_rounding_loss(numbers: int, least_variance: Fraction) -> Fraction:
    r"""Return :math:`\eta` for so many numbers with noise of at least this variance.

    >>> float(grid_rounding_loss(1000, Fraction(2**60)))
    4.0...e-13
    """
    return numbers * Fraction(_THEOREM_REACH**2, 8) / least_variance


def composed_delta(rho: Exact, epsilon: Exact) -> float:
    """Bound the delta of Gaussian steps of rho in all, if their rounding costs 2**-13 of epsilon.

    >>> composed_delta(Fraction(28, 1000), Fraction(1))
    9.9...e-07
    """
    eta = Fraction(epsilon) * _DISCRETE_SHARE
    mu = math.sqrt(2 * rho) * (1 + 1e-15)
    bound = continuous_delta(mu, float(Fraction(epsilon) - 2 * eta) * (1 - 1e-15))
    return min(1.0, _STEPS_MARGIN * math.exp(eta) * bound + _STEPS_TAIL)


@lru_cache(maxsize=256)
def composed_rho(epsilon: Exact, delta: Exact, numbers: int, smallest: int) -> Fraction:
    """Return a rho that Gaussian steps may share within (epsilon, delta): as large as is proven.

    By exact composition; by zCDP where that allows more, or where noise is not wide enough.
    ``numbers`` get noise in all steps, and ``smallest`` is the least sensitivity of a step, so that
    no number's sigma is below smallest/sqrt(2 rho).

    >>> rho = composed_rho(Fraction(1), Fraction(1, 10**6), 1000, 2**30)
    >>> float(rho), float(zcdp_rho(Fraction(1), Fraction(1, 10**6)))
    (0.0280..., 0.0243...)
    """
    if not (0 < delta < 1 and 0 < epsilon < math.inf):
        raise ValueError("epsilon must be positive and finite, delta between 0 and 1.")
    least = Fraction(zcdp_rho(epsilon, delta))
    low, high = least, 4 * least + Fraction(1, 10**12)
    while high > low * Fraction(100_001, 100_000):
        middle = (low + high) / 2
        enough = _composes(middle, epsilon, delta, numbers, smallest)
        low, high = (middle, high) if enough else (low, middle)
    found = short(low)
    if not _composes(found, epsilon, delta, numbers, smallest):
        found = least
    if not found:
        raise ValueError("epsilon and delta are too small for any noise that can be drawn.")
    return found


def _composes(rho: Fraction, epsilon: Exact, delta: Exact, numbers: int, smallest: int) -> bool:
    """Return True where steps of rho in all are (epsilon, delta)-DP by exact composition."""
    if not (smallest and 0 < 2 * rho <= _LARGEST_MU**2):  # or a grid that is too coarse
        return False
    eta = grid_rounding_loss(numbers, Fraction(smallest**2) / (2 * rho))
    return eta <= epsilon * _DISCRETE_SHARE and composed_delta(rho, epsilon) <= delta
