r"""What a release leaves: a mode, the law of its noise, and the curvature if it was paid for.

At the mode :math:`\tilde w` the gradient of the records, of the regulariser and of the noise add to
zero. With the curvature H of the loss and the score s at the true parameters :math:`w = \tilde w +
\delta`, to first order

.. math:: H\delta - \Lambda\tilde w = b + s, \qquad \operatorname{Var} b = V_b, \qquad
    \operatorname{Var} s = H.

The released H has noise, too: :class:`~dpbayes_sklearn.convex.intervals.NoisyEquation` solves such
an equation. The positive part of the matrix stands for the variance of s, and parameters have a
wide Gaussian prior.

A table names the effects, with their estimates, intervals and odds ratios.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, ndtri

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.convex.coefficients import CoefficientTable
from dpbayes_sklearn.convex.intervals import Effects, NoisyEquation
from dpbayes_sklearn.data.records import Table, quiet_numpy
from dpbayes_sklearn.logistic.blocks import BINS, WEIGHT_STEPS, Blocks
from dpbayes_sklearn.schema import Interval, Schema
from dpbayes_sklearn.schema.domains import YEAR

_PRIOR_SD = 10.0  # Prior standard deviation of a contrast: so wide that it seldom decides.


@dataclass(frozen=True)
class LogisticPosterior(ToArviz):
    """A released mode with what is known about its error: all public.

    Attributes
    ----------
    parameters : array of shape (p,)
        The mode, as contrasts of the blocks; the intercept is first.
    nodes : array of shape (numbers, BINS + 1)
        The maps of the numbers.
    ridge, noise : arrays of shape (p,)
        The regulariser, and the variance of the noise in the gradient.
    scale : float
        What predictions multiply the mode by: it undoes the ridge, on average.
    curvature : array of shape (p, p), or (0, 0)
        The second derivatives of the loss at the mode, after noise; empty if not released.
    curvature_noise : array of the same shape
        Variance of the noise in every entry.
    draws : array of shape (n_draws, p)
        Released draws, of which ``parameters`` are the mean; none if the mode was released.
    """

    _parameter: ClassVar[str] = "coefficients"

    parameters: FloatArray
    nodes: FloatArray
    ridge: FloatArray
    noise: FloatArray
    scale: float
    curvature: FloatArray
    curvature_noise: FloatArray
    draws: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def mean(self) -> FloatArray:
        """Return the parameters that predictions are made with."""
        return self.scale * self.parameters

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return ``n`` draws of the parameters, one in each row.

        Of released draws, each is one of them. Of a mode without a released curvature, they vary as
        the noise does where the records tell nothing, which is more than the mode varies.
        """
        if len(self.draws):
            return np.asarray(self.draws[rng.integers(len(self.draws), size=n)])
        if not self.has_intervals:
            spread = np.sqrt(self.noise) / self.ridge
            return np.asarray(self.mean() + spread * rng.normal(size=(n, len(spread))))
        found = self._equation
        mean = self.parameters + found.estimate
        return rng.multivariate_normal(mean, found.covariance, size=n, method="cholesky")

    def fits(self, blocks: Blocks) -> bool:
        """Tell whether all arrays have the shapes and signs that a model needs."""
        p = blocks.parameters
        vectors = (self.parameters, self.ridge, self.noise)
        fits = all(each.shape == (p,) for each in vectors)
        squares = self.curvature.shape, self.curvature_noise.shape
        fits = fits and (self.draws.shape == (0, 0) or self.draws.shape[1:] == (p,))
        fits = fits and squares in {((p, p),) * 2, ((0, 0),) * 2}
        fits = fits and self.nodes.shape == (len(blocks.numbers), BINS + 1)
        ends = self.nodes[:, [0, -1]] == [0.0, 1.0] if fits else np.array(False)
        positive = bool((self.ridge > 0).all() and (self.noise >= 0).all())
        variances = bool((self.curvature_noise >= 0).all())
        matrices = (self.curvature, self.curvature_noise)
        symmetric = fits and all(np.array_equal(each, each.T) for each in matrices)
        ordered = bool(ends.all() and (np.diff(self.nodes) >= 0).all())
        return positive and variances and symmetric and ordered

    @property
    def has_intervals(self) -> bool:
        """Whether the curvature was released."""
        return bool(self.curvature.size)

    def effects(self, combinations: FloatArray, reach: float) -> Effects:
        """Return what is known about combinations of the true parameters.

        Parameters
        ----------
        combinations : array of shape (m, p)
        reach : float
            Standard deviations from the estimate to the ends of an interval.
        """
        found = self._equation.effects(combinations, reach)
        return found._replace(estimates=found.estimates + combinations @ self.parameters)

    @property
    def _equation(self) -> NoisyEquation:
        """The equation of the way from the mode to the true parameters."""
        values, vectors = np.linalg.eigh(self.curvature)
        return NoisyEquation(
            matrix=self.curvature,
            matrix_noise=self.curvature_noise,
            right=self.ridge * self.parameters,
            noise=np.diag(self.noise),
            sampling=(vectors * np.maximum(values, 0.0)) @ vectors.T,
            prior_mean=-self.parameters,
            prior_sd=np.full(len(self.parameters), _PRIOR_SD),
        )


