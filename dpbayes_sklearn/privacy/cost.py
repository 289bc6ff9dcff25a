"""Privacy costs: pairs (epsilon, delta) that add up without rounding."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

from dpbayes_sklearn.privacy.budget import Exact, exact
from dpbayes_sklearn.privacy.guarantee import round_up

__all__ = ["Cost", "parsed", "round_down", "written"]

_LARGEST = 10**600  # Python may refuse to print longer integers


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
    if max(number.numerator, number.denominator) >= _LARGEST:
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
