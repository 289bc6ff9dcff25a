"""The durable record of every charge: one SQLite file that all holders share.

A charge is one ``BEGIN IMMEDIATE`` transaction: read the balance, compare it with the
ceiling, append an entry. Entries are never changed or removed, so there are no refunds;
each carries the balance after it, so a charge takes the same time however long the ledger is.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.guarantee import round_up

__all__ = ["Entry", "Ledger"]

_FORMAT = 1
_WAIT_SECONDS = 60.0
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
BEGIN IMMEDIATE;
PRAGMA application_id = {0x44504C47};
PRAGMA user_version = {_FORMAT};
CREATE TABLE ledger (id TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL);
CREATE TABLE entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, label TEXT NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, release_id TEXT NOT NULL UNIQUE, scope TEXT,
    spent_epsilon TEXT NOT NULL, spent_delta TEXT NOT NULL
);
CREATE INDEX entry_scope ON entry (scope) WHERE scope IS NOT NULL;
CREATE TRIGGER entry_is_final BEFORE UPDATE ON entry
    BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entry_is_kept BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TRIGGER ceiling_is_final BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ceiling is never changed'); END;
COMMIT;
"""
_COLUMNS = "number, time, label, epsilon, delta, release_id, scope, spent_epsilon, spent_delta"

# SQLite connections must not cross a fork. Each lives for one operation under this
# lock, and a fork waits for it, so no child ever inherits one.
_GATE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_GATE.release
    )


@dataclass(frozen=True)
class Entry:
    """One charge: when, for what, how much, and the exact balance after it."""

    number: int
    time: datetime
    label: str
    cost: Cost
    release_id: str
    scope: str | None
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
        self._seen = 0

    @classmethod
    def create(cls, path: str, ceiling: Cost) -> Ledger:
        """Make a new ledger; it appears at ``path`` complete, or not at all.

        Raises FileExistsError where something is there already.
        """
        identity = uuid.uuid4().hex
        try:
            handle, draft = tempfile.mkstemp(".new", ".ledger-", os.path.dirname(path))
            os.close(handle)
            try:
                with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                    connection.executescript(_SCHEMA)
                    connection.execute(
                        "INSERT INTO ledger VALUES (?, ?, ?)", (identity, *ceiling.written())
                    )
                os.link(draft, path)
            finally:
                for suffix in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        os.unlink(draft + suffix)
        except FileExistsError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise _refusal(path, str(error)) from None
        return cls(path, identity)

    @classmethod
    def open(cls, path: str) -> Ledger:
        """Return the ledger at ``path`` after checking every page and every balance."""
        ledger = cls(path, "")
        with ledger._connected("BEGIN") as connection:
            ledger.identity = _identity(path, connection)[0]
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise _refusal(path, "its pages are damaged")
            entries = [_entry(path, row) for row in _rows(connection)]
        _verify(path, entries)
        return ledger

    def ceiling(self) -> Cost:
        """Return the most that may ever be spent."""
        with self._connected("BEGIN") as connection:
            return _identity(self.path, connection)[1]

    def spent(self) -> Cost:
        """Return the exact balance of all entries."""
        with self._connected("BEGIN") as connection:
            return self._balance(connection)

    def entries(self) -> list[Entry]:
        """Return all charges, oldest first."""
        with self._connected("BEGIN") as connection:
            self._balance(connection)
            return [_entry(self.path, row) for row in _rows(connection)]

    def __len__(self) -> int:
        with self._connected("BEGIN") as connection:
            self._balance(connection)
            (count,) = connection.execute("SELECT count(*) FROM entry").fetchone()
            return int(count)

    def check(self, cost: Cost, scope: str | None = None) -> None:
        """Raise BudgetError where ``cost`` would cross the ceiling now."""
        with self._connected("BEGIN") as connection:
            self._after(connection, cost, scope)

    def charge(self, cost: Cost, label: str, scope: str | None = None) -> Entry:
        """Append an entry durably, or raise and leave the ledger as it was."""
        with self._connected("BEGIN IMMEDIATE") as connection:
            spent = self._after(connection, cost, scope)
            time, release_id = datetime.now(UTC), uuid.uuid4().hex
            number = connection.execute(
                "INSERT INTO entry (time, label, epsilon, delta, release_id, scope, "
                "spent_epsilon, spent_delta) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
                (time.isoformat(), label, *cost.written(), release_id, scope, *spent.written()),
            ).fetchone()[0]
            entry = Entry(number, time, label, cost, release_id, scope, spent)
        self._seen = max(self._seen, number)
        return entry

    def _after(self, connection: sqlite3.Connection, cost: Cost, scope: str | None) -> Cost:
        ceiling = _identity(self.path, connection)[1]
        before = self._balance(connection)
        paid = Cost()
        if scope is not None:
            paid = _scope_cost(self.path, connection, scope)
        after = before.plus(cost.beyond(paid))
        if not after.within(ceiling):
            remaining = ceiling.beyond(before).rounded_down()
            raise BudgetError(
                f"Spending {cost} would cross the ceiling {ceiling}: only {remaining} "
                "remains. Nothing was spent or released. Ask for less, or use a ledger "
                "with a higher ceiling.",
                cost.rounded_up(),
                remaining,
            )
        return after

    def _balance(self, connection: sqlite3.Connection) -> Cost:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM entry ORDER BY number DESC LIMIT 1"
        ).fetchall()
        last = _entry(self.path, rows[0]) if rows else None
        if (last.number if last else 0) < self._seen:
            raise _refusal(self.path, "entries written earlier are gone")
        return last.spent if last else Cost()

    @contextmanager
    def _connected(self, begin: str) -> Iterator[sqlite3.Connection]:
        """Run one transaction on a connection of its own; any failure of it refuses."""
        uri = Path(self.path).as_uri() + "?mode=rw"  # never creates a missing file
        with _GATE:
            try:
                connection = sqlite3.connect(
                    uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None
                )
                with closing(connection):
                    connection.execute("PRAGMA synchronous = FULL")
                    connection.execute(begin)
                    if self.identity and _identity(self.path, connection)[0] != self.identity:
                        raise _refusal(self.path, "another ledger has been put in its place")
                    yield connection
                    connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise _refusal(self.path, str(error)) from None