def values_by_code(
    blocks: Blocks, posterior: LogisticPosterior
) -> tuple[float, tuple[FloatArray, ...]]:
    """Return the constant, and what every code of every column adds to the log odds."""
    coefficients = blocks.basis @ posterior.mean()
    parts = (coefficients[a:b] for a, b in pairwise(blocks.starts))
    values = (
        block.values(part) / WEIGHT_STEPS
        for block, part in zip(blocks.tables(posterior.nodes), parts, strict=True)
    )
    return float(coefficients[0]), tuple(values)


def spread_by_code(
    blocks: Blocks,
    posterior: LogisticPosterior,
    column: int,
    codes: npt.NDArray[np.intp],
    level: float,
) -> FloatArray:
    """Return the standard deviation of what some codes of a column add; NaN without curvature."""
    if not posterior.has_intervals:
        return np.full(len(codes), np.nan)
    block, start = blocks.tables(posterior.nodes)[column], blocks.starts[column]
    weights, rows = np.zeros((len(codes), blocks.width + 1)), np.arange(len(codes))
    weights[rows, start + block.left[codes]] = 1 - block.part[codes] / WEIGHT_STEPS
    weights[rows, start + block.left[codes] + 1] += block.part[codes] / WEIGHT_STEPS
    reach = float(ndtri((1 + level) / 2))
    return posterior.effects(weights[:, :-1] @ blocks.basis, reach).deviations


def answer_by_row(
    blocks: Blocks,
    posterior: LogisticPosterior,
    of: Callable[[FloatArray], AnyArray],
    table: Table,
) -> AnyArray:
    """Return ``of`` the log odds of every row; no row changes another, not even by rounding."""
    constant, values = values_by_code(blocks, posterior)
    z = np.full(table.n_rows, constant)
    with quiet_numpy():
        for rows, codes in blocks.chunks(table):
            for j, value in enumerate(values):
                z[rows] += value[codes[:, j]]
        return of(z)


def more_probable(classes: AnyArray, log_odds: FloatArray) -> AnyArray:
    """Return the second class where its odds are above one, otherwise the first."""
    return np.asarray(classes[(log_odds > 0).astype(np.intp)])


def probabilities(log_odds: FloatArray) -> FloatArray:
    """Return the probabilities of both classes."""
    return np.stack([expit(-log_odds), expit(log_odds)], axis=1)


def log_probabilities(log_odds: FloatArray) -> FloatArray:
    """Return the logarithms of the probabilities of both classes."""
    return np.stack([log_expit(-log_odds), log_expit(log_odds)], axis=1)


_MOST_LOG_ODDS = 700.0  # Logarithms of larger odds ratios do not fit a float.
_REFERENCE = 1  # Effects are compared with this knot: a third of the ranks lie below it.


class OddsRatio(NamedTuple):
    """One row: a difference of log odds, and the odds ratio that it is.

    ``sampling_sd`` and ``privacy_sd`` are the parts of ``sd`` that come from the records being a
    sample, and from the noise; their squares add up. Without intervals all but the estimate and its
    odds ratio are NaN.
    """

    name: str
    estimate: float
    sd: float
    low: float
    high: float
    odds_ratio: float
    odds_ratio_low: float
    odds_ratio_high: float
    sampling_sd: float
    privacy_sd: float


@dataclass(frozen=True, repr=False)
class OddsTable(CoefficientTable):
    """Effects on the log odds of the second class, with odds ratios, computed from the release."""

    title: ClassVar[str] = "Odds ratios"
    rows: tuple[OddsRatio, ...]  # type: ignore[assignment]

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each effect."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(OddsRatio._fields)).set_index("name")

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Rows as text, for printing."""
        shown = (1, 5) if self.no_intervals else (1, 2, 5, 6, 7, 8, 9)
        return [(row.name, *(f"{row[i]:.4g}" for i in shown)) for row in self.rows]

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns, for printing."""
        if self.no_intervals:
            return ("effect", "log odds", "odds ratio")
        ends = f"{100 * self.level:g} % from"
        return ("effect", "log odds", "sd", "odds ratio", ends, "to", "sampling", "privacy")


