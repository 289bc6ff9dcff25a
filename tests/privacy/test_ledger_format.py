"""A ledger has one format, one rule and one unit."""

from __future__ import annotations

import pytest

from dpbayes_sklearn.exceptions import LedgerError
from dpbayes_sklearn.privacy import composition
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.ledger import Ledger
from tests.privacy.ledgers import CEILING, TENTH, sql


@pytest.mark.parametrize("number", [0, 1, 4])
def test_a_ledger_of_another_format_is_refused(ledger, number):
    ledger.charge(TENTH, "")
    sql(ledger.path, f"PRAGMA user_version = {number}")
    for use in (lambda: Ledger.open(ledger.path), lambda: ledger.charge(TENTH, "")):
        with pytest.raises(LedgerError, match="made by another version"):
            use()
    sql(ledger.path, "PRAGMA user_version = 2")
    assert len(Ledger.open(ledger.path)) == 1


def test_a_ledger_without_a_column_is_refused(ledger):
    sql(ledger.path, "ALTER TABLE entry DROP COLUMN spent_rho")
    with pytest.raises(LedgerError, match="spent_rho"):
        ledger.charge(TENTH, "")


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


def test_a_lowered_rho_is_seen(tmp_path):
    ledger = Ledger.create(str(tmp_path / "ledger"), Cost.of(1, 1e-6), composition="zcdp")
    ledger.charge(Spend.of(rho=0.01), "")
    ledger.charge(Spend.of(rho=0.01), "")
    assert Ledger.open(ledger.path).entries() == ledger.entries()
    drop = "DROP TRIGGER entry_is_final"
    sql(ledger.path, drop, "UPDATE entry SET rho = '1/1000' WHERE number = 1")
    with pytest.raises(LedgerError, match="do not add up"):
        Ledger.open(ledger.path)


def test_the_order_is_the_one_that_the_ledger_was_created_with(tmp_path, monkeypatch):
    ledger = Ledger.create(str(tmp_path / "ledger"), Cost.of(1, 1e-6), composition="zcdp")
    rule = ledger.rule()
    monkeypatch.setattr(composition, "best_order", lambda *ceiling: rule.order + 1)
    assert Ledger.open(ledger.path).rule() == rule
    sql(ledger.path, "DROP TRIGGER ceiling_is_final", "UPDATE ledger SET renyi_order = '1/1'")
    with pytest.raises(LedgerError, match="how releases add up"):
        ledger.charge(TENTH, "")
