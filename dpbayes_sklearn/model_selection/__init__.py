"""Choosing parameters on the very data that are to be protected, and paying for the choice."""

from __future__ import annotations

from dpbayes_sklearn.model_selection.search import PrivateSearchCV, SearchCost

__all__ = ["PrivateSearchCV", "SearchCost"]
