"""A schema as users write it: a JSON file with the columns and the target by name.

``{"columns": {"age": {"low": 17, "high": 90}, "job": {"values": ["clerk", "nurse"]}},
"target": {"values": ["no", "yes"]}}``. Dates are written "2020-01-31". What
:meth:`Schema.to_json` writes has this form, too.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

from dpbayes_sklearn.command_line.csv_file import CsvFile, FileError, as_number
from dpbayes_sklearn.schema import Categories, Interval, Schema
from dpbayes_sklearn.schema.domains import Domain

__all__ = ["read_schema", "skeleton"]

_FIELDS = ({"low", "high", "bins", "dates", "edges", "missing"}, {"values", "unseen", "dtype"})


def read_schema(path: Path) -> Schema:
    """Read a schema with a target; an error names the part that must still be filled in."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise FileError(f"{path.name} is not JSON.") from None
    if not isinstance(fields, dict) or set(fields) - {"guarantee"} != {"columns", "target"}:
        raise FileError(f"{path.name} must be an object with the fields columns and target.")
    if not isinstance(fields["columns"], dict) or not fields["columns"]:
        raise FileError(
            f"The columns in {path.name} must be an object with one field for each column name."
        )
    columns = {name: _domain(given, name) for name, given in fields["columns"].items()}
    return Schema(columns, _domain(fields["target"], "target"), fields.get("guarantee"))


def skeleton(file: CsvFile, target: str) -> str:
    """Return a schema template: names and types of columns, and no value of any record.

    A column is numeric if more than half of its cells are numbers.
    """
    domains = {name: _empty(file.texts(name)) for name in file.names}
    fields = {
        "columns": {name: domain for name, domain in domains.items() if name != target},
        "target": domains[target],
    }
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def _empty(texts: list[str]) -> dict[str, Any]:
    numbers = sum(as_number(text) is not None for text in texts)
    return {"low": None, "high": None} if 2 * numbers > len(texts) else {"values": []}


def _domain(given: Any, name: str) -> Domain:
    if not isinstance(given, dict) or not any(set(given) <= fields for fields in _FIELDS):
        raise FileError(
            f"The domain of {name!r} must have the fields low and high, or the field values."
        )
    if "values" in given:
        if not given["values"]:
            raise FileError(
                f"Fill in the values of {name!r}, from a codebook and not from the data."
            )
        return Categories(**given)
    if given.get("low") is None or given.get("high") is None:
        raise FileError(f"Fill in low and high of {name!r}, from a codebook and not from the data.")
    ends = {key: _end(given[key], name) for key in ("low", "high")}
    if (missing := given.get("missing")) not in (None, "middle", "indicator"):
        ends["missing"] = _end(missing, name)
    return Interval(**{**given, **ends})


def _end(value: Any, name: str) -> float | date:
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]  # Interval checks it
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise FileError(
            f"low, high and missing of {name!r} must be numbers, or dates like 2020-01-31."
        ) from None
