"""Statements about single coefficients: estimates under weak priors, and their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.convex.design import Design
from dpbayes_sklearn.convex.intervals import SURE, NoisyEquation
from dpbayes_sklearn.schema import Categories

# A 95 % interval of a normal variable reaches this many standard deviations.
_USUAL_REACH = float(ndtri(0.975))
_LOST = 0.1  # A combination is not identified if its variance is this part of the prior's.
_NOTHING = 1e-100  # Variance of a constant that a model does not have.
# Not identified, either, if hidden records may have so many times the information of all others
# (an age of 999 for 1 %: no interval of the slope holds otherwise, n = 20,000, epsilon = 0.5).
OUTWEIGHED = 2.0
# Or so many times the squared residuals of all others (a target that two in a thousand have: where
# none of them is seen, intervals are a hundredth as wide as those of least squares).
_SQUARES = 10.0
_BY_NOISE, _BY_FEW = 1.0, 2.0  # What stands for the growth of what is not identified, by reason.


class Contrast(NamedTuple):
    """What a row is about: a feature, and a category of it or None for a number.

    The feature is None for the constant.
    """

    feature: int | None
    category: int | None


def contrasts(design: Design) -> tuple[list[Contrast], FloatArray]:
    """Return the rows of a table: for each the combination of (constant, coordinates) that it is.

    Categories are compared with the first one of their column. Without an intercept, those of the
    first column that has any stand for the constant.
    """
    centres, halves = design.scales
    rows, about = [np.eye(design.width + 1)[0]], [Contrast(None, None)]
    whole: range | None = None
    for j, (_, domain) in enumerate(design.features):
        places = 1 + np.flatnonzero(design.column == j)
        if not isinstance(domain, Categories):
            slope = np.zeros(design.width + 1)
            slope[places] = 1 / halves[j]
            rows[0] = rows[0] - centres[j] * slope
            rows.append(slope)
            about.append(Contrast(j, None))
            continue
        units = np.zeros((domain.n_values, design.width + 1))
        signs = design.signs[places[0] - 1]
        units[:, places] = [[-1.0], [1.0]] if signs else np.eye(domain.n_values)
        if not design.intercept and whole is None:
            whole = range(len(rows), len(rows) + domain.n_values)
            rows += [*units]
            about += [Contrast(j, k) for k in range(domain.n_values)]
            continue
        for row in [0] if design.intercept else whole or []:
            rows[row] = rows[row] + units[0]
        rows += [unit - units[0] for unit in units[1:]]
        about += [Contrast(j, k) for k in range(1, domain.n_values)]
    return about, np.array(rows)


@dataclass(frozen=True)
class Slopes:
    """Estimates of (constant, coefficients) under weak priors, and their errors."""

    mean: FloatArray  # (width + 1,).
    # (width + 1, width + 1): covariance of the error that the records have as a sample.
    sampling: FloatArray
    # (width + 1, width + 1): covariance of all other errors: noise, and what limits take.
    privacy: FloatArray
    # (rows,): how the variance of a row of `contrasts` grows if its value is away from the estimate
    # by t: by ``growth * t**2``. From 1/reach² on, every value passes the test.
    growth: FloatArray
    explained: float | None = None  # Variance of the fitted values, if it is known.

    @property
    def outweighed(self) -> AnyArray:
        """Which rows a few records at the bounds, which noise hides, may decide."""
        return np.asarray(self.growth == _BY_FEW)

    def identified(self, design: Design, column: int) -> bool:
        """Tell whether all rows of a column of the table have intervals."""
        about, _ = contrasts(design)
        features = [each.column == column for each in design.features]
        own = [c.feature is not None and features[c.feature] for c in about]
        return bool((self.growth[own] < _USUAL_REACH**-2).all())

    @classmethod
    def of(
        cls, mean: FloatArray, sampling: FloatArray, design: Design, explained: float | None = None
    ) -> Slopes:
        """Return estimates whose errors are normal, depend on nothing, and are of sampling."""
        rows = len(contrasts(design)[0])
        return cls(mean, sampling, np.zeros_like(sampling), np.zeros(rows), explained)


def slopes_of(
    equation: NoisyEquation,
    start: FloatArray,
    back: FloatArray,
    design: Design,
    explained: float,
    known_noise: float = 0.0,
    believed: float = math.inf,
    hidden: FloatArray | None = None,
    hidden_squares: float = 0.0,
) -> Slopes:
    """Return what an equation tells about every row of a table.

    Parameters
    ----------
    equation : NoisyEquation
        About the way from ``start`` to the parameters.
    start : array of shape (p,)
    back : array of shape (width + 1, p)
        From parameters to (constant, coefficients).
    design : Design
    explained : float
        Variance of the fitted values.
    known_noise, believed : float
        Beside noise of this variance, other errors of the equation at the end of an interval may
        be so many times the sampling error: otherwise a combination is not identified.
    hidden : array of shape (m, p), optional
        Records that noise may hide, each times the root of how often it may be there.
    hidden_squares : float
        Squared residuals that noise may hide, over all those that are seen.
    """
    combined = contrasts(design)[1] @ back
    delta = equation.estimate
    weighted, precision = equation.weighted(delta, np.outer(delta, delta))
    covariance = np.linalg.inv(precision)
    along = combined @ covariance
    variance = np.maximum(np.einsum("ij,ij->i", along, combined), _NOTHING)
    weights = along @ weighted.T  # of the equation's rows, in every estimate
    growth = equation.noise_of_matrix(weights, along) / variance**2
    sampling = np.einsum("ij,jk,ik->i", weights, equation.sampling, weights)
    far = _USUAL_REACH**2 * variance / np.maximum(1 - _USUAL_REACH**2 * growth, 1e-12)
    doubtful = equation.noise_of_matrix(weights, np.broadcast_to(delta, weights.shape))
    doubtful += np.einsum("ij,jk,ik->i", weights, equation.noise, weights)
    doubtful += growth * far - known_noise * np.square(weights).sum(axis=1)
    lost = variance + growth * far > _LOST * (np.square(combined) @ equation.prior_sd**2)
    lost |= growth > SURE**-2
    lost |= doubtful > believed * np.maximum(sampling, _NOTHING)
    growth[lost] = _BY_NOISE
    if hidden is not None:
        inverse = np.linalg.inv(equation.matrix)
        seen = np.einsum("ij,jk,ik->i", combined, inverse, combined)
        taken = np.square(combined @ inverse @ hidden.T).max(axis=1, initial=0.0)
        few = (taken > OUTWEIGHED * np.abs(seen)) | (hidden_squares > _SQUARES)
        few[0] |= few.any()  # the constant is the mean less every slope times a mean
        growth[few] = _BY_FEW
    read = covariance @ weighted.T
    sampled = read @ equation.sampling @ read.T
    return Slopes(
        back @ (start + delta),
        back @ sampled @ back.T,
        back @ (covariance - sampled) @ back.T,
        growth,
        explained,
    )
