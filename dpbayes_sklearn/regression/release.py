"""Release of moments in the windows of target and columns, and of the residuals of a model.

Every choice here is made from the number of records, the columns' domains, epsilon, and what was
already released: never from the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.regression import step_noise
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.gram import GaussianGram, GramMatrix
from dpbayes_sklearn.regression.location import Located, located
from dpbayes_sklearn.regression.moments import (
    WHOLE_WINDOW,
    Moments,
    ReleasedMoments,
    Window,
    Windows,
)
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.regression.sensitivity import Block, residual_block, target_block
from dpbayes_sklearn.regression.shares import Shares
from dpbayes_sklearn.regression.step_noise import widening
from dpbayes_sklearn.release import drawn_sample

__all__ = [
    "NoisyMoments",
    "Products",
    "noisy_moments",
    "regression_posterior",
    "scaled_by_residuals",
]


_MOST_RESIDUALS = 40_000  # times 1/epsilon: more residuals say nothing new
_RESIDUALS_AT = 3.5  # standard deviations at which residuals are clipped
_DOUBT = 0.5  # prior standard deviation of the factor that residuals estimate

GramBlock = GramMatrix | GaussianGram | Block
"""The products of a model, as they are released together."""


class Products(NamedTuple):
    """How the products of a model are released.

    Attributes
    ----------
    block : callable
        Chooses entries and noise, given where target and columns lie.
    reach : float
        Windows are so many times as wide as they are at least.
    """

    block: Callable[[Located], GramBlock]
    reach: float


def noisy_moments(
    statistics: Moments, shares: Shares, products: Products, noise: Noise
) -> tuple[NoisyMoments, Located]:
    """Release where target and columns lie, clip them there, then release their moments."""
    design, n = statistics.design, statistics.n
    grid = shares.grid(design, n)
    places = located(statistics, shares, noise, products.reach)
    block = products.block(places)
    places, windows = replace(places, target_end=block.target_end), places.windows(design)
    exact = statistics.gram(grid, places.window, windows, block.norm)
    noisy = NoisyMoments.of(design, n, windows)
    sums = exact[block.rows, block.columns]
    noisy.put(block, *step_noise.add_noise(sums, block, grid, shares.model, noise))
    if shares.mean:
        alone = shares.step(target_block())
        noisy.put_mean(*step_noise.add_noise(exact[0, -1:], alone, grid, shares.mean, noise))
    return noisy, places


def regression_posterior(
    statistics: Moments,
    prior: GaussianPrior,
    shares: Shares,
    products: Products,
    noise: Noise,
) -> GaussianPosterior:
    """Release moments, read them, and correct the variances by the residuals."""
    noisy, places = noisy_moments(statistics, shares, products, noise)
    posterior = prior.update(noisy.released(places.window), places)
    return scaled_by_residuals(posterior, statistics, shares, noise)


Posterior = TypeVar("Posterior", bound=GaussianPosterior)


def scaled_by_residuals(
    posterior: Posterior, statistics: Moments, shares: Shares, noise: Noise
) -> Posterior:
    """Release the mean squared standardised residual, and correct the variances by it.

    Standardised residuals are clipped at 3.5, or more with more data. Their mean square, which
    should be 1, becomes the factor of all variances. Of very many records a sample is asked.
    """
    if not shares.residuals:
        return posterior
    n, grid = statistics.n, shares.grid(statistics.design, statistics.n)
    every = max(1, int(n * shares.per_record / _MOST_RESIDUALS))
    asked = statistics.about(drawn_sample(n, every, statistics.unit, noise))
    reach = _RESIDUALS_AT * widening(asked.n * float(shares.per_record))
    total, rows = asked.squared_residuals(posterior.as_predictive(reach), grid)
    sums, variances = step_noise.add_noise(
        np.array([total]), shares.step(residual_block()), grid, shares.residuals, noise
    )
    seen, error = reach**2 * float(sums[0]) / rows, reach**4 * float(variances[0]) / rows**2
    believed = (seen * _DOUBT**2 + error) / (_DOUBT**2 + error)
    left = error * _DOUBT**2 / (_DOUBT**2 + error)
    # intervals lose more where a variance is too small than they gain where it is too large
    return posterior.scaled(max(believed, 0.01) + left)


class NoisyMoments(NamedTuple):
    """Moments of which only the public entries are known, to be filled with noisy ones."""

    design: Design
    n: int
    windows: Windows
    gram: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, design: Design, n: int, windows: Windows | None = None) -> NoisyMoments:
        """Return moments without any entry, of coordinates in their windows."""
        size = design.width + 2
        within = Windows.whole(design.width) if windows is None else windows
        return cls(design, n, within, np.zeros((size, size)), np.zeros((size, size)))

    def put(self, block: GramBlock, sums: FloatArray, variance: FloatArray) -> None:
        """Fill a block and its mirror image, then what is public or known twice."""
        for matrix, values in ((self.gram, sums), (self.variance, variance)):
            matrix[block.rows, block.columns] = values
            matrix[block.columns, block.rows] = values
        self._put_public()
        self._put_levels()

    def put_mean(self, total: FloatArray, variance: FloatArray) -> None:
        """Average the target's sum with another release of it, by inverse variance."""
        value, error, own = float(total[0]), float(variance[0]), float(self.variance[0, -1])
        if own > 0 and error > 0:  # not if epsilon is so large that there is no noise
            kept = error / (own + error)
            value = kept * float(self.gram[0, -1]) + (1 - kept) * value
            error = kept * own
        self.gram[0, -1] = self.gram[-1, 0] = value
        self.variance[0, -1] = self.variance[-1, 0] = error

    def _put_public(self) -> None:
        """Put n for the constant, 0 for products of two levels, and squares of signs by their sums.

        The errors of the latter are those of the sums: inference counts them there.
        """
        design, x, signs = self.design, slice(1, -1), 1 + np.flatnonzero(self.design.signs)
        apart = (design.column[:, None] == design.column) & design.levels
        np.fill_diagonal(apart, False)
        for matrix, n in ((self.gram, float(self.n)), (self.variance, 0.0)):
            matrix[x, x][apart] = 0.0
            matrix[0, 0] = n
        squares = self.windows.squares_of_signs(self.gram[0, x], self.n)
        self.gram[signs, signs] = squares[design.signs]
        self.variance[signs, signs] = 0.0

    def _put_levels(self) -> None:
        """Average the sum of a level and the sum of its squares: a level's square is the level."""
        levels = 1 + np.flatnonzero(self.design.levels)
        values = np.stack([self.gram[0, levels], self.gram[levels, levels]])
        errors = np.stack([self.variance[0, levels], self.variance[levels, levels]])
        with np.errstate(divide="ignore"):
            weights = np.where(errors > 0, 1 / errors, 0.0)
        released = weights.sum(axis=0) > 0  # both are 0 where epsilon is so large that noise is
        weights[:, ~released] = 0.5
        average = (weights * values).sum(axis=0) / weights.sum(axis=0)
        error = np.where(released, 1 / weights.sum(axis=0), 0.0)
        for matrix, both in ((self.gram, average), (self.variance, error)):
            matrix[0, levels] = matrix[levels, 0] = matrix[levels, levels] = both

    def released(self, window: Window = WHOLE_WINDOW, increment: float = 0.0) -> ReleasedMoments:
        """Return the filled moments, of targets in their window."""
        raised = self.gram + increment * np.eye(len(self.gram))
        return ReleasedMoments(
            self.design, self.n, raised, self.variance, window, self.windows, increment
        )
