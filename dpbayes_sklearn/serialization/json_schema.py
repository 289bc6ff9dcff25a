"""JSON schemas of published documents, for those who check outputs without this library.

A model document says in ``guarantee`` whether it is private and under which conditions, before any
of its released values; what :func:`dpbayes_sklearn.from_json` checks goes further.
"""

from __future__ import annotations

from typing import Any

__all__ = ["GUARANTEE_SCHEMA", "MODEL_SCHEMA"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_POSITIVE = {"type": "number", "exclusiveMinimum": 0}

GUARANTEE_SCHEMA: dict[str, Any] = {
    "$schema": _DRAFT,
    "$id": "guarantee.schema.json",
    "title": "Privacy guarantee of a release of dpbayes_sklearn",
    "type": "object",
    "required": [
        "is_private",
        "epsilon",
        "delta",
        "unit",
        "neighbours",
        "mechanism",
        "conditions",
        "rho",
        "max_records",
    ],
    "additionalProperties": False,
    "properties": {
        "is_private": {
            "type": "boolean",
            "description": "Whether epsilon is finite. The guarantee holds under its conditions.",
        },
        "epsilon": {"oneOf": [_POSITIVE, {"const": "inf"}]},
        "delta": {"type": "number", "minimum": 0, "maximum": 1},
        "unit": {"enum": ["record", "feature", "person"]},
        "neighbours": {"type": "string", "description": "Which data sets are neighbours."},
        "mechanism": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Assumptions that the library could not check; empty is best.",
        },
        "rho": {"oneOf": [_POSITIVE, {"type": "null"}], "description": "zCDP, if it is known."},
        "max_records": {"type": "integer", "minimum": 1},
    },
    "if": {"properties": {"is_private": {"const": True}}},
    "then": {"properties": {"epsilon": _POSITIVE}},
    "else": {"properties": {"epsilon": {"const": "inf"}}},
}

MODEL_SCHEMA: dict[str, Any] = {
    "$schema": _DRAFT,
    "$id": "model.schema.json",
    "title": "A fitted model of dpbayes_sklearn",
    "type": "object",
    "required": ["format", "version", "estimator", "guarantee", "parameters", "fitted"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": "dpbayes_sklearn model"},
        "version": {"const": 1},
        "estimator": {"type": "string"},
        "guarantee": {"$ref": "guarantee.schema.json"},
        "parameters": {"type": "object"},
        "fitted": {
            "type": "object",
            "required": ["n_features_in_", "feature_names_in_"],
            "properties": {
                "n_features_in_": {"type": "integer", "minimum": 1},
                "feature_names_in_": {
                    "oneOf": [
                        {"type": "array", "items": {"type": "string"}, "minItems": 1},
                        {"type": "null"},
                    ]
                },
            },
        },
    },
}
