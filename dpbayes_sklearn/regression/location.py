r"""Where target and columns lie: the first releases of a regression.

**Location and spread of a column, from a noisy histogram of distances from its noisy mean.**

The model is :math:`x = c + \delta + 0.85\,s\,t_6` with the released mean c, its error
:math:`\delta` and Student's distribution with six degrees of freedom, of standard deviation about
s. The counts of distances have noise of known variance, and real columns differ from the model by a
few percent of the records. The posterior of :math:`(s, \delta)` is computed on a grid.

**What clipping does to a slope.** A histogram cannot count the few records in a tail, but the many
in the middle tell which of several usual shapes a column has: normal, Student's, gamma or
log-normal. If clipping to :math:`c \pm h` takes e of a value and leaves the variance v, the slope
on what is left is too large by :math:`h\,E|e|/v` of itself. Its mean and variance over the shapes
follow from v and from how well each fits.

1. The sums of the target and of the numbers; a record changes each by at most 2. With the sum of
   the target comes the number of records that have none, which costs nothing. They add nothing to
   any sum; what follows is about the others.
2. Histograms of the distances from the released means; a record changes two counts of a column.
3. The sums of the signs, at which they are centred.
4. Before two stages, products of numbers, and histograms of those that others predict, less what
   they do.

If numbers are too many for the first two, one histogram takes their place: of the distance of each
record's farthest number from the middle of its bounds. All numbers then have the same window.

They become windows (`design`), in which moments are taken. So noise is relative to what the data
do, not to the width of their bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, ndtr, stdtr

from dpbayes_sklearn._typing import FloatArray, Positions
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.regression.design import (
    WHOLE_WINDOW,
    DecorrelatedWindows,
    Design,
    Reach,
    Window,
    Windows,
)
from dpbayes_sklearn.regression.moments import (
    Moments,
    location_block,
    pairs_block,
    target_block,
)
from dpbayes_sklearn.regression.record_sums import RADII, Baseline
from dpbayes_sklearn.regression.step_noise import NoisyLocation, Shares, sampled

# Spreads on the scale of the bounds whose posterior is computed.
_SPREADS = np.geomspace(0.005, 1.0, 61)
# Prior of a spread on the scale of the bounds: its median, and the deviation of its logarithm.
_USUAL_SPREAD, _LOG_SPREAD_SD = 0.3, 0.8
_SHIFTS = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.75])  # Values of delta, in errors of the mean.
_MODEL_ERROR = 0.03  # A bin differs from the model by about this share of the records.
# Degrees of freedom of the model's Student distribution, and its scale per spread.
_STUDENT, _STUDENT_SCALE = 6.0, 0.85
_WINDOW_SIZES = 30  # A window has one of this many sizes.
_MOST_OUTSIDE = 0.1  # Share of the records that a window leaves out, if no noise hides them.
_NOT_LOCATED = 2.5  # Bounds of a column that was not located reach this many deviations.


Shape = Callable[[FloatArray], FloatArray]
"""A distribution function of mean 0 and variance 1."""

_SHAPE_ERROR = 0.025  # A bin differs from the best shape by about this share of the records.
_LARGEST_SQUARE = 1 / 3  # Windows reach so far that mean squares in them are at most this.


def _gamma(k: float) -> Shape:
    """Return the gamma distribution of shape k."""
    return lambda z: gammainc(k, np.maximum(k + np.sqrt(k) * z, 0.0))


def _log_normal(sd: float) -> Shape:
    """Return the distribution of a number whose logarithm has this standard deviation."""
    mean = np.exp(sd**2 / 2)
    own = mean * np.sqrt(np.expm1(sd**2))
    return lambda z: ndtr(np.log(np.maximum(mean + own * z, np.finfo(float).tiny)) / sd)


def _student(z: FloatArray) -> FloatArray:
    """Return Student's distribution function with 5 degrees of freedom."""
    return np.asarray(stdtr(5.0, z * np.sqrt(5 / 3)))


