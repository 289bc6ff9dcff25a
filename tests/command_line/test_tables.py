"""Tables that are read in batches: where a batch ends, and what is kept, changes nothing."""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, Schema
from dpbayes_sklearn.command_line import tables
from dpbayes_sklearn.command_line.files import FileError, read_schema
from dpbayes_sklearn.command_line.tables import PLAIN, CsvFile, Form, parsed, read_data, stored
from dpbayes_sklearn.data.records import Columns
from dpbayes_sklearn.schema import Categories, Interval
from tests.main.test_commands import files as files
from tests.main.test_commands import run

ODD = ["1.5", "x", "", " 2 ", "1e400", "nan", "1_0", '"a\nb"', "3\r4", "no", "2020-01-01T00:00Z"]
DOMAINS: dict[str, Any] = {
    "a": Interval(0, 9),
    "b": Interval(np.datetime64("2019-01-01"), np.datetime64("2021-01-01")),
    "c": Categories(["no", "yes", "nan"]),
    "d": Categories([1.5, 10, True]),
    "e": None,
}


def odd_file(folder: Path, end: str = "\n") -> Path:
    """Every odd cell in every column."""
    lines = [",".join(ODD[(i + j) % len(ODD)] for j in range(5)) for i in range(len(ODD))]
    path = folder / "odd.csv"
    path.write_text(end.join(["a,b,c,d,e", *lines, "", "1", ""]), newline="")
    return path


def cells(path: Path) -> list[list[Any]]:
    return [
        np.asarray(column).tolist() for column in stored(CsvFile.open(path), [*DOMAINS.items()])
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [1, 5, 10, 35])
def test_where_a_batch_ends_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, end: str
) -> None:
    whole = cells(odd_file(tmp_path, end))
    assert {len(column) for column in whole} == {len(ODD) + 2}
    monkeypatch.setattr(tables, "_CELLS_A_BATCH", size)
    np.testing.assert_equal(cells(tmp_path / "odd.csv"), whole)


def test_every_cell_is_read_as_if_it_were_alone(tmp_path: Path) -> None:
    whole = cells(odd_file(tmp_path))
    for i in range(len(ODD)):
        alone = tmp_path / "alone.csv"
        line = ",".join(ODD[(i + j) % len(ODD)] for j in range(5))
        alone.write_text(f"a,b,c,d,e\n{line}\n", newline="")
        np.testing.assert_equal([[column[i]] for column in whole], cells(alone))


@pytest.mark.parametrize("name", ["regression", "classes"])
def test_a_fit_to_kept_columns_is_the_fit_to_the_cells(files: Path, capsys: Any, name: str) -> None:
    """Without noise, and with a seed: the same document."""
    schema = read_schema(files / f"{name}.json")
    target = "wage" if name == "regression" else "job"
    asked = [*schema.columns.items(), (target, schema.target)]
    names = [column for column, _ in asked]
    (batch,) = CsvFile.open(files / "data.csv").batches(names)
    *X, y = [tables.read_cells(batch[column], domain, PLAIN) for column, domain in asked]
    *kept, target_kept = stored(CsvFile.open(files / "data.csv"), asked)
    kind: Any = BayesianLinearRegression if name == "regression" else BayesianNaiveBayes
    for epsilon in (1.0, float("inf")):
        model = kind(epsilon, schema=schema, random_state=0)
        of_cells = model.fit(np.stack(X, axis=1), y).to_json()
        assert model.fit(Columns([*schema.columns], kept), target_kept).to_json() == of_cells


