"""Release of moments in the windows of target and columns, and of the residuals of a model.

Every choice here is made from the number of records, the columns' domains, epsilon, and what was
already released: never from the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.records import blas_for
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.regression import step_noise
from dpbayes_sklearn.regression.design import WHOLE_WINDOW, Design, Window, Windows
from dpbayes_sklearn.regression.equations import FirstStage, centred
from dpbayes_sklearn.regression.gram import GaussianGram, GramMatrix
from dpbayes_sklearn.regression.location import (
    Located,
    Location,
    decorrelated,
    located,
    located_residuals,
)
from dpbayes_sklearn.regression.mode import (
    CoefficientDraws,
    PerturbedStage,
    check_mode,
    first_stage,
    has_mode,
    posterior_of_draws,
    read_units,
    released_mode,
    shares_of,
)
from dpbayes_sklearn.regression.moments import (
    Block,
    Moments,
    ReleasedMoments,
    residual_block,
    target_block,
    weighted_block,
)
from dpbayes_sklearn.regression.posterior import (
    GaussianPosterior,
    GaussianPrior,
    predictive_belief,
)
from dpbayes_sklearn.regression.record_sums import EXCESS_LIMIT, Baseline, Predictive
from dpbayes_sklearn.regression.slopes import Weighted
from dpbayes_sklearn.regression.step_noise import (
    Shares,
    gaussian_records,
    weighted_rows,
    widening,
)
from dpbayes_sklearn.release import drawn_sample

_MOST_RESIDUALS = 40_000  # More residuals than this over epsilon say nothing new.
_RESIDUALS_AT = 3.5  # Residuals are clipped at this many standard deviations.
# Records times epsilon per column from which a mode is released, and from which moments follow.
_LEAST_MODE, _TWO_STAGES = 20, 600
_LEAST_MODE_IN_ALL, _FEW_COLUMNS = 80, 20  # So many in all are enough for so few columns.
# Records over the deviation of Gaussian noise of sensitivity 1, over the root of the columns.
_GAUSSIAN_TWO_STAGES = 120
# Windows are wider from this n times epsilon on: in all, and for each column. Wide windows are for
# intervals; with many columns they cost predictions more than they give.
_TWO_STAGES_WIDER_FROM, _WIDER_FROM_EACH = 2500.0, 500.0
_RESIDUALS_WIDER_FROM = 1000.0  # Windows of residuals are wider from this n times epsilon on.
_USUAL_TAIL = 0.03  # Standard deviation of the mean of what is clipped, in half windows.
# Share of the records whose residuals, or whose values in a column, may lie outside of a window.
# The former is over the root of n: its bias stays below half of the sampling error.
_RESIDUALS_OUTSIDE, _VALUES_OUTSIDE = 0.4, 0.002
_LEAST_REACH = 2.5  # A window reaches at least this many standard deviations.
# Prior standard deviation of the factor that residuals estimate: where the variance around a model
# is released with its moments, and where it is known roughly only.
_FACTOR_SD, _ROUGH_FACTOR_SD = 0.2, 0.5

GramBlock = GramMatrix | GaussianGram | Block
"""The products of a model, as they are released together."""


class Products(NamedTuple):
    """How the products of a model are released."""

    # Chooses entries and noise, given where target and columns lie.
    block: Callable[[Located], GramBlock]
    reach: float  # Windows are this factor wider than the narrowest ones.


def noisy_moments(
    statistics: Moments, shares: Shares, products: Products, noise: Noise
) -> tuple[NoisyMoments, Located]:
    """Release where target and columns lie, clip them there, then release their moments."""
    places = located(statistics, shares, noise, products.reach)
    statistics = statistics.knowing(places.share_known)
    return _in_windows(statistics, places, shares, shares.model, products, noise, shares.mean)


def _in_windows(
    statistics: Moments,
    places: Located,
    shares: Shares,
    share: Fraction,
    products: Products,
    noise: Noise,
    mean: Fraction = Fraction(0),
    baseline: Baseline | None = None,
) -> tuple[NoisyMoments, Located]:
    """Release the moments of target, or residuals, and columns; the target's mean again alone."""
    design, grid = statistics.design, shares.grid(statistics.design, statistics.n)
    block, windows = products.block(places), places.windows(design)
    exact = statistics.gram(grid, places.window, windows, block.norm, baseline)
    noisy = NoisyMoments.of(design, statistics.n_known, windows)
    sums = exact[block.rows, block.columns]
    noisy.put(block, *step_noise.add_noise(sums, block, grid, share, noise))
    if mean:
        alone = shares.step(target_block())
        noisy.put_mean(*step_noise.add_noise(exact[0, -1:], alone, grid, mean, noise))
    return noisy, replace(places, target_end=block.target_end)


