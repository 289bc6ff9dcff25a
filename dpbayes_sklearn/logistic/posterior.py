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
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import expit, log_expit, ndtri

from dpbayes_sklearn._presenting import ToArviz
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.convex.coefficients import (
    CoefficientTable,
    RegressionSummary,
    scaled_covariance,
    shown,
    two_sided,
)
from dpbayes_sklearn.convex.intervals import SURE, Effects, NoisyEquation
from dpbayes_sklearn.data.records import Table, quiet_numpy
from dpbayes_sklearn.logistic.blocks import BINS, WEIGHT_STEPS, Blocks
from dpbayes_sklearn.logistic.curvature import (
    PRIOR_SD,
    Bend,
    bend_of_classes,
    on_the_way,
    root,
    supposed_curvature,
)
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.domains import YEAR

_TURNED = 1e-6  # Axes are turned and sheared, which changes no volume but for rounding.
_ROUNDS = 2  # The sampling error is that at the estimate, which depends on it a little.


@dataclass(frozen=True)
class LogisticPosterior(ToArviz):
    """A released mode with what is known about its error: all public.

    Attributes
    ----------
    parameters : array of shape (p,), or (n_classes - 1, p) of three classes and more
        The mode, as contrasts of the blocks, and of the classes; the intercept is first.
    nodes : array of shape (numbers, BINS + 1)
        The maps of the numbers.
    ridge, noise : arrays of the same shape
        The regulariser, and the variance of the noise in the gradient.
    scale : float
        What predictions multiply the mode by: it undoes the ridge, on average.
    curvature : array of shape (p, p), or (0, 0)
        The second derivatives of the loss at ``point``, as a release tells them; empty if none did.
    curvature_noise : array of the same shape
        Variance of what is not known about every entry.
    axes : array of the same shape
        The coordinates of the curvature, and of what follows, as combinations of contrasts.
    moments, point : arrays of shape (2, p) and (p,), or (2, 0) and (0,)
        Variances and leans of the coordinates that released shares suggest, and where the
        curvature is.
    records : float
        Number of records that the variances are of; 0 if the curvature is that everywhere.
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
    axes: FloatArray
    moments: FloatArray
    point: FloatArray
    records: float
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
            return np.asarray(self.mean() + spread * rng.normal(size=(n, *spread.shape)))
        found = self._equation
        drawn = rng.multivariate_normal(found.estimate, found.covariance, size=n, method="cholesky")
        return np.asarray(self.parameters + drawn @ self.axes)

    def by_class(self, reference: int | None = None) -> tuple[LogisticPosterior, ...]:
        """Return effects on the log probability of every class, minus the reference's or mean.

        Of two classes, what they add to the log odds of the second. No curvature was released of
        more, so their parts have none.
        """
        if self.parameters.ndim == 1:
            return (self,)
        contrasts = class_contrasts(len(self.parameters) + 1)
        if reference is not None:
            contrasts = contrasts - contrasts[reference]
        return tuple(
            replace(
                self,
                parameters=each @ self.parameters,
                ridge=self.ridge[0],
                noise=each**2 @ self.noise,
            )
            for each in contrasts
        )

    def answers(self, z: FloatArray) -> FloatArray:
        """Return the log odds of rows; of three classes and more, one column for each."""
        return z[:, 0] if z.shape[1] == 1 else z

    def fits(self, blocks: Blocks, n_classes: int = 2) -> bool:
        """Tell whether all arrays have the shapes and signs that a model needs."""
        p, several = blocks.parameters, n_classes > 2
        vectors = (self.parameters, self.ridge, self.noise)
        fits = all(each.shape == ((n_classes - 1, p) if several else (p,)) for each in vectors)
        fits = fits and not (several and (self.has_intervals or len(self.draws)))
        squares = self.curvature.shape, self.curvature_noise.shape, self.axes.shape
        lines = self.moments.shape, self.point.shape
        fits = fits and (self.draws.shape == (0, 0) or self.draws.shape[1:] == (p,))
        known = squares, lines
        fits = fits and known in [(((k, k),) * 3, ((2, k), (k,))) for k in (p, 0)]
        fits = fits and abs(np.linalg.slogdet(self.axes)[1]) < _TURNED
        fits = fits and self.nodes.shape == (len(blocks.numbers), BINS + 1)
        ends = self.nodes[:, [0, -1]] == [0.0, 1.0] if fits else np.array(False)
        positive = bool((self.ridge > 0).all() and (self.noise >= 0).all())
        variances = bool((self.curvature_noise >= 0).all() and (self.moments[:1] >= 0).all())
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

        Of the releases in which noise hides the curvature, some look certain by chance, and most of
        these are wrong. So noise is compared with the curvature that is supposed, not only with the
        one that was released.

        Parameters
        ----------
        combinations : array of shape (m, p)
        reach : float
            Standard deviations from the estimate to the ends of an interval.
        """
        equation, turned = self._equation, combinations @ self.axes.T
        found = equation.effects(turned, reach)
        if self.records:
            way = 2 * (self.point - self._coefficients)
            about = on_the_way(self.moments, self.records, self._coefficients, way, self._bend)
            usual = replace(equation, matrix=about, bend=None).growth(turned)
            hidden = np.where(usual > SURE**-2, math.inf, 0.0)
            found = found._replace(by_prior=np.maximum(found.by_prior, hidden))
        own = combinations @ self.parameters
        return found._replace(
            estimates=found.estimates + own, low=found.low + own, high=found.high + own
        )

    def covariance(self, combinations: FloatArray) -> FloatArray:
        """Return the covariance of combinations of the parameters, near the estimate."""
        turned = combinations @ self.axes.T
        return np.asarray(turned @ self._equation.covariance @ turned.T)

    @property
    def _bend(self) -> Bend:
        """The expected second derivative of a record's loss in z."""
        return bend_of_classes

    @property
    def _variance(self) -> FloatArray:
        """The variance of the score where the curvature is."""
        return positive_part(self.curvature)

    @property
    def _coefficients(self) -> FloatArray:
        """The mode in coordinates."""
        return np.asarray(np.linalg.solve(self.axes.T, self.parameters), np.float64)

    @property
    def _equation(self) -> NoisyEquation:
        """The equation of the way from the mode to the true parameters, in coordinates."""
        w = self._coefficients
        law, loss, variance = (self.moments, self.records), self._bend, self._variance
        about = root(supposed_curvature(*law, self.point, loss)) if self.records else self.axes

        def bend(of: FloatArray) -> FloatArray:
            """Return how the curvature that is supposed here differs from that at the point."""
            return np.asarray(solve_triangular(about, root(of).T, trans=1, lower=True).T)

        equation = NoisyEquation(
            matrix=self.curvature,
            matrix_noise=self.curvature_noise,
            right=self.axes @ (self.ridge * self.parameters),
            noise=(self.axes * self.noise) @ self.axes.T,
            sampling=variance,
            prior_mean=-w,
            prior_sd=np.full(len(w), PRIOR_SD),
            bend=(lambda delta: bend(on_the_way(*law, w, delta, loss))) if self.records else None,
        )
        for _ in range(_ROUNDS if self.records else 0):
            there = bend(supposed_curvature(*law, w + equation.estimate, loss))
            sampling = there @ variance @ there.T
            equation = replace(equation, sampling=sampling)
        return equation


