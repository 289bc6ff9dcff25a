"""Private evaluations: the worst loss of all neighbours, and attacks with and without a fault."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.audit._evaluations import RUNS, UNITS, WORLDS, attack, evaluations, worst
from benchmarks.audit._table import Row
from dpbayes_sklearn._messages import progress
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.metrics.statistics import BoundedSums

__all__ = ["run"]


def run(scale: float) -> Iterator[Row]:
    """Enumerate every world for every unit; attack; then look at prices, persons and values."""
    for delta, kind in ((0.0, "pure"), (1e-6, "zCDP")):
        found = [worst(w, u, delta) for w in progress(WORLDS, "worlds") for u in UNITS.values()]
        share, pairs = max(s for s, _, _ in found), sum(n for _, n, _ in found)
        what = f"{len(found)} worlds, {pairs:,} pairs, {kind}"
        passed = share <= 1 and not any(wrong for _, _, wrong in found)
        yield Row("evaluations", what, f"loss / claim = {share:.7f}", "<= 1", passed)
    runs = max(RUNS, int(10 * RUNS * scale))
    for name, unit in UNITS.items():
        bound = attack(unit, runs)
        what = f"attack, {name}: {runs:,} runs a side"
        passed = 0.6 <= bound <= 1
        yield Row("evaluations", what, f"epsilon >= {bound:.3f}", "<= 1, >= 0.6", passed)
        real = BoundedSums.law

        def halved(number, unit, epsilon, rho, real=real):  # type: ignore[no-untyped-def]
            return real(number, unit, 2 * epsilon, rho)

        with planted((BoundedSums, "law", halved)):
            bound = attack(unit, runs)
        what = f"attack, {name}, with half the noise"
        yield Row("evaluations", what, f"epsilon >= {bound:.3f}", "> 1", bound > 1)
    rest = [case for case in evaluations() if "," not in case.name]
    wrong = [finding for case in rest for finding in case.findings()]
    figure = wrong[0][:60] if wrong else "nothing found"
    yield Row("evaluations", "prices, persons and bad values", figure, "nothing", not wrong)
