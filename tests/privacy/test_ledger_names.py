"""A ledger has one name and a lock that nobody drops by accident, so no charge is undone."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

from dpbayes_sklearn.exceptions import LedgerError
from dpbayes_sklearn.privacy import BudgetAccountant, ledger_file
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.ledger import Ledger
from tests.privacy.ledgers import TENTH

# Python >= 3.12 warns of the forks that are tested here
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def killed_while_charging(path: str) -> None:
    """Leave a journal behind that undoes what a killed process has begun to write."""
    if not (child := os.fork()):
        try:
            connection = sqlite3.connect(path, isolation_level=None)
            for statement in ("journal_mode = PERSIST", "cache_size = 1"):
                connection.execute(f"PRAGMA {statement}")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT INTO entry"
                " (time, label, epsilon, delta, release_id, spent_epsilon, spent_delta, spent_rho)"
                " VALUES ('2026-01-01T00:00:00+00:00', '', '1/10', '0/1', 'z', '1/5', '0/1', '0/1')"
            )
            connection.execute("CREATE TABLE large (x)")
            for _ in range(500):  # more than the cache has room for
                connection.execute("INSERT INTO large VALUES (?)", ("x" * 500,))
            os.kill(os.getpid(), signal.SIGKILL)
        finally:  # a child that fails must not go on as a test runner
            os._exit(1)
    os.waitpid(child, 0)


def test_a_hard_link_is_refused_under_both_names(ledger):
    ledger.charge(TENTH, "")
    linked = ledger.path + ".linked"
    os.link(ledger.path, linked)
    killed_while_charging(ledger.path)
    for attempt in (lambda: Ledger.open(linked), lambda: ledger.charge(TENTH, "")):
        with pytest.raises(LedgerError, match="hard links"):
            attempt()
    os.unlink(linked)
    ledger.charge(TENTH, "")
    assert Ledger.open(ledger.path).spent() == Cost.of(0.2)


def test_a_symbolic_link_is_resolved(tmp_path):
    accountant = BudgetAccountant(1, path=tmp_path / "ledger")
    (tmp_path / "link").symlink_to("ledger")
    (tmp_path / "folder").symlink_to(tmp_path)
    linked = BudgetAccountant(path=tmp_path / "link")
    assert linked == accountant == BudgetAccountant(path=tmp_path / "folder" / "ledger")
    killed_while_charging(accountant.path)
    linked.spend(0.5)
    assert BudgetAccountant(path=accountant.path).total() == (0.5, 0)


def test_a_dangling_link_makes_no_ledger(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(LedgerError):
        BudgetAccountant(1, path=tmp_path / "link")
    assert os.listdir(tmp_path) == ["link"]


def test_a_file_that_is_mounted_by_itself_is_refused(ledger, monkeypatch):
    def mountinfo(self):
        return b"36 35 98:0 /x " + os.fsencode(ledger.path).replace(b" ", rb"\040") + b" rw - ext4"

    monkeypatch.setattr(Path, "read_bytes", mountinfo)
    ledger_file._is_mounted.cache_clear()
    with pytest.raises(LedgerError, match="mount its folder"):
        ledger.charge(TENTH, "")
    ledger_file._is_mounted.cache_clear()


def reading(path: str, stop: threading.Event) -> None:
    """Back a ledger up, over and over: each time it is closed, POSIX locks of the process go."""
    while not stop.is_set():
        Path(path).read_bytes()


def charged_beside_a_backup(ledger: Ledger, times: int) -> int:
    stop = threading.Event()
    backup = threading.Thread(target=reading, args=(ledger.path, stop))
    backup.start()
    try:
        return sum(ledger.charge(TENTH, "").number > 0 for _ in range(times))
    finally:
        stop.set()
        backup.join()


def test_a_backup_in_the_same_process_loses_no_charge(tmp_path):
    ledger = Ledger.create(str(tmp_path / "ledger"), Cost.of(1000))
    children = []
    for _ in range(2):
        if not (child := os.fork()):
            try:
                os._exit(charged_beside_a_backup(ledger, 60))
            except BaseException:
                os._exit(255)
        children.append(child)
    here = charged_beside_a_backup(ledger, 60)
    there = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert [here, *there] == [60, 60, 60]
    assert len(Ledger.open(ledger.path)) == 180


def test_a_lock_that_is_held_for_too_long_refuses(ledger, monkeypatch):
    monkeypatch.setattr(ledger_file, "_WAIT_SECONDS", 0.05)
    folder = os.path.dirname(ledger.path)
    with ledger_file._Locked(folder), pytest.raises(LedgerError, match="locked"):
        ledger.charge(TENTH, "")
    ledger.charge(TENTH, "")
