from __future__ import annotations

import math
import os
import pickle
import stat
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpbayes_sklearn.privacy
from dpbayes_sklearn._presenting import ACCENTS
from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.privacy import BudgetAccountant

ROOT = Path(dpbayes_sklearn.privacy.__file__).parents[2]


def run(code: str, *arguments: str) -> str:
    """Return what ``code`` prints in a fresh interpreter."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_tenth_and_two_tenths_fit_in_three_tenths():
    accountant = BudgetAccountant(0.3)
    accountant.spend(0.1)
    accountant.spend(0.2)
    assert accountant.total() == (0.3, 0.0)
    assert accountant.remaining() == (0.0, 0.0)
    with pytest.raises(BudgetError):
        accountant.spend(5e-324)


@pytest.mark.parametrize(
    "tenth",
    [0.1, np.float16(0.1), np.float32(0.1), np.float64(0.1), Decimal("0.1"), Fraction(1, 10)],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_number_is_charged_exactly(tenth):
    accountant = BudgetAccountant(1)
    for _ in range(10):
        accountant.spend(tenth)
    assert accountant.total().epsilon == 1
    with pytest.raises(BudgetError):
        accountant.spend(tenth)
    assert len(accountant) == 10


@pytest.mark.parametrize(
    "epsilon", [math.nan, -1, 0, True, "1", None, float("1e-400"), -math.inf, np.float32("nan")]
)
def test_what_is_no_cost_is_refused_and_leaves_no_trace(epsilon):
    accountant = BudgetAccountant(1)
    for attempt in (accountant.spend, accountant.check, BudgetAccountant):
        with pytest.raises((TypeError, ValueError), match="epsilon"):
            attempt(epsilon)
    assert len(accountant) == 0


def test_tiny_spends_after_large_ones_do_not_vanish():
    accountant = BudgetAccountant(1e9)
    accountant.spend(999_999_999)
    accountant.spend(Decimal("1e-400"))
    assert accountant.total().epsilon > 999_999_999
    with pytest.raises(BudgetError):
        accountant.spend(1)


def test_infinite_ceiling_takes_anything():
    accountant = BudgetAccountant()
    accountant.spend(3)
    assert accountant.remaining() == (math.inf, 0)
    accountant.spend(math.inf)
    accountant.spend(1)
    assert accountant.total() == (math.inf, 0)
    assert accountant.remaining() == (math.inf, 0)
    with pytest.raises(BudgetError):
        accountant.spend(1, 1e-9)


def test_finite_ceiling_refuses_infinite_epsilon():
    accountant = BudgetAccountant(1e300, 1)
    with pytest.raises(BudgetError) as why:
        accountant.spend(math.inf)
    assert why.value.requested == (math.inf, 0)
    assert why.value.remaining == (1e300, 1)


def test_pure_delta_is_a_cost():
    accountant = BudgetAccountant(1, 1e-5)
    accountant.spend(0, 1e-5)
    assert accountant.total() == (0, 1e-5)


def test_check_spends_nothing():
    accountant = BudgetAccountant(1)
    assert accountant.check(1) is True
    assert accountant.check(1) is True
    with pytest.raises(BudgetError, match="remains"):
        accountant.check(1.1)
    assert accountant.total() == (0, 0)


def test_budget_error_survives_pickling():
    with pytest.raises(BudgetError) as why:
        BudgetAccountant(1).spend(2)
    copy = pickle.loads(pickle.dumps(why.value))
    assert (copy.requested, copy.remaining, str(copy)) == ((2, 0), (1, 0), str(why.value))


def test_an_unused_accountant_is_not_nothing():
    assert BudgetAccountant()


def test_figures_shown_are_on_the_private_side():
    accountant = BudgetAccountant(Fraction(2, 3))
    accountant.spend(Fraction(1, 3))
    assert Fraction(str(accountant.total().epsilon)) >= Fraction(1, 3)
    assert Fraction(str(accountant.epsilon)) <= Fraction(2, 3)
    accountant.spend(accountant.remaining().epsilon)


# the file ----------------------------------------------------------------------------------------


def test_a_later_run_goes_on_where_the_first_stopped(tmp_path):
    path = tmp_path / "ledger"
    BudgetAccountant(1, path=path).spend(0.7)
    later = BudgetAccountant(1.0, path=str(path))
    assert later.total() == (0.7, 0)
    with pytest.raises(BudgetError):
        later.spend(0.4)


def test_the_ceiling_of_a_ledger_is_final(tmp_path):
    path = tmp_path / "ledger"
    BudgetAccountant(1, 1e-5, path=path)
    assert (BudgetAccountant(path=path).epsilon, BudgetAccountant(path=path).delta) == (1, 1e-5)
    for epsilon, delta in [(2, 1e-5), (0.5, 1e-5), (1, 0), (math.inf, 1e-5)]:
        with pytest.raises(LedgerError, match="has the ceiling"):
            BudgetAccountant(epsilon, delta, path=path)


def test_an_empty_file_is_not_a_new_ledger(tmp_path):
    path = tmp_path / "ledger"
    path.touch()
    with pytest.raises(LedgerError):
        BudgetAccountant(1, path=path)


def test_temporary_ledger_is_private():
    path = Path(BudgetAccountant(1).path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_place_for_a_temporary_ledger_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr("dpbayes_sklearn.privacy.ledger_file._DIRECTORIES", {})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(LedgerError, match="No such file"):
        BudgetAccountant(1)


@pytest.mark.slow
def test_temporary_ledger_goes_with_its_process_and_not_with_a_child():
    code = """
