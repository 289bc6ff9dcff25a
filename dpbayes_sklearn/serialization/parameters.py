"""Constructor parameters as JSON: all types that users may pass, distinguished by tags.

What JSON has is written as it is; everything else is an object with one field, its tag.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from dpbayes_sklearn.counts.network import LearnedParents
from dpbayes_sklearn.mechanisms import Mechanism, mechanism_class
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.serialization.codecs import (
    Codec,
    Rational,
    in_memory,
    laid_out,
    layout,
    only_fields,
    refuse,
    refuse_same_hash,
)
from dpbayes_sklearn.serialization.models import CATEGORIES, INTERVAL, SCHEMA

__all__ = ["PARAMETER"]

_MOST_LETTERS = 2**26  # an array gives every text the room of the longest
_KINDS = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_DTYPES = {"bool", "float16", "float32", "float64", "str", "object"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class _Parameter(Codec):
    """The value of a constructor parameter."""

    def encode(self, value: Any) -> Any:
        return _encoded(value)

    def decode(self, json: Any, where: str) -> Any:
        if json is None or type(json) in (bool, int, str):
            return json
        if type(json) is float:
            return json if math.isfinite(json) else refuse(where, "must be a finite number")
        if isinstance(json, list):
            return [self.decode(one, f"{where}[{i}]") for i, one in enumerate(json)]
        if len(json) != 1 or (tag := next(iter(json))) not in _READERS:
            refuse(where, f"must have one field among {', '.join(_READERS)}")
        return _READERS[tag](json[tag], f"{where}.{tag}")


PARAMETER = _Parameter()


@singledispatch
def _encoded(value: Any) -> Any:
    if hasattr(value, "predecessors"):  # a graph, as networkx has them
        return _encoded({node: list(value.predecessors(node)) for node in value.nodes})
    if hasattr(value, "__array__"):  # a series of some data frame library
        return _encoded(np.asarray(value))
    raise ValueError(
        f"A parameter of type {type(value).__name__} cannot be exported as JSON; use plain values, "
        "lists, arrays or the classes of this library."
    )


@_encoded.register(type(None))
@_encoded.register(bool)
def _(value: bool | None) -> Any:
    return value


@_encoded.register
def _(value: int) -> Any:
    return int(value)


@_encoded.register
def _(value: str) -> Any:
    return str(value)


@_encoded.register
def _(value: float) -> Any:
    return float(value) if math.isfinite(value) else {"float": str(float(value))}


@_encoded.register
def _(value: np.generic) -> Any:
    return {"scalar": _array_fields(np.asarray(value))}


@_encoded.register
def _(value: Fraction) -> Any:
    return {"fraction": Rational().encode(value)}


@_encoded.register(list)
@_encoded.register(range)
def _(value: Any) -> Any:
    return [_encoded(one) for one in value]


@_encoded.register
def _(value: tuple) -> Any:  # type: ignore[type-arg]
    return {"tuple": [_encoded(one) for one in value]}


@_encoded.register
def _(value: Mapping) -> Any:  # type: ignore[type-arg]
    return {"dict": [[_encoded(k), _encoded(v)] for k, v in value.items()]}


@_encoded.register
def _(value: LearnedParents) -> Any:
    return {
        "learned_parents": {"parents": _encoded(dict(value)), "guarantee": str(value.guarantee)}
    }


@_encoded.register
def _(value: np.ndarray) -> Any:
    return {"array": _array_fields(value)}


def _array_fields(array: Any) -> dict[str, Any]:
    name = "str" if array.dtype.kind == "U" else array.dtype.name
    if name not in _DTYPES:
        raise ValueError(f"An array of {array.dtype} cannot be exported as JSON.")
    data = [_encoded(one) for one in in_memory(array).tolist()]
    return {"dtype": name, **layout(array), "data": data}


@_encoded.register
def _(value: Schema) -> Any:
    return {"schema": SCHEMA.encode(value)}


@_encoded.register
def _(value: Interval) -> Any:
    return {"interval": INTERVAL.encode(value)}


@_encoded.register
def _(value: Categories) -> Any:
    return {"categories": CATEGORIES.encode(value)}


@_encoded.register
def _(value: PrivacyUnit) -> Any:
    return {"privacy_unit": asdict(value)}


@_encoded.register
def _(value: Mechanism) -> Any:
    if type(value) is not mechanism_class(value.name()):
        raise ValueError(f"The mechanism {type(value).__name__} is not one of this library.")
    options = {name: _encoded(option) for name, option in value.get_params(deep=False).items()}
    return {"mechanism": {"name": value.name(), "options": options}}


def _read_float(json: Any, where: str) -> float:
    if json not in ("inf", "-inf", "nan"):
        refuse(where, "must be inf, -inf or nan")
    return float(json)


def _read_array(json: Any, where: str) -> Any:
    given = only_fields(json, {"dtype", "shape", "axes", "data"}, where)
    plain = isinstance(given["dtype"], str) and given["dtype"] in _DTYPES
    if not plain or not isinstance(given["data"], list):
        refuse(where, "must be an array of a plain dtype")
    values = PARAMETER.decode(given["data"], f"{where}.data")
    kind = _KINDS.get(np.dtype(given["dtype"]).kind)
    flat = np.empty(len(values), object)
    for i, value in enumerate(values):
        flat[i] = value
        if kind is not None and type(value) is not kind:
            refuse(where, "has data that are not of its dtype")
    if kind is str and len(values) * max(map(len, values), default=0) > _MOST_LETTERS:
        refuse(where, "has texts that are too long for an array")
    try:
        return laid_out(given, flat if kind is None else flat.astype(given["dtype"]), where)
    except OverflowError:
        refuse(where, "has data that are not of its dtype")


def _read_scalar(json: Any, where: str) -> Any:
    array = _read_array(json, where)
    if array.ndim or array.dtype == object:
        refuse(where, "must be a single number or text")
    return array[()]


def _read_tuple(json: Any, where: str) -> Any:
    if not isinstance(json, list):
        refuse(where, "must be a list")
    return tuple(PARAMETER.decode(json, where))


def _read_dict(json: Any, where: str) -> Any:
    if not isinstance(json, list) or not all(isinstance(p, list) and len(p) == 2 for p in json):
        refuse(where, "must be a list of pairs")
    pairs = PARAMETER.decode(json, where)
    try:
        refuse_same_hash((key for key, _ in pairs), where)
        return dict(pairs)
    except TypeError:
        refuse(where, "has a key that cannot be one")


def _read_learned_parents(json: Any, where: str) -> LearnedParents:
    given = only_fields(json, {"parents", "guarantee"}, where)
    parents = PARAMETER.decode(given["parents"], f"{where}.parents")
    if not isinstance(parents, dict):
        refuse(f"{where}.parents", "must be a dict")
    if not isinstance(given["guarantee"], str):
        refuse(f"{where}.guarantee", "must be a string")
    return LearnedParents(parents, given["guarantee"])


def _read_unit(json: Any, where: str) -> PrivacyUnit:
    given = only_fields(json, {field.name for field in fields(PrivacyUnit)}, where)
    try:
        return PrivacyUnit(given.pop("name"), **given)
    except (TypeError, ValueError):
        refuse(where, "must be a privacy unit")


def _read_mechanism(json: Any, where: str) -> Mechanism:
    given = only_fields(json, {"name", "options"}, where)
    cls = mechanism_class(given["name"]) if isinstance(given["name"], str) else None
    if cls is None:
        refuse(where, "must be a mechanism of this library")
    options = only_fields(given["options"], set(cls().get_params(deep=False)), f"{where}.options")
    return cls(**{name: PARAMETER.decode(o, f"{where}.{name}") for name, o in options.items()})


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "float": _read_float,
    "scalar": _read_scalar,
    "fraction": Rational(positive=False).decode,
    "tuple": _read_tuple,
    "dict": _read_dict,
    "learned_parents": _read_learned_parents,
    "array": _read_array,
    "privacy_unit": _read_unit,
    "schema": SCHEMA.decode,
    "interval": INTERVAL.decode,
    "categories": CATEGORIES.decode,
    "mechanism": _read_mechanism,
}
