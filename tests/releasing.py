"""A release by a mechanism alone, without an estimator around it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audit.tools.universes import plan_for
from dpbayes_sklearn.release import Release, carry_out

__all__ = ["carried_out", "law_loss", "plan_for"]


def carried_out(mechanism: Any, statistics: Any, prior: Any, budget: Any, noise: Any) -> Release:
    """Plan and release."""
    return carry_out(plan_for(mechanism, statistics, prior, budget), statistics, noise)


def law_loss(weights_a: npt.NDArray[np.uint64], weights_b: npt.NDArray[np.uint64]) -> float:
    """Privacy loss between integer laws: the largest abs(log(p_a/p_b)) over points and rows.

    Rounded outward, so the true value is never above the result; infinite where one law
    has a point that the other lacks.
    """
    a, b = np.broadcast_arrays(weights_a, weights_b)
    if ((a == 0) != (b == 0)).any():
        return math.inf
    support = a > 0
    totals = [np.sum(w, axis=-1, keepdims=True, dtype=np.uint64).astype(np.float64) for w in (a, b)]
    ratios = np.where(support, a, 1) / np.where(support, b, 1) * (totals[1] / totals[0])
    largest = float(np.abs(np.log(ratios, where=support, out=np.zeros(a.shape))).max(initial=0.0))
    # conversions and quotients err by 8 half-ulps together, the logarithm by one or two ulps
    return largest * (1 + 2.0**-50) + 2.0**-50
