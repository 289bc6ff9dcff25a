"""Which command makes the figures of which page, and at which commit they were written last.

``python -m benchmarks.provenance`` writes ``docs/benchmarks/tables/made_by.csv`` from the pages,
which name their commands, and from git, which knows when the table next to a command was changed.
"""

from __future__ import annotations

import csv
import re
import subprocess
from bisect import bisect
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "benchmarks" / "tables" / "made_by.csv"
COMMAND = re.compile(r"python\s+-m\s+(benchmarks[\w.]*\w)|`(benchmarks/[\w/]+)\.py`")
OWN = {"benchmarks.audit", "benchmarks.report", "benchmarks.provenance"}
"""Commands whose pages carry commit and date themselves."""


def commands(page: Path) -> Iterator[tuple[str, int]]:
    """Yield every command that a page names first, and its line."""
    text, seen = page.read_text("utf-8"), set(OWN)
    for found in COMMAND.finditer(text):
        name = found[1] or found[2].replace("/", ".")
        if name not in seen:
            seen.add(name)
            yield name, text[: found.start()].count("\n") + 1


def written(page: Path, line: int) -> tuple[str, str] | None:
    """Return commit and date of the newest line of the table nearest to a line, in its section.

    None is for the file of a long table that has not changed since it was moved out of its page.
    """
    lines = page.read_text("utf-8").split("\n")
    rows = [i + 1 for i, text in enumerate(lines) if text.startswith(("|", "![", ":file:"))]
    heads = [i + 1 for i, text in enumerate(lines) if text.startswith("#")]
    section = bisect(heads, line)
    own = [row for row in rows if bisect(heads, row) == section]
    nearest = min(own or rows, key=lambda row: abs(row - line), default=line)
    if lines[nearest - 1].startswith(":file: "):
        file = page.parent / lines[nearest - 1].removeprefix(":file: ")
        changes = git("log", "--format=%h %cs", "--abbrev=10", str(file)).splitlines()
        commit, date = changes[0].split()
        return (commit, date) if len(changes) > 1 else None
    first = last = nearest
    while first - 1 in rows:
        first -= 1
    while last + 1 in rows:
        last += 1
    told = git("blame", "-C", "-C", "--line-porcelain", "-L", f"{first},{last}", str(page))
    hashes = re.findall(r"^([0-9a-f]{40}) ", told, re.M)
    times = [int(seconds) for seconds in re.findall(r"^committer-time (\d+)", told, re.M)]
    time, commit = max(zip(times, hashes, strict=True))
    return commit[:10], datetime.fromtimestamp(time, UTC).date().isoformat()


def git(*arguments: str) -> str:
    """Return what a command of git prints."""
    line = ["git", *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def pages() -> list[Path]:
    """Return the pages that may show measured figures."""
    return [*sorted(ROOT.glob("docs/**/*.md")), ROOT / "README.md"]


def known() -> dict[tuple[str, str], tuple[str, str]]:
    """Return commit and date by page and command, as the table has them now."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(page, name): (commit, date) for page, name, commit, date in csv.reader(file)}


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield page, command, commit and date."""
    before = known()
    for page in pages():
        for name, line in commands(page):
            key = str(page.relative_to(ROOT)), f"python -m {name}"
            yield *key, *(written(page, line) or before[key])


def main() -> None:
    table = [("page", "command", "commit", "date"), *rows()]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    main()
