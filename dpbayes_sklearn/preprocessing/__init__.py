"""Transformers that learn the ranges of columns privately; what they return has a public domain."""

from dpbayes_sklearn.preprocessing.learned_schema import learn_schema
from dpbayes_sklearn.preprocessing.scalers import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.preprocessing.template import schema_template

__all__ = [
    "PrivateKBinsDiscretizer",
    "PrivateMinMaxScaler",
    "PrivateStandardScaler",
    "learn_schema",
    "schema_template",
]
