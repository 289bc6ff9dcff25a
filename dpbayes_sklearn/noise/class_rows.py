r"""Sampler of joint integer noise for rows of counts that all contain the same record.

A record adds one to one cell of a row in each of d tables. Rows :math:`v_1, \dots, v_d` of
changes therefore have the same sum s, and

.. math:: P(v) \propto e^{-\|v\|/b}, \qquad \|v\| = \max_j \sum_k |v_{jk}|

is noise in a norm of sensitivity one per added or removed record, for any number of tables.

**Sampler.** Let A and B be the largest sum of positive and of negative entries of a row; then
:math:`\|v\| = A + B` and :math:`s = A - B`. With :math:`q = e^{-1/b}`,
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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import comb, factorial, isqrt, perm

import numpy as np

from dpbayes_sklearn._typing import IntArray
from dpbayes_sklearn.laws.class_rows import ClassRows
from dpbayes_sklearn.laws.scales import representable_scale
from dpbayes_sklearn.noise.add import draw
from dpbayes_sklearn.noise.bernoulli import any_below, random_subset, rounds
from dpbayes_sklearn.noise.discrete_laplace import laplace_magnitudes
from dpbayes_sklearn.noise.source import RandomSource

__all__ = ["discrete_rows", "many_rows", "row_choices"]

Rows = tuple[int, list[IntArray]]

_MOST_AT_A_TIME = 1 << 15  # geometric variables; those of a noise that was found are wasted
_MOST_TRIES = 1 << 16  # for one noise; never reached with a working source


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


def discrete_rows(sizes: Sequence[int], scale: Fraction, source: RandomSource) -> Rows:
    """Draw rows of the given sizes with P(v) proportional to exp(-max_j |v_j|_1/scale), exactly.

    Parameters
    ----------
    sizes : sequence of int, each at least 1
        Number of cells of every row.
    scale : Fraction
        The b. Meant for fine lattices: the number of tries grows as exp(m/2b).
    source : callable
        Random bytes, from `random_source`.

    Returns
    -------
    total : int
        The sum of any of the rows.
    rows : list of arrays of int

    Examples
    --------
    >>> from dpbayes_sklearn.noise.source import random_source
    >>> total, rows = discrete_rows([2, 3], Fraction(100), random_source(0))
    >>> [len(row) for row in rows], {int(row.sum()) for row in rows} == {total}
    ([2, 3], True)
    """
    return next(many_rows(sizes, scale, 1, source))


def many_rows(
    sizes: Sequence[int], scale: Fraction, count: int, source: RandomSource
) -> Iterator[Rows]:
    """Yield independent noises with the law of `discrete_rows`, proposed many at a time.

    >>> from dpbayes_sklearn.noise.source import random_source
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
    first, odds = proposed + 1, {}
    for n in free:
        if n not in odds:
            wanted = factorial(n) * 2**n * sum(row_choices(n, positive, negative))
            odds[n] = wanted, comb(2 * n, n)
        wanted, most = odds[n]
        if any_below(most * perm(first + n - 1, n), source) >= wanted:
            return False
        first += n
    return True


def _row(n: int, positive: int, negative: int, source: RandomSource) -> list[int]:
    """Draw the free entries of a row uniformly."""
    choices = row_choices(n, positive, negative)
    pick, i = any_below(sum(choices), source), 0
    while pick >= choices[i]:
        pick, i = pick - choices[i], i + 1
    up = _gaps(random_subset(positive, i, source))
    down = _gaps(random_subset(negative + n - i, n - i, source))
    above = random_subset(n, i, source)
    return [next(up) if entry in above else 1 - next(down) for entry in range(1, n + 1)]


def _gaps(places: list[int]) -> Iterator[int]:
    """Yield the distance of every place from the one before, of the first from 0."""
    return (b - a for a, b in pairwise([0, *places]))
