"""The SQLite file of a ledger: its creation and its transactions."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path

from dpbayes_sklearn._compat import hold_while_forking
from dpbayes_sklearn.exceptions import LedgerError

try:
    import fcntl
except ImportError:  # Windows, where locks of a file belong to the descriptor already
    fcntl = None  # type: ignore[assignment]


_TABLES_VERSION = 2  # The version of the tables below.
_WAIT_SECONDS = 60.0  # After this many seconds without the lock a ledger is reported as busy.
_LOCK_POLL_SECONDS = 0.002  # Pause between two attempts to get a lock.
_SCHEMA = f"""
BEGIN IMMEDIATE;
PRAGMA user_version = {_TABLES_VERSION};
CREATE TABLE ledger (
    id TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, composition TEXT NOT NULL,
    renyi_order TEXT NOT NULL
);
CREATE TABLE entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, label TEXT NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, release_id TEXT NOT NULL UNIQUE, scope TEXT,
    spent_epsilon TEXT NOT NULL, spent_delta TEXT NOT NULL, rho TEXT,
    spent_rho TEXT NOT NULL, unit TEXT, branch TEXT, allotment TEXT NOT NULL
);
CREATE TABLE allotment (
    name TEXT NOT NULL PRIMARY KEY, epsilon TEXT NOT NULL, delta TEXT NOT NULL
);
CREATE INDEX entry_scope ON entry (scope) WHERE scope IS NOT NULL;
CREATE INDEX entry_allotment ON entry (allotment) WHERE allotment != '';
CREATE TRIGGER entry_is_final BEFORE UPDATE ON entry
    BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entry_is_kept BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TRIGGER ceiling_is_final BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ceiling is never changed'); END;
CREATE TRIGGER ceiling_is_kept BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ceiling is never removed'); END;
CREATE TRIGGER allotment_is_final BEFORE UPDATE ON allotment
    BEGIN SELECT RAISE(ABORT, 'an allotment is never changed'); END;
CREATE TRIGGER allotment_is_kept BEFORE DELETE ON allotment
    BEGIN SELECT RAISE(ABORT, 'an allotment is never removed'); END;
COMMIT;
"""

# A SQLite connection must not cross a fork. Each lives for one operation under this
# lock, and a fork waits for the lock, so no child ever inherits one.
_GATE = threading.RLock()
hold_while_forking(_GATE)

_DIRECTORIES: dict[int, str] = {}  # Directories of temporary ledgers, by process.
_DIRECTORY_PREFIX = "dpbayes-"  # Names of these directories begin with this.


def refusal(path: str, reason: str) -> LedgerError:
    """Return the error that says why a ledger cannot be relied on."""
    return LedgerError(
        f"The budget ledger {path!r} cannot be used: {reason}. Nothing was released. It must be "
        "whole and writable, on a local disk of this machine."
    )


@contextmanager
def transaction(
    path: str, *, write: bool = False, durable: bool = True
) -> Iterator[sqlite3.Connection]:
    """Run one transaction on a connection of its own; commit at the end, or change nothing.

    It survives the death of the process at any moment and, if ``durable``, a power cut.
    """
    with _GATE:
        try:
            _refuse_other_names(path)
            with (
                _locked(os.path.dirname(path)),
                closing(_connected(Path(path).as_uri() + "?mode=rw", durable)) as connection,
            ):
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if _format(connection) != _TABLES_VERSION:
                    raise refusal(path, "it is no ledger, or was made by another version")
                yield connection
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise refusal(path, str(error)) from None


class _Locked:
    """Let one process at a time work with the ledgers of a folder.

    SQLite's own locks are POSIX locks of the file: they are gone as soon as any thread of the
    process closes any descriptor of it, such as one of a backup, and two processes could then
    write at once. A lock of flock() belongs to its descriptor, which nobody else has.
    """

    def __init__(self, folder: str) -> None:
        self._descriptor = os.open(folder, os.O_RDONLY)
        self._close = weakref.finalize(self, os.close, self._descriptor)  # if interrupted, too

    def __enter__(self) -> None:
        _wait_for_lock(self._descriptor)

    def __exit__(self, *exception: object) -> None:
        self._close()


def _locked(folder: str) -> AbstractContextManager[None]:
    """Return the lock of a folder; where there is no flock(), SQLite's own locks are enough."""
    return nullcontext() if fcntl is None else _Locked(folder)


