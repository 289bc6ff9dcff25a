"""A ledger that is missing, damaged, replaced or unwritable refuses; it never invents budget."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.ledger import Ledger
from tests.privacy.ledgers import ADDED, CEILING, ONE, TENTH, as_a_common_user, run_in_child, sql

# Python >= 3.12 warns of the forks that are tested here
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def test_charges_add_up_exactly_to_the_ceiling(ledger):
    for number in range(1, 11):
        entry = ledger.charge(TENTH, f"release {number}")
        assert (entry.number, entry.spent) == (number, Cost.of(Fraction(number, 10)))
    with pytest.raises(BudgetError):
        ledger.charge(Spend.of(1e-300), "")
    assert ledger.spent() == CEILING
    assert len(ledger) == len(ledger.entries()) == 10


def test_entries_read_back_as_they_were_returned(ledger):
    scoped = "scope", ADDED.label, "branch"
    written = [ledger.charge(TENTH, "naïve 'Bayes'; --"), ledger.charge(TENTH, "", *scoped)]
    assert ledger.entries() == Ledger.open(ledger.path).entries() == written
    assert len({entry.release_id for entry in written}) == 2


def test_delta_has_its_own_ceiling(tmp_path):
    ledger = Ledger.create(str(tmp_path / "ledger"), Cost.of(1, 1e-5))
    ledger.charge(Spend.of(0.1, 1e-5), "")
    ledger.charge(TENTH, "")
    with pytest.raises(BudgetError):
        ledger.charge(Spend.of(0.1, 1e-9), "")


def test_a_refusal_says_what_was_asked_and_what_remains(ledger):
    ledger.charge(Spend.of(0.7), "")
    with pytest.raises(BudgetError, match=r"epsilon=0\.4.*epsilon=0\.3, delta=0\.0 remains") as why:
        ledger.charge(Spend.of(0.4), "")
    assert why.value.requested == (0.4, 0.0)
    assert why.value.remaining == (0.3, 0.0)


def test_the_file_is_private_and_its_journal_holds_nothing(ledger):
    ledger.charge(TENTH, "")
    path = Path(ledger.path)
    assert path.stat().st_mode & 0o777 == 0o600
    journal = Path(ledger.path + "-journal")
    assert journal.stat().st_mode & 0o777 == 0o600
    assert journal.read_bytes()[:8] == bytes(8)  # nothing to be rolled back
    assert sorted(os.listdir(path.parent)) == [path.name, journal.name]


@pytest.mark.parametrize(("durable", "synchronous"), [(True, 2), (False, 0)])  # FULL and OFF
def test_every_commit_reaches_the_disk_unless_the_ledger_goes_with_its_process(
    tmp_path, durable, synchronous
):
    ledger = Ledger.create(str(tmp_path / "ledger"), CEILING, durable)
    with ledger._transaction() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("persist",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)


def test_making_one_where_something_is_fails(ledger):
    with pytest.raises(FileExistsError):
        Ledger.create(ledger.path, CEILING)
    assert os.listdir(os.path.dirname(ledger.path)) == ["ledger"]


@pytest.mark.parametrize("statement", ["UPDATE entry SET epsilon = '0/1'", "DELETE FROM entry"])
def test_entries_cannot_be_changed_even_from_outside(ledger, statement):
    ledger.charge(TENTH, "")
    with pytest.raises(sqlite3.IntegrityError):
        sql(ledger.path, statement)


def missing(path):
    os.unlink(path)


def empty(path):
    os.truncate(path, 0)


def cut_to_half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def garbage(path):
    Path(path).write_bytes(os.urandom(os.path.getsize(path)))


def garbage_header(path):
    with open(path, "r+b") as file:
        file.write(b"x" * 100)


def zeros(path):
    Path(path).write_bytes(bytes(os.path.getsize(path)))


def text(path):
    Path(path).write_text("epsilon,delta\n0.1,0\n")


def a_directory(path):
    os.unlink(path)
    os.mkdir(path)


def dangling_link(path):
    os.unlink(path)
    os.symlink(path + ".elsewhere", path)


def another_database(path):
    os.unlink(path)
    sql(path, "CREATE TABLE t (x)")


def another_version(path):
    sql(path, "PRAGMA user_version = 99")


def without_identity(path):
    sql(path, "DROP TRIGGER ceiling_is_kept", "DELETE FROM ledger")


def unreadable_figure(path):
    sql(path, "DROP TRIGGER entry_is_final", "UPDATE entry SET spent_epsilon = 'lots'")


def unreadable_time(path):
    sql(path, "DROP TRIGGER entry_is_final", "UPDATE entry SET time = 'noon'")


DAMAGES = [
    missing, empty, cut_to_half, garbage, garbage_header, zeros, text, a_directory,
    dangling_link, another_database, another_version, without_identity, unreadable_figure,
    unreadable_time,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_a_damaged_ledger_refuses_everything(ledger, damage):
    ledger.charge(TENTH, "")
    damage(ledger.path)
    for attempt in (
        lambda: ledger.charge(TENTH, ""),
        lambda: ledger.check(TENTH),
        ledger.spent,
        ledger.entries,
        lambda: len(ledger),
        lambda: Ledger.open(ledger.path),
    ):
        with pytest.raises(LedgerError, match=r"cannot be used: .*Nothing was released"):
            attempt()


@pytest.mark.parametrize("start", [0, 100, 256])
def test_no_cut_of_the_file_brings_budget_back(ledger, start):
    for _ in range(3):
        ledger.charge(TENTH, "")
    whole = Path(ledger.path).read_bytes()
    refused = 0
    for size in range(start, len(whole), 512):
        Path(ledger.path).write_bytes(whole[:size])
        fresh = Ledger(ledger.path, ledger.identity)
        try:
            spent = fresh.spent()
        except LedgerError:
            refused += 1
        else:
            assert spent == Cost.of(0.3)
    assert refused > len(whole) // 512 // 2


def lowered_balance(path):
    sql(path, "DROP TRIGGER entry_is_final", "UPDATE entry SET spent_epsilon = '0/1'")


def lowered_cost(path):
    sql(path, "DROP TRIGGER entry_is_final", "UPDATE entry SET epsilon = '1/1000' WHERE number = 1")


def first_removed(path):
    sql(path, "DROP TRIGGER entry_is_kept", "DELETE FROM entry WHERE number = 1")


@pytest.mark.parametrize("tamper", [lowered_balance, lowered_cost, first_removed])
def test_opening_replays_the_entries(ledger, tamper):
    ledger.charge(TENTH, "")
    ledger.charge(TENTH, "")
    Ledger.open(ledger.path)
    tamper(ledger.path)
    with pytest.raises(LedgerError, match="do not add up"):
        Ledger.open(ledger.path)


def test_opening_checks_every_page(ledger):
    ledger.charge(TENTH, "", "scope", ADDED.label)
    whole = Path(ledger.path).read_bytes()
    for start in range(0, len(whole), 4096):
        Path(ledger.path).write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        with pytest.raises(LedgerError):
            Ledger.open(ledger.path)
    Path(ledger.path).write_bytes(whole)
    assert len(Ledger.open(ledger.path)) == 1


def test_opening_checks_the_indexes(ledger):
    ledger.charge(TENTH, "", "scope", ADDED.label)
    with closing(sqlite3.connect(ledger.path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'entry_scope'"
        (page,) = connection.execute(query).fetchone()
    with open(ledger.path, "r+b") as file:
        file.seek(4096 * (page - 1))
        file.write(b"\x0a\0\0\0\0\x10\0\0")  # the header of a page without entries
    with pytest.raises(LedgerError, match="pages are damaged"):
        Ledger.open(ledger.path)


def test_another_ledger_in_its_place_is_refused(ledger, tmp_path):
    other = Ledger.create(str(tmp_path / "other"), Cost.of(100))
    os.replace(other.path, ledger.path)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.charge(TENTH, "")
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.spent()


def test_an_older_copy_put_back_is_refused(ledger, tmp_path):
    ledger.charge(TENTH, "")
    shutil.copy(ledger.path, tmp_path / "copy")
    ledger.charge(TENTH, "")
    os.replace(tmp_path / "copy", ledger.path)
    with pytest.raises(LedgerError, match="are gone"):
        ledger.charge(TENTH, "")


def test_a_full_disk_refuses_and_leaves_the_ledger_whole(ledger):
    ledger.charge(TENTH, "")

    def charge_without_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        ledger.charge(TENTH, "")

    assert run_in_child(charge_without_room) == "LedgerError"
    assert len(Ledger.open(ledger.path)) == 1
    ledger.charge(TENTH, "")


def test_a_disk_that_fills_up_while_charging(tmp_path):
    ledger = Ledger.create(str(tmp_path / "ledger"), Cost.of(10_000))
    room = os.path.getsize(ledger.path) + 20_000

    def charge_until_refused():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        while True:
            ledger.charge(ONE, "x" * 500)

    assert run_in_child(charge_until_refused) == "LedgerError"
    whole = Ledger.open(ledger.path)
    assert whole.spent().epsilon == len(whole) > 5


def test_no_room_for_a_new_ledger_is_an_error(tmp_path):
    def create_without_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        Ledger.create(str(tmp_path / "ledger"), CEILING)

    assert run_in_child(create_without_room) == "LedgerError"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555)])
def test_a_read_only_ledger_refuses(file_mode, folder_mode):
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(os.path.join(folder, "ledger"), CEILING)
        os.chmod(ledger.path, 0o666)
        os.chmod(folder, 0o777)
        assert as_a_common_user(lambda: ledger.charge(TENTH, "")) == ""
        os.unlink(ledger.path + "-journal")  # one that is there needs no right to make it
        os.chmod(ledger.path, file_mode)
        os.chmod(folder, folder_mode)
        assert as_a_common_user(lambda: ledger.charge(TENTH, "")) == "LedgerError"
        os.chmod(folder, 0o700)
        assert len(ledger) == 1


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(LedgerError, match="No such file"):
        Ledger.create(str(tmp_path / "nowhere" / "ledger"), CEILING)


def test_a_ledger_locked_for_too_long_refuses(ledger, monkeypatch):
    monkeypatch.setattr("dpbayes_sklearn.privacy.ledger_file._WAIT_SECONDS", 0.1)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            ledger.charge(TENTH, "")
    ledger.charge(TENTH, "")


def test_names_that_mean_something_in_an_address(tmp_path):
    for name in ("a b", "what?", "50%", "a#b", "é", "file:x"):
        ledger = Ledger.create(str(tmp_path / name), CEILING)
        ledger.charge(TENTH, "")
        assert len(Ledger.open(str(tmp_path / name))) == 1


def test_a_sum_too_long_to_write_is_refused_and_nothing_is_spent(ledger):
    ledger.charge(Spend.of(Fraction(1, 7**600)), "")
    with pytest.raises(ValueError, match="fewer digits"):
        ledger.charge(Spend.of(Fraction(1, 11**550)), "")
    assert len(ledger) == 1