def positive_part(matrix: FloatArray) -> FloatArray:
    """Return a symmetric matrix without its negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def class_contrasts(n_classes: int) -> FloatArray:
    """Return orthonormal contrasts of classes, one in each column.

    >>> class_contrasts(3).round(2).tolist()
    [[0.71, 0.41], [-0.71, 0.41], [0.0, -0.82]]
    """
    return Blocks((Categories(range(n_classes)),), intercept=False).basis[1:]


def values_by_code(
    blocks: Blocks, posterior: LogisticPosterior
) -> tuple[float, tuple[FloatArray, ...]]:
    """Return the constant, and what every code of every column adds to the log odds."""
    coefficients = blocks.basis @ posterior.mean()
    parts = (coefficients[a:b] for a, b in pairwise(blocks.starts))
    values = (
        block.values(part) / WEIGHT_STEPS + block.known
        for block, part in zip(blocks.tables(posterior.nodes), parts, strict=True)
    )
    return float(coefficients[0]), tuple(values)


def reach_by_code(
    blocks: Blocks,
    posterior: LogisticPosterior,
    column: int,
    codes: npt.NDArray[np.intp],
    level: float,
) -> FloatArray:
    """Return half the width of intervals of what some codes of a column add; NaN if unknown."""
    if not posterior.has_intervals:
        return np.full(len(codes), np.nan)
    block, start = blocks.tables(posterior.nodes)[column], blocks.starts[column]
    weights, rows = np.zeros((len(codes), blocks.width + 1)), np.arange(len(codes))
    weights[rows, start + block.left[codes]] = 1 - block.part[codes] / WEIGHT_STEPS
    weights[rows, start + block.left[codes] + 1] += block.part[codes] / WEIGHT_STEPS
    reach = float(ndtri((1 + level) / 2))
    found = posterior.effects(weights[:, :-1] @ blocks.basis, reach)
    return reach * np.where(found.identified, found.deviations, math.inf)


def answer_by_row(
    blocks: Blocks, posterior: LogisticPosterior, of: Callable[[FloatArray], AnyArray], table: Table
) -> AnyArray:
    """Return ``of`` the log odds of every row; no row changes another, not even by rounding.

    Of three classes and more they have one column for each.
    """
    by_class = [values_by_code(blocks, each) for each in posterior.by_class()]
    z = np.empty((table.n_rows, len(by_class)))
    with quiet_numpy():
        for rows, codes in blocks.chunks(table):
            for own, (constant, values) in zip(z[rows].T, by_class, strict=True):
                own[:] = constant
                for j, value in enumerate(values):
                    own += value[codes[:, j]]
        return of(posterior.answers(z))


def more_probable(classes: AnyArray, log_odds: FloatArray) -> AnyArray:
    """Return the most probable class; of two that are equally so, the first."""
    if log_odds.ndim == 2:
        return np.asarray(classes[log_odds.argmax(axis=1)])
    return np.asarray(classes[(log_odds > 0).astype(np.intp)])


def probabilities(log_odds: FloatArray) -> FloatArray:
    """Return the probabilities of all classes."""
    if log_odds.ndim == 2:
        return np.exp(log_probabilities(log_odds))
    return np.stack([expit(-log_odds), expit(log_odds)], axis=1)


def log_probabilities(log_odds: FloatArray) -> FloatArray:
    """Return the logarithms of the probabilities of all classes."""
    if log_odds.ndim == 2:
        less = log_odds - log_odds.max(axis=1, keepdims=True)
        return np.asarray(less - np.log(_by_row_sum(np.exp(less)))[:, None])
    return np.stack([log_expit(-log_odds), log_expit(log_odds)], axis=1)


def _by_row_sum(values: FloatArray) -> FloatArray:
    """Add up columns one after the other: the same for every number of rows."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column
    return total


