"""The whole text: a format, a version, an estimator, its parameters and what it released.

Of constructor parameters, what JSON has is written as it is; everything else that users may pass is
an object with one field, its tag.

A document says in ``guarantee`` whether it is private and under which conditions, before any of its
released values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dpbayes_sklearn.counts.network import LearnedParents
from dpbayes_sklearn.data.records import quiet_numpy
from dpbayes_sklearn.mechanisms import Mechanism, mechanism_class
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.declared import NotTheForm, read_fields, refuse, refuse_same_hash
from dpbayes_sklearn.serialization.codecs import (
    TEXT,
    Codec,
    in_memory,
    integer,
    laid_out,
    layout,
    many,
    optional,
    rational,
)
from dpbayes_sklearn.serialization.models import CATEGORIES, GUARANTEE, INTERVAL, SCHEMA

Model = TypeVar("Model", bound=Any)

FORMAT, VERSION = "dpbayes_sklearn model", 1  # Every document begins with these.
PLAN_VERSION = 1  # Of the record of all steps, which documents of older releases do not have.
MOST_CHARACTERS = 2**28  # A longer document is refused unread.
# A ledger is not part of a model, and a seed reveals the noise.
_SECRET = {"accountant", "random_state"}
# Fitted attributes that every model has.
_FEATURE_FIELDS: dict[str, Codec[Any]] = {
    "n_features_in_": integer(1, 2**24),
    "feature_names_in_": optional(many(TEXT, 1)),
}

_MOST_LETTERS = 2**26  # An array gives every text the room of the longest.
# The Python type of an array's cells, by the kind of its dtype.
_KINDS = {"b": bool, "i": int, "u": int, "f": float, "U": str}


def write_model(model: Any) -> str:
    """Return a fitted estimator as text that :func:`read_model` was seen to read."""
    released: dict[str, Codec[Any]] = model._exported
    if not released:
        raise ValueError(
            f"{type(model).__name__} has no JSON form: export its best_estimator_, which carries "
            "the guarantee of the whole search."
        )
    parameters = {
        name: _encoded(value)
        for name, value in model.get_params(deep=False).items()
        if name not in _SECRET
    }
    fitted = {name: codec.encode(getattr(model, name)) for name, codec in released.items()}
    names = getattr(model, "feature_names_in_", None)
    features = {
        "n_features_in_": int(model.n_features_in_),
        "feature_names_in_": None if names is None else [str(name) for name in names],
    }
    document = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": type(model).__name__,
        "guarantee": _guarantee(model),
        "parameters": parameters,
        "fitted": {**features, **fitted},
        **_plan(model),
    }
    text = json.dumps(document, allow_nan=False)
    read_model(type(model), text)
    return text


def _plan(model: Any) -> dict[str, Any]:
    """Return what was drawn, step by step, for checkers; models of older documents have none."""
    fits = getattr(model, "_proof", None)
    return {"plan": {"version": PLAN_VERSION, "fits": fits}} if fits and all(fits) else {}


def _guarantee(model: Any) -> dict[str, Any]:
    """Return the guarantee as those see it who only want to know whether a model is private."""
    return {"is_private": model.guarantee_.is_private, **GUARANTEE.encode(model.guarantee_)}


def read_model(cls: type[Model], text: str) -> Model:
    """Return the estimator of class ``cls`` that a text describes."""
    with _a_released_model(), quiet_numpy():
        return _read(cls, _document(text))


@contextmanager
def _a_released_model() -> Iterator[None]:
    """Let an error say that the text is none."""
    try:
        yield
    except NotTheForm as error:
        fault = str(error)
    except RecursionError:
        fault = "it is nested too deeply"
    except (ArithmeticError, AttributeError, LookupError):  # in computing with its numbers
        fault = "no release has its numbers"
    else:
        return
    raise ValueError(f"The text is not a released model: {fault}.")


def _read(cls: type[Model], document: dict[str, Any]) -> Model:
    if document["estimator"] != cls.__name__:
        refuse("estimator", f"must be {cls.__name__}")
    model: Model = cls()
    wanted = set(model.get_params(deep=False)) - _SECRET
    given = read_fields(document["parameters"], wanted, "parameters")
    model.set_params(
        **{name: _decoded(value, f"parameters.{name}") for name, value in given.items()}
    )
    codecs = {**_FEATURE_FIELDS, **cls._exported}
    state = read_fields(document["fitted"], set(codecs), "fitted")
    read = {name: codec.decode(state[name], f"fitted.{name}") for name, codec in codecs.items()}
    _restore(model, read)
    if (plan := document.get("plan")) is not None:
        given = read_fields(plan, {"version", "fits"}, "plan")
        if given["version"] != PLAN_VERSION or not isinstance(given["fits"], list):
            refuse("plan", f"must have version {PLAN_VERSION} and a list of fits")
        model._proof = given["fits"]
    if document["guarantee"] != _guarantee(model):
        refuse("guarantee", "must be that of the fitted model")
    return model


def _restore(model: Any, read: dict[str, Any]) -> None:
    n_features, names = read.pop("n_features_in_"), read.pop("feature_names_in_")
    columns: Iterable[str] | None = getattr(read.get("schema_"), "columns", None)
    each = read.get("_answers", [None]) if columns is None else [*columns]
    if n_features != len(each):
        refuse("fitted.n_features_in_", f"must be {len(each)}")
    own = names if columns is None else (*columns,)
    if names is not None and (len(names) != n_features or names != own):
        refuse("fitted.feature_names_in_", "must be the names of the columns")
    try:
        model._validate_params()
        model._restore(**read)
        for name in ("_declared_unit", "_target"):  # which refuse units and domains that are none
            hasattr(model, name)
    except Exception as error:  # whatever it trips over, the text is at fault
        refuse("fitted", f"does not fit its parameters ({error})")
    model.n_features_in_ = n_features
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def estimator_name(text: str) -> str:
    """Return the name of the estimator that a text describes; nothing is made by that name."""
    with _a_released_model():
        name = _document(text)["estimator"]
        return name if isinstance(name, str) else refuse("estimator", "must be a string")


def _document(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise ValueError("A released model is a string of JSON.")
    if len(text) > MOST_CHARACTERS:
        refuse("it", f"is longer than {MOST_CHARACTERS:,} characters")
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        refuse("it", f"is not JSON (line {error.lineno}, column {error.colno})")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        refuse("format", f"must be {FORMAT!r}")
    if type(document.get("version")) is not int or document["version"] != VERSION:
        refuse("version", f"must be {VERSION}; another release of this library may read it")
    fields = {"format", "version", "estimator", "guarantee", "parameters", "fitted"}
    return read_fields(document, fields | ({"plan"} & set(document)), "it")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        refuse("it", "has a field twice")
    return content


def _constant(name: str) -> float:
    refuse("it", f"has the number {name}, which is not JSON")


# Arrays of these dtypes can be written.
_DTYPES = {"bool", "float16", "float32", "float64", "str", "object"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    for plain in (str, int):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, (list, range)):
        return [_encoded(one) for one in value]
    if isinstance(value, float) and not isinstance(value, np.generic) and math.isfinite(value):
        return float(value)
    for tag, (kind, codec) in _TAGGED.items():
        if isinstance(value, kind):
            return {tag: codec.encode(value)}
    if hasattr(value, "predecessors"):  # a graph, as networkx has them
        return _encoded({node: list(value.predecessors(node)) for node in value.nodes})
    if hasattr(value, "__array__"):  # a series of some data frame library
        return _encoded(np.asarray(value))
    raise ValueError(
        f"A parameter of type {type(value).__name__} cannot be exported as JSON; use plain values, "
        "lists, arrays or the classes of this library."
    )


def _decoded(json: object, where: str) -> Any:
    if json is None or type(json) in (bool, int, str):
        return json
    if type(json) is float:
        return json if math.isfinite(json) else refuse(where, "must be a finite number")
    if isinstance(json, list):
        return [_decoded(one, f"{where}[{i}]") for i, one in enumerate(json)]
    if not isinstance(json, dict) or len(json) != 1 or (tag := next(iter(json))) not in _TAGGED:
        refuse(where, f"must have one field among {', '.join(_TAGGED)}")
    return _TAGGED[tag][1].decode(json[tag], f"{where}.{tag}")


PARAMETER = Codec(_encoded, _decoded)


def _encoded_array(array: Any) -> dict[str, Any]:
    array = np.asarray(array)
    name = "str" if array.dtype.kind == "U" else array.dtype.name
    if name not in _DTYPES:
        raise ValueError(f"An array of {array.dtype} cannot be exported as JSON.")
    data = [_encoded(one) for one in in_memory(array).tolist()]
    return {"dtype": name, **layout(array), "data": data}


def _encoded_parents(value: LearnedParents) -> dict[str, Any]:
    return {"parents": _encoded(dict(value)), "guarantee": str(value.guarantee)}


def _encoded_mechanism(value: Mechanism) -> dict[str, Any]:
    if type(value) is not mechanism_class(value.name()):
        raise ValueError(f"The mechanism {type(value).__name__} is not one of this library.")
    options = {name: _encoded(option) for name, option in value.get_params(deep=False).items()}
    return {"name": value.name(), "options": options}


def _read_float(json: object, where: str) -> float:
    if json not in ("inf", "-inf", "nan"):
        refuse(where, "must be inf, -inf or nan")
    return float(json)


def _read_array(json: object, where: str) -> Any:
    given = read_fields(json, {"dtype", "shape", "axes", "data"}, where)
    plain = isinstance(given["dtype"], str) and given["dtype"] in _DTYPES
    if not plain or not isinstance(given["data"], list):
        refuse(where, "must be an array of a plain dtype")
    values = _decoded(given["data"], f"{where}.data")
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


def _read_scalar(json: object, where: str) -> Any:
    array = _read_array(json, where)
    if array.ndim or array.dtype == object:
        refuse(where, "must be a single number or text")
    return array[()]


def _read_tuple(json: object, where: str) -> Any:
    if not isinstance(json, list):
        refuse(where, "must be a list")
    return tuple(_decoded(json, where))


def _read_dict(json: object, where: str) -> Any:
    if not isinstance(json, list) or not all(isinstance(p, list) and len(p) == 2 for p in json):
        refuse(where, "must be a list of pairs")
    pairs = _decoded(json, where)
    try:
        refuse_same_hash((key for key, _ in pairs), where)
        return dict(pairs)
    except TypeError:
        refuse(where, "has a key that cannot be one")


def _read_learned_parents(json: object, where: str) -> LearnedParents:
    given = read_fields(json, {"parents", "guarantee"}, where)
    parents = _decoded(given["parents"], f"{where}.parents")
    if not isinstance(parents, dict):
        refuse(f"{where}.parents", "must be a dict")
    if not isinstance(given["guarantee"], str):
        refuse(f"{where}.guarantee", "must be a string")
    return LearnedParents(parents, given["guarantee"])


def _read_unit(json: object, where: str) -> PrivacyUnit:
    given = read_fields(json, {field.name for field in fields(PrivacyUnit)}, where)
    try:
        return PrivacyUnit(given.pop("name"), **given)
    except (TypeError, ValueError):
        refuse(where, "must be a privacy unit")


def _read_mechanism(json: object, where: str) -> Mechanism:
    given = read_fields(json, {"name", "options"}, where)
    cls = mechanism_class(given["name"]) if isinstance(given["name"], str) else None
    if cls is None:
        refuse(where, "must be a mechanism of this library")
    options = read_fields(given["options"], set(cls().get_params(deep=False)), f"{where}.options")
    return cls(**{name: _decoded(o, f"{where}.{name}") for name, o in options.items()})


# What is of several types has the tag of the first.
_TAGGED: dict[str, tuple[type, Codec[Any]]] = {
    "scalar": (np.generic, Codec(_encoded_array, _read_scalar)),
    "float": (float, Codec(lambda value: str(float(value)), _read_float)),
    "fraction": (Fraction, rational(positive=False)),
    "tuple": (tuple, Codec(lambda value: _encoded([*value]), _read_tuple)),
    "learned_parents": (LearnedParents, Codec(_encoded_parents, _read_learned_parents)),
    "dict": (
        Mapping,
        Codec(lambda value: [_encoded([*pair]) for pair in value.items()], _read_dict),
    ),
    "array": (np.ndarray, Codec(_encoded_array, _read_array)),
    "privacy_unit": (PrivacyUnit, Codec(asdict, _read_unit)),
    "schema": (Schema, SCHEMA),
    "interval": (Interval, INTERVAL),
    "categories": (Categories, CATEGORIES),
    "mechanism": (Mechanism, Codec(_encoded_mechanism, _read_mechanism)),
}
