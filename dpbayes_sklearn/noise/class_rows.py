r"""Joint noise of all naive Bayes tables: the K-norm mechanism of the changes one record can make.

A record adds one to one cell of its class's row in each of d tables. For each class the rows of
noise :math:`v_1, \dots, v_d` have the same sum s, that of its class count, and

.. math:: P(v) \propto e^{-\|v\|/b}, \qquad \|v\| = \max_j \|v_j\|_1,
    \qquad v_{jk} \in \{0, \pm 1/g, \pm 2/g, \dots\}

**Loss.** Replacing a record changes :math:`\sum_c \max_j \|v_{cj}\|_1` by at most 2, so :math:`b =
2/\varepsilon` is enough for any number of tables. The unit ball of the norm is the convex hull of
what adding or removing a record can do.

**Sampler**, in steps of the grid. Let A and B be the largest sum of positive and of negative
entries of a row; then :math:`\|v\| = A + B` and :math:`s = A - B`. With :math:`q = e^{-1/b}`,
:math:`q^{A+B} \propto \sum q^{P+M}` over all :math:`P \ge A` with :math:`P - M = s`: a mixture.

1. A row of n + 1 entries is free in n of them. Those with positive sum at most P and negative sum
   at most M number :math:`W_n(P, M) = \sum_i \binom ni \binom Pi \binom{M+n-i}{n-i}`, i being how
   many are positive. So (P, M) has weight :math:`q^{P+M} \prod_j W_{n_j}(P, M)`.
2. Let :math:`T = P + M` and :math:`h = 1 + \max_j n_j`. As
   :math:`\binom Pi \le (P + h/2)^i/i!` and :math:`\binom{M+k}k \le (M + h/2)^k/k!` for k < h,
   :math:`n!\,W_n \le \sum_i \binom ni^2 x^i y^{n-i}` with x + y = T + h. This equals
   :math:`\sum_k \binom n{2k} \binom{2k}k (xy)^k (x+y)^{n-2k}`, so it is largest for x = y:
   :math:`n!\,2^n W_n \le \binom{2n}n (T + h)^n`.
3. The sum R of m + 2 geometric variables, :math:`m = \sum_j n_j`, has weight proportional to
   :math:`q^R \prod_{i=1}^{m+1} (R + i)`. Propose T = R + 1 - h, and P uniform on 0..T; as
   :math:`R + i \ge T + h`, accepting with a coin
   :math:`n!\,2^n W_n / (\binom{2n}n \prod (R + i))` for each row, over n factors of its own, and
   one of :math:`(T + 1)/(R + m + 1)` gives (P, M) its weight.
4. Given (P, M) every row is uniform: i by its weight in W, which entries are positive, and then
   their partial sums, i different numbers up to P. ∎

Of thousands of values W has tens of thousands of bits. A drawn number is compared with bounds of W
first, and with W itself only where it lies between them (:class:`_Choices`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import accumulate, pairwise
from math import comb, factorial, isqrt, perm
from typing import ClassVar

import numpy as np
from scipy.special import gammainccinv, gammaln

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise.discrete_gaussian import GaussianMarginal
from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal, laplace_magnitudes
from dpbayes_sklearn.noise.integers import RandomSource, any_below, random_subset, rounds
from dpbayes_sklearn.noise.law import (
    Marginal,
    NoiseLaw,
    check_grid,
    draw,
    lattice_scale,
    representable_scale,
)

_MOST_AT_A_TIME = 1 << 15  # At most this many geometric variables are drawn at a time.
_MOST_TRIES = 1 << 16  # No noise takes this many tries if the source works.
_BITS = 128  # Numbers of rows are bounded to about this many bits.


@dataclass(frozen=True)
class ClassRows(NoiseLaw):
    """Joint noise of all tables, independent by class: exp(-max_j abs(v_j).sum() / scale).

    The arrays are the tables of the features, of shape (n_classes, values), and the class counts.

    >>> law = ClassRows.of((2, 2, 4), n_classes=2, sensitivity=2, epsilon=Fraction(1))
    >>> law.scale, law.grid
    (Fraction(2, 1), 4)
    >>> [round(law.variance(table), 1) for table in (0, 2)]
    [33.6, 14.9]
    """

    scale: Fraction  # The b, in counts.
    values: tuple[int, ...]  # Number of values of every feature.
    n_classes: int  # Number of classes, which have independent noises.
    grid: int  # The g: a power of two. Released counts are multiples of 1/g.

    independent: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.scale <= 0 or any(size < 1 for size in (*self.values, self.n_classes)):
            raise ValueError("Joint noise needs a positive scale and at least one value a feature.")
        check_grid(self.grid)

    @classmethod
    def of(
        cls, values: tuple[int, ...], n_classes: int, sensitivity: int, epsilon: Fraction
    ) -> ClassRows:
        """Return the law for rows whose norm, summed over classes, has this sensitivity."""
        scale, grid = lattice_scale(_dimension(values), sensitivity, epsilon)
        return cls(scale, values, n_classes, grid)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of cells of the tables, then of the class counts."""
        return tuple(self.n_classes * size for size in (*self.values, 1))

    @cached_property
    def dimension(self) -> int:
        """How many numbers of a class's rows are free: all but one of a row, and their sum."""
        return _dimension(self.values)

    @property
    def steps(self) -> Fraction:
        """Scale in steps of the grid."""
        return self.scale * self.grid

    @cached_property
    def squared_radius(self) -> float:
        r"""Mean square :math:`b^2 (m+1)(m+2)` of the radius T, which is Gamma(m + 1, b)."""
        m = self.dimension
        return float(self.scale) ** 2 * (m + 1) * (m + 2)

    @cached_property
    def shared_row_variance(self) -> float:
        r"""Variance :math:`E[T^2] E[u^2]` of a class count's noise uT."""
        u, weights = _direction(self.values)
        return self.squared_radius * float(weights @ u**2)

    def contrast_variance(self, array: int = 0) -> float:
        """Variance of a row's noise along any contrast: what cells have beyond the row's sum."""
        size = self.sizes[array] // self.n_classes
        cell = self.variance(array) - self.shared_row_variance / size**2
        return cell * size / max(size - 1, 1)

    def _cell_variance(self, size: int) -> float:
        r"""Variance of one cell in a table of features with ``size`` = n + 1 values.

        Given T and u, i of the n free entries are positive with weight
        :math:`\binom ni^2 x^i (1-x)^{n-i}`, :math:`x = \frac{1+u}2`, and share xT by uniform
        spacings, :math:`E v^2 = \frac{2x^2T^2}{(i+1)(i+2)}`; the others share (1 - x)T likewise.
        """
        n = size - 1
        if n == 0:
            return self.shared_row_variance
        u, weights = _direction(self.values)
        x, i = (1 + u) / 2, np.arange(n + 1.0)[:, None]
        log_ways = 2 * _log_binomial(n, i) + i * np.log(x) + (n - i) * np.log1p(-x)
        ways = np.exp(log_ways - log_ways.max(axis=0))
        above, below = (k / ((k + 1) * (k + 2)) for k in (i, n - i))
        squares = 2 * (above * x**2 + below * (1 - x) ** 2) / n
        return self.squared_radius * float(weights @ ((ways * squares).sum(0) / ways.sum(0)))

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of every cell, table after table, then of the class counts."""
        exact = {size: self._cell_variance(size) for size in {*self.values, 1}}
        return np.repeat([exact[size] for size in (*self.values, 1)], self.sizes)

    def marginal(self, array: int = 0) -> LaplaceMarginal:
        """Return Laplace noise of the same variance, which approximates that of one number."""
        return LaplaceMarginal(math.sqrt(self.variance(array) / 2.0))

    def row_marginal(self, array: int = 0) -> Marginal:
        """Return Gaussian noise of the variance that a row has along its contrasts.

        Given the largest norm, a row is uniform over a ball, which a Gaussian approximates better
        than a Laplace law does.
        """
        if (*self.values, 1)[array] == 1:
            return self.marginal(array)
        return GaussianMarginal(self.contrast_variance(array))

    @property
    def standard(self) -> tuple[ClassRows, float]:
        """The law whose scale is many steps, on the integers, and the factor."""
        steps = 64 * self.dimension
        law = ClassRows(Fraction(steps), self.values, self.n_classes, 1)
        return law, float(self.scale) / steps

    def error_bound(self, delta: float) -> float:
        r"""Return the bound of the largest error, from the Gamma law of the norm.

        .. math:: \max |z| \le b\,\Gamma^{-1}_m\Big(1 - \frac{\delta}{Ce^{t}\cosh t}\Big)
            + \frac{d}{g}, \qquad t = \frac{d}{gb}, \quad d = K - \tfrac12,

        for C classes, m free numbers in the rows of each, and features of at most K values. No
        cell is larger than the norm, which for continuous noise has the Gamma law of order m and
        scale b. Spread evenly over a cube of side 1/g in the free numbers, a point of the lattice
        shifts by u with :math:`\|u\| \le d/g`. That changes its weight by at most :math:`e^t`; and
        as the norm is convex, u and -u together change the sum of all weights by at most
        :math:`\cosh t`.
        """
        farthest = max(self.values, default=1) - 0.5
        t = farthest / float(self.steps)
        within = delta / self.n_classes / (math.exp(t) * math.cosh(t))
        radius = float(gammainccinv(self.dimension, within))
        return float(self.scale) * radius + farthest / self.grid

    def privacy_loss(self, shift: IntArray) -> Fraction | float:
        """Return the sum over classes of the largest row's L1 norm, over the scale.

        Infinite if the rows of a class have different sums: no two data sets differ so.
        """
        tables = np.split(shift, np.cumsum(self.sizes)[:-1])
        rows = [table.reshape(self.n_classes, -1) for table in tables]
        sums = np.stack([row.sum(axis=1) for row in rows])
        if (sums != sums[0]).any():
            return math.inf
        norms = np.stack([np.abs(row).sum(axis=1) for row in rows]).max(axis=0)
        return int(norms.sum()) / self.scale


def _dimension(values: tuple[int, ...]) -> int:
    """Return how many numbers of a class's rows are free: all but one of a row, and the sum."""
    return 1 + sum(size - 1 for size in values)


