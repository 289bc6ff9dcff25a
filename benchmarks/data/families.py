"""Families of simulated records for regressions: what columns and targets look like.

Values outside the public bounds are moved to the nearest end before anything else, so that least
squares of the records is least squares within the bounds.

Seven groups. ``older``: tame columns, wide bounds, levels, targets that are not normal.
``awkward``: tables on which intervals were found to be wrong. ``fresh``: no rule and no constant of
the library was chosen on them when they were written. ``sought``: tables on which intervals were
expected to fail (:mod:`~benchmarks.data.sought_families`). ``unseen``: written after the rules of
far bounds, and not looked at before. ``wide``: many columns. ``logistic``: classes for a logistic
regression, of which the truth is known. What is in ``CHOSEN_ON`` was looked at while rules were
chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpbayes_sklearn import Categories, Interval, Schema
from dpbayes_sklearn.schema.domains import YEAR

FloatArray = npt.NDArray[np.float64]
Rng = np.random.Generator
Bounds = tuple[float, float]


class Data(NamedTuple):
    """Features and target within public bounds, and whether the model has a constant.

    Where classes follow a logistic model, its coefficients are the truth.
    """

    X: pd.DataFrame
    y: FloatArray
    schema: Schema
    intercept: bool = True
    truth: FloatArray | None = None

    def rows(self) -> FloatArray:
        """Return what least squares is done with: a column for each row of ``coefficients()``."""
        columns: list[Any] = [np.ones(len(self.y))] if self.intercept else []
        for name, domain in self.schema.columns.items():
            values = self.X[name]
            if isinstance(domain, Categories):
                columns += [values == level for level in domain.values[1:]]
                continue
            seconds = (values - pd.Timestamp(0)).dt.total_seconds() / YEAR if domain.dates else None
            numbers = (values if seconds is None else seconds).to_numpy(float)
            columns.append(np.where(np.isnan(numbers), domain.middle, numbers))
            columns += [np.isnan(numbers)] if domain.marks_missing else []
        return np.column_stack(columns).astype(float)


Make = Callable[[int, Rng], Data]


class Family(NamedTuple):
    """A family, its group, and how wide intervals may be with 20,000 records and epsilon = 1."""

    make: Make
    group: str
    width: float


FAMILIES: dict[str, Family] = {}
TAME, SKEWED, SKEWED_TARGET = 1.3, 2.0, 3.5
"""Widths in units of least squares, by what is skewed: nothing, a column, or the target."""

CHOSEN_ON = (
    "hospital", "tight", "correlated", "rare_level", "long_tails", "three_columns", "log_normal",
    "growing", "square", "narrow", "six", "two_values", "proportional",
    "plain_classes", "strong_effects", "correlated_classes", "income_classes", "rare_level_classes",
    "twelve_level_classes",
    "code_999", "far_group", "log_normal_2", "saturating", "inflated_costs", "rarely_other",
    "far_origin", "sparse_columns", "doses", "few", "outliers", "nearly_constant", "steps", "heavy",
    "leverage", "visits", "far_target",
)  # fmt: skip
"""Families that rules were chosen on; all of the group ``awkward`` count besides."""


def seen(name: str) -> bool:
    """Return whether rules were chosen while looking at this family."""
    return name in CHOSEN_ON or FAMILIES[name].group == "awkward"


def family(group: str, width: float = TAME) -> Callable[[Make], Make]:
    """Add a family by the name of its function."""

    def added(make: Make) -> Make:
        FAMILIES[make.__name__] = Family(make, group, width)
        return make

    return added


def table(
    columns: dict[str, Any], bounds: dict[str, Any], y: Any, target: Bounds, intercept: bool = True
) -> Data:
    """Return records within their bounds; a number of levels stands for categories from 0."""
    domains: dict[str, Any] = {
        name: Categories(range(own)) if isinstance(own, int)
        else own if isinstance(own, Interval) else Interval(*own)
        for name, own in bounds.items()
    }  # fmt: skip
    X = pd.DataFrame(columns)[[*domains]]
    for name, domain in domains.items():
        if isinstance(domain, Interval) and not domain.dates:
            X[name] = X[name].clip(domain.low, domain.high)
    return Data(X, np.clip(y, *target), Schema(domains, target=Interval(*target)), intercept)


def numbers(x: FloatArray, w: Any, end: float, residuals: Any, target: Bounds) -> Data:
    """Return columns with the same bounds and a linear target; x is clipped first."""
    x, names = np.clip(x, -end, end), [f"x{i}" for i in range(x.shape[1])]
    columns = dict(zip(names, x.T, strict=True))
    return table(columns, dict.fromkeys(names, (-end, end)), x @ np.array(w) + residuals, target)


# Older ones -------------------------------------------------------------------------------------


@family("older")
def hospital(n: int, rng: Rng) -> Data:
    """Wide bounds: age and length of stay, and what they cost."""
    age, los = rng.normal(60, 15, n), rng.poisson(4, n)
    y = 2000 + 30 * age + 650 * los + rng.normal(0, 1500, n)
    return table({"age": age, "los": los}, {"age": (0, 110), "los": (0, 30)}, y, (0, 20_000))


@family("older")
def tight(n: int, rng: Rng) -> Data:
    """Return normal columns that fill their bounds."""
    return numbers(rng.normal(size=(n, 3)), [0.5, -0.3, 0.2], 3, rng.normal(0, 0.5, n), (-3, 3))


@family("older")
def uniform(n: int, rng: Rng) -> Data:
    """Uniform columns."""
    x = rng.uniform(-1, 1, (n, 3))
    return numbers(x, [0.25, -0.15, 0.1], 1, rng.normal(0, 0.2, n), (-1, 1))


@family("older")
def correlated(n: int, rng: Rng) -> Data:
    """Two columns with correlation 0.9."""
    a, b = rng.normal(size=(2, n))
    x = np.column_stack([a, 0.9 * a + 0.19**0.5 * b])
    return numbers(x, [1.0, -0.5], 5, rng.normal(size=n), (-8, 8))


@family("older", SKEWED)
def square(n: int, rng: Rng) -> Data:
    """Return a skewed column and its square."""
    a = np.minimum(rng.gamma(2, 2, n), 30)
    y = 0.3 * a - 0.01 * a**2 + rng.normal(size=n)
    return table({"a": a, "a2": a**2}, {"a": (0, 30), "a2": (0, 900)}, y, (-10, 10))


@family("older")
def rare_level(n: int, rng: Rng) -> Data:
    """Categories with a level of one percent."""
    g, x = rng.choice(4, n, p=[0.5, 0.3, 0.19, 0.01]), rng.normal(size=n)
    y = 0.5 * x + np.array([0, 0.5, -0.5, 1.5])[g] + rng.normal(size=n)
    return table({"x": x, "g": g}, {"x": (-4, 4), "g": 4}, y, (-6, 6))


@family("older")
def narrow(n: int, rng: Rng) -> Data:
    """Return a column whose spread is one percent of its bounds."""
    a, b = rng.normal(50, 2, n), rng.normal(size=n)
    y = a - 50 + b + rng.normal(0, 1.5, n)
    return table({"a": a, "b": b}, {"a": (0, 200), "b": (-5, 5)}, y, (-10, 10))


@family("older")
def six(n: int, rng: Rng) -> Data:
    """Six realistic columns under wide bounds, one of them skewed."""
    age = rng.normal(50, 15, n)
    X = {
        "age": age,
        "bmi": rng.normal(27, 4, n),
        "sbp": rng.normal(130, 18, n) + 0.3 * (age - 50),
        "crp": np.clip(rng.exponential(4, n), 0, 60),
        "visits": rng.poisson(3, n),
        "sex": rng.integers(0, 2, n),
    }
    effects = [7, 20, 3, 10, 50, 50]
    y = rng.normal(-500, 200, n) + np.column_stack([*X.values()]) @ effects
    ends = {"age": (0, 120), "bmi": (0, 80), "sbp": (0, 300), "crp": (0, 100), "visits": (0, 50)}
    return table(X, {**ends, "sex": 2}, y, (0, 3000))


@family("older", SKEWED)
def long_tails(n: int, rng: Rng) -> Data:
    """Columns with long tails, to one side or to both."""
    e, g, t = rng.exponential(1, n), np.exp(rng.normal(0, 0.6, n)), rng.standard_t(5, n)
    t = t.clip(-15, 15)
    y = 0.5 * e + 0.7 * g + 0.4 * t + rng.normal(size=n)
    ends = {"e": (0, 20), "l": (0, 20), "t": (-15, 15)}
    return table({"e": e, "l": g, "t": t}, ends, y, (-12, 24))


def _levels(columns: int) -> Make:
    """Return a family with so many columns of three categories, whose indicators sum to one."""

    def make(n: int, rng: Rng) -> Data:
        codes, x = rng.choice(3, (n, columns), p=[0.5, 0.3, 0.2]), rng.normal(size=n)
        effects = [(-1) ** j * (1 + 0.3 * j) for j in range(columns)]
        y = 0.5 * x + 0.5 * (codes - 1) @ effects + rng.normal(size=n)
        own = {f"g{j}": codes[:, j] for j in range(columns)}
        return table({"x": x, **own}, {"x": (-4, 4), **dict.fromkeys(own, 3)}, y, (-8, 8))

    return make


for _name, _columns in {"two_columns": 2, "three_columns": 3, "five_columns": 5}.items():
    FAMILIES[_name] = Family(_levels(_columns), "older", TAME)


def _pair(x: FloatArray, residuals: Any, target: Bounds, w: Any = (0.5, -0.3)) -> Data:
    """Return two columns in [-1, 1] and these residuals of a linear model."""
    return numbers(x, w, 1, 0.3 + residuals, target)


@family("older")
def two_values(n: int, rng: Rng) -> Data:
    """Return a target of two values that is linear in its columns."""
    x = rng.uniform(-1, 1, (n, 2))
    p = 0.3 + x @ np.array([0.2, -0.09])
    return _pair(x, (rng.random(n) < p) - p, (0, 1), (0.2, -0.09))


@family("older")
def exponential(n: int, rng: Rng) -> Data:
    """Exponential residuals."""
    return _pair(rng.uniform(-1, 1, (n, 2)), rng.exponential(1, n) - 1, (-4, 12))


@family("older", SKEWED_TARGET)
def log_normal(n: int, rng: Rng) -> Data:
    """Log-normal residuals."""
    residuals = np.exp(rng.normal(0, 0.8, n)) - np.exp(0.32)
    return _pair(rng.uniform(-1, 1, (n, 2)), residuals, (-4, 30))


@family("older")
def growing(n: int, rng: Rng) -> Data:
    """Residuals that are up to nine times as far from 0 where a column is large."""
    x = rng.uniform(-1, 1, (n, 2))
    return _pair(x, (1 + 0.8 * x[:, 0]) * rng.normal(size=n), (-8, 8))


@family("older", SKEWED)
def proportional(n: int, rng: Rng) -> Data:
    """Costs per day of stay: a skewed column, and residuals in proportion to it."""
    stay, age = rng.gamma(2, 2, n), rng.normal(60, 15, n)
    y = 1000 + 20 * age + 600 * stay + 250 * stay * rng.normal(size=n)
    return table({"age": age, "stay": stay}, {"age": (0, 110), "stay": (0, 60)}, y, (0, 40_000))


# Awkward ones -----------------------------------------------------------------------------------


@family("awkward")
def normal(n: int, rng: Rng) -> Data:
    """Return normal columns in bounds of five deviations, one without an effect."""
    return numbers(rng.normal(size=(n, 3)), [0.5, -0.3, 0], 5, rng.normal(size=n), (-6, 6))


@family("awkward", SKEWED)
def income(n: int, rng: Rng) -> Data:
    """Return a log-normal column, as incomes are, and an age."""
    pay, age = np.minimum(np.exp(rng.normal(size=n)), 40), rng.normal(45, 12, n)
    y = 0.5 * pay + 0.02 * age + rng.normal(size=n)
    return table({"pay": pay, "age": age}, {"pay": (0, 40), "age": (0, 110)}, y, (-5, 30))


@family("awkward", SKEWED)
def log_normal_1_5(n: int, rng: Rng) -> Data:
    """Return a column whose logarithm has the deviation 1.5 and that explains all but the noise."""
    x, z = np.minimum(np.exp(1.5 * rng.normal(size=n)), 500), rng.normal(size=n)
    y = 2 * x + z + rng.normal(size=n)
    return table({"x": x, "z": z}, {"x": (0, 500), "z": (-5, 5)}, y, (-10, 1010))


@family("awkward", SKEWED_TARGET)
def wages(n: int, rng: Rng) -> Data:
    """Hourly wages by education and experience: proportional effects, skewed residuals."""
    school, work = rng.normal(13, 2.5, n), np.minimum(rng.exponential(8, n), 40)
    y = np.exp(1 + 0.08 * school + 0.02 * work + rng.normal(0, 0.6, n))
    return table(
        {"school": school, "work": work}, {"school": (0, 25), "work": (0, 40)}, y, (0, 150)
    )


@family("awkward", SKEWED_TARGET)
def costs(n: int, rng: Rng) -> Data:
    """Log-normal costs of which an age explains little."""
    age, ill = rng.normal(50, 15, n), (rng.random(n) < 0.3).astype(int)
    y = 1000 * np.exp(0.01 * (age - 50) + 0.4 * ill + rng.normal(size=n))
    return table({"age": age, "ill": ill}, {"age": (0, 110), "ill": 2}, y, (0, 40_000))


@family("awkward", SKEWED)
def student(n: int, rng: Rng) -> Data:
    """Columns of Student's t with three degrees of freedom."""
    x = rng.standard_t(3, (n, 3))
    return numbers(x, [0.5, -0.3, 0], 20, rng.normal(size=n), (-20, 20))


