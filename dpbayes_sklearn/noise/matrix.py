r"""Noise for matrices of sums of products: the difference of two Wishart matrices.

.. math:: Z_{ij} = \Big\lfloor \tfrac b2 \frac{(A - B)_{ij}}{a_i a_j} + \tfrac12 \Big\rfloor,
    \qquad i \le j

where A and B are independent Wishart matrices of p + 1 degrees of freedom, whose density is
:math:`\propto e^{-\operatorname{tr}/2}` on the positive semi-definite cone, and :math:`a_i` are
weights of the p coordinates.

**Loss.** :math:`M = \tfrac b2(A - B)` has density
:math:`f(M) \propto \int e^{-(\operatorname{tr} M + 2 \operatorname{tr} B)/b}\,dB` over
:math:`B \succeq 0`, :math:`M + B \succeq 0`. For
:math:`P \succeq 0` substitute B + P: :math:`f(M) \ge e^{-\operatorname{tr} P/b} f(M + P)`, and by
symmetry :math:`f(M) \ge e^{-\operatorname{tr} P/b} f(M - P)`. A difference of neighbours, weighted
by :math:`a_i a_j`, is P - N with positive semi-definite P, N, so its loss is at most
:math:`(\operatorname{tr} P + \operatorname{tr} N)/b`: its nuclear norm over b. The sums are
integers, so adding rounded noise to them is rounding, a post-processing. ∎

One entry is a difference of two Gamma variables: order p + 1 and scale b/2 off the diagonal
(variance :math:`b^2(p+1)/2`), order (p + 1)/2 and scale b on it (twice that variance), over
:math:`a_ia_j`. Different entries are uncorrelated.

**Sampler.** A Wishart matrix of p + 1 degrees of freedom is :math:`\sum_k g_k g_k^\top` of p + 1
vectors of standard normals. A real number cannot be stored, but its first bits can, and more of
them can be drawn later: :math:`g \in [G, G+1)\,2^{-m}` with an integer G, uniform in that cell
given all that is known. A product :math:`g_ig_j` then differs from that of the lower ends
:math:`G_iG_j` by at most :math:`|G_i| + |G_j| + 1`. If all numbers that are possible round to the
same integer, it is the rounded noise; if not, more bits of the normals are drawn.

**Standard normals.** :math:`|g| = k + x` with k geometric of rate :math:`e^{-1}` and x uniform in
[0, 1) has density proportional to :math:`e^{-k}`. It is accepted with probability
:math:`e^{-(|g|^2 + 1 - 2k)/2} \le 1`, which leaves :math:`e^{-|g|^2/2}`. A proposal is accepted or
rejected only if all of its cell is: the comparison with a random number is made in floats where
their errors cannot matter, and otherwise with as many more bits of both numbers as it takes (a
floating-point filter). So an accepted number is uniform in its cell, and the law is exact. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, kve

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise.integers import RandomSource, any_below, geometric, rounds
from dpbayes_sklearn.noise.law import Chernoff, NoiseLaw, draw

BITS = 60
"""Bits behind the point that are drawn at first."""
# Floats with exponents below 1e3 give probabilities with far smaller errors.
_SURE_PROBABILITY = 1e-12
_ACCEPTED = 0.48  # About this share of proposals is accepted.
_LIMB = 20  # Numbers are split into parts of 20 bits, whose products add up exactly in doubles.
_NORMALS_AT_A_TIME = 1 << 16  # This many normals are drawn at a time.


@dataclass(frozen=True)
class MatrixNoise(NoiseLaw):
    """Joint noise of the upper triangle, row by row, of a symmetric matrix.

    >>> law = MatrixNoise(Fraction(4), (Fraction(1), Fraction(1)))
    >>> law.size, law.variances.tolist()
    (3, [48.0, 24.0, 48.0])
    >>> law.privacy_loss(np.array([1, 1, 1]))  # a record of (1, 1) comes
    0.5
    """

    scale: Fraction  # The b, in units of the numbers.
    weights: tuple[Fraction, ...]  # The a_i, one for each coordinate.

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) <= 0 or self.scale <= 0:
            raise ValueError("Matrix noise needs coordinates of positive weight and a scale.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """All entries are one array."""
        p = len(self.weights)
        return (p * (p + 1) // 2,)

    @cached_property
    def upper(self) -> tuple[IntArray, IntArray]:
        """Rows and columns of the entries."""
        rows, columns = np.triu_indices(len(self.weights))
        return rows, columns

    @cached_property
    def variances(self) -> FloatArray:
        """Variance b² (p+1)/2 of every entry over its squared weights; twice on the diagonal."""
        rows, columns = self.upper
        a = np.array([float(weight) for weight in self.weights])
        size = float(self.scale) ** 2 * (len(a) + 1) / 2
        return np.asarray(np.where(rows == columns, 2.0, 1.0) * size / (a[rows] * a[columns]) ** 2)

    def marginal(self, array: int = 0) -> GammaDifference:
        """Return the distribution of the first entry, a diagonal one."""
        weight = float(self.weights[0]) ** 2
        return GammaDifference((len(self.weights) + 1) / 2, float(self.scale) / weight)

    def error_bound(self, delta: float) -> float:
        """Return a Chernoff bound for each entry, at the same share of ``delta``."""
        nats, order = float(np.log(self.size / delta)), (len(self.weights) + 1) / 2
        widest = float(self.scale) / float(min(self.weights)) ** 2
        entries = (GammaDifference(order, widest), GammaDifference(2 * order, widest / 2))
        return 0.5 + max(entry.half_width(1, nats) for entry in entries)

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the nuclear norm of the weighted shift over the scale, from above."""
        matrix = np.zeros((len(self.weights),) * 2)
        matrix[self.upper[::-1]] = shift  # the lower half is all that is read of it
        eigenvalues = np.linalg.eigvalsh(matrix * self._weight_products, "L")
        return float(np.abs(eigenvalues).sum() / float(self.scale))

    @cached_property
    def _weight_products(self) -> FloatArray:
        a = np.array([float(weight) for weight in self.weights])
        return np.outer(a, a)


