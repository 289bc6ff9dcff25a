"""Released posteriors of means and rates, one of every column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import gamma, norm

from dpbayes_sklearn._arviz import ToArviz
from dpbayes_sklearn._typing import FloatArray

__all__ = ["SumsPosterior"]


class SumsPosterior(ToArviz):
    """Independent laws of the parameters of d columns: normal, or Gamma if they are positive.

    Parameters
    ----------
    means, variances : array of shape (d,)
        Those of every parameter.
    slopes : array of shape (d,)
        Privacy loss for each unit by which a record's statistic changes.
    positive : bool, default=False
        Whether the laws are Gamma laws.
    joint : bool, default=False
        Whether losses of columns do not add up, but the largest counts.
    draws : array of shape (n_draws, d), optional
        What was drawn, if the release are draws.

    Examples
    --------
    >>> belief = SumsPosterior([10.0], [4.0], [0.1])
    >>> belief.credible_interval(0.95).round(1).tolist()
    [[6.1, 13.9]]
    """

    def __init__(
        self,
        means: npt.ArrayLike,
        variances: npt.ArrayLike,
        slopes: npt.ArrayLike,
        positive: bool = False,
        joint: bool = False,
        draws: npt.ArrayLike | None = None,
    ) -> None:
        self.means, self.variances, self.slopes = (
            np.array(values, dtype=float) for values in (means, variances, slopes)
        )
        shapes = {self.means.shape, self.variances.shape, self.slopes.shape}
        if len(shapes) != 1 or self.means.ndim != 1:
            raise ValueError("Means, variances and slopes must be one number for each column.")
        finite = np.isfinite(self.means) & np.isfinite(self.variances)
        if not (finite & (self.variances > 0) & (self.slopes >= 0)).all():
            raise ValueError("The variances must be positive and finite, the slopes not negative.")
        if positive and not (self.means > 0).all():
            raise ValueError("The means of positive parameters must be positive.")
        self.positive, self.joint = positive, joint
        self.draws: FloatArray | None = None if draws is None else np.array(draws, dtype=float)

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
