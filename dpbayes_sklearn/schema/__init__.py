"""The public domain of every column, declared without looking at the data."""

from dpbayes_sklearn.schema.domains import Categories, Domain, Interval
from dpbayes_sklearn.schema.schema import Schema

__all__ = ["Categories", "Domain", "Interval", "Schema"]
