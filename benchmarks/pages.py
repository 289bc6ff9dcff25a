"""How long tables get into pages of the documentation: as CSV, folded, beside their summary."""

from __future__ import annotations

import csv
import re
from pathlib import Path

LONGEST = 5  # rows of a table that a page shows itself
_AT_ONE = 10  # rows with epsilon = 1 that it shows of a longer one
ROWS = re.compile(r"(?:^\|.*(?:\n|\Z))+", re.M)


def folded(text: str, folder: Path, name: str) -> str:
    """Move each table of a text with more than ``LONGEST`` rows to a CSV file of ``folder/tables``.

    In its place the text gets the rows with epsilon = 1, if these are few, and all rows folded: the
    reader of the HTML page opens them by a click.
    """
    count = 0

    def moved(table: re.Match[str]) -> str:
        nonlocal count
        lines = table[0].splitlines()
        if len(lines) - 2 <= LONGEST:
            return table[0]
        rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]
        count += 1
        file = f"tables/{name}{f'_{count}' * (count > 1)}.csv"
        (folder / "tables").mkdir(exist_ok=True)
        with (folder / file).open("w", encoding="utf-8", newline="") as target:
            csv.writer(target, lineterminator="\n").writerows([rows[0], *rows[2:]])
        return at_one(lines, rows) + details(
            f"All {len(rows) - 2} rows", f"{{csv-table}}\n:file: {file}\n:header-rows: 1"
        )

    return ROWS.sub(moved, text)


def at_one(lines: list[str], rows: list[list[str]]) -> str:
    """Return the table of the rows with epsilon = 1, if these are few."""
    if "ε" not in rows[0]:
        return ""
    column = rows[0].index("ε")
    chosen = [line for line, row in zip(lines, rows, strict=True) if row[column] == "1"]
    return "\n".join([*lines[:2], *chosen]) + "\n\n" if 0 < len(chosen) <= _AT_ONE else ""


def folded_output(text: str, folder: Path, name: str) -> str:
    """Move columns of text longer than that to a file of ``folder/tables``, likewise."""
    lines = text.splitlines()
    if len(lines) <= LONGEST:
        return f"```text\n{text}\n```\n"
    file = f"tables/{name}.txt"
    (folder / "tables").mkdir(exist_ok=True)
    (folder / file).write_text(text + "\n", encoding="utf-8")
    title = lines[0].strip().rstrip(":")
    return details(title, f"{{literalinclude}} {file}\n:language: text")


def details(summary: str, directive: str) -> str:
    """Return a directive of MyST that the reader unfolds."""
    return f"<details><summary>{summary}</summary>\n\n```{directive}\n```\n\n</details>\n"