@dataclass(frozen=True)
class GammaDifference(Chernoff):
    r"""The difference of two Gamma variables: density :math:`|x|^{k-1/2}K_{k-1/2}(|x|/b)`.

    >>> GammaDifference(1.0, 2.0).log_weight(np.array([0.0, -3.0, 4.0])).tolist()
    [0.0, -1.5, -2.0]
    """

    order: float
    scale: float

    @property
    def variance(self) -> float:
        """Variance 2 k b²."""
        return 2.0 * self.order * self.scale**2

    @property
    def sharpness(self) -> float:
        """The standard deviation, or the scale if it is less."""
        return min(self.scale, float(np.sqrt(self.variance)))

    @property
    def steepest(self) -> float:
        """The s at which E[exp(s Z)] becomes infinite, 1/b."""
        return 1.0 / self.scale

    def log_weight(self, x: FloatArray) -> FloatArray:
        """Log density less its value at 0."""
        v = self.order - 0.5
        y = np.maximum(np.abs(x) / self.scale, 1e-9)
        peak = gammaln(v) + (v - 1) * np.log(2.0)
        return np.asarray(v * np.log(y) + np.log(kve(v, y)) - y - peak)

    def log_mgf(self, s: FloatArray) -> FloatArray:
        """-k log(1 - s² b²)."""
        return -self.order * np.log1p(-((s * self.scale) ** 2))


