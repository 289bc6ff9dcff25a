"""What released histograms tell: where a column lies, and how much lies beyond a limit.

All of it is post-processing. A bin is *seen* if its count is clearly above the noise. Beyond the
last seen bin, counts are averaged over tails whose ratio from bin to bin is unknown, weighted by
how well they explain the noisy counts there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.record_sums import BINS

EDGES = 2.0 ** (np.arange(-8, 29) / 2)
"""Inner ends of the bins of sizes: from 1/16 to 2^14, two for each power of two."""
_LOW, _HIGH = np.concatenate([[0.0], EDGES]), np.concatenate([EDGES, [1.4 * EDGES[-1]]])
LIMITS = EDGES
"""Limits that may be chosen."""
# A bin is seen if its count is so many standard deviations of noise above 0; the more, the more
# empty bins lie between it and those that were seen before.
_SEEN, _SEEN_APART = 3.5, 0.5
# So many bins are looked at together, and this is the most that is asked of them: noise reaches it
# with a chance of 1/40,000. If more is asked of several, intervals of a target of 0 and 1, 13 % of
# them 1, have no width (n = 3,000), and R2 is below 0.
_TOGETHER = {1: 5.0, 2: 4.4, 4: 4.0, 8: 3.7}
_LEAST_SD = 0.1  # At a large epsilon there is no noise: its variance may be 0.
# Candidates of a tail: the ratio of the first count to the last seen one, those of later counts,
# and the factor by which these fall from bin to bin.
_RATIOS, _BENDS = np.array([0.01, 0.05, 0.12, 0.22, 0.35, 0.5, 0.65, 0.8]), np.array([1.0, 0.9])
_REBOUND = 0.02  # Prior weight of a tail whose counts fall more slowly than the first did.


@dataclass(frozen=True)
class Counts:
    """Counts of bins of growing size, as a mixture of candidates."""

    candidates: FloatArray  # (candidates, bins).
    weights: FloatArray  # (candidates,).
    noise: FloatArray  # (bins,): standard deviation of the noise in a seen bin, 0 beyond.
    unseen: FloatArray  # (bins,): noisy counts beyond the last seen bin.

    @classmethod
    def of(cls, noisy: FloatArray, sd: float) -> Counts:
        """Read noisy counts, from the middle outwards.

        >>> Counts.of(np.array([900.0, 300.0, 3.0, -8.0]), 10.0).mean.round().tolist()
        [900.0, 300.0, 9.0, 0.0]
        """
        sd = max(sd, _LEAST_SD)
        last = _last_seen(noisy / sd)
        i, beyond = np.arange(len(noisy)), np.maximum(np.arange(len(noisy)) - last, 0)
        grid = np.meshgrid(_RATIOS, _RATIOS, _BENDS, indexing="ij")
        start, ratio, bend = (each.ravel()[:, None] for each in grid)
        later = np.maximum(beyond - 1, 0)
        tail = max(float(noisy[last]), sd) * start * ratio**later * bend ** (later * beyond / 2)
        base = np.where(i <= last, np.maximum(noisy, 0.0), 0.0)
        candidates = base + np.where(i > last, tail, 0.0)
        away = ((noisy - candidates) / sd)[:, last + 1 :]
        fit = -0.5 * np.square(away).sum(axis=1)
        prior = np.where(ratio > start, (1 - ratio) * _REBOUND, 1.0)[:, 0]
        weights = np.exp(fit - fit.max()) * prior
        unseen = np.where(i > last, noisy, 0.0)
        return cls(candidates, weights / weights.sum(), np.where(i <= last, sd, 0.0), unseen)

    @classmethod
    def exact(cls, counts: FloatArray) -> Counts:
        """Return counts without noise, which hides nothing."""
        nothing = np.zeros(len(counts))
        return cls(counts[None], np.ones(1), nothing, nothing)

    @property
    def mean(self) -> FloatArray:
        """Expected counts."""
        return self.weights @ self.candidates

    def hidden(self, size: float) -> float:
        """Return how many records of a size have the squares of those that noise may hide.

        That is one deviation of the noise, or what it shows in bins where nothing is seen.
        """
        squares = np.square(np.minimum(_HIGH / size, 1.0)) * (size > _LOW)
        return float(max(self.noise.max(), (self.unseen * squares).max()))

    @property
    def farthest_seen(self) -> float:
        """The outer end of the farthest bin in which there are records, by no chance."""
        return float(_HIGH[np.flatnonzero(self.noise).max(initial=0)])


def _last_seen(deviations: FloatArray) -> int:
    """Return the farthest bin in which there are records, by no chance.

    ``deviations`` are noisy counts over the standard deviation of their noise. Neighbouring bins
    are looked at together, too: a few records in each of them may be many.
    """
    sums, last = np.concatenate([[0.0], np.cumsum(deviations)]), 0
    for start in range(len(deviations)):
        usual = _SEEN + _SEEN_APART * max(start - last - 1, 0)
        for width, most in _TOGETHER.items() if start > last else [(1, _SEEN)]:
            least = min(usual, most)
            end = min(start + width, len(deviations))
            if sums[end] - sums[start] > least * math.sqrt(end - start):
                some = start + np.flatnonzero(deviations[start:end] > 1.0)
                last = max(last, int(some[-1]))
                break
    return last


class Excess(NamedTuple):
    """The sum of what exceeds a limit: its mean, its standard deviation, and that of squares."""

    mean: float
    sd: float
    squares: float


def excess(counts: Counts, limit: float, top: float, power: int = 1) -> Excess:
    """Return the sum of size**power - limit**power over sizes beyond a limit; none is above top."""
    low, high = np.maximum(_LOW, limit), np.minimum(_HIGH, top)
    inside = np.log(np.maximum(high / np.maximum(low, 1e-300), 1.0)) / (0.5 * math.log(2))
    part = np.where(high > low, np.where(limit > _LOW, np.minimum(inside, 1.0), 1.0), 0.0)
    middle = np.sqrt(low * np.maximum(high, low))
    over = np.maximum(middle**power - limit**power, 0.0) * part
    sums = counts.candidates @ over
    mean = float(counts.weights @ sums)
    spread = float(counts.weights @ (sums - mean) ** 2) + float(
        np.square(counts.noise * over).sum()
    )
    squares = float(counts.weights @ (counts.candidates @ over**2))
    return Excess(mean, math.sqrt(spread), squares)


def mean_square(counts: FloatArray, limit: float) -> float:
    """Return the mean of squared sizes, each at most the limit."""
    sizes = np.minimum((_LOW + _HIGH) / 2, limit)
    return float(counts @ sizes**2) / max(float(counts.sum()), 1.0)


def median(counts: FloatArray, sd: float) -> float:
    """Return the median size; 1 if noise hides all counts."""
    ends = np.concatenate([[0.0], np.cumsum(np.where(counts > 2 * sd, counts, 0.0))])
    if not ends[-1]:
        return 1.0
    return float(np.interp(ends[-1] / 2, ends, np.concatenate([[0.0], _HIGH])))


# Where a column lies: a Student law of five degrees of freedom is fitted to even bins.
_CENTRES, _SPREADS = np.linspace(-1, 1, 65), np.geomspace(1 / 80, 1.2, 28)
_EVEN = np.linspace(-1, 1, BINS + 1)
MIDDLES = (_EVEN[1:] + _EVEN[:-1]) / 2
"""The middles of even bins."""
_MISFIT, _LEAST_SHARE = 0.25, 1e-4  # Relative and absolute error of a cell of the fitted law.
_USUAL_SPREAD, _USUAL_CENTRE = 0.25, 0.6  # Prior: median spread, and deviation of the centre.
_OF_MOMENTS = 0.8  # The spread is at least this part of the standard deviation that is seen.
_HIDDEN = 0.3  # And of that which records may have at the other end, if noise hides them.


def _cells() -> FloatArray:
    width = 0.8 * _SPREADS[None, :, None]
    ends = stats.t.cdf((_EVEN - _CENTRES[:, None, None]) / width, 5)
    ends[..., 0], ends[..., -1] = 0.0, 1.0
    return np.asarray(np.diff(ends, axis=-1))


_CELLS = _cells()


class Place(NamedTuple):
    """Where the values of a column lie, on the scale of its bounds."""

    centre: float
    spread: float
    centre_sd: float
    shares: FloatArray  # Of the even bins.


def place(noisy: FloatArray, n: int, sd: float) -> Place:
    """Fit centre and spread to noisy counts of even bins.

    >>> found = place(np.histogram(np.linspace(0.1, 0.3, 1000), _EVEN)[0], 1000, 1.0)
    >>> round(found.centre, 2), round(found.spread, 2)
    (0.19, 0.07)
    """
    share, error = noisy / n, sd / n
    variance = error**2 + _CELLS / n + (_MISFIT * _CELLS) ** 2 + _LEAST_SHARE**2
    fit = -0.5 * ((share - _CELLS) ** 2 / variance + np.log(variance)).sum(-1)
    fit -= 0.5 * np.log(_SPREADS / _USUAL_SPREAD) ** 2
    fit -= 0.5 * (_CENTRES[:, None] / _USUAL_CENTRE) ** 2
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    by_centre, by_spread = weight.sum(axis=1), weight.sum(axis=0)
    centre, log_spread = float(by_centre @ _CENTRES), float(by_spread @ np.log(_SPREADS))
    doubt = math.sqrt(float(by_spread @ (np.log(_SPREADS) - log_spread) ** 2))
    centre_sd = math.sqrt(float(by_centre @ (_CENTRES - centre) ** 2))
    shares = _smooth(noisy, sd)
    mean = shares @ MIDDLES
    moment = math.sqrt(max(float(shares @ MIDDLES**2 - mean**2), 0.0))
    hidden = _HIDDEN * math.sqrt(2 * error)
    spread = max(math.exp(log_spread + doubt / 2), _OF_MOMENTS * moment, hidden)
    return Place(centre, spread, centre_sd, shares)


def _smooth(noisy: FloatArray, sd: float) -> FloatArray:
    """Return the shares of even bins, read from the fullest one outwards on either side."""
    k, counts = int(np.argmax(noisy)), np.zeros(len(noisy))
    counts[k:] = Counts.of(noisy[k:], sd).mean
    counts[k::-1] = Counts.of(noisy[k::-1], sd).mean
    return counts / max(float(counts.sum()), 1e-9)