@lru_cache(maxsize=64)
def _direction(values: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    r"""Return nodes and weights of the distribution of u, the sum of a row over its radius.

    Its density is :math:`\prod_j w_{K_j-1}(u)` on [-1, 1]: the volumes of rows with this sum. A
    Gauss rule integrates the polynomial exactly if it has few features, and to 1e-12 otherwise.
    """
    m = _dimension(values) - 1
    u, weights = np.polynomial.legendre.leggauss(min(m // 2 + 3, 32 + 4 * math.isqrt(m)))
    log_volume = np.zeros_like(u)
    for free, features in Counter(size - 1 for size in values).items():
        log_volume += features * _log_row_volume(free, u)
    volume = weights * np.exp(log_volume - log_volume.max())
    return u, volume / volume.sum()


def _log_row_volume(n: int, u: FloatArray) -> FloatArray:
    r"""Return the log of :math:`w_n(u) = u^n P_n(1/u)`, P the Legendre polynomials.

    Rows of n free entries whose positive and negative parts add to at most
    :math:`\frac{1 \pm u}2`: :math:`w_0 = w_1 = 1` and
    :math:`(k+1) w_{k+1} = (2k+1) w_k - k u^2 w_{k-1}`, here by the ratios :math:`w_{k+1}/w_k`,
    as :math:`w_n` itself grows as :math:`2^n`.
    """
    log_volume, ratio = np.zeros_like(u), np.ones_like(u)
    for k in range(1, n):
        ratio = ((2 * k + 1) - k * u**2 / ratio) / (k + 1)
        log_volume += np.log(ratio)
    return log_volume


def _log_binomial(n: int, i: FloatArray) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(i + 1) - gammaln(n - i + 1))


DrawnRows = tuple[int, list[IntArray]]


@draw.register
def _(law: ClassRows, count: int, source: RandomSource) -> IntArray:
    """Draw the rows of every class, and put them into the tables that they belong to."""
    noises = many_rows(law.values, law.steps, count * law.n_classes, source)
    cells = np.array([np.concatenate([*rows, [total]]) for total, rows in noises], np.int64)
    by_class = cells.reshape(count, law.n_classes, -1)
    tables = np.split(by_class, np.cumsum(law.values), axis=2)
    return np.concatenate([table.reshape(count, -1) for table in tables], axis=1)


def row_choices(n: int, positive: int, negative: int) -> list[int]:
    """Count rows of n free entries with these bounds on their sums, by number of positive ones.

    >>> sum(row_choices(1, 3, 2))  # one entry, from -2 to 3
    6
    """
    ways = [comb(negative + n, n)]
    for i in range(n):  # binom(n, i) binom(P, i) binom(M+n-i, n-i), each from the one before
        ways.append(ways[-1] * (n - i) ** 2 * (positive - i) // ((i + 1) ** 2 * (negative + n - i)))
    return ways


@dataclass(frozen=True)
class _Choices:
    """The sums of the first of ``row_choices``: within bounds, and exact where it matters."""

    n: int
    positive: int
    negative: int
    largest: int  # The largest choice.
    ends: list[int]  # Sums of the first choices in units of largest/2**_BITS, up to n² too small.

    @classmethod
    def of(cls, n: int, positive: int, negative: int) -> _Choices:
        """Multiply ratios of neighbours from the largest choice on: each rounds down by 1 at most.

        >>> _Choices.of(1, 3, 2).between(1)  # one entry, from -2 to 3
        (6, 6)
        """

        def over(i: int) -> int:
            return (n - i) ** 2 * (positive - i)

        def under(i: int) -> int:
            return (i + 1) ** 2 * (negative + n - i)

        best = bisect_left(range(n), True, key=lambda i: over(i) < under(i))
        parts, part = deque([1 << _BITS]), 1 << _BITS
        for i in reversed(range(best)):
            part = part and part * under(i) // over(i)
            parts.appendleft(part)
        part = 1 << _BITS
        for i in range(best, n):
            part = part and part * over(i) // under(i)
            parts.append(part)
        largest = comb(n, best) * comb(positive, best) * comb(negative + n - best, n - best)
        return cls(n, positive, negative, largest, [*accumulate(parts)])

    def between(self, last: int, factor: int = 1) -> tuple[int, int]:
        """Return bounds of the sum up to some choice, times a factor."""
        units, end = factor * self.largest, self.ends[last]
        return -(-units * end >> _BITS), units * (end + self.n**2) >> _BITS

    def exceed(self, drawn: int, last: int, factor: int = 1) -> bool:
        """Tell whether the sum up to some choice, times a factor, is above a number."""
        low, high = self.between(last, factor)
        return drawn < low or (low < high and drawn < high and drawn < factor * self._sum(last))

    def _sum(self, last: int) -> int:
        return sum(row_choices(self.n, self.positive, self.negative)[: last + 1])

    def draw(self, source: RandomSource) -> int:
        """Draw how many entries of a uniform row are positive."""
        attempt = rounds()
        while next(attempt):
            pick = any_below(self.between(self.n)[1], source)
            if self.exceed(pick, self.n):
                break
        return bisect_left(range(self.n), True, key=partial(self.exceed, pick))


def many_rows(
    sizes: Sequence[int], scale: Fraction, count: int, source: RandomSource
) -> Iterator[DrawnRows]:
    """Yield rows with P(v) proportional to exp(-max_j |v_j|_1/scale), exactly, many at a time.

    >>> from dpbayes_sklearn.noise.integers import random_source
    >>> len([*many_rows([2, 3], Fraction(100), 5, random_source(0))])
    5
    """
    free = [size - 1 for size in sizes]
    tries = 4 + 2 * isqrt(sum(n for n in free if n > 1))  # what one noise needs, or more
    proposals = _geometric_sums(sum(free) + 2, representable_scale(scale), count * tries, source)
    ends = [*accumulate(sizes, initial=0)]
    for _ in range(count):
        positive, negative = _sums(free, proposals, source)
        total, cells = positive - negative, list[int]()
        for n in free:
            row = _row(n, positive, negative, source)
            cells += *row, total - sum(row)
        together = np.array(cells, np.int64)
        yield total, [together[a:b] for a, b in pairwise(ends)]


def _sums(free: Sequence[int], proposals: Iterator[int], source: RandomSource) -> tuple[int, int]:
    """Draw the bounds P and M on the sums of positive and of negative entries."""
    m, h = sum(free), 1 + max(free, default=0)
    attempt = rounds(last=_MOST_TRIES)
    while next(attempt):
        proposed = next(proposals)
        both = proposed + 1 - h
        if both < 0 or any_below(proposed + m + 1, source) > both:
            continue
        positive = any_below(both + 1, source)
        if _accepts(free, positive, both - positive, proposed, source):
            break
    return positive, both - positive


def _geometric_sums(terms: int, scale: Fraction, tries: int, source: RandomSource) -> Iterator[int]:
    """Yield sums of geometric variables without end, drawn many at a time."""
    some = max(1, min(tries, _MOST_AT_A_TIME // terms))
    while True:
        drawn = laplace_magnitudes(scale, some * terms, source)
        yield from drawn.reshape(some, terms).sum(axis=1).tolist()


def _accepts(
    free: Sequence[int], positive: int, negative: int, proposed: int, source: RandomSource
) -> bool:
    """Toss the coin of every row, up to the first failure."""
    first, choices = proposed + 1, dict[int, _Choices]()
    for n in free:
        if n not in choices:
            choices[n] = _Choices.of(n, positive, negative)
        most, factor = _factors(n)
        drawn = any_below(most * perm(first + n - 1, n), source)
        if not choices[n].exceed(drawn, n, factor):
            return False
        first += n
    return True


@lru_cache(maxsize=64)
def _factors(n: int) -> tuple[int, int]:
    """Return the factors of a coin: of the product, and of the number of rows."""
    return comb(2 * n, n), factorial(n) << n


def _row(n: int, positive: int, negative: int, source: RandomSource) -> list[int]:
    """Draw the free entries of a row uniformly."""
    i = _Choices.of(n, positive, negative).draw(source)
    up = _gaps(random_subset(positive, i, source))
    down = _gaps(random_subset(negative + n - i, n - i, source))
    above = {*random_subset(n, i, source)}
    return [next(up) if entry in above else 1 - next(down) for entry in range(1, n + 1)]


def _gaps(places: list[int]) -> Iterator[int]:
    """Yield the distance of every position from the previous one; of the first, from 0."""
    return (b - a for a, b in pairwise([0, *places]))
