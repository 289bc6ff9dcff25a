"""The public domain of every column, declared without looking at the data."""

from dpbayes_sklearn.schema.declared import Schema
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval

__all__ = ["Categories", "Domain", "Interval", "Schema"]