Integers = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Normals:
    """Real numbers known by cells: number i lies in ``[cells[i], cells[i] + 1) / 2**bits``."""

    cells: Integers
    bits: int

    def refined(self, source: RandomSource) -> Normals:
        """Return the same numbers, known to 64 bits more."""
        more = np.frombuffer(source(8 * self.cells.size), np.uint64).astype(object)
        return Normals((self.cells << 64) + more.reshape(self.cells.shape), self.bits + 64)


def exact_normals(count: int, source: RandomSource, sure: float = _SURE_PROBABILITY) -> Normals:
    """Draw independent standard normal numbers.

    Floats decide a comparison if they are ``sure``: this far from its threshold.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> drawn = exact_normals(3, random_source(0))
    >>> drawn.bits, (drawn.cells / 2.0**drawn.bits).astype(float).round(2).tolist()
    (60, [-0.79, 0.57, -0.07])
    """
    parts: list[tuple[Integers, IntArray]] = []
    found, attempt = 0, rounds()
    while found < count and next(attempt):
        parts.append(_accepted(int((count - found) / _ACCEPTED) + 8, source, sure))
        found += len(parts[-1][0])
    cells, extra = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    most = int(extra.max(initial=0))
    for i in np.flatnonzero(extra < most).tolist():  # almost never
        lack = most - int(extra[i])
        cells[i] = (cells[i] << lack) + any_below(1 << lack, source)
    negative = np.unpackbits(np.frombuffer(source(-(-count // 8)), np.uint8))[:count].astype(bool)
    return Normals(np.where(negative, -cells - 1, cells), BITS + most)


def _accepted(size: int, source: RandomSource, sure: float) -> tuple[Integers, IntArray]:
    """Make proposals and return the accepted ones: cells, and their bits beyond BITS."""
    whole = geometric(size, source)
    part, coin = (np.frombuffer(source(8 * size), np.uint64) for _ in range(2))
    part = part >> np.uint64(64 - BITS)
    y = whole + part * 2.0**-BITS
    gap = coin * 2.0**-64 - np.exp(-(y * y + 1 - 2 * whole) / 2)
    cells = (whole.astype(object) << BITS) + part.astype(object)
    extra, accepted = np.zeros(size, np.int64), gap <= -sure
    for i in np.flatnonzero(~accepted & (gap < sure)).tolist():
        compared = _compared(cells[i], int(whole[i]), int(coin[i]), source)
        if compared is not None:
            cells[i], extra[i] = compared
            accepted[i] = True
    return cells[accepted], extra[accepted]


def _compared(cell: int, whole: int, coin: int, source: RandomSource) -> tuple[int, int] | None:
    """Decide a proposal with more bits; return its cell and their number, None if rejected."""
    extra, attempt = 0, rounds()
    while next(attempt):
        with localcontext() as context:
            context.prec = 3 * (BITS + extra) + 40
            least, most = (_probability(cell + end, BITS + extra, whole) for end in (1, 0))
            unit = Decimal(2) ** (64 + extra)
            if (coin + 1) / unit <= least:
                return cell, extra
            if coin / unit >= most:
                return None
        cell = (cell << BITS) + any_below(1 << BITS, source)
        coin = (coin << BITS) + any_below(1 << BITS, source)
        extra += BITS
    return None


def _probability(cell: int, bits: int, whole: int) -> Decimal:
    """Return the probability at one end of a cell; ``Decimal.exp`` is correctly rounded."""
    y = Decimal(cell) / Decimal(2) ** bits
    return (-(y * y + 1 - 2 * whole) / 2).exp()


@draw.register
def _(law: MatrixNoise, count: int, source: RandomSource) -> IntArray:
    return wishart_differences(law.scale, law.weights, count, source)


def wishart_differences(
    scale: Fraction, weights: tuple[Fraction, ...], count: int, source: RandomSource
) -> IntArray:
    """Draw upper triangles (count, p(p + 1)/2) of rounded matrices scale/2 (A - B)_ij/(a_i a_j).

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> wishart_differences(Fraction(1000), (Fraction(1),) * 3, 4, random_source(0)).shape
    (4, 6)
    """
    p = len(weights)
    each = 2 * (p + 1) * p
    most, parts = max(1, _NORMALS_AT_A_TIME // each), [np.empty((0, p * (p + 1) // 2), np.int64)]
    for first in range(0, count, most):
        many = min(most, count - first)
        normals = exact_normals(many * each, source)
        parts.append(_rounded(normals, scale, weights, many, source))
    return np.concatenate(parts)


def _rounded(
    normals: Normals,
    scale: Fraction,
    weights: tuple[Fraction, ...],
    count: int,
    source: RandomSource,
) -> IntArray:
    """Return the rounded entries, with as many bits of the normals as each of them takes."""
    p = len(weights)
    rows, columns = np.triu_indices(p)
    factors = _factors(scale, weights)
    g = normals.cells.reshape(2, count, p + 1, p)
    size = np.abs(g).sum(axis=(0, 2))  # (count, p)
    middle = _products(g[0]) - _products(g[1])
    low, high = rounded_ends(middle, size[:, rows] + size[:, columns], factors, p, normals.bits)
    attempt = rounds()
    while (undecided := low != high).any() and next(attempt):
        normals = normals.refined(source)
        which, entry = np.nonzero(undecided)
        g = normals.cells.reshape(2, count, p + 1, p)
        one, other = g[:, which, :, rows[entry]], g[:, which, :, columns[entry]]
        plus, minus = (one * other).sum(axis=2).T
        sizes = (np.abs(one) + np.abs(other)).sum(axis=(1, 2))
        of_these = factors[:, entry]
        low[undecided], high[undecided] = rounded_ends(
            plus - minus, sizes, of_these, p, normals.bits
        )
    if max(abs(int(low.max())), abs(int(low.min()))) >= 2**62:
        raise OverflowError("The noise does not fit 64-bit integers; use a coarser grid.")
    return np.asarray(low, np.int64)


def _factors(scale: Fraction, weights: tuple[Fraction, ...]) -> Integers:
    """Return numerators and denominators of scale/(2 a_i a_j), for i <= j."""
    rows, columns = np.triu_indices(len(weights))
    above = np.array([weight.numerator for weight in weights], object)
    below = np.array([weight.denominator for weight in weights], object)
    numerators = scale.numerator * below[rows] * below[columns]
    return np.stack([numerators, 2 * scale.denominator * above[rows] * above[columns]])


def rounded_ends(
    middle: Integers, sizes: Integers, factors: Integers, p: int, bits: int
) -> tuple[Integers, Integers]:
    """Round the smallest and the largest numbers that are possible."""
    numerators, units = 2 * factors[0], factors[1] << (2 * bits)
    error = sizes + 2 * (p + 1)
    low, high = ((numerators * (middle + sign * error) + units) // (2 * units) for sign in (-1, 1))
    return low, high


def _products(g: Integers) -> Integers:
    """Return the upper triangles of g'g, exactly, by exact products of the limbs of integers."""
    count, n, p = g.shape
    rows, columns = np.triu_indices(p)
    size, signs, ones = np.abs(g), np.where(g < 0, -1.0, 1.0), (1 << _LIMB) - 1
    number = -(-int(size.max()).bit_length() // _LIMB)
    limbs = [((size >> _LIMB * k) & ones).astype(np.float64) * signs for k in range(number)]
    together = np.stack(limbs, axis=2).reshape(count, n, number * p)
    places = np.zeros((len(rows), count, 2 * number - 1), np.int64)
    for i, one in enumerate(limbs):
        products = (np.swapaxes(one, 1, 2) @ together).reshape(count, p, number, p)
        places[..., i : i + number] += products[:, rows, :, columns].astype(np.int64)
    total = np.zeros((count, len(rows)), object)
    for k in range(2 * number - 1):
        total += places[..., k].T.astype(object) << _LIMB * k
    return total