def test_predictions_come_in_the_order_of_the_records(
    files: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = ("fit", "data.csv", "--target", "wage", "--schema", "regression.json", "--epsilon", "20")
    assert run(capsys, *fit)[0] == 0
    predict = ("predict", "model.json", "data.csv", "--id", "id")
    _, whole, _ = run(capsys, *predict)
    monkeypatch.setattr(tables, "_CELLS_A_BATCH", 35)
    _, batches, _ = run(capsys, *predict)
    one, other = ([*csv.reader(text.splitlines())] for text in (whole, batches))
    assert [line[0] for line in other] == ["id", *map(str, range(800))]
    np.testing.assert_allclose(np.array(one[1:], float), np.array(other[1:], float), rtol=1e-8)


def test_counts_of_check_are_those_of_all_batches(
    files: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (files / "data.csv").read_text().replace("nurse", "", 7).replace("clerk", "boss", 5)
    (files / "odd.csv").write_text(text)
    check = ("check", "odd.csv", "--target", "job", "--schema", "classes.json")
    whole = run(capsys, *check)
    monkeypatch.setattr(tables, "_CELLS_A_BATCH", 35)
    assert run(capsys, *check) == whole
    assert "target: 5 of 800 values outside 2 categories, 7 missing" in whole[1]


def test_a_broken_quote_after_many_batches_writes_no_prediction(
    files: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = ("fit", "data.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "1")
    assert run(capsys, *fit)[0] == 0
    monkeypatch.setattr(tables, "_CELLS_A_BATCH", 35)
    (files / "bad.csv").write_text((files / "data.csv").read_text() + '30,"open\n')
    (files / "out.csv").write_text("kept")
    for out in ((), ("--out", "out.csv")):
        status, said, error = run(capsys, "predict", "model.json", "bad.csv", *out)
        assert (status, said) == (2, "")
        assert "in line 802 is not closed" in error
    assert (files / "out.csv").read_text() == "kept"


@pytest.mark.slow
def test_no_room_for_the_columns_is_said_before_the_charge(
    files: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "dpbayes_sklearn", "fit", "data.csv", "--target", "job"]
    ledger = ["--ledger", "l.sqlite", "--ceiling", "3"]
    options = ["--schema", "classes.json", "--epsilon", "1", *ledger]
    most = 4096  # bytes of a file: fewer than the columns of the records need
    found = subprocess.run(
        [*command, *options],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert found.returncode == 2
    assert "TMPDIR" in found.stderr
    assert not (files / "l.sqlite").exists()


def test_a_folder_of_parquet_files_is_a_table(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "t.parquet"
    folder.mkdir()
    lists = pa.array([[1], None], pa.list_(pa.int64()))
    for i in range(2):
        part = pa.table({"a": [i, None], "b": ["x", None], "c": lists})
        parquet.write_table(part, folder / f"{i}.parquet")
    file = read_data(folder, Form())
    assert file.names == ("a", "b", "c")
    columns = stored(
        file, [("a", Interval(0, 9)), ("a", Categories([1])), ("b", None), ("c", None)]
    )
    found = [np.asarray(column).tolist() for column in columns]
    np.testing.assert_equal(found[0], [0, np.nan, 1, np.nan])
    assert found[1:] == [[None, None, 1, None], ["x", None, "x", None], [None] * 4]


def test_a_batch_is_a_frame_with_the_names_of_the_schema(tmp_path: Path) -> None:
    schema = Schema({"age": Interval(0, 9), "job": Categories(["x", "y"])})
    frame = parsed({"job": ["y", "?"], "age": ["1", ""]}, schema.columns, Form(decimal=","))
    assert (frame.columns, frame.shape) == (["age", "job"], (2, 2))
    np.testing.assert_equal(frame["age"].tolist(), [1, np.nan])
    assert np.asarray(frame[["job"]][:, 0]).tolist() == ["y", None]


def test_a_table_without_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("a,b\n")
    with pytest.raises(FileError, match="has no records"):
        CsvFile.open(tmp_path / "none.csv")


def test_a_pipe_is_read_once(files: Path) -> None:
    fit = "fit /dev/stdin --target job --schema classes.json --epsilon 1 --out piped.json"
    with (files / "data.csv").open() as data:
        cat = subprocess.Popen(["cat"], stdin=data, stdout=subprocess.PIPE)
        command = [sys.executable, "-m", "dpbayes_sklearn", *fit.split()]
        assert subprocess.run(command, stdin=cat.stdout, capture_output=True).returncode == 0
        assert cat.stdout is not None
        cat.stdout.close()
        assert cat.wait() == 0


def test_persons_and_columns_are_learned_from_in_one_pass(files: Path, capsys: Any) -> None:
    learn = ("learn", "data.csv", "--target", "wage", "--epsilon", "20", "--groups", "id")
    assert run(capsys, *learn, "--numbers", "age", "wage")[0] == 0
    assert [*read_schema(files / "schema.json").columns] == ["age"]
