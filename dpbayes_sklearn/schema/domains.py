"""The public domain of one column: an interval of numbers or dates, or a list of categories.

Both are *total*: every possible value, declared or not, finite or not, is mapped into the domain,
so whether a fit succeeds cannot depend on a record.
"""

from __future__ import annotations

from dpbayes_sklearn.schema.categories import Categories as Categories
from dpbayes_sklearn.schema.interval import Interval as Interval
from dpbayes_sklearn.schema.values import as_numbers as as_numbers

__all__ = ["Domain"]

Domain = Interval | Categories