def odds_table(
    schema: Schema, blocks: Blocks, posterior: LogisticPosterior, level: float
) -> OddsTable:
    """Return the table of all effects.

    Categories are compared with the first one of their column. A number whose effect is linear has
    a slope per unit; with four knots it is compared at the knots, with the second one. The
    intercept is the log odds where all numbers are 0 (or at that knot) and all categories the
    first.
    """
    names, combinations = effects(schema, blocks, posterior.nodes)
    in_parameters = combinations @ blocks.basis
    if not posterior.has_intervals:
        values = in_parameters @ posterior.mean()
        nothing = np.full(len(values), math.nan)
        parts = (values, nothing, nothing, nothing)
    else:
        parts = posterior.effects(in_parameters, float(ndtri(0.5 + level / 2)))
    rows = tuple(
        _row(name, level, *map(float, numbers))
        for name, *numbers in zip(names, *parts, strict=True)
    )
    return OddsTable(rows, level, "" if posterior.has_intervals else _NO_INTERVALS)


_NO_INTERVALS = (
    "Estimates only: the curvature was not released. Set intervals=True to spend a part of epsilon "
    "on it."
)


def _row(
    name: str, level: float, estimate: float, sd: float, sampling: float, privacy: float
) -> OddsRatio:
    reach = float(ndtri(0.5 + level / 2)) * sd
    low, high = estimate - reach, estimate + reach
    ratio, least, most = (
        math.exp(min(max(each, -_MOST_LOG_ODDS), _MOST_LOG_ODDS)) for each in (estimate, low, high)
    )
    return OddsRatio(name, estimate, sd, low, high, ratio, least, most, sampling, privacy)


def knot_values(domain: Interval, nodes: FloatArray, knots: int) -> FloatArray:
    """Return the values of a number at its knots."""
    first, last = int(np.flatnonzero(nodes <= 0)[-1]), int(np.flatnonzero(nodes >= 1)[0])
    rising = np.arange(first, last + 1)
    place = np.interp(np.linspace(0.0, 1.0, knots), nodes[rising], rising)
    return np.asarray(domain.low + place * ((domain.high - domain.low) / BINS))


def effects(schema: Schema, blocks: Blocks, nodes: FloatArray) -> tuple[list[str], FloatArray]:
    """Return names, and for each the combination of weights (constant, blocks) that it is."""
    constant, names, rows = np.eye(blocks.width)[0], ["intercept"], [np.zeros(blocks.width)]
    maps = iter(nodes)
    for j, (name, domain) in enumerate(schema.columns.items()):
        units = np.eye(blocks.width)[blocks.starts[j] : blocks.starts[j + 1]]
        knots = blocks.knots(domain)
        if not isinstance(domain, Interval) or not knots:
            constant = constant + units[0]
            names += [f"{name}={label}" for label in [*blocks.levels(domain).names_of_codes()][1:]]
            rows += [*(units[1:] - units[0])]
            continue
        values = knot_values(domain, next(maps), knots)
        if knots == 2:
            slope = (units[1] - units[0]) / (values[1] - values[0])
            constant, middle = constant + units[0] - values[0] * slope, (units[0] + units[1]) / 2
            names.append(f"{name} (per year)" if domain.dates else str(name))
            rows.append(slope * YEAR if domain.dates else slope)
        else:
            middle = units[_REFERENCE]
            constant = constant + middle
            others = [k for k in range(knots) if k != _REFERENCE]
            at = [_shown(domain, value) for value in values]
            names += [f"{name} {at[k]} vs {at[_REFERENCE]}" for k in others]
            rows += [units[k] - middle for k in others]
        if domain.marks_missing:
            names.append(f"{name} missing")
            rows.append(units[knots] - middle)
    rows[0] = constant
    found = np.array(rows)
    return (names, found) if blocks.intercept else (names[1:], found[1:])


def _shown(domain: Interval, value: float) -> str:
    return str(np.datetime64(int(value), "s")) if domain.dates else f"{value:.4g}"


def linear_form(blocks: Blocks, posterior: LogisticPosterior) -> tuple[FloatArray, FloatArray]:
    """Return ``coef_`` of shape (1, n) and ``intercept_``: what predictions are made with.

    A number with a linear effect has its slope per unit, and every other weight (level, knot, bin,
    missing value) the log odds that it adds.
    """
    coefficients = blocks.basis @ posterior.mean()
    constant, parts, maps = coefficients[0], [], iter(posterior.nodes)
    for j, domain in enumerate(blocks.domains):
        own = coefficients[blocks.starts[j] : blocks.starts[j + 1]]
        if blocks.knots(domain) == 2 and isinstance(domain, Interval):
            low, high = knot_values(domain, next(maps), 2)
            slope = (own[1] - own[0]) / (high - low)
            constant += own[0] - slope * low
            own = np.append(slope, own[2:] - (own[0] - slope * low))
        elif blocks.knots(domain):
            next(maps)
        parts.append(own)
    return np.concatenate([*parts, []])[None], np.array([constant])
