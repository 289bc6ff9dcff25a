"""The promise a release was made under, as a value that never changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from dpbayes_sklearn._html import QUIET, card, tag, tiles
from dpbayes_sklearn.privacy.budget import Budget, Exact, exact

__all__ = ["PrivacyGuarantee", "round_up"]

_NEIGHBOURS = {
    "record": "data sets of the same size that differ in one record",
    "feature": "data sets that differ in one feature value of one record, its label unchanged",
}
_UNITS = {"record": "one record", "feature": "one feature value of one record"}
WEAK = 10  # above, the promise says little
_WRITTEN_OUT = 15  # beyond, exp(epsilon) is a long number


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


@dataclass(frozen=True)
class PrivacyGuarantee:
    """What is promised to the people in the data.

    Attributes
    ----------
    epsilon, delta : float
        For every two neighbouring data sets and every set of outcomes S,
        P(S | D) <= exp(epsilon) P(S | D') + delta.
    unit : {"record", "feature"}
        What one person's contribution is.
    neighbours : str
        The data sets that cannot be told apart.
    mechanism : str
        How the posterior was released.
    conditions : tuple of str
        What the promise rests on beyond the mathematics; empty is best.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    mechanism: str
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, budget: Budget, mechanism: str, conditions: Iterable[str] = ()) -> PrivacyGuarantee:
        """Return the guarantee of a release that spent ``budget``."""
        return cls(
            round_up(budget.epsilon),
            round_up(budget.delta),
            budget.unit,
            _NEIGHBOURS[budget.unit],
            mechanism,
            tuple(conditions),
        )

    @staticmethod
    def parallel(batches: Sequence[PrivacyGuarantee]) -> PrivacyGuarantee:
        """Return the guarantee of releases about different people, one for each batch of them."""
        first = batches[0]
        if len(batches) == 1:
            return first
        together = sum((exact(batch.epsilon) for batch in batches), Fraction(0))
        conditions = [c for batch in batches for c in batch.conditions]
        return replace(
            first,
            epsilon=max(batch.epsilon for batch in batches),
            delta=max(batch.delta for batch in batches),
        ).under(
            *conditions,
            f"no person is in two of the {len(batches)} batches (for one who is in all of them "
            f"the epsilons add up to {float(together):g})",
        )

    def under(self, *conditions: str) -> PrivacyGuarantee:
        """Return the same promise resting on more conditions."""
        return replace(self, conditions=tuple(dict.fromkeys((*self.conditions, *conditions))))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for machines."""
        return {**asdict(self), "conditions": list(self.conditions)}

    @property
    def _level(self) -> str:
        if math.isinf(self.epsilon):
            return "Not private (epsilon is infinite)"
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return f"Differentially private with epsilon = {self.epsilon:g}{delta}"

    def __str__(self) -> str:
        what = f"{self._level} under the {self.mechanism} mechanism, for {self.neighbours}"
        return what + "".join(f"; provided that {c}" for c in self.conditions) + "."

    @property
    def meaning(self) -> str:
        """Return what the figures mean, in plain words.

        >>> PrivacyGuarantee.of(Budget(exact(1.0)), "laplace").meaning
        'Changing one record makes no result of this release more than 2.72 times as likely.'
        """
        if math.isinf(self.epsilon):
            return "This model was computed without noise and may reveal any record."
        delta = f" (plus {self.delta:g})" if self.delta else ""
        return (
            f"Changing {_UNITS[self.unit]} makes no result of this release more than "
            f"{_odds(self.epsilon)} times as likely{delta}."
        )

    def _repr_html_(self) -> str:
        figures = [
            ("epsilon", f"{self.epsilon:g}"),
            ("delta", f"{self.delta:g}"),
            ("unit", _UNITS[self.unit]),
            ("mechanism", self.mechanism),
        ]
        parts = [
            tag("p", self.meaning),
            tiles(figures),
            tag("p", tag("span", "Neighbours: ", class_=QUIET), self.neighbours + "."),
        ]
        if self.conditions:
            items = (tag("li", condition) for condition in self.conditions)
            parts += [tag("p", "Provided that", class_=QUIET), tag("ul", *items)]
        return card(self._level, *parts, accent=self._accent)

    @property
    def _accent(self) -> str:
        if math.isinf(self.epsilon):
            return "bad"
        return "weak" if self.epsilon > WEAK else "good"


def _odds(epsilon: float) -> str:
    """Return exp(epsilon) rounded up, as text."""
    if epsilon > _WRITTEN_OUT:
        return f"exp({epsilon:g})"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 100 else f"{math.ceil(100 * factor) / 100:.2f}"