_MOST_LOG_ODDS = 700.0  # Logarithms of larger odds ratios do not fit a float.
_REFERENCE = 1  # Effects are compared with this knot: a third of the ranks lie below it.


class OddsRatio(NamedTuple):
    """One row: a difference of log odds, and the odds ratio that it is.

    ``sd`` is the width of the interval over that of a standard normal variable; ``sampling_sd`` and
    ``privacy_sd`` are the parts of it that come from the records being a sample, and from the
    noise; their squares add up. ``z`` is the statistic of the test against 0 that the end of the
    interval belongs to. Without intervals all but the estimate and its odds ratio are NaN. An
    effect that is not identified, because of the noise, has no estimate, and an infinite interval.
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
    z: float

    @property
    def identified(self) -> bool:
        """Whether the interval is bounded."""
        return math.isfinite(self.high - self.low)

    @property
    def p(self) -> float:
        """Two-sided p-value of the test against 0."""
        return two_sided(self.z)

    def shifted(self, by: float) -> OddsRatio:
        """Return the row of an effect that is larger by a known number."""
        reach = (self.high - self.low) / (2 * self.sd) if self.sd > 0 else math.nan
        numbers = (self.estimate, self.low, self.high)
        estimate, low, high = (number + by for number in numbers)
        parts = self.sd, self.sampling_sd, self.privacy_sd
        return _row(self.name, estimate, *parts, low, high, reach=reach)


@dataclass(frozen=True, repr=False)
class OddsTable(CoefficientTable):
    """Effects on the log odds of the second class, with odds ratios, computed from the release.

    Attributes
    ----------
    rows : tuple of OddsRatio
    level : float
        Nominal coverage of the intervals.
    no_intervals : str
        Why there are estimates only; empty if there are intervals.
    ranges : str
        Between which values effects are linear, where that is not between the bounds.
    """

    title: ClassVar[str] = "Odds ratios"
    model: ClassVar[str] = "Logistic regression"
    rows: tuple[OddsRatio, ...]  # type: ignore[assignment]
    ranges: str = ""

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each effect."""
        import pandas as pd

        rows, names = [row[:-1] for row in self.rows], OddsRatio._fields[:-1]
        return pd.DataFrame(rows, columns=list(names)).set_index("name")

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Rows as text, for printing."""
        places = [0, 4] if self.no_intervals else [0, 1, 4, 5, 6, 7, 8]
        numbers = ((row.name, row[1:]) for row in self.rows)
        return [(name, *(shown(own[i]) for i in places)) for name, own in numbers]

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns, for printing."""
        if self.no_intervals:
            return ("effect", "log odds", "odds ratio")
        ends = f"{100 * self.level:g} % from"
        return ("effect", "log odds", "sd", "odds ratio", ends, "to", "sampling", "privacy")

    @property
    def remark(self) -> str:
        """Why intervals, or some of them, are missing, and where effects are linear."""
        return " ".join(each for each in (super().remark, self.ranges) if each)


