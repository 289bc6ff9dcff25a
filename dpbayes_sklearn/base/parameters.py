"""Who a fit protects: the parameter that says it, and the records that count."""

from __future__ import annotations

from typing import Any

from dpbayes_sklearn._sklearn_compat import InvalidParameterError, did_you_mean
from dpbayes_sklearn.data.persons import counted_records, read_groups
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = [
    "COUNTED",
    "PERSONS_STREAM",
    "PROMISED",
    "PROTECTION",
    "declared_unit",
    "records_that_count",
]


PROTECTION: dict[str, list[Any]] = {"privacy_unit": [str, PrivacyUnit]}
"""The constraint of the parameter; :func:`declared_unit` checks its value."""

COUNTED = "the number of records that count, with a label and at most {} of a person, is public"
"""Under "replace", where it is used and published without noise."""

PERSONS_STREAM = 2**17
"""The stream of a seed that draws which records of a person count."""

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
    records: Any, groups: Any, unit: PrivacyUnit, random_state: Any = None
) -> tuple[Any, tuple[str, ...]]:
    """Return the records that count, and what the guarantee then rests on.

    Of a person with more than are protected together, they are drawn at random.
    """
    if unit.name != "person":
        if groups is not None:
            raise ValueError(
                "groups says whose record it is: set privacy_unit=PrivacyUnit('person', "
                "max_records=...)."
            )
        return records, ()
    if not unit.size_is_secret and unit.max_records > records.n:
        raise ValueError(
            f"max_records={unit.max_records} of the privacy_unit is more than there are records. "
            f"Got n_samples={records.n}."
        )
    if groups is None and not unit.by_construction:
        raise ValueError(NO_GROUPS.format(unit.max_records))
    if groups is None:
        return records, (PROMISED.format(unit.max_records),)
    noise = Noise.of(random_state, PERSONS_STREAM)
    counted = counted_records(read_groups(groups, records.n), unit.max_records, noise)
    if not (len(counted) or unit.size_is_secret):
        raise ValueError(
            "groups must have labels: no record has one. Labels are texts, bytes, numbers, dates, "
            "durations, UUIDs or tuples of these."
        )
    promises = () if unit.size_is_secret else (COUNTED.format(unit.max_records),)
    return records.at(counted), promises
