"""The table of the audit: every layer is run, and a row that fails fails the whole."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks.audit.__main__ import layers, main
from benchmarks.audit._cases import Row, line, summary
from benchmarks.audit._planted import FAULTS


def test_all_layers_are_found() -> None:
    assert {"enumeration", "replay", "faults", "ledger", "regression"} <= set(layers())
    for name in layers():
        assert callable(importlib.import_module(f"benchmarks.audit.{name}").run)


def test_a_short_audit_passes_and_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, rows = tmp_path / "audit.md", tmp_path / "audit.csv"
    monkeypatch.setattr("benchmarks.audit.__main__.PAGE", page)
    monkeypatch.setattr("benchmarks.audit.__main__.ROWS", rows)
    assert main(["hockey_stick", "--scale", "0.001", "--write"]) == 0
    assert "0 failed" in capsys.readouterr().out
    n = len(rows.read_text().splitlines()) - 1
    assert f"| hockey_stick | {n} | 0 |" in page.read_text()
    assert "scikit-learn" in page.read_text()
    assert "audit.csv" in page.read_text()
    assert rows.read_text().count("delta / claim") >= n - 1


def test_a_planted_fault_fails_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    (fault,) = (f for f in FAULTS if f.name.startswith("The standard deviation is five"))
    with fault.planted():
        assert main(["hockey_stick", "--scale", "0.001"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_rows_are_printed_with_their_verdict() -> None:
    good, bad = (Row("what", "1", "<= 1", passed) for passed in (True, False))
    assert line("layer", good).endswith("ok")
    assert line("layer", bad).endswith("FAILED")
    assert "| layer | 2 | 1 |" in summary({"layer": [good, bad]})
