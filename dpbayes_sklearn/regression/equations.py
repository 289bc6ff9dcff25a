r"""The normal equations of released moments, with the errors of everything in them.

**The normal equations with the errors of everything in them.**

With the errors :math:`e` of the mean products, of the means and of the target's mean, the residual
of :math:`g = Cw` is, to first order,

.. math:: e_{jt} - \sum_k e_{jk} w_k - e_j \alpha_j - m_j\Big(e_t - \sum_k e_k w_k\Big), \qquad
          \alpha_j = \bar t - m^\top w + \beta_j w_j

(:math:`\beta_j` is the change of the square of j with j itself: 1 for a level, 0 for a number). So,
averaged over the belief about w with :math:`B = ww^\top + S`, its covariance V has

.. math:: \tfrac{\sigma^2}{n} C + \operatorname{diag}(v_g) + v_{jk}B_{jk} +
    [j = k]\sum_{l \ne j} v_{jl}B_{ll} + [j = k] v_j\alpha_j^2 +
    m_jm_k\Big(v_t + \sum_l v_l B_{ll}\Big) - q_jm_k - m_jq_k, \quad q = v_m w \alpha .

The belief :math:`S = (CV^{-1}C + \Lambda)^{-1}`, :math:`w = SCV^{-1}g` and the weights are computed
in turn until they agree to a small part of a standard deviation.

**Levels sum to one.** The levels of a column add up to the constant, so with their indicator
:math:`1_A` the exact :math:`C 1_A` and :math:`1_A^\top g` are 0, and a coefficient that all levels
share is part of the constant. (Without a constant the same is true of :math:`1_A - 1_B` for two
columns.) These directions are known, not uncertain: with :math:`\Pi` the projection orthogonal to
them, C and g are replaced by :math:`\Pi C\Pi` and :math:`\Pi g`, which loses nothing but noise, and
coefficients by :math:`w = \Pi E v`, where E leaves out the most frequent level of every column.
The equations for v have the matrix :math:`E^\top\Pi C\Pi E` and the covariance
:math:`E^\top\Pi V\Pi E`.

**The posterior of the variance of a coordinate, given a noisy one: computed on a grid.**

The prior is log-normal. It is centred at the spread that the histogram of distances told, if the
column was located; otherwise at what is usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dposv

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.regression.design import Design, Windows
from dpbayes_sklearn.regression.location import Located, Location
from dpbayes_sklearn.regression.moments import ReleasedMoments

_CLIPPED = 0.05  # Clipping may move the mean of a window by this much.
_CENTRED = 0.1  # A sign may be this far from the mean at which it was centred.
_USUAL_TARGET = 0.1  # Variance of a target on the scale of its bounds, if nothing better is known.


class Contrasts(NamedTuple):
    r"""Coefficients without those that are determined by others.

    Attributes
    ----------
    kept : array of int
        Coordinates that are not the most frequent level of their column.
    basis : array of shape (width, kept)
        The :math:`\Pi E`: coefficients of all coordinates are ``basis @ v``.
    projection : array of shape (width, width)
        The :math:`\Pi`.
    """

    kept: npt.NDArray[np.intp]
    basis: FloatArray
    projection: FloatArray

    @classmethod
    def of(cls, design: Design, frequency: FloatArray) -> Contrasts:
        """Return the contrasts of a design; ``frequency`` tells which level is the most frequent.

        >>> from dpbayes_sklearn.schema import Categories
        >>> found = Contrasts.of(Design((Categories([*"abc"]),)), np.array([0.2, 0.5, 0.3]))
        >>> found.kept, found.basis.round(2).tolist()
        (array([0, 2]), [[0.67, -0.33], [-0.33, -0.33], [-0.33, 0.67]])
        """
        columns = np.unique(design.column[design.levels])
        ones = (design.column == columns[:, None]).astype(np.float64)
        if not design.intercept:  # the first column's levels stand for the constant
            ones, columns = ones[:1] - ones[1:], columns[1:]
        levels = [np.flatnonzero(design.column == column) for column in columns]
        dropped = [places[np.argmax(frequency[places])] for places in levels]
        kept = np.setdiff1d(np.arange(design.width), dropped)
        axes, _ = np.linalg.qr(ones.T)
        projection = np.eye(design.width) - axes @ axes.T
        return cls(kept, projection[:, kept], projection)

    def reduced(self, matrix: FloatArray) -> FloatArray:
        """Return the part of a symmetric matrix that the kept coordinates have."""
        return matrix[np.ix_(self.kept, self.kept)]


class FirstStage(NamedTuple):
    r"""What a first stage tells about the moments of its residuals.

    A perturbed mode solves :math:`\sum x\psi(r) = \Lambda w - u` with noise u (``mode``), so that
    :math:`\Lambda w` is a second release of :math:`\sum x\psi(r)`: for residuals that seldom are
    beyond the limit of :math:`\psi`, of the products with the target.

    Attributes
    ----------
    coefficients : array of shape (width + 1,)
        Those of the first stage on the scale of the bounds, constant first.
    variance : float
        Of the target, on the scale of its bounds.
    products : array of shape (width + 1,), optional
        The :math:`\Lambda w` over n, with signs as they are: neither centred nor scaled.
    missing : float
        Variance of their errors by what is beyond the limit.
    noise : array of shape (width + 1,)
        Variances of their errors by u.
    """

    coefficients: FloatArray
    variance: float
    products: FloatArray | None = None
    missing: float = 0.0
    noise: FloatArray = np.zeros(1)

    def covariances(
        self, products: FloatArray, mean: FloatArray, windows: Windows, design: Design
    ) -> tuple[FloatArray, FloatArray]:
        """Return covariances with the residuals, and the variances of their noise.

        ``mean`` is that of the coordinates in their windows. The noise of a level is that of its
        difference from the others, as levels sum to one: its part of the constant's is left out.
        """
        signs, k = windows.of_signs(design), design.n_values
        mean = signs.centres + signs.halves * mean
        own = (products[1:] - mean * products[0]) / signs.halves
        noise = self.noise[1:].copy()
        among = design.levels & (k > 1)
        noise[among] = ((noise - self.noise[0] / k**2)[among]) / (1 - 1 / k[among])
        return own, noise / signs.halves**2


@dataclass(frozen=True)
class Centred:
    """Means, covariances and products with the target, and the variances of their noise."""

    design: Design
    n: int
    # mean, mean_error: (width,): 0 without an intercept: then nothing is centred.
    mean: FloatArray
    mean_error: FloatArray
    # target, target_error: Mean of the target.
    target: float
    target_error: float
    # covariance, error: (width, width): ``error`` is that of the mean products: 0 where they are
    # public, or known by the means.
    covariance: FloatArray
    error: FloatArray
    # cross, cross_error: (width,): covariances with the target; the errors are again those of the
    # mean products.
    cross: FloatArray
    cross_error: FloatArray
    # total, total_error: Variance of the target.
    total: float
    total_error: float
    places: Located | None
    # (width,): change of a coordinate's mean square with its mean, if that is all it depends on: 1
    # for a level, whose square is itself; 0 for numbers.
    square_slope: FloatArray
    contrasts: Contrasts  # The coefficients that are not determined by others.
    # (width,): coefficients of the model whose residuals the target is; 0 if it is none.
    baseline: FloatArray
    explainable: float  # Variance of the target itself.
    # (width,): covariances with the target as a first stage tells them, and the variances of their
    # noise.
    first: tuple[FloatArray, FloatArray] | None

    @property
    def own_error(self) -> FloatArray:
        """Variance of the errors of the variances, those of the means counted in."""
        slope, v = self.square_slope - 2 * self.mean, self.mean_error
        return np.asarray(np.diag(self.error) + slope**2 * v + 2 * v**2)

    @property
    def numbers(self) -> Location | None:
        """Where the numbers lie, if they were located."""
        return None if self.places is None else self.places.numbers

    def by_first(self, variances: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return mean and variance of the change to a first stage, by what it tells alone.

        So it would be if columns were not correlated and had these variances, but for numbers
        those of their spreads. It decides where noise hides the covariances.
        """
        if self.first is None:
            return None
        (own, error), variances = self.first, variances.copy()
        at, even = self.numbers, 1 / 3
        variances[self.design.numbers] = even if at is None else at.squares
        return own / variances, error / variances**2 + self.total / (self.n * variances)

    def with_constant(
        self, w: FloatArray, spread: FloatArray, own: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of (constant, coefficients): constant = target - m'w.

        ``own`` is the variance of the constant for given coefficients.
        """
        mean, covariance = np.append(0.0, w), np.zeros((len(w) + 1,) * 2)
        covariance[1:, 1:] = spread
        if self.design.intercept:
            m = self.mean
            mean[0] = self.target - m @ w
            covariance[0, 1:] = covariance[1:, 0] = -spread @ m
            covariance[0, 0] = m @ spread @ m + own
        return mean, covariance

    def noise_of_constant(self, w: FloatArray, spread: FloatArray) -> float:
        """Return the variance of the constant that the noise of the means causes."""
        return float(self.target_error + self.mean_error @ (w**2 + np.diag(spread)))


def centred(
    released: ReleasedMoments,
    places: Located | None,
    first: FirstStage | None = None,
) -> Centred:
    """Return means and covariances of released moments, and of the first stage before them."""
    design, n, x, t = released.design, released.n, slice(1, -1), -1
    gram = (released.gram - released.increment * np.eye(len(released.gram))) / n
    noise = released.variance / n**2
    mean, mean_error = np.zeros(design.width), np.zeros(design.width)
    target = target_error = 0.0
    if design.intercept:
        mean, mean_error = _means(gram[0, x], noise[0, x], design, places)
        at = None if places is None else places.target
        target, target_error = _averaged(
            gram[0, t], noise[0, t], at.error[0] / at.half[0] if at else np.inf
        )
    covariance = gram[x, x] - np.outer(mean, mean)
    error = noise[x, x].copy()
    own, windows = np.diag(gram[x, x]).copy(), released.windows
    square_slope = np.where(design.signs, windows.square_slopes, 0.0)
    if design.intercept:
        own[design.levels], square_slope[design.levels] = mean[design.levels], 1.0
        own[design.signs] = windows.squares_of_signs(mean, 1)[design.signs]
    covariance[np.diag_indices_from(covariance)] = own - mean**2 - mean_error
    if design.intercept:  # a level's square is its sum: known by the means
        error[design.levels, design.levels] = 0.0
    usual = min(_USUAL_TARGET / released.window.half**2, 0.5)
    total_error = noise[t, t] + 4 * target**2 * target_error
    total = _positive(gram[t, t] - target**2 - target_error, total_error, usual)
    contrasts = Contrasts.of(design, own)
    cross, cross_error = gram[x, t] - mean * target, noise[x, t]
    baseline, explainable = np.zeros(design.width), total
    told = None
    if first is not None:
        half = released.window.half
        baseline = windows.from_bounds(first.coefficients[1:]) / half
        explainable = max(first.variance / half**2, total)
    if first is not None and first.products is not None:
        # what is beyond the limit is missing in proportion to a coordinate's deviation
        spread = np.diag(covariance) + np.sqrt(np.diag(noise)[x] + mean_error)
        own, by_noise = first.covariances(first.products, mean, windows, design)
        told, error_of_own = (own, by_noise), first.missing * np.clip(spread, 0.0, 1.0) + by_noise
        kept = error_of_own / (error_of_own + cross_error)
        cross, cross_error = kept * cross + (1 - kept) * own, kept * cross_error
    covariance = contrasts.projection @ covariance @ contrasts.projection
    return Centred(
        design,
        n,
        mean,
        mean_error,
        float(target),
        float(target_error),
        covariance,
        error,
        contrasts.projection @ cross,
        cross_error,
        total,
        float(total_error),
        places,
        square_slope,
        contrasts,
        baseline,
        explainable,
        told,
    )


def _averaged(value: float, error: float, known: float) -> tuple[float, float]:
    """Average a mean in its window with the centre of the window, known to a deviation."""
    prior = known**2 + _CLIPPED**2
    kept = prior / (prior + error) if np.isfinite(prior) else 1.0
    return float(kept * np.clip(value, -1, 1)), float(kept * error)


def _means(
    value: FloatArray, error: FloatArray, design: Design, places: Located | None
) -> tuple[FloatArray, FloatArray]:
    """Average means with what is known: windows, or columns that fill their domain."""
    k, levels = design.n_values, design.levels
    guess = np.where(levels, 1 / k, 0.0)
    spread = np.where(levels, np.sqrt((k - 1) / (k + 1)) / k, np.sqrt(1 / 3))
    if places is not None and places.numbers is not None:
        at = places.numbers
        spread[design.numbers] = np.hypot(at.error / at.half, _CLIPPED)
    if places is not None and places.signs is not None:
        spread[design.signs] = _CENTRED
    with np.errstate(divide="ignore"):
        kept = 1 / (1 + error / np.maximum(spread, 1e-6) ** 2)
    mean = np.clip(guess + kept * (value - guess), np.where(levels, 0.0, -1.0), 1.0)
    return mean, kept * error


def _positive(value: float, error: float, guess: float) -> float:
    """Return a variance averaged with a guess of the same size, and not below half its error."""
    kept = guess**2 / (guess**2 + error)
    least = max(np.sqrt(kept * error) / 2, np.finfo(float).tiny ** 0.25)
    return float(max(guess + kept * (value - guess), least))


_MOST_ROUNDS = 40  # The equations are solved anew at most this many times.
_AGREE = 1e-4  # Iterations end when they agree to this many standard deviations.
_DEGREES = 4.0  # A prior with heavy tails has this many degrees of freedom.


class Solution(NamedTuple):
    """Mean and covariance of the coefficients, and the unexplained variance.

    ``evidence`` is the log density of g under a normal prior of all precisions, up to a constant.
    """

    w: FloatArray
    spread: FloatArray
    rest: float
    evidence: float


def solve(
    known: Centred,
    c: FloatArray,
    error: FloatArray,
    precisions: FloatArray,
    noise: float | None,
    heavy: FloatArray | None = None,
    alone: tuple[FloatArray, FloatArray] | None = None,
    coupled: FloatArray | None = None,
) -> Solution:
    """Return the belief about the coefficients, for covariances c with errors ``error``.

    Parameters
    ----------
    known : Centred
    c : array of shape (kept, kept)
        Covariances of the coordinates that are kept (`Contrasts`).
    error : array of shape (width, width)
    precisions : array of shape (width,)
        Of the prior.
    noise : float or None
        Variance of the target around the regression; learned if None.
    heavy : array of shape (width,), optional
        Precisions of a second prior, Student's with four degrees of freedom, found by EM.
    alone : pair of arrays of shape (width,), optional
        Mean and variance of the coefficients by a first stage alone (`Centred.by_first`).
    coupled : array of shape (width, width), optional
        Entries of the prior's precision matrix off its diagonal.
    """
    basis, total, identity = known.contrasts.basis, known.total, np.eye(len(c))
    g = known.cross[known.contrasts.kept]

    def inverse_prior(each: FloatArray) -> FloatArray:
        return divided((basis.T * each) @ basis, identity)[0]

    prior = first = precisions if heavy is None else precisions + heavy
    w, spread = np.zeros(len(basis)), basis @ inverse_prior(first) @ basis.T
    if known.baseline.any():  # which is near the answer: only what is left has an error in c
        spread = np.zeros_like(spread)
    rest = total if noise is None else noise
    centre, certain = (np.zeros(len(basis)),) * 2 if alone is None else (alone[0], 1 / alone[1])
    least = max(0.3 * float(np.sqrt(known.total_error)), 0.02 * total)
    last, part = np.inf, 1.0
    for _ in range(_MOST_ROUNDS):
        v = basis.T @ noise_of_residual(known, error, w, spread) @ basis + rest / known.n * c
        inverse_c, _ = divided(v, c)
        precision = c @ inverse_c + (basis.T * (prior + certain)) @ basis
        towards_prior = certain * centre - prior * known.baseline
        if coupled is not None:
            precision += basis.T @ coupled @ basis
            towards_prior = towards_prior - coupled @ known.baseline
        inner, _ = divided(precision, identity)
        contrast = inner @ (inverse_c.T @ g + basis.T @ towards_prior)
        spread, new = basis @ inner @ basis.T, basis @ contrast
        if heavy is not None:
            square = (known.baseline + new) ** 2 + np.diag(spread)
            student = (_DEGREES + 1) / (_DEGREES / heavy + square)
            prior = precisions + student
        if noise is None:
            left = total - contrast @ c @ contrast - 0.5 * float(np.sum(c * inner))
            rest = float(np.clip(left, min(least, total), total))
        deviations = np.sqrt(np.maximum(np.diag(spread), np.finfo(float).tiny))
        step = np.max(np.abs(new - w) / deviations, initial=0.0)
        if step > 0.7 * last:  # the weights depend on w themselves, so steps may go to and fro
            part = max(part / 2, 0.25)
        w, last = w + part * (new - w), step
        if step <= _AGREE:
            break
    if alone is not None:
        expected = 1 / first + alone[1]
        square = (known.baseline + centre) ** 2
        return Solution(w, spread, rest, -0.5 * float((square / expected + np.log(expected)).sum()))
    if known.baseline.any():  # what residuals leave says nothing about the variance of w
        return Solution(w, spread, rest, 0.0)
    expected, root = divided(v + c @ inverse_prior(first) @ c, g[:, None])
    evidence = -0.5 * float(g @ expected[:, 0]) - float(np.log(np.diag(root)).sum())
    return Solution(w, spread, rest, evidence)


def divided(matrix: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return matrix⁻¹ right and the Cholesky factor; the diagonal is raised if it has to be."""
    if not len(matrix):  # no coefficient is left
        return right, matrix
    diagonal = np.diag_indices_from(matrix)
    own, positive = matrix[diagonal], matrix.copy()
    size = float(np.abs(own).max(initial=0.0)) + 1e-300
    for raised in (1e-12, 1e-9, 1e-6, 1e-3, 1.0):
        positive[diagonal] = own + raised * size
        root, solution, failed = dposv(positive, right)
        if not failed:
            break
    return np.asarray(solution), np.asarray(root)


def noise_of_residual(
    known: Centred, error: FloatArray, w: FloatArray, spread: FloatArray
) -> FloatArray:
    """Return V without the sampling error."""
    m, mean_error, diagonal = known.mean, known.mean_error, np.diag_indices_from(error)
    second = np.outer(w, w) + spread
    squares = np.diag(second)
    alpha = known.target - m @ w + known.square_slope * w
    v = error * second
    v[diagonal] += error @ squares - np.diag(error) * squares
    v[diagonal] += known.cross_error + mean_error * alpha**2
    q = mean_error * w * alpha
    v += np.outer(m, m) * (known.target_error + mean_error @ squares)
    v -= np.outer(q, m) + np.outer(m, q)
    return v


def noise_of_rows(known: Centred, error: FloatArray, y: FloatArray, w: FloatArray) -> FloatArray:
    """Return y'Vy without the sampling error, for rows of y and of the w that V belongs to."""
    m, mean_error, squares, yw = known.mean, known.mean_error, w**2, y * w
    alpha = known.target - (w @ m)[:, None] + known.square_slope * w
    products = (yw @ error) * yw + (y**2 @ (error - np.diag(np.diag(error)))) * squares
    own = y**2 * (known.cross_error + mean_error * alpha**2)
    common = y @ m
    through_means = common * (known.target_error + squares @ mean_error)
    through_means -= 2 * (yw * alpha) @ mean_error
    return np.asarray((products + own).sum(axis=1) + common * through_means)


def eigenvalues_at_least(floor: float, matrix: FloatArray) -> FloatArray:
    """Return the matrix with its small eigenvalues raised."""
    values, axes = np.linalg.eigh(matrix)
    raised: FloatArray = (axes * np.maximum(values, floor)) @ axes.T
    return raised


_LEAST_GRID_VARIANCE = 1e-7  # The grid of possible variances begins here.
_VARIANCE_POINTS = 600  # The grid of possible variances has this many points.


@dataclass(frozen=True)
class VariancePosterior:
    """Probabilities of the same values for every coordinate."""

    values: FloatArray  # (grid,).
    probabilities: FloatArray  # (width, grid).

    @property
    def mean(self) -> FloatArray:
        """Return the expected variance of every coordinate."""
        return np.asarray(self.probabilities @ self.values)

    @property
    def error(self) -> FloatArray:
        """Return the variance of the variance."""
        return np.asarray(self.probabilities @ self.values**2 - self.mean**2)


def variance_posterior(
    known: Centred, centre: float, width: float, loose: float, within: float = 0.0
) -> VariancePosterior:
    """Return the posterior of every variance.

    The logarithm of the variance of a number that was not located has the prior mean ``centre`` and
    standard deviation ``width``, on the scale of the bounds; infinity is a flat prior. About a
    located spread it has the standard deviation ``loose``, beside the spread's error, and
    ``within`` is the mean of its difference from it.
    """
    design, own, error = known.design, np.diag(known.covariance), known.own_error
    log_c = np.linspace(np.log(_LEAST_GRID_VARIANCE), 0.0, _VARIANCE_POINTS)
    centres, widths = np.full(design.width, centre), np.full(design.width, width)
    if known.numbers is not None:
        at = known.numbers
        centres[design.numbers] = 2 * (at.log_spread - np.log(at.half)) + within
        widths[design.numbers] = np.hypot(2 * at.log_spread_sd, loose)
    log_p = -0.5 * ((log_c - centres[:, None]) / widths[:, None]) ** 2
    log_p[design.levels] = log_c  # a share between 0 and 1: flat
    gap = np.exp(log_c) - own[:, None]
    log_p = log_p - 0.5 * gap**2 / np.maximum(error, 1e-300)[:, None]
    weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return VariancePosterior(np.exp(log_c), weight / weight.sum(axis=1, keepdims=True))


EXPLAINED = 0.2
"""Public guess: the share of the target's variance that the features explain."""


class Belief(NamedTuple):
    """Mean and covariance of (constant, coefficients), and the variance around the regression."""

    mean: FloatArray
    covariance: FloatArray
    noise: float