@family("awkward")
def yes_no(n: int, rng: Rng) -> Data:
    """Return a target that 13 % have, by a logistic model."""
    x = rng.normal(size=(n, 2))
    y = rng.random(n) < 1 / (1 + np.exp(2.2 - 0.8 * x[:, 0]))
    return numbers(x, [0, 0], 5, y, (0, 1))


@family("awkward", SKEWED_TARGET)
def rare_target(n: int, rng: Rng) -> Data:
    """Return a target that 3 % have: claims."""
    x = rng.normal(size=(n, 2))
    claims = rng.random(n) < 0.03 * np.exp(0.4 * x[:, 0] - 0.08)
    return numbers(x, [0, 0], 5, claims * rng.gamma(4, 1, n), (0, 15))


@family("awkward", SKEWED)
def zeros(n: int, rng: Rng) -> Data:
    """Return a column that 8 % have."""
    x = np.where(rng.random(n) < 0.08, np.minimum(rng.exponential(2, n), 20), 0)
    z = rng.normal(size=n)
    y = 0.5 * x + 0.3 * z + rng.normal(size=n)
    return table({"x": x, "z": z}, {"x": (0, 20), "z": (-5, 5)}, y, (-8, 15))


@family("awkward", SKEWED_TARGET)
def hours(n: int, rng: Rng) -> Data:
    """Half of the targets are exactly 40, as weekly hours are."""
    x = rng.normal(size=(n, 2))
    y = np.where(rng.random(n) < 0.5, 40, 40 + x @ [3, -2] + 6 * rng.normal(size=n))
    return numbers(x, [0, 0], 5, y, (0, 99))


