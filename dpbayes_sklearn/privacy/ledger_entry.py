"""The entries of a ledger: what each says, how it is written, and what they add up to."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from dpbayes_sklearn.privacy.branches import Branches
from dpbayes_sklearn.privacy.budget import Exact
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.cost import Cost, parsed, written
from dpbayes_sklearn.privacy.guarantee import round_up
from dpbayes_sklearn.privacy.ledger_file import refusal

__all__ = [
    "COLUMNS",
    "COSTS",
    "Balance",
    "Entry",
    "adds_up",
    "entry_row",
    "read_cost",
    "read_entry",
    "read_spend",
]

COLUMNS = (
    "number, time, label, release_id, scope, epsilon, delta, rho, "
    "spent_epsilon, spent_delta, spent_rho, unit, branch"
)
COSTS = "epsilon, delta, rho"


@dataclass(frozen=True)
class Entry:
    """One charge, and the exact balance after it.

    Attributes
    ----------
    number : int
        1 for the first entry of the ledger.
    time : datetime
        When it was charged, in UTC.
    label : str
        What it was for.
    release_id : str
        Names the release that this entry pays for, and no other.
    scope : str or None
        The parallel scope it belongs to.
    spend : Spend
        What was charged, in exact fractions.
    spent : (epsilon, delta)
        The sums over the ledger with it; ``spent_rho`` those of the rho that are known.
    unit : str or None
        Whom it protects, which is the same for all entries of a ledger; None before any says it.
    branch : str or None
        The branch of the scope, whose entries add up; None stands for one of its own.
    """

    number: int
    time: datetime
    label: str
    release_id: str
    scope: str | None
    spend: Spend
    spent: Cost
    spent_rho: Exact
    unit: str | None = None
    branch: str | None = None

    @property
    def cost(self) -> Cost:
        """The exact (epsilon, delta) charged; infinite where only zCDP is known."""
        return self.spend.cost

    @property
    def rho(self) -> float | None:
        """The rho charged, rounded up where no float is exact; None where none is known."""
        return None if self.spend.rho == math.inf else round_up(self.spend.rho)

    @property
    def epsilon(self) -> float:
        """The epsilon charged, rounded up where no float is exact."""
        return round_up(self.cost.epsilon)

    @property
    def delta(self) -> float:
        """The delta charged, rounded up where no float is exact."""
        return round_up(self.cost.delta)


class Balance(NamedTuple):
    """How many entries there are, the sums of their costs, and whom all of them protect."""

    number: int = 0
    spent: Cost = Cost()
    rho: Exact = Fraction(0)
    unit: str | None = None

    @classmethod
    def after(cls, entry: Entry) -> Balance:
        """Return the balance that is written in an entry."""
        return cls(entry.number, entry.spent, entry.spent_rho, entry.unit)

    def plus(self, spend: Spend, more: Cost, unit: str | None) -> Balance:
        """Return the balance with one more entry, that makes the ledger cost so much ``more``.

        The first entry that has a unit decides the unit of the ledger.
        """
        rho = Fraction(0) if spend.rho == math.inf else spend.rho
        return Balance(self.number + 1, self.spent.plus(more), self.rho + rho, self.unit or unit)


def adds_up(entries: Iterable[Entry]) -> bool:
    """Replay the ledger: numbers without gaps, balances that follow from the costs, one unit."""
    balance, scopes = Balance(), defaultdict[str, Branches](Branches)
    for entry in entries:
        scope = Branches() if entry.scope is None else scopes[entry.scope]
        more = scope.add(entry.branch, entry.cost)
        balance = balance.plus(entry.spend, more, entry.unit)
        if Balance.after(entry) != balance:
            return False
    return True


def entry_row(entry: Entry) -> tuple[int | str | None, ...]:
    """Return an entry as it is written."""
    described = (entry.time.isoformat(), entry.label, entry.release_id, entry.scope)
    costs = (*entry.cost.written(), None if entry.rho is None else written(entry.spend.rho))
    balance = (*entry.spent.written(), written(entry.spent_rho), entry.unit, entry.branch)
    return (entry.number, *described, *costs, *balance)


def read_entry(path: str, row: tuple[object, ...]) -> Entry:
    """Return the entry of a row; LedgerError where it cannot be read."""
    number, time, label, release_id, scope, *figures, spent_rho, unit, branch = row
    try:
        when = datetime.fromisoformat(str(time))
    except ValueError:
        raise refusal(path, "a time in it is unreadable") from None
    name, whom, part = (None if x is None else str(x) for x in (scope, unit, branch))
    spend, spent = read_spend(path, *figures[:3]), read_cost(path, *figures[3:])
    rho = _figure(path, "0" if spent_rho is None else spent_rho)  # entries of format 1 have none
    described = int(str(number)), when, str(label), str(release_id), name
    return Entry(*described, spend, spent, rho, whom, part)


def read_spend(path: str, epsilon: object, delta: object, rho: object) -> Spend:
    """Return what a row charges."""
    return Spend(read_cost(path, epsilon, delta), math.inf if rho is None else _figure(path, rho))


def read_cost(path: str, epsilon: object, delta: object) -> Cost:
    """Return the exact pair that is written."""
    return Cost(_figure(path, epsilon), _figure(path, delta))


def _figure(path: str, text: object) -> Exact:
    try:
        return parsed(str(text))
    except (ValueError, ZeroDivisionError):
        raise refusal(path, "a figure in it is unreadable") from None
