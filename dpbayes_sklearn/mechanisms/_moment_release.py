r"""Release of moments: shares of the budget, noise, and the window of the target.

Every choice here is made from the number of records, the columns' domains, epsilon, and what was
already released: never from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.noise import add
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.gaussian import GaussianPosterior
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.statistics.design import Design
from dpbayes_sklearn.statistics.moment_blocks import (
    Block,
    cross_block,
    first_block,
    second_block,
    target_block,
)
from dpbayes_sklearn.statistics.moments import (
    WHOLE,
    Moments,
    ReleasedMoments,
    Window,
    largest_grid,
)

__all__ = [
    "NoisyTarget",
    "PublicMoments",
    "Shares",
    "add_noise",
    "calibrated",
    "grid_for",
    "noisy_moments",
    "noisy_target",
    "three_blocks",
]


_TARGET_RECORDS = 200  # the target's own sums get the budget that so many records are worth
_RESIDUAL_RECORDS = 100  # likewise for the residuals
_MOST_RESIDUALS = 20_000  # times 1/epsilon: more residuals say nothing new
_RESIDUALS_AT = 3.5  # standard deviations at which residuals are clipped
_DOUBT = 0.5  # prior standard deviation of the factor that residuals estimate
_CLIP_AT = 2.5  # standard deviations of the target that the window reaches
_CLIP_BIAS = 0.1  # share of the variance that clipping may hide
_GUESS = 0.1  # variance of a target whose bounds are as wide as usual


class Shares(NamedTuple):
    """Exact parts of epsilon, in the order in which they are spent; they add up to it."""

    target: Fraction
    model: Fraction
    residuals: Fraction

    @property
    def epsilon(self) -> Fraction:
        """Return all parts together."""
        return self.target + self.model + self.residuals

    @classmethod
    def of(cls, budget: Budget, n: int, *, target: bool, residuals: bool) -> Shares:
        """Share the budget between the target's own sums, the model, and its residuals.

        The first and last parts shrink with n epsilon, to a twentieth each, since a few hundred
        records suffice to locate the target and to estimate the error of the model.

        >>> Shares.of(Budget(Fraction(1)), 500, target=True, residuals=True)
        Shares(target=Fraction(2, 5), model=Fraction(1, 2), residuals=Fraction(1, 10))
        """
        epsilon = Fraction(budget.epsilon)
        records = n * epsilon
        first = _within(_TARGET_RECORDS / records, 20, 2) * target
        last = _within(_RESIDUAL_RECORDS / records, 20, 10) * residuals
        return cls(first * epsilon, (1 - first - last) * epsilon, last * epsilon)


def _within(share: Fraction, least: int, most: int) -> Fraction:
    """Return the share, at least 1/least and at most 1/most."""
    return min(max(share, Fraction(1, least)), Fraction(1, most))


def grid_for(design: Design, n: int, epsilon: Fraction) -> int:
    """Return the finest grid on which noise for the smallest share of epsilon is exact."""
    entries = (design.width + 2) ** 2
    return largest_grid(n, 100 * entries / float(epsilon))


def add_noise(
    sums: IntArray, block: Block, grid: int, epsilon: Fraction, source: RandomSource
) -> tuple[FloatArray, FloatArray]:
    r"""Return the block's sums plus noise, and the variance of the noise in every entry.

    The law is Laplace's, :math:`P(z) \propto e^{-\varepsilon\|z\|/\Delta}`, in the norm that suits
    the block: L1, if one record changes few entries at a time (independent noise), or the sup
    norm, if it can change all of them at once.
    """
    law, unit = block.law(epsilon, grid), grid**2
    (noisy,) = add([sums], law, source)
    return noisy / unit, law.variances / unit**2


def widening(n_epsilon: float) -> float:
    """Return how much farther to clip with more data, so that the bias vanishes."""
    return float(max(1.0, n_epsilon / 5000) ** 0.25)


class NoisyTarget(NamedTuple):
    """The released sums of the target: mean and mean square, and the variance of their noise."""

    mean: float
    square: float
    noise: float

    @property
    def variance(self) -> float:
        """Return the variance, averaged with a public guess by inverse variance."""
        error = self.noise * (1 + 4 * self.mean**2)
        guessed = (self.square - self.mean**2) / error + 1 / _GUESS
        return float(np.clip(guessed / (1 / error + 1 / _GUESS**2), 1e-3, 1.0))

    def window(self, n_epsilon: float, intercept: bool) -> Window:
        """Return where to clip the target; without an intercept it must not be shifted."""
        reach = _CLIP_AT * widening(n_epsilon)
        if not intercept:
            end = min(1.0, reach * float(np.sqrt(max(self.square, self.variance))))
            return Window(-end, end, 0.0)
        end = reach * float(np.sqrt(self.variance))
        return Window(max(-1.0, self.mean - end), min(1.0, self.mean + end), self.mean)

    def in_window(self, window: Window) -> tuple[FloatArray, FloatArray]:
        """Return mean and mean square of t = (y - centre)/half, and their noise variances."""
        c, h = window.centre, window.half
        values = [(self.mean - c) / h, (self.square - 2 * c * self.mean + c * c) / h**2]
        return np.array(values), self.noise * np.array([1 / h**2, (1 + 4 * c * c) / h**4])


def noisy_target(
    statistics: Moments, grid: int, epsilon: Fraction, source: RandomSource
) -> NoisyTarget:
    """Release mean and mean square of the target."""
    block, n = target_block(statistics.design.width), statistics.n
    sums, variance = add_noise(statistics.target_sums(grid), block, grid, epsilon, source)
    mean, square = float(np.clip(sums[0] / n, -1, 1)), float(sums[1] / n)
    return NoisyTarget(mean, square, float(variance.max()) / n**2)


def noisy_moments(
    statistics: Moments,
    shares: Shares,
    plan: Sequence[tuple[Block, Fraction]],
    source: RandomSource,
) -> tuple[PublicMoments, Window]:
    """Release where the target lies, clip it there, then release the blocks of the plan.

    The plan gives every block its part of ``shares.model``.
    """
    design, n = statistics.design, statistics.n
    grid = grid_for(design, n, shares.epsilon)
    target = noisy_target(statistics, grid, shares.target, source)
    window = target.window(n * float(shares.epsilon), design.intercept)
    exact = statistics.gram(grid, window)
    noisy = PublicMoments.of(design, n)
    for block, part in plan:
        sums = exact[block.rows, block.columns]
        noisy.put(block, *add_noise(sums, block, grid, part * shares.model, source))
    noisy.average_target(*target.in_window(window))
    return noisy, window


Posterior = TypeVar("Posterior", bound=GaussianPosterior)


def calibrated(
    posterior: Posterior, statistics: Moments, shares: Shares, source: RandomSource
) -> Posterior:
    """Release the mean squared standardised residual, and correct the variances by it.

    Standardised residuals are clipped at 3.5, or more with more data. Their mean square, which
    should be 1, becomes the factor of all variances. Of very many records only each k-th counts.
    """
    if not shares.residuals:
        return posterior
    n, grid = statistics.n, grid_for(statistics.design, statistics.n, shares.epsilon)
    every = max(1, int(n * shares.epsilon / _MOST_RESIDUALS))
    reach = _RESIDUALS_AT * widening(n * float(shares.epsilon) / every)
    total, rows = statistics.squared_residuals(posterior.as_predictive(reach), grid, every)
    alone = Block(np.zeros(1, np.intp), np.zeros(1, np.intp), Fraction(1), np.ones(1, np.int64))
    sums, noise = add_noise(np.array([total]), alone, grid, shares.residuals, source)
    seen, error = reach**2 * float(sums[0]) / rows, reach**4 * float(noise[0]) / rows**2
    believed = (seen * _DOUBT**2 + error) / (_DOUBT**2 + error)
    left = error * _DOUBT**2 / (_DOUBT**2 + error)
    # intervals lose more where a variance is too small than they gain where it is too large
    return posterior.scaled(max(believed, 0.01) + left)


def three_blocks(design: Design) -> list[tuple[Block, Fraction]]:
    """Weigh means, products with the target and other products as 3 : 9 : 8; leave out empty ones.

    >>> sum(part for _, part in three_blocks(Design(())))
    Fraction(1, 1)
    """
    blocks = ((first_block(design), 3), (cross_block(design), 9), (second_block(design), 8))
    weighed = [(block, weight) for block, weight in blocks if len(block)]
    whole = sum(weight for _, weight in weighed)
    return [(block, Fraction(weight, whole)) for block, weight in weighed]


class PublicMoments(NamedTuple):
    """Moments of which only the public entries are known, to be filled with noisy ones."""

    design: Design
    n: int
    gram: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, design: Design, n: int) -> PublicMoments:
        """Return the entries that need no release: n for the constant and for squares of signs."""
        size = design.width + 2
        gram = np.zeros((size, size))
        gram[0, 0] = n
        signs = 1 + np.flatnonzero(design.signs)
        gram[signs, signs] = n
        return cls(design, n, gram, np.zeros((size, size)))

    def put(self, block: Block, sums: FloatArray, variance: FloatArray) -> None:
        """Fill a block and its mirror image."""
        for matrix, values in ((self.gram, sums), (self.variance, variance)):
            matrix[block.rows, block.columns] = values
            matrix[block.columns, block.rows] = values

    def average_target(self, means: FloatArray, errors: FloatArray) -> None:
        """Average the target's two entries with what was released before, by inverse variance.

        Clipping may have hidden a part of the variance in the window.
        """
        for row, value, error in zip((0, -1), means * self.n, errors * self.n**2, strict=True):
            mine, own = self.gram[row, -1], self.variance[row, -1]
            if own == 0:  # an epsilon so large that there is no noise
                continue
            if row == -1:
                own = own + (_CLIP_BIAS * mine) ** 2
            average = (mine / own + value / error) / (1 / own + 1 / error)
            self.gram[row, -1] = self.gram[-1, row] = average
            self.variance[row, -1] = self.variance[-1, row] = 1 / (1 / own + 1 / error)

    def released(self, window: Window = WHOLE, increment: float = 0.0) -> ReleasedMoments:
        """Return the filled moments; squares of levels are their sums."""
        levels = 1 + np.flatnonzero(self.design.levels)
        self.gram[levels, levels] = self.gram[0, levels]
        self.variance[levels, levels] = self.variance[0, levels]
        raised = self.gram + increment * np.eye(len(self.gram))
        return ReleasedMoments(self.design, self.n, raised, self.variance, window, increment)
