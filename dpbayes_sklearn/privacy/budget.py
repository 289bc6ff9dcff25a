"""Who is protected, and budgets (epsilon, delta): exact fractions, printed to the private side."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple, NoReturn

import numpy as np

Exact = Fraction | float
"""An exact non-negative number: a fraction, or the float infinity."""

_MOST_RECORDS_OF_A_PERSON = 2**31  # A person has at most this many records.
_SECRET_SIZE = ", add_remove"  # Labels of units that are added or removed end with this.

_UNIT_NAMES = {
    "record": "one record",
    "feature": "one feature value of one record",
    "person": "all records of one person (at most {})",
}
_NEIGHBOURS = {
    "replace": {
        "record": "data sets of the same size that differ in one record",
        "feature": "data sets that differ in one feature value of one record, its label unchanged",
        "person": (
            "data sets of the same size that differ in the records of one person (at most {})"
        ),
    },
    "add_remove": {
        "record": (
            "data sets that differ by adding or removing one record; the number of records is "
            "secret"
        ),
        "person": (
            "data sets that differ by adding or removing all records of one person (at most {}); "
            "the number of records is secret"
        ),
    },
}
LEAST_DELTA = Fraction(1, 10**300)
"""The least delta above 0: below, floats that bound probabilities would underflow."""
_PRINTED_DIGITS = 6  # The format "g" has this many digits.
_LONGEST_INTEGER = 10**600  # Python may refuse to print integers as long as this one.


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
        public, or added or removed, so that it is secret: the same noise then protects with half
        the epsilon, of which a small part is spent on the number.
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
        _one_of("name", self.name, _UNIT_NAMES)
        _one_of("neighbours", self.neighbours, _NEIGHBOURS)
        if (
            not isinstance(self.max_records, Integral)
            or not 1 <= self.max_records <= _MOST_RECORDS_OF_A_PERSON
        ):
            _refuse(
                "max_records",
                f"an int in the range [1, {_MOST_RECORDS_OF_A_PERSON}]",
                self.max_records,
            )
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
        return _UNIT_NAMES[self.name].format(self.max_records)

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


# The units of a whole record and of one feature value of a record.
RECORD, FEATURE = PrivacyUnit("record"), PrivacyUnit("feature")


def is_secret_size(label: str | None) -> bool:
    """Tell by the label of a unit whether neighbours differ in their number of records.

    >>> added = PrivacyUnit("record", neighbours="add_remove")
    >>> is_secret_size(added.label), is_secret_size(RECORD.label)
    (True, False)
    """
    return label is not None and label.endswith(_SECRET_SIZE)


def round_up(number: Exact) -> float:
    """Return the smallest float that is no less than ``number`` read as its shortest decimal.

    >>> round_up(Fraction(1, 10)), round_up(Fraction(1, 3)) >= Fraction(1, 3)
    (0.1, True)
    """
    if isinstance(number, float):
        return number
    try:
        value = float(number)
    except OverflowError:
        return math.inf
    return math.nextafter(value, math.inf) if Fraction(str(value)) < number else value


def exact(value: object, name: str = "epsilon") -> Exact:
    """Read a privacy parameter exactly; a delta is 0 or at least 1e-300.

    A float means the shortest decimal that prints it, so ``0.1`` is one tenth and
    ``0.1 + 0.2`` asked as two releases fits in ``0.3``. Infinity stays infinity.

    >>> exact(0.1), exact(2), exact(float("inf"))
    (Fraction(1, 10), Fraction(2, 1), inf)
    >>> exact(0.1) + exact(0.2) == exact(0.3)
    True
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal)):
        raise TypeError(f"{name} must be a real number. Got {type(value).__name__} instead.")
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
    elif math.isnan(value):
        raise ValueError(f"{name} must not be NaN.")
    elif value == math.inf:
        return math.inf
    elif value == -math.inf:
        raise ValueError(f"{name} must not be negative.")
    else:
        # str of every numpy float and of Decimal is its shortest exact decimal reading
        number = Fraction(str(value))
    if number < 0:
        raise ValueError(f"{name} must not be negative.")
    if name == "delta" and 0 < number < LEAST_DELTA:
        raise ValueError("delta must be 0 or at least 1e-300.")
    return number


