"""Hyperparameter search on private data, at a known privacy cost."""

from __future__ import annotations

from dpbayes_sklearn.model_selection.search import PrivateSearchCV, SearchCost

__all__ = ["PrivateSearchCV", "SearchCost"]