import os, sys
from dpbayes_sklearn.privacy import BudgetAccountant
accountant = BudgetAccountant(1)
if not os.fork():
    BudgetAccountant(2).spend(1)
    sys.exit()  # runs every exit handler
os.wait()
accountant.spend(1)
print(accountant.path)
"""
    path = run(code)
    assert path
    assert not os.path.exists(os.path.dirname(path))


def test_temporary_ledger_of_a_multiprocessing_child_goes_with_the_child():
    code = """
import multiprocessing, os
from dpbayes_sklearn.privacy import BudgetAccountant
def child(queue):
    queue.put(BudgetAccountant(1).path)
if __name__ == "__main__":
    accountant = BudgetAccountant(1)
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    process = fork.Process(target=child, args=(queue,))
    process.start()
    process.join()
    print(os.path.exists(queue.get()), os.path.exists(accountant.path))
"""
    assert run(code) == "False True"


def test_it_is_unpickled_without_its_ledger_but_not_used(tmp_path):
    accountant = BudgetAccountant(1, path=tmp_path / "ledger")
    stored = pickle.dumps(accountant)
    os.rename(accountant.path, accountant.path + ".moved")
    elsewhere = pickle.loads(stored)
    assert elsewhere.epsilon == 1
    assert "cannot be used" in elsewhere._repr_html_()
    for attempt in (lambda: elsewhere.spend(0.1), lambda: elsewhere.check(0.1), elsewhere.total):
        with pytest.raises(LedgerError, match="unable to open"):
            attempt()


# looking at it -----------------------------------------------------------------------------------


def test_entries_tell_when_what_and_how_much():
    accountant = BudgetAccountant(1, 1e-5)
    returned = accountant.spend(0.5, 1e-6, label="BayesianNaiveBayes, laplace, record")
    (entry,) = accountant
    assert entry == returned
    assert (entry.epsilon, entry.delta) == (0.5, 1e-6)
    assert entry.label == "BayesianNaiveBayes, laplace, record"
    assert entry.time.utcoffset().total_seconds() == 0


def test_frame_has_a_row_for_each_release():
    accountant = BudgetAccountant()
    assert list(accountant.to_frame().columns) == [
        "time", "label", "epsilon", "delta", "rho", "release_id", "scope", "unit", "branch",
            "allotment",
    ]  # fmt: skip
    accountant.spend(0.1, label="a")
    accountant.spend(0.2, label="b")
    frame = accountant.to_frame()
    assert frame["epsilon"].tolist() == [0.1, 0.2]
    assert frame["label"].tolist() == ["a", "b"]
    assert isinstance(frame["time"].dtype, pd.DatetimeTZDtype)
    assert frame["release_id"].is_unique


def test_frame_without_pandas_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas"):
        BudgetAccountant().to_frame()


def test_html_shows_the_latest_entries_escaped():
    accountant = BudgetAccountant(100)
    for number in range(30):
        accountant.spend(1, label=f"<i>{number}</i>")
    page = accountant._repr_html_()
    assert "<dt>spent</dt><dd>ε = 30</dd>" in page
    assert "<dt>left</dt><dd>ε = 70</dd>" in page
    assert "<dt>releases</dt><dd>30</dd>" in page
    assert "width:30.0%" in page
    assert "&lt;i&gt;29&lt;/i&gt;" in page
    assert "<i>" not in page
    assert page.count("<tr>") == 21
    assert "10 came before" in page


def test_html_without_a_ceiling_has_no_meter():
    page = BudgetAccountant(delta=1e-5)._repr_html_()
    assert "<dt>ceiling</dt><dd>ε = ∞, δ = 1e-05</dd>" in page
    assert 'class="dpbayes-meter"' not in page
    assert "<table>" not in page


def test_html_of_an_empty_budget_warns():
    accountant = BudgetAccountant(1)
    assert ACCENTS["good"] in accountant._repr_html_()
    accountant.spend(1)
    assert ACCENTS["bad"] in accountant._repr_html_()


def test_representation_reads_like_the_constructor(tmp_path):
    accountant = BudgetAccountant(1, path=tmp_path / "ledger")
    path = str(tmp_path / "ledger")
    assert repr(accountant) == f"BudgetAccountant(epsilon=1.0, delta=0.0, path={path!r})"


def test_an_unknown_method_of_total_is_refused():
    with pytest.raises(
        ValueError, match="'method' parameter of total must be 'tight', 'sum' or 'pld'"
    ):
        BudgetAccountant().total(method="rdp")


@pytest.mark.parametrize("path", ["typo.sqlite", None])
def test_an_existing_ledger_is_not_made(tmp_path, path):
    with pytest.raises(LedgerError, match="There is no ledger"):
        BudgetAccountant(path=path and tmp_path / path, existing=True)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_ledger_is_opened(tmp_path):
    path = tmp_path / "ledger.sqlite"
    BudgetAccountant(2.0, path=path).spend(0.5)
    assert BudgetAccountant(path=path, existing=True).remaining().epsilon == 1.5


def test_only_a_ledger_without_a_path_is_temporary(tmp_path):
    assert BudgetAccountant().temporary
    assert not BudgetAccountant(path=tmp_path / "ledger.sqlite").temporary
