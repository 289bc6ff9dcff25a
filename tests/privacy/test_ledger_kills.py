"""The audit of benchmarks/audit/ledger.py in short, and two faults that it has to find."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.audit.ledger import MIXED, audit
from dpbayes_sklearn.exceptions import BudgetError

# Python >= 3.12 warns of the forks that are tested here
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def release_then_charge(accountant, cost, label, log):
    os.write(log, f"{label}\n".encode())
    time.sleep(0.005)
    accountant.spend(**cost, label=label)


def look_then_charge(accountant, cost, label, log):
    """Compare with the ceiling outside the transaction that charges."""
    if accountant.total().epsilon + float(cost["epsilon"]) > 50.05:
        raise BudgetError("enough")
    time.sleep(0.005)
    accountant.spend(**cost, label=label)
    os.write(log, f"{label}\n".encode())


def test_no_kill_loses_a_charge_or_lets_the_ceiling_be_crossed():
    tally = audit(kills=40, charges=400)
    assert tally.sound, tally
    assert tally.kills >= 40
    assert tally.charges >= 400
    assert tally.charged_then_killed > 0  # some kills fell between a charge and its release


def test_the_same_of_gaussian_releases_whose_zcdp_adds_up():
    tally = audit(kills=15, charges=150, releases=MIXED)
    assert tally.sound, tally
    assert tally.kills >= 15


def test_the_audit_sees_a_release_before_its_charge():
    assert audit(kills=10, charges=50, step=release_then_charge).uncharged_releases > 0


def test_the_audit_sees_a_ceiling_that_is_checked_too_early():
    tally = audit(kills=1, charges=100, step=look_then_charge, enforced=False)
    assert tally.overspent_rounds > 0
