r"""Gaussian laws: independent discrete noise, for zCDP, and draws in a ball (`ball_gaussian`).

.. math:: P(Z = z) \propto e^{-z^2/2\sigma^2}, \qquad z \in \mathbb{Z}, \quad \sigma^2 = p/q

in every number, :math:`\sigma^2` the parameter of its array, a rational number.

**Loss.** Neighbours that differ by v have no bounded privacy loss; their Rényi divergence of order
:math:`\alpha` is at most :math:`\alpha\rho` with :math:`\rho = \sum_i v_i^2/2\sigma_i^2` (Canonne,
Kamath and Steinke, *The Discrete Gaussian for Differential Privacy*, 2020, Theorem 4).

**Sampler.** Algorithm 3 of the same paper, over whole arrays: a discrete Laplace proposal y of
integer scale :math:`t = \lceil\sigma\rceil` is kept with probability :math:`e^{-x}`,

.. math:: x = \frac{(|y| - \sigma^2/t)^2}{2\sigma^2},
          \qquad e^{-|y|/t} e^{-x} = e^{-y^2/2\sigma^2} e^{-\sigma^2/2t^2}.

**No square of a large number.** With :math:`g = \gcd(qt, p)`, :math:`d = |qt|y| - p|/g`,
:math:`P = p/g` and :math:`B = qt^2/g`, the exponent is a product,
:math:`x = \tfrac12 (d/P)(d/B)`. The whole parts a, b and the remainders r, s of d/P and d/B
split it into

.. math:: x = \tfrac12 a b + \tfrac12 a \frac sB + \tfrac12 \frac rP b + \tfrac12 \frac rP \frac sB

so :math:`e^{-x}` is the probability that ab + a + b + 1 coins all succeed, each of probability
:math:`e^{-uv/2}` with u, v in [0, 1], and a toss of probability uv/2k is one of u/2 and one of
v/k: no number exceeds P, B or 256 B.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtri, ndtri_exp

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise.discrete_laplace import WORDS, discrete_laplace
from dpbayes_sklearn.noise.integers import RandomSource, Words, bernoulli, fill, rounds
from dpbayes_sklearn.noise.law import NO_NOISE, Chernoff, Marginal, NoiseLaw, draw

_WIDEST_WINDOW = 40.0  # No window reaches farther out than this many standard deviations.

MAX_VARIANCE = 2**80  # Noise of a larger variance would overflow 64 bits.
MAX_VARIANCE_TERM = 2**54
"""Largest P and B. A proposal is below 129 t, so d < 129 B < 2**63 and 256 B < 2**64."""
_TOSSES = 1024
"""More tosses of one coin are never needed: either a <= 4 * 129, or a is large because sigma² is
below 1/2; then s/B > 1/2, and so many successes have probability below exp(-255)."""
DRAW_LATTICE = 2.0**-20
"""Released entries are whole multiples of this fraction of the radius."""
_PROPOSALS_AT_A_TIME = 1024  # This many proposals are made at a time.
_LEAST_EIGENVALUE = 1e-12  # Smaller eigenvalues, in units of 1/B², change the density by no more.


@dataclass(frozen=True)
class GaussianMarginal(Chernoff):
    """Gaussian noise in one number, with density proportional to exp(-x² / 2 variance).

    >>> GaussianMarginal(4.0).log_weight(np.array([0.0, -2.0, 4.0])).tolist()
    [-0.0, -0.5, -2.0]
    """

    variance: float

    @property
    def sharpness(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    @property
    def steepest(self) -> float:
        """Every s is possible; this is more than any window needs."""
        return _WIDEST_WINDOW / math.sqrt(self.variance)

    def log_weight(self, x: FloatArray) -> FloatArray:
        """-x²/2σ²."""
        return -np.square(x) / (2.0 * self.variance)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """Bound s²σ²/2: discrete Gaussian noise is sub-Gaussian."""
        return np.asarray(0.5 * self.variance * np.square(s))


@dataclass(frozen=True)
class DiscreteGaussian(NoiseLaw):
    """Independent discrete Gaussian noise in every number.

    >>> law = DiscreteGaussian((Fraction(100),), (42,))
    >>> law.rho(np.array([1, -1] * 11 + [0] * 20)), round(law.error_bound(0.05), 1)
    (Fraction(11, 100), 38.5)
    """

    # The σ² of each array; 0 for an array that is public as it is.
    parameters: tuple[Fraction, ...]
    numbers: tuple[int, ...]  # How many numbers each array has.

    independent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.parameters) != len(self.numbers) or any(s < 0 for s in self.parameters):
            raise ValueError("Independent noise needs one parameter, not below zero, per array.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers each array has."""
        return self.numbers

    def marginal(self, array: int = 0) -> Marginal:
        """Return the Gaussian law of one number."""
        parameter = float(self.parameters[array])
        return GaussianMarginal(parameter) if parameter else NO_NOISE

    def error_bound(self, delta: float) -> float:
        r"""Return the z with :math:`\sum_i 2 m_i e^{-z^2/2\sigma_i^2} = \delta`."""
        numbers: Counter[float] = Counter()
        for parameter, size in zip(self.parameters, self.numbers, strict=True):
            numbers[float(parameter)] += size if parameter else 0
        noisy = {s: m for s, m in numbers.items() if m}
        if not noisy:
            return 0.0

        def excess(z: float) -> float:
            return sum(2 * m * math.exp(-(z**2) / (2 * s)) for s, m in noisy.items()) - delta

        farthest = math.sqrt(2 * max(noisy) * math.log(2 * sum(noisy.values()) / delta))
        return float(brentq(excess, 0.0, farthest + 1.0))

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return infinity for every shift: far out the ratio of probabilities has no bound."""
        return math.inf if np.any(shift) else Fraction(0)

    def rho(self, shift: IntArray) -> Fraction | float:
        """Return the zero-concentrated privacy loss of a shift, sum v²/2σ²."""
        rho, first = Fraction(0), 0
        for parameter, size in zip(self.parameters, self.numbers, strict=True):
            squares = sum(v**2 for v in shift[first : first + size].tolist())  # exactly
            if squares and not parameter:
                return math.inf
            rho += Fraction(squares) / (2 * parameter) if squares else 0
            first += size
        return rho


def drawable(law: DiscreteGaussian) -> DiscreteGaussian:
    """Return a law, or refuse it if its variance is too large to be drawn."""
    if max(law.parameters, default=0) > MAX_VARIANCE:
        raise ValueError("epsilon and delta are too small for any noise that can be drawn.")
    return law


def representable_variance(variance: Fraction | int) -> Fraction:
    """Return the variance parameter that `discrete_gaussian` uses: no less than the given.

    A fraction whose terms do not fit the sampler is rounded **up** (more noise, never less):
    by a relative 2**-53 where sigma is below 1, and by sigma * 2**-53 above.

    >>> representable_variance(Fraction(100, 3))
    Fraction(100, 3)
    >>> long = Fraction(10**30, 3**50)
    >>> 0 < representable_variance(long) / long - 1 < 2**-42
    True
    """
    if not isinstance(variance, Rational):
        raise TypeError(
            f"variance must be a Fraction or an int. Got {type(variance).__name__} instead."
        )
    variance = Fraction(int(variance.numerator), int(variance.denominator))
    if not 0 <= variance <= MAX_VARIANCE:
        raise ValueError("variance must be between 0 and 2**80.")
    if variance == 0 or max(_terms(variance)[1:]) <= MAX_VARIANCE_TERM:
        return variance
    if variance >= 1:  # t² times a fraction with the largest power of two that fits; at most t²
        t = _proposal_scale(variance)
        denominator = 1 << ((MAX_VARIANCE_TERM // t).bit_length() - 1)
        return Fraction(
            t**2 * min(math.ceil(variance / t**2 * denominator), denominator), denominator
        )
    numerator = 1 << max(int(MAX_VARIANCE_TERM * variance).bit_length() - 1, 0)
    return Fraction(numerator, min(int(numerator / variance), MAX_VARIANCE_TERM))


@draw.register
def _(law: DiscreteGaussian, count: int, source: RandomSource) -> IntArray:
    """Draw array after array."""
    pairs = zip(law.parameters, law.numbers, strict=True)
    drawn = [discrete_gaussian(parameter, (count, size), source) for parameter, size in pairs]
    return np.concatenate([np.zeros((count, 0), np.int64), *drawn], axis=1)


def discrete_gaussian(
    variance: Fraction | int, size: int | tuple[int, ...], source: RandomSource
) -> IntArray:
    """Draw independent integers with P(z) proportional to exp(-z²/(2 variance)), exactly.

    The parameter is from 0, which gives zeros, to 2**80; see `representable_variance` for long
    fractions. How many bytes a draw takes depends on the bytes only, not on data.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> discrete_gaussian(Fraction(41, 2), (2, 3), random_source(0)).shape
    (2, 3)
    >>> discrete_gaussian(0, 3, random_source())
    array([0, 0, 0])
    """
    variance = representable_variance(variance)
    noise = np.zeros(size, dtype=np.int64)
    if variance == 0:
        return noise
    flat = noise.reshape(-1)  # a view: the array was just made
    fill(flat, _acceptance(variance), lambda count: _proposals(variance, count, source))
    return noise


def _proposals(variance: Fraction, count: int, source: RandomSource) -> IntArray:
    """Return the accepted of some discrete Laplace proposals."""
    drawn = discrete_laplace(_proposal_scale(variance), count, source)
    return drawn[_kept(np.abs(drawn), variance, source)]


def _proposal_scale(variance: Fraction) -> int:
    """Return t = ceil(sigma), at least 1."""
    whole = math.ceil(variance)
    return math.isqrt(whole - 1) + 1 if whole > 0 else 1


def _terms(variance: Fraction) -> tuple[int, int, int]:
    """Return qt/g, P = p/g and B = qt²/g."""
    t, p = _proposal_scale(variance), variance.numerator
    qt = variance.denominator * t
    g = math.gcd(qt, p)
    return qt // g, p // g, qt * t // g


def _acceptance(variance: Fraction) -> float:
    """Estimate the share of proposals that are kept, by the integral or the sum for small sigma."""
    t, sigma = _proposal_scale(variance), math.sqrt(variance)
    z = np.arange(1, 9)
    total = 1 + 2 * float(np.exp(-(z**2) / (2 * sigma**2)).sum()) if sigma < 1 else 2.5066 * sigma
    return math.tanh(1 / (2 * t)) * math.exp(-(sigma**2) / (2 * t**2)) * total


def _kept(magnitude: IntArray, variance: Fraction, source: RandomSource) -> IntArray:
    """Return the positions of the proposals whose coins all succeed."""
    step, P, B = _terms(variance)
    word = next(word for largest, word in WORDS if max(P, B) <= largest)
    distance = np.abs(step * magnitude - P)
    far = distance >= P  # about one in seven; the others have a = b = 0, as P <= B
    kept = np.flatnonzero(~far)
    if kept.size < far.size:
        positions = np.flatnonzero(far)
        passed = _whole_parts_succeed(distance[positions], P, B, word, source)
        kept = np.concatenate([kept, positions[passed]])
    r: Words = (distance[kept] % P).astype(word)
    s: Words = (distance[kept] % B).astype(word)
    kept = kept[_bernoulli_exp_half(r, P, s, B, source)]
    kept.sort()  # as proposed: which draws are cut off at the end must not depend on their values
    return kept


def _whole_parts_succeed(
    distance: IntArray, P: int, B: int, word: npt.DTypeLike, source: RandomSource
) -> IntArray:
    """Return the positions where the ab + a + b coins with a whole part succeed."""
    a, b = np.minimum(distance // P, _TOSSES), distance // B
    r: Words = (distance % P).astype(word)
    s: Words = (distance % B).astype(word)
    one_P: Words = np.full_like(r, P)
    one_B: Words = np.full_like(s, B)
    passed = np.arange(distance.size)
    parts: list[tuple[IntArray, Words, Words]] = [
        (a * b, one_P, one_B),
        (a, one_P, s),
        (b, r, one_B),
    ]
    for times, u, v in parts:
        toss = rounds(last=_TOSSES)
        done, active = [passed[times[passed] == 0]], passed[times[passed] > 0]
        while active.size:
            heads = _bernoulli_exp_half(u[active], P, v[active], B, source)
            active = active[np.flatnonzero(heads)]
            last = times[active] == next(toss)
            done.append(active[last])
            active = active[~last]
        passed = np.concatenate(done)
    return passed


def _bernoulli_exp_half(
    u: Words, P: int, v: Words, B: int, source: RandomSource
) -> npt.NDArray[np.bool_]:
    """Toss coins with P(True) = exp(-(u/P)(v/B)/2), as in `bernoulli_exp`: x/k is two coins."""
    odd = np.ones(u.size, dtype=np.bool_)
    active = np.arange(u.size)
    toss = rounds()
    while active.size:
        k = next(toss)
        success = np.flatnonzero(bernoulli(u, 2 * P, u.size, source, u.dtype))
        v = v[success]
        both = np.flatnonzero(bernoulli(v, B * k, v.size, source, v.dtype))
        success = success[both]
        active, u, v = active[success], u[success], v[both]
        odd[active] = k % 2 == 0
    return odd


def ball_gaussian(
    precision: FloatArray, linear: FloatArray, radius: float, n_draws: int, source: RandomSource
) -> FloatArray:
    r"""Draw vectors from a Gaussian restricted to a ball, by rejection: no Markov chain, no bias.

    .. math:: p(w) \propto e^{-\frac12 w^\top A w + b^\top w}, \qquad \|w\| \le B

    **Sampler.** In the eigenbasis of A the entries interact through the ball alone. Integrate one
    of them out: given the others, :math:`w_k` is a Gaussian restricted to :math:`|w_k| \le
    \sqrt u`, :math:`u = B^2 - \sum_{i \ne k} w_i^2`, and the others have the density

    .. math:: \prod_{i \ne k} e^{-\frac12 a_i w_i^2 + b_i w_i} \; Z(u), \qquad
              Z(u) = \int_{-\sqrt u}^{\sqrt u} e^{-\frac12 a_k x^2 + b_k x} dx .

    :math:`\log Z` is concave: the set :math:`x^2 \le u` is convex and the integrand log-concave, so
    its integral over x is log-concave in u (Prékopa). So it lies below its tangent at any
    :math:`u_0`, of slope :math:`\lambda`, and :math:`Z(u) \le Z(u_0) e^{\lambda(u - u_0)}`. Hence:
    propose independent :math:`w_i \sim N(b_i/(a_i+2\lambda), 1/(a_i+2\lambda))`, accept with
    probability :math:`Z(u)/Z(u_0) \cdot e^{-\lambda(u-u_0)}` (0 if :math:`u \le 0`), then draw
    :math:`w_k`. The tangent is taken where the expected u equals :math:`u_0`. ∎ If the mean
    is far outside, draws lie in a very thin layer below the surface; :math:`w_k` finds it.

    **What is assumed.** Normals come from 53-bit uniforms through the inverse distribution function
    and the arithmetic is that of doubles: the law is exact for real numbers only. The result is
    rounded to a public lattice, so that its low bits carry nothing, but the probabilities of
    lattice points are those of the real law up to rounding errors. Guarantees say so.

    Parameters
    ----------
    precision : array of shape (d, d)
        A, symmetric and positive semi-definite.
    linear : array of shape (d,)
        The b; the Gaussian's mean is A⁻¹b where that exists.
    radius : float
        The B. Draws are rounded to multiples of ``DRAW_LATTICE * radius``.
    n_draws : int
    source : callable

    Examples
    --------
    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> draws = ball_gaussian(np.eye(3), np.array([50.0, 0, 0]), 2.0, 5, random_source(0))
    >>> bool((np.linalg.norm(draws, axis=1) <= 2.00001).all())
    True
    """
    scaled, axes = np.linalg.eigh(precision * radius**2)  # from here the ball has radius 1
    scaled = np.maximum(scaled, _LEAST_EIGENVALUE)
    drawn, _ = _unit_ball(scaled, axes.T @ linear * radius, n_draws, source)
    steps: FloatArray = np.rint(drawn @ axes.T / DRAW_LATTICE)
    return steps * (DRAW_LATTICE * radius)


class _Entry(NamedTuple):
    """The entry that is integrated out: a Gaussian of precision ``a`` and mean ``mu >= 0``."""

    a: float
    mu: float

    def log_rest(self, c: FloatArray | float) -> FloatArray:
        """Log of Z(c²) less max(0, mu - c)² a/2, its largest exponent; stable everywhere."""
        c = np.asarray(c, np.float64)
        s = np.sqrt(self.a)
        gap = np.maximum(self.mu - c, 0.0) * s  # from the end of the interval to the mean
        outside = np.sqrt(np.pi / 2) * (
            erfcx(gap / np.sqrt(2))
            - np.exp(-2 * c * s * (gap + c * s)) * erfcx((gap + 2 * c * s) / np.sqrt(2))
        )
        high, low = (c - self.mu) * s, (-c - self.mu) * s
        inside = (
            np.sqrt(2 * np.pi) * -np.expm1(log_ndtr(low) - log_ndtr(high)) * np.exp(log_ndtr(high))
        )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(self.mu > c, outside, inside) / s))

    def slope(self, c: float) -> float:
        """Return d log Z/du at u = c²: (e(c) + e(-c)) / 2c Z."""
        exponent = 0.5 * self.a * max(self.mu - c, 0.0) ** 2
        ends = [-0.5 * self.a * (x - self.mu) ** 2 + exponent for x in (c, -c)]
        return float(np.exp(ends - self.log_rest(c)).sum() / (2 * c))

    def log_ratio(self, c: FloatArray, c0: float) -> FloatArray:
        """Log of Z(c²)/Z(c0²), the difference of large exponents taken as a product."""
        near, far = np.minimum(c, self.mu), min(c0, self.mu)
        exponent = 0.5 * self.a * (near - far) * (2 * self.mu - near - far)
        return np.asarray(exponent + self.log_rest(c) - self.log_rest(c0))

    def draw(self, c: float, u: float) -> float:
        """Return the u-quantile of the entry restricted to [-c, c]."""
        s = np.sqrt(self.a)
        low, high = log_ndtr((-c - self.mu) * s), log_ndtr((c - self.mu) * s)
        log_p = high + np.log(u + (1 - u) * np.exp(low - high))
        return float(np.clip(self.mu + ndtri_exp(log_p) / s, -c, c))


def _unit_ball(
    a: FloatArray, b: FloatArray, n_draws: int, source: RandomSource
) -> tuple[FloatArray, float]:
    """Draw in the eigenbasis and the ball of radius 1; return the draws and the acceptance."""
    k = int(np.argmax(np.abs(b) / (a + np.linalg.norm(b))))
    sign = -1.0 if b[k] < 0 else 1.0
    entry, rest = _Entry(float(a[k]), abs(float(b[k] / a[k]))), np.arange(len(a)) != k
    u0, tilt = _tangent(entry, a[rest], b[rest])
    spread = 1 / np.sqrt(a[rest] + 2 * tilt)
    centre = b[rest] * spread**2
    draws, found, taken, tried = np.empty((n_draws, len(a))), 0, 0, 0
    patience = rounds()  # renewed by every acceptance, so that any number of draws can be made
    while found < n_draws and next(patience):
        others = centre + spread * _normals((_PROPOSALS_AT_A_TIME, len(a) - 1), source)
        u = 1 - (others**2).sum(axis=1)
        c, c0 = np.sqrt(np.maximum(u, np.finfo(float).tiny)), np.sqrt(u0)
        log_accept = entry.log_ratio(c, c0) - tilt * (u - u0)
        accepted = np.flatnonzero(
            (u > 0) & (np.log(_uniforms(_PROPOSALS_AT_A_TIME, source)) <= log_accept)
        )
        for i in accepted[: n_draws - found]:
            draws[found, rest] = others[i]
            draws[found, k] = sign * entry.draw(float(c[i]), float(_uniforms(1, source)[0]))
            found += 1
        taken, tried = taken + len(accepted), tried + _PROPOSALS_AT_A_TIME
        patience = rounds() if len(accepted) else patience
    return draws, taken / max(tried, 1)


def _tangent(entry: _Entry, a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """Return (u0, slope) with u0 = 1 - E[sum of w_i²] under the proposal; the root is unique."""

    def excess(log_u: float) -> float:
        p = a + 2 * entry.slope(float(np.exp(log_u / 2)))
        return float(np.exp(log_u) + ((b / p) ** 2 + 1 / p).sum() - 1)

    lowest = -700.0
    log_u = brentq(excess, lowest, 0.0, xtol=1e-10) if excess(0.0) > 0 > excess(lowest) else 0.0
    return float(np.exp(log_u)), entry.slope(float(np.exp(log_u / 2)))


def _uniforms(size: int, source: RandomSource) -> FloatArray:
    """Midpoints of 2**53 equal parts of (0, 1)."""
    words = np.frombuffer(source(8 * size), dtype=np.uint64) >> np.uint64(11)
    return (words.astype(np.float64) + 0.5) * 2.0**-53


def _normals(shape: tuple[int, int], source: RandomSource) -> FloatArray:
    return np.asarray(ndtri(_uniforms(shape[0] * shape[1], source)).reshape(shape))