def regression_posterior(
    statistics: Moments,
    prior: GaussianPrior,
    shares: Shares,
    products: Products,
    noise: Noise,
) -> GaussianPosterior:
    """Release moments, read them, and correct the variances by the residuals."""
    noisy, places = noisy_moments(statistics, shares, products, noise)
    statistics = statistics.knowing(places.share_known)
    asked = uneven(statistics, shares, noise)
    posterior = prior.update(noisy.released(places.window), places, uneven=asked)
    return scaled_by_residuals(posterior, statistics, shares, noise)


def release_mode(
    statistics: Moments, prior: GaussianPrior, budget: Budget, noise: Noise
) -> CoefficientDraws:
    """Read the units, release the mode, calibrate."""
    shares = shares_of(statistics, prior, budget)
    units = read_units(statistics, prior, shares, noise)
    statistics = statistics.knowing(units.share_known)
    mode = released_mode(statistics, prior, units, shares.model, noise, budget.delta)
    draws, n = mode.coefficients[None], statistics.n_known
    posterior = posterior_of_draws(draws, mode.law, units, prior, n)
    return scaled_by_residuals(posterior, statistics, shares, noise)


class Stages(Enum):
    """What is released of a model, by the number of records for each column."""

    MODE = "a perturbed mode only: too few records to tell single coefficients"
    MOMENTS = "moments"
    BOTH = "a first model, and the moments of its residuals"


def stages(statistics: Moments, prior: GaussianPrior, budget: Budget) -> Stages:
    """Return what is released, by public facts: n times epsilon, and over the number of columns.

    With less than 20 for each column there is nothing but the mean of the target to learn, which a
    mode of at most 20 columns also does better from 80 in all on. Below 600 for each column, or
    more if they have many levels, predictions by a mode are better, and moments beside it would
    hardly tell a coefficient from its noise. A mode needs a constant, and a search that is sure
    to end.
    """
    design, features = statistics.design, max(1, len(statistics.design.features))
    records = statistics.n * Fraction(budget.unit.equivalent(budget.epsilon))
    few = features <= _FEW_COLUMNS and records >= _LEAST_MODE_IN_ALL
    sought = design.intercept and has_mode(design) and prior.inference == "noise_aware"
    if not (sought and (few or records >= _LEAST_MODE * features)):
        return Stages.MOMENTS
    with suppress(ValueError):  # if there is no exact noise for a part of epsilon
        check_mode(statistics, Fraction(budget.epsilon) / 16, budget)
        enough = records >= _TWO_STAGES * features * by_levels(design)
        return Stages.BOTH if enough else Stages.MODE
    return Stages.MOMENTS


def by_levels(design: Design) -> float:
    r"""Return how many times more records two stages need: :math:`p^{3/2}/10d`, at least one.

    The noise of a product of d columns is in proportion to d, and p coefficients have p errors of
    products each, which add up to :math:`\sqrt p` times one of them.
    """
    free = design.width - len(np.unique(design.column[design.levels]))
    return max(1.0, math.sqrt(free) * free / (10 * max(1, len(design.features))))


def gaussian_stages(design: Design, n: int, shares: Shares, inference: str) -> Stages:
    """Return the same for Gaussian noise: by n over its deviation, and the root of the columns."""
    records = gaussian_records(shares.total, n, shares.unit) / max(1, len(design.features))
    enough = records >= _GAUSSIAN_TWO_STAGES**2 and inference == "noise_aware"
    return Stages.BOTH if enough else Stages.MOMENTS


class MomentsStage(NamedTuple):
    """A first stage of moments, with the variance of the target on the scale of its bounds."""

    baseline: Baseline
    variance: float

    def told(self, residuals: Location, within: Window) -> FirstStage:
        """Return what is known of the residuals' moments: nothing but where they begin."""
        return FirstStage(self.baseline.on_bounds, self.variance)


def moments_stage(
    statistics: Moments,
    prior: GaussianPrior,
    shares: Shares,
    products: Products,
    places: Located,
    noise: Noise,
) -> MomentsStage:
    """Release moments in the windows of target and columns, and read them for predictions."""
    noisy, at = _in_windows(statistics, places, shares, shares.first, products, noise)
    window, windows = places.window, noisy.windows
    with blas_for(statistics.design.width):
        known = centred(noisy.released(window), at)
        precisions, coupled = prior.precisions(window, windows)[1:], prior.coupled(window, windows)
        belief = predictive_belief(known, precisions, None, coupled)
    return MomentsStage(Baseline.of(belief.mean, window, windows), known.total * window.half**2)


def _narrowed(numbers: Location) -> Location:
    return numbers.narrowed(_VALUES_OUTSIDE, _LEAST_REACH)