def _wait_for_lock(descriptor: int) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise OSError("the folder is locked") from None
        time.sleep(_LOCK_POLL_SECONDS)


def _refuse_other_names(path: str) -> None:
    """Refuse a file with several names; SQLite refuses one that is not there.

    SQLite finds the journal of a killed process by the name of the file. Under another name it is
    not found, and undoes later charges when the file is opened under the first name again.
    """
    try:
        found = os.stat(path)
    except OSError:
        return
    if os.path.isdir(path):
        raise refusal(path, "it is a folder")
    if found.st_nlink > 1:
        raise refusal(path, "it has hard links, and charges under several names could be lost")
    if _is_mounted(path, found.st_dev, found.st_ino):
        raise refusal(path, "the file itself is mounted; mount its folder instead")


@lru_cache(maxsize=1024)
def _is_mounted(path: str, device: int, inode: int) -> bool:
    """Tell whether a file is a mount point, so that it has another name elsewhere (Linux)."""
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return False
    points = (line.split(b" ")[4].decode("unicode_escape") for line in mounts)
    return os.fsencode(path) in {point.encode("latin1") for point in points}


def _connected(uri: str, durable: bool) -> sqlite3.Connection:
    """Open a file that is there (mode=rw never makes one).

    A commit in a journal that is kept takes no new file, which would cost more than the writing.
    """
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        connection.execute("PRAGMA journal_mode = PERSIST")
    except BaseException:
        connection.close()
        raise
    return connection


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def create_file(path: str, row: tuple[str, ...], *, durable: bool = True) -> None:
    """Make a ledger with its row (id, epsilon, delta, composition, order): complete, or not at all.

    It is written under another name and then renamed, so nobody ever sees half of it. Of two
    processes that make the same one, the second gets FileExistsError.
    """
    directory = os.path.dirname(path)
    try:
        with _GATE, _locked(directory):
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            _write_and_rename(path, row, durable)
        if durable:
            _make_durable(directory)
    except FileExistsError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise refusal(path, str(error)) from None


def _write_and_rename(path: str, row: tuple[str, ...], durable: bool) -> None:
    handle, draft = tempfile.mkstemp(".new", ".ledger-", os.path.dirname(path))
    os.close(handle)
    try:
        _write_draft(draft, row, durable)
        os.rename(draft, path)
    finally:
        for suffix in ("", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(draft + suffix)


def _write_draft(draft: str, row: tuple[str, ...], durable: bool) -> None:
    with closing(_connected(Path(draft).as_uri(), durable)) as connection:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", row)


def _make_durable(directory: str) -> None:
    """Make the new name in ``directory`` survive a power cut."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def temporary_path() -> str:
    """Return a new name in this process's private directory, which goes when the process ends."""
    process = os.getpid()
    if process not in _DIRECTORIES:
        try:
            directory = tempfile.mkdtemp(prefix=_DIRECTORY_PREFIX)
        except OSError as error:
            raise refusal(tempfile.gettempdir(), str(error)) from None
        # Finalize does nothing in a forked child, and -100 lets worker processes end first
        Finalize(None, shutil.rmtree, (directory, True), exitpriority=-100)
        _DIRECTORIES[process] = directory
    return os.path.join(_DIRECTORIES[process], f"{uuid.uuid4().hex}.sqlite")


def is_temporary(path: str) -> bool:
    """Tell whether a ledger is in such a directory, of this process or of another."""
    directory, root = os.path.dirname(path), os.path.abspath(tempfile.gettempdir())
    return os.path.dirname(directory) == root and os.path.basename(directory).startswith(
        _DIRECTORY_PREFIX
    )
