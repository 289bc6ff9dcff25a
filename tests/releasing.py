"""A release by a mechanism alone, without an estimator around it."""

from __future__ import annotations

from typing import Any

from dpbayes_sklearn.audit._universes import plan_for
from dpbayes_sklearn.release import Release, carry_out

__all__ = ["carried_out", "plan_for"]


def carried_out(mechanism: Any, statistics: Any, prior: Any, budget: Any, noise: Any) -> Release:
    """Plan and release."""
    return carry_out(plan_for(mechanism, statistics, prior, budget), statistics, noise)
