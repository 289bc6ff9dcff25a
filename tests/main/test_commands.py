"""The command line on files of one's own, good and bad."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpbayes_sklearn import BudgetAccountant, __version__, from_json
from dpbayes_sklearn.__main__ import main, script
from dpbayes_sklearn.command_line.files import read_schema
from dpbayes_sklearn.command_line.tables import CsvFile, Form, read_data, stored, typed_frame
from dpbayes_sklearn.schema import Categories, Interval

COLUMNS = {
    "age": {"low": 17, "high": 90},
    "job": {"values": ["clerk", "nurse"]},
    "since": {"low": "2010-01-01", "high": "2021-01-01"},
}
REGRESSION = {"columns": COLUMNS, "target": {"low": 0, "high": 60}}
CLASSES = {"columns": {"age": COLUMNS["age"]}, "target": {"values": ["clerk", "nurse"]}}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of records and two schemas, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with (tmp_path / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "job", "since", "wage", "id"])
        for i in range(800):
            age, nurse = int(rng.integers(18, 80)), bool(rng.integers(2))
            wage = 20 + age / 4 + 10 * nurse + rng.normal(0, 2)
            year = rng.integers(2010, 2021)
            writer.writerow([age, ["clerk", "nurse"][nurse], f"{year}-01-02", f"{wage:.2f}", i])
    for name, schema in (("regression", REGRESSION), ("classes", CLASSES)):
        (tmp_path / f"{name}.json").write_text(json.dumps(schema))
    return tmp_path


def texts(path: Path, name: str) -> list[str]:
    """The cells of a column as they are written."""
    (column,) = stored(CsvFile.open(path), [(name, None)])
    return np.asarray(column).tolist()


def values(path: Path, name: str, domain: Any) -> list[Any]:
    """The cells of a column, parsed by a domain."""
    (column,) = stored(CsvFile.open(path), [(name, domain)])
    return np.asarray(column).tolist()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        status: Any = main(arguments)
    except SystemExit as ended:  # by the parser
        status = ended.code
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_from_a_file_to_predictions_and_a_card(files: Path, capsys: Any) -> None:
    fit = ("fit", "data.csv", "--target", "wage", "--schema", "regression.json", "--epsilon", "20")
    status, out, err = run(capsys, *fit)
    assert (status, err) == (0, "")
    assert "Columns that are not in the schema were ignored: id." in out
    assert "Differentially private with epsilon = 20" in out
    status, out, _ = run(capsys, "predict", "model.json", "data.csv", "--out", "out.csv")
    assert status == 0
    written = files / "out.csv"
    assert CsvFile.open(written).names == ("prediction", "standard deviation")
    found = values(written, "prediction", Interval(0, 1))
    wages = values(files / "data.csv", "wage", Interval(0, 1))
    assert np.corrcoef(found, wages)[0, 1] > 0.8
    _, card, _ = run(capsys, "card", "model.json")
    assert "| job | clerk, nurse |" in card
    assert run(capsys, "card", "model.json", "--out", "card.html")[0] == 0
    assert "epsilon = 20" in (files / "card.html").read_text()


def test_a_target_of_classes_makes_a_classifier(files: Path, capsys: Any) -> None:
    fit = ("fit", "data.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "5")
    assert run(capsys, *fit, "--mechanism", "fourier")[0] == 0
    model = from_json((files / "model.json").read_text())
    assert model.get_params()["mechanism"] == "fourier"
    status, out, _ = run(capsys, "predict", "model.json", "data.csv")
    first, second, *_ = csv.reader(out.splitlines())
    assert status == 0
    assert first == ["prediction", "probability of clerk", "probability of nurse"]
    assert float(second[1]) + float(second[2]) == pytest.approx(1)


def test_an_evaluation_is_charged_once_and_stands_on_the_card(files: Path, capsys: Any) -> None:
    fit = ("fit", "data.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "1")
    ledger = ("--ledger", "ledger.sqlite")
    total = ("--delta", "1e-6", "--mechanism", "gaussian", "--ceiling", "3")
    assert run(capsys, *fit, *ledger, *total, "--ceiling-delta", "1e-6")[0] == 0
    ask = ("evaluate", "model.json", "data.csv", "--target", "job", "--epsilon", "1", *ledger)
    status, out, err = run(capsys, *ask, "--scoring", "accuracy", "log_loss", "--title", "Jobs")
    assert (status, err) == (0, "")
    assert "log_loss" in out
    assert "Differentially private with epsilon = 1" in out
    assert "Jobs" in (files / "card.html").read_text()
    accountant = BudgetAccountant(path=files / "ledger.sqlite", existing=True)
    assert accountant.total("sum").epsilon == 2
    for wrong, said in (
        (("--scoring", "r2"), "scoring"),
        (("--out", "model.json"), "file of the model"),
        (("--out", "card.txt"), "must end with .md or .html"),
        (("--epsilon", "2"), "would cross the ceiling"),
    ):
        status, _, err = run(capsys, *ask, *wrong)
        assert status == 2
        assert said in err
    assert accountant.total("sum").epsilon == 2


def test_a_schema_to_fill_in_holds_no_value(files: Path, capsys: Any) -> None:
    assert run(capsys, "schema", "data.csv", "--target", "wage")[0] == 0
    fields = json.loads((files / "schema.json").read_text())
    nothing = {"low": None, "high": None, "values": []}
    assert fields["columns"] == {name: nothing for name in ("age", "job", "since", "id")}
    assert fields["target"] == nothing
    status, _, err = run(capsys, "schema", "data.csv", "--target", "wage")
    assert status == 2
    assert "exists" in err  # what was filled in is not written over
    fit = ("fit", "data.csv", "--target", "wage", "--schema", "schema.json", "--epsilon", "1")
    gaps = ", ".join(map(repr, [*fields["columns"], "target"]))
    assert f"Fill in low and high, or the values, of {gaps}:" in run(capsys, *fit)[2]


def test_the_types_of_parquet_go_into_the_template_and_no_record(files: Path, capsys: Any) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"age": [1], "w": [0.5], "job": ["pilot"], "smokes": [True], "ill": ["no"]})
    parquet.write_table(table, "t.parquet")
    assert run(capsys, "schema", "t.parquet", "--target", "ill")[0] == 0
    text = (files / "schema.json").read_text()
    assert "pilot" not in text
    ends = {"low": None, "high": None}
    assert json.loads(text) == {
        "columns": {"age": {**ends, "values": []}, "w": ends, "job": {"values": []},
                    "smokes": {"values": [False, True]}},
        "target": {"values": []},
    }  # fmt: skip
    fit = ("fit", "t.parquet", "--target", "ill", "--schema", "schema.json", "--epsilon", "1")
    said = run(capsys, *fit)[2]
    for gap in ("low and high, or the values, of 'age'", "low and high of 'w'",
                "the values of 'job', 'target'"):  # fmt: skip
        assert gap in said


def test_check_tells_missing_cells_from_others_and_a_foreign_encoding(
    files: Path, capsys: Any
) -> None:
    rows = b"age,job\n30,clerk\n,nurse\nold,n\xf6\n99,\n"
    (files / "odd.csv").write_bytes(rows)
    check = ("check", "odd.csv", "--target", "job", "--schema", "classes.json")
    out = run(capsys, *check)[1]
    assert "age: 2 of 4 values outside [17, 90], 1 missing" in out
    assert "target: 1 of 4 values outside 2 categories, 1 missing" in out
    assert "1 of 4 lines are not UTF-8: --encoding may be another" in out
    assert "lines are not" not in run(capsys, *check, "--encoding", "latin-1")[1]
    assert "lines are not" not in run(capsys, "fit", *check[1:], "--epsilon", "1")[1]


def test_check_says_what_another_spelling_or_date_format_would_mend(
    files: Path, capsys: Any
) -> None:
    rows = ["since,job", "31/12/2020,clerk", "01/02/2021,Nurse ", ",nurse", "05/06/2021,pilot"]
    (files / "odd.csv").write_text("\n".join(rows))
    columns = {"since": {"low": "2020-01-01", "high": "2021-12-31"}}
    schema = {"columns": columns, "target": {"values": ["clerk", "nurse"]}}
    (files / "s.json").write_text(json.dumps(schema))
    check = ("check", "odd.csv", "--target", "job", "--schema", "s.json")
    out = run(capsys, *check)[1]
    assert "since: 3 of 4 values outside" in out
    assert "  None is such a date: --date-format" in out
    assert "outside 2 categories\n  listed with other case or spaces: 1." in out
    assert "None is such" not in run(capsys, *check, "--date-format", "%d/%m/%Y")[1]
    (files / "s.json").write_text(json.dumps({**schema, "target": {"values": ["pilot", "x"]}}))
    assert "other case" not in run(capsys, *check)[1]


def test_the_ledger_must_exist_and_is_charged_once(files: Path, capsys: Any) -> None:
    fit = ("fit", "data.csv", "--target", "wage", "--schema", "regression.json", "--epsilon", "1")
    ledger = ("--ledger", "ledger.sqlite")
    assert "Create it with --ceiling" in run(capsys, *fit, *ledger)[2]
    assert run(capsys, *fit, *ledger, "--ceiling", "1.5")[0] == 0
    (files / "model.json").unlink()
    status, _, err = run(capsys, *fit, *ledger)
    assert status == 2
    assert "would cross the ceiling" in err
    assert err.count("\n") == 1
    assert not (files / "model.json").exists()
    assert BudgetAccountant(path=files / "ledger.sqlite", existing=True).total().epsilon == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--target": "wages"}, "There is no column 'wages' in the first line"),
        ({"--epsilon": "-1"}, "must be a positive number"),
        ({"--epsilon": "one"}, "must be a positive number"),
        ({"--schema": "data.csv"}, "data.csv is not JSON"),
        ({"--schema": "missing.json"}, "No such file"),
        ({"--schema": "list.json"}, "must be an object with the fields columns and target"),
        ({"--schema": "empty.json"}, "must be an object with one field for each column name"),
        ({"--schema": "odd.json"}, "must have the fields low and high, or the field values"),
        ({"--schema": "open.json"}, "Fill in the values of 'job'"),
        ({"--schema": "date.json"}, "must be numbers, or dates like 2020-01-31"),
        ({"--schema": "turned.json"}, "low < high"),
        ({"--schema": "absent.json"}, "There is no column 'height'"),
        ({"--ceiling": "1"}, "name its file with --ledger"),
        ({"--out": "no/such/folder.json"}, "must exist"),
        ({"--mechanism": "laplase"}, "laplace"),
    ],
    ids=str,
)
def test_bad_input_is_told_in_one_line_and_nothing_is_written(
    files: Path, capsys: Any, changed: dict[str, str], message: str
) -> None:
    target = {"low": 0, "high": 60}
    for name, schema in {
        "list": [],
        "empty": {"columns": {}, "target": target},
        "odd": {"columns": {"age": {"min": 0}}, "target": target},
        "open": {"columns": {"job": {"values": []}}, "target": target},
        "date": {"columns": {"since": {"low": "early", "high": "late"}}, "target": target},
        "turned": {"columns": {"age": {"low": 9, "high": 0}}, "target": target},
        "absent": {"columns": {"height": {"low": 0, "high": 3}}, "target": target},
    }.items():
        (files / f"{name}.json").write_text(json.dumps(schema))
    options = {"--target": "wage", "--schema": "regression.json", "--epsilon": "1", **changed}
    words = [word for pair in options.items() for word in pair]
    status, _, err = run(capsys, "fit", "data.csv", *words)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1
    assert not (files / "model.json").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must contain column names"),
        ("a,b,a\n1,2,3\n", "columns 1, 3 have names that repeat"),
        ("a,b\r1,2\r", "end with LF or CR LF"),
        ("a,b\n", "no records"),
    ],
)
def test_files_that_are_no_tables(files: Path, capsys: Any, text: str, message: str) -> None:
    (files / "odd.csv").write_text(text)
    fit = ("fit", "odd.csv", "--target", "a", "--schema", "regression.json", "--epsilon", "1")
    for command in (fit, ("schema", "odd.csv", "--target", "a"))[: 1 + (message != "no records")]:
        status, _, err = run(capsys, *command)
        assert status == 2
        assert message in err


def test_cards_and_models_that_are_none(files: Path, capsys: Any) -> None:
    assert "error" in run(capsys, "card", "data.csv")[2]
    fit = ("fit", "data.csv", "--target", "wage", "--schema", "regression.json", "--epsilon", "1")
    run(capsys, *fit)
    assert ".md or .html" in run(capsys, "card", "model.json", "--out", "card.pdf")[2]


def test_no_value_can_make_reading_fail(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(b"a,b,c\r\n1,x\n\xff\xfe,3.0,2020-01-01\n\n2,3,nonsense,9\n")
    np.testing.assert_equal(values(path, "a", Interval(0, 9)), [1.0, np.nan, np.nan, 2.0])
    assert values(path, "b", Categories([3, 4])) == [None, 3, None, 3]
    since = Interval(np.datetime64("2019-01-01"), np.datetime64("2021-01-01"))
    assert values(path, "c", since) == [None, datetime(2020, 1, 1), None, None]


@pytest.mark.parametrize("odd", ["1\r2", "", '1"', "2020-05-05T00:00Z", "now", "\0", "1\n" * 0])
def test_one_line_changes_no_other_and_says_nothing(tmp_path: Path, odd: str) -> None:
    domains = (Interval(0, 9), Interval(np.datetime64("2019-01-01"), np.datetime64("2021-01-01")))
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["a,b", "1,2020-01-01", odd, "2,2020-02-01"]) + "\n", newline="")
    for name, domain, others in (
        ("a", domains[0], [1.0, 2.0]),
        ("b", domains[1], [datetime(2020, 1, 1), datetime(2020, 2, 1)]),
    ):
        column = values(path, name, domain)
        assert [column[0], column[2]] == others
        assert len(column) == 3


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_empty_line_is_a_record_wherever_it_is(tmp_path: Path, place: int, end: str) -> None:
    lines = ["1,2", "3,4"]
    lines.insert(place, "")
    path = tmp_path / "data.csv"
    path.write_text("".join(line + end for line in ["a,b", *lines]), newline="")
    cells = [line.split(",") if line else ["", ""] for line in lines]
    assert [*zip(texts(path, "a"), texts(path, "b"), strict=True)] == [*map(tuple, cells)]


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for text in ("a,b\n1,2\n3,4", "a,b\n1,2\n3,4\n"):
        path.write_text(text, newline="")
        assert (texts(path, "a"), texts(path, "b")) == (["1", "3"], ["2", "4"])


def test_a_schema_that_the_library_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"columns": COLUMNS, "target": {"values": [0, 1]}}))
    schema = read_schema(path)
    path.write_text(schema.to_json())
    assert read_schema(path) == schema


def test_the_commands_of_the_user_guide_run(files: Path, capsys: Any) -> None:
    page = Path(__file__).parents[2] / "docs" / "user_guide" / "command_line.md"
    blocks = re.findall(r"^```(?:sh|json)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    shell, schema, learn = blocks
    (files / "data.csv").rename(files / "wages.csv")
    (files / "others.csv").write_text((files / "wages.csv").read_text())
    (files / "new.csv").write_text("name,job,age,since\nAnn,nurse,30,2020-05-01\n")
    commands = shell.replace("\\\n", " ").splitlines()
    assert len(commands) == 8
    for command in commands:
        status, _, err = run(capsys, *shlex.split(command)[1:])
        assert (status, err) == (0, "")
        if command.split()[1] == "schema":
            (files / "schema.json").write_text(schema)
    assert run(capsys, *shlex.split(learn)[1:])[0] == 0
    assert (
        (files / "predictions.csv")
        .read_text()
        .startswith("name,prediction,standard deviation\nAnn,")
    )


def test_the_bare_call_is_the_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        "dpbayes_sklearn.__main__.demonstration", lambda given: seen.append(given) or 0
    )
    for arguments in (["demo", "--repeats", "1"], [], ["--out", "x"]):
        assert main(arguments) == 0
    assert seen == [["--repeats", "1"], [], ["--out", "x"]]


def test_the_script_alone_shows_help_and_its_version(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for arguments, said in (
        ([], "usage: dpbayes"),
        (["--version"], f"dpbayes_sklearn {__version__}"),
    ):
        monkeypatch.setattr("sys.argv", ["dpbayes", *arguments])
        with pytest.raises(SystemExit) as ended:
            script()
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith(said)


def test_a_logistic_regression_has_odds_ratios_and_a_plan(files: Path, capsys: Any) -> None:
    end = ("data.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "20")
    logistic = ("--model", "logistic", "--effects", "linear", "--intervals")
    status, planned, err = run(capsys, "plan", *end, *logistic, "--records", "800")
    assert (status, err) == (0, "")
    assert "BayesianLogisticRegression, 800 records" in planned
    assert "curvature for intervals" in planned
    assert "Noise is" in planned
    status, out, err = run(capsys, "fit", *end, *logistic)
    assert (status, err) == (0, "")
    assert "No --ledger was given" in out
    status, table, _ = run(capsys, "odds", "model.json", "--level", "0.9")
    assert status == 0
    assert "odds ratio  90 % from" in table
    assert "\nage " in table
    run(capsys, "fit", *end)  # chooses logistic regression
    assert "odds ratio" in run(capsys, "coefficients", "model.json")[1]
    run(capsys, "fit", *end, "--model", "counts")
    assert "has no coefficients: fit a regression" in run(capsys, "odds", "model.json")[2]
    auto = ("--model", "auto", "--delta", "1e-6")
    assert "go with --model counts or logistic" in run(capsys, "fit", *end, *auto)[2]
    assert "go with --model logistic" in run(capsys, "fit", *end, "--intervals")[2]
    wage = ("data.csv", "--target", "wage", "--schema", "regression.json", "--epsilon", "1")
    assert "--model is for classes" in run(capsys, "fit", *wage, "--model", "counts")[2]


def test_a_plan_reads_no_record(files: Path, capsys: Any) -> None:
    plan = ("--target", "job", "--schema", "classes.json", "--epsilon", "1", "--records", "500")
    status, with_records, _ = run(capsys, "plan", "data.csv", *plan)
    (files / "names.csv").write_text("job,age\n")
    assert (status, with_records) == run(capsys, "plan", "names.csv", *plan)[:2]
    assert "There is no column 'age'" in run(capsys, "plan", "data.csv", *plan, "--sep", ";")[2]


@pytest.mark.slow
def test_a_ledger_is_not_reminded_of(files: Path, capsys: Any) -> None:
    fit = ("fit", "data.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "1")
    assert "No --ledger" not in run(capsys, *fit, "--ledger", "new.sqlite", "--ceiling", "1")[1]


def test_a_reader_that_has_seen_enough_is_no_error(files: Path, capsys: Any) -> None:
    run(
        capsys,
        "fit",
        "data.csv",
        "--target",
        "wage",
        "--schema",
        "regression.json",
        "--epsilon",
        "1",
    )
    lines = "age,job,since\n" + "30,nurse,2020-05-01\n" * 20_000  # more than a pipe holds
    (files / "new.csv").write_text(lines)
    command = [sys.executable, "-m", "dpbayes_sklearn", "predict", "model.json", "new.csv"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline() == "prediction,standard deviation\n"
    child.stdout.close()
    assert child.stderr.read() == ""
    child.stderr.close()
    assert child.wait() == 0


# ------------------------------------------------------------------ real files


def test_cells_with_line_breaks_are_one_record(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id,note,age\r\n1,"two\r\nlines, ""quoted""",30\r\n2,,40\r\n', newline="")
    assert texts(path, "note") == ['two\nlines, "quoted"', ""]
    assert values(path, "age", Interval(0, 99)) == [30, 40]


