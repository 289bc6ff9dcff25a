"""Schemas that are learned, weights and broken quotes, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpbayes_sklearn import BudgetAccountant, from_json
from dpbayes_sklearn.command_line.files import read_schema
from dpbayes_sklearn.schema import Categories, Interval
from tests.main.test_commands import files as files
from tests.main.test_commands import run


def test_a_schema_is_learned(files: Path, capsys: Any) -> None:
    learn = ("learn", "data.csv", "--target", "wage", "--epsilon", "20", "--bins", "0")
    kinds = ("--numbers", "age", "wage", "--dates", "since", "--texts", "job", "--delta", "1e-6")
    ledger = ("--ledger", "l.sqlite", "--ceiling", "30", "--ceiling-delta", "1e-5")
    status, _, err = run(capsys, *learn, *kinds, *ledger)
    assert (status, err) == (0, "")
    found = read_schema(files / "schema.json")
    assert [*found.columns] == ["age", "since", "job"]
    assert set(found.columns["job"].values) == {"clerk", "nurse", "other"}
    assert found.columns["since"].dates
    assert 15 < found.target.low < found.target.high < 60
    fit = ("fit", "data.csv", "--target", "wage", "--schema", "schema.json", "--epsilon", "5")
    assert "the learned domains, epsilon = 20" in run(capsys, *fit, "--ledger", "l.sqlite")[1]
    assert BudgetAccountant(path=files / "l.sqlite", existing=True).delta == 1e-5


def test_what_is_declared_is_not_learned(files: Path, capsys: Any) -> None:
    learn = ("learn", "data.csv", "--target", "wage", "--epsilon", "20", "--numbers", "age")
    assert "Say what the column 'wage' holds" in run(capsys, *learn)[2]
    declared = {"columns": {"job": {"values": ["nurse"]}}, "target": {"low": 0, "high": 60}}
    (files / "some.json").write_text(json.dumps(declared))
    assert run(capsys, *learn, "--schema", "some.json")[0] == 0
    found = read_schema(files / "schema.json")
    assert found.target == Interval(0, 60)
    assert found.columns["job"] == Categories(["nurse"])
    more = ("--texts", "job", "--delta", "1e-6", "--schema", "some.json", "--out", "s.json")
    twice = run(capsys, *learn, *more)[2]
    assert "named twice" in twice


def test_weights_are_a_column(files: Path, capsys: Any) -> None:
    fit = ("fit", "data.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "inf")
    assert "needs --max-weight" in run(capsys, *fit, "--weights", "id")[2]
    status, out, _ = run(capsys, *fit, "--weights", "id", "--max-weight", "3", "--model", "counts")
    assert status == 0
    assert "ignored: since, wage" in out
    model = from_json((files / "model.json").read_text())
    assert model.posterior_.released.n == 0 + 1 + 2 + 3 * 797


def test_records_without_a_target_are_left_out(files: Path, capsys: Any) -> None:
    lines = (files / "data.csv").read_text().replace("nurse", "", 20).splitlines()
    (files / "gaps.csv").write_text("\n".join(lines))
    fit = (
        "fit",
        "gaps.csv",
        "--target",
        "job",
        "--schema",
        "classes.json",
        "--model",
        "counts",
        "--epsilon",
        "inf",
    )
    for more in ((), ("--mechanism", "laplace")):
        assert run(capsys, *fit, *more)[0] == 0
        released = from_json((files / "model.json").read_text()).posterior_.released
        assert (released.n, released.tables[-1].sum()) == (800, 780)
    assert "must be an int in the range [1" in run(capsys, *fit, "--max-weight", "0")[2]


def test_a_quote_that_is_not_closed_is_found(files: Path, capsys: Any) -> None:
    (files / "bad.csv").write_text('age,job\n30,"two\nlines"\n40,"clerk\n50,nurse\n')
    fit = ("fit", "bad.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "1")
    said = run(capsys, *fit)[2]
    assert "in line 4 is not closed" in said
    assert "clerk" not in said