class Budget(NamedTuple):
    """The budget of one release, and the unit that it protects.

    ``rho`` is the zCDP of a release for which it is known, beside its (epsilon, delta).
    ``pure_epsilon`` is the epsilon of a release with delta = 0 that is made after this one and has
    a budget of its own: together they may spend (epsilon + pure_epsilon, delta).
    """

    epsilon: Exact
    delta: Exact = Fraction(0)
    unit: PrivacyUnit = RECORD
    rho: Exact | None = None
    pure_epsilon: Exact = Fraction(0)

    @property
    def without_delta(self) -> Budget:
        """The cost of a purely private release."""
        return self._replace(delta=Fraction(0), rho=None)

    def part(self, share: Fraction) -> Budget:
        """Return a part of everything.

        >>> Budget(Fraction(1), Fraction(1, 100)).part(Fraction(1, 4))[:2]
        (Fraction(1, 4), Fraction(1, 400))
        """
        rho = None if self.rho is None else share * self.rho
        return Budget(share * self.epsilon, share * self.delta, self.unit, rho)

    @property
    def infinite(self) -> bool:
        """True where no privacy is asked for: exact Bayes, no noise."""
        return math.isinf(self.epsilon)


class Copies(NamedTuple):
    r"""Records that count several times each, as weights say: a record is as many copies of it.

    How often a record counts is as private as its values, so the number of copies is secret, also
    where the number of records is public. Noise is calibrated to copies that are added or removed.

    **Guarantee.** *Precondition*: a release is :math:`(\varepsilon, \delta)`-private, or
    :math:`\rho`-zCDP, where at most km copies are added or removed; a unit has at most k records,
    which count at most m times each. *Claim*: it is as private where a unit is added or removed,
    and :math:`(2\varepsilon, (1 + e^\varepsilon)\delta)`-private, or :math:`4\rho`-zCDP, where one
    is replaced. *Proof*: a unit has at most km copies. One that is replaced is removed, then
    another is added: two steps, for which :math:`P \le e^\varepsilon P' + \delta \le
    e^{2\varepsilon} P'' + (1 + e^\varepsilon)\delta`; two steps of :math:`\rho`-zCDP are
    :math:`2^2\rho` (Bun and Steinke 2016). ∎

    Attributes
    ----------
    unit : PrivacyUnit
        Who is protected.
    most : int
        How often a record counts at most.

    Examples
    --------
    >>> weights = Copies(RECORD, 5)
    >>> inner = weights.inner(Budget(Fraction(1)))
    >>> inner.epsilon, inner.unit.n_changed
    (Fraction(1, 2), 5)
    >>> weights.outer(inner) == Budget(Fraction(1))
    True
    """

    unit: PrivacyUnit
    most: int

    @property
    def counted(self) -> PrivacyUnit:
        """The unit that noise is calibrated to: all copies, added or removed."""
        copies = self.unit.max_records * self.most
        return PrivacyUnit("person", max_records=copies, neighbours="add_remove")

    @property
    def steps(self) -> int:
        """How often copies come or go from one neighbour to the other: once, or twice."""
        return 1 if self.unit.size_is_secret else 2

    def inner(self, budget: Budget) -> Budget:
        """Return what a release may spend by the counted unit, to cost no more than the budget.

        A delta that is below the least one is none.
        """
        epsilon = budget.epsilon / self.steps
        delta = Fraction(budget.delta) / self._times(epsilon)
        return Budget(epsilon, delta if delta >= LEAST_DELTA else Fraction(0), self.counted)

    def outer(self, cost: Budget) -> Budget:
        """Return the cost, for who is protected, of a release with a cost by the counted unit."""
        rho = None if cost.rho is None else cost.rho * self.steps**2
        delta = Fraction(cost.delta) * self._times(cost.epsilon)
        return Budget(cost.epsilon * self.steps, delta, self.unit, rho)

    def _times(self, epsilon: Exact) -> Fraction:
        r"""Return :math:`1 + e^\varepsilon` for two steps, rounded up, and 1 for one."""
        if self.steps == 1 or epsilon > 700:
            return Fraction(1 if self.steps == 1 else 10**305)
        return 1 + Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**12))


def at_least(number: object, digits: int = _PRINTED_DIGITS) -> str:
    """Return a number in few digits, rounded up: for what is spent or promised.

    >>> at_least(0.3), at_least(1.0000004), at_least(1e-6), at_least(0.0243559, digits=3)
    ('0.3', '1.00001', '1e-06', '0.0244')
    """
    return _shown(number, Context(digits, ROUND_CEILING))


def at_most(number: object, digits: int = _PRINTED_DIGITS) -> str:
    """Return a number in few digits, rounded down: for what is left.

    >>> at_most(0.3), at_most(0.99999996), at_most(float("inf"))
    ('0.3', '0.999999', 'inf')
    """
    return _shown(number, Context(digits, ROUND_FLOOR))


