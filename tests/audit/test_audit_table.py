"""The table of the audit: every layer is run, and a row that fails fails the whole."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks.audit.__main__ import layers, main
from benchmarks.audit._cases import Row, line, markdown
from benchmarks.audit._planted import FAULTS


def test_all_layers_are_found() -> None:
    assert {"enumeration", "replay", "faults", "ledger", "regression"} <= set(layers())
    for name in layers():
        assert callable(importlib.import_module(f"benchmarks.audit.{name}").run)


def test_a_short_audit_passes_and_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.md"
    assert main(["hockey_stick", "--scale", "0.001", "--write", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "0 failed" in printed
    assert "delta / claim" in file.read_text()
    assert "scikit-learn" in file.read_text()


def test_a_planted_fault_fails_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    (fault,) = (f for f in FAULTS if f.name.startswith("The standard deviation is five"))
    with fault.planted():
        assert main(["hockey_stick", "--scale", "0.001"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_rows_are_printed_with_their_verdict() -> None:
    good, bad = (Row("what", "1", "<= 1", passed) for passed in (True, False))
    assert line("layer", good).endswith("ok")
    assert line("layer", bad).endswith("FAILED")
    assert "| layer | what | 1 | <= 1 | **failed** |" in markdown({"layer": [good, bad]})


def test_the_page_leaves_out_faults_that_were_seen_but_not_those_that_were_missed() -> None:
    missed = Row("missed", "nothing", "seen by replay", False)
    seen, caught = (Row(what, "1", "1", True) for what in ("seen", "caught"))
    page = markdown({"faults": [seen, missed, caught]})
    assert "| seen |" not in page
    assert "| missed |" in page
    assert "| caught |" in page
