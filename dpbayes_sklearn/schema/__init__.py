"""What may be known without looking at the data: the public domain of every column."""

from dpbayes_sklearn.schema.domains import Categories, Domain, Interval
from dpbayes_sklearn.schema.schema import Schema

__all__ = ["Categories", "Domain", "Interval", "Schema"]
