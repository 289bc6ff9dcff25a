"""Wrong uses of the commands: one line on standard error, status 2, nothing spent or written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from dpbayes_sklearn import BudgetAccountant
from dpbayes_sklearn.__main__ import main

SCHEMA = {
    "columns": {"age": {"low": 17, "high": 90}, "job": {"values": ["clerk", "nurse"]}},
    "target": {"values": ["no", "yes"]},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table in several spellings, a schema and a ledger."""
    rng = np.random.default_rng(0)
    columns = (rng.integers(17, 90, 60), rng.choice(["clerk", "nurse"], 60))
    rows = [(str(age), job, "no") for age, job in zip(*columns, strict=True)]
    lines = [("age", "job", "sick"), *rows]

    def write(name: str, sep: str = ",", encoding: str = "utf-8", above: str = "") -> None:
        text = above + "\n".join(map(sep.join, lines)) + "\n"
        (tmp_path / name).write_text(text, encoding=encoding)

    write("data.csv")
    write("semicolons.csv", ";")
    write("utf16.csv", encoding="utf-16")
    write("twice.csv", above="age,age,sick\n")
    write("quote.csv", above='age,job,sick\n1,"nurse,no\n')
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text("age,job,sick\n")
    (tmp_path / "text.parquet").write_text("age,job,sick\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    monkeypatch.chdir(tmp_path)
    BudgetAccountant(10, path=tmp_path / "ledger")
    return tmp_path


FIT = "fit {data} --target {target} --schema {schema} --epsilon {epsilon} --ledger {ledger}"
USUAL = {
    "data": "data.csv",
    "target": "sick",
    "schema": "schema.json",
    "epsilon": "1",
    "ledger": "ledger",
}


def refused(capsys: pytest.CaptureFixture[str], folder: Path, command: str) -> str:
    """Return the one line that a command says; nothing has changed after it."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    try:
        status = main(command.split())
    except SystemExit as end:  # of argparse
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    sqlite = {folder / f"ledger{ending}" for ending in ("", "-wal", "-shm")}
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert {*before} - sqlite == {*after} - sqlite
    assert all(after[path] == before[path] for path in {*before} - sqlite)
    assert len(BudgetAccountant(path=folder / "ledger", existing=True)) == 0
    return err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "missing.csv"}, "No such file or directory: missing.csv"),
        ({"data": "semicolons.csv"}, "no column 'age' .* --sep or --encoding may be others"),
        ({"data": "utf16.csv"}, "is not UTF-8: name the encoding .* --encoding latin-1"),
        ({"data": "twice.csv"}, "columns 1, 2 have names that repeat"),
        ({"data": "quote.csv"}, "quoted cell of the record in line 2"),
        ({"data": "empty.csv"}, "must contain column names"),
        ({"data": "header.csv"}, "has no records"),
        ({"data": "folder"}, "Is a directory"),
        ({"data": "text.parquet"}, "not a parquet file"),
        ({"target": "sik"}, "no column 'sik' in the first line of the file. Did you mean 'sick'"),
        ({"target": "age"}, "'age' is the target.* predicted from itself"),
        ({"schema": "data.csv"}, "is not JSON"),
        ({"schema": "folder"}, "Is a directory"),
        ({"epsilon": "0"}, "must be a positive number"),
        ({"epsilon": "11"}, "would cross the ceiling"),
        ({"ledger": "folder"}, "it is a folder"),
        ({"ledger": "other"}, "no ledger other"),
    ],
    ids=str,
)
def test_a_fit(folder: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str],
               message: str) -> None:  # fmt: skip
    said = refused(capsys, folder, FIT.format(**{**USUAL, **change}))
    assert re.search(message, said), said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--decimal ,", "--sep and --decimal must differ"),
        ("--date-format %Q", "must be like %d.%m.%Y"),
        ("--date-format YYYY-MM-DD", "must be like %d.%m.%Y"),
        ("--encoding utf-99", "no encoding 'utf-99'"),
        ("--groups who", "no column 'who'"),
        ("--out folder", "must be a file that can be written"),
        ("--out none/model.json", "The folder of none/model.json must exist"),
        ("--out data.csv", "is the file of the data"),
    ],
)
def test_options(folder: Path, capsys: pytest.CaptureFixture[str], options: str,
                 message: str) -> None:  # fmt: skip
    assert message in refused(capsys, folder, f"{FIT.format(**USUAL)} {options}")


@pytest.mark.parametrize(
    ("age", "message"),
    [
        ({"low": 90, "high": 17}, "The domain of 'age' is none. Interval bounds must have low"),
        ({"values": ["a", "a"]}, "The domain of 'age' is none. Categories"),
        ({"low": 17}, "Fill in low and high of 'age'"),
    ],
    ids=str,
)
def test_a_wrong_domain_is_named(folder: Path, capsys: pytest.CaptureFixture[str],
                                 age: dict[str, object], message: str) -> None:  # fmt: skip
    wrong = {**SCHEMA, "columns": {"age": age}}
    (folder / "schema.json").write_text(json.dumps(wrong))
    assert message in refused(capsys, folder, FIT.format(**USUAL))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("budget ledger --allot x", "--allot: must be a name and an epsilon"),
        ("budget ledger --allot x=0", "--allot: must be a positive number"),
        ("budget folder", "it is a folder"),
        ("predict schema.json data.csv", "not a released model"),
        ("card data.csv", "not a released model"),
        ("schema data.csv --target sick", "File exists: schema.json"),
        (
            "learn data.csv --target sick --texts sick --epsilon 1 --out new",
            "--texts needs --delta",
        ),
        ("check semicolons.csv --target sick --schema schema.json", "--sep or --encoding"),
        ("fti", "invalid choice: 'fti'"),
    ],
)
def test_other_commands(folder: Path, capsys: pytest.CaptureFixture[str], command: str,
                        message: str) -> None:  # fmt: skip
    assert message in refused(capsys, folder, command)
