"""The privacy guarantee of a release, as an immutable value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from dpbayes_sklearn._html import QUIET, card, tag, tiles
from dpbayes_sklearn._messages import is_heard, remark
from dpbayes_sklearn.privacy.budget import Budget, Copies, at_least, exact, round_up
from dpbayes_sklearn.privacy.registry import registry_entry
from dpbayes_sklearn.privacy.risk import PrivacyRisk, privacy_risk
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["PrivacyGuarantee", "total_in_words", "warn_if_weak"]

_warned = False  # Whether this process has warned of a large epsilon.

_CHANGING = {"replace": "Changing", "add_remove": "Adding or removing"}
WEAK = 10  # A guarantee with a larger epsilon is weak.
_WRITTEN_OUT = 15  # Above this epsilon, exp(epsilon) is too long a number to write out.
# Data sets are multisets: where a position decides the batch, one record more moves all others
APART = ", and nobody's batch depends on other people's records, such as on a position in a table"
# Needed because each batch's size is public.
STAYS = ", and somebody who is replaced stays in the same batch"


@dataclass(frozen=True)
class PrivacyGuarantee:
    """The privacy guarantee of a release.

    Attributes
    ----------
    epsilon, delta : float
        For every two neighbouring data sets and every set of outcomes S,
        P(S | D) <= exp(epsilon) P(S | D') + delta.
    unit : {"record", "feature", "person"}
        What one person's contribution is.
    neighbours : str
        Which data sets are neighbours, hence nearly indistinguishable.
    mechanism : str
        How the posterior was released.
    conditions : tuple of str
        Assumptions that the library cannot check; empty is best.
    rho : float or None
        The release is also rho-zCDP: Rényi divergences of every order alpha > 1 between
        neighbours are at most alpha * rho. It composes better than (epsilon, delta).
    max_records : int
        How many records of one person are protected together; 1 for other units.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    mechanism: str
    conditions: tuple[str, ...] = ()
    rho: float | None = None
    max_records: int = 1

    @classmethod
    def of(cls, budget: Budget, mechanism: str, conditions: Iterable[str] = ()) -> PrivacyGuarantee:
        """Return the guarantee of a release that spent ``budget``."""
        return cls(
            round_up(budget.epsilon),
            round_up(budget.delta),
            budget.unit.name,
            budget.unit.definition,
            mechanism,
            tuple(conditions),
            None if budget.rho is None else round_up(budget.rho),
            budget.unit.max_records,
        )

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Who is protected, as a value."""
        return PrivacyUnit.read(self.unit, self.max_records, self.neighbours)

    @staticmethod
    def parallel(batches: Sequence[PrivacyGuarantee]) -> PrivacyGuarantee:
        """Return the guarantee of releases about different people, one for each batch of them."""
        first = batches[0]
        if len(batches) == 1:
            return first
        together = sum((exact(batch.epsilon) for batch in batches), Fraction(0))
        deltas = sum((exact(batch.delta, "delta") for batch in batches), Fraction(0))
        and_deltas = f", the deltas to {at_least(deltas)}" if deltas else ""
        conditions = [c for batch in batches for c in batch.conditions]
        stays = "" if first.privacy_unit.size_is_secret else STAYS
        rhos = [batch.rho for batch in batches if batch.rho is not None]
        return replace(
            first,
            epsilon=max(batch.epsilon for batch in batches),
            delta=max(batch.delta for batch in batches),
            mechanism=" and ".join(dict.fromkeys(batch.mechanism for batch in batches)),
            rho=max(rhos) if len(rhos) == len(batches) else None,
        ).under(
            *conditions,
            f"no person is in two of the {len(batches)} batches (for one who is in all of them "
            f"the epsilons add up to {at_least(together)}{and_deltas}){APART}{stays}",
        )

    def under(self, *conditions: str) -> PrivacyGuarantee:
        """Return the same guarantee with further conditions."""
        return replace(self, conditions=tuple(dict.fromkeys((*self.conditions, *conditions))))

    def of_copies(self, copies: Copies) -> PrivacyGuarantee:
        """Return what a guarantee about added or removed copies promises to who is protected."""
        rho = None if self.rho is None else exact(self.rho, "rho")
        inner = Budget(exact(self.epsilon), exact(self.delta, "delta"), copies.counted, rho)
        return PrivacyGuarantee.of(copies.outer(inner), self.mechanism, self.conditions)

    @property
    def is_private(self) -> bool:
        """Whether epsilon is finite; the guarantee then holds under its ``conditions``."""
        return not math.isinf(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for machines, with ``is_private``."""
        conditions = list(self.conditions)
        return {"is_private": self.is_private, **asdict(self), "conditions": conditions}

    def to_registry(self) -> dict[str, Any]:
        """Return an entry for the Differential Privacy Deployments Registry.

        Variant, unit, parameters, model, accounting, implementation and unprotected quantities, in
        the registry's own fields; as YAML it is a draft to which product, curators and sources are
        added.

        Examples
        --------
        >>> entry = PrivacyGuarantee.of(Budget(exact(1.0)), "laplace").to_registry()
        >>> entry["deployment"]["dp_flavor"]["name"]
        'Pure DP'
        >>> entry["deployment"]["privacy_loss"]["privacy_parameters"]
        {'epsilon': 1.0}
        """
        return registry_entry(self)

    @property
    def _level(self) -> str:
        if math.isinf(self.epsilon):
            return "Not private (epsilon is infinite)"
        delta = f", delta = {at_least(self.delta)}" if self.delta else ""
        rho = "" if self.rho is None else f" (rho = {at_least(self.rho, 3)} zCDP)"
        return f"Differentially private with epsilon = {at_least(self.epsilon)}{delta}{rho}"

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
        delta = f" (plus {at_least(self.delta)})" if self.delta else ""
        return (
            f"{_CHANGING[self.privacy_unit.neighbours]} {self.privacy_unit} makes no result of "
            f"this release more than {_odds(self.epsilon)} times as likely{delta}."
        )

    def risk(self, prior: float = 0.5, false_positive_rate: float = 0.05) -> PrivacyRisk:
        """Return the most that an attacker can learn about one person, as probabilities.

        Of pure guarantees in closed form; with a delta by (epsilon, delta) and, where it is known,
        by zCDP. The conditions of the guarantee apply.

        Parameters
        ----------
        prior : float, default=0.5
            How sure the attacker was before, of a guess about the person.
        false_positive_rate : float, default=0.05
            Of an attack whose true positives are asked.

        Examples
        --------
        >>> guarantee = PrivacyGuarantee.of(Budget(exact(1.0)), "laplace")
        >>> round(guarantee.risk(prior=0.01).posterior, 4)
        0.0267
        """
        return privacy_risk(self.epsilon, self.delta, self.rho, prior, false_positive_rate)

    @property
    def risk_sentence(self) -> str:
        """Return the risk at even odds, in plain words."""
        if math.isinf(self.epsilon):
            return "Nothing limits what can be learned about one record."
        return self.risk().sentence(str(self.privacy_unit))

    def _repr_html_(self) -> str:
        return self.card()

    def card(self, options: str = "") -> str:
        """Return the guarantee as an HTML card.

        Parameters
        ----------
        options : str, default=""
            Options of the mechanism, to tell releases of the same mechanism apart.
        """
        figures = [
            ("epsilon", at_least(self.epsilon)),
            ("delta", at_least(self.delta)),
            *([] if self.rho is None else [("rho", at_least(self.rho, 3))]),
            ("unit", str(self.privacy_unit)),
            ("mechanism", ", ".join(filter(None, (self.mechanism, options)))),
        ]
        parts = [
            tag("p", self.meaning),
            tiles(figures),
            tag("p", self.risk_sentence, class_=QUIET),
            tag("p", tag("span", "Neighbours: ", class_=QUIET), self.neighbours + "."),
        ]
        if self.conditions:
            items = (tag("li", condition) for condition in self.conditions)
            parts += [tag("p", "Provided that", class_=QUIET), tag("ul", *items)]
        return card(self._level, *parts, accent=self.accent)

    @property
    def accent(self) -> str:
        """Colour of a card: "good", "weak" or "bad"."""
        if math.isinf(self.epsilon):
            return "bad"
        return "weak" if self.epsilon > WEAK else "good"


def total_in_words(total: Budget) -> str:
    """Return what several releases about the same people cost together.

    >>> total_in_words(Budget(exact(1.0), exact(1e-6, "delta")))
    'epsilon = 1, delta = 1e-06, which makes no result more than 2.72 times as likely (plus 1e-06)'
    """
    if total.infinite:
        return "nothing is private"
    delta = f", delta = {at_least(total.delta)}" if total.delta else ""
    plus = f" (plus {at_least(total.delta)})" if total.delta else ""
    odds = _odds(round_up(total.epsilon))
    return (
        f"epsilon = {at_least(total.epsilon)}{delta}, which makes no result more than {odds} times "
        f"as likely{plus}"
    )


def _odds(epsilon: float) -> str:
    """Return exp(epsilon) rounded up, as text."""
    if epsilon > _WRITTEN_OUT:
        return f"exp({at_least(epsilon)})"
    factor = math.nextafter(math.exp(epsilon), math.inf)
    return f"{math.ceil(factor):,}" if factor >= 100 else f"{math.ceil(100 * factor) / 100:.2f}"


def warn_if_weak(budget: Budget) -> None:
    """Log, once per process, that a finite epsilon above 10 is a weak guarantee."""
    global _warned
    if is_heard() and not (_warned or budget.infinite) and budget.epsilon > WEAK:
        _warned = True
        remark(
            "epsilon = %s is a weak guarantee. %s An epsilon of 1 or below is strong; above %g it "
            "is mostly of theoretical use.",
            at_least(budget.epsilon),
            PrivacyGuarantee.of(budget, "").meaning,
            WEAK,
        )
