"""The command line: what it writes over, charges for nothing, quotes, or loses.

Every case runs commands in a folder of its own, with a file of records, a schema and a ledger.
"""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any

from benchmarks.audit._cases import Case, cases_of, in_a_folder
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn import BudgetAccountant, from_json
from dpbayes_sklearn.__main__ import main

MARK = "7391"
READ = ("data.csv", "schema.json", "ledger.sqlite")
MOST_MEMORY = 2**25
SCHEMA: dict[str, Any] = {
    "columns": {"age": {"low": 17, "high": 90}},
    "target": {"values": ["clerk", "nurse"]},
}


class Folder:
    """A folder with files to work on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = [f"{20 + i % 60},{('clerk', 'nurse')[i % 2]}" for i in range(40)]
        (path / "data.csv").write_text("\n".join(["age,job", *rows]) + "\n")
        (path / "schema.json").write_text(json.dumps(SCHEMA))
        BudgetAccountant(9, path=path / "ledger.sqlite")

    def run(self, command: str, *words: str) -> tuple[int, str]:
        """Return the exit status of a command and all that it says."""
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            try:
                status = main([command, *words])
            except SystemExit as ended:
                status = int(ended.code or 0)
        return status, said.getvalue()

    def fit(self, out: str = "model.json", *more: str, **files: str) -> tuple[int, str]:
        """Fit a model to the files of the folder, or to others, with more options."""
        data, schema = (files.get(name, f"{name}.{end}") for name, end in NAMES)
        names = {"--schema": schema, "--ledger": "ledger.sqlite", "--out": out}
        words = [w for option, name in names.items() for w in (option, str(self.path / name))]
        rest = ("--target", "job", "--epsilon", "1", *words, *more)
        return self.run("fit", str(self.path / data), *rest)

    def charged(self) -> float:
        """Return what was spent; the ledger must be whole."""
        return float(BudgetAccountant(path=self.path / "ledger.sqlite", existing=True).total()[0])

    def content(self) -> dict[str, bytes]:
        """Return the files that commands read."""
        return {name: (self.path / name).read_bytes() for name in READ}


NAMES = (("data", "csv"), ("schema", "json"))


def command_line() -> list[Case]:
    """Return the cases: what is overwritten, what is charged, what is quoted, what is lost."""
    written = (_files_that_are_read, _files_that_cannot_be_written, _a_file_that_cannot_be_moved)
    read = (_schemas_that_no_model_has, _many_bins, _lines_that_end_otherwise, _templates)
    return cases_of(
        *(_in_a_folder(found) for found in (*written, *read, _empty_lines, _allotments))
    )


def _in_a_folder(findings: Callable[[Folder], Iterator[str]]) -> Callable[[], Iterator[str]]:
    return in_a_folder(wraps(findings)(lambda path: findings(Folder(path))))


def _refused(folder: Folder, what: str, status: int, before: dict[str, bytes]) -> Iterator[str]:
    """Yield what is wrong after a command that had to be refused."""
    if status != 2:
        yield f"{what}: accepted"
    if folder.content() != before:
        yield f"{what}: a file that is read has changed, or a budget was spent"
    if list(folder.path.glob(".*")):
        yield f"{what}: a file is left behind"


def _files_that_are_read(folder: Folder) -> Iterator[str]:
    before = folder.content()
    for name in READ:
        os.link(folder.path / name, folder.path / f"hard-{name}")
        (folder.path / f"soft-{name}").symlink_to(folder.path / name)
        for out in (name, f"hard-{name}", f"soft-{name}", f"../{folder.path.name}/{name}"):
            status, _ = folder.fit(out)
            yield from _refused(folder, f"--out is {out}", status, before)
        (folder.path / f"hard-{name}").unlink()
    status, _ = folder.fit("ledger.sqlite-journal")
    yield from _refused(folder, "--out is the journal of the ledger", status, before)


def _files_that_cannot_be_written(folder: Folder) -> Iterator[str]:
    before = folder.content()
    (folder.path / "link.json").symlink_to(folder.path / "nowhere" / "model.json")
    (folder.path / "folder").mkdir()
    for out in ("link.json", "folder", "none/model.json", "/dev/full"):
        status, _ = folder.fit(out)
        yield from _refused(folder, f"--out is {out}", status, before)
    with planted((os, "fsync", _failing(OSError(28, "No space left on device")))):
        status, _ = folder.fit()
    yield from _refused(folder, "the disk is full", status, before)


def _schemas_that_no_model_has(folder: Folder) -> Iterator[str]:
    before = folder.content()
    for number in ("Infinity", "NaN", "1e999", "-Infinity"):
        ages = json.dumps({**SCHEMA, "columns": {"age": {"values": [1, 0]}}})
        (folder.path / "odd.json").write_text(ages.replace("[1, 0]", f"[1, {number}]"))
        status, _ = folder.fit(schema="odd.json")
        yield from _refused(folder, f"{number} in a schema", status, before)


def _many_bins(folder: Folder) -> Iterator[str]:
    before = folder.content()
    many = {"age": {"low": 0, "high": 9, "bins": 10**7}}
    (folder.path / "odd.json").write_text(json.dumps({**SCHEMA, "columns": many}))
    tracemalloc.start()
    status, _ = folder.fit(schema="odd.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield from _refused(folder, "ten million bins", status, before)
    if peak > MOST_MEMORY:
        yield f"ten million bins: {peak:,} bytes before they were refused"


def _failing(error: OSError) -> Any:
    def fails(*_: Any) -> None:
        raise error

    return fails


def _a_file_that_cannot_be_moved(folder: Folder) -> Iterator[str]:
    with planted((Path, "replace", _failing(OSError(13, "Permission denied")))):
        status, said = folder.fit()
    left = list(folder.path.glob(".*"))
    if status != 2 or folder.charged() != 1 or len(left) != 1:
        yield "a model that cannot be moved is lost"
    elif left[0].name not in said or not hasattr(from_json(left[0].read_text()), "schema_"):
        yield "nobody is told where a model is that could not be moved"


def _lines_that_end_otherwise(folder: Folder) -> Iterator[str]:
    """Give a file of other line ends, and one whose first line is a record."""
    for name, lines in (
        ("carriage returns", "\r".join(["age,job", *[f"{MARK},clerk"] * 3])),
        ("no names", f"{MARK},{MARK}\n1,clerk\n"),
        ("no names, all different", f"{MARK},clerk\n1,clerk\n"),
    ):
        (folder.path / "odd.csv").write_text(lines, newline="")
        said = folder.fit(data="odd.csv")[1]
        words = ("--target", "job", "--out", str(folder.path / f"{name}.json"))
        said += folder.run("schema", str(folder.path / "odd.csv"), *words)[1]
        if MARK in said or "clerk" in said:
            yield f"{name}: a message shows a value of a record"


def _empty_lines(folder: Folder) -> Iterator[str]:
    """Predict for files whose records are empty lines here or there, one line for each."""
    folder.fit()
    model, odd, out = (folder.path / name for name in ("model.json", "odd.csv", "out.csv"))
    for rows in (["", "20", "30"], ["20", "", "30"], ["20", "30", ""], ["20", "", ""], ["", ""]):
        odd.write_text("\n".join(["age", *rows]) + "\n")
        folder.run("predict", str(model), str(odd), "--out", str(out))
        if len(out.read_text().splitlines()) != 1 + len(rows):
            yield "whether an empty line is a record depends on its place"


def _allotments(folder: Folder) -> Iterator[str]:
    """Charge an allotment, and one that has too little."""
    ledger = BudgetAccountant(path=folder.path / "ledger.sqlite", existing=True)
    enough, few = (ledger.allotment(name, epsilon) for name, epsilon in (("a", 1), ("b", 0.5)))
    folder.fit("model.json", "--allotment", "a")
    if not enough.total().epsilon == folder.charged() == 1:
        yield "an allotment that is named is not charged"
    if not folder.fit("other.json", "--allotment", "b")[0] or len(few) or folder.charged() != 1:
        yield "an allotment is charged beyond its ceiling"


def _templates(folder: Folder) -> Iterator[str]:
    """Write templates for files that differ in one record."""
    templates = set()
    for odd in ("x", "2", "", "2020-01-01", '"', "x\n2\n"):
        (folder.path / "odd.csv").write_text(f"age,job\n1,x\n2,1\n3,{odd}\n")
        out = folder.path / "template.json"
        folder.run("schema", str(folder.path / "odd.csv"), "--target", "job", "--out", str(out))
        templates.add(out.read_bytes())
        out.unlink()
    if len(templates) > 1:
        yield "a schema template depends on one record"
