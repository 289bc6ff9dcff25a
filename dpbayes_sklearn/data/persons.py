"""Who a fit protects, and which records of a person count if there are more than that.

A rule that looked at anybody else would let one person change which records of others count, and so
would one that looked at positions: in a table that is listed anew, others may have moved. So the
records that count are drawn at random, for every person alone, all choices alike.

Equal labels have one form, whatever type their containers give them. The types are a closed list.
What objects of any other type say about themselves, a text or whether they are equal, may be
anything: of a memory address every record would be another person's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_consistent_length

from dpbayes_sklearn._compat import InvalidParameterError, Range, did_you_mean
from dpbayes_sklearn._typing import AnyArray, Positions
from dpbayes_sklearn.data.dask import column_here
from dpbayes_sklearn.data.frames import framed_column
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.schema.values import as_numbers

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # Dates are counted from here.
_MICROSECOND = timedelta(microseconds=1)
# The most digits of a Decimal: 1e999999999 as an integer would fill the memory.
_MOST_DIGITS = 10_000
_MOST_MONTHS = 12 * 10**6  # Months from 1970. Numpy's calendar overflows only far beyond.
# Units of durations in attoseconds, the smallest that numpy has.
_ATTOSECONDS = {
    "W": 7 * 86400 * 10**18,
    "D": 86400 * 10**18,
    "h": 3600 * 10**18,
    "m": 60 * 10**18,
    **{
        unit: 10 ** (18 - 3 * i) for i, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))
    },
}

_PLAIN = "biufUSmM"  # Values of types of these kinds are compared exactly by numpy.
PROTECTION: dict[str, list[Any]] = {"privacy_unit": [str, PrivacyUnit]}
"""The constraint of the parameter; :func:`declared_unit` checks its value."""
COUNTED = "the number of records that count, with a label and at most {} of a person, is public"
"""Under "replace", where it is used and published without noise."""
PERSONS_STREAM = 2**17
"""The stream of a seed that draws which records of a person count."""
_WEIGHTS_STREAM = 2**18  # The stream of a seed that rounds weights.
PROMISED = "no person has more than {} of the records, as declared"
OWN_WEIGHTS = "no weight depends on other records, as one that was adjusted to their totals does"
"""Where weights are given: one record would change how often others count."""
NO_GROUPS = (
    "A person is the privacy unit, but groups, whose record each row is, were not given. Pass "
    "them, as in fit(X, y, groups=table['patient']). Meta-estimators of scikit-learn, such as "
    "GridSearchCV, pass them on after sklearn.set_config(enable_metadata_routing=True) and "
    "estimator.set_fit_request(groups=True). If nobody can have more than {0} of the rows, declare "
    "it: PrivacyUnit('person', max_records={0}, by_construction=True). Nothing was spent."
)


def canonical(label: Any) -> Hashable | None:
    """Return the form of a label, None if it is missing or of a type that is not listed.

    An object's own methods may raise anything, with its content in the message: they are not asked,
    or must not stop a fit.

    >>> canonical(1) == canonical(np.float32(1)) == canonical(Decimal("1.00")) != canonical("1")
    True
    >>> canonical(date(2020, 1, 1)) == canonical(np.datetime64("2020-01-01T00:00"))
    True
    """
    kind = type(label)
    if kind is str or kind is int:
        plain: str | int = label
        return plain
    try:
        for types, form in _FORMS:
            if issubclass(kind, types):
                return form(label)
    except Exception:
        return None
    return None


def _float(label: Any) -> Hashable | None:
    """Return a float, which Python compares with all other numbers without rounding."""
    number = float.__float__(label) if isinstance(label, float) else float(label)
    return number if number == number else None


def _number(label: Any) -> Hashable | None:
    """Return a number that a float may not hold."""
    if label != label or label in (np.inf, -np.inf):
        return _float(label)
    return Fraction(*label.as_integer_ratio())


def _decimal(label: Decimal) -> Hashable | None:
    digits, exponent = label.as_tuple()[1:]
    if isinstance(exponent, int) and len(digits) + abs(exponent) > _MOST_DIGITS:
        return None
    return _number(label)


def _numpy_date(label: np.datetime64) -> Hashable | None:
    unit, step = np.datetime_data(label.dtype)
    if unit in {"Y", "M"}:
        months = int(label.astype(np.int64)) * step * (12 if unit == "Y" else 1)
        if abs(months) > _MOST_MONTHS:
            return None
        label = label.astype("datetime64[D]")
    return _ticks("instant", label)


def _ticks(name: str, label: Any) -> Hashable | None:
    """Return a count of attoseconds; months that have no number of seconds, in their unit."""
    if np.isnat(label):
        return None
    unit, step = np.datetime_data(label.dtype)
    ticks = int(label.astype(np.int64)) * step
    if unit == "Y":
        unit, ticks = "M", 12 * ticks
    return (name, ticks * _ATTOSECONDS[unit]) if unit in _ATTOSECONDS else (name, ticks, unit)


def _date(label: date) -> Hashable | None:
    """Return an instant: without a time zone in UTC, without a time at midnight."""
    if hasattr(label, "to_datetime64"):  # of pandas: nanoseconds, in UTC
        return _numpy_date(label.to_datetime64())
    if not isinstance(label, datetime):
        label = datetime(label.year, label.month, label.day)
    aware = label.replace(tzinfo=UTC) if label.utcoffset() is None else label
    return ("instant", (aware - _EPOCH) // _MICROSECOND * 10**12)


def _duration(label: timedelta) -> Hashable | None:
    if hasattr(label, "to_timedelta64"):  # of pandas: nanoseconds
        return _ticks("duration", label.to_timedelta64())
    return ("duration", label // _MICROSECOND * 10**12)


def _tuple(label: tuple[Any, ...]) -> Hashable | None:
    """Return the forms of its parts; none of these may be a tuple, so that there are few."""
    parts = [*tuple.__iter__(label)]
    forms = [None if issubclass(type(part), tuple) else canonical(part) for part in parts]
    return None if None in forms else ("tuple", *forms)


Form = Callable[[Any], Hashable | None]

_FORMS: tuple[tuple[type | tuple[type, ...], Form], ...] = (
    (str, str.__str__),  # not by the methods of a subclass, which may do anything
    (bytes, lambda label: ("bytes", bytes.__bytes__(label))),
    (int, int.__int__),
    ((float, np.float16, np.float32), _float),
    (np.bool_, int),
    (np.datetime64, _numpy_date),
    (np.timedelta64, partial(_ticks, "duration")),  # before integers, which it is one of
    (np.integer, int),
    (np.floating, _number),
    (Fraction, lambda label: Fraction(int(label.numerator), int(label.denominator))),
    (Decimal, _decimal),
    (date, _date),
    (timedelta, _duration),
    (UUID, lambda label: ("uuid", int(label.int))),
    (tuple, _tuple),
)
"""How labels of each type are read; the first type that fits counts."""


def fewest_left(person: Positions, held_out: int) -> int:
    """Return how many records are left if the persons with the most records are held out.

    Where persons are replaced by others who have as many records, that is the same for neighbours,
    as are the numbers of records that persons have; how many are left by chance is not.

    >>> fewest_left(np.array([0, 1, 1, 1, 2, 2]), 1)
    3
    """
    return int(np.sort(np.bincount(person))[: -held_out or None].sum())


def read_groups(groups: Any, n_rows: int, name: str = "groups") -> AnyArray:
    """Return the labels of persons, or weights, as one column in memory, one for each record."""
    labels = column_here(framed_column(groups, name))
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must be one column, of shape (n_samples,). Got shape {labels.shape} instead."
        )
    check_consistent_length(np.broadcast_to(0, n_rows), labels)
    return labels


def counted_records(
    labels: AnyArray, most: int, noise: Noise | None = None
) -> npt.NDArray[np.intp]:
    """Return the positions of the records that count: at most ``most`` of each label, in order.

    Records without a label (None, NaN, NaT) do not count: nobody could tell how many are of one
    person. Nor do those whose label is of a type for which nobody can tell which labels are equal.
    Of a label with more records, those that count are drawn: the first ones in a random
    order of all.

    >>> labels = np.array(["ann", "bob", "ann", None, "ann"], dtype=object)
    >>> len(counted_records(labels, 2)), len(counted_records(labels, 3))
    (3, 4)
    """
    person = codes_of(labels)
    positions = np.flatnonzero(person >= 0)
    person = person[positions]
    counts = np.bincount(person)
    if not len(counts) or counts.max() <= most:
        return positions
    shuffled = (noise or Noise()).order(len(person))
    by_person = shuffled[np.argsort(person[shuffled], kind="stable")]
    rank = np.arange(len(person)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(positions[by_person[rank < most]])


def coins_of(labels: AnyArray, noise: Noise | None = None) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each record: every label draws one for all of its records.

    >>> coins = coins_of(np.array(["ann", "bob", "ann"]))
    >>> bool(coins[0] == coins[2] != coins[1])
    True
    """
    person = codes_of(labels)  # -1 of those without a label, who share the last number
    n_persons = person.max(initial=-1) + 2
    return (noise or Noise()).coins(int(n_persons))[person]


def codes_of(labels: AnyArray) -> npt.NDArray[np.intp]:
    """Return the number of each label, from 0 on: the same for the same label; -1 if missing.

    Not by numpy's arrays of text, in which labels that differ in trailing NULs are equal.
    """
    if labels.dtype.kind in _PLAIN:
        codes = np.unique(labels, return_inverse=True)[1]
        return np.where(labels == labels, codes, -1)  # NaN and NaT differ from themselves
    numbers: dict[Hashable, int] = {None: -1}
    forms = map(canonical, labels.tolist())
    return np.fromiter((numbers.setdefault(x, len(numbers) - 1) for x in forms), np.intp)


WEIGHTS: dict[str, list[Any]] = {"max_weight": [Range(Integral, 1, 2**15, closed="both"), None]}
"""The constraint of the parameter, for estimators that take weights."""


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
    records = records if counted is None else records.at(counted)
    if copies is not None:
        records = records.weighted(copies if counted is None else copies[counted])
    return records, promises


def _counted(
    n: int, groups: Any, unit: PrivacyUnit, random_state: Any
) -> tuple[Positions | None, tuple[str, ...]]:
    """Return positions of the records that count (None: all), and conditions of the guarantee."""
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
