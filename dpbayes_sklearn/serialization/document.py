"""The whole text: a format, a version, an estimator, its parameters and what it released."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from dpbayes_sklearn.serialization.codecs import (
    Codec,
    Integer,
    Many,
    Optional,
    Text,
    only_fields,
    refuse,
)
from dpbayes_sklearn.serialization.parameters import PARAMETER

__all__ = ["estimator_name", "read_model", "write_model"]

Model = TypeVar("Model", bound=Any)

FORMAT, VERSION = "dpbayes_sklearn model", 1
MOST_CHARACTERS = 2**28
_SECRET = {"accountant", "random_state"}  # a ledger is not part of a model; a seed is the noise
_FEATURES: dict[str, Codec] = {
    "n_features_in_": Integer(1, 2**24),
    "feature_names_in_": Optional(Many(Text(), 1)),
}


def write_model(model: Any) -> str:
    """Return a fitted estimator as text that :func:`read_model` was seen to read."""
    released: dict[str, Codec] = model._exported
    if not released:
        raise ValueError(
            f"{type(model).__name__} has no JSON form: export its best_estimator_, which carries "
            "the guarantee of the whole search."
        )
    parameters = {
        name: PARAMETER.encode(value)
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
        "parameters": parameters,
        "fitted": {**features, **fitted},
    }
    text = json.dumps(document, allow_nan=False)
    read_model(type(model), text)
    return text


def read_model(cls: type[Model], text: str) -> Model:
    """Return the estimator of class ``cls`` that a text describes."""
    try:
        return _read(cls, _document(text))
    except RecursionError:
        refuse("it", "is nested too deeply")


def _read(cls: type[Model], document: dict[str, Any]) -> Model:
    if document["estimator"] != cls.__name__:
        refuse("estimator", f"must be {cls.__name__}")
    model: Model = cls()
    wanted = set(model.get_params(deep=False)) - _SECRET
    given = only_fields(document["parameters"], wanted, "parameters")
    model.set_params(
        **{name: PARAMETER.decode(value, f"parameters.{name}") for name, value in given.items()}
    )
    codecs = {**_FEATURES, **cls._exported}
    state = only_fields(document["fitted"], set(codecs), "fitted")
    read = {name: codec.decode(state[name], f"fitted.{name}") for name, codec in codecs.items()}
    _restore(model, read)
    return model


def _restore(model: Any, read: dict[str, Any]) -> None:
    n_features, names = read.pop("n_features_in_"), read.pop("feature_names_in_")
    columns: Iterable[str] | None = getattr(read.get("schema_"), "columns", None)
    each = read.get("_answers", [None]) if columns is None else [*columns]
    if n_features != len(each):
        refuse("fitted.n_features_in_", f"must be {len(each)}")
    if names is not None:
        any_names = "_answers" in read and len(names) == n_features
        if names != (*(columns or ()),) and not any_names:
            refuse("fitted.feature_names_in_", "must be the names of the columns")
    try:
        model._validate_params()
        model._restore(**read)
    except Exception as error:  # whatever it trips over, the text is at fault
        refuse("fitted", f"does not fit its parameters ({error})")
    model.n_features_in_ = n_features
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def estimator_name(text: str) -> str:
    """Return the name of the estimator that a text describes; nothing is made by that name."""
    try:
        name = _document(text)["estimator"]
    except RecursionError:
        refuse("it", "is nested too deeply")
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
    fields = {"format", "version", "estimator", "parameters", "fitted"}
    return only_fields(document, fields, "it")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        refuse("it", "has a field twice")
    return content


def _constant(name: str) -> float:
    refuse("it", f"has the number {name}, which is not JSON")