def _shown(number: object, rounding: Context) -> str:
    fraction = exact(number)
    if isinstance(fraction, float):
        return "inf"
    parts = Decimal(fraction.numerator), Decimal(fraction.denominator)
    shown = rounding.divide(*parts)
    is_float = not shown or 1e-300 < abs(shown) < Decimal(math.nextafter(math.inf, 0))
    return f"{float(shown):.{rounding.prec}g}" if is_float else f"{shown.normalize():e}"


class Cost(NamedTuple):
    """An (epsilon, delta) pair; exact fractions inside the ledger, floats where it is shown.

    Costs are ordered component by component, so that of two neither need be the smaller.

    >>> Cost(1.0, 0.0) <= Cost(1.0, 1e-6), Cost(1.0, 1e-6) <= Cost(2.0, 0.0)
    (True, False)
    """

    epsilon: Exact = Fraction(0)
    delta: Exact = Fraction(0)

    @classmethod
    def of(cls, epsilon: object, delta: object = 0) -> Cost:
        """Read a pair exactly, refusing what cannot be the cost of a release.

        >>> Cost.of(0.1)
        Cost(epsilon=Fraction(1, 10), delta=Fraction(0, 1))
        """
        cost = cls(exact(epsilon, "epsilon"), exact(delta, "delta"))
        if cost.delta > 1:
            raise ValueError(f"delta must be in the range [0, 1]. Got {delta} instead.")
        if not any(cost):
            raise ValueError("epsilon and delta must not both be 0.")
        cost.written()
        return cost

    def plus(self, other: Cost) -> Cost:
        """Return the cost of both, by sequential composition."""
        return Cost(self.epsilon + other.epsilon, self.delta + other.delta)

    def joined(self, other: Cost) -> Cost:
        """Return the cost of both on disjoint people, by parallel composition."""
        return Cost(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def beyond(self, other: Cost) -> Cost:
        """Return what this costs more than ``other``, nothing where it costs less."""
        return Cost(_excess(self.epsilon, other.epsilon), _excess(self.delta, other.delta))

    def left_by(self, spent: Cost) -> Cost:
        """Return what is left of this ceiling; an infinite one is never used up."""
        return Cost(
            math.inf if self.epsilon == math.inf else _excess(self.epsilon, spent.epsilon),
            _excess(self.delta, spent.delta),
        )

    def __le__(self, other: tuple[Any, ...]) -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))

    def __ge__(self, other: tuple[Any, ...]) -> bool:
        return all(mine >= theirs for mine, theirs in zip(self, other, strict=True))

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return self <= other and self != other

    def __gt__(self, other: tuple[Any, ...]) -> bool:
        return self >= other and self != other

    def rounded_up(self) -> Cost:
        """Return floats that read no less than the exact figures: for what is spent."""
        return Cost(round_up(self.epsilon), round_up(self.delta))

    def rounded_down(self) -> Cost:
        """Return floats that read no more than the exact figures: for what is left."""
        return Cost(round_down(self.epsilon), round_down(self.delta))

    def written(self) -> tuple[str, str]:
        """Return both figures as exact text."""
        return written(self.epsilon), written(self.delta)

    @classmethod
    def parsed(cls, epsilon: str, delta: str) -> Cost:
        """Return the pair that was written.

        >>> Cost.parsed("1/10", "0/1") == Cost.of(0.1)
        True
        """
        return cls(parsed(epsilon), parsed(delta))

    def __str__(self) -> str:
        return f"epsilon={round_up(self.epsilon)}, delta={round_up(self.delta)}"


def round_down(number: Exact) -> float:
    """Return the largest float that, read as its shortest decimal, is no more than ``number``.

    >>> round_down(Fraction(1, 10)), round_down(Fraction(2, 3)) <= Fraction(2, 3)
    (0.1, True)
    """
    if isinstance(number, float):
        return number
    try:
        value = float(number)
    except OverflowError:
        return math.nextafter(math.inf, 0)
    return math.nextafter(value, 0) if Fraction(str(value)) > number else value


def _excess(new: Exact, old: Exact) -> Exact:
    return new - old if new > old else Fraction(0)  # infinity is never taken from infinity


def written(number: Exact) -> str:
    """Return a figure as exact text."""
    if isinstance(number, float):
        return "inf"
    if max(number.numerator, number.denominator) >= _LONGEST_INTEGER:
        raise ValueError(
            "epsilon, delta and their sums must be recorded exactly, but a fraction here needs "
            "more than 600 digits. Give them with fewer digits."
        )
    return f"{number.numerator}/{number.denominator}"


def parsed(text: str) -> Exact:
    """Return the figure that was written."""
    number = math.inf if text == "inf" else Fraction(text)
    if number < 0:
        raise ValueError("a cost is never negative")
    return number
