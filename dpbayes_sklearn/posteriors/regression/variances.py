r"""The posterior of the variance of a coordinate, given a noisy one: computed on a grid.

The prior is log-normal. It is centred at the spread that the shells told, if the column was
located; otherwise at what is usual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.posteriors.regression.centred import Centred

__all__ = ["VariancePosterior", "variance_posterior"]

_LEAST = 1e-7
_GRID = 600


@dataclass(frozen=True)
class VariancePosterior:
    """Probabilities of the same values for every coordinate.

    Attributes
    ----------
    values : array of shape (grid,)
    probabilities : array of shape (width, grid)
    """

    values: FloatArray
    probabilities: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Return the expected variance of every coordinate."""
        return np.asarray(self.probabilities @ self.values)

    @property
    def error(self) -> FloatArray:
        """Return the variance of the variance."""
        return np.asarray(self.probabilities @ self.values**2 - self.mean**2)

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Return quantiles of every variance, shape (width, levels)."""
        below = np.cumsum(self.probabilities, axis=1)
        logs = np.log(self.values)
        return np.exp([np.interp(levels, row, logs) for row in below]).reshape(-1, len(levels))


def variance_posterior(
    known: Centred, centre: float, width: float, loose: float
) -> VariancePosterior:
    """Return the posterior of every variance.

    Parameters
    ----------
    known : Centred
    centre, width : float
        Mean and standard deviation of the logarithm for a number that was not located, on the
        scale of the bounds; a width of infinity is a flat prior.
    loose : float
        Standard deviation of the logarithm about the located spread, beside its error.
    """
    design, own, error = known.design, np.diag(known.covariance), known.own_error
    log_c = np.linspace(np.log(_LEAST), 0.0, _GRID)
    centres, widths = np.full(design.width, centre), np.full(design.width, width)
    if known.numbers is not None:
        at = known.numbers
        centres[design.numbers] = 2 * (at.log_spread - np.log(at.half))
        widths[design.numbers] = np.hypot(2 * at.log_spread_sd, loose)
    log_p = -0.5 * ((log_c - centres[:, None]) / widths[:, None]) ** 2
    log_p[design.levels] = log_c  # a share between 0 and 1: flat
    gap = np.exp(log_c) - own[:, None]
    log_p = log_p - 0.5 * gap**2 / np.maximum(error, 1e-300)[:, None]
    weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return VariancePosterior(np.exp(log_c), weight / weight.sum(axis=1, keepdims=True))