def two_stages(
    statistics: Moments, prior: GaussianPrior, shares: Shares, products: Products, noise: Noise
) -> GaussianPosterior:
    r"""Release a model, then the moments of its residuals; the answer is their sum.

    The first model is a perturbed mode; with Gaussian noise, that of released moments. The
    residual's window is narrower than the target's by :math:`\sqrt{1 - R^2}`, and the error E
    of the covariances enters as :math:`E(w - w_0)` instead of Ew: it is of second order.

    *Privacy*: the mode has the proof in ``mode``, moments that in ``gram``. Given the first model,
    a residual is a function of one record: it is clipped, so the counts of distances, products and
    excess have the sensitivities that those of a target have. Each step is private given those
    before it, and the parts add up.
    """
    n, columns = statistics.n, len(statistics.design.features)
    records = n * float(shares.per_record)
    if shares.gaussian:
        square = columns * gaussian_records(shares.total, n, shares.unit)
        records = _TWO_STAGES / _GAUSSIAN_TWO_STAGES * math.sqrt(square)
    reach = widening(records, max(_TWO_STAGES_WIDER_FROM, _WIDER_FROM_EACH * columns))
    places = located(statistics, shares, noise, reach)
    statistics = statistics.knowing(places.share_known)
    if places.numbers is not None:
        places = replace(places, numbers=_narrowed(places.numbers))
    places, shares = decorrelated(statistics, places, shares, noise, reach, _narrowed)
    stage: PerturbedStage | MomentsStage
    if shares.gaussian:
        stage = moments_stage(statistics, prior, shares, products, places, noise)
    else:
        stage = first_stage(statistics, prior, shares.first, places, noise)
    farther = widening(records, _RESIDUALS_WIDER_FROM)
    baseline, residuals = located_residuals(statistics, stage.baseline, shares, noise, farther)
    residuals = residuals.narrowed(_RESIDUALS_OUTSIDE / math.sqrt(n), _LEAST_REACH)
    stage, places = stage._replace(baseline=baseline), replace(places, target=residuals)
    noisy, places = _in_windows(
        statistics, places, shares, shares.model, products, noise, baseline=baseline
    )
    within = places.window
    half = baseline.half * within.half
    released = noisy.released(Window(-half, half, 0.0))
    asked = uneven(statistics, shares, noise, places.windows(statistics.design))
    found = prior.update(released, places, stage.told(residuals, within), asked)
    if shares.mean:
        half = within.half * places.target_end  # records beyond it are scaled
        found = _with_tail(found, statistics, baseline, half, shares, noise)
    return scaled_by_residuals(found, statistics, shares, noise, _FACTOR_SD)


def _with_tail(
    found: GaussianPosterior,
    statistics: Moments,
    baseline: Baseline,
    half: float,
    shares: Shares,
    noise: Noise,
) -> GaussianPosterior:
    """Release the mean of what clipping takes of the residuals, and add it to the constant.

    It is averaged with 0, which it is near unless the residuals are skewed.
    """
    n, grid = statistics.n_known, shares.grid(statistics.design, statistics.n)
    sums = statistics.clipped_excess(baseline, half, grid)
    total, variance = step_noise.add_noise(
        sums, shares.step(target_block()), grid, shares.mean, noise
    )
    unit = EXCESS_LIMIT * half * baseline.half / n
    error, expected = unit**2 * float(variance[0]), (_USUAL_TAIL * half * baseline.half) ** 2
    kept = expected / (expected + error)
    constant = np.zeros(statistics.design.width + 1)
    constant[0] = kept * unit * total[0]
    return found.shifted(constant, kept * error)


Posterior = TypeVar("Posterior", bound=GaussianPosterior)


def scaled_by_residuals(
    posterior: Posterior,
    statistics: Moments,
    shares: Shares,
    noise: Noise,
    factor_sd: float = _ROUGH_FACTOR_SD,
) -> Posterior:
    """Release the mean squared standardised residual, and correct the variances by it.

    Standardised residuals are clipped at 3.5, or more with more data. Their mean square, which
    should be 1 and has this prior deviation, becomes the factor of all variances. Of very many
    records a sample is asked.
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
    believed = (seen * factor_sd**2 + error) / (factor_sd**2 + error)
    left = error * factor_sd**2 / (factor_sd**2 + error)
    # intervals lose more where a variance is too small than they gain where it is too large
    return posterior.scaled(max(believed, 0.01) + left)


def uneven(
    statistics: Moments, shares: Shares, noise: Noise, windows: Windows | None = None
) -> Callable[[GaussianPosterior], Weighted] | None:
    """Return what releases weighted residuals of a model, if they have a share of the budget.

    *Privacy*: the model is public. A record adds to every sum a number in [0, 1].
    """
    if not shares.uneven:
        return None

    def ask(model: GaussianPosterior) -> Weighted:
        design, n = statistics.design, statistics.n
        grid, block = shares.grid(design, n), weighted_block(design)
        every = max(1, -(-n // weighted_rows(n, len(block))))
        asked = statistics.about(drawn_sample(n, every, statistics.unit, noise))
        plain = Predictive(
            model.coefficients[:, None],
            model.noise_variance,
            _RESIDUALS_AT,
            model.windows if windows is None else windows,
        )
        sums = asked.weighted_residuals(plain, grid)
        return Weighted(*step_noise.add_noise(sums, shares.step(block), grid, shares.uneven, noise))

    return ask


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
