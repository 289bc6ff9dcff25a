"""What a layer of the audit has to say, and how it is printed."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy
import sklearn

import dpbayes_sklearn

__all__ = ["HEADER", "Row", "line", "markdown", "versions"]


class Row(NamedTuple):
    """One finding: what was tried, what was found, and what has to hold of it."""

    layer: str
    what: str
    figure: str
    claim: str
    passed: bool


HEADER = Row("layer", "what", "figure", "must be", True)
_WIDTHS = (12, 58, 30, 22)


def line(row: Row, verdict: str | None = None) -> str:
    """Return a row as a line of the printed table."""
    cells = (f"{text:<{width}}" for text, width in zip(row[:4], _WIDTHS, strict=True))
    return "  ".join([*cells, ("ok" if row.passed else "FAILED") if verdict is None else verdict])


_PAGE = """---
orphan: true
---

# What the audit found

This page is written by `python -m benchmarks.audit --write FILE`, which runs every layer; `make
audit` prints the same table and fails if a row does.

"""


def markdown(rows: Iterable[Row]) -> str:
    """Return the table as a page of the documentation."""
    head = ["| layer | what | figure | must be | |", "|---|---|---|---|---|"]
    body = [
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in row[:4])} | "
        f"{'ok' if row.passed else '**failed**'} |"
        for row in rows
    ]
    return _PAGE + "\n".join([*head, *body, "", versions(), ""])


def versions() -> str:
    """Return what the figures were made with."""
    return (
        f"dpbayes_sklearn {dpbayes_sklearn.__version__}, Python {platform.python_version()}, "
        f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}."
    )