def class_odds_table(
    schema: Schema,
    blocks: Blocks,
    posterior: LogisticPosterior,
    level: float,
    labels: list[Any],
    reference: int,
) -> OddsTable:
    """Return the effects on the log odds of every class against one of them; no intervals."""
    rows, ranges = list[OddsRatio](), ""
    for c, own in enumerate(posterior.by_class(reference)):
        if c != reference:
            table = odds_table(schema, blocks, own, level)
            rows += [row._replace(name=f"{labels[c]}: {row.name}") for row in table.rows]
            ranges = table.ranges
    why = f"Estimates only, against {labels[reference]}: intervals need two classes."
    return OddsTable(tuple(rows), level, why, ranges)


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
    in_parameters, reach = combinations @ blocks.basis, float(ndtri(0.5 + level / 2))
    ranges = _ranges(schema, blocks, posterior.nodes)
    if not posterior.has_intervals:
        values = in_parameters @ posterior.mean()
        rows = (_row(name, float(value)) for name, value in zip(names, values, strict=True))
        return OddsTable(tuple(rows), level, _NO_INTERVALS, ranges)
    found = posterior.effects(in_parameters, reach)
    estimates = np.where(found.identified, found.estimates, math.nan)
    others = [np.where(found.identified, each, math.inf) for each in found[1:-1]]
    others[3] = np.where(found.identified, found.low, -math.inf)
    rows = (
        _row(name, *map(float, numbers), reach=reach)
        for name, *numbers in zip(names, estimates, *others, strict=True)
    )
    return OddsTable(tuple(rows), level, "", ranges)


