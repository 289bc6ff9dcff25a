"""A schema as users write it: a JSON file with the columns and the target by name.

``{"columns": {"age": {"low": 17, "high": 90}, "job": {"values": ["clerk", "nurse"]}},
"target": {"values": ["no", "yes"]}}``. Dates are written "2020-01-31". What
:meth:`Schema.to_json` writes has this form, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from dpbayes_sklearn.command_line.csv_file import FileError, place_of
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.domains import Domain

__all__ = ["read_schema", "skeleton"]

_FIELDS = ({"low", "high", "bins", "dates", "edges", "missing"}, {"values", "unseen", "dtype"})


def read_schema(path: Path) -> Schema:
    """Read a schema with a target; an error names the part that must still be filled in."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise FileError(f"{path.name} is not JSON.") from None
    if not isinstance(fields, dict) or set(fields) - {"guarantee"} != {"columns", "target"}:
        raise FileError(f"{path.name} must be an object with the fields columns and target.")
    if not isinstance(fields["columns"], dict) or not fields["columns"]:
        raise FileError(
            f"The columns in {path.name} must be an object with one field for each column name."
        )
    columns = {name: _domain(given, name) for name, given in fields["columns"].items()}
    schema = Schema(columns, _domain(fields["target"], "target"), fields.get("guarantee"))
    return _writable(schema, path)


def _writable(schema: Schema, path: Path) -> Schema:
    """Refuse what a model could not be written with, such as Infinity as a category."""
    try:
        Schema.from_json(schema.to_json())
    except ValueError as error:
        raise FileError(f"{path.name} cannot be part of a model: {error}") from None
    return schema


def skeleton(names: Sequence[str], target: str) -> str:
    """Return a schema template, made of the names of the columns alone.

    Every column has the fields of an interval and of categories. Which of them are meant is for
    the user to say: cells that look like numbers would tell something about records.
    """
    place_of(target, names)
    open_: dict[str, Any] = {"low": None, "high": None, "values": []}
    columns = {name: open_ for name in names if name != target}
    return json.dumps({"columns": columns, "target": open_}, indent=2, ensure_ascii=False) + "\n"


def _domain(given: Any, name: str) -> Domain:
    """Return a domain of the fields that are filled in."""
    known = isinstance(given, dict) and set(given) <= set.union(*_FIELDS)
    if not known or not isinstance(given.get("values", []), list):
        raise FileError(
            f"The domain of {name!r} must have the fields low and high, or the field values."
        )
    filled = {field: value for field, value in given.items() if value not in (None, [])}
    if not any(set(filled) <= fields for fields in _FIELDS):
        raise FileError(f"Fill in low and high of {name!r}, or its values, but not both.")
    if "values" in filled:
        return Categories(**filled)
    if not {"low", "high"} <= set(filled):
        raise FileError(f"Fill in {_open(given, name)} from a codebook and not from the data.")
    ends = {key: _end(filled[key], name) for key in ("low", "high")}
    if (missing := filled.get("missing")) not in (None, "middle", "indicator"):
        ends["missing"] = _end(missing, name)
    return Interval(**{**filled, **ends})


def _open(given: dict[str, Any], name: str) -> str:
    """Return what is to be filled in."""
    ends, values = f"low and high of {name!r},", f"the values of {name!r},"
    if "values" not in given:
        return ends
    return f"{ends} or its values," if "low" in given else values


def _end(value: Any, name: str) -> float | date:
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]  # Interval checks it
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise FileError(
            f"low, high and missing of {name!r} must be numbers, or dates like 2020-01-31."
        ) from None
