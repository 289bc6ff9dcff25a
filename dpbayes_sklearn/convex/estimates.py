r"""What the answers of a whole release tell: limits of its last steps, and least squares.

In turned coordinates the way d from the released mode to the least-squares solution solves
:math:`Cd = S`. Released are :math:`\tilde S`, with ball noise and without what lies beyond its
limit, and :math:`\tilde C`, with matrix noise and without what its limit takes away. Both are
inverted into estimates and intervals by :mod:`~dpbayes_sklearn.convex.intervals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.convex.design import Design, Windows
from dpbayes_sklearn.convex.intervals import NoisyEquation
from dpbayes_sklearn.convex.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.convex.slopes import OUTWEIGHED, slopes_of
from dpbayes_sklearn.convex.tails import LIMITS, Counts, excess, mean_square, median

if TYPE_CHECKING:
    from dpbayes_sklearn.convex.linear import Known

# Scores beyond the limit point one way by these parts: of the difference of positive and negative
# ones, and of what noise hides, the more if one side is seen to be longer.
_ALIGNED, _HIDDEN, _ONE_SIDED = 1.3, 0.8, 1.2
_IGNORANCE = 0.5  # What a limit takes from the curvature is known up to this part.
_UNEVEN = 0.5  # Prior deviation of the middle, relative to that of even residuals.
_LEAST_MIDDLE = 0.3  # No direction has less of the even middle than this part.
_MIDDLE_LIMIT = 3.0  # The limit of the middle is at least so many median scores.
_BELIEVED = 4.0  # Not identified if limits may have taken so many times the sampling variance.
_FLAT = 10.0  # Prior deviation of a turned coefficient in intervals, in deviations of the target.
# For predictions: the least curvature of a direction, the share that features explain, and that of
# residuals within the limit of the mode.
_LEAST_CURVATURE, _EXPLAINS, _INSIDE = 0.3, 0.5, 0.6
_BENT = 0.01  # Most that what lies beyond a limit adds to the squared error of the mode.
# No more is explained than the variance of the target: at most 1.6 where it is seen, as a spread is
# at least 0.8 deviations, and 10 deviations of the noise in a count may be at the farther bound.
_MOST_EXPLAINED, _UNSEEN = 1.6, 10.0
_EXPLAINED = 0.2  # Share that the ridge of the mode supposes.
# For predictions, as many records as this part of the noise in a count may be as long as any can
# be: otherwise R2 is -0.27 of 0.18, at the lowest -4.9, where nearly all records have one dose.
_HIDDEN_LENGTHS = 0.1
# If hidden records may outweigh all others, predictions change up to so many times as far out as
# records are seen: R2 of `code_999` is -1.9, otherwise -11.
_SEEN_TIMES = 6.0
_TURNS = 60  # Of the iteration for a variance that depends on the solution.


@dataclass(frozen=True)
class Tails:
    """How far out the scores and the lengths of the records reach."""

    positive: Counts
    negative: Counts
    lengths: Counts
    sd: float  # Of the noise in a count of scores.
    farthest_score: float
    farthest_length: float

    @property
    def scores(self) -> FloatArray:
        """Counts of scores of either sign."""
        return np.maximum(self.positive.mean + self.negative.mean, 0.0)

    @property
    def middle(self) -> float:
        """The median score."""
        return median(self.scores, self.sd)

    def mean_square(self, limit: float) -> float:
        """Return the mean square of scores that are cut at a limit."""
        return mean_square(self.scores, limit)

    def beyond(self, limit: float, n: float) -> Beyond:
        """Return what scores have beyond a limit."""
        up, down = (excess(c, limit, self.farthest_score) for c in (self.positive, self.negative))
        sd, uneven = math.hypot(up.sd, down.sd), up.mean - down.mean
        one_sided = uneven**2 / (uneven**2 + sd**2 + 1e-9)
        systematic = (_ALIGNED * uneven) ** 2 + ((_HIDDEN + _ONE_SIDED * one_sided) * sd) ** 2
        return Beyond((systematic + up.squares + down.squares) / n, uneven, sd)

    def taken(self, limit: float, n: float) -> tuple[float, float]:
        """Return what a limit takes from the curvature: its mean trace over p, and its error."""
        gone = excess(self.lengths, limit, self.farthest_length, 2)
        return gone.mean / n, math.hypot(_IGNORANCE * gone.mean, gone.sd) / n


class Beyond(NamedTuple):
    """What lies beyond the limit of the score, in each coordinate."""

    variance: float  # Times n: of its mean.
    uneven: float  # The sum of positive excesses less that of negative ones.
    uneven_sd: float


class Limits(NamedTuple):
    """The limits of the last three steps, in roots of p."""

    score: float
    length: float
    middle: float


def choose_limits(
    tails: Tails, n: float, p: int, score_noise: float, curvature_noise: float, middle_noise: float
) -> Limits:
    """Return the limits with the least predicted error; the middle one as wide as noise allows.

    The noises are the standard deviations of an entry of the sums, for a limit of root p.
    """
    least = tails.middle
    scores = [each for each in LIMITS if least <= each < 2 * tails.farthest_score]
    score = min(
        scores or [least],
        key=lambda x: (score_noise * x) ** 2 / n + tails.beyond(x, n).variance,
    )
    lengths = [each for each in LIMITS if 1 <= each < 2 * tails.farthest_length]

    def error(limit: float) -> float:
        noise = (1 + 1 / p) * (curvature_noise * limit**2 / n) ** 2
        return noise + tails.taken(limit, n)[1] ** 2 * p / 2

    near = min(score, _MIDDLE_LIMIT * least)
    able = [
        x
        for x in scores
        if near <= x < score and middle_noise * x**2 <= _LEAST_MIDDLE * tails.mean_square(x) * n
    ]
    return Limits(score, min(lengths or [1.0], key=error), max([near, *able]))


class Measured(NamedTuple):
    """A matrix and the variances of its entries."""

    matrix: FloatArray
    variance: FloatArray

    def with_other(self, other: Measured) -> Measured:
        """Average with another measurement, which counts less where it contradicts this one."""
        contradicted = np.square(self.matrix - other.matrix) - self.variance
        own, theirs = self.variance, np.maximum(other.variance, contradicted)
        kept = own / (own + theirs)
        return Measured(
            self.matrix + kept * (other.matrix - self.matrix), own * theirs / (own + theirs)
        )


def far_directions(matrix: FloatArray) -> FloatArray:
    """Return where far records lie: along the large directions of a matrix, with trace 1."""
    values, vectors = np.linalg.eigh(matrix)
    squares = np.square(np.maximum(values, 0.0)) + 1e-300
    return np.asarray((vectors * (squares / squares.sum())) @ vectors.T)


def sampling_error(middle: Measured, even: float) -> FloatArray:
    """Return the middle, averaged with that of even residuals, and nowhere far below it."""
    p = len(middle.matrix)
    flat = even * np.eye(p)
    own = np.maximum((_UNEVEN * even) ** 2, np.square(middle.matrix - flat) - middle.variance)
    found = flat + own / (own + middle.variance) * (middle.matrix - flat)
    values, vectors = np.linalg.eigh(found)
    return np.asarray((vectors * np.maximum(values, _LEAST_MIDDLE * even)) @ vectors.T)


def posterior_of(known: Known, prior: GaussianPrior) -> GaussianPosterior:
    """Return least squares with intervals, and a shrunk model for predictions."""
    assert known.tails is not None
    assert known.middle is not None
    n, p, tails, limits = known.n, len(known.mode), known.tails, known.limits
    beyond, (lost, lost_sd) = tails.beyond(limits.score, n), tails.taken(limits.length, n)
    score, curvature = _score(known, beyond, prior.design.intercept), _curvature(known, lost)
    cut, whole = tails.mean_square(limits.middle), tails.mean_square(limits.score)
    middle = sampling_error(known.middle, cut * n)
    middle += max(whole - cut, 0.0) * n * p * far_directions(middle)
    limits_take = beyond.variance * n * p * far_directions(curvature.matrix)
    back = known.matrix.T * known.target.deviation  # from parameters to coefficients of (1, x)
    equation = NoisyEquation(
        curvature.matrix,
        curvature.variance,
        score,
        known.score_variance * np.eye(p) + limits_take,
        middle,
        -known.mode,
        np.full(p, _FLAT),
        stretch=(lost_sd * n) ** 2 * p / 2,
    )
    level = np.eye(len(back))[0] * known.target.centre
    explained = _explained(known, known.mode + equation.estimate, curvature.matrix)
    explained *= known.target.deviation**2
    # scores are residuals times lengths, which are far below 1 where columns are sparse
    short = min(mean_square(tails.lengths.mean, tails.farthest_length) or 1.0, 1.0)
    seen = tails.mean_square(limits.score) / short
    hidden, far = _hidden(known, prior.design), known.target.farthest
    others = max(each.hidden(far) for each in (tails.positive, tails.negative))
    slopes = slopes_of(
        equation, known.mode, back, prior.design, explained, known.score_variance, _BELIEVED,
        hidden, others * far**2 / (seen * n),
    )  # fmt: skip
    weight = np.einsum("ij,jk,ik->i", hidden, np.linalg.inv(curvature.matrix), hidden)
    if slopes.outweighed.any():
        constant = int(prior.design.intercept)
        few = constant + np.flatnonzero(weight > OUTWEIGHED)
        open_ = _FLAT * known.target.deviation * known.first[few if len(few) else slice(None)]
        slopes = replace(slopes, privacy=slopes.privacy + open_.T @ open_, explained=None)
    most = _most(known)
    if seen > most:
        slopes = replace(slopes, explained=None)
    declared = prior.precision * back[1:].T @ back[1:]
    way, covariance = _shrunk(equation, known, declared, beyond.variance, prior.design)
    residual = prior.noise_variance
    if residual is None:
        # noise that is taken for far scores makes it up to 4000 times as large (`income`)
        residual = min(seen, most) * known.target.deviation**2
    return GaussianPosterior(
        back @ (known.mode + way) + level,
        back @ covariance @ back.T,
        residual,
        replace(slopes, mean=slopes.mean + level),
        _windows(known, prior.design, weight > OUTWEIGHED),
        n,
    )


def posterior_of_mode(known: Known, prior: GaussianPrior) -> GaussianPosterior:
    """Return the released mode, with a wide posterior: its error is not known."""
    level = np.zeros(known.matrix.shape[1])
    level[0] = known.target.centre
    mean = np.nan_to_num(known.matrix.T @ known.mode * known.target.deviation) + level
    flat = np.eye(len(level)) * known.target.deviation**2
    residual = known.target.deviation**2 if prior.noise_variance is None else prior.noise_variance
    windows = Windows.whole(prior.design.width)
    return GaussianPosterior(mean, flat, residual, None, windows, known.n)


def _score(known: Known, beyond: Beyond, intercept: bool) -> FloatArray:
    """Return the score plus the shrunken estimate of what its limit cut off the intercept."""
    if not intercept:
        return known.score
    constant = np.linalg.solve(known.turn, np.eye(len(known.score))[0])
    believed = beyond.uneven**3 / (beyond.uneven**2 + 2 * beyond.uneven_sd**2 + 1e-9)
    return np.asarray(known.score + believed * constant / np.linalg.norm(constant))


def _curvature(known: Known, lost: float) -> Measured:
    """Combine the curvatures of the last step and the shape; add what the length limits cut off."""
    assert known.tails is not None
    assert known.shape is not None
    assert known.curvature is not None
    n, p, turn = known.n, len(known.mode), known.turn
    squares, tails = turn @ turn, known.tails
    shortened = tails.taken(max(known.usual_length**2 / p * 0.8, 1.0) ** 0.5, n)[0]
    between = n * max(shortened - lost, 0.0)
    own = known.shape.variance[0, 0] / 2 * n**2  # of an entry off the diagonal
    outer = np.outer(np.diag(squares), np.diag(squares)) + squares**2
    earlier = Measured(n * turn @ known.shape.matrix @ turn, own * outer + between**2)
    both = known.curvature.with_other(earlier)
    taken = lost * p * n * far_directions(both.matrix)
    return Measured(both.matrix + taken, both.variance)


def _hidden(known: Known, design: Design) -> FloatArray:
    """Return records with one number at its farther bound, for as many as noise may hide."""
    assert known.tails is not None
    constant, numbers = int(design.intercept), int(design.numbers.sum())
    farthest = np.abs(known.first[constant : constant + numbers]).sum(axis=1)
    points = np.eye(len(known.first))[constant : constant + numbers] * farthest[:, None]
    points[:, :1] += constant
    turned = points @ known.turn
    sizes = np.linalg.norm(turned, axis=1) / math.sqrt(turned.shape[1])
    counts = np.array([known.tails.lengths.hidden(size) for size in sizes])
    return np.asarray(np.sqrt(counts)[:, None] * turned)


def _windows(known: Known, design: Design, outweighed: AnyArray) -> Windows:
    """Return where predictions change with numbers: not far beyond all that is seen.

    So it is with numbers of which hidden records may outweigh all others.
    """
    assert known.tails is not None
    windows, p = Windows.whole(design.width), len(known.mode)
    rows = int(design.intercept) + np.flatnonzero(outweighed)
    places = np.flatnonzero(design.numbers)[outweighed]
    units = known.first[rows, 1 + places]
    seen = _SEEN_TIMES * math.sqrt(p) * known.tails.lengths.farthest_seen
    reach = seen / (np.linalg.norm(known.turn[rows], axis=1) * units)
    middles = -known.first[rows, 0] / units
    low, high = np.maximum(middles - reach, -1.0), np.minimum(middles + reach, 1.0)
    windows.centres[places], windows.halves[places] = (low + high) / 2, (high - low) / 2
    return windows


def _most(known: Known) -> float:
    """Return the largest variance that the target may have, in squares of its deviation."""
    assert known.tails is not None
    return _MOST_EXPLAINED + _UNSEEN * known.tails.sd / known.n * known.target.farthest**2


def _explained(known: Known, w: FloatArray, matrix: FloatArray) -> float:
    """Return the variance of the fitted values, in deviations of the target."""
    mean = matrix @ np.linalg.solve(known.turn, np.eye(len(w))[0])
    return max(float(w @ matrix @ w) / known.n - (float(w @ mean) / known.n) ** 2, 0.0)


def _shrunk(
    equation: NoisyEquation, known: Known, declared: FloatArray, beyond: float, design: Design
) -> tuple[FloatArray, FloatArray]:
    """Return the way to the expected parameters, and their covariance, for predictions.

    A prior says that the features explain a usual share of the target's variance, and another that
    the mode errs by its noise and its ridge, and by as much more as the estimate is away from it
    beyond chance (DerSimonian and Laird 1986): a robust slope is not that of least squares where
    the relation bends far out (1 % of a column at its bound: R2 is -2.7 otherwise, of 0.11). The
    level may be as far from the mode as the score
    says, beyond chance: a robust centre is not the mean (a target that 3 % have: -7 % otherwise).
    """
    assert known.tails is not None
    assert known.target_place is not None
    n, p, mode = known.n, len(known.mode), known.mode
    values, vectors = np.linalg.eigh(equation.matrix)
    usual = (vectors * np.maximum(values, _LEAST_CURVATURE * n)) @ vectors.T * p / (n * _EXPLAINS)
    if not design.intercept:  # the mean is explained, too
        usual /= 1 + (known.target_place.centre / known.target.deviation) ** 2
    ridge = known.ridge / (n + known.ridge)
    error = known.mode_noise / (_INSIDE * n + known.ridge) ** 2 + ridge**2 * _EXPLAINED / p
    own = usual + declared
    inverse, moved = np.linalg.inv(equation.covariance), equation.estimate
    away = moved @ inverse @ moved - p - np.diag(inverse) @ error
    start = max(float(away / np.trace(inverse)), 0.0)
    before = own + np.diag(1 / (error + start + min(beyond / n, _BENT)))
    constant = np.linalg.solve(known.turn, np.eye(p)[0])
    mean, level = equation.matrix @ constant / n, before @ constant
    seen = float(mean @ equation.estimate) ** 2 - float(mean @ equation.covariance @ mean)
    free = max(seen, 0.0) * design.intercept
    prior = before - np.outer(level, level) * free / (1 + free * float(constant @ level))
    centre = prior @ np.linalg.solve(before, own @ mode)
    hidden = (
        _HIDDEN_LENGTHS * float(known.tails.lengths.noise.max()) * known.tails.farthest_length**2
    )
    equation = replace(equation, stretch=equation.stretch + hidden**2 * p / 2)
    way = np.zeros(p)
    for _ in range(_TURNS):
        weighted, precision = equation.weighted(way, np.outer(way, way), prior)
        after = np.linalg.solve(precision, weighted.T @ equation.right - centre)
        way = np.asarray((way + after) / 2)
    most = _most(known)
    while design.intercept and _explained(known, mode + way, equation.matrix) > most:
        way = vectors @ ((vectors.T @ (mode + way)) / (1 + np.maximum(values, 0.0) / n)) - mode
    return way, np.asarray(np.linalg.inv(precision))
