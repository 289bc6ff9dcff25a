"""The durable record of every charge, in one SQLite file that all holders share.

A charge is one ``BEGIN IMMEDIATE`` transaction: read the balance, compare it with the
ceiling, append an entry. Entries are never changed or removed, so there are no refunds;
each carries the balance after it, so a charge takes as long in a long ledger as in a short one.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.guarantee import round_up
from dpbayes_sklearn.privacy.ledger_file import create_file, refusal, transaction

__all__ = ["Entry", "Ledger"]

_COLUMNS = "number, time, label, release_id, scope, epsilon, delta, spent_epsilon, spent_delta"


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
    cost, spent : (epsilon, delta) in exact fractions
        What was charged, and the balance of the ledger with it.
    """

    number: int
    time: datetime
    label: str
    release_id: str
    scope: str | None
    cost: Cost
    spent: Cost

    @property
    def epsilon(self) -> float:
        """The epsilon charged, rounded up where no float is exact."""
        return round_up(self.cost.epsilon)

    @property
    def delta(self) -> float:
        """The delta charged, rounded up where no float is exact."""
        return round_up(self.cost.delta)


class Ledger:
    """A ledger file, known by its absolute path and the identity written inside it."""

    def __init__(self, path: str, identity: str) -> None:
        self.path = path
        self.identity = identity
        self._seen = 0  # entries known to be there: a ledger with fewer was put back

    @classmethod
    def create(cls, path: str, ceiling: Cost) -> Ledger:
        """Make a new ledger; FileExistsError where something is there already."""
        identity = uuid.uuid4().hex
        create_file(path, (identity, *ceiling.written()))
        return cls(path, identity)

    @classmethod
    def open(cls, path: str) -> Ledger:
        """Return the ledger at ``path`` after checking every page and every balance."""
        with transaction(path) as connection:
            ledger = cls(path, _identity(path, connection))
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise refusal(path, "its pages are damaged")
            if not _adds_up(ledger._entries(connection)):
                raise refusal(path, "its entries do not add up")
        return ledger

    def ceiling(self) -> Cost:
        """Return the most that may ever be spent."""
        with transaction(self.path) as connection:
            return self._ceiling(connection)

    def spent(self) -> Cost:
        """Return the exact balance of all entries."""
        with transaction(self.path) as connection:
            return self._balance(connection)[1]

    def entries(self) -> list[Entry]:
        """Return all charges, oldest first."""
        with transaction(self.path) as connection:
            self._balance(connection)
            return self._entries(connection)

    def __len__(self) -> int:
        with transaction(self.path) as connection:
            return self._balance(connection)[0]

    def check(self, cost: Cost, scope: str | None = None) -> None:
        """Raise BudgetError where ``cost`` would cross the ceiling now."""
        with transaction(self.path) as connection:
            self._after(connection, cost, scope)

    def charge(self, cost: Cost, label: str, scope: str | None = None) -> Entry:
        """Append an entry durably, or raise and leave the ledger as it was."""
        with transaction(self.path, write=True) as connection:
            number, spent = self._after(connection, cost, scope)
            entry = Entry(number, datetime.now(UTC), label, uuid.uuid4().hex, scope, cost, spent)
            connection.execute(
                f"INSERT INTO entry ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(entry)
            )
        self._seen = max(self._seen, number)
        return entry

    def _after(
        self, connection: sqlite3.Connection, cost: Cost, scope: str | None
    ) -> tuple[int, Cost]:
        """Return the number and the balance that an entry of ``cost`` would have."""
        ceiling = self._ceiling(connection)
        count, before = self._balance(connection)
        after = before.plus(cost.beyond(self._paid(connection, scope)))
        if not after.within(ceiling):
            remaining = ceiling.left_by(before).rounded_down()
            raise BudgetError(
                f"Spending {cost} would cross the ceiling {ceiling}: {remaining} remains. Nothing "
                "was spent or released. Ask for less, or use a ledger with a higher ceiling.",
                requested=cost.rounded_up(),
                remaining=remaining,
            )
        return count + 1, after

    def _ceiling(self, connection: sqlite3.Connection) -> Cost:
        if _identity(self.path, connection) != self.identity:
            raise refusal(self.path, "another ledger has been put in its place")
        (row,) = connection.execute("SELECT epsilon, delta FROM ledger")
        return _cost(self.path, *row)

    def _balance(self, connection: sqlite3.Connection) -> tuple[int, Cost]:
        """Return how many entries there are and what they cost together."""
        self._ceiling(connection)
        entries = self._entries(connection, "ORDER BY number DESC LIMIT 1")
        count, spent = (entries[0].number, entries[0].spent) if entries else (0, Cost())
        if count < self._seen:
            raise refusal(self.path, "entries that were written are gone")
        self._seen = count
        return count, spent

    def _paid(self, connection: sqlite3.Connection, scope: str | None) -> Cost:
        """Return what the entries of a parallel scope cost together: the maximum."""
        paid = Cost()
        for row in connection.execute("SELECT epsilon, delta FROM entry WHERE scope = ?", (scope,)):
            paid = paid.joined(_cost(self.path, *row))
        return paid

    def _entries(
        self, connection: sqlite3.Connection, order: str = "ORDER BY number"
    ) -> list[Entry]:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM entry {order}")
        return [_entry(self.path, row) for row in rows]


def _identity(path: str, connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT id FROM ledger").fetchall()
    if len(rows) != 1:
        raise refusal(path, "it does not say which ledger it is")
    return str(rows[0][0])


def _adds_up(entries: Iterable[Entry]) -> bool:
    """Replay the ledger: numbers without gaps, balances that follow from the costs."""
    spent, scopes = Cost(), dict[str | None, Cost]()
    for number, entry in enumerate(entries, start=1):
        paid = scopes.get(entry.scope, Cost())
        spent = spent.plus(entry.cost.beyond(paid))
        if entry.scope is not None:
            scopes[entry.scope] = paid.joined(entry.cost)
        if (entry.number, entry.spent) != (number, spent):
            return False
    return True


def _row(entry: Entry) -> tuple[int | str | None, ...]:
    described = (entry.time.isoformat(), entry.label, entry.release_id, entry.scope)
    return (entry.number, *described, *entry.cost.written(), *entry.spent.written())


def _entry(path: str, row: tuple[object, ...]) -> Entry:
    number, time, label, release_id, scope, *figures = row
    try:
        when = datetime.fromisoformat(str(time))
    except ValueError:
        raise refusal(path, "a time in it is unreadable") from None
    name = None if scope is None else str(scope)
    cost, spent = _cost(path, *figures[:2]), _cost(path, *figures[2:])
    return Entry(int(str(number)), when, str(label), str(release_id), name, cost, spent)


def _cost(path: str, epsilon: object, delta: object) -> Cost:
    try:
        return Cost.parsed(str(epsilon), str(delta))
    except (ValueError, ZeroDivisionError):
        raise refusal(path, "a figure in it is unreadable") from None