_SHAPES: tuple[Shape, ...] = (ndtr, _student, *map(_gamma, (4.0, 2.0, 1.0)), _log_normal(0.65))
_SHAPE_WEIGHTS = np.array([0.3, 0.2, 0.125, 0.125, 0.125, 0.125])  # Their prior probabilities.


@dataclass(frozen=True)
class Location:
    """What is known about some columns, on the scale of their bounds; one entry for each."""

    centre: FloatArray  # The released mean.
    error: FloatArray  # Standard deviation of its noise.
    # log_spread, log_spread_sd: Mean and standard deviation of the logarithm of the spread.
    log_spread: FloatArray
    log_spread_sd: FloatArray
    half: FloatArray  # Half of the width of the window.
    # (columns, len(RADII): shares of the records: the released ones averaged with the model.
    distance_shares: FloatArray
    distance_variances: FloatArray  # Their variances.
    shapes: FloatArray  # (columns, len(_SHAPES)): probabilities of the shapes.

    @property
    def squares(self) -> FloatArray:
        """Mean squares in the windows, by the spreads."""
        return np.minimum(np.exp(2 * self.log_spread) / self.half**2, 1.0)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations that the windows reach, by the distances if they tell of more.

        Values of two kinds are farther from their mean than a single kind would be.
        """
        inner = np.append(RADII[1:], 0.0)
        square = (self.distance_shares * (RADII**2 + inner**2) / 2).sum(axis=1)
        error = np.sqrt((self.distance_variances * RADII**4).sum(axis=1))
        by_distances = np.sqrt(np.maximum(square - error, 0.0))
        return np.asarray(self.half / np.maximum(np.exp(self.log_spread), by_distances))

    def beyond(self, part: float = 1.0) -> FloatArray:
        """Return the shares of the records outside of a part of the windows, seldom too small.

        They are half a standard deviation above their means. A bin that the end cuts is counted
        in proportion; nothing lies beyond the bounds.
        """
        inner, end = np.append(RADII[1:], 0.0), part * self.half[:, None]
        outer = np.minimum(RADII, 1 + np.abs(self.centre)[:, None])
        outside = np.clip((outer - end) / np.maximum(outer - inner, 1e-9), 0.0, 1.0)
        error = np.sqrt((self.distance_variances * outside**2).sum(axis=1))
        return np.asarray(
            np.clip((self.distance_shares * outside).sum(axis=1) + error / 2, 0.0, 1.0)
        )

    def lost(self, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by which part clipping makes slopes too large, and its standard deviation.

        ``squares`` are the mean squares in the windows. Nothing lies beyond the bounds.
        """
        squares, ends = np.minimum(squares, _LARGEST_SQUARE), (1 + np.abs(self.centre)) / self.half
        each = np.empty_like(self.shapes)
        for k, (reaches, excess, inside) in enumerate(_clipped_shapes()):
            reach = np.interp(-np.log(squares), -np.log(inside), reaches)
            outside = np.interp(ends * reach, reaches, excess)
            each[:, k] = (np.interp(reach, reaches, excess) - outside) / (reach * squares)
        mean = (self.shapes * each).sum(axis=1)
        variance = (self.shapes * (each - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(variance)

    def replaced(self, which: Positions, by: Location) -> Location:
        """Return the columns with some of them replaced."""
        merged = {name: values.copy() for name, values in vars(self).items()}
        for name, values in vars(by).items():
            merged[name][which] = values
        return Location(**merged)

    def narrowed(self, share: float, least: float) -> Location:
        """Return windows that leave out this share of the records, or ``least`` deviations wide.

        None is wider than it was.
        """
        parts = np.geomspace(0.2, 1.0, _WINDOW_SIZES)
        enough = np.stack([self.beyond(part) <= share for part in parts])
        enough &= parts[:, None] * self.half >= least * np.exp(self.log_spread)
        enough[-1] = True
        return replace(self, half=parts[np.argmax(enough, axis=0)] * self.half)


class Decorrelated(NamedTuple):
    """Where the numbers themselves lie, and what was made of them (`DecorrelatedWindows`)."""

    numbers: Location
    axes: FloatArray
    which: Positions  # Coordinates that are less what others predict of them.


@dataclass(frozen=True)
class Located:
    """Public locations: of the target, and of numbers and signs if there was a budget for them."""

    target: Location
    numbers: Location | None
    signs: FloatArray | None = None  # Released means of the signs, at which they are centred.
    # Part of the target's window beyond which records of otherwise usual size are scaled.
    target_end: float = 1.0
    common: float = 1.0  # Half of the width of the windows of numbers that were not located.
    # If numbers are taken less what others predict of them, where they lie themselves.
    decorrelated: Decorrelated | None = None
    share_known: float = 1.0  # Share of the records that have a target.

    @property
    def window(self) -> Window:
        """Return where the target is clipped."""
        return Window.around(float(self.target.centre[0]), float(self.target.half[0]))

    def reach(self, design: Design) -> Reach:
        """Return how many standard deviations the windows of coordinates and target reach.

        It is 2.5 for coordinates that were not located.
        """
        reach = np.full(design.width + 1, _NOT_LOCATED)
        reach[-1] = self.target.deviations[0] * self.window.half / self.target.half[0]
        if self.numbers is not None:
            reach[:-1][design.numbers] = self.numbers.half / np.exp(self.numbers.log_spread)
        return Reach(reach, self.signs)

    def windows(self, design: Design) -> Windows:
        """Return where the coordinates are clipped, and what they are centred at."""
        windows = Windows.whole(design.width)
        windows.halves[design.numbers] = self.common
        at = self.numbers if self.decorrelated is None else self.decorrelated.numbers
        if at is not None:
            windows.centres[design.numbers] = at.centre
            windows.halves[design.numbers] = at.half
        if self.signs is not None:
            windows.centres[design.signs] = self.signs
            windows.halves[design.signs] = 1 + np.abs(self.signs)
        if self.decorrelated is None:
            return windows
        return DecorrelatedWindows(windows.centres, windows.halves, self.decorrelated.axes)

    def rests_outside(self, design: Design) -> FloatArray:
        """Return the shares of the records with a rest outside of its window, and 0 for columns.

        A rest is what others do not predict of a number.
        """
        outside = np.zeros(design.width)
        if self.numbers is not None and self.decorrelated is not None:
            outside[design.numbers] = self.numbers.beyond()
            outside[np.setdiff1d(np.arange(design.width), self.decorrelated.which)] = 0.0
        return outside

    def lost_of_rests(self, design: Design, own: FloatArray) -> FloatArray:
        """Return by which part clipping of columns may change the slopes of rests; 0 for columns.

        ``own`` are mean squares. What is taken of a column is missing in the rests that it is part
        of, which are of usual size there, and is larger in units of their windows.
        """
        found = np.zeros(design.width)
        if self.decorrelated is not None:
            at, axes, which = self.decorrelated
            excess = np.zeros(design.width)
            excess[design.numbers] = at.lost(at.squares)[0] * at.squares
            found[which] = (np.abs(axes[which]) @ excess) / np.sqrt(own[which])
        return found


def locate(
    centre: FloatArray, error: FloatArray, shares: FloatArray, variance: float, reach: float
) -> Location:
    """Return what shares of records at each distance (columns, len(RADII)) tell.

    ``centre`` and ``error`` are the released means and the standard deviations of their noise,
    ``variance`` that of the noise in a share. Windows reach this many standard deviations.
    """
    delta = error[:, None] * _SHIFTS  # (columns, shifts)
    errors, which = np.unique(error, return_inverse=True)  # most columns have the same
    cells = _shares(tuple(errors.tolist()))[which]  # (columns, shifts, spreads, bins)
    misfit = _misfit(shares[:, None, None] - cells, variance, _MODEL_ERROR).sum(axis=-1)
    log_p = _spread_prior() - 0.5 * _SHIFTS[:, None] ** 2 - misfit
    weight = np.exp(log_p - log_p.max(axis=(1, 2), keepdims=True))
    weight /= weight.sum(axis=(1, 2), keepdims=True)

    def moments(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = (weight * values).sum(axis=(1, 2))
        square = (weight * (values - mean[:, None, None]) ** 2).sum(axis=(1, 2))
        return mean, np.sqrt(square)

    spread = np.broadcast_to(np.log(_SPREADS), weight.shape)
    far, far_sd = moments(np.log(reach * _SPREADS + delta[:, :, None]))
    fitted = np.exp(far + far_sd / 2)
    widened = np.maximum(fitted, _outermost(shares, variance)) / fitted
    half = np.minimum(widened * fitted, 1 + np.abs(centre))
    tails = (weight[..., None] * cells).sum(axis=(1, 2))
    # averaged with the model by inverse variance; a bin differs from it by few times its share
    shape = np.minimum(_MODEL_ERROR, 2 * tails)
    kept = shape**2 / (shape**2 + variance)
    seen = tails + kept * (shares - tails)
    shift = _SHIFTS[np.argmax(weight.sum(axis=2), axis=1)] * error
    shapes = _shape_probabilities(shift, shares, variance)
    log_spread, spread_sd = moments(spread)
    log_spread = log_spread + np.log(widened)
    return Location(centre, error, log_spread, spread_sd, half, seen, kept * variance, shapes)


def _outermost(shares: FloatArray, variance: float) -> FloatArray:
    """Return the distances beyond which a tenth of the records are, by five deviations of noise.

    A model of one kind of values is blind to those beside a frequent one, as 40 hours of work are.
    """
    beyond = np.cumsum(shares, axis=1)
    few = beyond <= _MOST_OUTSIDE + 5 * np.sqrt(variance * np.arange(1, 1 + len(RADII)))
    return np.where(few.all(axis=1), 0.0, RADII[np.argmin(few, axis=1)])


def _shape_probabilities(shift: FloatArray, shares: FloatArray, variance: float) -> FloatArray:
    """Return how probable the shapes are, for means that are off by ``shift``.

    If none fits, as with few different values, they are hardly told apart.
    """
    shifts, which = np.unique(shift, return_inverse=True)
    cells = np.stack([_shape_shares(each) for each in shifts.tolist()])[which]
    misfit = _misfit(shares[:, None, None] - cells, variance, _SHAPE_ERROR).sum(axis=-1)
    misfit /= np.maximum(1.0, 2 * misfit.min(axis=(1, 2), keepdims=True) / len(RADII))
    log_p = np.logaddexp.reduce(_spread_prior() - misfit, axis=2) + np.log(_SHAPE_WEIGHTS)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _spread_prior() -> FloatArray:
    """Return the log density of the prior of spreads, up to a constant."""
    return np.asarray(-0.5 * ((np.log(_SPREADS) - np.log(_USUAL_SPREAD)) / _LOG_SPREAD_SD) ** 2)


@lru_cache
def _shape_shares(shift: float) -> FloatArray:
    """Return the shares of all bins of distance, for every shape and spread."""
    outer, inner = ((ends - shift) / _SPREADS[:, None] for ends in (RADII, -RADII))
    return np.stack([_bins(shape(outer) - shape(inner)) for shape in _SHAPES])


def _bins(within: FloatArray) -> FloatArray:
    """Return the shares of bins by those within their outer ends."""
    within[..., 0] = 1.0  # what lies farther out was clipped to the bounds
    inner = np.concatenate([within[..., 1:], np.zeros((*within.shape[:-1], 1))], axis=-1)
    return np.asarray(within - inner)


@lru_cache
def _clipped_shapes() -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Return for every shape reaches r, the mean excess over r, and the mean square within over r².

    With P the probability to be farther out than u, they are the integrals of P beyond r and of
    2uP up to r.
    """
    ends = np.append(0.0, np.geomspace(1e-2, 1e3, 2000))
    middle, step, reaches = (ends[1:] + ends[:-1]) / 2, np.diff(ends), ends[1:]
    found = []
    for shape in _SHAPES:
        part = (1 - shape(middle) + shape(-middle)) * step
        within = np.cumsum(2 * middle * part) / reaches**2
        found.append((reaches, part.sum() - np.cumsum(part), within))
    return found


def _misfit(gap: FloatArray, variance: float, model_error: float) -> FloatArray:
    """Return minus the log density of a gap: normal near 0, as heavy as Laplace noise far out.

    d² (sqrt(1 + (x/d)²) - 1)/v, where d makes the slope 1/b for large x, b the scale of the noise.
    """
    v = variance + model_error**2
    d = v / np.sqrt(variance / 2 + 1e-12)
    return np.asarray(d**2 * (np.sqrt(1 + (gap / d) ** 2) - 1) / v)


@lru_cache
def _shares(errors: tuple[float, ...]) -> FloatArray:
    """Return the shares of all bins of distance, for every error, shift and spread.

    Releases of the same size and budget have the same errors.
    """
    scale = _STUDENT_SCALE * _SPREADS[:, None]
    shift = (np.array(errors)[:, None] * _SHIFTS)[..., None, None]
    within = stdtr(_STUDENT, (RADII - shift) / scale) - stdtr(_STUDENT, (-RADII - shift) / scale)
    return _bins(within)


# Windows of the target and of numbers reach this many standard deviations.
_TARGET_REACH, _NUMBER_REACH = 2.25, 2.5
_RESIDUAL_REACH = 2.5  # Windows of residuals reach this many standard deviations.
# Standard deviation of the mean residual of a model with a constant, in widths of the window.
_SKEWED = 0.01
# Parts of the shares of target and numbers that are spent on their means.
_TARGET_MEAN, _NUMBER_MEAN = Fraction(3, 5), Fraction(2, 5)
COMMON_OUTSIDE = 0.25
"""Share of the records, at most, with a number outside of windows of one common scale."""
# Correlations are those of numbers clipped at this many standard deviations, whose mean square is
# at least so large there.
_PAIRS_AT, _LEAST_SQUARE = 1.0, 0.2
# A smaller correlation, or one of fewer errors, is left as it is.
_LEAST_CORRELATION, _SURE_ERRORS = 0.5, 4.0
_REST_WINDOW = 2.0  # Windows of columns whose rests are taken are wider by this factor.
_LEAST_EIGENVALUE = 0.02  # Smaller eigenvalues of correlations are taken for noise.
_FARTHEST_SIGN = 0.95  # A sign is centred at most this far from 0.


def located(statistics: Moments, shares: Shares, noise: Noise, reach: float) -> Located:
    """Release where the target lies, and numbers, or their common scale, and signs with a share.

    Windows reach 2.25 standard deviations of the target and 2.5 of a number, times ``reach``.
    """
    design, grid = statistics.design, shares.grid(statistics.design, statistics.n)
    asked = sampled(statistics, shares, noise)
    rows, sums = asked.location_sums(grid)
    numbers, signs = (sums[:-1][kind[design.single]] for kind in (design.numbers, design.signs))
    columns, sums = len(numbers), np.append(numbers, sums[-1])
    noisy = NoisyLocation(rows, grid, shares, noise)
    if not statistics.unit.size_is_secret:  # where it is, records without a target were left out
        noisy.missing = asked.n_missing
    each = Fraction(0) if shares.common else shares.columns
    blocks = (
        (slice(columns, None), target_block(), shares.target, _TARGET_MEAN),
        (slice(columns), location_block(design.numbers), each, _NUMBER_MEAN),
    )
    centres, errors = np.zeros(columns + 1), np.zeros(columns + 1)
    if design.intercept:  # without it, columns must not be shifted
        for which, block, share, part in blocks:
            if share:
                centres[which], errors[which] = noisy.means(sums[which], block, part * share)
    counts = asked.distance_counts(centres)
    found: list[Location | None] = []
    for (which, block, share, part), at in zip(blocks, (_TARGET_REACH, _NUMBER_REACH), strict=True):
        rest = share * (1 - part) if design.intercept else share
        if not rest:
            found.append(None)
            continue
        seen, variance = noisy.distance_shares(counts[which], len(block), rest)
        found.append(locate(centres[which], errors[which], seen, variance, at * reach))
    target, others = found
    assert target is not None
    places = Located(target, others, share_known=noisy.rows / rows)
    if shares.common:
        seen, variance = noisy.distance_shares(asked.largest_counts(), 1, shares.columns)
        places = replace(places, common=common_half(seen, variance))
    if not shares.signs:
        return places
    means, _ = noisy.means(signs, location_block(design.signs), shares.signs)
    return replace(places, signs=np.clip(means, -_FARTHEST_SIGN, _FARTHEST_SIGN))


def common_half(shares: FloatArray, variance: float) -> float:
    """Return the distance beyond which few records have a number, by shares of their farthest ones.

    From the bounds inwards it is the last one beyond which there is at most a quarter of the
    records, up to one standard deviation of the noise.
    """
    inside = RADII <= 1
    beyond = np.cumsum(shares.ravel()[inside])
    error = np.sqrt(variance * np.arange(1, 1 + len(beyond)))
    kept = int(np.argmax(np.append(beyond > COMMON_OUTSIDE + error, True)))
    return float(RADII[inside][min(kept, len(beyond) - 1)])


def located_residuals(
    statistics: Moments, baseline: Baseline, shares: Shares, noise: Noise, reach: float
) -> tuple[Baseline, Location]:
    """Release the mean of a model's residuals and how far they are from it.

    Returns the model with the mean added to its constant, if it has one, and where its residuals
    lie, in widths of the target's window.
    """
    design, grid = statistics.design, shares.grid(statistics.design, statistics.n)
    asked = sampled(statistics, shares, noise)
    noisy, share = NoisyLocation(asked.n_known, grid, shares, noise), shares.spread
    if design.intercept:
        share = _NUMBER_MEAN * shares.spread
        sums = asked.residual_sum(baseline, grid)
        mean, _ = noisy.means(sums, target_block(), share, _SKEWED**2)
        baseline, share = baseline.shifted(float(mean[0])), shares.spread - share
    seen, variance = noisy.distance_shares(asked.residual_counts(baseline, grid), 1, share)
    at = locate(np.zeros(1), np.zeros(1), seen, variance, _RESIDUAL_REACH * reach)
    return baseline, at


def decorrelated(
    statistics: Moments,
    places: Located,
    shares: Shares,
    noise: Noise,
    reach: float,
    narrowed: Callable[[Location], Location],
) -> tuple[Located, Shares]:
    r"""Release rough correlations of numbers; take those that others predict less what they do.

    Noise in the sums of products is relative to the windows. If two columns are nearly the same,
    the data tell their coefficients apart by a difference that is far smaller than the windows,
    and than the noise. So :math:`z_j = x_j - \sum_{i<j} b_{ji} x_i` takes the place of
    :math:`x_j`, in a window of its own.

    *Privacy*: a record adds to every product of two clipped numbers a number in [-1, 1], and to one
    bin of every histogram; b and the windows follow from what was released. The z of a record is a
    function of that record, clipped to [-1, 1]: all later sums have the sensitivities that they
    have with x. Without correlations the share of the histograms is left for what follows.
    """
    at, design = places.numbers, statistics.design
    if at is None or not shares.pairs:
        return places, shares
    grid, asked = shares.grid(design, statistics.n), sampled(statistics, shares, noise)
    noisy, block = NoisyLocation(asked.n_known, grid, shares, noise), pairs_block(design)
    near = replace(at, half=np.minimum(_PAIRS_AT * np.exp(at.log_spread), at.half))
    windows = replace(places, numbers=near).windows(design)
    sums = asked.gram(grid, WHOLE_WINDOW, windows)[block.rows, block.columns]
    b = predictors(*_correlations(near, *noisy.mean_products(sums, block, shares.pairs)))
    which = np.flatnonzero(b.any(axis=1))
    if not len(which):
        return places, shares
    wide = np.minimum(_REST_WINDOW * at.half, 1 + np.abs(at.centre))  # rests have their own
    at = replace(at, half=np.where(b.any(axis=1), wide, at.half))
    spread = np.exp(at.log_spread) / at.half
    b *= spread[:, None] / spread
    axes, numbers = np.eye(design.width), np.flatnonzero(design.numbers)
    axes[np.ix_(numbers, numbers)] -= b
    share = shares.of_places(statistics.n, len(which))
    rests = numbers[which]
    unscaled = replace(places, decorrelated=Decorrelated(at, axes, rests)).windows(design)
    counts = asked.window_counts(unscaled, rests, grid)
    seen, variance = noisy.distance_shares(counts, len(which), share)
    error = np.sqrt((np.eye(len(b)) + b**2) @ (at.error / at.half) ** 2)[which]
    centre = np.zeros(len(which))
    rest = narrowed(locate(centre, error, seen, variance, _NUMBER_REACH * reach))
    axes[rests] /= rest.half[:, None]
    made = Decorrelated(at, axes, rests)
    found = replace(places, numbers=at.replaced(which, rest), decorrelated=made)
    return found, shares._replace(model=shares.model - share)


def _correlations(
    at: Location, products: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return correlations of numbers in narrow windows, and the standard deviations of noise."""
    inner = np.append(RADII[1:], 0.0)
    square = np.minimum((RADII**2 + inner**2) / 2 / at.half[:, None] ** 2, 1.0)
    squares = np.maximum((at.distance_shares * square).sum(axis=1), _LEAST_SQUARE)
    found, error = np.eye(len(squares)), np.zeros((len(squares),) * 2)
    i, j = np.triu_indices(len(squares), 1)
    size = np.sqrt(squares[i] * squares[j])
    found[i, j] = found[j, i] = np.clip(products / size, -1.0, 1.0)
    error[i, j] = error[j, i] = np.sqrt(variance) / size
    return found, error


def predictors(correlations: FloatArray, error: FloatArray) -> FloatArray:
    """Return slopes of every standardised column on those before it that it is correlated with.

    Correlations below one half, or below four standard deviations of their noise, count as 0.

    >>> predictors(np.array([[1, 0.9, 0.1], [0.9, 1, 0.1], [0.1, 0.1, 1]]), np.zeros((3, 3)))[1]
    array([0.9, 0. , 0. ])
    """
    found = np.zeros_like(correlations)
    sure = np.abs(correlations) > np.maximum(_LEAST_CORRELATION, _SURE_ERRORS * error)
    kept = np.where(sure, correlations, 0.0)
    for j in range(1, len(found)):
        use = np.flatnonzero(kept[j, :j])
        own, ridge = kept[np.ix_(use, use)], _SURE_ERRORS * error[np.ix_(use, use)]
        values, axes = np.linalg.eigh(own)  # small eigenvalues are noise
        least = max(ridge.max(initial=0.0), _LEAST_EIGENVALUE)
        found[j, use] = (axes / np.maximum(values, least)) @ (axes.T @ kept[j, use])
    return found