@pytest.mark.parametrize("broken", ['1,"open', '1,"closed"too early'])
def test_a_quote_that_joins_records_is_refused(broken: str, files: Path, capsys: Any) -> None:
    (files / "odd.csv").write_text(f"age,job\n{broken}\n2,clerk\n")
    fit = ("fit", "odd.csv", "--target", "job", "--schema", "classes.json", "--epsilon", "1")
    status, _, said = run(capsys, *fit)
    assert status == 2
    assert "RFC 4180" in said
    assert "open" not in said
    assert "early" not in said


def test_files_of_other_countries(files: Path, capsys: Any) -> None:
    path = files / "lönne.csv"
    rows = [
        f"{i % 60 + 20};{i % 30},5;0{i % 9 + 1}.02.2015;{'jä' if i % 2 else 'nö'}"
        for i in range(400)
    ]
    path.write_bytes("\n".join(["alter;lohn;seit;ja", *rows]).encode("latin-1"))
    columns = {
        "alter": {"low": 17, "high": 90},
        "lohn": {"low": 0, "high": 30},
        "seit": {"low": "2015-01-01", "high": "2015-12-31"},
    }
    schema = {"columns": columns, "target": {"values": ["jä", "nö"]}}
    (files / "s.json").write_text(json.dumps(schema))
    form = ("--sep", ";", "--decimal", ",", "--encoding", "latin-1", "--date-format", "%d.%m.%Y")
    status, out, _ = run(capsys, "check", path.name, "--target", "ja", "--schema", "s.json", *form)
    assert status == 0
    assert out.count(" 0 of 400 values outside") == 4
    fit = ("fit", path.name, "--target", "ja", "--schema", "s.json", "--epsilon", "1", *form)
    assert run(capsys, *fit)[0] == 0
    assert run(capsys, "predict", "model.json", path.name, *form)[0] == 0
    assert run(capsys, *fit[:-1], "%Y")[0] == 0  # a format that no cell has: all are missing
    assert "no encoding" in run(capsys, *fit, "--encoding", "klingon")[2]
    assert "one character" in run(capsys, *fit, "--sep", ";;")[2]


