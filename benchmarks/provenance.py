"""Which command makes the figures of which page, and at which commit they were written last.

``python -m benchmarks.provenance`` writes ``docs/benchmarks/made_by.md`` from the pages, which name
their commands, and from git, which knows when the table next to a command was changed.
"""

from __future__ import annotations

import re
import subprocess
from bisect import bisect
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "made_by.md"
COMMAND = re.compile(r"python\s+-m\s+(benchmarks[\w.]*\w)|`(benchmarks/[\w/]+)\.py`")
OWN = {"benchmarks.audit", "benchmarks.report", "benchmarks.provenance"}
"""Commands whose pages carry commit and date themselves."""

HEAD = """# Where the figures come from

Every table and figure with measured numbers is made by a command that its page names. This page
lists them with the commit and the date at which they were written last (`python -m
benchmarks.provenance`). {doc}`index`, which `make bench` writes in one run, and
{doc}`../security/audit` state theirs themselves. Before a release all of them are made again, by
the checklist in {doc}`../contributing`.

No command makes these again; they were measured once: the numbers of questions in
{doc}`../user_guide/query_sessions`, the table of sparse priors in
{doc}`posterior_release`, and the further repeats in {doc}`inference`.

| page | command | commit | date |
|---|---|---|---|
"""


def commands(page: Path) -> Iterator[tuple[str, int]]:
    """Yield every command that a page names first, and its line."""
    text, seen = page.read_text("utf-8"), set(OWN)
    for found in COMMAND.finditer(text):
        name = found[1] or found[2].replace("/", ".")
        if name not in seen:
            seen.add(name)
            yield name, text[: found.start()].count("\n") + 1


def written(page: Path, line: int) -> tuple[str, str]:
    """Return commit and date of the newest line of the table nearest to a line, in its section."""
    lines = page.read_text("utf-8").split("\n")
    rows = [i + 1 for i, text in enumerate(lines) if text.startswith(("|", "!["))]
    heads = [i + 1 for i, text in enumerate(lines) if text.startswith("#")]
    section = bisect(heads, line)
    own = [row for row in rows if bisect(heads, row) == section]
    nearest = min(own or rows, key=lambda row: abs(row - line), default=line)
    first = last = nearest
    while first - 1 in rows:
        first -= 1
    while last + 1 in rows:
        last += 1
    blame = ["git", "blame", "-C", "-C", "--line-porcelain", "-L", f"{first},{last}", str(page)]
    told = subprocess.run(blame, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    hashes = re.findall(r"^([0-9a-f]{40}) ", told, re.M)
    times = [int(seconds) for seconds in re.findall(r"^committer-time (\d+)", told, re.M)]
    time, commit = max(zip(times, hashes, strict=True))
    return commit[:10], datetime.fromtimestamp(time, UTC).date().isoformat()


def pages() -> list[Path]:
    """Return the pages that may show measured figures."""
    documentation = sorted(set(ROOT.glob("docs/**/*.md")) - {PAGE})
    return [*documentation, ROOT / "README.md"]


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield page, command, commit and date."""
    for page in pages():
        for name, line in commands(page):
            yield str(page.relative_to(ROOT)), f"python -m {name}", *written(page, line)


def main() -> None:
    table = "".join(f"| {' | '.join((p, f'`{c}`', *when))} |\n" for p, c, *when in rows())
    PAGE.write_text(HEAD + table, encoding="utf-8")


if __name__ == "__main__":
    main()
