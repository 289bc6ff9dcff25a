"""Budgets, guarantees and the accountant."""

from __future__ import annotations

from dpbayes_sklearn.privacy.accountant import BudgetAccountant
from dpbayes_sklearn.privacy.budget import Budget, PrivacyUnit, exact
from dpbayes_sklearn.privacy.guarantee import PrivacyGuarantee

__all__ = ["Budget", "BudgetAccountant", "PrivacyGuarantee", "PrivacyUnit", "exact"]
