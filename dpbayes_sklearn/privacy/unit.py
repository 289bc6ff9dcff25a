"""Who is protected: what may change between two neighbouring data sets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["FEATURE", "RECORD", "PrivacyUnit", "is_secret_size"]

Exact = Fraction | float

_SECRET_SIZE = ", add_remove"  # the end of the label of units that are added or removed


@dataclass(frozen=True)
class PrivacyUnit:
    """What may change between neighbours, hence what a release hides.

    Every sensitivity is what one record adds to a statistic, times the number of records that
    come or go: see :attr:`moves`.

    Attributes
    ----------
    name : {"record", "feature", "person"}
        One whole record, one feature value of it (its label unchanged), or all records of one
        person.
    change : {"replace", "add_remove"}
        Whether the records are replaced by as many others, so that the number of records is
        public, or added or removed, so that it is secret.
    max_records : int
        How many records a person has at most; 1 for other units.

    Examples
    --------
    >>> RECORD.moves, str(RECORD)
    (2, 'one record')
    >>> person = PrivacyUnit("person", "add_remove", 3)
    >>> person.moves, str(person)
    (3, 'all records of one person (at most 3)')
    """

    name: str = "record"
    change: str = "replace"
    max_records: int = 1

    def __post_init__(self) -> None:
        if self.name not in _NAMES or self.change not in _NEIGHBOURS:
            raise ValueError("A unit is a record, a feature or a person, replaced or added.")
        if self.max_records < 1 or (self.max_records > 1 and self.name != "person"):
            raise ValueError("Only a person has several records, and at least one.")
        if self.name == "feature" and self.size_is_secret:
            raise ValueError("Only whole records can be added or removed.")

    @classmethod
    def of(cls, unit: PrivacyUnit | str) -> PrivacyUnit:
        """Return a unit, given itself or by its name.

        >>> PrivacyUnit.of("feature").name
        'feature'
        """
        return cls(unit) if isinstance(unit, str) else unit

    @classmethod
    def read(cls, name: str, max_records: int, neighbours: str) -> PrivacyUnit:
        """Return the unit whose :attr:`neighbours` are described by this text.

        >>> PrivacyUnit.read("record", 1, RECORD.neighbours) == RECORD
        True
        """
        changes = ("replace",) if name == "feature" else tuple(_NEIGHBOURS)
        for unit in (cls(name, change, max_records) for change in changes):
            if unit.neighbours == neighbours:
                return unit
        raise ValueError("neighbours is not what the unit says.")

    def __str__(self) -> str:
        return _NAMES[self.name].format(self.max_records)

    @property
    def label(self) -> str:
        """A short name, for ledgers.

        >>> PrivacyUnit("person", "add_remove", 3).label
        'person (3 records), add_remove'
        """
        records = f" ({self.max_records} records)" if self.name == "person" else ""
        return f"{self.name}{records}" + _SECRET_SIZE * self.size_is_secret

    @property
    def full(self) -> str:
        """The unit, and whether the number of records is part of what it protects.

        >>> PrivacyUnit("record", "add_remove").full
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
        return self.change == "add_remove"

    @property
    def moves(self) -> int:
        """How many records come or go; one that is replaced goes, and another comes."""
        return self.max_records * (1 if self.size_is_secret else 2)

    def equivalent(self, epsilon: Exact) -> Exact:
        """Return the epsilon for replacing one record that needs the same noise on counts.

        Public rules that weigh records against noise are stated for it.

        >>> PrivacyUnit("record", "add_remove").equivalent(1), RECORD.equivalent(1)
        (2.0, 1.0)
        """
        return epsilon * RECORD.moves / self.moves

    @property
    def neighbours(self) -> str:
        """Which data sets are neighbours."""
        return _NEIGHBOURS[self.change][self.name].format(self.max_records)


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

    >>> is_secret_size(PrivacyUnit("record", "add_remove").label), is_secret_size(RECORD.label)
    (True, False)
    """
    return label is not None and label.endswith(_SECRET_SIZE)
