"""Who is protected: what may change between two neighbouring data sets."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FEATURE", "RECORD", "PrivacyUnit"]


@dataclass(frozen=True)
class PrivacyUnit:
    """What may change between neighbours, hence what a release hides.

    Every sensitivity is what one record adds to a statistic, times the number of records that
    come or go: see :attr:`moves`.

    Attributes
    ----------
    name : {"record", "feature"}
        One whole record, or one feature value of it, its label unchanged.

    Examples
    --------
    >>> RECORD.moves, str(RECORD)
    (2, 'one record')
    """

    name: str = "record"

    @classmethod
    def of(cls, unit: PrivacyUnit | str) -> PrivacyUnit:
        """Return a unit, given itself or by its name.

        >>> PrivacyUnit.of("feature")
        PrivacyUnit(name='feature')
        """
        return cls(unit) if isinstance(unit, str) else unit

    def __str__(self) -> str:
        return _NAMES[self.name]

    @property
    def whole_records(self) -> bool:
        """True if all values of a record may change, its label included."""
        return self.name != "feature"

    @property
    def replacements(self) -> int:
        """How many records are replaced by others."""
        return 1

    @property
    def moves(self) -> int:
        """How many records come or go; one that is replaced goes, and another comes."""
        return 2 * self.replacements

    @property
    def neighbours(self) -> str:
        """Which data sets are neighbours."""
        return _NEIGHBOURS[self.name]


_NAMES = {"record": "one record", "feature": "one feature value of one record"}
_NEIGHBOURS = {
    "record": "data sets of the same size that differ in one record",
    "feature": "data sets that differ in one feature value of one record, its label unchanged",
}

RECORD, FEATURE = PrivacyUnit("record"), PrivacyUnit("feature")
