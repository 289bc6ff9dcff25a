"""Names of the effects of a logistic regression, their estimates, intervals and odds ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.logistic.blocks import BINS, Blocks
from dpbayes_sklearn.logistic.posterior import LogisticPosterior
from dpbayes_sklearn.regression.coefficients import CoefficientTable
from dpbayes_sklearn.schema import Interval, Schema

__all__ = ["OddsRatio", "OddsTable", "linear_form", "odds_table"]

_LARGEST = 700.0  # logarithms of odds ratios beyond do not fit a float
_REFERENCE = 1  # the knot that others are compared with: a third of the ranks lie below it


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
        math.exp(min(max(each, -_LARGEST), _LARGEST)) for each in (estimate, low, high)
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
            names.append(str(name))
            rows.append(slope)
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