def _refusal(path: str, reason: str) -> LedgerError:
    return LedgerError(
        f"The budget ledger {path!r} cannot be used: {reason}. Nothing was released. The file "
        "must be on a local disk of this machine, whole and writable."
    )


def _identity(path: str, connection: sqlite3.Connection) -> tuple[str, Cost]:
    if connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
        raise _refusal(path, "it is not a ledger, or one of another version")
    rows = connection.execute("SELECT id, epsilon, delta FROM ledger").fetchall()
    if len(rows) != 1:
        raise _refusal(path, "it does not say which ledger it is")
    identity, epsilon, delta = rows[0]
    return str(identity), _cost(path, epsilon, delta)


def _rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT {_COLUMNS} FROM entry ORDER BY number").fetchall()


def _cost(path: str, epsilon: object, delta: object) -> Cost:
    try:
        return Cost.parsed(str(epsilon), str(delta))
    except (ValueError, ZeroDivisionError):
        raise _refusal(path, "a figure in it is unreadable") from None


def _entry(path: str, row: tuple[object, ...]) -> Entry:
    number, time, label, epsilon, delta, release_id, scope, spent_epsilon, spent_delta = row
    try:
        when = datetime.fromisoformat(str(time))
    except ValueError:
        raise _refusal(path, "a time in it is unreadable") from None
    return Entry(
        int(str(number)),
        when,
        str(label),
        _cost(path, epsilon, delta),
        str(release_id),
        None if scope is None else str(scope),
        _cost(path, spent_epsilon, spent_delta),
    )


def _scope_cost(path: str, connection: sqlite3.Connection, scope: str) -> Cost:
    paid = Cost()
    for row in connection.execute("SELECT epsilon, delta FROM entry WHERE scope = ?", (scope,)):
        paid = paid.joined(_cost(path, *row))
    return paid


def _verify(path: str, entries: list[Entry]) -> None:
    """Replay the ledger: numbers without gaps, and the balances that the costs add up to."""
    spent, scopes = Cost(), dict[str, Cost]()
    for number, entry in enumerate(entries, start=1):
        paid = Cost()
        if entry.scope is not None:
            paid = scopes.get(entry.scope, Cost())
            scopes[entry.scope] = paid.joined(entry.cost)
        spent = spent.plus(entry.cost.beyond(paid))
        if entry.number != number or entry.spent != spent:
            raise _refusal(path, "its entries do not add up")