@family("awkward")
def uneven(n: int, rng: Rng) -> Data:
    """Residuals whose deviation grows with a normal column."""
    x = rng.normal(size=(n, 3))
    residuals = np.exp(0.5 * x[:, 0]) * rng.normal(size=n)
    return numbers(x, [0.5, -0.3, 0.2], 5, residuals, (-15, 15))


@family("awkward")
def counts(n: int, rng: Rng) -> Data:
    """Return a target of counts with a logarithmic link."""
    x = rng.normal(size=(n, 2))
    return numbers(x, [0, 0], 5, rng.poisson(np.exp(0.3 * x[:, 0] - 0.2 * x[:, 1])), (0, 15))


@family("awkward", SKEWED)
def interaction(n: int, rng: Rng) -> Data:
    """Two columns and their product."""
    a, b = rng.normal(size=(2, n)).clip(-4, 4)
    y = 0.5 * a - 0.3 * b + 0.4 * a * b + rng.normal(size=n)
    bounds = {"a": (-4, 4), "b": (-4, 4), "ab": (-16, 16)}
    return table({"a": a, "b": b, "ab": a * b}, bounds, y, (-10, 10))


@family("awkward", SKEWED)
def rare_column(n: int, rng: Rng) -> Data:
    """Return a column of two values that 1 % have."""
    x, has = rng.normal(size=(n, 2)), (rng.random(n) < 0.01).astype(int)
    y = x @ [0.5, -0.3] + has + rng.normal(size=n)
    bounds = {"a": (-5, 5), "b": (-5, 5), "has": 2}
    return table({"a": x[:, 0], "b": x[:, 1], "has": has}, bounds, y, (-6, 6))


