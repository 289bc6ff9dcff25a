"""The exact delta of discrete Gaussian noise on counts that change by a pattern, or in a world."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from benchmarks.audit._cases import Row
from benchmarks.audit.tools import enumerate_delta
from benchmarks.audit.tools.deltas import gaussian_shift_delta
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.privacy.gaussian import Shifts, gaussian_variance


def convolved_delta(variance: Fraction | float, epsilon: float, shifts: Shifts) -> float:
    """Return delta from the law of T = sum of shift * noise, on which alone the loss depends.

    All terms are positive and summed directly, so there is no cancellation.
    """
    pattern = tuple((float(variance / w), shift, count) for (shift, w), count in shifts.items())
    return gaussian_shift_delta(pattern, epsilon)


PATTERNS: tuple[Shifts, ...] = (
    {(1, 1): 2},
    {(2, 1): 1},
    {(1, 1): 8},
    {(1, 1): 2, (2, 1): 2},
    {(1, 1): 60},
    {(1, 2): 2, (1, 3): 8, (1, 6): 2},
)
BUDGETS = ((1.0, 1e-6), (0.1, 1e-6), (0.3, 1e-3), (4.0, 1e-8))
WORLDS: tuple[tuple[Any, int, str], ...] = (
    (Network.star([2, 2, 2], 2), 2, "record"),
    (Network.star([2, 4], 2), 2, "record"),
    (Network.star([3, 2], 3), 2, "feature"),
    (Network((2, 2, 2), ((2,), (0,), ())), 2, "record"),
    (5, 4, "record"),
)


def run(scale: float) -> Iterator[Row]:
    """Compute the exact delta of the noise that is chosen for counts which change by a pattern."""
    patterns = PATTERNS if scale >= 1 else PATTERNS[:2]
    for epsilon, delta in BUDGETS:
        used = [
            convolved_delta(gaussian_variance(epsilon, delta, pattern), epsilon, pattern) / delta
            for pattern in patterns
        ]
        what = f"Gaussian noise, epsilon={epsilon:g}, delta={delta:g}, {len(used)} shifts"
        worst, least = f"delta / claim = {max(used):.7f}", f"delta / claim = {min(used):.7f}"
        yield Row(what, worst, "<= 1", max(used) <= 1)
        yield Row(f"{what}, the least", least, ">= 0.9", min(used) >= 0.9)
    for structure, n, unit in WORLDS if scale >= 1 else WORLDS[:1]:
        found = enumerate_delta("gaussian", structure, n, unit=unit)
        what = f"gaussian, {unit}, all {found.n_pairs:,} pairs of a world, epsilon=1, delta=1e-6"
        share = found.ratio
        yield Row(what, f"delta / claim = {share:.7f}", "0.9 to 1", 0.9 <= share <= 1)
