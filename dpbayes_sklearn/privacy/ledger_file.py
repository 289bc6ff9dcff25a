"""The file a ledger lives in: how it is made, and how one transaction on it is run."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.util import Finalize
from pathlib import Path

from dpbayes_sklearn.exceptions import LedgerError

__all__ = ["create_file", "refusal", "temporary_path", "transaction"]

_FORMAT = 1
_WAIT_SECONDS = 60.0
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
BEGIN IMMEDIATE;
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
CREATE TRIGGER ceiling_is_kept BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ceiling is never removed'); END;
COMMIT;
"""

# A SQLite connection must not cross a fork. Each lives for one operation under this
# lock, and a fork waits for the lock, so no child ever inherits one.
_GATE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_GATE.release
    )


def refusal(path: str, reason: str) -> LedgerError:
    """Return the error that says why a ledger cannot be relied on."""
    return LedgerError(
        f"The budget ledger {path!r} cannot be used: {reason}. Nothing was released. It must be "
        "whole and writable, on a local disk of this machine."
    )


@contextmanager
def transaction(path: str, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Run one transaction on a connection of its own; commit at the end, or change nothing."""
    uri = Path(path).as_uri() + "?mode=rw"  # never makes a missing file
    with _GATE:
        try:
            with closing(
                sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
                    raise refusal(path, "it is not a ledger, or one of another version")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise refusal(path, str(error)) from None


def create_file(path: str, row: tuple[str, str, str]) -> None:
    """Make a ledger with its one row of (id, epsilon, delta): complete at ``path``, or not at all.

    It is written under another name and then linked, so nobody ever sees half of it and of
    two processes that make the same one, the second gets FileExistsError.
    """
    directory = os.path.dirname(path)
    try:
        handle, draft = tempfile.mkstemp(".new", ".ledger-", directory)
        os.close(handle)
        try:
            _write_draft(draft, row)
            os.link(draft, path)
        finally:
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(draft + suffix)
        _make_durable(directory)
    except FileExistsError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise refusal(path, str(error)) from None


def _write_draft(draft: str, row: tuple[str, str, str]) -> None:
    with _GATE, closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?)", row)


def _make_durable(directory: str) -> None:
    """Make the new name in ``directory`` survive a power cut."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_DIRECTORIES: dict[int, str] = {}


def temporary_path() -> str:
    """Return a new name in this process's private directory, which goes when the process ends."""
    process = os.getpid()
    if process not in _DIRECTORIES:
        try:
            directory = tempfile.mkdtemp(prefix="dpbayes-")
        except OSError as error:
            raise refusal(tempfile.gettempdir(), str(error)) from None
        # Finalize does nothing in a forked child, and -100 lets worker processes end first
        Finalize(None, shutil.rmtree, (directory, True), exitpriority=-100)
        _DIRECTORIES[process] = directory
    return os.path.join(_DIRECTORIES[process], f"{uuid.uuid4().hex}.sqlite")