@family("awkward")
def twelve_levels(n: int, rng: Rng) -> Data:
    """Twelve levels of much the same size."""
    g, x = rng.integers(0, 12, n), rng.normal(size=n)
    y = 0.5 * x + np.sin(g) + rng.normal(size=n)
    return table({"x": x, "g": g}, {"x": (-5, 5), "g": 12}, y, (-6, 6))


@family("awkward")
def triple(n: int, rng: Rng) -> Data:
    """Three columns, one of them nearly the sum of the others."""
    x = rng.normal(size=(n, 2))
    x = np.column_stack([x, x.sum(axis=1) + 0.2 * rng.normal(size=n)])
    return numbers(x, [0.5, -0.3, 0.2], 6, rng.normal(size=n), (-8, 8))


@family("awkward")
def no_effects(n: int, rng: Rng) -> Data:
    """Five columns without an effect."""
    return numbers(rng.normal(size=(n, 5)), [0] * 5, 5, rng.normal(size=n), (-6, 6))


# Fresh ones -------------------------------------------------------------------------------------


@family("fresh")
def mixture(n: int, rng: Rng) -> Data:
    """Two clusters far apart, with slopes and residuals of their own."""
    far = rng.random(n) < 0.25
    x = np.where(far, rng.normal(9, 0.5, n), rng.normal(0, 1, n))
    y = np.where(far, 2 + 0.2 * x, 0.6 * x) + np.where(far, 3, 0.7) * rng.normal(size=n)
    z = rng.normal(0, 1, n) + 0.1 * x
    return table({"x": x, "z": z}, {"x": (-10, 20), "z": (-8, 8)}, y + 0.3 * z, (-20, 20))


