"""Warnings about a release whose guarantee is worth less than it seems."""

from __future__ import annotations

from typing import Any

from dpbayes_sklearn.exceptions import PrivacyLeakWarning, called_by, warn_caller
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.printing import at_least

__all__ = ["SEED_GIVERS", "warn_of_delta", "warn_of_seeds"]

SEED_GIVERS = {
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._weight_boosting",
    "sklearn.linear_model._ransac",
}
"""Modules of scikit-learn that set ``random_state`` of what they fit."""


def warn_of_delta(cost: Budget, statistics: Any) -> None:
    """Warn of a delta that allows to publish one of n records, drawn at random, as it is."""
    if cost.delta and cost.delta * statistics.n >= 1:
        warn_caller(
            f"delta={at_least(cost.delta)} is not below 1/n for n={statistics.n} records: such a "
            "guarantee would permit publishing a whole record. Set delta far below 1/n.",
            PrivacyLeakWarning,
        )


def warn_of_seeds(ledger: BudgetAccountant | None) -> None:
    """Warn where a seed meets a release that is most likely meant for publication."""
    if called_by(SEED_GIVERS):
        warn_caller(
            "An ensemble has set random_state to a seed of at most 32 bits. By trying all of them "
            "the noise can be removed: do not publish this ensemble. Voting and stacking do not "
            "set seeds.",
            PrivacyLeakWarning,
        )
    elif ledger is not None and not ledger.temporary:
        warn_caller(
            "random_state is set, and the ledger is on disk: fits with the same random_state, such "
            "as folds, have the same noise, which cancels between them. Use random_state=None for "
            "releases that are published.",
            PrivacyLeakWarning,
        )