def test_parquet_delta_persons_and_equal_columns(files: Path, capsys: Any) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    answers = {f"q{j}": rng.integers(0, 2, 600) for j in range(40)}
    pd.DataFrame(
        {**answers, "who": np.arange(600) // 3, "ill": rng.integers(0, 2, 600)}
    ).to_parquet("answers.parquet")
    schema = {"columns": {"*": {"values": [0, 1]}}, "target": {"values": [0, 1]}}
    (files / "s.json").write_text(json.dumps(schema))
    fit = ("fit", "answers.parquet", "--target", "ill", "--schema", "s.json", "--epsilon", "1")
    persons = ("--groups", "who", "--max-records", "2", "--add-remove")
    delta = ("--delta", "1e-6", "--mechanism", "gaussian")
    status, out, said = run(capsys, *fit, *persons, *delta)
    assert status == 0, said
    assert "gaussian mechanism" in out
    assert "all records of one person (at most 2)" in out
    assert len(json.loads((files / "model.json").read_text())["fitted"]["schema_"]["columns"]) == 40
    assert "goes with --groups" in run(capsys, *fit, "--max-records", "2")[2]


def test_a_cell_of_parquet_that_python_cannot_hold_is_missing(files: Path, capsys: Any) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    offsets, cells = np.array([0, 1, 3, 4], np.int32), pa.py_buffer(b"x\xff\xfey")
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(offsets.tobytes()), cells)
    late = pa.array([2**55, None, 0], pa.int64()).cast(pa.timestamp("ms"))
    parquet.write_table(
        pa.table({"a": texts, "day": late, "who": texts, "ill": ["no", "yes", "no"]}), "t.parquet"
    )
    fields = {"a": {"values": ["x", "y"]}, "day": {"low": "2020-01-01", "high": "2021-01-01"}}
    schema = {"columns": fields, "target": {"values": ["no", "yes"]}}
    Path("s.json").write_text(json.dumps(schema), encoding="utf-8")
    fit = ["fit", "t.parquet", "--target", "ill", "--schema", "s.json", "--epsilon", "1"]
    assert main([*fit, "--out", "m.json"]) == 0
    assert main([*fit, "--out", "m.json", "--groups", "who"]) == 0
    assert "error" not in capsys.readouterr().err


@pytest.mark.parametrize("cell", ["2020-01-01T00:00:00.000001", "0001-01-01", "", "soon"])
def test_no_date_decides_how_other_dates_are_learned(files: Path, cell: str) -> None:
    others = ["9999-12-31", "0800-12-25", "2020-02-29T12:30"]
    Path("days.csv").write_text("\n".join(["day", *others, cell, ""]), encoding="utf-8")
    file = read_data(Path("days.csv"), Form())
    days = typed_frame(file, {}, {"numbers": [], "dates": ["day"], "texts": []})[0]["day"]
    assert str(days.dtype) == "datetime64[us]"
    assert [str(day)[:16] for day in np.asarray(days)[:3]] == [
        "9999-12-31T00:00", "0800-12-25T00:00", "2020-02-29T12:30"
    ]  # fmt: skip
