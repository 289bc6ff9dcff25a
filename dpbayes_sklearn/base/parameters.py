"""Who a fit protects: the parameter that says it, and the records that count."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._sklearn_compat import InvalidParameterError, Range, did_you_mean
from dpbayes_sklearn.data.persons import counted_records, read_groups
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.schema.values import as_numbers

__all__ = [
    "COUNTED",
    "PERSONS_STREAM",
    "PROMISED",
    "PROTECTION",
    "WEIGHTS",
    "copies_of",
    "declared_unit",
    "records_that_count",
]

Positions = npt.NDArray[np.intp]

PROTECTION: dict[str, list[Any]] = {"privacy_unit": [str, PrivacyUnit]}
"""The constraint of the parameter; :func:`declared_unit` checks its value."""

WEIGHTS: dict[str, list[Any]] = {"max_weight": [Range(Integral, 1, 2**15, closed="both"), None]}
"""The constraint of the parameter, for estimators that take weights."""

COUNTED = "the number of records that count, with a label and at most {} of a person, is public"
"""Under "replace", where it is used and published without noise."""

PERSONS_STREAM = 2**17
"""The stream of a seed that draws which records of a person count."""

_WEIGHTS_STREAM = 2**18  # The stream of a seed that rounds weights.

PROMISED = "no person has more than {} of the records, as declared"

NO_GROUPS = (
    "A person is the privacy unit, but groups, whose record each row is, were not given. Pass "
    "them, as in fit(X, y, groups=table['patient']). Meta-estimators of scikit-learn, such as "
    "GridSearchCV, pass them on after sklearn.set_config(enable_metadata_routing=True) and "
    "estimator.set_fit_request(groups=True). If nobody can have more than {0} of the rows, declare "
    "it: PrivacyUnit('person', max_records={0}, by_construction=True). Nothing was spent."
)


def declared_unit(estimator: Any) -> PrivacyUnit:
    """Return the unit that an estimator protects; one that it cannot protect is refused."""
    given, names = estimator.privacy_unit, estimator._unit_names
    by_name = isinstance(given, str)  # a person has options, so it is declared as an object only
    if (given if by_name else given.name) not in (*names, *(() if by_name else ("person",))):
        raise InvalidParameterError(
            f"The 'privacy_unit' parameter of {type(estimator).__name__} must be "
            f"{' or '.join(map(repr, names))}, or a PrivacyUnit, as in "
            f"PrivacyUnit('person', max_records=4). Got {given!r} instead."
            + did_you_mean(given, names)
        )
    return PrivacyUnit.of(given)


def records_that_count(
    records: Any,
    groups: Any,
    unit: PrivacyUnit,
    random_state: Any = None,
    copies: Positions | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """Return the records that count, and what the guarantee then rests on.

    Of a person with more than are protected together, they are drawn at random. Records count as
    often as ``copies`` says, once if it is left out.
    """
    counted, promises = _counted(records.n, groups, unit, random_state)
    if copies is not None:
        counted = np.arange(records.n) if counted is None else counted
        counted = np.repeat(counted, copies[counted])
    return records if counted is None else records.at(counted), promises


def _counted(
    n: int, groups: Any, unit: PrivacyUnit, random_state: Any
) -> tuple[Positions | None, tuple[str, ...]]:
    """Return the positions of the records that count, None for all, and the promises."""
    if unit.name != "person":
        if groups is not None:
            raise ValueError(
                "groups says whose record it is: set privacy_unit=PrivacyUnit('person', "
                "max_records=...)."
            )
        return None, ()
    if not unit.size_is_secret and unit.max_records > n:
        raise ValueError(
            f"max_records={unit.max_records} of the privacy_unit is more than there are records. "
            f"Got n_samples={n}."
        )
    if groups is None and not unit.by_construction:
        raise ValueError(NO_GROUPS.format(unit.max_records))
    if groups is None:
        return None, (PROMISED.format(unit.max_records),)
    noise = Noise.of(random_state, PERSONS_STREAM)
    counted = counted_records(read_groups(groups, n), unit.max_records, noise)
    if not (len(counted) or unit.size_is_secret):
        raise ValueError(
            "groups must have labels: no record has one. Labels are texts, bytes, numbers, dates, "
            "durations, UUIDs or tuples of these."
        )
    promises = () if unit.size_is_secret else (COUNTED.format(unit.max_records),)
    return counted, promises


def copies_of(sample_weight: Any, n: int, most: int, random_state: Any = None) -> Positions:
    """Return how often every record counts, as its weight says: 0 to ``most`` times.

    A weight is clipped to [0, most]; a missing one, or what is no number, is 0. One between two
    integers is rounded to one of them at random, so that it is right on average. A record's own
    weight and own coin decide, so no record changes how often another counts.
    """
    column = read_groups(sample_weight, n, "sample_weight")
    weights = np.nan_to_num(np.clip(as_numbers(column), 0, most))
    least = np.floor(weights)
    up = Noise.of(random_state, _WEIGHTS_STREAM).coins(n) < weights - least
    return least.astype(np.intp) + up
