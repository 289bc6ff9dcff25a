"""Ledgers of earlier versions go on, and a ledger is about one unit."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing

import pytest

from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger import Ledger
from tests.privacy.ledgers import ADDED, CEILING, TENTH, as_a_common_user, sql

# Python >= 3.12 warns of the forks that are tested here
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

FORMAT_1 = """
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
PRAGMA user_version = 1;
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
INSERT INTO ledger VALUES ('0123456789abcdef0123456789abcdef', '1/1', '1/1000000');
INSERT INTO entry VALUES (1, '2026-01-02T03:04:05+00:00', 'a fit', '1/10', '0/1', 'a', NULL,
    '1/10', '0/1');
INSERT INTO entry VALUES (2, '2026-01-02T03:04:06+00:00', 'another', '1/5', '1/2000000', 'b', 's',
    '3/10', '1/2000000');
COMMIT;
"""


@pytest.fixture
def old(tmp_path) -> str:
    path = str(tmp_path / "old")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(FORMAT_1)
    os.chmod(path, 0o600)
    return path


def test_a_ledger_of_format_1_goes_on(old):
    ledger = Ledger.open(old)
    assert [entry.cost for entry in ledger.entries()] == [Cost.of(0.1), Cost.of(0.2, 5e-7)]
    assert [entry.rho for entry in ledger.entries()] == [None, None]
    assert ledger.spent() == Cost.of(0.3, 5e-7)
    ledger.charge(Spend.of(0.2, rho=0.001), "")
    with pytest.raises(ValueError, match="added or removed"):
        ledger.charge(Spend.of(0.1, 1e-7), "", "s")  # its scope is about records that are replaced
    assert Ledger.open(old).spent() == Cost.of(0.5, 5e-7)
    with pytest.raises(BudgetError):
        ledger.charge(Spend.of(0.6), "")


def test_entries_of_earlier_formats_protect_records(old):
    ledger = Ledger.open(old)
    assert [entry.unit for entry in ledger.entries()] == ["record", "record"]
    with pytest.raises(ValueError, match="'record', not 'feature'"):
        ledger.charge(TENTH, "", unit="feature")
    assert ledger.charge(TENTH, "", unit="record").number == 3


def test_a_ledger_of_format_2_goes_on(tmp_path):
    path = str(tmp_path / "second")
    ledger = Ledger.create(path, CEILING)
    ledger.charge(TENTH, "")
    dropped = [f"ALTER TABLE entry DROP COLUMN {column}" for column in ("unit", "branch")]
    no_rule = "ALTER TABLE ledger DROP COLUMN composition"
    sql(path, *dropped, no_rule, "PRAGMA user_version = 2")
    assert [entry.unit for entry in Ledger.open(path).entries()] == ["record"]
    ledger.charge(TENTH, "", unit="record")
    assert len(Ledger.open(path)) == 2


def test_entries_of_format_3_are_branches_of_their_own(tmp_path):
    path = str(tmp_path / "third")
    ledger = Ledger.create(path, CEILING)
    for _ in range(2):
        ledger.charge(TENTH, "", "scope", ADDED.label)
    sql(
        path,
        "ALTER TABLE entry DROP COLUMN branch",
        "ALTER TABLE ledger DROP COLUMN composition",
        "PRAGMA user_version = 3",
    )
    assert Ledger.open(path).spent() == Cost.of(0.1)
    ledger.charge(Spend.of(0.2), "", "scope", ADDED.label, "a branch")
    ledger.charge(Spend.of(0.2), "", "scope", ADDED.label, "a branch")
    assert Ledger.open(path).spent() == Cost.of(0.4)


def test_a_ledger_of_format_3_adds(tmp_path):
    path = str(tmp_path / "third")
    ledger = Ledger.create(path, Cost.of(1, 1e-6), composition="zcdp")
    sql(
        path,
        "ALTER TABLE ledger DROP COLUMN composition",
        "ALTER TABLE entry DROP COLUMN branch",
        "PRAGMA user_version = 3",
    )
    ledger.charge(TENTH, "")
    assert Ledger.open(path).rule() == (Cost.of(1, 1e-6), "sum")


def test_a_ledger_with_an_unknown_rule_refuses(tmp_path):
    path = str(tmp_path / "ledger")
    ledger = Ledger.create(path, CEILING)
    sql(path, "DROP TRIGGER ceiling_is_final", "UPDATE ledger SET composition = 'pld'")
    with pytest.raises(LedgerError, match="how releases add up"):
        ledger.charge(TENTH, "")


def test_the_first_unit_decides(ledger):
    assert ledger.charge(TENTH, "").unit is ledger.unit() is None
    assert ledger.charge(TENTH, "", unit="feature").unit == ledger.unit() == "feature"
    assert ledger.charge(TENTH, "").unit == "feature"  # by hand, about what the ledger is about
    for refuses in (ledger.check, lambda *a, **k: ledger.charge(TENTH, "", **k)):
        with pytest.raises(ValueError, match="BudgetAccountant of its own for 'record'"):
            refuses(TENTH, unit="record")
    assert len(Ledger.open(ledger.path)) == 3


def test_a_ledger_with_two_units_is_refused(ledger):
    for _ in range(2):
        ledger.charge(TENTH, "", unit="record")
    sql(
        ledger.path,
        "DROP TRIGGER entry_is_final",
        "UPDATE entry SET unit = 'feature' WHERE number = 2",
    )
    with pytest.raises(LedgerError, match="do not add up"):
        Ledger.open(ledger.path)


def test_a_ledger_of_format_1_is_used_by_those_who_know_it_without_opening(old):
    ledger = Ledger("".join(old), "0123456789abcdef0123456789abcdef")
    ledger.charge(TENTH, "")
    assert len(Ledger.open(old)) == 3


def test_many_processes_bring_a_ledger_up_to_date_at_once(old):
    children = []
    for _ in range(6):
        if not (child := os.fork()):
            try:
                Ledger.open(old).charge(TENTH, "")
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 6
    assert Ledger.open(old).spent() == Cost.of(0.9, 5e-7)


def test_a_killed_migration_leaves_format_1(old):
    with closing(sqlite3.connect(old, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ALTER TABLE entry ADD COLUMN rho TEXT")
        # closed without a commit, as by a kill
    assert len(Ledger.open(old)) == 2


def test_a_damaged_ledger_of_format_1_refuses(old):
    sql(old, "DROP TRIGGER entry_is_final", "UPDATE entry SET spent_epsilon = '0/1'")
    with pytest.raises(LedgerError, match="do not add up"):
        Ledger.open(old)


def test_a_read_only_ledger_of_format_1_refuses():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "old")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.executescript(FORMAT_1)
        os.chmod(path, 0o444)
        os.chmod(folder, 0o755)
        assert as_a_common_user(lambda: Ledger.open(path)) == "LedgerError"


def test_a_lowered_rho_is_seen(tmp_path):
    ledger = Ledger.create(str(tmp_path / "ledger"), Cost.of(1, 1e-6), composition="zcdp")
    ledger.charge(Spend.of(rho=0.01), "")
    ledger.charge(Spend.of(rho=0.01), "")
    assert Ledger.open(ledger.path).entries() == ledger.entries()
    drop = "DROP TRIGGER entry_is_final"
    sql(ledger.path, drop, "UPDATE entry SET rho = '1/1000' WHERE number = 1")
    with pytest.raises(LedgerError, match="do not add up"):
        Ledger.open(ledger.path)
