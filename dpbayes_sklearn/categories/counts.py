r"""Counts of one categorical variable: exact, released, and what noisy ones say about both.

**Mean and variance of the probabilities of categories, and the Dirichlet that has them.**

Given the exact counts x, a probability has the law Beta(:math:`a_i + x_i`, ...). The counts are not
known: what is known is their law given what was released. With :math:`p_i = (a_i + x_i)/(A + n)`,

.. math:: m_i = E[p_i], \qquad
          v_i = E\left[\frac{p_i(1 - p_i)}{A + n + 1}\right] + \mathrm{Var}[p_i],

and Beta(:math:`\kappa_i m_i, \kappa_i(1 - m_i)`) with :math:`\kappa_i = m_i(1 - m_i)/v_i - 1` has
this mean and variance. A Dirichlet has a single precision for all categories: the one for which the
sum of the variances is right. For two categories it is that of both.

**Exact Bayes on the counts of one variable that were released with discrete Laplace noise.**

With prior Dirichlet(:math:`\alpha`), exact counts x that add to the public n and released counts
:math:`y_i = x_i +` noise of scale b,

.. math:: P(x \mid y) \propto \prod_i f_i(x_i), \qquad
          f_i(x) = \frac{\Gamma(\alpha_i + x)}{\Gamma(\alpha_i)\, x!}\, e^{-|y_i - x|/b},

whether the noises are independent or add to zero. So a count has the law :math:`f_i` times the
convolution of all other factors at n minus it. The convolutions are done by Fourier transforms;
for them to be accurate, every factor is first tilted, :math:`f_i(x) e^{-\lambda x}`, such that
the mean of the sum is n: that changes nothing, since the sum is fixed. Where the noise is wide,
counts live on a lattice of a sixteenth of its scale, which adds next to nothing to its variance.

If n is secret, the posterior integrates over it. With a flat prior on n,

.. math:: P(x \mid y) \propto g\big(\textstyle\sum_i x_i\big) \prod_i f_i(x_i), \qquad
          g(n) = \frac{n!\,\Gamma(A)}{\Gamma(A + n)}, \quad A = \sum_i \alpha_i,

so a count has the law :math:`f_i` times the sum of g over all sums of the others. Moments of a
probability follow from the same sums, with g(n) divided by A + n, and by (A + n)(A + n + 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.counts.count_lattice import log_lattice_weight, log_row_weight
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, Marginal, NoiseLaw, ZeroSum
from dpbayes_sklearn.noise.law import laplace_scale, sum_of
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit

# One scale of the noise has this many lattice points, if there are so many integers.
_POINTS_IN_A_SCALE = 16
# The range from 0 to n has this many lattice points, if there are so many integers.
_POINTS_IN_ALL = 1024
_FIRST_REACH = 40.0  # The first windows end this many scales from the released count.
_EDGE_WEIGHT = 1e-10  # A window is widened while its end weighs more than this.
_STEEPEST_TILT = 1e9  # A steeper tilt leaves only the end of a window, whatever the prior.
_MOST_NATS = 12.0  # A sum of counts may weigh this many nats more than the likeliest one.
_TIE = 1e-9  # Halves that differ by less are a tie.
# All categories have this many lattice points, unless that leaves too few in one scale.
_MOST_POINTS = 2**21
_FEWEST_IN_A_SCALE = 2  # So few points in a scale add 2 % to the variance of the noise.
_SPECTRUM = 2**22  # All spectra in memory together have at most this many numbers.


@dataclass(frozen=True)
class SimplexCounts:
    """**Sensitive:** how often each category occurs among n records.

    The number of categories is public. If the sum n is, too, the counts are a point of a simplex.
    """

    counts: IntArray

    @classmethod
    def count(
        cls, codes: npt.NDArray[np.intp], n_categories: int, weights: IntArray | None = None
    ) -> SimplexCounts:
        """Count codes from 0 to ``n_categories`` - 1, each as often as its weight says.

        >>> SimplexCounts.count(np.array([2, 0, 2]), 3).counts
        array([1, 0, 2])
        """
        return cls(np.bincount(codes, weights, n_categories).astype(np.int64))

    @classmethod
    def of_size(cls, n: int, n_categories: int) -> SimplexCounts:
        """Return made-up counts with these public sizes: of n records in the first category."""
        return cls.count(np.zeros(n, np.intp), n_categories)

    @property
    def n(self) -> int:
        """Number of records: public, unless records may be added or removed."""
        return int(self.counts.sum())

    @property
    def n_categories(self) -> int:
        """Number of categories: public."""
        return len(self.counts)

    def sensitivity(self, unit: PrivacyUnit = RECORD, cells: int | None = None) -> int:
        """Return the L1 sensitivity of the first ``cells`` counts.

        A replaced record takes one from a count and adds one to another: 2 in all, but only 1 for
        a single count, and 0 where there is only one category. One that comes or goes changes one
        count by 1.
        """
        return unit.max_records * self._changed(unit, cells)

    def _changed(self, unit: PrivacyUnit, cells: int | None) -> int:
        """Return how many of the first ``cells`` counts one record of a unit changes."""
        if unit.size_is_secret:
            return 1
        movable = self.n_categories if cells is None else cells
        return min(2, movable) if self.n_categories > 1 else 0

    def shifts(self, unit: PrivacyUnit = RECORD) -> dict[tuple[int, int], int]:
        """Return how many released counts change by how much, by (amount, weight 1).

        All records of a person that are alike change the same counts, which has the largest L2
        norm.
        """
        changed = self._changed(unit, self._cells(unit))
        return {(unit.max_records, 1): changed} if changed else {}

    def _cells(self, unit: PrivacyUnit) -> int:
        """Return how many counts a release needs: of two a public sum tells the other."""
        return self.n_categories if self.n_categories > 2 or unit.size_is_secret else 1

    def law(self, noise: str, unit: PrivacyUnit, epsilon: Fraction) -> NoiseLaw:
        """Return the law of the noise to add, from public facts only.

        ``"independent"`` is discrete Laplace noise in every count (of two, only in the first: they
        add to n), ``"all_but_last"`` in all counts but the last, and ``"zero_sum"`` in every count,
        given that it adds to zero. If n is secret, it is always in every count.
        """
        k = self.n_categories
        if unit.size_is_secret:
            return DiscreteLaplace.of(laplace_scale(self.sensitivity(unit), epsilon), [k])
        if noise == "zero_sum":
            return ZeroSum(laplace_scale(self.sensitivity(unit), epsilon), k)
        cells = k - 1 if noise == "all_but_last" else self._cells(unit)
        counted = cells if noise == "all_but_last" else None
        return DiscreteLaplace.of(laplace_scale(self.sensitivity(unit, counted), epsilon), [cells])

    def gaussian_law(
        self, unit: PrivacyUnit, calibrated: Callable[[dict[tuple[int, int], int]], Fraction]
    ) -> DiscreteGaussian:
        """Return Gaussian noise of one variance, which is ``calibrated`` to the shifts."""
        shifts = self.shifts(unit)
        variance = calibrated(shifts) if shifts else Fraction(0)
        return DiscreteGaussian((variance,), (self._cells(unit),))

    def without_noise(self) -> ReleasedSimplex:
        """Return the released form when no privacy is asked for."""
        return ReleasedSimplex.exact(self.counts)


@dataclass(frozen=True)
class ReleasedSimplex:
    """Counts of categories after noise: public, with the public law of the noise, if there is one.

    They are those of all categories, or of all but the last, which the sum ``n`` of the exact
    counts completes; it is None if it is secret.
    """

    counts: IntArray
    n: int | None
    laws: tuple[NoiseLaw, ...] = ()

    @property
    def noise(self) -> Marginal:
        """The distribution of the noise in one count, ignoring that the sum is known."""
        return sum_of([law.marginal() for law in self.laws])

    @classmethod
    def exact(cls, counts: IntArray) -> ReleasedSimplex:
        """Return counts without a noise law: exact ones, or ones selected by a mechanism."""
        return cls(counts, int(counts.sum()))


@dataclass(frozen=True)
class ShareMoments:
    """Mean and variance of every probability, given what was released; means sum to one."""

    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, mean: FloatArray, variance: FloatArray, total: float) -> ShareMoments:
        """Correct rounding; a variance is one that records and pseudo-counts together allow."""
        mean = mean / mean.sum()
        return cls(mean, np.maximum(variance, mean * _of_others(mean) / (total + 1.0)))

    @classmethod
    def given_counts(
        cls, laws: FloatArray, counts: FloatArray | IntArray, n: float, alpha: FloatArray
    ) -> ShareMoments:
        """Return the moments if the sum n is public; ``laws`` has the probability of every count.

        >>> laws, counts = np.array([[0.5, 0.5]]), np.array([[0, 1], [1, 0]])
        >>> ShareMoments.given_counts(laws, counts, 1, np.ones(2)).concentration().tolist()
        [1.0, 1.0]
        """
        total = float(alpha.sum()) + n
        expected = (laws * counts).sum(axis=1)
        spread = (laws * (counts - expected[:, None]) ** 2).sum(axis=1) / total**2
        mean = (alpha + expected) / total
        between = spread * total / (total + 1.0)
        return cls.of(mean, mean * _of_others(mean) / (total + 1.0) + between, total)

    def precisions(self, least: float = 0.0) -> FloatArray:
        """Return the precision of the Beta law of every category on its own."""
        found = self.mean * _of_others(self.mean) / self.variance - 1.0
        return np.maximum(found, least)

    def concentration(self, least: float = 0.0) -> FloatArray:
        """Return the parameters of the Dirichlet, whose precision is not below ``least``."""
        possible = float((self.mean * _of_others(self.mean)).sum())
        return self.mean * max(possible / float(self.variance.sum()) - 1.0, least)


def _of_others(mean: FloatArray) -> FloatArray:
    """Return the sum of all other means (1 minus a mean would lose small sums to rounding)."""
    before, after = np.cumsum(mean[:-1]), np.cumsum(mean[:0:-1])[::-1]
    return np.asarray(np.append(0.0, before) + np.append(after, 0.0))


Spectra = npt.NDArray[np.complex128]


class _GivenSum(NamedTuple):
    """Laws of all counts, in rows that begin at ``low``, in steps of ``step``; n is their sum."""

    laws: FloatArray
    low: IntArray
    step: int
    n: int

    def medians(self) -> FloatArray:
        """Return the median of every count."""
        return np.minimum(self.step * (self.low + _medians(self.laws)), self.n)

    def moments(self, alpha: FloatArray) -> ShareMoments:
        """Return the moments of the probabilities of all categories."""
        counts = self.step * (self.low[:, None] + np.arange(self.laws.shape[1]))
        on_lattice = self.step * round(self.n / self.step)
        return ShareMoments.given_counts(self.laws, counts, on_lattice, alpha)


def counts_given(
    noisy: IntArray, noise: Marginal, n: int | None, alpha: FloatArray
) -> _GivenSum | _FreeCounts:
    """Return the laws of the exact counts: their ``medians()`` and ``moments(alpha)``.

    Exact for scales of the noise below 32; above, to within a sixteenth of the scale. If n is
    public, the last count may be missing: it completes the sum.

    >>> from dpbayes_sklearn.noise.discrete_laplace import LaplaceMarginal
    >>> found = counts_given(np.array([-1, 4, 5]), LaplaceMarginal(2.0), 8, np.ones(3))
    >>> found.medians().tolist(), found.moments(np.ones(3)).mean.round(2).tolist()
    ([0.0, 3.0, 4.0], [0.16, 0.38, 0.46])
    >>> found = counts_given(np.array([-1, 40, 50]), LaplaceMarginal(2.0), None, np.ones(3))
    >>> found.medians().tolist(), found.moments(np.ones(3)).mean.round(2).tolist()
    ([1.0, 40.0, 50.0], [0.03, 0.43, 0.54])
    """
    if n is None:
        return _free_counts(noisy, noise, alpha)
    step = max(1, min(int(noise.sharpness / _POINTS_IN_A_SCALE), n // _POINTS_IN_ALL))
    reach = int(np.ceil(_FIRST_REACH * noise.sharpness / step)) + 1
    while True:  # until the windows are so wide that nothing is outside
        lattice = noisy / step, noise, round(n / step)
        low, high = _windows(lattice[0], lattice[2], len(alpha), reach)
        if low.sum() <= lattice[2] <= high.sum():
            laws = _count_laws(*lattice, alpha, low, high, step)
            if _wide_enough(laws, low, high, lattice[2]):
                return _GivenSum(laws, low, step, n)
        if 8 * reach * len(alpha) <= _MOST_POINTS:
            reach *= 4
        else:  # a prior that outweighs the noise: wider windows need coarser lattices
            step *= 4


def _free_counts(noisy: IntArray, noise: Marginal, alpha: FloatArray) -> _FreeCounts:
    """Return what the laws of all counts are made of, if their sum is secret."""
    most, total = int(max(noisy.max(), 0)), max(float(noisy.sum()), 1.0)
    step = max(1, min(int(noise.sharpness / _POINTS_IN_A_SCALE), most // _POINTS_IN_ALL))
    step = max(step, _least_step(noise.sharpness, len(alpha)))
    reach = int(np.ceil(_FIRST_REACH * noise.sharpness / step)) + 1
    centres = np.maximum(np.rint(noisy / step), 0).astype(np.int64)
    low = np.maximum(centres - reach, 0)
    x = low[:, None] + np.arange(2 * reach + 1)
    pairs = zip(alpha, x, strict=True)
    logs = np.stack([log_lattice_weight(float(a), row, float(step)) for a, row in pairs])
    logs += noise.log_weight(noisy[:, None] - float(step) * x)
    # a strong prior's slope is taken off the factors and given to g
    tilt = step * float(np.log((alpha.sum() + total) / (1.0 + total)))
    factors = np.exp(logs - tilt * x - (logs - tilt * x).max(axis=1, keepdims=True))
    factors /= factors.sum(axis=1, keepdims=True)
    return _given_weights(factors, alpha, low, step, tilt)


class _FreeCounts(NamedTuple):
    """Independent counts whose sum has a weight."""

    factors: FloatArray  # of every count, in rows that begin at ``low``
    low: IntArray
    step: int
    sums: IntArray  # all of them that are told apart
    weights: FloatArray  # and their weights

    def laws(self, divisor: float | FloatArray = 1.0) -> FloatArray:
        """Return the weights of every count, if those of the sums are divided."""
        length, width = len(self.sums), self.factors.shape[1]
        weigh, laws = rfft(self.weights / divisor, length), self.factors.copy()
        for some, others in _products_of_others(self.factors, length):
            laws[some] *= np.maximum(irfft(np.conj(others) * weigh, length)[:, :width], 0.0)
        nothing = ~(laws.sum(axis=1) > 0.0)  # is left of the others by a transform
        usual = (self.weights / divisor).sum() / self.weights.sum()
        laws[nothing] = self.factors[nothing] * usual
        return laws

    def medians(self) -> FloatArray:
        """Return the median of every count."""
        laws = self.laws()
        return self.step * (self.low + _medians(laws / laws.sum(axis=1, keepdims=True)))

    def moments(self, alpha: FloatArray) -> ShareMoments:
        """Return the moments of (a + x) / total, and of the Beta law around it."""
        total: FloatArray = float(alpha.sum()) + float(self.step) * self.sums.astype(np.float64)
        places = self.low[:, None] + np.arange(self.factors.shape[1])
        ones = alpha[:, None] + float(self.step) * places
        mass = self.laws().sum(axis=1)
        mean = (self.laws(total) * ones).sum(axis=1) / mass
        second = (self.laws(total * (total + 1.0)) * ones * (ones + 1.0)).sum(axis=1) / mass
        size = 1.0 / float((self.laws(total).sum(axis=1) / mass).mean())
        return ShareMoments.of(mean, second - mean**2, size)


def _least_step(sharpness: float, n_categories: int) -> int:
    """Return a step with which memory does not grow with the noise."""
    points = 2.0 * _FIRST_REACH * sharpness * n_categories
    return int(min(math.ceil(points / _MOST_POINTS), sharpness / _FEWEST_IN_A_SCALE))


def _given_weights(
    factors: FloatArray, alpha: FloatArray, low: IntArray, step: int, tilt: float
) -> _FreeCounts:
    """Return counts that are independent but for a sum of n, which weighs exp(tilt n) g(n)."""
    x, length = np.arange(factors.shape[1]), _cycle(factors)
    around = int((factors @ x).sum()) - length // 2
    place = (np.arange(length) - around) % length + around  # of all sums the one near the mean
    sums = int(low.sum()) + np.maximum(place, 0)
    first, last = int(sums.min()), int(sums.max())
    log_g = -log_row_weight(tuple(alpha.tolist()), first, last, float(step))[sums - first]
    log_g += tilt * sums
    log_g -= log_g[np.abs(place - around - length // 2).argmin()]
    # so far from the mean there is nothing to weigh, but a rounding error would grow
    weights = np.exp(np.minimum(log_g, _MOST_NATS))
    return _FreeCounts(factors, low, step, sums, weights)


def _cycle(factors: FloatArray) -> int:
    """Return how many sums to tell apart; sums further away come round, but they hold nothing."""
    n_parts, width = factors.shape
    x = np.arange(width)
    variance = float((factors @ x**2 - (factors @ x) ** 2).sum())
    length = min(n_parts * width, 2 * width + int(40 * np.sqrt(max(variance, 0.0))))
    return int(next_fast_len(length, real=True))


def _windows(noisy: FloatArray, n: int, n_categories: int, reach: int) -> tuple[IntArray, IntArray]:
    """Return the first and last count of each window; an unreleased category completes the sum."""
    centres = np.clip(np.rint(noisy), 0, n).astype(np.int64)
    reaches = np.full(n_categories, reach)
    if len(centres) < n_categories:
        centres = np.append(centres, np.clip(n - centres.sum(), 0, n))
        reaches[-1] *= int(np.ceil(np.sqrt(n_categories)))
    return np.maximum(centres - reaches, 0), np.minimum(centres + reaches, n)


def _wide_enough(laws: FloatArray, low: IntArray, high: IntArray, n: int) -> bool:
    negligible = _EDGE_WEIGHT * laws.max(axis=1)
    ends = laws[np.arange(len(laws)), high - low]
    return bool(
        (((low == 0) | (laws[:, 0] < negligible)) & ((high == n) | (ends < negligible))).all()
    )


def _count_laws(
    noisy: FloatArray,
    noise: Marginal,
    n: int,
    alpha: FloatArray,
    low: IntArray,
    high: IntArray,
    step: int,
) -> FloatArray:
    """Law of every count given the sum n, in rows that begin at ``low``."""
    x = low[:, None] + np.arange((high - low).max() + 1)
    pairs = zip(alpha, x, strict=True)
    logs = np.stack([log_lattice_weight(float(a), row, float(step)) for a, row in pairs])
    logs[: len(noisy)] += noise.log_weight(step * (noisy[:, None] - x[: len(noisy)]))
    logs[x > high[:, None]] = -np.inf
    total = int(n - low.sum())
    return _given_sum(_tilted(logs, total), total)


def _tilted(logs: FloatArray, total: int) -> FloatArray:
    """Laws proportional to factor * exp(-tilt x) whose means add to ``total``."""
    x = np.arange(logs.shape[1])

    def laws(tilt: float) -> FloatArray:
        tilted = logs - tilt * x
        weights = np.exp(tilted - tilted.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def excess(tilt: float) -> float:
        return float((laws(tilt) @ x).sum()) - total

    bound = 1.0 / logs.shape[1]
    while bound < _STEEPEST_TILT and excess(-bound) * excess(bound) > 0:
        bound *= 2.0
    if excess(-bound) * excess(bound) > 0:  # the sum is at an end of what the windows allow
        return laws(bound if excess(bound) > 0 else -bound)
    return laws(float(brentq(excess, -bound, bound, xtol=1e-6 / logs.shape[1])))


def _given_sum(factors: FloatArray, total: int) -> FloatArray:
    """Law of every part of a sum of independent parts, given that the sum is ``total``."""
    x, length = np.arange(factors.shape[1]), _cycle(factors)
    laws = factors.copy()
    for some, others in _products_of_others(factors, length):
        laws[some] *= np.maximum(irfft(others, length)[:, (total - x) % length], 0.0)
    nothing = ~(laws.sum(axis=1) > 0.0)  # is left of the others by a transform
    laws[nothing] = factors[nothing]
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def _products_of_others(factors: FloatArray, length: int) -> Iterator[tuple[slice, Spectra]]:
    """Yield some rows at a time and, for each of them, the product of all other rows' spectra.

    Spectra are much longer than rows: those of many rows are not held in memory together.
    """
    size = max(1, _SPECTRUM // length, math.isqrt(len(factors)))
    groups = [slice(first, first + size) for first in range(0, len(factors), size)]
    if len(groups) == 1:
        yield groups[0], _without_own(rfft(factors, length))
        return
    outside = _without_own(np.stack([np.prod(rfft(factors[g], length), axis=0) for g in groups]))
    for group, rest in zip(groups, outside, strict=True):
        yield group, _without_own(rfft(factors[group], length)) * rest


def _without_own(spectra: Spectra) -> Spectra:
    """For every row the product of all other rows, by halving: k log k products."""
    others = np.ones_like(spectra)

    def descend(first: int, last: int) -> None:
        middle = (first + last) // 2
        if middle == first:
            return
        left, right = slice(first, middle), slice(middle, last)
        others[left] *= np.prod(spectra[right], axis=0)
        others[right] *= np.prod(spectra[left], axis=0)
        descend(first, middle)
        descend(middle, last)

    descend(0, len(spectra))
    return others


def _medians(laws: FloatArray) -> FloatArray:
    """Middle of the integers that have half of the mass on either side: lower and upper median."""
    cumulative = np.cumsum(laws, axis=1)
    lower = (cumulative < 0.5 - _TIE).sum(axis=1)
    upper = (cumulative < 0.5 + _TIE).sum(axis=1)
    return np.asarray((lower + upper) / 2.0)
