"""From what the user declared to one domain per column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from dpbayes_sklearn._suggestions import did_you_mean
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval
from dpbayes_sklearn.schema.schema import Schema

__all__ = [
    "Bins",
    "declared_domains",
    "declared_width",
    "intervals_from_bounds",
]

_FEW_INTEGERS = 32  # so many integers or fewer get a bin each
_MOST_BINS = 16


def declared_domains(
    names: Sequence[str] | None, n_features: int, schema: Schema | None, bounds: Any
) -> list[Domain | None]:
    """Return the declared domain of every column, None where there is none."""
    if schema is not None and bounds is not None:
        raise ValueError("Give either schema or bounds, not both: each declares the columns.")
    if bounds is not None:
        return [*intervals_from_bounds(bounds, n_features)]
    if schema is None:
        return [None] * n_features
    if names is None:
        if len(schema) != n_features:
            raise ValueError(
                f"The schema declares {len(schema)} columns, but X has {n_features} features."
            )
        return [*schema.columns.values()]
    if missing := [name for name in schema.columns if name not in names]:
        hint = did_you_mean(missing[0], [name for name in names if name not in schema.columns])
        raise ValueError(f"X lacks the columns {missing} that the schema declares.{hint}")
    return [schema.columns.get(name) for name in names]


def declared_width(schema: Schema | None, bounds: Any, n_features: int | None = None) -> int:
    """Return how many columns are declared, from public facts only.

    >>> declared_width(None, ([0, 0, 0], 1))
    3
    """
    if schema is not None:
        return len(schema)
    shapes = [np.shape(side) for side in bounds]
    if n_features is None and not any(shapes):
        raise ValueError(
            "Two numbers as bounds serve any number of features: give n_features, or one bound "
            "for each feature."
        )
    return max((shape[0] for shape in shapes if shape), default=n_features or 0)


def intervals_from_bounds(bounds: Any, n_features: int, name: str = "bounds") -> list[Interval]:
    """Return one interval per feature from (low, high), each a number or one per feature."""
    try:
        low, high = (np.broadcast_to(np.asarray(b, np.float64), n_features) for b in bounds)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must be a pair (low, high), each a number or an array with one entry for "
            f"each of the {n_features} features."
        ) from None
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


@dataclass(frozen=True)
class Bins:
    """The rule that cuts intervals into bins, from public quantities only.

    Attributes
    ----------
    n_bins : "auto", int, or sequence of int
        ``"auto"`` gives integers and booleans of a small declared range one bin per value.
        Anything else gets the power of two nearest to 1.5 m^(1/3), from 2 to 16, where
        m = n / (1 + b) discounts the number of records by the scale b = 2(d+1)/epsilon of noise
        on a count; half as many where every doubling costs one more level of a tree of splits.
    n, d : int
        Number of records and of features.
    epsilon : float
    walks_splits : bool
        Whether the mechanism works on trees of splits.
    """

    n_bins: Any
    n: int
    d: int
    epsilon: float
    walks_splits: bool = False

    def cut(self, domain: Domain, j: int, kind: str) -> Domain:
        """Return the domain of column ``j`` with its number of bins settled."""
        if isinstance(domain, Categories) or domain.bins is not None:
            return domain
        if not isinstance(self.n_bins, str):
            return replace(domain, bins=self._given[j])
        whole = self.looks_at_types(domain) and kind in "biu"
        bins = domain.n_integers if whole else self._rule()
        return replace(domain, bins=bins)

    def looks_at_types(self, domain: Domain | None) -> bool:
        """Tell whether a declared domain is cut by the type of its column, which must be public."""
        if not isinstance(self.n_bins, str) or not isinstance(domain, Interval) or domain.bins:
            return False
        return (domain.n_integers or math.inf) <= _FEW_INTEGERS

    def check(self) -> None:
        """Refuse numbers of bins that are not there for every feature, or below 2."""
        if not isinstance(self.n_bins, str):
            _ = self._given

    @cached_property
    def _given(self) -> list[int]:
        one_for_all = isinstance(self.n_bins, Integral)
        given = (
            [int(self.n_bins)] * self.d if one_for_all else np.asarray(self.n_bins).ravel().tolist()
        )
        whole = all(type(k) is int and 2 <= k <= 2**16 for k in given)
        if len(given) != self.d or not whole:
            raise ValueError(
                "n_bins must be 'auto', an int >= 2, or one int >= 2 for each of the "
                f"{self.d} features; at most 65536 bins."
            )
        return list(given)

    def _rule(self) -> int:
        scale = 2 * (self.d + 1) / self.epsilon
        wanted = (0.75 if self.walks_splits else 1.5) * (self.n / (1 + scale)) ** (1 / 3)
        return int(2 ** np.clip(round(math.log2(wanted)), 1, math.log2(_MOST_BINS)))