@family("fresh")
def censored(n: int, rng: Rng) -> Data:
    """Return a target that is cut at both bounds, for about a fifth of the records each."""
    x = rng.normal(size=(n, 3))
    return numbers(x, [0.8, -0.4, 0], 4, rng.normal(0, 0.8, n), (-1, 1))


@family("fresh")
def heaped(n: int, rng: Rng) -> Data:
    """Ages that are rounded to fives by most, and amounts to the thousand or ten thousand."""
    exact = rng.gamma(9, 5, n)
    age = np.where(rng.random(n) < 0.7, 5 * np.rint(exact / 5), np.rint(exact))
    amount = 9000 + 250 * exact + rng.normal(0, 6000, n)
    unit = rng.choice([1000.0, 5000.0, 10_000.0], n, p=[0.3, 0.3, 0.4])
    group = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    y = unit * np.rint((amount + 2000 * group) / unit)
    return table({"age": age, "group": group}, {"age": (0, 120), "group": 3}, y, (-20_000, 80_000))


@family("fresh")
def dates(n: int, rng: Rng) -> Data:
    """Return a trend by date, with more records in later years, and a season."""
    days = np.rint(3652 * rng.beta(2, 1, n))
    since = pd.Timestamp("2012-01-01") + pd.to_timedelta(days, "D")
    x = rng.normal(size=n)
    y = 2 + 0.15 * days / 365.25 + np.sin(2 * np.pi * days / 365.25) + 0.4 * x
    ends = Interval(pd.Timestamp("2010-01-01"), pd.Timestamp("2024-12-31"))
    columns = {"since": since, "x": x}
    return table(columns, {"since": ends, "x": (-5, 5)}, y + rng.normal(size=n), (-5, 12))


@family("fresh", SKEWED)
def ratio(n: int, rng: Rng) -> Data:
    """Return a debt over an income: the ratio of two columns, one of which is in the model too."""
    income, debt = rng.gamma(3, 10, n), rng.gamma(1.5, 20, n)
    share = np.minimum(debt / np.maximum(income, 1), 15)
    y = 5 + 0.8 * share - 0.02 * income + rng.normal(0, 1.5, n)
    return table(
        {"share": share, "income": income}, {"share": (0, 15), "income": (0, 200)}, y, (-5, 25)
    )


