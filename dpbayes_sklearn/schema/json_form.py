"""Domains and schemas as JSON; every field is checked when they are read back.

An interval is ``{"low", "high", "bins", "dates"}``, with ``"edges"`` if it has any and
``"missing"`` if missing values do not go to the middle, categories are ``{"values", "unseen",
"dtype"}``, and a schema is ``{"columns": {name: domain}, "target": domain or null}``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from dpbayes_sklearn.schema.domains import Categories, Domain, Interval
from dpbayes_sklearn.schema.interval import MOST_BINS

__all__ = [
    "NotTheForm",
    "fields_of",
    "many_of_one_hash",
    "read_categories",
    "read_domain",
    "read_fields",
    "read_interval",
]

D = TypeVar("D", Interval, Categories)

_MOST_OF_ONE_HASH = 1000


class NotTheForm(ValueError):
    """Raised where JSON is not what was expected; ``where`` is the place, ``what`` the rule."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}")
        self.where, self.what = where, what


def _refuse(where: str, what: str) -> NoReturn:
    raise NotTheForm(where, what) from None


def fields_of(domain: Domain) -> dict[str, Any]:
    """Return the fields of a domain, or refuse categories that JSON cannot hold."""
    if isinstance(domain, Interval):
        fields = {
            "low": domain.low,
            "high": domain.high,
            "bins": domain.bins,
            "dates": domain.dates,
        }
        edges = {} if domain.edges is None else {"edges": [*domain.edges]}
        missing = {} if domain.missing == "middle" else {"missing": domain.missing}
        return {**fields, **edges, **missing}
    for value in domain.values:
        if not _is_label(value):
            raise ValueError(
                "Only categories and classes that are strings, booleans, integers, finite floats "
                f"or None can be exported as JSON. Got {type(value).__name__} instead."
            )
    return {"values": [*domain.values], "unseen": domain.unseen, "dtype": domain.dtype}


def _is_label(value: Any) -> bool:
    finite = type(value) is float and math.isfinite(value)
    return finite or value is None or type(value) in (str, bool, int)


def read_fields(json: Any, names: Iterable[str], where: str) -> Mapping[str, Any]:
    """Return a JSON object that has these fields, no fewer and no more."""
    if not isinstance(json, dict):
        _refuse(where, "must be an object")
    if set(json) != {*names}:
        _refuse(where, f"must have the fields {', '.join(names)} and no others")
    return json


def read_domain(json: Any, where: str) -> Domain:
    """Return the domain that an object describes."""
    categories = isinstance(json, dict) and "values" in json
    return read_categories(json, where) if categories else read_interval(json, where)


def read_interval(json: Any, where: str) -> Interval:
    """Return an interval."""
    optional = [name for name in ("edges", "missing") if isinstance(json, dict) and name in json]
    given = read_fields(json, ("low", "high", "bins", "dates", *optional), where)
    for name in ("low", "high"):
        if type(given[name]) is not float or not math.isfinite(given[name]):
            _refuse(f"{where}.{name}", "must be a finite float")
    bins = given["bins"]
    if bins is not None and not (type(bins) is int and 2 <= bins <= MOST_BINS):
        _refuse(f"{where}.bins", f"must be null or an integer from 2 to {MOST_BINS}")
    if type(given["dates"]) is not bool:
        _refuse(f"{where}.dates", "must be true or false")
    edges = given.get("edges", [])
    floats = isinstance(edges, list) and all(type(edge) is float for edge in edges)
    if not floats or len(edges) >= MOST_BINS:
        _refuse(f"{where}.edges", f"must be a list of fewer than {MOST_BINS} floats")
    if type(given.get("missing", "middle")) not in (str, float):
        _refuse(f"{where}.missing", "must be middle, indicator or a float")
    return _made(Interval, given, where)


def read_categories(json: Any, where: str) -> Categories:
    """Return categories."""
    given = read_fields(json, ("values", "unseen", "dtype"), where)
    values = given["values"]
    if not isinstance(values, list) or not values:
        _refuse(f"{where}.values", "must be a list of at least 1")
    for i, value in enumerate(values):
        if not _is_label(value):
            _refuse(f"{where}.values[{i}]", "must be a string, boolean, number or null")
    if not _is_label(given["unseen"]):
        _refuse(f"{where}.unseen", "must be a string, boolean, number or null")
    if not isinstance(given["dtype"], str | None):
        _refuse(f"{where}.dtype", "must be a string or null")
    if many_of_one_hash(values):
        _refuse(f"{where}.values", "has too many values of one hash")
    return _made(Categories, given, where)


def _made(domain: type[D], given: Mapping[str, Any], where: str) -> D:
    try:
        return domain(**given)
    except ValueError as error:
        _refuse(where, f"is not valid ({error})")


def many_of_one_hash(values: Iterable[Any]) -> bool:
    """Tell whether values were made to have one hash: a set of them would take forever."""
    return max(Counter(map(hash, values)).values(), default=0) > _MOST_OF_ONE_HASH
