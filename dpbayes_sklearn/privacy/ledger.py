"""The durable record of every charge, in one SQLite file that all holders share.

A charge is one ``BEGIN IMMEDIATE`` transaction: read the balance, compare it with the
ceiling, append an entry. Entries are never changed or removed, so there are no refunds;
each carries the sums after it, so a charge that they allow takes as long in a long ledger as in
a short one. Epsilons add up only if they protect the same unit, so all entries of a ledger do.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections import Counter, defaultdict
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from dpbayes_sklearn.exceptions import NOTHING_SPENT, BudgetError
from dpbayes_sklearn.privacy.branches import Branches, scope_spends
from dpbayes_sklearn.privacy.composition import Composition, Filter, Spend, tightest
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger_entry import (
    COLUMNS,
    COSTS,
    Balance,
    Entry,
    adds_up,
    entry_row,
    read_cost,
    read_entry,
    read_spend,
)
from dpbayes_sklearn.privacy.ledger_file import create_file, refusal, transaction
from dpbayes_sklearn.privacy.unit import is_secret_size

__all__ = ["Entry", "Ledger"]


class Ledger:
    """A ledger file, known by its absolute path and the identity written inside it."""

    def __init__(self, path: str, identity: str, durable: bool = True) -> None:
        self.path = path
        self.identity = identity
        self.durable = durable  # a ledger that goes with its process need not survive a power cut
        self._seen = 0  # entries known to be there: a ledger with fewer was put back

    @classmethod
    def create(
        cls, path: str, ceiling: Cost, durable: bool = True, composition: Composition = "sum"
    ) -> Ledger:
        """Make a new ledger; FileExistsError where something is there already."""
        identity = uuid.uuid4().hex
        create_file(path, (identity, *ceiling.written(), composition), durable=durable)
        return cls(path, identity, durable)

    @classmethod
    def open(cls, path: str) -> Ledger:
        """Return the ledger at ``path`` after checking every page and every balance."""
        with transaction(path) as connection:
            ledger = cls(path, _identity(path, connection))
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise refusal(path, "its pages are damaged")
            if not adds_up(ledger._entries(connection)):
                raise refusal(path, "its entries do not add up")
        return ledger

    def rule(self) -> Filter:
        """Return the most that may ever be spent, and how it adds up."""
        with self._transaction() as connection:
            return self._rule(connection)

    def spent(self) -> Cost:
        """Return the exact sum of all entries."""
        with self._transaction() as connection:
            return self._balance(connection).spent

    def total(self) -> Cost:
        """Return the tightest (epsilon, delta) of all entries, for budgets fixed beforehand."""
        with self._transaction() as connection:
            spent = self._balance(connection).spent
            return tightest(self._rule(connection), spent, self._spends(connection))

    def remaining(self) -> Cost:
        """Return what could still be spent at once."""
        with self._transaction() as connection:
            return self._remaining(connection)

    def spends(self) -> Counter[Spend]:
        """Return what composes in sequence: entries, and parallel scopes as one."""
        with self._transaction() as connection:
            self._balance(connection)
            return self._spends(connection)

    def entries(self) -> list[Entry]:
        """Return all charges, oldest first."""
        with self._transaction() as connection:
            self._balance(connection)
            return self._entries(connection)

    def __len__(self) -> int:
        with self._transaction() as connection:
            return self._balance(connection).number

    def unit(self) -> str | None:
        """Return whom all entries protect; None if no entry says it yet."""
        with self._transaction() as connection:
            return self._balance(connection).unit

    def check(
        self,
        spend: Spend,
        scope: str | None = None,
        unit: str | None = None,
        branch: str | None = None,
    ) -> None:
        """Raise BudgetError where ``spend`` would cross the ceiling now."""
        with self._transaction() as connection:
            self._after(connection, spend, scope, unit, branch)

    def charge(
        self,
        spend: Spend,
        label: str,
        scope: str | None = None,
        unit: str | None = None,
        branch: str | None = None,
    ) -> Entry:
        """Append an entry durably, or raise and leave the ledger as it was."""
        with self._transaction(write=True) as connection:
            after = self._after(connection, spend, scope, unit, branch)
            time, release = datetime.now(UTC), uuid.uuid4().hex
            entry = Entry(after.number, time, label, release, scope, spend, *after[1:], branch)
            places = ", ".join("?" * len(COLUMNS.split(",")))
            connection.execute(f"INSERT INTO entry ({COLUMNS}) VALUES ({places})", entry_row(entry))
        self._seen = max(self._seen, entry.number)
        return entry

    def _after(
        self,
        connection: sqlite3.Connection,
        spend: Spend,
        scope: str | None,
        unit: str | None,
        branch: str | None,
    ) -> Balance:
        """Return the balance that an entry would leave; raise if it may not be written."""
        rule, before = self._rule(connection), self._balance(connection)
        if before.unit and unit and unit != before.unit:
            raise ValueError(
                f"This ledger adds up releases that protect another unit: {before.unit!r}, not "
                f"{unit!r}. Epsilons of different units have no sum. Nothing was spent or "
                f"released. Use a BudgetAccountant of its own for {unit!r}."
            )
        more = self._branches(connection, scope).add(branch, spend.cost)
        after = before.plus(spend, more, unit)
        if scope is not None and not is_secret_size(after.unit):
            raise ValueError(
                "Inside accountant.parallel() every release must protect records that are added or "
                f"removed, and the unit is {after.unit!r}: somebody who is replaced may be in one "
                f"group before and in another one after. {NOTHING_SPENT} Set "
                "neighbours='add_remove', or unit=PrivacyUnit('record', 'add_remove') of a spend."
            )
        if not after.spent <= rule.for_sums:  # looking at all entries takes longer
            spends = self._spends(connection, scope, spend, branch)
            if not rule.accepts(after.spent, spends):
                left = self._remaining(connection).rounded_down()
                raise BudgetError(
                    f"Spending {spend} would cross the ceiling {rule}: {left} remains. "
                    f"{NOTHING_SPENT} {rule.advice}",
                    requested=spend.cost.rounded_up(),
                    remaining=left,
                )
        return after

    def _remaining(self, connection: sqlite3.Connection) -> Cost:
        spent = self._balance(connection).spent
        return self._rule(connection).remaining(spent, self._spends(connection))

    def _transaction(self, write: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self.path, write=write, durable=self.durable)

    def _recognise(self, connection: sqlite3.Connection) -> None:
        if _identity(self.path, connection) != self.identity:
            raise refusal(self.path, "another ledger has been put in its place")

    def _rule(self, connection: sqlite3.Connection) -> Filter:
        self._recognise(connection)
        ((*ceiling, composition),) = connection.execute(
            "SELECT epsilon, delta, composition FROM ledger"
        )
        try:
            return Filter.of(read_cost(self.path, *ceiling), str(composition))
        except ValueError:
            raise refusal(self.path, "it does not say how releases add up") from None

    def _balance(self, connection: sqlite3.Connection) -> Balance:
        """Return how many entries there are and what they add up to."""
        self._recognise(connection)
        entries = self._entries(connection, "ORDER BY number DESC LIMIT 1")
        balance = Balance.after(entries[0]) if entries else Balance()
        if balance.number < self._seen:
            raise refusal(self.path, "entries that were written are gone")
        self._seen = balance.number
        return balance

    def _branches(self, connection: sqlite3.Connection, scope: str | None) -> Branches:
        """Return what the branches of a parallel scope cost so far."""
        branches = Branches()
        rows = "SELECT branch, epsilon, delta FROM entry WHERE scope = ?"
        for branch, *row in connection.execute(rows, (scope,)):
            branches.add(branch, read_cost(self.path, *row))
        return branches

    def _spends(
        self,
        connection: sqlite3.Connection,
        scope: str | None = None,
        more: Spend | None = None,
        branch: str | None = None,
    ) -> Counter[Spend]:
        """Return the entries by what they cost, with one ``more`` in a branch of ``scope``."""
        spends = Counter[Spend]()
        scopes = defaultdict[str, list[tuple[str | None, Spend]]](list)
        single = f"SELECT COUNT(*), {COSTS} FROM entry WHERE scope IS NULL GROUP BY {COSTS}"
        for count, *row in connection.execute(single):
            spends[read_spend(self.path, *row)] += count
        scoped = f"SELECT scope, branch, {COSTS} FROM entry WHERE scope IS NOT NULL"
        for name, part, *row in connection.execute(scoped):
            scopes[name].append((part, read_spend(self.path, *row)))
        if more is not None and scope is not None:
            scopes[scope].append((branch, more))
        elif more is not None:
            spends[more] += 1
        for together in scopes.values():
            spends.update(scope_spends(together))
        return spends

    def _entries(
        self, connection: sqlite3.Connection, order: str = "ORDER BY number"
    ) -> list[Entry]:
        rows = connection.execute(f"SELECT {COLUMNS} FROM entry {order}")
        return [read_entry(self.path, row) for row in rows]


def _identity(path: str, connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT id FROM ledger").fetchall()
    if len(rows) != 1:
        raise refusal(path, "it does not say which ledger it is")
    return str(rows[0][0])
