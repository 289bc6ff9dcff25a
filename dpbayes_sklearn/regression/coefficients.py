"""A table of released coefficients: names, units, estimates and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.regression.design import MISSING, Design
from dpbayes_sklearn.schema import Categories, Schema

__all__ = [
    "Coefficient",
    "CoefficientTable",
    "RegressionSummary",
    "coefficient_table",
    "contrasts",
]


_COLUMNS = ("coefficient", "estimate", "sd", "low", "high")


class Coefficient(NamedTuple):
    """One row: a slope per unit of its column, or the difference of a category from the first.

    Without an intercept, the categories of the first column that has any have the expected target
    instead, for the first categories of all other columns.

    ``x missing`` is the difference between records whose x is missing and records with x in the
    middle of its bounds. Without intervals, ``sd``, ``low`` and ``high`` are NaN.
    """

    name: str
    estimate: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class CoefficientTable:
    """Coefficients with intervals that include the privacy noise, all computed from the release.

    Attributes
    ----------
    rows : tuple of Coefficient
    level : float
        Nominal coverage of the intervals.
    no_intervals : str
        Why there are estimates only; empty if there are intervals.
    """

    rows: tuple[Coefficient, ...]
    level: float
    no_intervals: str = ""

    def estimates(self, reason: str) -> CoefficientTable:
        """Return the table without intervals, and the reason why it has none."""
        rows = tuple(Coefficient(row.name, row.estimate, *[math.nan] * 3) for row in self.rows)
        return CoefficientTable(rows, self.level, reason)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Coefficient:
        return {row.name: row for row in self.rows}[name]

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each coefficient."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(_COLUMNS)).set_index("coefficient")

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Rows as text, for printing."""
        shown = 1 if self.no_intervals else 4
        return [(row.name, *(f"{value:.4g}" for value in row[1:][:shown])) for row in self.rows]

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the columns, for printing."""
        if self.no_intervals:
            return _COLUMNS[:2]
        return ("coefficient", "estimate", "sd", f"{100 * self.level:g} % from", "to")

    def __repr__(self) -> str:
        lines = [self.heads, *self.cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        printed = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([*printed, *([self.no_intervals] if self.no_intervals else [])])

    def _repr_html_(self) -> str:
        return _html(self.heads, self.cells, self.no_intervals)


def _html(heads: tuple[str, ...], rows: list[tuple[str, ...]], why: str) -> str:
    def line(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in rows)
    caption = f"<caption>{escape(why)}</caption>" if why else ""
    return f"<table>{caption}<thead>{line(heads, 'th')}</thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, repr=False)
class RegressionSummary:
    """The table of coefficients with tests against 0, and what else a reader looks for.

    Attributes
    ----------
    table : CoefficientTable
    covariance : array of shape (rows, rows)
        Joint covariance of the coefficients, sampling error and privacy noise together; NaN without
        intervals.
    residual_deviation : float
        Standard deviation of the target around the regression.
    guarantee : str
    """

    table: CoefficientTable
    covariance: FloatArray
    residual_deviation: float
    guarantee: str

    def to_frame(self) -> Any:
        """Return a pandas data frame: the table, with z = estimate/sd and its two-sided p-value."""
        frame = self.table.to_frame()
        frame["z"] = frame["estimate"] / frame["sd"]
        frame["p"] = 2 * ndtr(-frame["z"].abs())
        return frame

    def _lines(self) -> list[str]:
        return [
            "Linear regression",
            self.guarantee,
            f"standard deviation of residuals: {self.residual_deviation:.4g}",
        ]

    def _tests(self) -> list[tuple[str, str]]:
        """Return z and p of every row as text."""
        z = [row.estimate / row.sd if row.sd else math.inf for row in self.table.rows]
        return [(f"{each:.2f}", f"{2 * ndtr(-abs(each)):.3f}") for each in z]

    def __repr__(self) -> str:
        head, *rows = repr(self.table).splitlines()
        if not self.table.no_intervals:
            head += "        z      p"
            rows = [f"{r}  {z:>7}  {p:>5}" for r, (z, p) in zip(rows, self._tests(), strict=True)]
        return "\n".join([*self._lines(), "", head, *rows])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{escape(line)}</div>" for line in self._lines())
        if self.table.no_intervals:
            return lines + self.table._repr_html_()
        rows = [(*own, *test) for own, test in zip(self.table.cells, self._tests(), strict=True)]
        return lines + _html((*self.table.heads, "z", "p"), rows, "")


def coefficient_table(
    schema: Schema,
    design: Design,
    mean: FloatArray,
    covariance: FloatArray,
    target_half: float,
    target_centre: float,
    level: float,
) -> CoefficientTable:
    """Return the table of a belief about (constant, coefficients) on the scale of the bounds.

    Categories are compared with the first one of their column; the intercept is the expected
    target if all numbers are 0 and all categories are the first ones. Without an intercept, those
    of the first column that has any are such expected targets, one for each.
    """
    names, combined = contrasts(schema, design)
    values = combined @ mean * target_half
    spread = np.einsum("ij,jk,ik->i", combined, covariance, combined)
    sds = np.sqrt(np.maximum(spread, 0.0)) * target_half
    values[0] += target_centre
    reach = float(ndtri(0.5 + level / 2))
    rows = zip(names, values, sds, values - reach * sds, values + reach * sds, strict=True)
    found = tuple(Coefficient(name, *map(float, numbers)) for name, *numbers in rows)
    return CoefficientTable(found if design.intercept else found[1:], level)


def contrasts(schema: Schema, design: Design) -> tuple[list[str], FloatArray]:
    """Return names, and for each the combination of (constant, coordinates) that it is."""
    centres, halves = design.scales
    rows, names = [np.eye(design.width + 1)[0]], ["intercept"]
    whole: range | None = None
    for j, (column, domain) in enumerate(design.features):
        name, places = [*schema.columns][column], 1 + np.flatnonzero(design.column == j)
        if not isinstance(domain, Categories):
            slope = np.zeros(design.width + 1)
            slope[places] = 1 / halves[j]
            rows[0] = rows[0] - centres[j] * slope
            rows.append(slope)
            names.append(str(name))
            continue
        signs = design.signs[places[0] - 1]
        units = np.zeros((domain.n_values, design.width + 1))
        units[:, places] = [[-1.0], [1.0]] if signs else np.eye(domain.n_values)
        if not design.intercept and whole is None:  # its levels stand for the constant
            whole = range(len(rows), len(rows) + domain.n_values)
            rows += [*units]
            names += [_called(name, domain, k) for k in range(domain.n_values)]
            continue
        for row in [0] if design.intercept else whole or []:
            rows[row] = rows[row] + units[0]
        rows += [unit - units[0] for unit in units[1:]]
        names += [_called(name, domain, k) for k in range(1, domain.n_values)]
    return names, np.array(rows)


def _called(name: str, domain: Categories, k: int) -> str:
    """Return the name of a category of a column, or of missing values."""
    if domain is MISSING:
        return f"{name} {'missing' if domain.values[k] else 'present'}"
    return f"{name}={domain.values[k]}"
