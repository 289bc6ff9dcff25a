"""Adaptive sequences of releases that a ledger accepts: their exact delta is within the ceiling."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.audit._adversaries import CEILINGS, Adversary
from benchmarks.audit._table import Row
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.privacy.composition import Filter

SHARES = (0.1, 0.25, 0.38, 0.55, 0.7)


def run(scale: float) -> Iterator[Row]:
    """Two releases from a long menu and three from a short one, and a ledger that is no filter."""
    shares = SHARES[:: max(1, round(1 / scale))] if scale < 1 else SHARES
    for epsilon, delta in CEILINGS:
        for composition in ("sum", "zcdp"):
            ceiling = f"({epsilon:g}, {delta:g}), {composition}"
            for depth, taken in ((2, shares), (3, (0.38,))):
                adversary = Adversary(epsilon, delta, composition, taken)
                found = adversary.largest_delta(depth) / delta
                what = f"{ceiling}: {depth} releases, menu of {len(adversary.menu)}"
                yield Row("adversaries", what, f"{found:.3f} delta", "<= 1", found <= 1 + 1e-9)
        with planted((Filter, "for_sums", property(lambda rule: rule.ceiling))):
            found = Adversary(epsilon, delta, "zcdp").largest_delta(2) / delta
        what = f"({epsilon:g}, {delta:g}): either of two filters, each with all of delta"
        yield Row("adversaries", what, f"{found:.3f} delta", "> 1", found > 1)
