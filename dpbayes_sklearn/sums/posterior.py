r"""Released posteriors of means and rates, one of every column.

Columns follow an exponential family of one bounded statistic with a conjugate prior. A record x
enters a likelihood through :math:`T(x)`, which lies in a public interval, so n records enter it
through :math:`S = \sum T(x_i)`:

.. math:: \log p(x_1, \dots, x_n \mid \theta) = \eta(\theta)\,S - n A(\theta) + \text{const}.

Normal data of known variance have :math:`\eta = \theta/\sigma^2` for the mean θ, exponential,
Laplace and normal data have :math:`\eta = -\theta` for the rate, the inverse scale or the precision
θ (Dimitrakakis et al. 2014, Lemmas 3, 4 and 6, with a prior on the precision).

**What a release tells.** Let :math:`\ell(S)` be the log probability of what was released, which is
known for every S. Then S has the posterior :math:`\propto m(S) e^{\ell(S)}`, m being its marginal
density under the prior, and θ is a mixture of conjugate posteriors:

.. math:: E\theta = E\,\mu(S), \qquad \operatorname{Var}\theta = E\,v(S) + \operatorname{Var}\mu(S).

The released posterior is the member of the family with this mean and variance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import gamma, norm

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import FloatArray

_LATTICE_POINTS = 1001
"""Points of a lattice of sums."""

_LEFT_OUT_NATS = 45.0
"""Sums whose log weight is so much below the largest are left out."""

_SHARP_PART, _REFINED = 16, 12
"""A lattice is made finer, at most 12 times, while all weight is in a sixteenth of it."""


@dataclass(frozen=True)
class Family(ABC):
    """A prior of one parameter, and the range in which draws are made."""

    low: float
    high: float

    @abstractmethod
    def moments(self, n: int, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the posterior given the sum of the statistic."""

    @abstractmethod
    def log_evidence(self, n: int, total: FloatArray) -> FloatArray:
        """Return the log density of the sum under the prior, up to a constant."""

    @abstractmethod
    def natural(self, theta: FloatArray) -> FloatArray:
        """Return the natural parameter, which multiplies the sum."""

    @abstractmethod
    def log_terms(self, theta: FloatArray, n: int, temper: float) -> FloatArray:
        """Return the terms of a tempered log posterior that do not depend on the sum.

        The prior's mass of a point of the grid is among them.
        """

    @abstractmethod
    def grid(self, points: int) -> FloatArray:
        """Return public points from low to high."""

    def log_posterior(
        self, theta: FloatArray, n: int, total: FloatArray, temper: float
    ) -> FloatArray:
        """Return log weights of the points (..., J) for every sum (...,)."""
        slopes = temper * self.natural(theta)
        return np.asarray(total[..., None] * slopes + self.log_terms(theta, n, temper))


