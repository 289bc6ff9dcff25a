"""A word to who may not know what a figure means."""

from __future__ import annotations

import logging

from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.guarantee import WEAK, PrivacyGuarantee

__all__ = ["tell_if_weak"]

_LOGGER = logging.getLogger("dpbayes_sklearn")
_told = False


def tell_if_weak(budget: Budget) -> None:
    """Log, once in a process, that a finite epsilon above 10 promises little."""
    global _told
    if not _told and budget.epsilon > WEAK and not budget.infinite:
        _told = True
        meaning = PrivacyGuarantee.of(budget, "").meaning
        _LOGGER.warning(
            "epsilon = %g promises little. %s Budgets of 1 and below are strong, above %g they "
            "are mostly of theoretical use.",
            float(budget.epsilon),
            meaning,
            WEAK,
        )
