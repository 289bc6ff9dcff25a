"""Budgets, guarantees and the accountant."""

from __future__ import annotations

from dpbayes_sklearn.privacy.accountant import BudgetAccountant
from dpbayes_sklearn.privacy.budget import Budget, exact
from dpbayes_sklearn.privacy.guarantee import PrivacyGuarantee
from dpbayes_sklearn.privacy.unit import PrivacyUnit

__all__ = ["Budget", "BudgetAccountant", "PrivacyGuarantee", "PrivacyUnit", "exact"]