_NO_INTERVALS = (
    "Estimates only: the curvature was not released. Set intervals=True to spend a part of epsilon "
    "on it."
)


def _row(
    name: str,
    estimate: float,
    sd: float = math.nan,
    sampling: float = math.nan,
    privacy: float = math.nan,
    low: float = math.nan,
    high: float = math.nan,
    *,
    reach: float = math.nan,
) -> OddsRatio:
    """Return a row; without intervals there is an estimate only."""
    near = estimate - low if estimate > 0 else high - estimate
    z = reach * estimate / near if near != 0 else math.copysign(math.inf, estimate)
    ratio, least, most = map(_odds, (estimate, low, high))
    return OddsRatio(name, estimate, sd, low, high, ratio, least, most, sampling, privacy, z)


def _odds(value: float) -> float:
    if not math.isfinite(value):
        return math.inf if value > 0 else 0.0 if value < 0 else value
    return math.exp(min(max(value, -_MOST_LOG_ODDS), _MOST_LOG_ODDS))


def _ranges(schema: Schema, blocks: Blocks, nodes: FloatArray) -> str:
    """Return between which values effects are linear, if these are not the bounds."""
    names, maps, found = [*schema.columns], iter(nodes), []
    for j in blocks.numbers:
        domain, own = blocks.domains[j], next(maps)
        assert isinstance(domain, Interval)
        low, high = knot_values(domain, own, blocks.knots(domain))[[0, -1]]
        if blocks.effects == "linear" and (low, high) != (domain.low, domain.high):
            found.append(f"{names[j]} from {_shown(domain, low)} to {_shown(domain, high)}")
    return f"Effects are linear within, and constant beyond: {', '.join(found)}." if found else ""


def logistic_summary(
    schema: Schema, blocks: Blocks, posterior: LogisticPosterior, table: OddsTable, guarantee: str
) -> RegressionSummary:
    """Return the table with tests against 0 and the covariance of its log odds."""
    covariance = np.full((len(table.rows),) * 2, math.nan)
    if posterior.has_intervals:
        combinations = effects(schema, blocks, posterior.nodes)[1] @ blocks.basis
        covariance = scaled_covariance(posterior.covariance(combinations), table)
    return RegressionSummary(table, covariance, math.nan, math.nan, None, guarantee)


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
    for j, (name, domain) in enumerate(zip(schema.columns, blocks.domains, strict=True)):
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
    """Return ``coef_`` and ``intercept_``, a row for every class: what predictions are made with.

    A number with a linear effect has its slope per unit, and every other weight (level, knot, bin,
    missing value) the log odds that it adds.
    """
    forms = [_linear_form(blocks, each) for each in posterior.by_class()]
    return np.stack([form for form, _ in forms]), np.array([constant for _, constant in forms])


def names_of_coef(schema: Schema, blocks: Blocks, nodes: FloatArray) -> tuple[str, ...]:
    """Return a name of every column of ``coef_``: a slope, a level, a knot or missing values."""
    names, maps = [], iter(nodes)
    for name, domain in schema.columns.items():
        knots = blocks.knots(domain)
        if not isinstance(domain, Interval) or not knots:
            names += [f"{name}={label}" for label in blocks.levels(domain).names_of_codes()]
            continue
        values = knot_values(domain, next(maps), knots)
        names += [name] if knots == 2 else [f"{name} at {_shown(domain, v)}" for v in values]
        names += [f"{name} missing"] * domain.marks_missing
    return tuple(names)


def _linear_form(blocks: Blocks, posterior: LogisticPosterior) -> tuple[FloatArray, float]:
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
    return np.concatenate([*parts, []]), constant
