"""A table of released coefficients: names, units, estimates and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from dpbayes_sklearn._presenting import Tabular
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.convex.design import MISSING, Design
from dpbayes_sklearn.convex.posterior import GaussianPosterior
from dpbayes_sklearn.convex.slopes import contrasts
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.domains import YEAR

# A 95 % interval of a normal variable reaches this many standard deviations.
_USUAL_REACH = float(ndtri(0.975))
_HOW = (
    "z and p test against 0; an interval holds what such a test does not reject. All of them, and "
    "sd, include the sampling error and the privacy noise."
)
_FEW = (
    "because a few records at the declared bounds, which the noise hides, might outweigh all "
    "others (declare tighter bounds)"
)
_LISTED = 5  # Coefficients that are not identified are named up to this number of them.


class Coefficient(NamedTuple):
    """One row: a slope per unit of its column, or the difference of a category from the first.

    The slope of a date is per year.

    Without an intercept, the categories of the first column that has any have the expected target
    instead, for the first categories of all other columns.

    ``x missing`` is the difference between records whose x is missing and records with x in the
    middle of its bounds.

    ``low`` and ``high`` are the smallest and the largest value that a test does not reject: they
    need not be equally far from the estimate, and are infinite if the noise leaves the coefficient
    unidentified. ``sd`` is the width of the 95 % interval over 3.92; ``sampling_sd`` and
    ``privacy_sd`` are the parts of it that come from the records being a sample, and from noise and
    clipping; their squares add up. ``z`` is the statistic of the test against 0, NaN if it is not
    identified. Without intervals all but the estimate are NaN.
    """

    name: str
    estimate: float
    sd: float
    low: float
    high: float
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


def two_sided(z: float) -> float:
    """Return the two-sided p-value of a standard normal statistic."""
    return float(2 * ndtr(-abs(z)))


@dataclass(frozen=True, repr=False)
class CoefficientTable(Tabular):
    """Coefficients with intervals that include the privacy noise, all computed from the release.

    Attributes
    ----------
    rows : tuple of Coefficient
    level : float
        Nominal coverage of the intervals.
    no_intervals : str
        Why there are estimates only; empty if there are intervals.
    outweighed : tuple of str
        Names of those that a few records at the declared bounds, which noise hides, may decide.
    """

    title: ClassVar[str] = "Coefficients"
    model: ClassVar[str] = "Linear regression"
    rows: tuple[Coefficient, ...]
    level: float
    no_intervals: str = ""
    outweighed: tuple[str, ...] = field(default=(), kw_only=True)

    def estimates(self, reason: str) -> CoefficientTable:
        """Return the table without intervals, and the reason why it has none."""
        rows = tuple(Coefficient(row.name, row.estimate, *[math.nan] * 6) for row in self.rows)
        return CoefficientTable(rows, self.level, reason)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Coefficient:
        return {row.name: row for row in self.rows}[name]

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each coefficient."""
        import pandas as pd

        names = ["coefficient", *Coefficient._fields[1:-1]]
        return pd.DataFrame([row[:-1] for row in self.rows], columns=names).set_index("coefficient")

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Rows as text, for printing."""
        last = 1 if self.no_intervals else 6
        return [(row.name, *(shown(value) for value in row[1:][:last])) for row in self.rows]

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns, for printing."""
        if self.no_intervals:
            return ("coefficient", "estimate")
        ends = (f"{100 * self.level:g} % from", "to")
        return ("coefficient", "estimate", "sd", *ends, "sampling", "privacy")

    @property
    def _title(self) -> str:
        return self.title

    @property
    def _body(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        return self.heads, self.cells

    @property
    def _notes(self) -> tuple[str, ...]:
        return (self.remark,) if self.remark else ()

    @property
    def remark(self) -> str:
        """Why intervals, or some of them, are missing; empty if none are."""
        if self.no_intervals:
            return self.no_intervals
        hidden = [row.name for row in self.rows if math.isinf(row.high - row.low)]
        noise = [name for name in hidden if name not in self.outweighed]
        both = {"because of the noise": noise, _FEW: self.outweighed}
        return " ".join(self._hidden(reason, names) for reason, names in both.items() if names)

    def _hidden(self, reason: str, names: Sequence[str]) -> str:
        if len(names) > _LISTED:
            return f"{len(names)} of {len(self)} are not identified, {reason}."
        return f"Not identified, {reason}: {', '.join(names)}."


def shown(value: float) -> str:
    """Return a number as text."""
    return f"{value:.4g}".replace("inf", "∞").replace("nan", "–")


@dataclass(frozen=True, repr=False)
class RegressionSummary(Tabular):
    """The table of coefficients with tests against 0, covariance, residual spread and R².

    Attributes
    ----------
    table : CoefficientTable
    covariance : array of shape (rows, rows)
        Joint covariance of the coefficients (of a logistic regression, of log odds), sampling error
        and privacy noise together, scaled to the ``sd`` of the table; NaN without intervals,
        infinite where nothing is identified.
    residual_deviation : float
        Standard deviation of the target around the regression; NaN of classes.
    r2 : float
        Share of the target's variance that the regression explains; NaN if nothing that
        was released tells it.
    n : int or None
        Number of records, if it is known: public, or released.
    guarantee : str
    """

    table: CoefficientTable
    covariance: FloatArray
    residual_deviation: float
    r2: float
    n: int | None
    guarantee: str

    def to_frame(self) -> Any:
        """Return a pandas data frame: the table, with z and its two-sided p-value."""
        frame = self.table.to_frame()
        frame["z"], frame["p"] = zip(*((row.z, row.p) for row in self.table.rows), strict=True)
        return frame

    @property
    def _title(self) -> str:
        return self.table.model

    @property
    def _body(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The table with z and p after the standard deviation, where other packages have them."""
        heads, cells = self.table.heads, self.table.cells
        if self.table.no_intervals:
            return heads, cells
        tests = [
            (f"{row.z:.2f}", f"{row.p:.3f}") if row.identified else ("–", "–")
            for row in self.table.rows
        ]
        both = [("z", "p"), *tests]
        heads, *cells = [
            (*own[:3], *test, *own[3:]) for own, test in zip([heads, *cells], both, strict=True)
        ]
        return heads, cells

    @property
    def _notes(self) -> tuple[str, ...]:
        spread = math.isfinite(self.residual_deviation)
        facts = [
            *([f"{self.n:,} records"] if self.n is not None else []),
            *([f"R² {self.r2:.3f}"] if math.isfinite(self.r2) else []),
            *([f"standard deviation of residuals {self.residual_deviation:.4g}"] if spread else []),
        ]
        how = () if self.table.no_intervals else (_HOW,)
        return (
            *self.table._notes,
            *how,
            *(["; ".join(facts) + "."] if facts else []),
            self.guarantee,
        )

    def __repr__(self) -> str:
        return f"{self._title}\n\n{super().__repr__()}"


def joint_covariance(
    design: Design, posterior: GaussianPosterior, table: CoefficientTable
) -> FloatArray:
    """Return the covariance of the rows of a table, with the variances that the table states."""
    _, combined = contrasts(design)
    combined = combined if design.intercept else combined[1:]
    with quiet_numpy():
        return scaled_covariance(combined @ posterior.believed[1] @ combined.T, table)


def scaled_covariance(covariance: FloatArray, table: CoefficientTable) -> FloatArray:
    """Return a covariance with the variances that a table states."""
    own = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    sds = np.array([row.sd for row in table.rows])
    with quiet_numpy():
        scaled: FloatArray = covariance * np.outer(sds / own, sds / own)
    return scaled


def coefficient_table(
    schema: Schema,
    design: Design,
    posterior: GaussianPosterior,
    target_half: float,
    target_centre: float,
    level: float,
    no_intervals: str = "",
) -> CoefficientTable:
    """Return the table of the slopes of a posterior, or of its estimates and why it has no more.

    Categories are compared with the first one of their column; the intercept is the expected
    target if all numbers are 0 and all categories are the first ones. Without an intercept, those
    of the first column that has any are such expected targets, one for each.
    """
    names, combined = named_contrasts(schema, design)
    mean, _ = posterior.believed
    values, growth = combined @ mean, np.full(len(names), math.nan)
    values[0] += target_centre / target_half
    sampling = privacy = growth
    if posterior.slopes is not None:
        growth = posterior.slopes.growth
        sampling, privacy = (
            np.maximum(np.einsum("ij,jk,ik->i", combined, each, combined), 0.0)
            for each in (posterior.slopes.sampling, posterior.slopes.privacy)
        )
    rows = tuple(
        _row(name, level, target_half, *map(float, numbers))
        for name, *numbers in zip(names, values, sampling, privacy, growth, strict=True)
    )
    domains = schema.columns.items()
    dates = {str(name) for name, d in domains if isinstance(d, Interval) and d.dates}
    rows = tuple(_per_year(row) if row.name in dates else row for row in rows)
    rows = rows if design.intercept else rows[1:]
    few = () if posterior.slopes is None else posterior.slopes.outweighed[-len(rows) :]
    table = CoefficientTable(
        rows, level, outweighed=tuple(row.name for row, own in zip(rows, few, strict=False) if own)
    )
    return table.estimates(no_intervals) if no_intervals else table


def _per_year(row: Coefficient) -> Coefficient:
    """Return the slope of a date per year instead of per second."""
    scaled = {field: YEAR * getattr(row, field) for field in row._fields[1:-1]}
    return row._replace(name=f"{row.name} (per year)", **scaled)


def _row(
    name: str,
    level: float,
    unit: float,
    value: float,
    sampling: float,
    privacy: float,
    growth: float,
) -> Coefficient:
    """Return a row of numbers that are given as multiples of ``unit``, and of its square."""
    variance = sampling + privacy
    if math.isnan(variance):  # its error is not known
        return Coefficient(name, unit * value, *[math.nan] * 6)
    half = _half_width(variance, growth, float(ndtri(0.5 + level / 2)))
    sd = _half_width(variance, growth, _USUAL_REACH) / _USUAL_REACH
    if math.isinf(half):  # an estimate would be that of the prior, or of the noise
        unknown = math.nan, math.inf, -math.inf, math.inf, math.nan, math.inf, math.nan
        return Coefficient(name, *unknown)
    # products, as powers of floats raise an error where products are infinite
    others = math.sqrt(max(sd * sd - sampling, 0.0))
    at_zero = variance + growth * value * value
    z = value / math.sqrt(at_zero) if at_zero > 0 else math.copysign(math.inf, value)
    z = math.nan if math.isinf(sd) else z
    ends = unit * (value - half), unit * (value + half)
    parts = unit * math.sqrt(sampling), unit * others
    return Coefficient(name, unit * value, unit * sd, *ends, *parts, z)


def _half_width(variance: float, growth: float, reach: float) -> float:
    """Return the t > 0 with t² = reach² (variance + growth t²), if there is one."""
    lead = 1 - reach**2 * growth
    return reach * math.sqrt(variance / lead) if lead > 0 else math.inf


def named_contrasts(schema: Schema, design: Design) -> tuple[list[str], FloatArray]:
    """Return names, and for each the combination of (constant, coordinates) that it is."""
    about, rows = contrasts(design)
    columns = [*schema.columns]
    names = ["intercept"]
    for feature, category in about[1:]:
        assert feature is not None
        column, domain = design.features[feature]
        name = str(columns[column])
        if isinstance(domain, Categories):
            assert category is not None
            name = _called(name, domain, category)
        names.append(name)
    return names, rows


def names_of_coef(schema: Schema, design: Design) -> tuple[str, ...]:
    """Return a name of every entry of ``coef_``: a number, a category, or missing values."""
    columns = [*schema.columns]
    return tuple(
        _called(columns[j], domain, k) if isinstance(domain, Categories) else columns[j]
        for j, domain in design.features
        for k in range(1 if domain.is_numeric else domain.n_values)
    )


def _called(name: str, domain: Categories, k: int) -> str:
    """Return the name of a category of a column, or of missing values."""
    if domain is MISSING:
        return f"{name} {'missing' if domain.values[k] else 'present'}"
    return f"{name}={domain.values[k]}"
