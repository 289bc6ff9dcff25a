"""Processes and threads whose block is open, left or unknown: charged or refused, never free."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import joblib
import pytest

from dpbayes_sklearn import BudgetAccountant, LedgerError
from dpbayes_sklearn.privacy import active
from tests.privacy.test_active_workers import made_there

FIT = """
import sys
from dpbayes_sklearn import BayesianNaiveBayes, LedgerError
from dpbayes_sklearn.privacy import active
{}
try:
    BayesianNaiveBayes(bounds=(0, 1), n_bins=2, classes=[0, 1]).fit([[0], [1]], [0, 1])
    print("fitted")
except LedgerError as error:
    print("refused", error)
"""
WITHOUT_PROC = "active._stat = lambda process: None"
WHEN_TOLD = "sys.stdin.readline()"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it needs a shell")


def outcome(shell: str = '"$0" -c "$1"', before: str = "", **variables: str) -> str:
    """Fit in a process that a shell starts; it ends when nobody can write to its output."""
    command = ["sh", "-c", shell, sys.executable, FIT.format(before)]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("shell", ['"$0" -c "$1"', '"$0" -c "$1" &', '"$0" -c "$1"; true'])
@pytest.mark.parametrize("before", ["", WITHOUT_PROC])
def test_a_process_started_in_the_block_is_charged_whoever_has_started_it(shell, before):
    with BudgetAccountant() as accountant:
        assert outcome(shell, before) == "fitted\n"
    assert len(accountant) == 1


def test_another_temporary_folder_does_not_hide_the_block(tmp_path):
    with BudgetAccountant() as accountant:
        assert outcome(TMPDIR=str(tmp_path)) == "fitted\n"
    assert len(accountant) == 1


@pytest.mark.slow
def test_a_process_that_was_started_in_the_block_refuses_when_it_was_left():
    command = [sys.executable, "-c", FIT.format(WHEN_TOLD)]
    with BudgetAccountant() as accountant:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with BudgetAccountant() as other:
        assert child.communicate("now\n")[0].startswith("refused")
    assert (len(accountant), len(other)) == (0, 0)
    assert outcome() == "fitted\n"  # one that is started later


@pytest.mark.parametrize("said", ['["/no/such/file", [["a", "b", "1/1", "0/1", true]]]', "x", "1"])
def test_a_block_that_cannot_be_confirmed_is_refused(said):
    assert "Pass accountant=" in outcome(**{active._VARIABLE: said})


@pytest.mark.slow
def test_the_child_of_a_killed_process_is_charged(tmp_path):
    command = [sys.executable, "-c", FIT.format(WHEN_TOLD)]
    path = tmp_path / "ledger"
    code = f"""
import os, signal, subprocess
from dpbayes_sklearn import BudgetAccountant
with BudgetAccountant(path={str(path)!r}):
    subprocess.Popen({command!r})
    os.kill(os.getpid(), signal.SIGKILL)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    parent = subprocess.Popen([sys.executable, "-c", code], **pipes)
    assert parent.wait() == -signal.SIGKILL
    assert parent.communicate("now\n")[0] == "fitted\n"
    assert len(BudgetAccountant(path=path)) == 1


def test_idle_workers_that_joblib_has_started_in_a_block_are_free_after_it():
    with BudgetAccountant() as accountant:
        joblib.Parallel(2)(joblib.delayed(made_there)(k) for k in range(4))
    joblib.Parallel(2)(joblib.delayed(made_there)(k) for k in range(4))
    assert len(accountant) == 4


def test_the_environment_says_which_blocks_are_open(monkeypatch):
    monkeypatch.setattr(active, "_INHERITED", "of the parent")
    with BudgetAccountant() as outer:
        alone = os.environ[active._VARIABLE]
        assert json.loads(alone)[1] == [[*outer._written]]
        with BudgetAccountant():
            assert len(json.loads(os.environ[active._VARIABLE])[1]) == 2
        assert os.environ[active._VARIABLE] == alone
    assert os.environ.pop(active._VARIABLE) == "of the parent"


def published_by(process: int) -> list[Path]:
    return list(active._files([active._name(process)]))


def test_the_first_process_of_a_container_is_asked_too(monkeypatch):
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert list(active._ancestors()) == [1]


def test_what_others_have_published_is_not_believed(monkeypatch):
    with BudgetAccountant():
        (file,) = published_by(os.getpid())
        assert file.parent.stat().st_mode & 0o777 == 0o700
        file.parent.chmod(0o777)  # anybody could have written it
        assert published_by(os.getpid()) == []
        file.parent.chmod(0o700)
        monkeypatch.setattr(active, "_stat", lambda process: ("1", 0))  # another of this number
        assert published_by(os.getpid()) == []


def test_a_block_that_cannot_be_published_is_not_entered(monkeypatch, tmp_path):
    accountant = BudgetAccountant(path=tmp_path / "ledger")
    monkeypatch.setattr(active, "_FOLDERS", {})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(LedgerError, match="cannot be told"), accountant:
        pass
    assert BudgetAccountant.current() is None
