"""How often published intervals hold, and how much too sure small releases are."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.audit._intervals import LEAST, MOST, SETTINGS, covered, excess_of_confidence, stated
from benchmarks.audit._table import Row

__all__ = ["run"]


def run(scale: float) -> Iterator[Row]:
    """Repeat every release, and count."""
    runs = max(150, round(1000 * scale))
    for name, setting in SETTINGS.items():
        found = covered(*setting, runs)
        what = f"{name}, n = {setting[0]}, epsilon = {setting[1]:g}"
        yield Row("intervals", what, f"95 % hold in {found:.3f}", f">= {LEAST}", found >= LEAST)
    wrong = [*stated()]
    figure = wrong[0] if wrong else "none"
    yield Row("intervals", "coefficients without known errors", figure, "none", not wrong)
    for n in (1000, 4900):
        excess = excess_of_confidence(n, max(1, round(8 * scale)))
        what = f"forty dependent columns, n = {n:,}, epsilon = 0.1"
        figure = f"too sure by {excess:+.3f}"
        yield Row("intervals", what, figure, f"<= {MOST}", excess <= MOST)
