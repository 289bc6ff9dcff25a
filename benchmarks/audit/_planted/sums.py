"""Bugs of means and rates: what a record changes in a sum, and what draws cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.sums import release
from dpbayes_sklearn.sums.release import Column

Replacements = Iterator[tuple[Any, str, Any]]


@fault("sums", "enumeration of sums", "All records of a person change a sum as one does", "noise")
def persons_as_records() -> Replacements:
    yield release, "largest_change", lambda grid, unit: grid


@fault("sums", "enumeration of sums", "A draw is thought to lose half of what it does", "draws")
def half_a_draw() -> Replacements:
    real = release.draw_loss
    yield release, "draw_loss", lambda *facts: real(*facts) / 2


@fault(
    "sums", "enumeration of sums", "The loss of a draw is looked for at small sums only", "draws"
)
def one_end() -> Replacements:
    real = release.draw_loss

    def small(prior: Any, j: int, n: int, k: int, points: int, temper: float) -> float:
        return real(prior, j, 10 * n, k, points, temper / 10)

    yield release, "draw_loss", small


@fault("sums", "enumeration of sums", "Numbers beyond the bounds are not clipped", "replay")
def not_clipped() -> Replacements:
    def codes(self: Any, numbers: Any, grid: int) -> Any:
        least, most = self.range
        share = (self.statistic(np.nan_to_num(numbers, posinf=9e9)) - least) / (most - least)
        return np.rint(np.clip(share, -1e6, 1e6) * grid).astype(np.int64)

    yield Column, "codes", codes
