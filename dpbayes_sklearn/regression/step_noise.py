"""How the steps of a regression share the budget, by public facts alone, and the noise of each."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.privacy.budget import RECORD, Budget, PrivacyUnit
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.moments import (
    Block,
    Moments,
    counting_missing,
    distance_block,
    largest_grid,
)
from dpbayes_sklearn.regression.record_sums import RADII
from dpbayes_sklearn.release import drawn_sample

_TARGET_RECORDS = 150  # The target's location gets what this many records are worth.
_MEAN_RECORDS = 80  # The target's mean in its window gets what this many records are worth.
_FEW_RECORDS = 40  # With fewer records there is only the target's mean to learn.
_COLUMN_RECORDS = 60  # The location of a number gets what this many records are worth.
_LEAST_RECORDS = 350  # With fewer for each number, locating them costs more than it gives.
# Their common scale gets what this many records are worth, if there are so many for all together.
_COMMON_RECORDS, _LEAST_COMMON = 100, 1500
_SIGN_RECORDS = 5  # The mean of a sign, which may be rough, gets what this many are worth.
_LEAST_SIGN_RECORDS = 50  # With fewer for each sign, signs are not centred.
_LEAST_OF_SIGNS = 10_000  # Signs get at least one part in this many: grids are made for that.
_RESIDUAL_RECORDS = 50  # Residuals get what this many records are worth.
_WEIGHTED_RECORDS = 50  # Each sum of weighted residuals gets what this many are worth.
_LEAST_WEIGHTED_RECORDS = 1000  # With fewer for each such sum its noise exceeds its error.
_MOST_WEIGHTED_CELLS = 2**23  # At most this many records times sums are asked for.
# Correlations get what this many records are worth, times their sensitivity, if that is at most one
# part in so many.
_PAIR_RECORDS, _LEAST_PAIRS = 40, 20
# Mean and spread of residuals get at least this part of the model's share.
_SPREAD = Fraction(1, 16)

# A share of rho shrinks noise with its root only, so these are records over the noise of a release
# of sensitivity 1, n sqrt(2 rho), and what a step needs is the square of their ratio.
_GAUSSIAN_TARGET, _GAUSSIAN_MEAN, _GAUSSIAN_COLUMN, _GAUSSIAN_RESIDUAL = 100, 60, 60, 200
# The same for locating numbers, for centring signs, and for weighted residuals.
_GAUSSIAN_LEAST = 250
_GAUSSIAN_COMMON, _GAUSSIAN_LEAST_COMMON = 100, 400
_GAUSSIAN_SIGN, _GAUSSIAN_LEAST_SIGN = 13, 60
_GAUSSIAN_WEIGHTED, _GAUSSIAN_LEAST_WEIGHTED = 170, 600
_GAUSSIAN_PAIR = 55


class _TwoStages(NamedTuple):
    """What the steps of two stages get."""

    first: Fraction  # Part of the model's share that the first stage has, up to five columns.
    most: Fraction  # The same from eleven columns on: the matrix of a second stage grows.
    # spread, tail: Mean and spread of residuals, and what clipping takes of them, get what so many
    # records are worth.
    spread: int
    tail: int
    tail_from: int  # With fewer records the tail gets less: noise would hide it.


_PURE = _TwoStages(Fraction(1, 3), Fraction(2, 3), 100, 600, 9600)
_GAUSSIAN = _TwoStages(Fraction(1, 5), Fraction(1, 5), 100**2, 600**2, 1000**2)


class Shares(NamedTuple):
    """Exact parts of the budget, in the order in which they are spent; they add up to it."""

    # target, columns, signs, mean, model, residuals: Parts of epsilon, or of rho if the noise is
    # Gaussian. In two stages ``mean`` is for what clipping takes of the residuals.
    target: Fraction
    columns: Fraction
    signs: Fraction
    mean: Fraction
    model: Fraction
    residuals: Fraction
    epsilon: Fraction  # The epsilon of all together.
    gaussian: bool = False
    unit: PrivacyUnit = RECORD  # Who is protected.
    # Likewise, for mean and spread of the residuals of a first stage.
    spread: Fraction = Fraction(0)
    # Likewise, for a first stage: a perturbed mode, or moments with Gaussian noise.
    first: Fraction = Fraction(0)
    # Like the first six, for squared residuals weighted by the squares of the coordinates.
    uneven: Fraction = Fraction(0)
    common: bool = False  # Whether ``columns`` is for one scale that all numbers have in common.
    pairs: Fraction = Fraction(0)  # Likewise, for the correlations of numbers.

    @property
    def per_record(self) -> Fraction:
        """Return the epsilon of one replaced record that needs as much noise."""
        return Fraction(self.unit.equivalent(self.epsilon))

    @property
    def total(self) -> Fraction:
        """Return all parts together: epsilon, or rho."""
        return sum(self[:6], self.spread + self.first + self.uneven + self.pairs)

    def step(self, block: Block) -> ReleaseStep:
        """Return sums as they are released: with pure or with Gaussian noise."""
        own = block.protecting(self.unit)
        return own.gaussian() if self.gaussian else own

    def in_two_stages(self, n: int, columns: int) -> Shares:
        """Return shares with a first stage, taken from the model's.

        >>> parts = Shares.of(Budget(Fraction(1)), 20_000, 1, residuals=True)
        >>> parts = parts.in_two_stages(20_000, 1)
        >>> round(float(parts.first), 3), round(float(parts.model), 3), parts.total
        (0.29, 0.525, Fraction(1, 1))
        """
        needs, records = _PURE, n * self.per_record
        if self.gaussian:
            needs, records = _GAUSSIAN, gaussian_records(self.total, n, self.unit)
        many = Fraction(min(max(columns, 5), 11) - 5, 6)
        first = self.model * (needs.first + many * (needs.most - needs.first))
        tail = _within(needs.tail / records, 50, 16) * min(Fraction(1), records / needs.tail_from)
        tail *= self.total * bool(self.mean)
        rest = self.model + self.mean - tail - first
        least = _within(needs.spread / records, 100, 8) * self.total
        spread = min(max(rest * _SPREAD, least), rest / 2)
        return self._replace(mean=tail, model=rest - spread, spread=spread, first=first)

    def with_pairs(self, n: int, sensitivity: Fraction) -> Shares:
        """Return shares with one for products of two numbers, taken from the model's.

        Together the products have this L1 sensitivity; without it, or if rough correlations need
        more than a twentieth, there is none. The numbers must have been located.
        """
        records, needed = n * self.per_record, _PAIR_RECORDS * sensitivity
        if self.gaussian:
            records = gaussian_records(self.total, n, self.unit)
            needed = _GAUSSIAN_PAIR**2 * sensitivity
        if not 0 < _LEAST_PAIRS * needed <= records or not self.columns or self.common:
            return self
        pairs = _within(needed / records, 200, _LEAST_PAIRS) * self.total
        return self._replace(model=self.model - pairs, pairs=pairs)

    def of_places(self, n: int, columns: int) -> Fraction:
        """Return the part that it takes to tell how far so many columns vary."""
        if self.gaussian:
            records = gaussian_records(self.total, n, self.unit)
            return self.total * _within(_GAUSSIAN_COLUMN**2 * columns / records, 200, 10)
        return self.total * _within(_COLUMN_RECORDS * columns / (n * self.per_record), 200, 10)

    def grid(self, design: Design, n: int) -> int:
        """Return the finest grid on which all noise is exact."""
        k = self.unit.max_records
        if self.gaussian:
            return gaussian_grid(design, n, self.total / k**2)
        return grid_for(design, n, self.total / k)

    @classmethod
    def of(
        cls,
        budget: Budget,
        n: int,
        numbers: int,
        signs: int = 0,
        *,
        mean: bool = True,
        residuals: bool,
        weighted: int = 0,
    ) -> Shares:
        """Share the budget: to locate the columns, for the target's mean, model, residuals.

        All parts but the model's shrink with n epsilon, since a few hundred records suffice to
        locate a column and to estimate the error of the model. Numbers are located if there are
        350 records, times epsilon, for each; if not, but 1,500 in all, they have one common scale.
        Signs are located if there are 50 for each. With less than about a
        hundred in all, most of the budget is spent on the mean of the target. The ``weighted`` sums
        of residuals are asked for if there are 1,000 for each.

        >>> parts = Shares.of(Budget(Fraction(1)), 1000, 1, residuals=True)
        >>> [str(part) for part in parts[:6]]
        ['3/20', '3/50', '0', '2/25', '33/50', '1/20']
        """
        epsilon = Fraction(budget.epsilon)
        records = n * Fraction(budget.unit.equivalent(epsilon))
        first = _within(_TARGET_RECORDS / records, 25, 3)
        own = _within(_MEAN_RECORDS / records, 100, 12)
        own = max(own, min((_FEW_RECORDS / records) ** 2, Fraction(1, 2))) * mean
        pays = 0 < _LEAST_RECORDS * numbers <= records
        second = _within(_COLUMN_RECORDS * numbers / records, 20, 4) * pays
        common = numbers > 0 and not pays and records >= _LEAST_COMMON
        second += _within(_COMMON_RECORDS / records, 100, 10) * common
        centred = 0 < _LEAST_SIGN_RECORDS * signs <= records
        third = _within(_SIGN_RECORDS * signs / records, _LEAST_OF_SIGNS, 10) * centred
        last = _within(_RESIDUAL_RECORDS / records, 33, 20) * residuals
        asked = records * weighted_rows(n, weighted) / n
        known = 0 < _LEAST_WEIGHTED_RECORDS * weighted <= asked
        uneven = _within(_WEIGHTED_RECORDS * weighted / asked, 50, 20) * known
        rest = 1 - first - second - third - own - last - uneven
        first, second, third, own, rest, last, uneven = (
            epsilon * f for f in (first, second, third, own, rest, last, uneven)
        )
        parts = (first, second, third, own, rest, last)
        return cls(*parts, epsilon, False, budget.unit, uneven=uneven, common=common)

    @classmethod
    def of_rho(
        cls,
        rho: Fraction,
        budget: Budget,
        n: int,
        numbers: int,
        signs: int = 0,
        *,
        mean: bool = True,
        residuals: bool,
        weighted: int = 0,
    ) -> Shares:
        """Share rho among the same steps with Gaussian noise.

        >>> parts = Shares.of_rho(Fraction(1, 32), Budget(Fraction(1)), 2000, 1, residuals=True)
        >>> [str(part * 32) for part in parts[:6]], parts.total
        (['1/25', '1/50', '0', '9/625', '516/625', '1/10'], Fraction(1, 32))
        """
        records = gaussian_records(rho, n, budget.unit)
        first = _within(_GAUSSIAN_TARGET**2 / records, 100, 4)
        own = _within(_GAUSSIAN_MEAN**2 / records, 200, 12) * mean
        pays = 0 < _GAUSSIAN_LEAST**2 * numbers <= records
        second = _within(_GAUSSIAN_COLUMN**2 * numbers / records, 50, 4) * pays
        common = numbers > 0 and not pays and records >= _GAUSSIAN_LEAST_COMMON**2
        second += _within(_GAUSSIAN_COMMON**2 / records, 100, 10) * common
        centred = 0 < _GAUSSIAN_LEAST_SIGN**2 * signs <= records
        third = _within(_GAUSSIAN_SIGN**2 * signs / records, _LEAST_OF_SIGNS, 21) * centred
        last = _within(_GAUSSIAN_RESIDUAL**2 / records, 100, 10) * residuals
        asked = records * Fraction(weighted_rows(n, weighted), n) ** 2
        known = 0 < _GAUSSIAN_LEAST_WEIGHTED**2 * weighted <= asked
        uneven = _within(_GAUSSIAN_WEIGHTED**2 * weighted / asked, 50, 12) * known
        rest, epsilon = 1 - first - second - third - own - last - uneven, Fraction(budget.epsilon)
        first, second, third, own, rest, last, uneven = (
            rho * f for f in (first, second, third, own, rest, last, uneven)
        )
        parts = (first, second, third, own, rest, last)
        return cls(*parts, epsilon, True, budget.unit, uneven=uneven, common=common)


def gaussian_records(rho: Fraction, n: int, unit: PrivacyUnit) -> Fraction:
    r"""Return :math:`(n\sigma^{-1})^2` of noise for a sensitivity of 1: :math:`2\rho n^2`."""
    return 2 * rho * n**2 / unit.max_records**2


def _within(share: Fraction, least: int, most: int) -> Fraction:
    """Return the share, at least 1/least and at most 1/most."""
    return min(max(share, Fraction(1, least)), Fraction(1, most))


def weighted_rows(n: int, sums: int) -> int:
    """Return how many records weighted residuals are computed for: few enough to be quick."""
    return max(1, min(n, _MOST_WEIGHTED_CELLS // max(sums, 1)))


class ReleaseStep(Protocol):
    """Sums that are released together and know the noise that they need."""

    def law(self, share: Fraction, grid: int, /) -> NoiseLaw:
        """Return the law for a share of epsilon, or of rho, on sums in units of 1/grid²."""


def grid_for(design: Design, n: int, epsilon: Fraction) -> int:
    """Return the finest grid on which noise for the smallest share of epsilon is exact."""
    entries = (design.width + 2) ** 2
    return largest_grid(n, 100 * entries / float(epsilon))


def gaussian_grid(design: Design, n: int, rho: Fraction) -> int:
    """Return the finest grid on which Gaussian noise for the smallest share of rho is exact.

    No deviation of any step exceeds 200 times the number of coordinates over sqrt(2 rho), and the
    sampler needs it to be below 2**40, a thousandth of what Laplace noise may be.
    """
    if not rho:
        raise ValueError("epsilon and delta are too small for any noise that can be drawn.")
    return largest_grid(n, 1024 * 200 * (design.width + 2) / math.sqrt(2 * rho))


def add_noise(
    sums: IntArray, step: ReleaseStep, grid: int, share: Fraction, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    r"""Return sums plus noise, and the variance of the noise in every entry.

    The law is the step's own: :math:`P(z) \propto e^{-\varepsilon\|z\|/\Delta}` in the L1 norm, if
    one record changes few entries at a time (independent noise), in the sup norm, if it can change
    all of them at once, or matrix noise; or it is Gaussian, and the share one of rho.
    """
    law, unit = step.law(share, grid), grid**2
    groups = np.split(sums, np.cumsum(law.sizes)[:-1])
    noisy = np.concatenate(noise.add(groups, law))
    return noisy / unit, law.variances / unit**2


def widening(n_epsilon: float, from_records: float = 5000) -> float:
    """Return how much farther to clip with more data: less is cut off, but never nothing."""
    return float(max(1.0, n_epsilon / from_records) ** 0.25)


_ENOUGH_RECORDS = 100_000  # More records than this over epsilon say nothing new about a location.
_LEAST_SAMPLE = 10_000  # A sample has at least this many records.
_ANYWHERE = 1 / 3  # Variance of a place within [-1, 1] of which nothing is known.
# A number of missing targets below this many standard deviations of its noise counts as none.
_MISSING_DEVIATIONS = 3.0


def sampled(statistics: Moments, shares: Shares, noise: Noise) -> Moments:
    """Return the same questions, about a random sample if there are more records than needed."""
    n = statistics.n
    every = max(1, min(int(n * shares.per_record / _ENOUGH_RECORDS), n // _LEAST_SAMPLE))
    return statistics.about(drawn_sample(n, every, statistics.unit, noise))


class NoisyLocation:
    """Releases noisy means and shares of some records."""

    def __init__(self, rows: int, grid: int, shares: Shares, noise: Noise) -> None:
        self.rows, self._grid, self._shares, self._noise = float(rows), grid, shares, noise
        self.missing: int | None = None  # Records without a target, if the first step counts them.

    def means(
        self, sums: IntArray, block: Block, share: Fraction, prior: float = _ANYWHERE
    ) -> tuple[FloatArray, FloatArray]:
        """Release means, and return them and their standard deviations.

        They are averaged with a prior of mean 0 and this variance: unless it is given, that of
        any place within the bounds.
        """
        noisy, noise = self._noisy(sums, block, share)
        variance = noise / self.rows**2
        kept = prior / (prior + variance)
        return kept * np.clip(noisy / self.rows, -1.0, 1.0), np.sqrt(kept * variance)

    def distance_shares(
        self, counts: IntArray, columns: int, share: Fraction
    ) -> tuple[FloatArray, float]:
        """Release the share of records at each distance, and return the variance of their noise."""
        sums = counts.ravel() * self._grid**2
        noisy, variance = self._noisy(sums, distance_block(columns, len(RADII)), share)
        return noisy.reshape(counts.shape) / self.rows, float(variance.max()) / self.rows**2

    def mean_products(
        self, sums: IntArray, block: Block, share: Fraction
    ) -> tuple[FloatArray, FloatArray]:
        """Release means of products, and return them and the variances of their noise."""
        noisy, variance = self._noisy(sums, block, share)
        return noisy / self.rows, variance / self.rows**2

    def _noisy(
        self, sums: IntArray, block: Block, share: Fraction
    ) -> tuple[FloatArray, FloatArray]:
        missing, self.missing = self.missing, None
        if missing is None:
            step = self._shares.step(block)
            return add_noise(sums, step, self._grid, share, self._noise)
        step, both = self._shares.step(counting_missing(block)), (sums, [missing * self._grid**2])
        noisy, variance = add_noise(np.concatenate(both), step, self._grid, share, self._noise)
        error = float(np.sqrt(variance[-1]))
        if noisy[-1] > _MISSING_DEVIATIONS * error:
            self.rows = max(self.rows - float(noisy[-1]), error, 1.0)
        return noisy[:-1], variance[:-1]