@family("fresh")
def ceiling(n: int, rng: Rng) -> Data:
    """Return scores from 0 to 10 of which about half are the best one."""
    x, group = rng.normal(size=n), rng.integers(0, 2, n)
    y = np.rint(9.6 + 1.2 * x + 0.8 * group + rng.normal(0, 2.5, n))
    return table({"x": x, "group": group}, {"x": (-5, 5), "group": 2}, y, (0, 10))


@family("fresh", SKEWED)
def few(n: int, rng: Rng) -> Data:
    """Return a column of two values that three in a thousand have."""
    x, has = rng.uniform(0, 10, n), (rng.random(n) < 0.003).astype(int)
    y = 0.2 * x + 2 * has + rng.normal(size=n)
    return table({"x": x, "has": has}, {"x": (0, 10), "has": 2}, y, (-5, 10))


@family("fresh")
def zipf(n: int, rng: Rng) -> Data:
    """Forty levels, each as frequent as one over its rank."""
    share = 1 / np.arange(1, 41)
    g, x = rng.choice(40, n, p=share / share.sum()), rng.normal(size=n)
    y = 0.5 * x + 0.8 * np.cos(3 * g) + rng.normal(size=n)
    return table({"x": x, "g": g}, {"x": (-5, 5), "g": 40}, y, (-6, 6))


@family("fresh", SKEWED)
def mostly_missing(n: int, rng: Rng) -> Data:
    """Return a laboratory value that 85 % lack, more often those who are well."""
    age = rng.normal(55, 14, n)
    value = np.exp(rng.normal(0.5, 0.5, n))
    asked = rng.random(n) < 0.15 * np.exp(0.02 * (age - 55))
    y = 0.03 * age + np.where(asked, 0.6 * value, 0) + rng.normal(size=n)
    value = np.where(asked, value, np.nan)
    ends = Interval(0, 20, missing="indicator")
    return table({"value": value, "age": age}, {"value": ends, "age": (0, 110)}, y, (-5, 15))


@family("fresh", SKEWED)
def nearly_constant(n: int, rng: Rng) -> Data:
    """Return a dose that is exactly 1 for 97 % of the records."""
    dose = np.where(rng.random(n) < 0.97, 1, rng.uniform(0, 5, n))
    x = rng.normal(size=n)
    y = 0.7 * dose - 0.4 * x + rng.normal(size=n)
    return table({"dose": dose, "x": x}, {"dose": (0, 5), "x": (-5, 5)}, y, (-6, 9))


@family("fresh", SKEWED_TARGET)
def outliers(n: int, rng: Rng) -> Data:
    """Return a trend in which one target of 200 is at a bound, more often the upper one."""
    x = rng.uniform(0, 10, (n, 2))
    y = 1 + 0.3 * x[:, 0] - 0.1 * x[:, 1] + rng.normal(size=n)
    y = np.where(rng.random(n) < 0.005, np.where(rng.random(n) < 0.8, 60, -60), y)
    return table({"a": x[:, 0], "b": x[:, 1]}, {"a": (0, 10), "b": (0, 10)}, y, (-30, 30))


@family("fresh")
def far_bounds(n: int, rng: Rng) -> Data:
    """Bounds a hundred times as wide as the values."""
    x = rng.normal(3, 1, (n, 2))
    y = x @ [0.5, -0.3] + rng.normal(size=n)
    ends = {"a": (-300, 300), "b": (-300, 300)}
    return table({"a": x[:, 0], "b": x[:, 1]}, ends, y, (-300, 300))


@family("fresh")
def origin(n: int, rng: Rng) -> Data:
    """Return a model without a constant: prices of what was bought."""
    x = rng.poisson([2, 1, 0.5], (n, 3)).astype(float)
    y = x @ [3, 5, 8] + rng.normal(0, 1.5, n)
    columns = dict(zip("abc", x.T, strict=True))
    return table(columns, dict.fromkeys("abc", (0, 12)), y, (0, 80), intercept=False)


@family("fresh")
def bowl(n: int, rng: Rng) -> Data:
    """Return a column that piles up at both ends, and a target that is no line of it."""
    x, z = rng.beta(0.4, 0.6, n), rng.normal(size=n)
    y = 4 * (x - 0.3) ** 2 + 0.2 * z + rng.laplace(0, 0.5, n)
    return table({"x": x, "z": z}, {"x": (0, 1), "z": (-5, 5)}, y, (-6, 8))


