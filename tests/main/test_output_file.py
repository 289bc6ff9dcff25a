"""Files that commands write: checked before the charge, and never lost after it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from benchmarks.audit._cases import Case
from benchmarks.audit._command_line import Folder, command_line
from dpbayes_sklearn import BudgetAccountant, from_json
from dpbayes_sklearn.__main__ import room_for_model
from dpbayes_sklearn.command_line import files
from dpbayes_sklearn.command_line.files import (
    FileError,
    ReservedFile,
    read_schema,
    refuse_to_overwrite,
)
from dpbayes_sklearn.schema import Categories, Interval, Schema

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize("case", command_line(), ids=lambda case: case.name)
def test_nothing_is_overwritten_charged_quoted_or_lost(case: Case) -> None:
    assert list(case.findings()) == []


def test_a_model_takes_the_place_of_an_older_one(folder: Folder) -> None:
    older, link = folder.path / "older.json", folder.path / "model.json"
    older.write_text("x" * 10**6)
    link.symlink_to(older)
    for _ in range(2):
        assert folder.fit()[0] == 0
    assert link.is_symlink()
    assert hasattr(from_json(older.read_text()), "schema_")
    assert list(folder.path.glob(".*")) == []
    assert folder.charged() == 2


def test_a_disk_that_is_full_after_the_charge(folder: Folder, monkeypatch: Any) -> None:
    """First to the folder of temporary files, then to what is printed."""
    other = folder.path / "temporary"
    other.mkdir()
    monkeypatch.setattr(files, "gettempdir", lambda: str(other))
    real, calls = os.fsync, []

    def full_later(file: int) -> None:
        calls.append(file)
        if len(calls) == 2:
            raise FULL
        real(file)

    for printed in (False, True):
        calls.clear()
        if printed:
            monkeypatch.setattr(Path, "write_text", mock.Mock(side_effect=FULL))
        with mock.patch("os.fsync", full_later):
            status, said = folder.fit()
        assert status == 2
        assert "The released model is" in said
        saved = next(other.iterdir()).read_text()
        text = next(line for line in said.splitlines() if line[0] == "{") if printed else saved
        assert hasattr(from_json(text), "schema_")
        assert str(other) in said or printed
    assert not (folder.path / "model.json").exists()
    assert folder.charged() == 2


def test_an_error_of_a_fit_leaves_no_file(folder: Folder) -> None:
    with pytest.raises(ZeroDivisionError), ReservedFile(folder.path / "model.json", 100):
        raise ZeroDivisionError
    assert list(folder.path.glob(".*")) == []
    assert not (folder.path / "model.json").exists()


def test_predictions_and_cards_are_not_written_over_what_is_read(folder: Folder) -> None:
    folder.fit()
    before = folder.content()
    model, data = (str(folder.path / name) for name in ("model.json", "data.csv"))
    released = Path(model).read_text()
    for words in (
        ("predict", model, data, "--out", data),
        ("predict", model, data, "--out", model),
    ):
        status, said = folder.run(*words)
        assert (status, "name another file" in said) == (2, True)
    markdown = folder.path / "model.md"
    os.link(model, markdown)
    assert folder.run("card", model, "--out", str(markdown))[0] == 2
    assert Path(model).read_text() == released
    assert folder.content() == before


def test_a_ledger_that_does_not_exist_yet(tmp_path: Path) -> None:
    for name in ("ledger", "ledger-journal", "./ledger"):
        with pytest.raises(FileError, match="file of the ledger"):
            refuse_to_overwrite(tmp_path / name, {"data": None, "ledger": tmp_path / "ledger"})
    refuse_to_overwrite(tmp_path / "other", {"ledger": tmp_path / "ledger"})
    refuse_to_overwrite(None, {"data": tmp_path / "data"})


def test_a_ledger_is_no_file_of_records(folder: Folder) -> None:
    before = folder.content()
    with pytest.raises(Exception, match="ledger"):
        BudgetAccountant(1, path=folder.path / "data.csv")
    assert folder.content() == before


@pytest.mark.parametrize("target", [Interval(0, 1), Categories(["no", "yes"])])
def test_there_is_room_for_a_model(target: Any) -> None:
    few = room_for_model(Schema({"a": Interval(0, 1)}, target))
    many = room_for_model(Schema({f"x{j}": Categories(range(9)) for j in range(90)}, target))
    assert few < many < 2**28
    assert room_for_model(Schema({"a": Categories(range(2**16))}, Categories(range(999)))) == 2**28


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"low": None, "high": None, "values": []}, "low and high, or the values, of 'a'"),
        ({"low": 0, "high": None, "values": []}, "low and high of 'a'"),
        ({"low": 0, "high": 1, "values": [1]}, "but not both"),
        ({"values": "abc"}, "must have the fields"),
        ({"values": [10**400, 1e999]}, "cannot be part of a model"),
        ({"low": 0, "high": 1, "bins": 2**16 + 1}, "at most 65536"),
    ],
)
def test_schemas_that_are_refused(tmp_path: Path, given: Any, message: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"columns": {"a": given}, "target": {"values": [0, 1]}}))
    with pytest.raises(ValueError, match=message):
        read_schema(path)


def test_a_template_is_filled_in_either_way(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    interval = {"low": 0, "high": 9, "values": []}
    categories = {"low": None, "high": None, "values": ["x", "y"]}
    path.write_text(json.dumps({"columns": {"a": interval}, "target": categories}))
    assert read_schema(path) == Schema({"a": Interval(0, 9)}, Categories(["x", "y"]))
