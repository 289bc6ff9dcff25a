"""Who is protected: what may change between two neighbouring data sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral
from typing import NoReturn

__all__ = ["FEATURE", "RECORD", "PrivacyUnit", "is_secret_size"]

Exact = Fraction | float

_MOST = 2**31  # The most records of a person.
_SECRET_SIZE = ", add_remove"  # The end of the label of units that are added or removed.


@dataclass(frozen=True)
class PrivacyUnit:
    """What may change between neighbours, hence what a release hides.

    Every sensitivity is what one record adds to a statistic, times the number of records that
    are removed or added: see :attr:`n_changed`.

    Attributes
    ----------
    name : {"record", "feature", "person"}, default="record"
        One whole record, one feature value of it (its label unchanged), or all records of one
        person.
    max_records : int, default=1
        For a person: how many records are protected together. No more of them count: ``fit(X, y,
        groups=...)`` says whose record each is. :func:`planning.records_per_person` helps to
        choose.
    neighbours : {"replace", "add_remove"}, default="replace"
        Whether the records are replaced by as many others, so that the number of records is
        public, or added or removed, so that it is secret.
    by_construction : bool, default=False
        For a person: True states that nobody has more than ``max_records`` rows in any table that
        is fitted, so that ``groups`` may be left out. The guarantee then rests on it.

    Examples
    --------
    >>> RECORD.n_changed, str(RECORD)
    (2, 'one record')
    >>> person = PrivacyUnit("person", max_records=3, neighbours="add_remove")
    >>> person.n_changed, str(person)
    (3, 'all records of one person (at most 3)')
    """

    name: str = "record"
    max_records: int = field(default=1, kw_only=True)
    neighbours: str = field(default="replace", kw_only=True)
    by_construction: bool = field(default=False, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        _one_of("name", self.name, _NAMES)
        _one_of("neighbours", self.neighbours, _NEIGHBOURS)
        if not isinstance(self.max_records, Integral) or not 1 <= self.max_records <= _MOST:
            _refuse("max_records", f"an int in the range [1, {_MOST}]", self.max_records)
        object.__setattr__(self, "max_records", int(self.max_records))
        if self.max_records > 1 and self.name != "person":
            _refuse("max_records", f"1 for {self.name!r}: it goes with 'person'", self.max_records)
        if not isinstance(self.by_construction, bool) or self.by_construction > (
            self.name == "person"
        ):
            _refuse("by_construction", "a bool, False unless for 'person'", self.by_construction)
        if self.name == "feature" and self.size_is_secret:
            allowed = "'replace' for 'feature': a value of a record can only be replaced"
            _refuse("neighbours", allowed, self.neighbours)

    @classmethod
    def of(cls, unit: PrivacyUnit | str) -> PrivacyUnit:
        """Return a unit, given itself or by its name.

        >>> PrivacyUnit.of("feature").name
        'feature'
        """
        return cls(unit) if isinstance(unit, str) else unit

    @classmethod
    def read(cls, name: str, max_records: int, definition: str) -> PrivacyUnit:
        """Return the unit whose neighbours are described by this text.

        >>> PrivacyUnit.read("record", 1, RECORD.definition) == RECORD
        True
        """
        kinds = ("replace",) if name == "feature" else tuple(_NEIGHBOURS)
        for kind in kinds:
            unit = cls(name, max_records=max_records, neighbours=kind)
            if unit.definition == definition:
                return unit
        raise ValueError("neighbours is not what the unit says.")

    def __str__(self) -> str:
        return _NAMES[self.name].format(self.max_records)

    @property
    def label(self) -> str:
        """A short name, for ledgers.

        >>> PrivacyUnit("person", max_records=3, neighbours="add_remove").label
        'person (3 records), add_remove'
        """
        records = f" ({self.max_records} records)" if self.name == "person" else ""
        return f"{self.name}{records}" + _SECRET_SIZE * self.size_is_secret

    @property
    def full(self) -> str:
        """The unit, and whether the number of records is part of what it protects.

        >>> PrivacyUnit("record", neighbours="add_remove").full
        'one record and the number of records'
        """
        return f"{self}" + " and the number of records" * self.size_is_secret

    @property
    def whole_records(self) -> bool:
        """True if all values of a record may change, its label included."""
        return self.name != "feature"

    @property
    def size_is_secret(self) -> bool:
        """True if neighbours differ in their number of records."""
        return self.neighbours == "add_remove"

    @property
    def n_changed(self) -> int:
        """Records removed plus records added; one that is replaced counts as both."""
        return self.max_records * (1 if self.size_is_secret else 2)

    def equivalent(self, epsilon: Exact) -> Exact:
        """Return the epsilon for replacing one record that needs the same noise on counts.

        Public rules that weigh records against noise are stated for it.

        >>> PrivacyUnit("record", neighbours="add_remove").equivalent(1), RECORD.equivalent(1)
        (2.0, 1.0)
        """
        return epsilon * RECORD.n_changed / self.n_changed

    @property
    def definition(self) -> str:
        """Which data sets are neighbours, in words."""
        return _NEIGHBOURS[self.neighbours][self.name].format(self.max_records)


def _one_of(name: str, value: object, allowed: Collection[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        _refuse(name, f"a str among {set(allowed)}", value)


def _refuse(name: str, allowed: str, value: object) -> NoReturn:
    raise ValueError(
        f"The '{name}' parameter of PrivacyUnit must be {allowed}. Got {value!r} instead."
    )


_NAMES = {
    "record": "one record",
    "feature": "one feature value of one record",
    "person": "all records of one person (at most {})",
}
_NEIGHBOURS = {
    "replace": {
        "record": "data sets of the same size that differ in one record",
        "feature": "data sets that differ in one feature value of one record, its label unchanged",
        "person": (
            "data sets of the same size that differ in the records of one person, at most {}"
        ),
    },
    "add_remove": {
        "record": "data sets of which one has one record more; the number of records is secret",
        "person": (
            "data sets of which one has the records of one person more, at most {}; the number of "
            "records is secret"
        ),
    },
}

RECORD, FEATURE = PrivacyUnit("record"), PrivacyUnit("feature")


def is_secret_size(label: str | None) -> bool:
    """Tell by the label of a unit whether neighbours differ in their number of records.

    >>> added = PrivacyUnit("record", neighbours="add_remove")
    >>> is_secret_size(added.label), is_secret_size(RECORD.label)
    (True, False)
    """
    return label is not None and label.endswith(_SECRET_SIZE)