# Many columns -----------------------------------------------------------------------------------


@family("wide")
def forty(n: int, rng: Rng) -> Data:
    """Forty normal columns that explain half of the target's variance."""
    w = np.random.default_rng(40).normal(size=40)
    x = rng.normal(size=(n, 40))
    return numbers(x, w / np.sqrt(w @ w), 4, rng.normal(size=n), (-6, 6))


def _factors(spread: Any) -> Make:
    """Return a family of 22 correlated columns with bounds of [-1, 1] and these deviations."""

    def make(n: int, rng: Rng) -> Data:
        loads = np.random.default_rng(22).normal(size=(5, 22)) / np.sqrt(5)
        factors = rng.normal(size=(n, 5))
        x = 0.8 * factors @ loads + 0.6 * rng.normal(size=(n, 22))
        y = x[:, :4] @ [1.0, 0.7, -0.5, 0.3] + factors[:, 0] + 0.5 * rng.normal(size=n)
        return numbers(spread * x, [0] * 22, 1, 0.025 * y, (-1, 1))

    return make


_FREE = np.exp(np.random.default_rng(1).uniform(np.log(0.01), np.log(0.2), 22))
FAMILIES["factors"] = Family(_factors(0.3), "wide", TAME)
FAMILIES["factors_of_any_spread"] = Family(_factors(_FREE), "wide", TAME)


# Classes ----------------------------------------------------------------------------------------


def classes(columns: dict[str, Any], bounds: dict[str, Any], w: list[float], rng: Rng) -> Data:
    """Return records of two classes: constant, slopes, log odds of levels from the second on."""
    linear = table(columns, bounds, np.zeros(len(next(iter(columns.values())))), (0, 1))
    log_odds = linear.rows() @ w
    y = (rng.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds))).astype(float)
    schema = Schema(dict(linear.schema.columns), target=Categories([0, 1]))
    return Data(linear.X, y, schema, truth=np.array(w, float))


def _normal_columns(w: list[float], correlation: float = 0.0) -> Make:
    """Return a family of equally correlated normal columns with this constant and these slopes."""

    def make(n: int, rng: Rng) -> Data:
        x = np.sqrt(1 - correlation) * rng.normal(size=(n, len(w) - 1))
        x += np.sqrt(correlation) * rng.normal(size=(n, 1))
        own = {f"x{i}": column for i, column in enumerate(x.T)}
        return classes(own, dict.fromkeys(own, (-5, 5)), w, rng)

    return make


def _income_classes(n: int, rng: Rng) -> Data:
    """Return a log-normal column beside an age."""
    own = {"pay": np.exp(rng.normal(size=n)), "age": rng.normal(45, 12, n)}
    return classes(own, {"pay": (0, 40), "age": (0, 110)}, [-2, 0.25, 0.02], rng)


def _level_classes(shares: list[float], w: list[float]) -> Make:
    """Return a family with a normal column and levels of these shares."""

    def make(n: int, rng: Rng) -> Data:
        own = {"x": rng.normal(size=n), "g": rng.choice(len(shares), n, p=shares)}
        return classes(own, {"x": (-5, 5), "g": len(shares)}, w, rng)

    return make


for _name, _make in {
    "plain_classes": _normal_columns([-1.0, -0.4, 0.9, 0.15]),
    "eight_columns": _normal_columns([-1.0, -0.4, 0.9, 0.15, -1.2, 0.0, 0.6, -0.25, 0.5]),
    "strong_effects": _normal_columns([0.5, 3.0, 2.0]),
    "correlated_classes": _normal_columns([-1.0, -0.4, 0.9, 0.15], 0.9),
    "rare_class": _normal_columns([-3.5, 0.5, -0.5]),
    "income_classes": _income_classes,
    "rare_level_classes": _level_classes([0.6, 0.39, 0.01], [-0.5, 0.8, 0.5, -0.7]),
    "twelve_level_classes": _level_classes(
        [1 / 12] * 12, [-0.5, 0.8, *np.round(np.sin(np.arange(1, 12)), 1)]
    ),
}.items():
    FAMILIES[_name] = Family(_make, "logistic", TAME)
