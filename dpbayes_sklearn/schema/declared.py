"""From what the user declared to one domain per column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._compat import did_you_mean
from dpbayes_sklearn.schema.domains import Categories, Domain, Interval
from dpbayes_sklearn.schema.schema import Schema
from dpbayes_sklearn.schema.values import WHOLE_KINDS, Kind

_FEW_INTEGERS = 32  # An interval of up to this many integers gets a bin for each.
_MOST_AUTO_BINS = 16  # n_bins="auto" makes no more bins than this.


def declared_domains(
    names: Sequence[str] | None,
    n_features: int,
    schema: Schema | None,
    bounds: Any,
    parameter: str = "bounds",
) -> list[Domain | None]:
    """Return the declared domain of every column, None where there is none.

    ``parameter`` is what the estimator calls its bounds.
    """
    if schema is not None and bounds is not None:
        raise ValueError(f"Give either schema or {parameter}, not both: each declares the columns.")
    if bounds is not None:
        return [*intervals_from_bounds(bounds, n_features, parameter)]
    if schema is None:
        return [None] * n_features
    if names is None:
        domains = [*schema.columns.values()]
        alike = n_features < len(domains) and len({*domains}) == 1  # whichever columns these are
        if len(domains) != n_features and not alike:
            raise ValueError(
                f"The schema declares {len(domains)} columns, but X has {n_features} features. "
                "RFE and SequentialFeatureSelector pass some columns without their names: give "
                f"{parameter} as two numbers, or use SelectFromModel."
            )
        return [*domains[:n_features]]
    missing = [name for name in schema.columns if name not in names]
    if missing and not {*names} <= {*schema.columns}:
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


def width_of_rows(schema: Schema | None, bounds: Any) -> int | None:
    """Return how many columns are declared, None if any number of them would do.

    >>> width_of_rows(None, ([0, 0, 0], 1)), width_of_rows(None, (0, 1))
    (3, None)
    """
    with suppress(ValueError, TypeError):  # wrong bounds are refused where they are used
        return declared_width(schema, bounds)
    return None


def intervals_from_bounds(bounds: Any, n_features: int, name: str = "bounds") -> list[Interval]:
    """Return one interval per feature from (low, high), each one value or one per feature.

    Examples
    --------
    >>> intervals_from_bounds(([0, 1], 9), n_features=2)
    [Interval(low=0.0, high=9.0, bins=None), Interval(low=1.0, high=9.0, bins=None)]
    """
    try:
        low, high = bounds
        sides = [_values(side) for side in (low, high)]
    except (TypeError, ValueError, OverflowError):
        sides = []
    if not sides or any(side.shape not in {(), (n_features,)} for side in sides):
        raise ValueError(
            f"{name} must be a pair (low, high), each one value or an array with one entry for "
            f"each of the {n_features} features."
        )
    if n_features == 2 and all(isinstance(side, tuple) for side in (low, high)):
        _refuse_two_pairs(sides, name)
    different = n_features if any(side.ndim for side in sides) else 1
    each = (np.broadcast_to(side, different) for side in sides)
    made = [Interval(a, b) for a, b in zip(*each, strict=True)]
    return made if len(made) == n_features else made * n_features


def _values(side: Any) -> npt.NDArray[Any]:
    """Return one side of the bounds: numbers, or dates as they are."""
    values = np.asarray(side)
    if values.dtype.kind == "M":
        return values
    with suppress(TypeError):
        return values.astype(np.float64)
    return values


def _refuse_two_pairs(sides: Sequence[npt.NDArray[Any]], name: str) -> None:
    """Refuse ((a, b), (c, d)) if it may mean a to b and c to d as well as a to c and b to d."""
    if all(side[0] < side[1] for side in sides):
        raise ValueError(
            f"{name} of two features written as two pairs can be read in two ways. Give lists, "
            "([low, low], [high, high]), or a schema with one Interval for each feature."
        )


def declared_classes(classes: Any, unseen: Any = None) -> Categories:
    """Return declared classes in order, as an array of the type that they were given in.

    ``unseen`` is the class of records that have none of them; the first by default.

    Examples
    --------
    >>> declared_classes(["yes", "no"]).values
    ('no', 'yes')
    """
    given = np.asarray(classes)
    labels = np.unique(given)
    if labels.size < given.size:
        raise ValueError("classes must be all different. Got a repeated value instead.")
    if labels.size == 1:
        raise ValueError(
            "classes must be at least two: with one there is nothing to predict. Nothing was spent."
        )
    return Categories(labels, unseen)


@dataclass(frozen=True)
class Bins:
    """The rule that cuts intervals into bins, from public quantities only.

    ``n_bins="auto"`` gives integers and booleans of a small declared range one bin per value.
    Anything else gets twice the integer nearest to 0.8 (n epsilon / C d)^0.4, from 4 to 16. For
    mechanisms on trees of splits, whose sensitivity grows with every doubling, it is the power of
    two nearest to 0.75 (n / (1 + b))^(1/3), from 2 to 16, b = 2(d+1)/epsilon. C is the number of
    classes, 2 if it is not known beforehand.
    """

    n_bins: Any
    n: int
    d: int
    epsilon: float
    walks_splits: bool = False
    n_classes: int = 2

    def cut(self, domain: Domain, j: int, kind: Kind) -> Domain:
        """Return the domain of column ``j`` in bins; columns that are alike share one."""
        alike = domain, kind if isinstance(self.n_bins, str) else self._given[j]
        if alike not in self._made:
            self._made[alike] = self._in_bins(domain, j, kind)
        return self._made[alike]

    @cached_property
    def _made(self) -> dict[tuple[Domain, Kind | int], Domain]:
        return {}

    def _in_bins(self, domain: Domain, j: int, kind: Kind) -> Domain:
        if domain.has_codes:
            return domain
        if not isinstance(self.n_bins, str):
            return domain.in_bins(self._given[j])
        whole = self.looks_at_types(domain) and kind in WHOLE_KINDS
        return domain.in_bins(domain.n_integers if whole else self._rule())

    def looks_at_types(self, domain: Domain | None) -> bool:
        """Return whether the bins of a domain depend on the dtype of its column."""
        if not isinstance(self.n_bins, str) or domain is None or domain.has_codes:
            return False
        return (domain.n_integers or math.inf) <= _FEW_INTEGERS

    def check(self) -> None:
        """Refuse numbers of bins that are missing for a feature, or below 2."""
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
        if self.walks_splits:
            wanted = 0.75 * (self.n / (1 + 2 * (self.d + 1) / self.epsilon)) ** (1 / 3)
            return int(2 ** np.clip(round(math.log2(wanted)), 1, math.log2(_MOST_AUTO_BINS)))
        pairs = 0.8 * (self.n * self.epsilon / (self.n_classes * self.d)) ** 0.4
        return int(2 * round(np.clip(pairs, 2, _MOST_AUTO_BINS / 2)))
