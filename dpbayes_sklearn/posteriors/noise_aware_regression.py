r"""Bayesian regression given moments with noise of known variance.

Released are, up to noise, the means :math:`m` and covariances :math:`C` of the coordinates and
their covariances :math:`g` with the target. The linear model says

.. math:: \tilde g = C w + \text{(sampling error)} + \text{(noise)}, \qquad
          \operatorname{Var} = \tfrac{\sigma^2}{n} C + v_g I + \operatorname{Var}(E_C w)

where :math:`E_C` is the remaining error of C. Plug-in inference takes :math:`\tilde C` for C and
inverts it, which is unstable. Here

1. **C is shrunk first**: every entry is averaged with a public guess (means of columns that fill
   their domain, covariances near zero) by inverse variance, so that the guess matters only where
   the noise is larger than what is known beforehand;
2. **the errors of C weigh the equations**: :math:`\operatorname{Var}(E_C w)` has entries
   :math:`v_{jk} w_j w_k` and, on the diagonal, :math:`\sum_k v_{jk} w_k^2`, averaged over the
   current belief about w. The belief and the weights are computed in turn until they agree;
3. **the prior knows the target's variance**: a priori a fixed share of it is explained. With much
   noise the belief falls back to the mean of the target.

As the noise vanishes all of this becomes the conjugate posterior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.statistics.moments import ReleasedMoments

__all__ = ["EXPLAINED", "Belief", "noise_aware_belief"]


# public guesses, on the scale of the bounds
EXPLAINED = 0.2  # share of the target's variance that the features explain
_CORRELATION = 0.25  # typical size of a correlation between two coordinates
_VARIANCE = 0.1  # of a number, and of the target: bounds are usually wide
_MOST_ROUNDS = 40


class Belief(NamedTuple):
    """Mean and covariance of (constant, coefficients), and the variance around the regression."""

    mean: FloatArray
    covariance: FloatArray
    noise: float


class Estimate(NamedTuple):
    """Values and the variances of their errors."""

    value: FloatArray
    variance: FloatArray

    def shrunk(self, guess: float | FloatArray, spread: float | FloatArray) -> Estimate:
        """Average with a guess of standard deviation ``spread`` by inverse variance."""
        noisy = self.variance > 0
        with np.errstate(divide="ignore"):
            ratio = np.divide(
                self.variance, np.square(spread), out=np.zeros(self.value.shape), where=noisy
            )
        kept = 1 / (1 + ratio)
        return Estimate(guess + kept * (self.value - guess), kept * self.variance)

    def at_least_half_its_error(self) -> Estimate:
        """Raise values that should be positive to half of their standard error."""
        return Estimate(np.maximum(self.value, np.sqrt(self.variance) / 2), self.variance)


class Centred(NamedTuple):
    """What is known of the moments around the means."""

    mean: Estimate
    covariance: Estimate
    cross: Estimate
    target_mean: Estimate
    target_variance: Estimate


def noise_aware_belief(
    released: ReleasedMoments, precisions: FloatArray, noise: float | None
) -> Belief:
    """Return the belief about (constant, coefficients) given noisy moments.

    Parameters
    ----------
    released : ReleasedMoments
    precisions : array of shape (width + 1,)
        Prior precisions.
    noise : float or None
        Variance of the target around the regression; learned if None.
    """
    known = _centred(released)
    w, spread, rest = _coefficients(
        known, precisions[1:] + _needed_precisions(known), released.n, noise
    )
    width = len(w)
    mean, covariance = np.zeros(width + 1), np.zeros((width + 1, width + 1))
    mean[1:], covariance[1:, 1:] = w, spread
    if released.design.intercept:  # constant = target's mean - m'w
        m = known.mean
        mean[0] = known.target_mean.value - m.value @ w
        covariance[0, 1:] = covariance[1:, 0] = -spread @ m.value
        covariance[0, 0] = (
            m.value @ spread @ m.value
            + known.target_mean.variance
            + rest / released.n
            + m.variance @ w**2
        )
    return Belief(mean, covariance, rest)


def _needed_precisions(known: Centred) -> FloatArray:
    """Return prior precisions under which the features explain a share of the target's variance.

    They are proportional to the standard deviations s_j of the coordinates: halfway between equal
    coefficients and coefficients that all explain the same.
    """
    s = np.sqrt(np.diag(known.covariance.value))
    needed: FloatArray = s * s.sum() / (EXPLAINED * known.target_variance.value)
    return needed


def _coefficients(
    known: Centred, precisions: FloatArray, n: int, noise: float | None
) -> tuple[FloatArray, FloatArray, float]:
    """Return mean and covariance of the coefficients and the unexplained variance."""
    c, errors = known.covariance
    g, g_errors = known.cross
    total = float(known.target_variance.value)
    w, spread = np.zeros(len(g)), np.diag(1 / precisions)
    rest = total if noise is None else noise
    least = max(float(np.sqrt(known.target_variance.variance)), 1e-6 * total)
    for _ in range(_MOST_ROUNDS):
        second = np.outer(w, w) + spread
        v = errors * second + rest / n * c
        v[np.diag_indices_from(v)] += errors @ np.diag(second) - np.diag(errors * second) + g_errors
        inverse_c = cho_solve(cho_factor(v, lower=True), c)
        spread = cho_solve(
            cho_factor(c @ inverse_c + np.diag(precisions), lower=True), np.eye(len(g))
        )
        new = spread @ (inverse_c.T @ g)
        if noise is None:
            rest = max(total - new @ c @ new - float(np.sum(c * spread)), least)
        step = np.abs(new - w).max(initial=0.0)
        w = (w + new) / 2  # damped: the weights depend on w themselves
        if step <= 1e-6 * (1 + np.abs(w).max(initial=0.0)):
            break
    return w, spread, rest


def _centred(released: ReleasedMoments) -> Centred:
    """Return shrunk means and covariances."""
    design, n = released.design, released.n
    gram = released.gram - released.increment * np.eye(len(released.gram))
    moment = Estimate(gram / n, released.variance / n**2)
    x, t = slice(1, -1), -1
    mean = Estimate(np.zeros(design.width), np.zeros(design.width))
    target_mean = Estimate(np.zeros(()), np.zeros(()))
    if design.intercept:
        mean = _shrunk_means(Estimate(moment.value[0, x], moment.variance[0, x]), released)
        target_mean = Estimate(np.clip(moment.value[0, t], -1, 1), moment.variance[0, t])
    m, m_error = mean
    tm, tm_error = target_mean
    cross = Estimate(
        moment.value[x, t] - m * tm,
        moment.variance[x, t] + m_error * tm**2 + m**2 * tm_error,
    )
    square = Estimate(moment.value[t, t] - tm**2, moment.variance[t, t] + 4 * tm**2 * tm_error)
    guess = min(_VARIANCE / released.window.half**2, 0.5)
    target_variance = square.shrunk(guess, guess).at_least_half_its_error()
    floor = np.finfo(float).tiny ** 0.25
    target_variance = Estimate(np.maximum(target_variance.value, floor), target_variance.variance)
    return Centred(
        mean, _shrunk_covariances(moment, mean, released), cross, target_mean, target_variance
    )


def _shrunk_means(mean: Estimate, released: ReleasedMoments) -> Estimate:
    """Guess columns that fill their domain: uniform numbers and signs, uniform Dirichlet levels."""
    design, k = released.design, released.design.n_values
    levels = design.levels
    guess = np.where(levels, 1 / k, 0.0)
    spread = np.where(levels, np.sqrt((k - 1) / (k + 1)) / k, np.sqrt(1 / 3))
    value, error = mean.shrunk(guess, spread)
    return Estimate(np.clip(value, np.where(levels, 0.0, -1.0), 1.0), error)


def _shrunk_covariances(moment: Estimate, mean: Estimate, released: ReleasedMoments) -> Estimate:
    """Shrink variances of numbers to a guess and correlations to zero; repair the eigenvalues."""
    design = released.design
    m, m_error = mean
    value = moment.value[1:-1, 1:-1] - np.outer(m, m)
    error = moment.variance[1:-1, 1:-1] + np.outer(m**2, m_error) + np.outer(m_error, m**2)
    own = Estimate(np.diag(value), np.diag(moment.variance)[1:-1] + 4 * m**2 * m_error)
    guess = _VARIANCE if design.intercept else 1 / 3
    numbers = own.shrunk(guess, guess)
    # the variance of a sign is 1 - m², of a level m - m²: known as well as the mean
    follows = np.where(design.signs, 1 - m**2, m - m**2 if design.intercept else own.value)
    own = Estimate(
        np.where(design.numbers, numbers.value, follows),
        np.where(design.numbers, numbers.variance, (2 * np.abs(m) + design.levels) ** 2 * m_error),
    ).at_least_half_its_error()
    size = np.sqrt(np.maximum(own.value, 1e-12))
    typical = (_CORRELATION if design.intercept else 1.0) * np.outer(size, size)
    same_column = design.column[:, None] == design.column
    shrunk = Estimate(value, error).shrunk(0.0, np.where(same_column, np.inf, typical))
    shrunk.value[np.diag_indices_from(value)] = own.value
    shrunk.variance[np.diag_indices_from(value)] = own.variance
    floor = min(2e-3, float(np.sqrt(shrunk.variance.mean()))) + 1e-10
    return Estimate(_eigenvalues_at_least(floor, shrunk.value), shrunk.variance)


def _eigenvalues_at_least(floor: float, matrix: FloatArray) -> FloatArray:
    values, axes = np.linalg.eigh(matrix)
    raised: FloatArray = (axes * np.maximum(values, floor)) @ axes.T
    return raised
