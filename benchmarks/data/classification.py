"""What a table for a classifier is, and short ways to write down its domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.data.packages import keel_table
from dpbayes_sklearn import Categories, Interval, Schema

Domain = Interval | Categories


class Classification(NamedTuple):
    """Features, classes and what is public about them."""

    X: pd.DataFrame
    y: pd.Series
    schema: Schema


class TrainTestSplit(NamedTuple):
    """Records to learn from, records to test with, and what is public: options of a model."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    public: dict[str, Any]


def classification(
    frame: pd.DataFrame, domains: Mapping[str, Domain], target: str, classes: Iterable[str]
) -> Classification:
    """Return the columns that have a domain; categories and classes are texts."""
    text = [name for name, domain in domains.items() if isinstance(domain, Categories)]
    X = frame[list(domains)].astype(dict.fromkeys(text, str))
    return Classification(X, frame[target].astype(str), Schema(domains, Categories(list(classes))))


def equal_columns(name: str, n_columns: int, domain: Domain, classes: str) -> Classification:
    """Return a table of the KEEL repository whose columns all have the same domain."""
    domains = {f"x{i}": domain for i in range(n_columns)}
    return classification(keel_table(name, domains), domains, "class", classes)


def words(text: str) -> Categories:
    """Return the words of a text as categories."""
    return Categories(text.split())


def letters(text: str) -> Categories:
    """Return the letters of a text as categories."""
    return Categories(list(text))


def numbered(first: int, last: int, prefix: str = "") -> Categories:
    """Return numbers as categories, with a prefix."""
    return Categories([f"{prefix}{i}" for i in range(first, last + 1)])