@dataclass(frozen=True)
class NormalFamily(Family):
    r"""Normal data of variance :math:`\sigma^2`, with a normal prior of their mean.

    >>> family = NormalFamily(0.0, 10.0, mean=5.0, variance=4.0, noise_variance=1.0)
    >>> [round(float(m), 3) for m in family.moments(4, np.array(24.0))]
    [5.941, 0.235]
    """

    mean: float
    variance: float
    noise_variance: float

    def moments(self, n: int, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        r""":math:`v = (1/v_0 + n/\sigma^2)^{-1}, \quad \mu = v\,(m_0/v_0 + S/\sigma^2)`."""
        precision = 1 / self.variance + n / self.noise_variance
        centre = (self.mean / self.variance + np.asarray(total) / self.noise_variance) / precision
        return centre, np.full_like(centre, 1 / precision)

    def log_evidence(self, n: int, total: FloatArray) -> FloatArray:
        r""":math:`S \sim N(n m_0,\; n\sigma^2 + n^2 v_0)`."""
        spread = n * self.noise_variance + n**2 * self.variance
        return np.asarray(-((total - n * self.mean) ** 2) / (2 * spread))

    def natural(self, theta: FloatArray) -> FloatArray:
        r""":math:`\eta = \theta/\sigma^2`."""
        return theta / self.noise_variance

    def log_terms(self, theta: FloatArray, n: int, temper: float) -> FloatArray:
        r""":math:`-\frac{(\theta - m_0)^2}{2v_0} - \tau\frac{n\theta^2}{2\sigma^2}`."""
        prior = -((theta - self.mean) ** 2) / (2 * self.variance)
        return np.asarray(prior - temper * n * theta**2 / (2 * self.noise_variance))

    def grid(self, points: int) -> FloatArray:
        """Evenly spaced."""
        return np.linspace(self.low, self.high, points)


@dataclass(frozen=True)
class GammaFamily(Family):
    r"""A rate, inverse scale or precision with the prior Gamma(shape, rate).

    ``weight`` is 1 for exponential and Laplace data, 1/2 for normal ones, whose statistic is half
    a square.

    >>> family = GammaFamily(0.1, 10.0, shape=2.0, rate=3.0, weight=1.0)
    >>> [float(m) for m in family.moments(8, np.array(2.0))]
    [2.0, 0.4]
    """

    shape: float
    rate: float
    weight: float

    def moments(self, n: int, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Those of Gamma(a + wn, b + S)."""
        inverse = 1 / (self.rate + np.asarray(total))
        shape = self.shape + self.weight * n
        return shape * inverse, shape * inverse**2

    def log_evidence(self, n: int, total: FloatArray) -> FloatArray:
        r""":math:`m(S) \propto S^{wn - 1} (b + S)^{-a - wn}`."""
        shape, sums = self.weight * n, np.maximum(total, math.ulp(self.rate))
        return np.asarray(
            (shape - 1) * np.log(sums) - (self.shape + shape) * np.log(self.rate + sums)
        )

    def natural(self, theta: FloatArray) -> FloatArray:
        r""":math:`\eta = -\theta`."""
        return -theta

    def log_terms(self, theta: FloatArray, n: int, temper: float) -> FloatArray:
        r""":math:`(a + \tau wn)\log\theta - b\theta`: the prior's mass grows with the spacing."""
        exponent = self.shape + temper * self.weight * n
        return np.asarray(exponent * np.log(theta) - self.rate * theta)

    def grid(self, points: int) -> FloatArray:
        """Evenly spaced in logarithms."""
        return np.geomspace(self.low, self.high, points)


def moments_given(
    family: Family,
    n: int,
    bounds: tuple[float, float],
    log_likelihood: Callable[[FloatArray], FloatArray],
) -> tuple[float, float]:
    """Return mean and variance of the parameter given a release.

    ``log_likelihood`` is that of the release for sums, which lie between ``bounds``; the lattice
    of sums is made finer around those that have weight.

    >>> family = NormalFamily(0.0, 1.0, mean=0.5, variance=0.25, noise_variance=0.01)
    >>> exact = moments_given(family, 100, (0.0, 100.0), lambda s: -1e6 * (s - 30.0) ** 2)
    >>> [round(x, 4) for x in exact], [round(float(x), 4) for x in family.moments(100, 30.0)]
    ([0.3001, 0.0001], [0.3001, 0.0001])
    """
    low, high = bounds
    for _ in range(_REFINED):
        sums = np.linspace(low, high, _LATTICE_POINTS)
        log_weight = family.log_evidence(n, sums) + log_likelihood(sums)
        inside = np.flatnonzero(log_weight > log_weight.max() - _LEFT_OUT_NATS)
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, _LATTICE_POINTS - 1)
        if last - first >= _LATTICE_POINTS // _SHARP_PART:
            break
        low, high = float(sums[first]), float(sums[last])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    centres, variances = family.moments(n, sums)
    centre = float(weight @ centres)
    return centre, float(weight @ (variances + (centres - centre) ** 2))


class SumsPosterior(ToArviz):
    """Independent laws of the parameters of d columns: normal, or Gamma if they are positive.

    Parameters
    ----------
    means, variances : array of shape (d,)
        Those of every parameter.
    slopes : array of shape (d,)
        Privacy loss for each unit by which a record's statistic changes.
    roundings : array of shape (d,)
        What rounding may add to the loss of any two different records: one step of the lattice.
    positive : bool, default=False
        Whether the laws are Gamma laws.
    joint : bool, default=False
        Whether losses of columns do not add up, but the largest counts.
    draws : array of shape (n_draws, d), optional
        What was drawn, if the release are draws.

    Examples
    --------
    >>> belief = SumsPosterior([10.0], [4.0], [0.1], [1e-7])
    >>> belief.credible_interval(0.95).round(1).tolist()
    [[6.1, 13.9]]
    """

    def __init__(
        self,
        means: npt.ArrayLike,
        variances: npt.ArrayLike,
        slopes: npt.ArrayLike,
        roundings: npt.ArrayLike,
        positive: bool = False,
        joint: bool = False,
        draws: npt.ArrayLike | None = None,
    ) -> None:
        self.means, self.variances, self.slopes, self.roundings = (
            np.array(values, dtype=float) for values in (means, variances, slopes, roundings)
        )
        shapes = {each.shape for each in (self.means, self.variances, self.slopes, self.roundings)}
        if len(shapes) != 1 or self.means.ndim != 1:
            raise ValueError(
                "Means, variances, slopes and roundings must be one number for each column."
            )
        finite = np.isfinite(self.means) & np.isfinite(self.variances)
        losses = (self.slopes >= 0) & (self.roundings >= 0)
        if not (finite & (self.variances > 0) & losses).all():
            raise ValueError(
                "The variances must be positive and finite, slopes and roundings not negative."
            )
        if positive and not (self.means > 0).all():
            raise ValueError("The means of positive parameters must be positive.")
        self.positive, self.joint = positive, joint
        self.draws: FloatArray | None = None if draws is None else np.array(draws, dtype=float)
        if self.draws is not None and (
            self.draws.shape != (len(self.draws), len(self.means)) or not len(self.draws)
        ):
            raise ValueError("Draws must be rows of one number for each column.")

    def __repr__(self) -> str:
        name = "Gamma" if self.positive else "Normal"
        pairs = zip(self.means, self.variances, strict=True)
        return f"{name}({', '.join(f'{m:.6g} ± {v**0.5:.3g}' for m, v in pairs)})"

    @property
    def _laws(self) -> Any:
        """The frozen laws of scipy, with the given means and variances."""
        if not self.positive:
            return norm(self.means, np.sqrt(self.variances))
        return gamma(self.means**2 / self.variances, scale=self.variances / self.means)

    def mean(self) -> FloatArray:
        """Return the mean of every parameter."""
        return self.means.copy()

    def variance(self) -> FloatArray:
        """Return the variance of every parameter."""
        return self.variances.copy()

    def credible_interval(self, level: float = 0.95) -> FloatArray:
        """Return the equal-tailed interval of every parameter, one row (low, high) each."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be a float in the range (0, 1). Got {level!r} instead.")
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.stack([self._laws.ppf(tail) for tail in tails], axis=1)

    def pdf(self, theta: npt.ArrayLike) -> FloatArray:
        """Return the density of every parameter at points whose last axis is the columns."""
        return np.asarray(self._laws.pdf(np.asarray(theta, dtype=float)))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return n independent draws, one in each row."""
        return np.asarray(self._laws.rvs((n, len(self.means)), random_state=rng))
