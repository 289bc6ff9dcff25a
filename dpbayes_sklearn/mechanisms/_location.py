r"""Where target and columns lie: the first releases of a regression.

1. The sums of the target and of the numbers; a record changes each by at most 2.
2. Counts of shells around the released means; a record changes two counts of a column.
3. The sums of the signs, at which they are centred.

They become windows (:mod:`dpbayes_sklearn.posteriors.location`), in which moments are taken. So
noise is relative to what the data do, not to the width of their bounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.mechanisms import _moment_noise
from dpbayes_sklearn.mechanisms._moment_shares import Shares
from dpbayes_sklearn.mechanisms._samples import drawn_sample
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.posteriors.location import Located, Location, locate
from dpbayes_sklearn.statistics.moment_blocks import (
    Block,
    location_block,
    shell_block,
    target_block,
)
from dpbayes_sklearn.statistics.moments import Moments
from dpbayes_sklearn.statistics.shells import RADII

__all__ = ["located"]

_MOST_RECORDS = 100_000  # times 1/epsilon: more records say nothing new about a location
_LEAST_RECORDS = 10_000
_TARGET_REACH, _NUMBER_REACH = 2.25, 2.5  # standard deviations inside a window
_ANYWHERE = 1 / 3  # variance of a place within [-1, 1], of which nothing is known
_TARGET_MEAN, _NUMBER_MEAN = Fraction(3, 5), Fraction(2, 5)  # of their shares, for the means
_FARTHEST_SIGN = 0.95  # mean that a sign is centred at


def located(statistics: Moments, shares: Shares, source: RandomSource, reach: float) -> Located:
    """Release where the target lies, and numbers and signs if they have a share.

    Windows reach 2.25 standard deviations of the target and 2.5 of a number, times ``reach``.
    """
    design, n, epsilon = statistics.design, statistics.n, shares.per_record
    every = max(1, min(int(n * epsilon / _MOST_RECORDS), n // _LEAST_RECORDS))
    grid = shares.grid(design, n)
    asked = statistics.about(drawn_sample(n, every, statistics.unit, source))
    rows, sums = asked.location_sums(grid)
    numbers, signs = (sums[:-1][kind[design.single]] for kind in (design.numbers, design.signs))
    columns, sums = len(numbers), np.append(numbers, sums[-1])
    steps = Steps(rows, grid, shares, source)
    blocks = (
        (slice(columns, None), target_block(), shares.target, _TARGET_MEAN),
        (slice(columns), location_block(design.numbers), shares.columns, _NUMBER_MEAN),
    )
    centres, errors = np.zeros(columns + 1), np.zeros(columns + 1)
    if design.intercept:  # without it, columns must not be shifted
        for which, block, share, part in blocks:
            if share:
                centres[which], errors[which] = steps.means(sums[which], block, part * share)
    counts = asked.shell_counts(centres)
    found: list[Location | None] = []
    for (which, block, share, part), at in zip(blocks, (_TARGET_REACH, _NUMBER_REACH), strict=True):
        rest = share * (1 - part) if design.intercept else share
        if not rest:
            found.append(None)
            continue
        seen, variance = steps.shells(counts[which], len(block), rest)
        found.append(locate(centres[which], errors[which], seen, variance, at * reach))
    target, others = found
    assert target is not None
    if not shares.signs:
        return Located(target, others)
    means, _ = steps.means(signs, location_block(design.signs), shares.signs)
    return Located(target, others, np.clip(means, -_FARTHEST_SIGN, _FARTHEST_SIGN))


class Steps:
    """The noisy means and shares of so many records."""

    def __init__(self, rows: int, grid: int, shares: Shares, source: RandomSource) -> None:
        self._rows, self._grid, self._shares, self._source = rows, grid, shares, source

    def means(self, sums: IntArray, block: Block, share: Fraction) -> tuple[FloatArray, FloatArray]:
        """Release means, and return them, averaged with a prior, and their standard deviations.

        The prior is that of any place within the bounds: mean 0 and variance 1/3.
        """
        noisy, noise = self._noisy(sums, block, share)
        variance = noise / self._rows**2
        kept = _ANYWHERE / (_ANYWHERE + variance)
        return kept * np.clip(noisy / self._rows, -1.0, 1.0), np.sqrt(kept * variance)

    def shells(self, counts: IntArray, columns: int, share: Fraction) -> tuple[FloatArray, float]:
        """Release shares of shells, and return the variance of their noise."""
        sums = counts.ravel() * self._grid**2
        noisy, variance = self._noisy(sums, shell_block(columns, len(RADII)), share)
        return noisy.reshape(counts.shape) / self._rows, float(variance.max()) / self._rows**2

    def _noisy(
        self, sums: IntArray, block: Block, share: Fraction
    ) -> tuple[FloatArray, FloatArray]:
        step = self._shares.step(block)
        return _moment_noise.add_noise(sums, step, self._grid, share, self._source)
