"""Who a fit protects: the parameters that say it, and the unit of privacy that they make."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from dpbayes_sklearn._sklearn_compat import InvalidParameterError, Range, StrOptions
from dpbayes_sklearn.data.persons import counted_records, read_groups
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = [
    "COUNTED",
    "FEATURES_TOO",
    "PERSONS_STREAM",
    "PROMISED",
    "PROTECTION",
    "declared_unit",
    "records_that_count",
]


PROTECTION: dict[str, list[Any]] = {
    "privacy_unit": [StrOptions({"record", "person"})],
    "max_records_per_person": [Range(Integral, 1, 2**31, closed="both"), None],
    "neighbours": [StrOptions({"replace", "add_remove"})],
}
"""The constraints of the parameters."""

FEATURES_TOO: dict[str, list[Any]] = {
    **PROTECTION,
    "privacy_unit": [StrOptions({"record", "feature", "person"})],
}
"""The same where one feature value of a record can be the unit."""

COUNTED = "the number of records that count, with a label and at most {} of a person, is public"
"""Under "replace", where it is used and published without noise."""

PERSONS_STREAM = 2**17
"""The stream of a seed that draws which records of a person count."""

PROMISED = "no person has more than {} of the records (groups were not given)"


def declared_unit(estimator: Any) -> PrivacyUnit:
    """Return the unit that an estimator's parameters declare; contradictions are refused."""
    name, most = estimator.privacy_unit, estimator.max_records_per_person
    if name == "person" and most is None:
        raise InvalidParameterError(
            f"The 'max_records_per_person' parameter of {type(estimator).__name__} must be an int "
            "in the range [1, inf) for privacy_unit='person'. Got None instead."
        )
    if name != "person" and most is not None:
        raise InvalidParameterError(
            f"The 'max_records_per_person' parameter of {type(estimator).__name__} must be None "
            f"for privacy_unit={name!r}; it goes with privacy_unit='person'. Got {most!r} instead."
        )
    if name == "feature" and estimator.neighbours == "add_remove":
        raise InvalidParameterError(
            f"The 'neighbours' parameter of {type(estimator).__name__} must be 'replace' for "
            "privacy_unit='feature': a value of a record can only be replaced. "
            "Got 'add_remove' instead."
        )
    return PrivacyUnit(name, estimator.neighbours, 1 if most is None else int(most))


def records_that_count(
    records: Any, groups: Any, unit: PrivacyUnit, random_state: Any = None
) -> tuple[Any, tuple[str, ...]]:
    """Return the records that count, and what the guarantee then rests on.

    Of a person with more than are protected together, they are drawn at random.
    """
    if unit.name != "person":
        if groups is not None:
            raise ValueError(
                "groups says whose record it is: set privacy_unit='person' and "
                "max_records_per_person."
            )
        return records, ()
    if not unit.size_is_secret and unit.max_records > records.n:
        raise ValueError(
            f"max_records_per_person={unit.max_records} is more than there are records. "
            f"Got n_samples={records.n}."
        )
    if groups is None:
        return records, (PROMISED.format(unit.max_records),)
    source = random_source(random_state, PERSONS_STREAM)
    counted = counted_records(read_groups(groups, records.n), unit.max_records, source)
    if not (len(counted) or unit.size_is_secret):
        raise ValueError("groups must have labels: no record has one.")
    promises = () if unit.size_is_secret else (COUNTED.format(unit.max_records),)
    return records.at(counted), promises
