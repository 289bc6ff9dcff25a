"""Hyperparameter search on private data, at a known privacy cost."""

from __future__ import annotations

from dpbayes_sklearn.model_selection.rehearsal import SearchCost
from dpbayes_sklearn.model_selection.search import PrivateSearchCV

__all__ = ["PrivateSearchCV", "SearchCost"]
